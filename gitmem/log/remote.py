"""One remote during an exchange: its refs, the logs among them, and what became of it."""

from __future__ import annotations

from ..errors import RemoteError, StoreError
from ..git import remotes
from . import outbox, places, ref, settle
from .host import Host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..place import Place
    from .log import Log
    from .outbox import Outbox
    from .places import Tip


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
        outbox: The ref there that this exchange made for lines of ours; None where there was no need.
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
        withheld: How many lines it lacks and is not sent for want of that.
        newest_withheld: The newest of those lines.

    Raises: UsageError: `unknown-remote`.
    """

    def __init__(self, log: Log, name: str) -> None:
        self.log = log
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
        self.withheld = 0
        self.newest_withheld: list[bytes] = []

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
                self._fetch(timeout)
        except RemoteError as error:
            self.fail(error)
        known = {box.oid for box in self.boxes}  # of the last look, and what this exchange made
        known |= self.host.seen
        self.look(allow_foreign=allow_foreign)
        self.crowd = sum(box.oid not in known for box in self.boxes)
        if self.state != "offline":
            self.host.seen = {box.oid for box in self.boxes}
            self.host.crowd = self.crowd

    def look(self, *, allow_foreign: bool = False) -> None:
        """Find the logs among the refs that the last fetch brought."""
        log = self.log
        refs = log.git.refs(self.prefix)
        self.refs = {name: oid for name, oid in refs.items() if places.is_place(name)}
        boxes = {name: oid for name, oid in self.refs.items() if places.is_outbox(name)}
        shared = {name: oid for name, oid in self.refs.items() if name not in boxes}
        self.tips, others = places.logs(log, shared, trusted(log))
        self.boxes = []
        top = self.shared()
        if top is not None:
            self.boxes, boxes = outbox.read(log, boxes, top)
        more, others_too = places.logs(log, boxes, trusted(log))
        self.tips += more
        for name, why in {**others, **others_too}.items():
            self.say(f"{name.replace(self.prefix, 'refs/')} of {self.name} was not read: {why}.")
        self._refuse_newer()
        if not allow_foreign:
            self._refuse_foreign()
        if not self.tips:
            self.boxes = []
        for tip in more if self.tips else []:
            if top is None or tip.format.epoch == top.format.epoch:
                self.boxes.append(outbox.whole(log.git, tip, top))
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

    def _fetch(self, timeout: float) -> None:
        try:
            self.log.network.fetch(self.url, self.prefix, timeout)
        except RemoteError:
            if not settle.break_stale_locks(self.log):  # a fetch that was killed leaves them on our copies
                raise
            self.log.network.fetch(self.url, self.prefix, timeout)

    def _refuse_newer(self) -> None:
        newest = max(self.tips, key=lambda tip: tip.format.format, default=None)
        if newest is None:
            return
        try:
            newest.format.refuse_newer()
        except StoreError as error:
            self.tips = []
            self.end("refused", f"{error.message} {error.hint}")

    def _refuse_foreign(self) -> None:
        ours = projects(self.log)
        for tip in self.tips:
            if not is_related(self.log, ours, tip):
                self.tips = []
                self.is_foreign = True
                self.end(
                    "refused",
                    f"The log on {self.name} is of another project than this repository; nothing of it was taken in.",
                )
                return
            ours = ours | tip.projects

    def shared(self) -> Tip | None:
        """The tip that history follows here: where the log is published, else another place of this remote."""
        log = self.log
        forms = [tip.format for tip in self.tips]
        local = log.git.tip(ref.LOG_REF)
        if local is not None:
            forms.append(settle.own_tip(log, local).format)
        if not self.tips:
            return None
        wanted = self.at(max(forms, key=lambda form: form.rank).publish)
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
    if not tip.projects or (ours and places.related(ours, tip.projects)):
        return True
    return places.related(ours | places.own_projects(log), tip.projects)
