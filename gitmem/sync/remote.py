"""One remote: its state during an exchange, with its refs, the logs among them and the outcome, and what is recorded of it between syncs.

An *outbox* is a ref on a remote with the lines of one clone, used when the shared ref is contended. It is created once, never
moved, and named after its last commit. So no push of it can lose a race, and two of the same name are equal. The clone that
merges it into the shared ref deletes it.
"""

from __future__ import annotations

import json
import os

from .. import local_files
from ..errors import UsageError
from ..git import config
from ..git.fetch import LIMITS
from ..log import log_refs, ref
from . import rebase
from .consent import WithheldLines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..errors import RemoteError
    from ..log.local_log import LocalLog
    from ..log.log_refs import LogTip
    from ..log.ref_checks import LeftOut
    from ..repo import Repo
    from ..store import Store


def configured(repo: Repo) -> list[str]:
    """Return the names of the remotes in the repository's config."""
    return config.remotes(repo.common)


def choose(store: Store, remotes: Sequence[str], *, all: bool) -> tuple[list[str], bool]:
    """Return the remotes to sync with, and whether history follows the first of them."""
    repo = store.repo
    try:
        primary: str | None = config.upstream_remote(repo)
    except UsageError:
        if not remotes and not all:
            raise
        primary = None
    names = list(dict.fromkeys([*remotes, *(configured(repo) if all else ())]))
    if not names and primary is None:
        raise UsageError(
            "This repository has no remote. Nothing was sent; local records are kept.",
            hint="`git remote add origin URL` adds one.",
            code="no-remote",
        )
    if primary is not None and (primary in names or not names):
        return [primary, *(name for name in names if name != primary)], True
    return names, primary is None


# Where a remote may accept an outbox. Not every host accepts refs other than branches and tags.
PREFIXES = ("refs/gitmem/outbox/", "refs/heads/gitmem-outbox-")


class RemoteState:
    """The recorded state of one remote; it is discarded if the URL changes.

    Attributes:
        refused_prefixes: The prefixes under which it accepts no outbox.
        keeps_refs: Whether it refuses to delete refs: then it gets no outboxes either.
        read_only: Whether it rejected our push when it was one of several.
        seen: Its outboxes at the last fetch, also those that were not read.
        sent: The tip of the log whose lines it had, some perhaps in an outbox, when one was pushed last; or "".
        concurrent: How many of other clones were new then: whether others push at this time.
    """

    def __init__(self, state: str, name: str, url: str) -> None:
        self._path = os.path.join(state, "remotes", name)
        self._url = url
        self._text = ""
        fields: object = {}
        try:
            self._text = local_files.load(self._path).decode()
            fields = json.loads(self._text)
        except (OSError, ValueError, RecursionError):
            pass
        known = fields if isinstance(fields, dict) and fields.get("url") == url else {}
        self.refused_prefixes = _texts(known.get("refused"))
        self.keeps_refs = known.get("keeps_refs") is True
        self.read_only = known.get("read_only") is True
        self.seen = set(_texts(known.get("seen")))
        self.sent = str(known.get("sent") or "")
        concurrent = known.get("crowd")
        self.concurrent = concurrent if isinstance(concurrent, int) else 0

    @property
    def prefixes(self) -> list[str]:
        """The prefixes under which it may accept an outbox."""
        return (
            [] if self.keeps_refs else [prefix for prefix in PREFIXES if prefix not in self.refused_prefixes]
        )

    def retry(self) -> None:
        """Forget its rejections: a temporary error must not count for ever."""
        self.refused_prefixes = []
        self.keeps_refs = False

    def save(self) -> None:
        """Write the file if anything changed. A file that can't be written is not an error."""
        fields = {
            "url": self._url,
            "refused": self.refused_prefixes,
            "keeps_refs": self.keeps_refs,
            "read_only": self.read_only,
            "seen": sorted(self.seen),
            "sent": self.sent,
            "crowd": self.concurrent,
        }
        text = json.dumps(fields) + "\n"
        known = (
            self._text or self.refused_prefixes or self.keeps_refs or self.read_only or self.seen or self.sent
        )
        if text == self._text or not known:
            return
        if local_files.try_replace(self._path, text.encode(), folders=True):
            self._text = text


