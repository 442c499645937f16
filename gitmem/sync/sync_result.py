"""What a sync answers: the outcome for each remote."""

from __future__ import annotations

from ..outcome import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..log.left_out import LeftOut
    from .autosync import Trouble
    from .noop_check import Settled
    from .remote import Remote

FAILED = ("offline", "rejected", "refused")
CONSENT_NEEDED = "consent-needed"
EMPTY = "empty"
LEFT_OUT_SHOWN = 20


class Left(Outcome):
    """A place that was left out: its ref, where that is, the author whom the commit names, of what kind, and why.

    `kind`: `newer` (a format of a newer gitmem), `foreign` (another project's log), `large` (more than one sync takes
    in), or `invalid`.
    """

    __slots__ = ("ref", "commit", "author", "kind", "why")

    def __init__(self, found: LeftOut) -> None:
        self.ref = found.ref
        self.commit = found.commit
        self.author = found.author
        self.kind = found.kind
        self.why = found.why


class RemoteResult(Outcome):
    """What became of the exchange with one remote.

    Attributes:
        state: `synced`, `up-to-date`, `offline`, `rejected` (others pushed first, several times),
            `refused`, `read-only` (one of several that takes nothing from us; only read), `empty` (it has no
            branch yet, and a log must not become its default one), or `consent-needed` (it lacks records, and
            nobody has agreed to publish there: nothing was sent).
        received: Lines that came from there; they count even where sending failed.
        sent: Lines that it did not have.
        safe: Whether every line of ours that the sync found is there now, in the log or in an outbox.
        outbox: The ref there that holds what was sent, where others pushed to the log at that time; else None.
        attempts: How often it was asked.
        rejections: How often others pushed first.
        tip: The commit of the log there, as far as known.
        left_out: Its places that failed the checks and were not read, at most 20; `message` has the number of all.
        message: What there is to say about it, or "".
        url: Where pushes to it go, without credentials.
        unpublished: How many records it lacks and was not sent, in the state `consent-needed`; else 0.
        kinds: The number of those of each kind, what people and agents wrote first.
        records: At most 20 of them in that order of kinds, of a kind the newest first; each with `kind`, `id` and `text`.
    """

    __slots__ = (
        "name",
        "state",
        "received",
        "sent",
        "safe",
        "outbox",
        "attempts",
        "rejections",
        "tip",
        "left_out",
        "message",
        "url",
        "unpublished",
        "kinds",
        "records",
    )

    def __init__(self, remote: Remote | Settled) -> None:
        self.name = remote.shown_name
        self.state = remote.state
        self.received = remote.received
        self.sent = remote.sent
        self.safe = remote.safe
        self.outbox = remote.outbox
        self.attempts = remote.attempts
        self.rejections = remote.rejections
        self.tip = remote.tip
        self.left_out = [Left(each) for each in remote.left_out[:LEFT_OUT_SHOWN]]
        self.message = remote.message
        self.url = remote.destination
        self.unpublished = remote.withheld.total
        self.kinds: dict[str, int] = {}
        self.records: list[dict[str, str]] = []
        if self.unpublished:
            from . import withheld_messages

            self.kinds = withheld_messages.kinds(remote.withheld)
            self.records = withheld_messages.records_of(remote.withheld)
            self.message = f"{withheld_messages.sentence(self.unpublished, self.url)} {self.message}".strip()


class Synced(Outcome):
    """What became of each remote. `autosync`: why the last sync before this one failed; None where this one is good."""

    __slots__ = ("remotes", "autosync", "next")

    def __init__(self, remotes: Sequence[RemoteResult], next: Sequence[str]) -> None:
        self.remotes = list(remotes)
        self.autosync: Trouble | None = None
        self.next = list(next)

    @property
    def status(self) -> int:
        """Exit status; nothing is lost with any of them.

        5 where a remote could not be reached, or refused. 2 where the user has to do something first: consent, or push
        a branch to the only remotes that were asked.
        """
        states = [remote.state for remote in self.remotes]
        if any(state in FAILED for state in states):
            return 5
        is_empty = bool(states) and all(state == EMPTY for state in states)
        return 2 if is_empty or CONSENT_NEEDED in states else 0
