"""Upkeep of the memory: archive decayed nodes, mark expired ones as deleted, and delete nodes.

Archived and deleted nodes are shown only if they are requested. The log keeps their lines: no space is freed, and all of it
can be undone.
"""

from __future__ import annotations

from ..agents import presence
from ..commit_message import sanitize
from ..errors import UsageError
from ..outcome import Outcome, Struct, Written, command
from . import decay, reader_store, stored_nodes
from .decay import HALF_LIFE_MICROS, THRESHOLD, validate
from .edit import LISTED_MAX
from .listing import Filter
from .node_tables import DELETED, HIDDEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Mapping, Sequence

    from ..agents.caller import Caller
    from ..records.record_types import PatchContent
    from ..store import Store


URGENT = ("P0", "P1")  # priorities of nodes that are kept while they are open


class Archived(Written, kw_only=True):
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

    @property
    def total_processed(self) -> int:
        """The number of all nodes that are not deleted."""
        return len(self.archived_ids) + len(self.retained_ids) + len(self.skipped_ids)

    @property
    def reason(self) -> str:
        """The reason in the log. With it and the lines of the log, each score can be computed again."""
        return f"decay: below {self.threshold:g} with a half-life of {format_duration(self.half_life)}"

    @property
    def patch(self) -> PatchContent:
        """The fields of the patch of the archived nodes."""
        return {"archived": True, "reason": self.reason}

    def as_json(self) -> dict[str, object]:
        """Return the JSON form, with the number of all nodes, and the half-life in days."""
        found = super().as_json()
        days = found.pop("half_life") / decay.DAY_MICROS  # type: ignore[operator]  # it is a number
        return {**found, "total_processed": self.total_processed, "half_life_days": days}


def archive(
    store: Store,
    caller: Caller,
    *,
    threshold: float = THRESHOLD,
    half_life: int = HALF_LIFE_MICROS,
    dry_run: bool = False,
    now: int | None = None,
    names_max: int = stored_nodes.NAMES_MAX,
) -> Archived:
    """Archive every node whose decay score is below a threshold, in one commit; the caller's private nodes, too.

    Protected are project nodes; open nodes of P0 and P1; and the last checkpoint of each work unit, and of each session
    without one. The operation is idempotent, also if another clone runs it at the same time.

    Args:
        threshold: A score; new nodes without a priority have 1.
        half_life: Microseconds.
        dry_run: Only report which nodes would be archived.
        now: Microseconds since the epoch; the store's clock by default.
        names_max: The number of ids in one line.

    Raises:
        UsageError: The half-life or the threshold is not above 0.
        StoreError: The store could not be read or written. Nothing was recorded.
    """
    decay.validate(half_life, threshold)
    now = store.now() if now is None else now
    found = nodes_to_archive(store.db(), now=now, threshold=threshold, half_life=half_life)
    found.dry_run = dry_run
    for ids in reader_store.by_place(store, [] if dry_run else found.archived_ids):
        lines = stored_nodes.patch_lines(store, caller, ids, found.patch, names_max=names_max)
        text = commit_body({id: found.scores[id] for id in ids}, found.reason)
        done = stored_nodes.record(
            store, caller, lines, f"archives {format_count(len(ids))} by decay", text=text, nodes=ids
        )
        found.commit, found.recorded = found.commit or done.commit, True
    found.warnings = [*filter(None, [caller.remark])]
    named = [*found.archived_ids, *found.protected][:1]
    hidden = ["gitmem mem list --include-archived"] if found.recorded else []
    found.next = [*hidden, *(command("gitmem", "show", id) for id in named)]
    return found


