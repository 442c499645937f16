"""Collect the data of the page from one snapshot of the log."""

from __future__ import annotations

import os
import time

from .. import __version__
from ..agents import audits, mailbox
from ..agents import caller as callers
from ..agents.caller import of_session
from ..agents.mailbox import of_readers
from ..errors import GitmemError, UsageError
from ..git import history
from ..history import open_work, overlap
from ..history.commits import MadeHere, find_makers, recorded
from ..history.figures import statistics
from ..history.overlap import Refs, decoded
from ..index import entities
from ..index.catch_up import WithoutCollector
from ..index.index_file import StepLimit
from ..log import ref
from ..memory import anchors, decay, relations, stored_nodes
from ..memory.node_tables import DELETED
from ..memory.relations import SUPERSEDES
from ..order.task import SUBMITTED
from ..records.ids import is_id, unit_key
from ..signals import gate
from ..signals.thread_list import ManyThreads, Selection
from ..signals.threads import initiatives_of
from ..work import task_state
from .board import (
    SHORT_MAX,
    SIGNALS_MAX,
    ClaimSpans,
    Lanes,
    SessionBars,
    SignalMarks,
    TaskSpans,
    cut,
    millis,
    millis_of,
    put,
    short,
    title,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

    from ..agents.caller import Caller, CallerClaims
    from ..agents.presence import Presence
    from ..git.history import UserCommit
    from ..git.objects import PathChanges
    from ..history.commits import Makers
    from ..order.node import PatchChange, VersionedNode
    from ..records.record_types import AuditRecord
    from ..signals.gate import BlockingSignal
    from ..store import Store
    from ..work.task_list import TaskRow
    from .board import Fields

FORMAT = "gitmem.page/1"
ANSWER = "answer"  # to the question about a task
COMMITS_MAX = 2_000
BRANCHES_MAX = 200
OF_COMMIT_MAX = 5  # branches that are named
OVERLAPS_MAX = 100
PATHS_MAX = 20
OVERLAP_SECONDS = 3.0
MAKER_SECONDS = 1.0  # for finding who made the commits

WAITS_MAX = 500
WHY_MAX = 1_000  # characters
UNITS_MAX = 100  # of one agent, those with the most
UNREAD_STEPS = 20_000_000  # of SQLite for all sessions
GATES_MAX = 200  # that are looked at
GATE_SECONDS = 1.0  # of CPU, for looking at gates
AUDITS_MAX, AUDIT_BYTES = 1_000, 4_000_000  # that are read
PASSED_MAX = 200
OF_ONE_MAX = 50  # signals or claims of one reason
REASON_MAX = 1_000  # characters
_OF_CLAIMS = (audits.CLAIM, audits.CLAIM_RELEASE)
_LATE = "Not all gates were looked at: there are too many signals."

NODES_MAX = 3_000
RELATIONS_MAX = 10_000
CHANGES_MAX = 30  # of a node
STALE_BY_MAX = 5  # commits that made a node stale
LISTED_MAX = 20  # tags and paths of a node
SUMMARIZES = "summarizes"  # the type of the relation from a summary to what it covers


def collect(
    store: Store,
    *,
    since: int | None = None,
    wu: str | None = None,
    agent: str | None = None,
    who: CallerClaims | None = None,
) -> Fields:
    """Return the data of the page.

    Args:
        store: The log.
        since: As for `Selection`; so `wu` and `agent`.
        who: The caller of the command; None if it has none.

    Raises:
        UsageError: `unknown-agent`.
    """
    with store.one_look(), WithoutCollector():
        db = store.db()
        only = Selection(store, since=since, wu=wu, agent=agent)
        sessions = SessionBars(store, only)
        lanes = Lanes(store, sessions.found)
        bars = sessions.bars(lanes)
        threads = ManyThreads(db, only, SIGNALS_MAX)
        signals = SignalMarks(db, threads, lanes)
        tasks = TaskSpans(db, only, lanes)
        claims = ClaimSpans(store, only, lanes)
        caller, you = _you(store, who, lanes)
        gates = GateMarks(store, only, sessions.current, tasks.rows, threads, lanes)
        waiting, waits_left = wait_rows(store, only, caller, lanes)
        units = {each["id"]: each.get("wu", "") for each in signals.marks}
        unread = _unread(store, only, sessions.current, lanes, units, gates.notes)
        nodes = NodeMarks(store, only, lanes)
        history = HistoryMarks(store, only, lanes)
        notes = [*filter(None, [only.remark(db)]), *_format_note(store), *history.notes, *gates.notes]
        figures = statistics(store, only, threads).as_json()
        branches = overlaps(store, notes)
    return {
        "format": FORMAT,
        "made": millis(store.now()),
        "repository": short(os.path.basename(store.repo.worktree or store.repo.common)),
        "generator": f"gitmem {__version__}",
        "filters": _filters(only),
        "omitted": _omitted(sessions, signals, tasks, claims, nodes, history, lanes, gates, waits_left),
        "notes": notes,
        "you": you,
        "agents": lanes.lanes(),
        "sessions": bars,
        "signals": signals.marks,
        "threads": signals.states,
        "tasks": tasks.spans,
        "claims": claims.spans,
        "commits": history.commits,
        "branches": history.branches,
        "nodes": nodes.nodes,
        "relations": nodes.relations,
        "board": {
            "gates": gates.closed,
            "passed": gates.passed,
            "unread": unread,
            "waits": waiting,
            "contested": claims.contests,
            "mismatches": tasks.mismatches,
            "overlaps": branches,
            "open_tasks": tasks.open,
        },
        "statistics": figures,
    }


def _omitted(
    sessions: SessionBars,
    signals: SignalMarks,
    tasks: TaskSpans,
    claims: ClaimSpans,
    nodes: NodeMarks,
    history: HistoryMarks,
    lanes: Lanes,
    gates: GateMarks,
    waits_left: int,
) -> dict[str, int]:
    """Return how many entries the limits left out, by the name of the list."""
    left = {
        "sessions": sessions.omitted,
        "signals": signals.omitted,
        "tasks": tasks.omitted,
        "claims": claims.omitted,
        "nodes": nodes.omitted,
        "relations": nodes.omitted_relations,
        "branches": history.omitted,
        "agents": lanes.omitted,
        "passed": gates.omitted,
        "gates": gates.unseen,
        "waits": waits_left,
        "contested": claims.omitted_contests,
    }
    return {name: count for name, count in left.items() if count > 0}


def _you(store: Store, who: CallerClaims | None, lanes: Lanes) -> tuple[Caller | None, Fields]:
    """Return the caller, and what the page says of it."""
    if who is None:
        return None, {}
    try:
        caller = callers.find(store, who)
    except UsageError as error:
        return None, {"why": short(f"{error.message} {error.hint}", WHY_MAX)}
    assert caller is not None  # `find` raises
    return caller, {"agent": lanes.of(caller.reader, None, caller.name)}


def ways(wait: open_work.Wait) -> list[str]:
    """Return the names of the answers by which whoever owes something can give it in the page."""
    if wait.what == open_work.ACCEPTANCE:
        return ["accept"]
    if wait.what == open_work.ANSWER:
        return ["agree", "reject", "reply"] if wait.thread_id else [ANSWER]
    return ["take", "refuse"] if wait.state == SUBMITTED else []


def wait_rows(store: Store, only: Selection, caller: Caller | None, lanes: Lanes) -> tuple[list[Fields], int]:
    """Return who waits for whom, and how many rows are left out."""
    found = open_work.waits(store, caller, only=only, limit=WAITS_MAX)
    shown: list[Fields] = []
    for each in found.rows:
        yours = each.you == open_work.OWES
        row: Fields = {
            "waiter": lanes.of(each.waiter, None, each.waiter_name),
            "yours": yours,
            "ways": ways(each) if yours else [],
            "what": each.what,
            "to_do": short(open_work.to_do(each)),
            "text": title(each.text),
            "since": millis_of(each.since),
            "id": each.id,
            "commands": each.next,
        }
        if each.owes:
            row["owes"] = lanes.of(each.owes, None, each.owes_name)
        else:
            row["anyone"] = short(each.owes_name)
        put(row, "state", each.state)
        put(row, "wu", each.wu_id)
        put(row, "thread", each.thread_id)
        if ANSWER in row["ways"]:
            _put_question(store, row)
        shown.append(row)
    return shown, found.more


def _put_question(store: Store, row: Fields) -> None:
    """Set what is asked; who can't see all of it can't answer in the page."""
    task = task_state.load_task(store.db(), row["id"])
    asked = task_state.question_of(task) if task is not None else None
    text, left = cut((asked.record.get("message") if asked is not None else None) or "")
    if text and not left:
        row["question"] = text
    else:
        row["ways"].remove(ANSWER)


def _format_note(store: Store) -> list[str]:
    """Return a sentence about a log of a newer format, of which this version may not understand all."""
    tip = store.git.tip(ref.LOG_REF)
    try:
        form = (
            ref.read_format(store.git, store.git.tree(store.git.commit(tip).tree))
            if tip is not None
            else None
        )
    except (GitmemError, KeyError):
        return ["The format of the log can't be read: gitmem doctor has the reason."]
    if form is None or form.format <= ref.FORMAT:
        return []
    return [
        f"The log has format {form.format}, and this gitmem knows format {ref.FORMAT}: something may be missing here."
    ]


def _filters(only: Selection) -> Fields:
    found: Fields = {}
    if only.since is not None:
        found["since"] = millis(only.since)
    put(found, "wu", only.wu)
    put(found, "agent", only.agent)
    return found


class HistoryMarks:
    """The commits and branches of the page.

    Attributes:
        commits: The newest, the oldest of them first.
        branches: Those whose tip is one of them, the newest first.
        omitted: How many branches are left out.
        notes: Sentences on what could not be read.
    """

    def __init__(self, store: Store, only: Selection, lanes: Lanes) -> None:
        self._lanes = lanes
        self.commits: list[Fields] = []
        self.branches: list[Fields] = []
        self.notes: list[str] = []
        self.omitted = 0
        try:
            self._add(store, (only.since or 0) // 1_000)
        except GitmemError as error:
            self.notes.append(f"The commits are left out: {error.message}")

    def _add(self, store: Store, since: int) -> None:
        refs = Refs(store)
        names: dict[str, list[str]] = {}
        for name, oid in refs.local.items():
            names.setdefault(oid, []).append(name)
        for name, of in refs.remote.items():
            for remote, oid in of.items():
                if refs.local.get(name) != oid:
                    names.setdefault(oid, []).append(f"{remote}/{name}")
        head = store.head()[0]
        found = history.newest_commits(
            store.repo.common, [*refs.commits(), *([head] if head else [])], COMMITS_MAX
        )
        if len(found) == COMMITS_MAX:  # there may be older ones
            self.notes.append(f"Only the newest {COMMITS_MAX:,} commits are here.")
        makers = self._makers(store, found)
        for commit in found:
            at = commit.seconds * 1_000
            own = [short(decoded(each)) for each in names.get(commit.oid, ())]
            self.branches += [{"name": each, "commit": commit.oid, "at": at} for each in own]
            if at >= since:
                on = own or [short(decoded(each)) for each in names.get(commit.tip, ())]
                mark: Fields = {
                    "id": commit.oid,
                    "at": at,
                    "author": short(commit.author),
                    "subject": short(commit.subject),
                    "branches": on[:OF_COMMIT_MAX],
                }
                self._put_maker(mark, makers.get(commit.oid))
                put(mark, "person", self._lanes.of_person(commit.mail))
                self.commits.append(mark)
        self.commits.reverse()
        self.omitted = max(0, len(self.branches) - BRANCHES_MAX)
        del self.branches[BRANCHES_MAX:]

    def _makers(self, store: Store, commits: Sequence[UserCommit]) -> dict[str, Makers]:
        """Return who made the commits that have records, as far as the time allows, the newest first."""
        db, until = store.db(), time.monotonic() + MAKER_SECONDS
        known = {commit for commit, _ in recorded(db, [each.oid for each in commits])}
        here = MadeHere(store.repo)
        found: dict[str, Makers] = {}
        for commit in commits:
            if commit.oid in known:
                if time.monotonic() > until:
                    self.notes.append("Who made older commits is left out: their records are too many.")
                    break
                found[commit.oid] = find_makers(db, commit.oid, here, committed=commit.seconds)
        return found

    def _put_maker(self, mark: Fields, found: Makers | None) -> None:
        """Set who made a commit, if that is one session: nobody is guessed."""
        if found is None or len(found.made) != 1 or not found.is_whole:
            return
        (line,) = found.made.values()
        made = line.record
        mark["agent"] = self._lanes.of(made["sender_identity"], None, made.get("sender_name"))
        put(mark, "session", made.get("sender_session"))
        put(mark, "wu", made.get("wu_id"))
        put(mark, "task", made.get("task_id"))
        if found.is_inferred:
            mark["inferred"] = True
        if not line.is_own:
            mark["foreign"] = True


def overlaps(store: Store, notes: list[str]) -> list[Fields]:
    """Return the branches that change the same files, those that conflict first.

    Args:
        store: The log.
        notes: Receives a sentence if they can't be compared, or are too many.
    """
    try:
        found = overlap.overlap(store, seconds=OVERLAP_SECONDS)
    except GitmemError as error:
        notes.append(f"Branches were not compared: {error.message}")
        return []
    rows: list[Fields] = []
    for each in found.overlaps[:OVERLAPS_MAX]:
        row: Fields = {
            "branches": [short(side.branch) for side in each.sides],
            "paths": [short(path) for path in (each.conflicting or each.files)[:PATHS_MAX]],
        }
        if each.conflicts is not None:
            row["conflicts"] = each.conflicts
        rows.append(row)
    if len(found.overlaps) > len(rows):
        notes.append(f"Of the branches that overlap, {len(found.overlaps) - len(rows):,} pairs are left out.")
    return rows


def _unread(
    store: Store,
    only: Selection,
    current: list[Presence],
    lanes: Lanes,
    units: dict[str, str],
    notes: list[str],
) -> list[Fields]:
    """Return how many signals agents at work have not read, those with the most first, as the roster counts.

    Args:
        units: The work unit of each signal of the page; with a work unit only its signals count.
    """
    db, now = store.db(), store.now()
    steps = StepLimit(db, UNREAD_STEPS)
    found: dict[str, Fields] = {}
    for one in current:
        ids = steps.ask(_unread_ids, db, one, now)
        if ids is None:
            notes.append("The unread signals of some agents were not counted: there are too many.")
            break
        of_units: dict[str, int] = {}
        for unit in (units.get(id, "") for id in ids if not only.unit or only.has_unit(units.get(id))):
            of_units[unit] = of_units.get(unit, 0) + 1
        count = sum(of_units.values())
        lane = lanes.of(one.reader) if count else ""
        if count and (lane not in found or count > found[lane]["count"]):
            units_shown = sorted(of_units.items(), key=lambda unit: -unit[1])[:UNITS_MAX]
            found[lane] = {"agent": lane, "count": count, "units": dict(units_shown)}
    return sorted(found.values(), key=lambda each: -each["count"])


def _unread_ids(db: sqlite3.Connection, one: Presence, now: int) -> set[str]:
    workspace = one.record.get("workspace_id")
    rows = mailbox.unread_ids(db, one.reader, one.session_id, workspace, now)
    return {id for _, id in rows}


class GateMarks:
    """The gates of the page.

    Args:
        current: The sessions at work.
        threads: The threads of the page.
        tasks: Its tasks; a session works on the units of those that it has, too.
        most: How many gates are looked at.

    Attributes:
        closed: The gates that an agent at work can't pass now, those with the most signals first.
        passed: Who passed a rule with a reason, the oldest first.
        omitted: How many of these are left out.
        unseen: How many gates were not looked at.
        notes: Sentences on what was not looked at.
    """

    def __init__(
        self,
        store: Store,
        only: Selection,
        current: Sequence[Presence],
        tasks: Sequence[TaskRow],
        threads: ManyThreads,
        lanes: Lanes,
        *,
        most: int = GATES_MAX,
    ) -> None:
        self._most = most
        self._store = store
        self._lanes = lanes
        newest = audits.newest(store.db(), AUDITS_MAX, AUDIT_BYTES)
        self.unseen = 0
        self.notes: list[str] = []
        self.closed = self._closed(only, current, tasks, threads)
        found = [each for each in newest if _is_wanted(each, only)]
        self.omitted = max(0, len(found) - PASSED_MAX) + entities.count(store.db(), "audit") - len(newest)
        self.passed = [self._passed(each) for each in found[:PASSED_MAX]][::-1]

    def _closed(
        self, only: Selection, current: Sequence[Presence], tasks: Sequence[TaskRow], threads: ManyThreads
    ) -> list[Fields]:
        found: dict[tuple[str, str], Fields] = {}
        db = self._store.db()
        initiatives: dict[str, list[str]] = {}
        works, until = list(_works(only, current, tasks)), time.thread_time() + GATE_SECONDS
        for place, (one, unit) in enumerate(works):
            if place == self._most or time.thread_time() > until:
                self.unseen = len(works) - place
                self.notes.append(_LATE)
                break
            key = unit_key(unit)
            if key not in initiatives:
                initiatives[key] = initiatives_of(db, unit)
            caller = of_session(one, "page")
            state, _ = gate.look(self._store, caller, unit, initiatives[key], threads_of=threads.cache)
            count = 0 if state.open else state.unread + state.unanswered
            lane = self._lanes.of(one.reader) if count else ""
            known = found.get((lane, key))
            if count and (known is None or known["unread"] + known["unanswered"] < count):
                found[lane, key] = self._gate(lane, unit, state)
        return sorted(
            found.values(), key=lambda each: (-each["unread"] - each["unanswered"], each["agent"], each["wu"])
        )

    def _gate(self, lane: str, unit: str, state: gate.Gate) -> Fields:
        shown: Fields = {
            "agent": lane,
            "wu": short(unit),
            "unread": state.unread,
            "unanswered": state.unanswered,
            "blockers": [self._blocker(each) for each in state.signals],
        }
        if state.more:
            shown["more"] = state.more
        return shown

    def _blocker(self, signal: BlockingSignal) -> Fields:
        shown: Fields = {
            "signal": signal["signal_id"],
            "why": signal["why"],
            "from": self._lanes.of(signal["sender_identity"], None, signal["sender_name"]),
            "at": millis_of(signal["created_at"]),
        }
        put(shown, "thread", signal["thread_id"])
        return shown

    def _passed(self, audit: AuditRecord) -> Fields:
        is_of_claims = audit["action"] in _OF_CLAIMS
        claims = [each for each in audits.claim_ids(audit) if is_id("claim", each)] if is_of_claims else []
        reason = audit["reason"].rpartition(" (")[0] if claims else audit["reason"]
        at = millis_of(audit["at"])
        shown: Fields = {
            "id": audit["audit_id"],
            "at": at,
            "agent": self._lanes.of(audit["reader_identity"], at, audit.get("sender_name")),
            "rule": short(audit["action"]),
            "reason": cut(reason, REASON_MAX)[0],
            "signals": list((audit.get("signal_ids") or ())[:OF_ONE_MAX]),
            "claims": claims[:OF_ONE_MAX],
        }
        if is_of_claims:
            shown["past"] = short(audits.past_claims(self._store.db(), audit), SHORT_MAX)
        put(shown, "session", audit.get("sender_session"))
        put(shown, "wu", audit.get("wu_id"))
        return shown


def _works(
    only: Selection, current: Sequence[Presence], tasks: Sequence[TaskRow]
) -> Iterator[tuple[Presence, str]]:
    """Yield each session at work with each work unit that it works on."""
    held: dict[str, list[str]] = {}
    for task in tasks:
        if task.holder_session and task.wu_id and task.until:
            held.setdefault(str(task.holder_session), []).append(str(task.wu_id))
    for one in current:
        units = {unit_key(each): each for each in (*held.get(one.session_id, ()), one.wu_id) if each}
        for unit in units.values():
            if only.has_unit(unit):
                yield one, unit


def _is_wanted(audit: AuditRecord, only: Selection) -> bool:
    return (
        only.has_unit(audit.get("wu_id"))
        and only.has_any(audit["reader_identity"], audit.get("sender_session"))
        and millis_of(audit["at"]) >= (only.since or 0) // 1_000
    )


class NodeMarks:
    """The nodes of the page.

    Attributes:
        nodes: The last changed, the oldest of them first.
        relations: Those between them.
        omitted: How many nodes are left out; `omitted_relations` of the relations between the others.
    """

    def __init__(self, store: Store, only: Selection, lanes: Lanes) -> None:
        self._lanes = lanes
        self._now = store.now()
        db = store.db()
        where = [f"n.state < {DELETED}", *(["n.touched >= :since"] if only.since else [])]
        where += ["n.wu_id = :unit"] if only.unit else []
        where += [of_readers("n", "sender")] if only.readers is not None else []
        found, self.omitted = stored_nodes.select_page(
            db, " AND ".join(where), only.values, order="n.touched DESC, n.id", limit=NODES_MAX
        )
        ids = [node.id for node in found]
        patches = stored_nodes.patches_of(db, ids)
        ends = relations.ends_of(db, ids)
        changed = anchors.changed(store, found)
        self.nodes = [
            self._node(each, patches.get(each.id, ()), changed.get(each.id), ends.get(each.id))
            for each in found
        ][::-1]
        shown = set(ids)
        sums = [(node.summarized_into, node.id, SUMMARIZES) for node in found if node.summarized_into]
        every = [*(each for each in sums if each[0] in shown), *relations.between(db, ids)]
        self.omitted_relations = max(0, len(every) - RELATIONS_MAX)
        self.relations: list[Fields] = [
            {"from": start, "to": end, "type": short(type), "supersedes": type == SUPERSEDES}
            for start, end, type in every[:RELATIONS_MAX]
        ]

    def _node(
        self,
        node: VersionedNode,
        patches: list[PatchChange] | tuple[()],
        changed: dict[str, PathChanges] | None,
        end: str | None,
    ) -> Fields:
        at = millis(node.created)
        text, left = cut(node.content)
        shown: Fields = {
            "id": node.id,
            "type": node.type,
            "lifecycle": node.lifecycle,
            "status": node.status,
            "text": text,
            "at": at,
            "agent": self._lanes.of(node.sender_identity, at, node.sender_name),
            "tags": [short(each) for each in node.tags[:LISTED_MAX]],
            "paths": [short(each) for each in node.paths[:LISTED_MAX]],
            "decay": round(min(1.0, decay.score(node, now=self._now)), 3),
            "history": self._history(node, patches),
        }
        if left:
            shown["cut"] = left
        if node.updated is not None:
            shown["updated"] = millis(node.updated)
        put(shown, "wu", node.wu_id)
        if changed:
            put(shown, "stale", anchors.stale_text(changed))
            commits = dict.fromkeys(each.last for each in changed.values() if each.last)
            shown["stale_by"] = list(commits)[:STALE_BY_MAX]
        put(shown, "superseded_by", end)
        return shown

    def _history(self, node: VersionedNode, patches: list[PatchChange] | tuple[()]) -> list[Fields]:
        """Return who created a node and who changed what of it, the last changes."""
        changes = {each.id: each for each in sorted(patches, key=lambda each: each.line)}
        made: Fields = {
            "at": millis(node.created),
            "agent": self._lanes.of(node.sender_identity),
            "what": "created",
        }
        later: list[Fields] = [
            {
                "at": millis_of(each.record["at"]),
                "agent": self._lanes.of(each.record["sender_identity"], None, each.record.get("sender_name")),
                "what": _what(each),
            }
            for each in changes.values()
        ]
        return [made, *later[-CHANGES_MAX:]]


def _what(change: PatchChange) -> str:
    """Return what a patch changed, in words."""
    fields = sorted(change.touched)
    fields += ["metadata"] if change.record.get("metadata") or "metadata" in change.clears else []
    cleared = change.clears.intersection(("closed", "archived", "deleted"))
    if cleared:
        return f"reopened ({', '.join(sorted(cleared))} cleared)"
    words = [word for word in ("closed", "archived", "deleted") if word in fields]
    reason = change.record.get("reason")
    is_verified = fields == ["head"]  # nothing but the commit at which its content is right
    changed = f"changed {', '.join(fields) or 'nothing'}"
    text = ", ".join(words) or (
        f"verified at {(change.record.get('head') or '')[:12]}" if is_verified else changed
    )
    return short(f"{text}: {reason}" if reason else text)
