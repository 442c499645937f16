"""One remote during an exchange: its refs, the logs among them, and what became of it."""

from __future__ import annotations

from ..errors import RemoteError
from ..git import remotes
from ..log import damage, log_refs, ref
from ..log.place_checks import FOREIGN, FOREIGN_WHY, INVALID, PlaceCheck
from . import accepted, outbox_places, rebase, unfetched
from .partial_reads import some_outboxes, stand_in
from .remote_state import Host
from .withheld_lines import Withheld

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..log.left_out import LeftOut
    from ..log.local_log import Log
    from ..log.log_refs import Tip
    from ..repo import Place
    from .outbox import Outbox


def configured(place: Place) -> list[str]:
    """The remotes of the repository, as its config has them."""
    return remotes.remotes(place.common)


def usual(place: Place) -> str:
    """The remote to sync with when none is named: the branch's upstream, else `origin`, else the only one.

    Raises: UsageError `which-remote` or `no-remote`.
    """
    return remotes.upstream_remote(place)


def shown(name: str) -> str:
    """Return a remote's name, or its url without credentials."""
    return remotes.without_credentials(name)


class Remote:
    """A remote and what became of the exchange with it.

    Attributes:
        state: synced, up-to-date, offline, rejected, refused, read-only, empty or consent-needed; "" until that is
            known.
        received: Lines that came from there and were not here.
        sent: Lines that it did not have.
        forgiven: Whether it may refuse what we send, and that is no trouble.
        safe: Whether everything of ours that we knew of is there now.
        outbox: The ref there that this exchange made for lines of ours; None: no need.
        attempts: How often it was asked.
        rejections: How often others were faster with a push.
        tip: The commit that it has where the log is published, as far as known.
        message: What there is to say about it; empty where all is as usual.
        tips: The logs that it has and that may be united with ours.
        boxes: Its outboxes.
        waiting: Those that its shared log does not have yet.
        crowd: How many of those were new at the last look and not ours.
        most: The greatest crowd of this exchange.
        is_foreign: Whether it was refused as the log of another project.
        destination: Where pushes to it end, after `insteadOf` and without credentials.
        may_send: Whether the user has agreed that the log is published there.
        withheld: The lines that it lacks and is not sent for want of that.
        left_out: Its places that failed the checks.
        blocked: The one of these that the log is published at; None where that passed, or is not there.
        accepted: The shared log as it last passed.
        refused: Refs that git refused to fetch, with their commits and why.
        unexamined: How many outboxes a fetch did not come to.
        stepped: Whether a part was taken in of what is too much for one sync.
        pushed: Where this exchange has moved the shared ref to.

    Raises: UsageError: `unknown-remote`.
    """

    def __init__(self, log: Log, name: str) -> None:
        self.log = log
        log.taken_in = 0
        self.name = name
        self.url, self.destination = remotes.push_urls(log.place.common, name, log.place.worktree)
        self.prefix = f"{ref.REMOTES_PREFIX}{remotes.encode(name)}/"
        self.host = Host(log.place.state, remotes.encode(name), remotes.without_credentials(self.url))
        self.state = ""
        self.received = 0
        self.sent = 0
        self.forgiven = False
        self.safe = False
        self.outbox: str | None = None
        self.attempts = 0
        self.rejections = 0
        self.tip: str | None = None
        self.message = ""
        self.refs: dict[str, str] = {}
        self.tips: list[Tip] = []
        self.boxes: list[Outbox] = []
        self.waiting: list[Outbox] = []
        self.crowd = 0
        self.most = 0
        self.is_foreign = False
        self.may_send = False
        self.withheld = Withheld()
        self.left_out: list[LeftOut] = []
        self.blocked: LeftOut | None = None
        self.accepted: Tip | None = None
        self.pushed: str | None = None
        self.stepped = False
        self.refused: dict[str, tuple[str, str]] = {}
        self.unexamined = 0
        self._base: Tip | None = None

    @property
    def shown_name(self) -> str:
        """Its name, or its url without credentials."""
        return shown(self.name)

    def copy_of(self, name: str) -> str:
        """Our ref for one of its refs."""
        return self.prefix + name.removeprefix("refs/")

    def at(self, name: str) -> str | None:
        """Where one of its refs is, as far as known."""
        return self.refs.get(self.copy_of(name))

    def say(self, sentence: str) -> None:
        if sentence and sentence not in self.message:
            self.message = f"{self.message} {sentence}".strip()

    def end(self, state: str, sentence: str = "") -> None:
        self.state = state
        self.say(sentence)

    def fail(self, error: RemoteError) -> None:
        self.end("refused" if error.code == "refused" else "offline", error.message)

    def read(self, timeout: float, *, allow_foreign: bool = False) -> None:
        """Fetch its refs and find the logs among them; where it is offline, those of the last time."""
        self.attempts += 1
        try:
            if self.state != "offline":
                unfetched.note(self, rebase.fetch(self.log, self.url, self.prefix, timeout))
        except RemoteError as error:
            self.fail(error)
        known = {box.oid for box in self.boxes}  # of the last look, and what this exchange made
        known |= self.host.seen
        self.look(allow_foreign=allow_foreign)
        self.crowd = sum(box.oid not in known for box in self.boxes)
        if self.state != "offline":
            # Those too that this sync did not read: else they are new to a later one, and it leaves the folding to others.
            self.host.seen = {oid for name, oid in self.refs.items() if log_refs.is_outbox(name)}
            self.host.crowd = self.crowd

    def look(self, *, allow_foreign: bool = False) -> None:
        """Find the logs among the refs that the last fetch brought; leave out, by itself, each that fails the checks."""
        log = self.log
        refs = log.git.refs(self.prefix)
        self.refs = {name: oid for name, oid in refs.items() if log_refs.is_place(name)}
        boxes = some_outboxes(self, unfetched.outboxes(self))
        shared = {name: oid for name, oid in self.refs.items() if not log_refs.is_outbox(name)}
        self.blocked, self._base = None, None
        self.accepted = accepted.last(log, self.prefix, trusted(log))
        check = PlaceCheck(log, self.accepted, trusted(log), boxes)
        check.refused = dict(self.refused.values())
        unfetched.leave_out(self, check)
        self.tips = []

        def related(tips: Sequence[Tip]) -> list[Tip]:
            return self._related(check, tips, allow_foreign=allow_foreign)

        for name, oid in check.in_order(shared):
            if oid not in [tip.oid for tip in self.tips]:
                self.tips += related(check.admit({name: oid}))
        self._look_for_block(check)
        top = self.shared()
        self.boxes = outbox_places.read(log, check, boxes, top, related, self.tips)
        self.log.taken_in = max(self.log.taken_in, check.trees.budget.bytes)
        self.left_out = list(check.left_out.values())
        for each in self.left_out:
            if each.kind == INVALID and each.ref in refs:
                damage.forget(log, each.ref, each.commit)  # no gc keeps what is behind it
            each.ref = each.ref.replace(self.prefix, "refs/")
        if not self.tips:
            self.boxes = []
        self.waiting = [box for box in self.boxes if top is None or not box.is_in(log.git, top.tree)]

    def draw(self) -> bool:
        """Whether it is our turn to fold its outboxes, or to delete what is left of them."""
        self.most = max(self.most, self.crowd)
        return not self.crowd or int.from_bytes(self.log.random(4), "big") * self.most < 2**32

    def learn_refused(self, prefix: str) -> None:
        self.host.refused.append(prefix)
        left = self.host.prefixes
        self.say(
            f"{self.name} takes no {prefix}*: "
            + (
                f"what waits there for its turn goes to {left[0]}*."
                if left
                else "where others push at the same time, a sync may have to be repeated; "
                f"`gitmem sync {self.shown_name}` tries outboxes again."
            )
        )

    def learn_keeps_refs(self) -> None:
        self.host.keeps_refs = True
        self.say(
            f"{self.name} lets no ref be deleted: it gets no more outboxes, and those that are there stay; "
            f"`gitmem sync {self.shown_name}` tries again."
        )

    def learn_read_only(self, error: RemoteError) -> None:
        self.host.read_only = True
        self.end(
            "read-only",
            f"{error.message} Its lines are brought, and `sync --all` sends it nothing from now on; "
            f"`gitmem sync {self.shown_name}` tries again.",
        )

    def _related(self, check: PlaceCheck, tips: Sequence[Tip], *, allow_foreign: bool) -> list[Tip]:
        """Of some logs, those of this project; the others are left out."""
        if allow_foreign:
            return list(tips)
        ours = projects(self.log).union(*(tip.projects for tip in self.tips))
        found = []
        for tip in tips:
            if is_related(self.log, ours, tip):
                found.append(tip)
                ours = ours | tip.projects
            else:
                check.leave_out(tip.name, tip.oid, FOREIGN, FOREIGN_WHY)
        return found

    def _look_for_block(self, check: PlaceCheck) -> None:
        """Find out whether the shared ref was left out, and what to stand on instead."""
        place = self.copy_of(self._publish())
        if (found := check.left_out.get(place)) is None:
            return
        local = self.log.git.tip(ref.LOG_REF)
        if local is not None and accepted.reaches(self.log.git, local, found.commit):
            del check.left_out[place]  # somebody moved it back, to where nothing was yet: a push goes past it
            return
        never_ours = self.log.git.tip(self.prefix + accepted.NAME) is None
        if found.kind == FOREIGN and never_ours:
            self.tips = []
            self.is_foreign = True
            self.end(
                "refused",
                f"The log on {self.name} is of another project than this repository; nothing of it was taken in.",
            )
            return
        self.blocked = found
        self._base = stand_in(check, place, found)
        self.stepped = self._base is not self.accepted
        if self.stepped and self._base and not self._related(check, [self._base], allow_foreign=False):
            self._base = None
        if self._base is not None and self._base.oid not in [tip.oid for tip in self.tips]:
            self.tips.append(self._base)

    def _publish(self) -> str:
        """The ref that the log is published at, as the valid logs here and there say."""
        forms = [tip.format for tip in self.tips]
        local = self.log.git.tip(ref.LOG_REF)
        if local is not None:
            forms.append(rebase.own_tip(self.log, local).format)
        return max(forms, key=lambda form: form.rank).publish if forms else ref.BRANCH

    def shared(self) -> Tip | None:
        """The tip that history follows here: where the log is published, else another place of this remote.

        While that place is left out, the last one there that passed.
        """
        if self.blocked is not None:
            return self._base
        if not self.tips:
            return None
        wanted = self.at(self._publish())
        best = max(self.tips, key=lambda tip: tip.format.rank)
        return next((tip for tip in self.tips if tip.oid == wanted), best)


def trusted(log: Log) -> list[str]:
    """Tips that are known to be of logs."""
    return [oid for name in (ref.PUBLISHED_REF, ref.LOG_REF) if (oid := log.git.tip(name)) is not None]


def projects(log: Log) -> set[str]:
    """The project ids that this clone's log has."""
    tip = log.git.tip(ref.LOG_REF)
    return ref.project_ids(log.git, log.git.tree(log.git.commit(tip).tree)) if tip is not None else set()


def is_related(log: Log, ours: set[str], tip: Tip) -> bool:
    """Whether a log may be united with ours. The repository's roots are asked only where the logs' ids don't tell."""
    if not tip.projects or (ours and log_refs.related(ours, tip.projects)):
        return True
    return log_refs.related(ours | log_refs.own_projects(log), tip.projects)
