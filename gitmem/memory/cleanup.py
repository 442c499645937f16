"""Mark expired nodes as deleted. The log keeps every line, so no space is freed."""

from __future__ import annotations

from ..agents import presence
from ..commit_message import sanitize
from ..errors import UsageError
from ..outcome import Outcome
from ..text.shell_quote import command
from . import archive, load, write
from .archive import Archived, format_count, format_duration
from .decay import HALF_LIFE_MICROS, THRESHOLD, validate
from .node_tables import DELETED, IS_SUMMARIZED

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection

    from ..agents.caller import Caller
    from ..store import Store

    Row = tuple[str, str, str, str | None, bool, int]


class CleanupResult(Outcome):
    """The result of a cleanup or of a dry run; ids are in order of age, oldest first.

    Attributes:
        retained_ids: The nodes kept, including those archived.
        decay_result: The result of archiving by decay, if requested.
        bytes_freed: Always 0: the log only grows. Kept for programs that read the output of another tool.
    """

    def __init__(self, *, dry_run: bool) -> None:
        self.removed_ids: list[str] = []
        self.retained_ids: list[str] = []
        self.breakdown = Breakdown()
        self.decay_result: Archived | None = None
        self.bytes_freed = 0
        self.dry_run = dry_run
        self.commit: str | None = None
        self.recorded = False
        self.warnings: list[str] = []
        self.next: list[str] = []

    @property
    def compaction_ratio(self) -> float:
        """The fraction of the nodes that is removed."""
        every = len(self.removed_ids) + len(self.retained_ids)
        return len(self.removed_ids) / every if every else 0.0

    def as_json(self) -> dict[str, object]:
        """Return the JSON form, with the fraction that is removed."""
        return {**super().as_json(), "compaction_ratio": self.compaction_ratio}


def cleanup(
    store: Store,
    caller: Caller,
    *,
    ttl: int | None = None,
    session: str | None = None,
    decay: bool = False,
    decay_threshold: float = THRESHOLD,
    half_life: int = HALF_LIFE_MICROS,
    force: bool = False,
    dry_run: bool = False,
    now: int | None = None,
) -> CleanupResult:
    """Delete expired nodes, and with `decay` archive decayed nodes, in one commit.

    The first matching rule decides. Kept: session nodes of sessions that are live or idle, then sensitive nodes,
    then project nodes. Removed: nodes older than `ttl`, then ephemeral nodes, then nodes of lifecycle session that
    belong to `session`, then summarized nodes; but no open nodes of P0 and P1. Deleted nodes are hidden;
    `gitmem mem update ID --clear deleted` restores them.

    Args:
        ttl: Microseconds since a node was created.
        session: A session id, or a unique prefix of one.
        decay_threshold, half_life, now: As for `archive.archive`.
        force: Remove and archive open nodes of P0 and P1, and archive last checkpoints, too.
        dry_run: Only report what would be done.

    Raises:
        UsageError: A value is invalid. Nothing was recorded.
        StoreError: The store could not be read or written. Nothing was recorded.
    """
    validate(half_life, decay_threshold)
    if ttl is not None and not 0 < ttl < float("inf"):
        raise UsageError(
            "The time to live must be more than 0. Nothing was written.",
            hint="Use a form such as `--ttl 30d`.",
            code="bad-ttl",
        )
    db = store.db()
    now = store.now() if now is None else now
    rules = RetentionRules(
        ttl=ttl,
        session=_session(db, session),
        is_current=lambda id: (one := presence.get(store, id)) is not None and one.is_current,
        sensitive=sensitive(db),
        urgent=set() if force else archive.open_urgent(db).keys(),
        now=now,
    )
    found = CleanupResult(dry_run=dry_run)
    reasons = _removed(db, rules, found)
    if decay:
        found.decay_result = archive.nodes_to_archive(
            db, now=now, threshold=decay_threshold, half_life=half_life, force=force,
            spared=rules.sensitive, left_out=found.removed_ids,
        )  # fmt: skip
        found.breakdown.decay_archived = len(found.decay_result.archived_ids)
    found.warnings = [*filter(None, [caller.remark])]
    if not dry_run:
        _write(store, caller, found, reasons)
    found.next = _next(found, ttl, session, decay, decay_threshold, half_life, force)
    return found


