"""The state of one remote during an exchange: its refs, the logs among them, and the outcome."""

from __future__ import annotations

from ..git import remotes
from ..log import log_refs, ref
from . import rebase
from .remote_state import RemoteState
from .withheld_lines import Withheld

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..errors import RemoteError
    from ..log.left_out import LeftOut
    from ..log.local_log import LocalLog
    from ..log.log_refs import Tip
    from ..repo import Repo
    from .outbox import Outbox


def configured(place: Repo) -> list[str]:
    """The remotes of the repository, as its config has them."""
    return remotes.remotes(place.common)


def usual(place: Repo) -> str:
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
        base: What to stand on while the shared ref is blocked.

    Raises: UsageError: `unknown-remote`.
    """

    def __init__(self, log: LocalLog, name: str) -> None:
        self.log = log
        log.taken_in = 0
        self.name = name
        self.url, self.destination = remotes.push_urls(log.place.common, name, log.place.worktree)
        self.prefix = f"{ref.REMOTES_PREFIX}{remotes.encode(name)}/"
        self.host = RemoteState(log.place.state, remotes.encode(name), remotes.without_credentials(self.url))
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
        self.base: Tip | None = None

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

    def publish_ref(self) -> str:
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
            return self.base
        if not self.tips:
            return None
        wanted = self.at(self.publish_ref())
        best = max(self.tips, key=lambda tip: tip.format.rank)
        return next((tip for tip in self.tips if tip.oid == wanted), best)


def trusted(log: LocalLog) -> list[str]:
    """Tips that are known to be of logs."""
    return [oid for name in (ref.PUBLISHED_REF, ref.LOG_REF) if (oid := log.git.tip(name)) is not None]


def projects(log: LocalLog) -> set[str]:
    """The project ids that this clone's log has."""
    tip = log.git.tip(ref.LOG_REF)
    return ref.project_ids(log.git, log.git.tree(log.git.commit(tip).tree)) if tip is not None else set()


def is_related(log: LocalLog, ours: set[str], tip: Tip) -> bool:
    """Whether a log may be united with ours. The repository's roots are asked only where the logs' ids don't tell."""
    if not tip.projects or (ours and log_refs.related(ours, tip.projects)):
        return True
    return log_refs.related(ours | log_refs.own_projects(log), tip.projects)
