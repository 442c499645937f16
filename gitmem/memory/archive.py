"""Archive decayed nodes: they are shown only if archived nodes are requested. No line is removed."""

from __future__ import annotations

from ..outcome import Outcome
from ..text.shell_quote import command
from . import decay, private_nodes, write
from .node_tables import DELETED, HIDDEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Mapping

    from ..agents.caller import Caller
    from ..records.record_types import PatchContent
    from ..store import Store

URGENT = ("P0", "P1")  # priorities of nodes that are kept while they are open
LISTED_MAX = 40  # nodes listed in the body of a commit


class Archived(Outcome):
    """The result of archiving all decayed nodes, or of a dry run; ids are in order of age, oldest first.

    Attributes:
        retained_ids: Nodes with a score at or above the threshold.
        skipped_ids: Nodes archived before, and protected nodes.
        protected: Why a decayed node is kept, by id; these are among `skipped_ids`. Project nodes are not listed.
        scores: The score of each archived node at the time of the run, by id.
        half_life: In microseconds; the JSON form has it in days.
    """

    def __init__(self, threshold: float, half_life: int, *, dry_run: bool) -> None:
        self.archived_ids: list[str] = []
        self.retained_ids: list[str] = []
        self.skipped_ids: list[str] = []
        self.protected: dict[str, str] = {}
        self.scores: dict[str, float] = {}
        self.threshold = threshold
        self.half_life = half_life
        self.dry_run = dry_run
        self.commit: str | None = None
        self.recorded = False
        self.warnings: list[str] = []
        self.next: list[str] = []

    def add(self, other: Archived) -> None:
        """Add the nodes of another store."""
        self.archived_ids += other.archived_ids
        self.retained_ids += other.retained_ids
        self.skipped_ids += other.skipped_ids
        self.protected |= other.protected
        self.scores |= other.scores

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
    own = private_nodes.of_caller(store, lambda: caller)
    found = Archived(threshold, half_life, dry_run=dry_run)
    for each in (store, *((own,) if own is not None else ())):
        now = store.now() if now is None else now
        some = nodes_to_archive(each.db(), now=now, threshold=threshold, half_life=half_life, force=force)
        if some.archived_ids and not dry_run:
            lines = write.patches(each, caller, some.archived_ids, patch_fields(some), names_max=names_max)
            what = f"archives {format_count(len(some.archived_ids))} by decay"
            text = commit_body(some.scores, some.reason)
            done = write.record(each, caller, lines, what, text=text, nodes=some.archived_ids)
            found.commit, found.recorded = found.commit or done.commit, True
        found.add(some)
    found.warnings = [*filter(None, [caller.remark])]
    found.next = _next(found, force)
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
    found = Archived(threshold, half_life, dry_run=True)
    spared, left_out = frozenset(spared), frozenset(left_out)
    kept = {} if force else protected_nodes(db, now)
    rows = db.execute(
        "SELECT n.id, n.touched, n.priority, n.state, n.lifecycle, a.count FROM node n"
        " LEFT JOIN access a ON a.id = n.id WHERE n.state < ? ORDER BY n.created, n.id",
        (DELETED,),
    )
    for id, touched, priority, state, lifecycle, accesses in rows:
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
    checkpoints = db.execute(
        "SELECT coalesce(wu_id, session_id), id FROM node WHERE type = 'checkpoint'"
        f" AND state < {HIDDEN} AND touched <= ? ORDER BY touched, id",
        (now + decay.DAY_MICROS,),
    )
    last = dict(checkpoints.fetchall())
    return dict.fromkeys(last.values(), "last checkpoint") | open_urgent(db)


def open_urgent(db: sqlite3.Connection) -> dict[str, str]:
    """Return the open nodes of P0 and P1, with that as a text."""
    marks = ", ".join(f"'{priority}'" for priority in URGENT)
    rows = db.execute(f"SELECT id, priority FROM node WHERE state = 0 AND priority IN ({marks})")
    return {id: f"open {priority}" for id, priority in rows}


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


def _next(found: Archived, force: bool) -> list[str]:
    if not found.archived_ids:
        first = next(iter(found.protected), None)
        return [command("gitmem", "mem", "show", first)] if first else ["gitmem mem list"]
    if not found.dry_run:
        return ["gitmem mem list --include-archived", command("gitmem", "mem", "show", found.archived_ids[0])]
    own = ["--force"] if force else []
    if found.threshold != decay.THRESHOLD:
        own += ["--threshold", repr(found.threshold)]
    if found.half_life != decay.HALF_LIFE_MICROS:
        own += ["--half-life", format_duration(found.half_life)]
    return [command("gitmem", "mem", "archive", *own), "gitmem mem list"]
