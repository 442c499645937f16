"""The claims that stand now, which of them are in each other's way, and the patterns of paths that they have.

The index has the end of each claim; whether that is over is decided here, with the clock of whoever asks.

Peers may have written any number of claims, in any names. So only some are read: those of this clone first, then a few of each
writing clone in turn, of each of its owners in turn, beginning with the clone that this index has known longest.

A pattern is a path from the top of the work tree. `*` and `?` match within a name, `**` as a whole name matches any number of
folders, and a pattern covers everything below what it matches. Other characters stand for themselves. Peers write patterns, so the
time of a match grows linearly with the lengths of pattern and path.
"""

from __future__ import annotations

import json
import os

from .. import local_files
from ..agents import heartbeats
from ..commit_message import sanitize
from ..log.lines import format_at
from ..order import claim as claim_fold
from ..outcome import Outcome, Struct, command
from ..sync import autosync
from ..text.addresses import writer_of
from ..text.sanitize import first_of, minute
from . import stored_tasks, tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence

    from ..order.claim import FoldedClaim
    from ..store import Store


PATTERNS_MAX = 100  # of one claim; readers ignore further ones
LENGTH_MAX = 1_024  # characters of a pattern; longer ones match nothing
PATH_MAX = 4_096  # characters of a path; longer ones are not matched
STEP = 64  # characters of a pattern that one step compares with one of a path
MATCH_STEPS_MAX = PATH_MAX * (1 + LENGTH_MAX // STEP)  # more than any match takes
DEEP = "**"


class Budget(Struct):
    """The steps that are left for matches and comparisons: peers write patterns, and any number of them.

    Attributes:
        is_spent: Whether something was not compared for want of steps.
    """

    left: int
    is_spent: bool = False

    def take(self, steps: int) -> bool:
        """Take steps; return False if too few are left."""
        if steps > self.left:
            self.is_spent = True
            return False
        self.left -= steps
        return True


class PathPattern:
    """A pattern, prepared for any number of matches.

    Names that differ only in case or in the form of their accents are the same: on some file systems they are one file.
    """

    def __init__(self, pattern: str) -> None:
        text = normal(pattern) if len(pattern) <= LENGTH_MAX else ""
        names = [name for name in text.split("/") if name not in ("", ".")]
        self.is_valid = bool(names)
        self._names = [
            name for name, before in zip(names, ["", *names], strict=False) if (name, before) != (DEEP, DEEP)
        ]
        whole = fixed_part("/".join(self._names))
        rest = self._names[whole.count("/") + 1 if whole else 0 :]
        self._begin = whole  # each path that it matches begins so
        if rest and rest[0] != DEEP:
            self._begin = f"{whole}/{_fixed_beginning(rest[0])}" if whole else _fixed_beginning(rest[0])
        fixed = "/".join(rest).replace("?", "*").replace("/", "*").split("*")
        self._part = max(fixed, key=len)  # each path that it matches has this in it
        self._length = sum(map(len, self._names))
        self._expression: re.Pattern[str] | None = None  # made at the first match that needs it

    @property
    def weight(self) -> int:
        """What a match of it costs, roughly: little if paths have to begin with something."""
        return 1 if self._begin else 1 + self._length

    @property
    def names(self) -> int:
        """The number of its names."""
        return len(self._names)

    def matches(self, path: str) -> bool:
        """Return whether the pattern covers a path from the top of the work tree."""
        return self.covers(normal(path), Budget(MATCH_STEPS_MAX))

    def covers(self, text: str, budget: Budget) -> bool:
        """Return whether the pattern covers a path that `normal` has returned; False if the budget is spent."""
        if not (
            self.is_valid and text and budget.take(1) and text.startswith(self._begin) and self._part in text
        ):
            return False
        if not budget.take(len(text) * (1 + self._length // STEP)):
            return False
        if self._expression is None:
            self._expression = _expression(self._names)
        return self._expression.match(text + "/") is not None

    def may_overlap(self, other: PathPattern) -> bool:
        """Return whether some path may be covered by both. True in doubt: what stands after `**` is not compared."""
        if not (self.is_valid and other.is_valid):
            return False
        for one, two in zip(self._names, other._names, strict=False):
            if DEEP in (one, two):
                return True
            if not _names_may_overlap(one, two):
                return False
        return True  # one is above the other, and covers it


def normal(path: str) -> str:
    """Return the form in which paths are compared; "" for one that is too long."""
    text = path.strip("/")
    if text.isascii():
        return text.lower() if len(text) <= PATH_MAX else ""
    import unicodedata

    if len(text) > PATH_MAX:
        return ""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def may_overlap(
    ours: Sequence[PathPattern], theirs: Sequence[PathPattern], budget: Budget | None = None
) -> bool:
    """Return whether a path may be covered by a pattern of each list; False if the budget is spent."""
    for one in ours:
        for two in theirs:
            if budget is not None and not budget.take(1 + min(one.names, two.names)):
                return False
            if one.may_overlap(two):
                return True
    return False


def prepared(patterns: Iterable[str]) -> list[PathPattern]:
    """Return the patterns of a claim that readers read."""
    return [PathPattern(pattern) for pattern in list(patterns)[:PATTERNS_MAX]]


def is_pattern(path: str) -> bool:
    """Return whether a path has wildcards."""
    return "*" in path or "?" in path


def fixed_part(pattern: str) -> str:
    """Return the folders of a pattern before its first name with a wildcard."""
    names = pattern.split("/")
    count = next((number for number, name in enumerate(names) if is_pattern(name)), len(names))
    return "/".join(names[:count])


def _expression(names: Sequence[str]) -> re.Pattern[str]:
    """Return what the beginning of a path matches. Nothing is tried again: the first place of a part leaves most to those after it."""
    import re  # most commands match no path

    blocks = [""]  # of names, between those that are `**`
    for name in names:
        if name == DEEP:
            blocks.append("")
            continue
        first, *parts = (re.escape(part).replace(r"\?", "[^/]") for part in name.split("*"))
        last = f"[^/]*{parts.pop()}" if parts else ""
        blocks[-1] += first + "".join(f"(?>[^/]*?{part})" for part in parts) + last + "/"
    return re.compile(blocks[0] + "".join(f"(?>(?:[^/]+/)*?{block})" for block in blocks[1:]))


def _names_may_overlap(one: str, two: str) -> bool:
    """Return whether two names with wildcards may match the same name: their fixed beginnings and ends must agree."""
    if not is_pattern(one) and not is_pattern(two):
        return one == two
    begins = [_fixed_beginning(name) for name in (one, two)]
    ends = [_fixed_beginning(name[::-1]) for name in (one, two)]
    return all(a.startswith(b) or b.startswith(a) for a, b in (begins, ends))


def _fixed_beginning(name: str) -> str:
    return name.partition("*")[0].partition("?")[0]


HELD, CONTESTED, BEHIND, PERHAPS_RENEWED = "held", "contested", "behind", "perhaps renewed"
GRACE_MICROS = 15 * 60 * 1_000_000  # a renewal by another clone may be under way for as long
OF_OWNER_MAX, READ_MAX, TURN = 100, 500, 5  # claims that are read; of one clone before the next one's turn
BYTES_MAX, PORTION = (
    1024 * 1024,
    8,
)  # of their lines; no claim of others takes more than this part of what is left
COMPARE_STEPS_MAX = 500_000  # in one answer; further claims are not compared
EXCLUSIVE = "exclusive"
SEEN = os.path.join("claims", "seen")  # below the state folder, see `edit_guard`

# A claim ends with its session and with its task, or once its owner has given that up. The file of a line names the clone that wrote it.
_STANDING = (
    "WITH known AS (SELECT c.claim_id, c.line, c.owner, f.name AS writer, c.until, EXISTS (SELECT 1 FROM own WHERE name = c.session) AS ours,"
    " c.claim_id IN (SELECT value FROM json_each(:seen)) AS seen"
    " FROM path_claim c JOIN line l ON l.id = c.line LEFT JOIN file f ON f.id = l.file"
    " LEFT JOIN session s ON s.session_id = c.session LEFT JOIN task t ON t.task_id = c.task_id"
    " WHERE c.until > :since AND l.at <= :ahead AND NOT c.released AND (s.ended IS NULL OR s.ended < c.since) AND t.decided_by IS NULL"
    " AND (t.gave_up IS NULL OR c.owner NOT IN (SELECT value FROM json_each(t.gave_up)))),"
    " placed AS (SELECT *, row_number() OVER (PARTITION BY writer, owner ORDER BY NOT seen, line) AS place FROM known"
    " WHERE until > :now OR NOT ours),"
    " turns AS (SELECT *, row_number() OVER (PARTITION BY writer ORDER BY place, NOT seen, line) AS turn FROM placed"
    " WHERE place <= :of_owner),"
    " met AS (SELECT name, min(id) AS id FROM file WHERE name IN (SELECT writer FROM turns) GROUP BY name)"
    " SELECT claim_id, ours, (SELECT sum(length(l.body)) FROM entity_line e JOIN line l ON l.id = e.line"
    f" WHERE e.kind = 'claim' AND e.id = turns.claim_id) FROM turns LEFT JOIN met ON met.name = writer"
    f" ORDER BY NOT ours, (turn - 1) / {TURN}, met.id, NOT seen, line LIMIT :most"
)


class StandingClaim:
    """A claim that stands, or that perhaps was renewed.

    Attributes:
        claim: Its records, folded.
        patterns: Its paths, prepared for matches.
        is_over: Whether its end has passed: then its owner's clone has perhaps renewed it.
        is_here: Whether its session works in this clone, which then knows its end.
        rank: Its place among those that were read: this clone's own are first, then those of the clones known longest.
        against: The claims in its way, and it in theirs: neither writer had seen the other's.
        before: The claims in its way that its writer had seen.
        takers: The agents that have taken its task, if there are several.
    """

    def __init__(self, claim: FoldedClaim, *, is_over: bool, is_here: bool, rank: int = 0) -> None:
        self.claim = claim
        self.patterns = prepared(claim.record["paths"])
        self.is_over = is_over
        self.is_here = is_here
        self.rank = rank
        self.against: list[StandingClaim] = []
        self.before: list[StandingClaim] = []
        self.takers: frozenset[str] = frozenset()

    @property
    def id(self) -> str:
        """The id of the claim."""
        return self.claim.record["claim_id"]

    @property
    def who(self) -> str:
        """The owner's name for people."""
        return self.claim.record.get("sender_name") or self.claim.owner[0]

    @property
    def status(self) -> str:
        """`held`, `contested`, `behind` (somebody else's claim came first) or `perhaps renewed`."""
        if self.is_over:
            return PERHAPS_RENEWED
        if self.before:
            return BEHIND
        return CONTESTED if self.against else HELD

    @property
    def weight(self) -> int:
        """What matches of its patterns cost, roughly."""
        return sum(pattern.weight for pattern in self.patterns)

    def covers(self, path: str) -> bool:
        """Return whether it covers a path from the top of the work tree."""
        return any(pattern.matches(path) for pattern in self.patterns)

    def touched(self, paths: Sequence[tuple[str, str]], budget: Budget) -> Iterator[str]:
        """Yield those of these paths that it covers, each given with its `normal` form."""
        for path, text in paths:
            if budget.is_spent:
                return
            if any(pattern.covers(text, budget) for pattern in self.patterns):
                yield path

    def is_of(self, addresses: Iterable[str | None]) -> bool:
        """Return whether its owner has one of these names: then it is nobody else's."""
        named = {each for each in addresses if each}
        return not named.isdisjoint(self.claim.owner)


def standing(
    store: Store, *, db: sqlite3.Connection | None = None, most: int = READ_MAX
) -> list[StandingClaim]:
    """Return the claims that stand now, with those in each other's way, the earliest first.

    A claim of another clone whose end has passed is one of them for a quarter of an hour, and until the next sync: its owner's
    clone has perhaps renewed it.

    Args:
        db: The index to read; by default the store's, caught up.
        most: How many are read.
    """
    now = store.now()
    db = store.db() if db is None else db
    synced = autosync.last_read(store.repo)
    since = now - GRACE_MICROS if synced is None else min(now - GRACE_MICROS, int(synced * 1_000_000))
    ahead = now + claim_fold.AHEAD_MICROS
    seen = ",".join(
        f'"{name}"'
        for name in local_files.names_in(os.path.join(store.repo.state, SEEN))
        if heartbeats.is_safe(name)
    )
    values = {
        "since": since,
        "now": now,
        "ahead": format_at(ahead),
        "seen": f"[{seen}]",
        "of_owner": OF_OWNER_MAX,
        "most": most,
    }
    found: list[StandingClaim] = []
    left = BYTES_MAX
    for claim_id, ours, size in db.execute(_STANDING, values).fetchall():
        if not ours and size * PORTION > left:
            continue
        left -= size
        claim = tables.folded_claim(db, claim_id, ahead)
        if claim is None or not claim.record.get("writer"):
            continue
        is_here = (
            bool(ours) if claim.owner[1] is not None else writer_of(claim.owner[0]) in store.own().writers
        )
        is_over = claim.until <= now
        if not is_over or (not is_here and claim.until > since):
            found.append(StandingClaim(claim, is_over=is_over, is_here=is_here, rank=len(found)))
            if (task_id := claim.record.get("task_id")) is not None:
                (takers,) = stored_tasks.row_of(db, task_id, "takers") or (None,)
                found[-1].takers = frozenset(json.loads(takers or "[]"))
    compare(found)
    return sorted(found, key=lambda each: (each.claim.since, each.id))


def released_here(db: sqlite3.Connection, now: int, most: int) -> list[str]:
    """Return the claims of sessions of this clone that were released before their end, the last ones first."""
    query = (
        "SELECT claim_id FROM path_claim WHERE released = 1 AND until > ? AND session IN (SELECT name FROM own)"
        " ORDER BY line DESC LIMIT ?"
    )
    return [claim_id for (claim_id,) in db.execute(query, (now, most))]


def row_of(db: sqlite3.Connection, claim_id: str) -> tuple[str, str, str | None, int, int] | None:
    """Return line, owner, session, end, and whether it was released, of a claim; None if it is not here."""
    query = "SELECT l.body, c.owner, c.session, c.until, c.released FROM path_claim c JOIN line l ON l.id = c.line WHERE c.claim_id = ?"
    row: tuple[str, str, str | None, int, int] | None = db.execute(query, (claim_id,)).fetchone()
    return row


def compare(found: Sequence[StandingClaim], steps: int = COMPARE_STEPS_MAX) -> None:
    """Find the claims that are in each other's way, and note whose writer had seen which."""
    budget = Budget(steps)
    standing = [each for each in found if not each.is_over]
    for place, two in enumerate(standing):
        for one in standing[:place]:
            if not _may_conflict(one, two):
                continue
            if not may_overlap(one.patterns, two.patterns, budget):
                if budget.is_spent:
                    return
                continue
            if one.claim.has_seen(two.claim) == two.claim.has_seen(one.claim):
                one.against.append(two)
                two.against.append(one)
            elif one.claim.has_seen(two.claim):
                one.before.append(two)
            else:
                two.before.append(one)


def are_in_conflict(one: StandingClaim, two: StandingClaim) -> bool:
    """Return whether two claims, one of them exclusive, may cover the same path for different owners and tasks."""
    return _may_conflict(one, two) and may_overlap(one.patterns, two.patterns)


def are_of_one_task(one: StandingClaim, two: StandingClaim) -> bool:
    """Return whether two owners work together on a task, and did not both take it: then each of them works on all of it, alone."""
    task = one.claim.record.get("task_id")
    return (
        task is not None
        and task == two.claim.record.get("task_id")
        and not {one.claim.owner[0], two.claim.owner[0]} <= one.takers | two.takers
    )


def _may_conflict(one: StandingClaim, two: StandingClaim) -> bool:
    return (
        EXCLUSIVE in (one.claim.record["mode"], two.claim.record["mode"])
        and one.claim.owner[0] != two.claim.owner[0]
        and not are_of_one_task(one, two)
    )


PATHS_SHOWN = 3
LISTED = 50


class ClaimChange(Outcome, kw_only=True):
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

    claim_id: str
    event: str
    until: str | None
    paths: list[str] = []
    task_id: str | None = None
    commit: str | None
    audit_id: str | None = None
    warnings: list[str] = []
    next: list[str] = []


class ClaimsReleased(Outcome):
    """The claims that were released."""

    released: Sequence[ClaimChange]
    next: list[str] = ["gitmem claim list"]


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

    session_id: str
    name: str | None
    worktree: str | None
    paths: list[str]
    more: int


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
    return f"{sanitize(found.who)} claims {paths_text(record['paths'])} until {minute(format_at(found.claim.until))}{why}{about}"


def contest_text(own: StandingClaim, other: StandingClaim) -> str:
    """Return the sentence about a claim of the reader that another one contests."""
    return f"your claim {own.id} on {paths_text(own.claim.record['paths'])} overlaps another: {text_of(other)}; neither knew of the other"


def paths_text(paths: Sequence[str]) -> str:
    """Return the first paths of a claim, and the number of the others."""
    return first_of(paths, PATHS_SHOWN, shown=sanitize)