def _session(db: sqlite3.Connection, text: str | None) -> str | None:
    """Return the id of a session. An id that only imported nodes have is accepted, too."""
    if text is None:
        return None
    found = presence.find_session(db, text)
    if found is None and not db.execute("SELECT 1 FROM node WHERE session_id = ?", (text,)).fetchone():
        raise UsageError(
            f"Unknown session: {sanitize(text)[:80] or '(empty)'}; no node belongs to it. "
            "Nothing was written.",
            hint="`gitmem session list --all` lists all sessions.",
            code="unknown-session",
            next=["gitmem session list --all"],
        )
    return found or text


def _removed(db: sqlite3.Connection, rules: RetentionRules, found: CleanupResult) -> dict[str, list[str]]:
    """Return the ids to remove, by reason."""
    reasons: dict[str, list[str]] = {}
    rows = db.execute(
        f"SELECT id, type, lifecycle, session_id, {IS_SUMMARIZED}, created FROM node n WHERE state < ?"
        " ORDER BY created, id",
        (DELETED,),
    )
    for row in rows:
        reason = rules.reason(row, found.breakdown)
        if reason is None:
            found.retained_ids.append(row[0])
        else:
            found.removed_ids.append(row[0])
            reasons.setdefault(reason, []).append(row[0])
    return reasons


def _write(store: Store, caller: Caller, found: CleanupResult, reasons: dict[str, list[str]]) -> None:
    lines, body, done = [], [], []
    for reason, ids in sorted(reasons.items()):
        lines += write.patches(store, caller, ids, {"deleted": True, "reason": reason})
        body += [
            f"Deleted {format_count(len(ids))}: {reason}",
            *(f"- {id}" for id in ids[: archive.LISTED_MAX]),
            "",
        ]
    if found.removed_ids:
        done.append(f"deletes {format_count(len(found.removed_ids))}")
    decayed = found.decay_result
    if decayed is not None and decayed.archived_ids:
        lines += write.patches(store, caller, decayed.archived_ids, archive.patch_fields(decayed))
        body.append(archive.commit_body(decayed.scores, decayed.reason))
        done.append(f"archives {len(decayed.archived_ids)}")
    if not lines:
        return
    named = [*found.removed_ids, *(decayed.archived_ids if decayed else ())]
    written = write.record(
        store, caller, lines, f"cleans up: {' and '.join(done)}", text="\n".join(body), nodes=named
    )
    found.commit, found.recorded = written.commit, True
    if decayed is not None:
        decayed.dry_run = False
        if decayed.archived_ids:
            decayed.commit, decayed.recorded = found.commit, found.recorded


def _next(
    found: CleanupResult,
    ttl: int | None,
    session: str | None,
    decay: bool,
    threshold: float,
    half_life: int,
    force: bool,
) -> list[str]:
    if not found.dry_run:
        return [*(["gitmem mem list --status deleted"] if found.removed_ids else []), "gitmem mem list"]
    if not found.removed_ids and not (found.decay_result and found.decay_result.archived_ids):
        return ["gitmem mem list"]
    options: list[str] = []
    options += ["--ttl", format_duration(ttl)] if ttl is not None else []
    options += ["--session", session] if session is not None else []
    options += ["--decay"] if decay else []
    options += ["--decay-threshold", repr(threshold)] if threshold != THRESHOLD else []
    options += ["--half-life", format_duration(half_life)] if half_life != HALF_LIFE_MICROS else []
    options += ["--force"] if force else []
    return [command("gitmem", "mem", "cleanup", *options)]


