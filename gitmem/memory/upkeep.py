"""Upkeep of the memory: archive decayed nodes, mark expired ones as deleted, and delete nodes.

Archived and deleted nodes are shown only if they are requested. The log keeps their lines: no space is freed, and all of it
can be undone.
"""

from __future__ import annotations

from ..agents import presence
from ..commit_message import sanitize
from ..errors import UsageError
from ..outcome import Outcome, Struct, command
from . import decay, reader_store, stored_nodes, write
from .decay import HALF_LIFE_MICROS, THRESHOLD, validate
from .edit import LISTED_MAX
from .listing import Filter
from .node_tables import DELETED, HIDDEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Mapping, Sequence

    from ..agents.caller import Caller
    from ..records.record_types import PatchContent
    from ..store import Store

    Row = tuple[str, str, str, str | None, bool, int]


URGENT = ("P0", "P1")  # priorities of nodes that are kept while they are open


class Archived(Outcome, kw_only=True):
    """The result of archiving all decayed nodes, or of a dry run; ids are in order of age, oldest first.

    Attributes:
        retained_ids: Nodes with a score at or above the threshold.
        skipped_ids: Nodes archived before, and protected nodes.
        protected: Why a decayed node is kept, by id; these are among `skipped_ids`. Project nodes are not listed.
        scores: The score of each archived node at the time of the run, by id.
        half_life: In microseconds; the JSON form has it in days.
    """

    archived_ids: list[str] = []
    retained_ids: list[str] = []
    skipped_ids: list[str] = []
    protected: dict[str, str] = {}
    scores: dict[str, float] = {}
    threshold: float
    half_life: int
    dry_run: bool
    commit: str | None = None
    recorded: bool = False
    warnings: list[str] = []
    next: list[str] = []

    @property
    def total_processed(self) -> int:
        """The number of all nodes that are not deleted."""
        return len(self.archived_ids) + len(self.retained_ids) + len(self.skipped_ids)

    @property
    def reason(self) -> str:
        """The reason in the log. With it and the lines of the log, each score can be computed again."""
        return f"decay: below {self.threshold:g} with a half-life of {format_duration(self.half_life)}"

    def as_json(self) -> dict[str, object]:
        """Return the JSON form, with the number of all nodes, and the half-life in days."""
        found = super().as_json()
        del found["half_life"]
        return {
            **found,
            "total_processed": self.total_processed,
            "half_life_days": self.half_life / decay.DAY_MICROS,
        }


def archive(
    store: Store,
    caller: Caller,
    *,
    threshold: float = decay.THRESHOLD,
    half_life: int = decay.HALF_LIFE_MICROS,
    force: bool = False,
    dry_run: bool = False,
    now: int | None = None,
    names_max: int = write.NAMES_MAX,
) -> Archived:
    """Archive every node whose decay score is below a threshold, in one commit; the caller's private nodes, too.

    Protected are project nodes; open nodes of P0 and P1; and the last checkpoint of each work unit, and of each session
    without one. The operation is idempotent, also if another clone runs it at the same time.

    Args:
        threshold: A score; new nodes without a priority have 1.
        half_life: Microseconds.
        force: Archive open nodes of P0 and P1 and last checkpoints, too.
        dry_run: Only report which nodes would be archived.
        now: Microseconds since the epoch; the store's clock by default.
        names_max: The number of ids in one line.

    Raises:
        UsageError: The half-life or the threshold is not above 0.
        StoreError: The store could not be read or written. Nothing was recorded.
    """
    decay.validate(half_life, threshold)
    now = store.now() if now is None else now
    found = nodes_to_archive(store.db(), now=now, threshold=threshold, half_life=half_life, force=force)
    found.dry_run = dry_run
    for ids in reader_store.by_place(store, [] if dry_run else found.archived_ids):
        lines = write.patches(store, caller, ids, patch_fields(found), names_max=names_max)
        what = f"archives {format_count(len(ids))} by decay"
        text = commit_body({id: found.scores[id] for id in ids}, found.reason)
        done = write.record(store, caller, lines, what, text=text, nodes=ids)
        found.commit, found.recorded = found.commit or done.commit, True
    found.warnings = [*filter(None, [caller.remark])]
    found.next = _next_after_archive(found, force)
    return found


