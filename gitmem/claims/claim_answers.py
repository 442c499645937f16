"""The answers of claims, and how a claim reads in one line."""

from __future__ import annotations

from ..commit_message import sanitize
from ..log.lines import format_at
from ..outcome import Outcome, command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .standing_claims import StandingClaim

PATHS_SHOWN = 3
LISTED = 50


class ClaimChange(Outcome):
    """A recorded change of a claim.

    Attributes:
        claim_id: The claim.
        event: `claim`, `renew` or `release`.
        until: Its end in ISO 8601; None after a release.
        paths: What it covers.
        task_id: The task that it ends with, or None.
        commit: Its commit; None while it waits for one.
        audit_id: The audit of the release of somebody else's claim.
    """

    def __init__(self, claim_id: str, event: str, until: str | None, commit: str | None) -> None:
        self.claim_id = claim_id
        self.event = event
        self.until = until
        self.paths: list[str] = []
        self.task_id: str | None = None
        self.commit = commit
        self.audit_id: str | None = None
        self.warnings: list[str] = []
        self.next: list[str] = []


class ClaimsReleased(Outcome):
    """The claims that were released."""

    def __init__(self, released: Sequence[ClaimChange]) -> None:
        self.released = list(released)
        self.next = ["gitmem claim list"]


class ClaimRow(Outcome):
    """A claim in a list.

    Attributes:
        status: `held`, `contested`, `behind` (somebody else's claim came first) or `perhaps renewed`.
        others: The ids of the claims in its way.
    """

    def __init__(self, found: StandingClaim) -> None:
        record = found.claim.record
        self.claim_id = found.id
        self.status = found.status
        self.mode = record["mode"]
        self.paths = list(record["paths"])
        self.owner, self.session_id = found.claim.owner
        self.name = record.get("sender_name")
        self.since, self.until = format_at(found.claim.since), format_at(found.claim.until)
        self.reason = record.get("reason")
        self.wu_id = record.get("wu_id")
        self.task_id = record.get("task_id")
        self.others = [each.id for each in (*found.before, *found.against)]


class EditRow(Outcome):
    """Paths that a session of this clone has changed and not committed, without a claim.

    Attributes:
        paths: The first of them.
        more: How many more there are.
        worktree: The name of its worktree's folder.
    """

    def __init__(self, session_id: str, name: str | None, worktree: str | None, paths: Sequence[str]) -> None:
        self.session_id = session_id
        self.name = name
        self.worktree = worktree
        self.paths = list(paths[:LISTED])
        self.more = len(paths) - len(self.paths)


class ClaimPage(Outcome):
    """Claims that stand now, and how many more there are; `edits` is what sessions change without one, if asked for."""

    def __init__(
        self, found: Sequence[StandingClaim], limit: int = LISTED, own: Sequence[StandingClaim] = ()
    ) -> None:
        self.claims = [ClaimRow(each) for each in known_longest(found, limit)]
        self.more = max(0, len(found) - limit)
        self.edits: list[EditRow] = []
        self.warnings: list[str] = []
        ids = [own[0].id] if len(own) == 1 else []
        self.next = [command("gitmem", "claim", "release", *ids)] if own else []


class ClaimCheck(Outcome):
    """Whether others claim some paths.

    Attributes:
        free: Whether nobody else claims any of them.
        claims: The claims of others that cover one of them.
        edits: Other sessions of this clone that change one of them without a claim.
    """

    def __init__(self, paths: Sequence[str], found: Sequence[StandingClaim]) -> None:
        self.free = not found
        self.paths = list(paths)
        self.claims = [ClaimRow(each) for each in known_longest(found, LISTED)]
        self.edits: list[EditRow] = []
        self.warnings: list[str] = []
        self.next = []
        if found:
            text = f"May I change {paths[0] if len(paths) == 1 else 'these files'}?"
            self.next = [
                command("gitmem", "signal", text, "--to", self.claims[0].owner),
                "gitmem claim list",
            ]


def known_longest(found: Sequence[StandingClaim], most: int) -> list[StandingClaim]:
    """Return claims in their order: at most this many, those of this clone and of the clones known longest."""
    chosen = {each.id for each in sorted(found, key=lambda each: each.rank)[:most]}
    return [each for each in found if each.id in chosen]


def text_of(found: StandingClaim) -> str:
    """Return a claim in one line: who, what, until when and why."""
    record = found.claim.record
    why = f': "{sanitize(record["reason"] or "")}"' if record.get("reason") else ""
    unit = record.get("wu_id")
    about = f" ({sanitize(unit)})" if unit else ""
    return f"{sanitize(found.who)} claims {paths_text(record['paths'])} until {format_at(found.claim.until)[:16]}Z{why}{about}"


def contest_text(own: StandingClaim, other: StandingClaim) -> str:
    """Return the sentence about a claim of the reader that another one contests."""
    return f"your claim {own.id} on {paths_text(own.claim.record['paths'])} overlaps another: {text_of(other)}; neither knew of the other"


def paths_text(paths: Sequence[str]) -> str:
    """Return the first paths of a claim, and the number of the others."""
    shown = [sanitize(each) for each in paths[:PATHS_SHOWN]]
    more = len(paths) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