def nodes_to_archive(
    db: sqlite3.Connection,
    *,
    now: int,
    threshold: float,
    half_life: int,
    spared: Collection[str] = (),
    left_out: Collection[str] = (),
) -> Archived:
    """Return which nodes would be archived. It reads only the view's tables, not the lines of nodes.

    Args:
        spared: Nodes to skip, as project nodes are.
        left_out: Nodes not to count, as deleted nodes are.
    """
    found = Archived(threshold=threshold, half_life=half_life, dry_run=True)
    last = stored_nodes.last_checkpoints(db, now + decay.DAY_MICROS)
    kept = dict.fromkeys(last.values(), "last checkpoint") | open_urgent(db)
    for id, touched, priority, state, lifecycle, accesses in stored_nodes.rows_to_score(db):
        if id in left_out:
            continue
        if state == HIDDEN or lifecycle == "project" or id in spared:
            found.skipped_ids.append(id)
            continue
        score = decay.score_of(touched, accesses, priority, now=now, half_life=half_life)
        if score >= threshold:
            found.retained_ids.append(id)
        elif id in kept:
            found.skipped_ids.append(id)
            found.protected[id] = kept[id]
        else:
            found.archived_ids.append(id)
            found.scores[id] = score
    return found


def open_urgent(db: sqlite3.Connection) -> dict[str, str]:
    """Return the open nodes of P0 and P1, with that as a text."""
    return {id: f"open {priority}" for id, priority in stored_nodes.open_of_priority(db, URGENT)}


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


class Breakdown(Outcome):
    """The number of nodes by the rule that removed or kept them; each node counts once.

    Attributes:
        ephemeral: Removed because of this lifecycle.
        session, wu: Removed because of this lifecycle: the session was named, or a summary covers the node.
        sensitive, urgent: Kept, whatever the other rules are.
        ttl_expired: Removed because of their age.
        active_session_protected: Kept, whatever the other rules are.
        decay_archived: Archived because of their decay score.
    """

    ephemeral: int = 0
    session: int = 0
    wu: int = 0
    sensitive: int = 0
    urgent: int = 0
    ttl_expired: int = 0
    active_session_protected: int = 0
    decay_archived: int = 0


class CleanupResult(Written, kw_only=True):
    """The result of a cleanup or of a dry run; ids are in order of age, oldest first.

    Attributes:
        retained_ids: The nodes kept, including those archived.
        decay_result: The result of archiving by decay, if requested.
        bytes_freed: Always 0: the log only grows. Kept for programs that read the output of another tool.
    """

    removed_ids: list[str] = []
    retained_ids: list[str] = []
    breakdown: Breakdown
    decay_result: Archived | None = None
    bytes_freed: int = 0
    dry_run: bool

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
    found = CleanupResult(breakdown=Breakdown(), dry_run=dry_run)
    sensitive = set(stored_nodes.select_ids(db, "n.sensitive"))
    reasons = _removed(store, found, sensitive, _Expiry(now, ttl, _session(db, session)))
    if decay:
        found.decay_result = nodes_to_archive(
            db, now=now, threshold=decay_threshold, half_life=half_life,
            spared=sensitive, left_out={*found.removed_ids},
        )  # fmt: skip
        found.breakdown.decay_archived = len(found.decay_result.archived_ids)
    found.warnings = [*filter(None, [caller.remark])]
    if not dry_run:
        _write(store, caller, found, reasons)
    deleted = ["gitmem mem list --status deleted"] if found.removed_ids and not dry_run else []
    found.next = [*deleted, "gitmem mem list"]
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


class _Expiry(Struct):
    """What makes nodes expire: at `now` an age above `ttl`, if given, and a session that was named."""

    now: int
    ttl: int | None
    session: str | None

    def rule(self, lifecycle: str, session_id: str | None, summarized: bool, created: int) -> tuple[str, str]:
        """Return the counter of the first rule that removes a node, and the reason; empty texts if none does."""
        if lifecycle == "project":
            return "", ""
        if self.ttl is not None and self.now - created > self.ttl:
            return "ttl_expired", f"cleanup: older than {format_duration(self.ttl)}"
        if lifecycle == "ephemeral":
            return "ephemeral", "cleanup: ephemeral"
        if lifecycle == "session" and self.session is not None and session_id == self.session:
            return "session", f"cleanup: session {self.session}"
        if summarized and lifecycle in ("session", "wu"):
            return lifecycle, "cleanup: summarized"
        return "", ""