def nodes_to_archive(
    db: sqlite3.Connection,
    *,
    now: int,
    threshold: float,
    half_life: int,
    force: bool = False,
    spared: Collection[str] = (),
    left_out: Collection[str] = (),
) -> Archived:
    """Return which nodes would be archived. It reads only the view's tables, not the lines of nodes.

    Args:
        force: As for `archive`.
        spared: Nodes to skip, as project nodes are.
        left_out: Nodes not to count, as deleted nodes are.
    """
    found = Archived(threshold=threshold, half_life=half_life, dry_run=True)
    spared, left_out = frozenset(spared), frozenset(left_out)
    kept = {} if force else protected_nodes(db, now)
    for id, touched, priority, state, lifecycle, accesses in stored_nodes.rows_to_score(db):
        if id in left_out:
            continue
        if state == HIDDEN or lifecycle == "project" or id in spared:
            found.skipped_ids.append(id)
            continue
        score = decay.score_of(touched, accesses or 0, priority, now=now, half_life=half_life)
        if score < threshold and id in kept:
            found.skipped_ids.append(id)
            found.protected[id] = kept[id]
        elif score < threshold:
            found.archived_ids.append(id)
            found.scores[id] = score
        else:
            found.retained_ids.append(id)
    return found


def protected_nodes(db: sqlite3.Connection, now: int) -> dict[str, str]:
    """Return why nodes must not be archived: open nodes of P0 and P1, and last checkpoints. Project nodes are not listed."""
    last = stored_nodes.last_checkpoints(db, now + decay.DAY_MICROS)
    return dict.fromkeys(last.values(), "last checkpoint") | open_urgent(db)


def open_urgent(db: sqlite3.Connection) -> dict[str, str]:
    """Return the open nodes of P0 and P1, with that as a text."""
    return {id: f"open {priority}" for id, priority in stored_nodes.open_of_priority(db, URGENT)}


def patch_fields(found: Archived) -> PatchContent:
    """Return the fields of the patch."""
    return {"archived": True, "reason": found.reason}


def commit_body(scores: Mapping[str, float], reason: str) -> str:
    """Return the body of a commit that archives by decay."""
    lines = [f"{id} {score:.3g}" for id, score in list(scores.items())[:LISTED_MAX]]
    more = [f"and {len(scores) - LISTED_MAX} more"] if len(scores) > LISTED_MAX else []
    return "\n".join([f"{reason[:1].upper()}{reason[1:]}", "", *lines, *more])


def format_duration(micros: int) -> str:
    """Format a duration as an option value: `30d`, `12h`, `90s`."""
    seconds = micros / 1_000_000
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds // size:.0f}{unit}"
    return f"{seconds:.6f}".rstrip("0").rstrip(".") + "s"


def format_count(nodes: int) -> str:
    """Format a number of nodes: `1 node`, `2 nodes`."""
    return f"{nodes} node{'' if nodes == 1 else 's'}"


def _next_after_archive(found: Archived, force: bool) -> list[str]:
    if not found.archived_ids:
        first = next(iter(found.protected), None)
        return [command("gitmem", "show", first)] if first else ["gitmem mem list"]
    if not found.dry_run:
        return ["gitmem mem list --include-archived", command("gitmem", "show", found.archived_ids[0])]
    own = ["--threshold", repr(found.threshold)] if found.threshold != decay.THRESHOLD else []
    again = (
        [command("gitmem", "mem", "archive", *own)]
        if found.half_life == decay.HALF_LIFE_MICROS and not force
        else []
    )
    return [*again, "gitmem mem list"]


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
        decay_threshold, half_life, now: As for `upkeep.archive`.
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
        urgent=set() if force else open_urgent(db).keys(),
        now=now,
    )
    found = CleanupResult(dry_run=dry_run)
    reasons = _removed(db, rules, found)
    if decay:
        found.decay_result = nodes_to_archive(
            db, now=now, threshold=decay_threshold, half_life=half_life, force=force,
            spared=rules.sensitive, left_out=found.removed_ids,
        )  # fmt: skip
        found.breakdown.decay_archived = len(found.decay_result.archived_ids)
    found.warnings = [*filter(None, [caller.remark])]
    if not dry_run:
        _write(store, caller, found, reasons)
    found.next = _next_after_cleanup(found, ttl, session, decay, decay_threshold, half_life, force)
    return found