def _texts(found: object) -> list[str]:
    values: Iterable[object] = found if isinstance(found, list) else ()
    return [each for each in values if isinstance(each, str)]


class Remote:
    """A remote and the outcome of the exchange with it. Its attributes are of five groups.

    Configuration, set by `__init__`:
        name: Its name in git's config, or a URL or path.
        url: The URL or path that is given to git.
        destination: The URL of pushes to it, after `insteadOf` and without credentials.
        prefix: The prefix of our copies of its refs.
        host: What is kept of it between syncs.

    What this sync may do, set by `exchange`:
        may_send: Whether the user has agreed to publish the log there.
        forgiven: Whether a rejected push is not an error.

    What the last fetch found, set by `read_remote.read` and `sync.read_remote.record_unfetched`:
        refs: Our copies of its refs, with their commits.
        tips: Its logs that may be united with ours.
        outboxes: Its outboxes.
        waiting: Those whose lines its shared log lacks.
        concurrent: How many outboxes of other clones were new.
        most_concurrent: The greatest number of concurrent outboxes of this exchange.
        left_out: Its refs that failed the checks.
        unfetchable: Refs that git refused to fetch, with their commits and the reasons.
        unexamined: How many outboxes the fetch did not reach.

    What the checks of its shared ref decided, set by `read_remote.find_logs`:
        accepted: The shared log as it last passed.
        blocked: The ref of `left_out` that the log is published at; None if that passed, or does not exist.
        base: The base for our lines while the shared ref is blocked.
        stepped: Whether only a part was read, because all of it was too much for one sync.
        is_foreign: Whether it was rejected as the log of another project.

    The outcome, set by `exchange` and `push`, and read by `RemoteResult`:
        state: synced, up-to-date, incomplete, offline, rejected, refused, read-only, empty or consent-needed; "" until
            that is known.
        message: Sentences for the user; empty if there is nothing to report.
        attempts: How often it was contacted.
        rejections: How often a push lost a race.
        received: How many lines it had that were not here.
        sent: How many lines it lacked and received.
        withheld: The lines that it lacks and that are not sent without consent.
        has_our_lines: Whether it has all our lines that the exchange knew of. The exit status depends on `state` alone.
        outbox: The ref there that this exchange created for our lines; None if not needed.
        pushed: The commit to which this exchange moved the shared ref.
        tip: Its commit at the ref where the log is published, as far as known, whether or not it passed the checks.

    Raises:
        UsageError: `unknown-remote`.
    """

    def __init__(self, log: LocalLog, name: str) -> None:
        self.log = log
        log.taken_in = 0
        self.name = name
        self.url, self.destination = config.push_urls(log.repo.common, name, log.repo.worktree)
        self.prefix = f"{ref.REMOTES_PREFIX}{config.encode_remote(name)}/"
        self.host = RemoteState(
            log.repo.state, config.encode_remote(name), config.without_credentials(self.url)
        )

        self.may_send = False
        self.forgiven = False

        self.refs: dict[str, str] = {}
        self.tips: list[LogTip] = []
        self.outboxes: list[LogTip] = []
        self.waiting: list[LogTip] = []
        self.concurrent = 0
        self.most_concurrent = 0
        self.left_out: list[LeftOut] = []
        self.unfetchable: dict[str, tuple[str, str]] = {}
        self.unexamined = 0

        self.accepted: LogTip | None = None
        self.blocked: LeftOut | None = None
        self.base: LogTip | None = None
        self.stepped = False
        self.is_foreign = False

        self.state = ""
        self.message = ""
        self.attempts = 0
        self.rejections = 0
        self.received = 0
        self.sent = 0
        self.withheld = WithheldLines()
        self.has_our_lines = False
        self.outbox: str | None = None
        self.pushed: str | None = None
        self.tip: str | None = None

    @property
    def shown_name(self) -> str:
        """Its name, or its URL without credentials."""
        return config.without_credentials(self.name)

    def copy_of(self, name: str) -> str:
        """Return the name of our copy of one of its refs."""
        return self.prefix + name.removeprefix("refs/")

    def at(self, name: str) -> str | None:
        """Return the commit of one of its refs, as far as known; else None."""
        return self.refs.get(self.copy_of(name))

    def has_read(self, oid: str | None) -> bool:
        """Return whether this exchange has read or written all lines of a commit there; True for none."""
        return oid in (None, self.pushed, *(tip.oid for tip in self.tips))

    def add_sentence(self, sentence: str) -> None:
        """Append a sentence to the message, unless it is empty or already there."""
        if sentence and sentence not in self.message:
            self.message = f"{self.message} {sentence}".strip()

    def end(self, state: str, sentence: str = "") -> None:
        """Set the final state, and append a sentence to the message."""
        self.state = state
        self.add_sentence(sentence)

    def fail(self, error: RemoteError) -> None:
        """End as `refused` or `offline`, with the message of the error."""
        self.end(
            "refused" if error.code in ("refused", "denied", "failed-there") else "offline", error.message
        )

    @property
    def is_crowded(self) -> bool:
        """Whether it has more outboxes than a sync reads: one more would hardly be found."""
        return bool(self.unexamined) or sum(map(log_refs.is_outbox, self.refs)) > LIMITS.outboxes

    def may_merge_outboxes(self) -> bool:
        """Return whether this clone is drawn to merge the remote's outboxes, or to delete those that are merged."""
        self.most_concurrent = max(self.most_concurrent, self.concurrent)
        return not self.concurrent or int.from_bytes(self.log.random(4), "big") * self.most_concurrent < 2**32

    def learn_refused_prefix(self, prefix: str) -> None:
        """Record that the remote refuses refs with a prefix, and report the next choice."""
        self.host.refused_prefixes.append(prefix)
        left = self.host.prefixes
        self.add_sentence(
            f"{self.name} rejects {prefix}*: "
            + (
                f"outboxes are written to {left[0]}* from now on."
                if left
                else "under contention, a sync may have to be repeated; "
                f"`gitmem sync {self.shown_name}` tries outboxes again."
            )
        )

    def learn_keeps_refs(self) -> None:
        """Record that the remote does not let refs be deleted, and report it."""
        self.host.keeps_refs = True
        self.add_sentence(
            f"{self.name} rejects deletion of refs: it gets no new outboxes, and existing ones remain; "
            f"`gitmem sync {self.shown_name}` tries again."
        )

    def learn_read_only(self, error: RemoteError) -> None:
        """Record that the remote accepts no pushes, and end as `read-only`."""
        self.host.read_only = True
        self.end(
            "read-only",
            f"{error.message} Its records are fetched, and `sync --all` no longer pushes to it; "
            f"`gitmem sync {self.shown_name}` tries again.",
        )

    def publish_ref(self) -> str:
        """Return the ref that the log is published at, according to the valid logs here and there."""
        forms = [tip.format for tip in (*self.tips, *self.outboxes)]
        local = self.log.git.tip(ref.LOG_REF)
        if local is not None:
            forms.append(rebase.own_tip(self.log, local).format)
        return max(forms, key=lambda form: form.rank).publish if forms else ref.BRANCH

    def shared(self) -> LogTip | None:
        """Return the tip that history follows here: where the log is published, else at another ref of this remote.

        While that ref is left out, it is the base that replaces it.
        """
        if self.blocked is not None:
            return self.base
        if not self.tips:
            return None
        wanted = self.at(self.publish_ref())
        best = max(self.tips, key=lambda tip: tip.format.rank)
        return next((tip for tip in self.tips if tip.oid == wanted), best)


def log_tips(log: LocalLog) -> list[str]:
    """Return tips that are known to be of logs."""
    return [oid for name in (ref.PUBLISHED_REF, ref.LOG_REF) if (oid := log.git.tip(name)) is not None]


def projects(log: LocalLog) -> set[str]:
    """Return the project ids of this clone's log."""
    tip = log.git.tip(ref.LOG_REF)
    return ref.project_ids(log.git, log.git.tree(log.git.commit(tip).tree)) if tip is not None else set()


def is_related(log: LocalLog, ours: set[str], tip: LogTip) -> bool:
    """Return whether a log may be united with ours; read the repository's roots only if the logs' ids don't decide."""
    if not tip.projects or (ours and log_refs.can_merge(ours, tip.projects)):
        return True
    return log_refs.can_merge(ours | log_refs.own_projects(log), tip.projects)