def _removed(
    store: Store, found: CleanupResult, sensitive: Collection[str], expiry: _Expiry
) -> dict[str, list[str]]:
    """Add all nodes to `found`, and return the ids to remove by reason; the first matching rule decides."""
    db = store.db()
    urgent = open_urgent(db)
    reasons: dict[str, list[str]] = {}
    for id, type, lifecycle, session_id, summarized, created in stored_nodes.rows_to_clean_up(db):
        own = presence.get(store, session_id) if type == "session" and session_id is not None else None
        counter, reason = expiry.rule(lifecycle, session_id, summarized, created)
        if own is not None and own.is_current:
            counter, reason = "active_session_protected", ""
        elif id in sensitive:
            counter, reason = "sensitive", ""
        elif counter and id in urgent:
            counter, reason = "urgent", ""
        if counter:
            setattr(found.breakdown, counter, getattr(found.breakdown, counter) + 1)
        if reason:
            found.removed_ids.append(id)
            reasons.setdefault(reason, []).append(id)
        else:
            found.retained_ids.append(id)
    return reasons


def _write(store: Store, caller: Caller, found: CleanupResult, reasons: Mapping[str, list[str]]) -> None:
    lines, body, done = [], [], []
    for reason, ids in sorted(reasons.items()):
        lines += stored_nodes.patch_lines(store, caller, ids, {"deleted": True, "reason": reason})
        body += [f"Deleted {format_count(len(ids))}: {reason}", *(f"- {id}" for id in ids[:LISTED_MAX]), ""]
    if found.removed_ids:
        done.append(f"deletes {format_count(len(found.removed_ids))}")
    decayed = found.decay_result
    archived = decayed.archived_ids if decayed is not None else []
    if decayed is not None and archived:
        lines += stored_nodes.patch_lines(store, caller, archived, decayed.patch)
        body.append(commit_body(decayed.scores, decayed.reason))
        done.append(f"archives {len(archived)}")
    if lines:
        what, named = f"cleans up: {' and '.join(done)}", [*found.removed_ids, *archived]
        written = stored_nodes.record(store, caller, lines, what, text="\n".join(body), nodes=named)
        found.commit, found.recorded = written.commit, True
    if decayed is not None:
        decayed.dry_run = False
        if archived:
            decayed.commit, decayed.recorded = found.commit, found.recorded


REASON = "deleted by hand"
UNDO_IDS_MAX = 10  # the most ids in a command that restores them


class Deleted(Written, kw_only=True):
    """The nodes deleted, or to delete in a dry run. Nodes in `already` were deleted before; nothing is written."""

    ids: list[str]
    already: list[str] = []
    dry_run: bool


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
        found = Deleted(ids=_matching(store, tags, older_than, wu), dry_run=dry_run)
    else:
        named = list(dict.fromkeys(stored_nodes.find_node(db, text, writing=True) for text in node_ids))
        gone = {node.id for node in stored_nodes.load(db, named) if node.deleted}
        ids = [id for id in named if id not in gone]
        found = Deleted(ids=ids, already=[id for id in named if id in gone], dry_run=dry_run)
    found.warnings = [*filter(None, [caller.remark]), *_lasting_node_warnings(store, found.ids)]
    every = [] if dry_run else [*found.ids]
    for ids in reader_store.by_place(store, every) if by_filter else filter(None, [every]):
        lines = stored_nodes.patch_lines(store, caller, ids, {"deleted": True, "reason": reason or REASON})
        what = f"deletes {ids[0] if len(ids) == 1 else format_count(len(ids))}"
        done = stored_nodes.record(store, caller, lines, what, text=reason or "", nodes=ids)
        found.commit, found.recorded = found.commit or done.commit, True
    found.next = _next_after_delete(found)
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


def _next_after_delete(found: Deleted) -> list[str]:
    if not found.recorded:
        return [command("gitmem", "show", id) for id in [*found.ids, *found.already][:1]] or [
            "gitmem mem list"
        ]
    undo = command("gitmem", "mem", "update", *found.ids, "--clear", "deleted")
    return [undo if len(found.ids) <= UNDO_IDS_MAX else "gitmem mem list --status deleted", "gitmem mem list"]