def _session(db: sqlite3.Connection, text: str | None) -> str | None:
    """Return the id of a session. An id that only imported nodes have is accepted, too."""
    if text is None:
        return None
    found = presence.find_session(db, text)
    if found is None and not stored_nodes.select_ids(db, "n.session_id = ?", (text,), limit=1):
        raise UsageError(
            f"Unknown session: {sanitize(text)[:80] or '(empty)'}; no node belongs to it. "
            "Nothing was written.",
            hint="`gitmem roster --all` lists all sessions.",
            code="unknown-session",
            next=["gitmem roster --all"],
        )
    return found or text


def _removed(db: sqlite3.Connection, rules: RetentionRules, found: CleanupResult) -> dict[str, list[str]]:
    """Return the ids to remove, by reason."""
    reasons: dict[str, list[str]] = {}
    for row in stored_nodes.rows_to_clean_up(db):
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
            *(f"- {id}" for id in ids[:LISTED_MAX]),
            "",
        ]
    if found.removed_ids:
        done.append(f"deletes {format_count(len(found.removed_ids))}")
    decayed = found.decay_result
    if decayed is not None and decayed.archived_ids:
        lines += write.patches(store, caller, decayed.archived_ids, patch_fields(decayed))
        body.append(commit_body(decayed.scores, decayed.reason))
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