class Breakdown(Outcome):
    """The number of nodes by the rule that removed or kept them; each node counts once.

    Attributes:
        ephemeral: Removed because of this lifecycle.
        session, wu: Removed because of this lifecycle: the session was named, or a summary covers the node.
        ttl_expired: Removed because of their age.
        sensitive, urgent, active_session_protected: Kept, whatever the other rules are.
        decay_archived: Archived because of their decay score.
    """

    def __init__(self) -> None:
        self.ephemeral = self.session = self.wu = self.sensitive = self.urgent = 0
        self.ttl_expired = self.active_session_protected = self.decay_archived = 0


class RetentionRules:
    """The rules of a cleanup.

    Args:
        ttl: Microseconds; older nodes are removed.
        session: The session whose nodes of lifecycle session are removed.
        is_current: Returns whether the session of an id is live or idle now.
        sensitive: Nodes to keep.
        urgent: Open nodes of P0 and P1 to keep.
        now: Microseconds since the epoch.
    """

    def __init__(
        self,
        *,
        ttl: int | None,
        session: str | None,
        is_current: Callable[[str], bool],
        sensitive: set[str],
        urgent: Collection[str],
        now: int,
    ) -> None:
        self.ttl = ttl
        self.session = session
        self.is_current = is_current
        self.sensitive = sensitive
        self.urgent = urgent
        self.now = now

    def reason(self, row: Row, breakdown: Breakdown) -> str | None:
        """Return why a node is removed, or None if it is kept; the first matching rule decides."""
        id, type, lifecycle, session_id, summarised, created = row
        if type == "session" and session_id is not None and self.is_current(session_id):
            breakdown.active_session_protected += 1
            return None
        if id in self.sensitive:
            breakdown.sensitive += 1
            return None
        rule, reason = self._rule(lifecycle, session_id, summarised, created)
        if rule and id in self.urgent:
            breakdown.urgent += 1
        elif rule:
            setattr(breakdown, rule, getattr(breakdown, rule) + 1)
            return reason
        return None

    def _rule(
        self, lifecycle: str, session_id: str | None, summarised: bool, created: int
    ) -> tuple[str, str]:
        """Return the counter of the first rule that removes a node, and the reason; empty texts if none does."""
        if lifecycle == "project":
            return "", ""
        if self.ttl is not None and self.now - created > self.ttl:
            return "ttl_expired", f"cleanup: older than {format_duration(self.ttl)}"
        if lifecycle == "ephemeral":
            return "ephemeral", "cleanup: ephemeral"
        if lifecycle == "session" and self.session is not None and session_id == self.session:
            return "session", f"cleanup: session {self.session}"
        if summarised and lifecycle in ("session", "wu"):
            return lifecycle, "cleanup: summarised"
        return "", ""


def sensitive(db: sqlite3.Connection) -> set[str]:
    """Return the sensitive nodes: by their field or, if imported, by an entry of their metadata."""
    found = {id for (id,) in db.execute("SELECT id FROM node WHERE sensitive")}
    word = '"sensitive"'
    perhaps = {
        id
        for (id,) in db.execute(
            "SELECT n.id FROM node n JOIN line l ON l.id = n.line WHERE instr(l.body, ?)"
            " UNION SELECT n.id FROM node_again n JOIN line l ON l.id = n.line WHERE instr(l.body, ?)",
            (word, word),
        )
    }
    # Searches each patch once, however many nodes it names.
    perhaps |= {
        id
        for (id,) in db.execute(
            "SELECT DISTINCT id FROM patch_of"
            " WHERE line IN (SELECT id FROM line WHERE kind = 'patch' AND instr(body, ?))",
            (word,),
        )
    }
    for node in load.load(db, sorted(perhaps - found)):
        if node.metadata.get("sensitive") is True:
            found.add(node.id)
    return found
