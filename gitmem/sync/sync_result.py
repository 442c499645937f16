"""The result of a sync: the outcome for each remote."""

from __future__ import annotations

from ..outcome import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..log.ref_checks import LeftOut
    from .autosync import FailedSync
    from .noop_check import LastSync
    from .remote import Remote

FAILED = ("offline", "rejected", "refused")
CONSENT_NEEDED = "consent-needed"
EMPTY = "empty"
INCOMPLETE = "incomplete"
UNSENT = "unsent"
LEFT_OUT_SHOWN = 20


class LeftOutRef(Outcome):
    """A ref that was left out: its name, its commit, the author in that commit, the kind and the reason.

    `kind`: `newer` (a format of a newer gitmem), `foreign` (another project's log), `large` (more than one sync may
    read), or `invalid`.
    """

    def __init__(self, found: LeftOut) -> None:
        self.ref = found.ref
        self.commit = found.commit
        self.author = found.author
        self.kind = found.kind
        self.why = found.why


class RemoteResult(Outcome):
    """The outcome of the exchange with one remote.

    Attributes:
        name: The remote's name, or its URL without credentials.
        state: `synced`, `up-to-date`, `offline`, `rejected` (others pushed first, several times), `refused`,
            `read-only` (one of several that rejects our pushes; only read), `empty` (it has no branch yet, and a log
            must not become its default one), `consent-needed` (it lacks records, and nobody has agreed to publish
            there: nothing was sent), `unsent` (only of `init`, which sends nothing: the log there lacks records of
            this clone), or `incomplete` (records of this clone were not committed and so not sent:
            another process has the log's lock, or they are damaged).
        received: How many lines it had that were not here; they count even if sending failed.
        sent: How many lines it lacked and received.
        safe: Whether it has all our lines that the sync found, in the log or in an outbox.
        outbox: The ref there with the sent lines, if others pushed to the log at that time; else None.
        attempts: How often it was contacted.
        rejections: How often others pushed first.
        tip: The commit of the log there, as far as known.
        left_out: Its refs that failed the checks and were not read, at most 20; `message` has the number of all.
        message: Sentences for the user, or "".
        url: The URL of pushes to it, without credentials.
        unpublished: How many records it lacks and was not sent, in the state `consent-needed`; else 0.
        kinds: The number of those of each kind, records of people and agents first.
        records: At most 20 of them in that order of kinds, within a kind the newest first; each with `kind`, `id` and
            `text`.
    """

    def __init__(self, remote: Remote | LastSync) -> None:
        self.name = remote.shown_name
        self.state = remote.state
        self.received = remote.received
        self.sent = remote.sent
        self.safe = remote.has_our_lines
        self.outbox = remote.outbox
        self.attempts = remote.attempts
        self.rejections = remote.rejections
        self.tip = remote.tip
        self.left_out = [LeftOutRef(each) for each in remote.left_out[:LEFT_OUT_SHOWN]]
        self.message = remote.message
        self.url = remote.destination
        self.unpublished = remote.withheld.total
        self.kinds: dict[str, int] = {}
        self.records: list[dict[str, str]] = []
        if self.unpublished:
            from . import withheld

            self.kinds = withheld.counts_by_kind(remote.withheld)
            self.records = withheld.records_of(remote.withheld)
            self.message = f"{withheld.summary(self.unpublished, self.url)} {self.message}".strip()


class SyncResult(Outcome, kw_only=True):
    """The outcome for each remote.

    Attributes:
        autosync: Why the last sync before this one failed; None if this one succeeded.
    """

    remotes: Sequence[RemoteResult]
    autosync: FailedSync | None = None
    next: Sequence[str]

    @property
    def status(self) -> int:
        """The exit status; no status means that lines were lost.

        5 if a remote was unreachable or rejected us. 2 if the user has to act first: give consent, or push a branch if
        every remote is empty. Else 4 if records could not be committed.
        """
        states = [remote.state for remote in self.remotes]
        if any(state in FAILED for state in states):
            return 5
        is_empty = bool(states) and all(state == EMPTY for state in states)
        if is_empty or CONSENT_NEEDED in states:
            return 2
        return 4 if INCOMPLETE in states else 0