def _next_after_cleanup(
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
    is_nothing = not found.removed_ids and not (found.decay_result and found.decay_result.archived_ids)
    if is_nothing or half_life != HALF_LIFE_MICROS or force:  # no option sets these
        return ["gitmem mem list"]
    options: list[str] = []
    options += ["--ttl", format_duration(ttl)] if ttl is not None else []
    options += ["--session", session] if session is not None else []
    options += ["--decay"] if decay else []
    options += ["--threshold", repr(threshold)] if threshold != THRESHOLD else []
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


class RetentionRules(Struct):
    """The rules of a cleanup.

    Attributes:
        ttl: Microseconds; older nodes are removed.
        session: The session whose nodes of lifecycle session are removed.
        is_current: Returns whether the session of an id is live or idle now.
        sensitive: Nodes to keep.
        urgent: Open nodes of P0 and P1 to keep.
        now: Microseconds since the epoch.
    """

    ttl: int | None
    session: str | None
    is_current: Callable[[str], bool]
    sensitive: set[str]
    urgent: Collection[str]
    now: int

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
    found = set(stored_nodes.select_ids(db, "n.sensitive"))
    for node in stored_nodes.load(db, sorted(stored_nodes.ids_mentioning(db, '"sensitive"') - found)):
        if node.metadata.get("sensitive") is True:
            found.add(node.id)
    return found


REASON = "deleted by hand"
UNDO_IDS_MAX = 10  # the most ids in a command that restores them


class Deleted(Outcome):
    """The nodes deleted, or to delete in a dry run. Nodes in `already` were deleted before; nothing is written."""

    ids: Sequence[str]
    already: Sequence[str]
    dry_run: bool
    commit: str | None = None
    recorded: bool = False
    warnings: list[str] = []
    next: list[str] = []


def delete(
    store: Store,
    caller: Caller,
    node_ids: Sequence[str] = (),
    *,
    tags: Sequence[str] = (),
    older_than: int | None = None,
    wu: str | None = None,
    reason: str | None = None,
    dry_run: bool = False,
) -> Deleted:
    """Delete nodes by id, or all nodes that match every given filter, including archived nodes.

    Args:
        node_ids: Ids, or prefixes of six characters or more after the dash.
        tags: Only nodes with all of these tags.
        older_than: Microseconds since a node was created.
        wu: A work unit, or `unlinked`.
        reason: The reason, in one line.
        dry_run: Only report what would be deleted.

    Raises:
        UsageError: Neither or both of ids and filters are given, or a value is invalid. Nothing was recorded.
        StoreError: The store could not be read or written. Nothing was recorded.
    """
    db = store.db()
    by_filter = bool(tags or wu or older_than is not None)
    if bool(node_ids) == by_filter:
        raise UsageError(
            "Ids and filters are mutually exclusive. Nothing was written."
            if by_filter
            else "Missing ids or filters. Nothing was written.",
            hint="Give node ids, or filters as in `gitmem mem delete --tag T --older-than 30d`.",
            code="usage",
            next=["gitmem mem list", "gitmem mem delete --help"],
        )
    if by_filter:
        found = Deleted(_matching(store, tags, older_than, wu), (), dry_run=dry_run)
    else:
        named = list(dict.fromkeys(stored_nodes.find_node(db, text, writing=True) for text in node_ids))
        gone = {node.id for node in stored_nodes.load(db, named) if node.deleted}
        ids = [id for id in named if id not in gone]
        found = Deleted(ids, [id for id in named if id in gone], dry_run=dry_run)
    found.warnings = [*filter(None, [caller.remark]), *_lasting_node_warnings(store, found.ids)]
    every = [] if dry_run else [*found.ids]
    for ids in reader_store.by_place(store, every) if by_filter else filter(None, [every]):
        lines = write.patches(store, caller, ids, {"deleted": True, "reason": reason or REASON})
        what = f"deletes {ids[0] if len(ids) == 1 else format_count(len(ids))}"
        done = write.record(store, caller, lines, what, text=reason or "", nodes=ids)
        found.commit, found.recorded = found.commit or done.commit, True
    found.next = _next_after_delete(found, tags, older_than, wu)
    return found


def _matching(store: Store, tags: Sequence[str], older_than: int | None, wu: str | None) -> list[str]:
    before = None
    if older_than is not None:
        if not 0 < older_than < float("inf"):
            raise UsageError(
                "The age must be more than 0. Nothing was written.",
                hint="Use a form such as `--older-than 30d`, 4w or 12h.",
                code="bad-duration",
            )
        before = store.now() - older_than
    wanted = Filter(tags=tags, before=before, wu=wu, include_archived=True)
    return stored_nodes.select_ids(store.db(), f"{wanted.where} AND n.state < {DELETED}", wanted.values)


def _lasting_node_warnings(store: Store, ids: Sequence[str]) -> list[str]:
    """Return a warning if the nodes include project nodes or sensitive nodes."""
    nodes = stored_nodes.load(store.db(), ids)
    lasting = [node.id for node in nodes if node.lifecycle == "project" or node.sensitive]
    if not lasting or len(nodes) == 1:
        return []
    verb = "is" if len(lasting) == 1 else "are"
    return [
        f"{format_count(len(lasting))} of these {verb} of the project or sensitive: {', '.join(lasting[:3])}."
    ]


def _next_after_delete(
    found: Deleted, tags: Sequence[str], older_than: int | None, wu: str | None
) -> list[str]:
    if not found.ids:
        return [command("gitmem", "show", id) for id in found.already[:1]] or ["gitmem mem list"]
    if not found.dry_run:
        undo = command("gitmem", "mem", "update", *found.ids, "--clear", "deleted")
        return [
            undo if len(found.ids) <= UNDO_IDS_MAX else "gitmem mem list --status deleted",
            "gitmem mem list",
        ]
    if not (tags or wu or older_than is not None):
        return [command("gitmem", "mem", "delete", *found.ids)] if len(found.ids) <= 20 else []
    options = [word for tag in tags for word in ("--tag", tag)]
    options += ["--older-than", format_duration(older_than)] if older_than is not None else []
    options += ["--wu", wu] if wu else []
    return [command("gitmem", "mem", "delete", *options), command("gitmem", "show", found.ids[0])]
