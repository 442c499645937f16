"""Why a line or a commit is as it is: who made it, on which task, what was agreed and known, and whether that holds."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from ..agents import heartbeats, mailbox, presence
from ..errors import UsageError
from ..git import files, history
from ..git.config import remotes
from ..git.processes import GitOutputError, GitTimeoutError
from ..index import entities
from ..index.resolve_id import shown_by
from ..log.lines import format_at, parse_at
from ..log.ref import LOG_REF
from ..memory import anchors, relations, stored_nodes
from ..memory.node_tables import NODE
from ..order.thread import FoldedThread
from ..outcome import Outcome, Struct, command, operands
from ..records.ids import unit_key
from ..repo import READING
from ..signals import threads
from ..signals.threads import Proposal
from ..text.sanitize import sanitize, title
from ..work import task_rules, task_state
from . import commits
from .commits import SECOND, MadeHere
from .line_authors import WHOLE, LineAuthors, runs
from .other_tools import HUMAN, OtherTools

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence

    from ..agents.presence import ShownNames
    from ..git.history import CommitFacts, Lines
    from ..order.node import VersionedNode
    from ..order.task import FoldedTask
    from ..store import Store
    from .commits import CommitLine
    from .line_authors import Author
    from .other_tools import Word


NODES_MAX = 5
LOOKED_AT = 40
HOLDS, CHANGED = "holds", "changed since"
_OPEN = "n.state < 2 AND NOT n.sensitive AND n.hidden_by_other = 0"
_OF_UNIT = f"n.wu_id = ? AND n.type <> 'checkpoint' AND {_OPEN}"
_NEWEST = "n.touched DESC, n.id"


class KnownNode(Outcome):
    """A node about a file or work unit of a commit.

    Attributes:
        by: `path` or `work unit`: how it belongs to the commit.
        text: Its first line as it was when the commit was made; for a later node as it is now.
        known_then: Whether it was written before the commit.
        now: `holds`, or why not: superseded, closed, stale, or changed since.
        superseded_by: The node that has replaced it.
    """

    def __init__(
        self,
        node: VersionedNode,
        then: VersionedNode | None,
        by: str,
        *,
        superseded_by: str | None,
        stale: str | None,
    ) -> None:
        shown = then or node
        self.id = shown.id
        self.type = shown.type
        self.by = by
        self.text = title(shown.content)
        self.sender_name = shown.sender_name or shown.sender_identity
        self.known_then = then is not None
        self.superseded_by = superseded_by
        if superseded_by is not None:
            self.now = f"superseded by {superseded_by}"
        elif node.closed:
            self.now = "closed"
        elif stale:
            self.now = stale
        else:
            self.now = CHANGED if shown.content != node.content else HOLDS


def nodes(store: Store, paths: Sequence[str], wu_id: str | None, committed: int) -> list[KnownNode]:
    """Return the nodes that are anchored to files or to the work unit of a commit: those known then first.

    Args:
        paths: The files.
        wu_id: The work unit.
        committed: When the commit was made, in microseconds.
    """
    db = store.db()
    ids = _ids(db, paths, wu_id)
    found = stored_nodes.load(db, list(ids), whole=False)
    found.sort(
        key=lambda node: (
            node.created > committed,
            ids[node.id] != "path",
            node.type != "decision",
            -node.created,
        )
    )
    some = found[:NODES_MAX]
    shown = [node.id for node in some]
    stale, superseded = anchors.stale(store, some), relations.ends_of(db, shown)
    # Only the lines up to then count, as with `--as-of`, which opens the whole log of a time: minutes for a large one.
    known = [node.id for node in some if node.created <= committed]
    then = stored_nodes.fold_all(entities.lines_of(db, NODE, known), until=format_at(committed), whole=False)
    return [
        KnownNode(
            node,
            then.get(node.id),
            ids[node.id],
            superseded_by=superseded.get(node.id),
            stale=stale.get(node.id),
        )
        for node in some
    ]


def _ids(db: sqlite3.Connection, paths: Sequence[str], wu_id: str | None) -> dict[str, str]:
    """Return the ids of nodes, and how each belongs to the commit."""
    wanted = list(dict.fromkeys(each for path in paths for each in _with_folders(path)))[:LOOKED_AT]
    found: dict[str, str] = {}
    if wanted:
        among = f"path IN ({', '.join('?' * len(wanted))})"
        of_path = f"{stored_nodes.has_path(among)} AND {_OPEN}"
        ids = stored_nodes.select_ids(db, of_path, wanted, order=_NEWEST, limit=LOOKED_AT)
        found.update(dict.fromkeys(ids, "path"))
    if wu_id:
        for id in stored_nodes.select_ids(db, _OF_UNIT, (unit_key(wu_id),), order=_NEWEST, limit=LOOKED_AT):
            found.setdefault(id, "work unit")
    return found


def _with_folders(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(len(parts), 0, -1)]


THREADS_MAX = 3  # of a work unit
SIGNALS_LOOKED_AT = 20
RECIPIENTS_MAX = 20
BY_TASK, BY_UNIT = "task", "work unit"


class AgreedThread(Outcome):
    """A thread about a commit's task or work unit.

    Attributes:
        by: `task` or `work unit`: how it belongs to the commit.
        agreed_on: The proposal that every party has agreed to; None if there is none.
        in_force: That proposal, else the latest one, or those that conflict.
        agreed, rejected, pending: The names of those who did not write it, by where they stand now.
        agreed_then: Those who had agreed when the commit was made, to the proposal in force then.
        replaced: Whether another one, or none, is in force now.
        ended: Why that one is not: `replaced` or `withdrawn`; "" if it is.
        reversed: Those who had agreed then, and are against what is in force now.
        settled: What became of the task of what is in force, such as "taken by …"; then nobody is pending.
    """

    thread_id: str
    by: str
    agreed_on: Proposal | None = None
    in_force: list[Proposal] = []
    agreed: list[str] = []
    rejected: list[str] = []
    pending: list[str] = []
    agreed_then: list[str] = []
    replaced: bool = False
    ended: str = ""
    reversed: list[str] = []
    settled: str = ""


class TaskOfCommit(Outcome):
    """The task that the record of a commit names, also one that is not here: its title and state."""

    def __init__(self, task_id: str, folded: FoldedTask | None, names: ShownNames) -> None:
        record = folded.record if folded is not None else None
        caller = record["sender_identity"] if record is not None else ""
        self.task_id = task_id
        self.title = title(record["message"]) if record is not None else ""
        self.state = folded.state if folded is not None else "unknown"
        self.caller = names.get(caller) or caller
        self.thread_id = record["thread_id"] if record is not None else None


def threads_of(
    db: sqlite3.Connection, task: FoldedTask | None, wu_id: str | None, committed: int
) -> list[AgreedThread]:
    """Return the threads about a commit.

    Args:
        task: Its task.
        wu_id: Its work unit.
        committed: When it was made, in microseconds.
    """
    task_thread = task.record["thread_id"] if task is not None else None
    wanted = [(task_thread, BY_TASK)] if task_thread else []
    if wu_id:
        wanted += [
            (each, BY_UNIT)
            for each in mailbox.threads_of_unit(db, unit_key(wu_id), format_at(committed), SIGNALS_LOOKED_AT)
            if each != task_thread
        ]
    found = [_thread(db, thread_id, by, committed) for thread_id, by in wanted]
    kept = [
        each
        for each in found
        if each is not None and (each.by == BY_TASK or each.agreed_then or each.rejected)
    ]
    return kept[:THREADS_MAX]


def _thread(db: sqlite3.Connection, thread_id: str, by: str, committed: int) -> AgreedThread | None:
    signals = threads.load(db, thread_id)
    folded = FoldedThread(thread_id, signals)
    if folded.root is None:
        return None
    found = AgreedThread(thread_id, by)
    names = presence.names_by_reader(db)
    found.in_force = [Proposal(each, names) for each in folded.in_force.values()]
    found.agreed_on = found.in_force[0] if folded.agreed_on is not None else None
    found.settled = folded.settled
    before = FoldedThread(
        thread_id, {id: each for id, each in signals.items() if parse_at(each.record["at"]) <= committed}
    )
    found.replaced = bool(before.in_force) and before.in_force.keys() != folded.in_force.keys()
    found.ended = next(filter(None, map(folded.ended, before.in_force)), "") if found.replaced else ""
    lists = {"agree": found.agreed, "reject": found.rejected, "pending": found.pending}
    for reader in list(folded.parties if folded.in_force else ())[:RECIPIENTS_MAX]:
        name = names.get(reader) or reader
        now, _ = folded.stands(reader)
        is_author = any(each.is_by(reader) for each in folded.in_force.values())
        if not (is_author and now != "reject") and (now != "pending" or not folded.settled):
            lists[now].append(name)
        if reader in before.asked and before.stands(reader)[0] == "agree":
            found.agreed_then.append(name)
            if now not in ("agree", "pending"):
                found.reversed.append(name)
    return found


class MakerRow(Outcome):
    """A session that made or rewrote a commit.

    Attributes:
        agent, name, role: Of the session: agent identity or session id, display name, role.
        evidence: `environment`, `output`, or `alone`, which is inferred.
        here: Whether this clone has recorded it; otherwise the writer says so.
        wu_id: The work unit of its task, else that of the session, as for claims.
        lines: The ranges of lines that it wrote, of those that were asked about; none where it is not known which of several did.
    """

    def __init__(self, db: sqlite3.Connection, line: CommitLine, lines: Sequence[int] = ()) -> None:
        record = line.record
        self.session_id = record.get("sender_session")
        self.agent = record["sender_identity"]
        names = presence.names_by_session(db)
        self.name = (
            (self.session_id and names.get(self.session_id)) or record.get("sender_name") or self.agent
        )
        self.role = commits.role_of_session(db, self.session_id)
        self.action = record["action"]
        self.evidence = record["evidence"]
        self.inferred = self.evidence == commits.ALONE
        self.here = line.is_own
        self.task_id = record.get("task_id")
        self.wu_id = task_rules.unit_of(db, self.task_id) or record.get("wu_id")
        self.lines = [list(each) for each in runs(lines)[:RANGES_MAX]]


class ToolWord(Outcome):
    """What another tool says of who wrote lines. Nobody has signed it.

    Attributes:
        by: Whose word it is: `git-ai` or `agent-trace`.
        commit: The commit that it is about: this one, or one that this one has squashed or repeated.
        kind: `ai`, `human`, `mixed` or `unknown`.
        client, model, session: The coding agent, its model, and its own id of the conversation.
        person: Who typed it.
        lines: The ranges of lines, of those that were asked about.
        conflicts: Whether a record of a session, or the other tool, says otherwise.
    """

    by: str
    commit: str
    kind: str
    client: str | None
    model: str | None
    session: str | None
    person: str | None
    lines: list[list[int]]
    conflicts: bool


def _is_same(store: Store, word: Word, session_id: str | None, agent: str) -> bool:
    """Return whether another tool means a session, as far as it tells."""
    if word.kind == HUMAN:
        return False
    if session_id and word.session in (session_id, f"gitmem:{session_id}"):
        return True  # our own export
    if word.session:
        one = presence.of_client(store, word.session) or presence.of_client(store, word.session, ended=True)
        if one is not None:
            return one.session_id == session_id
    found = presence.get(store, session_id) if session_id else None
    client = (found.record.get("client") if found is not None else None) or agent.partition(":")[0]
    return word.client is None or client_word(word.client) == client_word(client)


def client_word(client: str) -> str:
    """Return what a coding agent is called by all tools: `claude` for `claude-code`."""
    return re.split("[^a-z0-9]", client.lower(), maxsplit=1)[0]


class Story(Outcome):
    """What is known of one commit.

    Attributes:
        lines, line_count: The ranges of the file that it made, and their number of lines.
        paths: Names of the file: now, and in the commit.
        made_by: The sessions that made it, or parts of it; several from other clones may contradict each other.
        said: What other tools say of these lines.
        is_whole: Whether these are all, as far as records tell.
        rewritten_by: The sessions that only rebased, picked or squashed it.
        now: Whether what it is based on still holds: `holds`, or what has changed.
    """

    def __init__(self, commit: str, facts: CommitFacts, paths: Sequence[str]) -> None:
        self.commit = commit
        self.subject = facts.subject
        self.author = facts.author
        self.committed_at = format_at(facts.committed * SECOND)
        self.lines: list[list[int]] = []
        self.line_count = 0
        self.paths = list(paths)
        self.made_by: list[MakerRow] = []
        self.said: list[ToolWord] = []
        self.is_whole = True
        self.rewritten_by: list[MakerRow] = []
        self.wu_id: str | None = None
        self.task: TaskOfCommit | None = None
        self.threads: list[AgreedThread] = []
        self.nodes: list[KnownNode] = []
        self.now: list[str] = []


def story_of(
    authors: LineAuthors,
    store: Store,
    commit: str,
    facts: CommitFacts,
    patch_id: str | None,
    paths: Sequence[str],
    asked: Sequence[Lines],
) -> tuple[Story, dict[str, dict[int, Author]]]:
    """Return the story of a commit, and who wrote its lines: by their file and number in the commit.

    Args:
        patch_id: The patch id of its changes, if no record names it.
        paths: The file that was asked about.
        asked: The lines that were asked about.
    """
    db = store.db()
    found = Story(commit, facts, paths)
    found.lines = [[each.first, each.first + each.length - 1] for each in asked[:RANGES_MAX]]
    found.line_count = sum(each.length for each in asked)
    places: dict[str | None, dict[int, list[int]]] = {} if asked else {None: {WHOLE: []}}
    left = LINES_MAX
    for each in asked:
        for at in range(min(each.length, left)):
            places.setdefault(each.path, {}).setdefault(each.was + at, []).append(each.first + at)
        left -= min(each.length, left)
    if found.line_count > LINES_MAX:
        authors.remarks.append(
            f"{commit[:12]} has {found.line_count:,} of the lines; who wrote each was looked for in the first {LINES_MAX:,}."
        )
    wrote: dict[str, dict[int, Author]] = {}
    rows: list[tuple[Author, list[int]]] = []
    for path, numbers in places.items():
        makers, lines = authors.of(commit, facts, patch_id, path, sorted(numbers))
        rows += [(author, numbers[number]) for number, author in lines.items()]
        wrote[path or ""] = lines
    made: dict[str, tuple[CommitLine, list[int]]] = {}
    for author, shown in rows:
        for session, line in author.made.items():
            made.setdefault(session, (line, []))[1].extend(shown if author.is_certain else [])
    found.made_by = [MakerRow(db, line, sorted(shown)) for line, shown in made.values()]
    found.said = _said(store, rows)
    found.rewritten_by = [
        MakerRow(db, each) for session, each in makers.rewrote.items() if session not in made
    ]
    found.is_whole = makers.is_whole or (
        0 < found.line_count <= LINES_MAX and all(each.made and each.is_certain for each, _ in rows)
    )
    moment = (facts.authored if made else facts.committed) * SECOND + SECOND - 1
    _add_context(store, found, moment)
    found.now = _now(found)
    return found, wrote


def _said(store: Store, rows: Sequence[tuple[Author, Sequence[int]]]) -> list[ToolWord]:
    """Return what other tools say, and whether a session or the other tool contradicts it."""
    found: dict[tuple[Word, bool], list[int]] = {}
    same: dict[tuple[Word, str], bool] = {}
    for author, shown in rows:
        for word in author.words:
            for session, line in author.made.items():
                key = (word._replace(commit=""), session)
                if key not in same:
                    record = line.record
                    same[key] = _is_same(store, word, record.get("sender_session"), record["sender_identity"])
            if author.made:
                conflicts = not any(same[word._replace(commit=""), session] for session in author.made)
            else:
                conflicts = any(_differ(word, each) for each in author.words)
            found.setdefault((word, conflicts), []).extend(shown)
    return [
        ToolWord(*word, [list(each) for each in runs(sorted(shown))[:RANGES_MAX]], conflicts)
        for (word, conflicts), shown in found.items()
    ]


def _differ(one: Word, other: Word) -> bool:
    """Return whether two tools contradict each other."""
    clients = {client_word(each.client) for each in (one, other) if each.client}
    return one.tool != other.tool and (one.kind != other.kind or len(clients) > 1)


def _add_context(store: Store, found: Story, moment: int) -> None:
    """Add task, threads and memory."""
    db, task = store.db(), None
    first = next((each for each in found.made_by if each.task_id or each.wu_id), None)
    if first is not None:
        found.wu_id = first.wu_id
        if first.task_id:
            task = task_state.load_task(db, first.task_id)
            found.task = TaskOfCommit(first.task_id, task, presence.names_by_reader(db))
    found.threads = threads_of(db, task, found.wu_id, moment)
    found.nodes = nodes(store, found.paths, found.wu_id, moment)


def _now(found: Story) -> list[str]:
    """Return what has changed of that which a commit is based on."""
    changes = []
    for each in found.threads:
        if each.agreed_then and each.replaced:
            changes.append(f"{each.ended} in {each.thread_id}{_by(each)}")
        elif each.reversed:
            changes.append(
                f"{', '.join(each.reversed)} no longer agree{'s' if len(each.reversed) == 1 else ''} in {each.thread_id}"
            )
        elif each.rejected and each.agreed_on is None and each.by == BY_TASK:
            changes.append(f"rejected in {each.thread_id} by {', '.join(each.rejected)}")
    changed = (node for node in found.nodes if node.known_then and node.now != HOLDS)
    return [*changes, *(f"{node.id} {node.now}" for node in changed)]


def _by(each: AgreedThread) -> str:
    now = ", ".join(one.signal_id for one in each.in_force)
    if each.ended == "replaced":
        return f" by {now}"
    return f"; now in force: {now}" if now else "; nothing is in force"


COMMITS_MAX = 10  # that one answer explains, those of most lines
RANGES_MAX = 50  # of lines that one commit is shown with
LINES_MAX = 20_000  # of one commit whose authors are looked for one by one
SECONDS = 10.0
SHORT = 12

_LINES = re.compile(r"(.+):([0-9]{1,9})(?:-([0-9]{1,9}))?", re.DOTALL)
BINARY_BYTES = 8_000  # at the beginning of a file, in which git looks for NUL
SHOWN_MAX = 120


class Why(Outcome):
    """Why lines or a commit are as they are.

    Attributes:
        path: The file, or None for a commit.
        lines: First and last line that were asked about, or None.
        uncommitted: The number of these lines that are not committed.
        commits: The commits behind them, those of most lines first.
        more: The number of further commits.
        remarks: What limits the answer.
    """

    def __init__(self, found: Target) -> None:
        self.path = found.path
        self.lines = list(found.lines) if found.lines is not None else None
        self.uncommitted = 0
        self.commits: list[Story] = []
        self.more = 0
        self.remarks: list[str] = []
        self.next: list[str] = []


class Told(NamedTuple):
    """The story of a commit, and who wrote its lines: by their file and number in the commit."""

    story: Story
    facts: CommitFacts
    wrote: dict[str, dict[int, Author]]


def why(store: Store, text: str, *, folder: str, is_early: bool = False) -> Why:
    """Return why lines or a commit are as they are.

    Args:
        text: `FILE`, `FILE:LINE`, `FILE:FIRST-LAST` or a commit.
        folder: The current folder: paths are relative to it.
        is_early: Whether commits of a moment ago may not have been recorded yet.

    Raises:
        UsageError: There is no such file, line or commit.
        StoreError: git failed, or did not end in time.
    """
    with store.one_look():
        return tell(store, text, folder=folder, is_early=is_early)[0]


def tell(store: Store, text: str, *, folder: str, is_early: bool = False) -> tuple[Why, list[Told]]:
    """Return the same as `why`, and who wrote each line."""
    asked = find(store, folder, text)
    answer = Why(asked)
    if asked.commit is not None:
        behind: dict[str, list[Lines]] = {asked.commit: []}
    else:
        behind = _behind(store, asked, answer)
    shown = sorted(behind, key=lambda oid: -sum(each.length for each in behind[oid]))
    answer.more = len(shown) - len(shown[:COMMITS_MAX])
    common = store.repo.common
    facts = history.facts_of(common, shown[:COMMITS_MAX], SECONDS)
    shown = [oid for oid in shown[:COMMITS_MAX] if oid in facts]
    recorded = {commit for commit, _ in commits.recorded(store.db(), shown)}
    patches = history.patch_ids(common, [oid for oid in shown if oid not in recorded], SECONDS)
    tools = OtherTools(store)
    authors = LineAuthors(store, MadeHere(store.repo), tools, SECONDS)
    told = []
    for oid in shown:
        paths = _paths(asked, behind[oid])
        story, wrote = story_of(authors, store, oid, facts[oid], patches.get(oid), paths, behind[oid])
        answer.commits.append(story)
        told.append(Told(story, facts[oid], wrote))
    _add_remarks(store, answer, facts)
    lacks_log = store.git.tip(LOG_REF) is None and not store.waits() and bool(remotes(common))
    if lacks_log:
        answer.remarks.append("This clone has no log yet. It may be on the remote: `gitmem sync` fetches it.")
    if is_early and not all(each.made_by for each in answer.commits):
        answer.remarks.append("A commit of a moment ago is not yet noted: run it again.")
    if tools and not all(each.made_by or each.said for each in answer.commits):
        tools.look_for_missing()
    answer.remarks += [*tools.remarks, *authors.remarks]
    answer.next = _next(answer, has_hook=heartbeats.has_commit_hook(store.repo), lacks_log=lacks_log)
    return answer, told


def _behind(store: Store, asked: Target, answer: Why) -> dict[str, list[Lines]]:
    """Return the commits behind lines of a file, each with its lines."""
    repo, path = store.repo, asked.path or ""
    try:
        found = history.blame(repo.common, repo.git_dir, repo.worktree or "", path, asked.ranges)
    except history.NotInHistoryError:
        raise not_committed(path) from None
    except history.TooFewLinesError as error:
        raise too_few(path, int(error.args[0])) from None
    except history.IgnoreRevsError:
        raise UsageError(
            "git cannot read the file that blame.ignoreRevsFile names.",
            hint="Correct the setting, or create the file.",
            code="ignore-revs",
            next=["git config --show-origin --get-all blame.ignoreRevsFile"],
        ) from None
    except (GitTimeoutError, GitOutputError) as error:
        error.hint = "Ask about a few lines, such as FILE:10-20."
        raise
    if not found:
        if history.last_change(repo.common, repo.git_dir, path) is None:
            raise not_committed(path)
        answer.remarks.append(f"{sanitize(path, keep='')} is empty: it has no lines.")
    last = max((each.first + each.length - 1 for each in found), default=0)
    if found and asked.lines is not None and last < asked.lines[1]:
        shown = f"line {last} is" if last == asked.lines[0] else f"lines {asked.lines[0]}-{last} are"
        has = "1 line" if last == 1 else f"{last} lines"
        answer.remarks.append(f"{sanitize(path, keep='')} has {has}: {shown} shown.")
    behind: dict[str, list[Lines]] = {}
    for each in found:
        if each.commit is None:
            answer.uncommitted += each.length
        else:
            behind.setdefault(each.commit, []).append(each)
    return behind


def _paths(asked: Target, lines: Sequence[Lines]) -> list[str]:
    """Return the names of the file: now, and in the commit."""
    return list(dict.fromkeys([*([asked.path] if asked.path else []), *(each.path for each in lines)]))


def _add_remarks(store: Store, answer: Why, facts: Mapping[str, CommitFacts]) -> None:
    if answer.uncommitted:
        count = answer.uncommitted
        are = "1 line is" if count == 1 else f"{count} lines are"
        answer.remarks.append(f"{are} not committed yet: nobody has recorded why.")
    cut = files.shallow_commits(store.repo.common)
    for story in answer.commits:
        if story.commit in cut:
            older = "the lines may be older" if answer.path is not None else "it seems to add all files"
            answer.remarks.append(
                f"History ends at {story.commit[:SHORT]}, because this clone is shallow: {older}. `git fetch --unshallow`"
            )
    if answer.path is None and answer.commits and len(facts[answer.commits[0].commit].parents) > 1:
        answer.remarks.append("It is a merge commit: its lines come from the commits that it merges.")


def _next(answer: Why, *, has_hook: bool, lacks_log: bool) -> list[str]:
    """Return the commands that show more: the thread, the node, the task, the memory of that time."""
    found = ["gitmem sync"] if lacks_log else []
    for story in answer.commits[:2]:
        found += [command("gitmem", "thread", each.thread_id) for each in story.threads[:1]]
        found += [command("gitmem", "task", "show", story.task.task_id)] if story.task is not None else []
        found += [command("gitmem", "show", each.superseded_by or each.id) for each in story.nodes[:1]]
    if answer.path is not None and answer.commits:
        found.append(command("git", "show", answer.commits[0].commit[:SHORT]))
    if answer.commits and not has_hook and not any(story.made_by for story in answer.commits):
        found.append("gitmem setup --git post-commit")
    return list(dict.fromkeys(found))[:5]


class Target(Struct):
    """A commit, or a file and perhaps a range of its lines.

    Attributes:
        commit: The commit, or None.
        path: The file, from the top of the work tree; or None.
        lines: First and last line, or None for the whole file.
    """

    commit: str | None = None
    path: str | None = None
    lines: tuple[int, int] | None = None

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """The range of lines, if there is one."""
        return [self.lines] if self.lines is not None else []


def find(store: Store, folder: str, text: str) -> Target:
    """Return what a text means: a file that exists, with or without lines, else a commit.

    Args:
        folder: The current folder: paths are relative to it.

    Raises:
        UsageError: It is none of these, or nothing that lines can be asked of.
    """
    top = store.repo.worktree
    parts = _LINES.fullmatch(text)
    if top is not None and text.strip():
        if os.path.lexists(os.path.join(folder, text)):
            return Target(path=_file(store, folder, text))
        if parts is not None and os.path.lexists(os.path.join(folder, parts[1])):
            return Target(path=_file(store, folder, parts[1]), lines=_range(text, parts))
    commit = store.git.find_commit(store.repo.git_dir, text)
    if commit is not None:
        return Target(commit=commit)
    if top is None:
        raise UsageError(
            f"Unknown commit: {_shown(text)}. A bare repository has no files to ask about.",
            hint="Give a commit, or run it in a worktree.",
            code="unknown-commit",
        )
    if own := shown_by(text):
        raise UsageError(
            f"{_shown(text)} is neither a file nor a commit.",
            hint="Ask about a file, a line as FILE:LINE, or a commit.",
            code="unknown-target",
            next=[own],
        )
    raise _missing(store, folder, parts[1] if parts is not None else text)


def _file(store: Store, folder: str, typed: str) -> str:
    path = anchors.from_root(store.repo, folder, typed)
    where = os.path.join(store.repo.worktree or "", path)
    if os.path.islink(where):
        return path
    is_folder = os.path.isdir(where)
    if not (is_folder or os.path.isfile(where)):
        what, code = "is not a regular file: it has no lines", "special-file"
    elif is_folder:
        what, code = "is a folder", "folder"
    elif b"\0" in _beginning(where, typed):
        what, code = "is binary: it has no lines", "binary"
    else:
        return path
    raise UsageError(
        f"{_shown(typed)} {what}.",
        hint="Ask about a file, a line as FILE:LINE, or a commit.",
        code=code,
        next=[command("git", "log", "--oneline", "-10", "--", path)],
    )


def _beginning(where: str, typed: str) -> bytes:
    try:
        with open(os.open(where, READING), "rb") as file:  # by now it may be a pipe
            return file.read(BINARY_BYTES) or b""
    except OSError as error:
        raise UsageError(f"Cannot read {_shown(typed)}: {error.strerror}.", code="unreadable") from error


def _range(text: str, parts: re.Match[str]) -> tuple[int, int]:
    first, last = int(parts[2]), int(parts[3] or parts[2])
    if first < 1 or last < first:
        raise UsageError(
            f"Invalid lines: {_shown(text)}; lines begin with 1, and a range with the smaller number.",
            hint="Use a form such as src/parser.py:10 or src/parser.py:10-20.",
            code="bad-lines",
        )
    return first, last


def _missing(store: Store, folder: str, typed: str) -> UsageError:
    """Return the error for a file that is not there, with the commit that removed it."""
    path = anchors.from_root(store.repo, folder, typed) if typed.strip() else ""
    commit = history.last_change(store.repo.common, store.repo.git_dir, path) if path else None
    if commit is not None:
        return UsageError(
            f"{_shown(typed)} is not in the work tree. The last commit that changed it is {commit[:12]}.",
            hint="Ask about that commit, or restore the file.",
            code="deleted",
            next=[command("gitmem", "why", commit[:12])],
        )
    return UsageError(
        f"No such file or commit: {_shown(typed) or '(empty)'}.",
        hint="Use a file, a line as FILE:LINE, lines as FILE:10-20, or a commit.",
        code="unknown-target",
    )


def not_committed(path: str) -> UsageError:
    """Return the error for a file that no commit at HEAD has."""
    return UsageError(
        f"{_shown(path)} is in no commit of this branch.",
        hint="Commit it first; then its lines have an origin.",
        code="untracked",
        next=[command("git", "status", "--short", "--", path)],
    )


def too_few(path: str, count: int) -> UsageError:
    """Return the error for a line beyond the end of a file."""
    has = "is empty" if not count else f"has {count} line{'' if count == 1 else 's'}"
    return UsageError(
        f"{_shown(path)} {has}.",
        hint="Ask about a line that it has.",
        code="no-such-line",
        next=[command("gitmem", "why", *operands([f"{path}:{count}"]))] if count else [],
    )


def _shown(text: str) -> str:
    return sanitize(text)[:SHOWN_MAX]
