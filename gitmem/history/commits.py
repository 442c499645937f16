"""The commits of this worktree and their makers: what each session has made, by the records about commits and by what git has kept."""

from __future__ import annotations

import json
import os
import time

from .. import local_files
from ..agents import caller as callers
from ..agents import heartbeats, presence, session_view
from ..agents.delivery import delivery_lock
from ..agents.presence import recordable_branch
from ..errors import GitmemError
from ..git import files, history
from ..git.history import POST_COMMIT, read_tail
from ..git.objects import is_oid
from ..index.entities import AMONG
from ..log.lines import CommitMessage, format_at
from ..log.ref import LOG_REF
from ..order.task import micros
from ..outcome import Struct
from ..records import ids
from ..records.ids import is_id, role_id
from ..text.strict_json import json_list
from ..trust import own_sessions
from ..work import task_state
from . import ranges
from .other_tools import OtherTools

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from ..agents.caller import Caller
    from ..agents.presence import Presence
    from ..git.history import CommitFacts, ReflogEntry
    from ..index.entities import Rows
    from ..order.task import FoldedTask
    from ..records.record_types import CommitFields, CommitRecord
    from ..repo import Repo
    from ..store import Store
    from .ranges import Range

    Variables = frozenset[tuple[str, str]]
    Made = tuple[ReflogEntry, CommitFacts, "Origin", str, Caller]


MADE = ("commit", "merge", "revert")
ALONE, NONE = "alone", "none"
EVIDENCE = ("environment", "output", ALONE, NONE)  # other lines do not count
STEPS_MAX = 200  # commits that are looked at for one answer
SECOND = 1_000_000
SOURCES_MAX = 64  # that are looked at of one line
WORKTREES_MAX = 20  # whose reflogs are read, this worktree's first


class MadeHere(Struct):
    """The commits that were made in this clone, as the reflogs of its worktrees tell: what other clones say of these is false.

    The reflogs are read when somebody asks.
    """

    _repo: Repo
    _known: dict[str, list[history.ReflogEntry]] | None = None
    _ends: dict[str, tuple[int, str]] = {}

    def action(self, commit: str, committed: int | None) -> str:
        """Return how a commit was made here, see `reflog.Entry`; "" if it was not, or nobody knows.

        Args:
            committed: The time of its committer, in seconds. An entry of another time has only moved HEAD to it.
        """
        found = self._read().get(commit, ())
        return next((each.action for each in found if committed in (None, each.seconds)), "")

    def has_second(self, seconds: int) -> bool:
        """Return whether a commit, merge or revert was made here in a second; cherry-picks, rebases and amends do not count."""
        return any(
            each.seconds == seconds and each.action in MADE for some in self._read().values() for each in some
        )

    def until(self, seconds: int) -> list[str]:
        """Return the commits up to a second, the newest first."""
        known = {oid: some[0].seconds for oid, some in self._read().items() if some[0].seconds <= seconds}
        return sorted(known, key=lambda oid: -known[oid])

    def after(self, commit: str) -> set[str]:
        """Return the commits that were made after one in its worktree; none if it was not made here."""
        known = self._read()
        end, folder = self._ends.get(commit, (0, ""))
        return {oid for oid in known if folder and self._ends[oid][1] == folder and self._ends[oid][0] > end}

    def _read(self) -> dict[str, list[history.ReflogEntry]]:
        if self._known is None:
            self._known = {}
            for folder in self._folders():
                for entry in history.read_reflog(folder):
                    if entry.action not in ("", "start"):
                        self._known.setdefault(entry.new, []).append(entry)
                        self._ends.setdefault(entry.new, (entry.end, folder))
        return self._known

    def _folders(self) -> list[str]:
        common = self._repo.common
        names = sorted(local_files.names_in(os.path.join(common, "worktrees")))
        found = [self._repo.git_dir, common, *(os.path.join(common, "worktrees", name) for name in names)]
        return list(dict.fromkeys(found))[:WORKTREES_MAX]


LINES_MAX = 20  # about one commit or patch id that are read, this clone's own first


class CommitLine(Struct):
    """A line about a commit.

    Attributes:
        record: Its record.
        is_own: Whether it is of a session that was started in this clone.
    """

    record: CommitRecord
    is_own: bool


def lines_about(db: sqlite3.Connection, column: str, value: str) -> list[CommitLine]:
    """Return the lines about a `commit_id`, or about commits whose changes have this `patch_id`: of those of one session the lowest."""
    from .. import records

    query = (
        "SELECT l.body, m.session IN (SELECT name FROM own) AS is_own FROM made_commit m JOIN line l ON l.id = m.line"
        f" WHERE m.{column} = ? ORDER BY is_own DESC, l.body LIMIT ?"
    )
    found: dict[tuple[str, str | None], CommitLine] = {}
    for body, is_own in db.execute(query, (value, LINES_MAX)).fetchall():
        record = records.read_kind("commit", body.encode())
        if record is not None:
            line = CommitLine(record, bool(is_own))
            found.setdefault((record["commit"], record.get("sender_session")), line)
    return list(found.values())


def recorded(db: sqlite3.Connection, commits: Iterable[str]) -> set[tuple[str, str]]:
    """Return commit and session of the lines about these commits."""
    query = f"SELECT commit_id, session FROM made_commit WHERE commit_id {AMONG} AND session IS NOT NULL"
    return set(db.execute(query, (json_list(list(commits)),)))


def has_any(db: sqlite3.Connection) -> bool:
    """Return whether there is a line about any commit."""
    return db.execute("SELECT 1 FROM made_commit LIMIT 1").fetchone() is not None


def add(db: sqlite3.Connection, rows: Rows) -> None:
    """Add records of commits to the index, in any order of arrival."""
    made = rows.of("commit")
    columns = [made.column(name) for name in ("commit", "patch_id", "sender_session")]
    db.executemany("INSERT INTO made_commit VALUES (?, ?, ?, ?)", zip(made.ids, *columns, strict=True))


def role_of_session(db: sqlite3.Connection, session_id: str | None) -> str | None:
    """Return the role of a session as text; None if it has none or is unknown."""
    query = "SELECT lifecycle_role, specialty_profile FROM session WHERE session_id = ?"
    role = db.execute(query, (session_id,)).fetchone()
    return role_id(*role) if role is not None else None


class Makers(Struct):
    """Who has made a commit.

    Attributes:
        made: A line for each session that has made something of it; several from other clones may contradict each other.
        rewrote: The lines of sessions that have only rewritten it, the last one first.
        is_whole: Whether all of it has makers, as far as records tell.
        is_rewrite: Whether they have made other commits, which this one replaces or repeats.
        sources: Such commits that lines about it name.
    """

    made: dict[str, CommitLine] = {}
    rewrote: dict[str, CommitLine] = {}
    is_whole: bool = True
    is_rewrite: bool = False
    sources: set[str] = set()

    @property
    def is_inferred(self) -> bool:
        """Whether any of it is inferred."""
        return any(line.record["evidence"] == ALONE for line in self.made.values())


def find_makers(
    db: sqlite3.Connection,
    commit: str,
    here: MadeHere,
    *,
    committed: int,
    authored: int | None = None,
    patch_id: str | None = None,
) -> Makers:
    """Return who has made a commit.

    Lines of other clones count only for commits that were not made here, and for sessions that were open then.

    Args:
        commit: Its id.
        here: The commits that were made in this clone.
        authored, committed: The times of its author and committer, in seconds since the epoch.
        patch_id: The patch id of its changes, for a commit that no record names.
    """
    search = _Search(db, here)
    search.of(commit, committed)
    if search.found.made or search.found.rewrote or patch_id is None or authored is None:
        return search.found
    if not lines_about(db, "patch_id", patch_id):
        return search.found
    if authored == committed and here.action(commit, committed) in MADE:
        return search.found  # it repeats none
    search.is_first, search.found.is_whole = False, True
    search.of_patch(patch_id, format_at(authored * SECOND))
    return search.found


class _Search:
    def __init__(self, db: sqlite3.Connection, here: MadeHere) -> None:
        self._db = db
        self._here = here
        self._seen: set[str] = set()
        self.found = Makers()
        self.is_first = True

    def of(self, commit: str, committed: int | None = None) -> None:
        """Add the makers of a commit."""
        if commit in self._seen:
            return
        self._seen.add(commit)
        if len(self._seen) > STEPS_MAX:
            self.found.is_whole = False
            return
        lines = self._lines(commit, committed)
        made = [each for each in lines if each.record["action"] in MADE and each.record["evidence"] != NONE]
        if made:
            self._add(self.found.made, made)
        elif lines:
            self._rewritten(lines)
        else:
            self.found.is_whole = False

    def _lines(self, commit: str, committed: int | None) -> list[CommitLine]:
        """Return the valid lines about a commit; only those of this clone, if it has any: others can claim any commit."""
        lines = [
            each for each in lines_about(self._db, "commit_id", commit) if each.record["evidence"] in EVIDENCE
        ]
        own = [each for each in lines if each.is_own]
        if own or not lines or self._here.action(commit, committed):
            return own
        return [each for each in lines if committed is None or self._was_open(each, committed)]

    def _was_open(self, line: CommitLine, committed: int) -> bool:
        """Return whether another clone's session was open when a commit was made; also if it is not known."""
        query = "SELECT started, ended FROM session WHERE session_id = ?"
        span = self._db.execute(query, (line.record.get("sender_session"),)).fetchone()
        if span is None or line.record["evidence"] == NONE:
            return True
        started, ended = span
        return bool(started // SECOND <= committed and (ended is None or committed <= ended // SECOND))

    def _rewritten(self, lines: list[CommitLine]) -> None:
        """Add the makers of what a commit replaces or repeats."""
        self.found.is_rewrite = True
        known = [each for each in lines if each.record["evidence"] != NONE]
        if self.is_first:
            self.is_first = False
            self._add(self.found.rewrote, known)
        changed = [each for each in lines if each.record["action"] == "amend" and each.record.get("parts")]
        amended = [each for each in changed if each.record["evidence"] != NONE]
        self._add(self.found.made, amended)
        sources = dict.fromkeys(source for each in lines for source in each.record.get("sources", ()))
        self.found.sources.update(sources)
        if any(each.record["action"] == "cherry-pick" for each in lines):
            self._picked(lines, sources)
            return
        for source in list(sources)[:SOURCES_MAX]:
            self.of(source)
        if len(sources) > SOURCES_MAX:
            self.found.is_whole = False
        if any(each.record["action"] == "squash" for each in lines) and len(sources) < 2:
            self.found.is_whole = False  # what was added is of no known commit
        if changed and not amended:
            self.found.is_whole = False  # somebody without a session has changed it
        if not sources and not amended:
            self._repeated(lines)

    def _picked(self, lines: list[CommitLine], sources: Collection[str]) -> None:
        """Add the makers of what was picked: by its changes; after a conflict, whichever of the sources it was.

        Anybody can write a commit that looks like another one. So of several sources, records must name one maker for all.
        """
        before, is_whole = dict(self.found.made), self.found.is_whole
        self._repeated(lines)
        if self.found.made != before or not sources:
            return
        self.found.is_whole = is_whole
        for source in sources:
            self.of(source)
        is_one = self.found.is_whole and len(self.found.made) == len(before) + 1
        if len(sources) > 1 and not is_one:
            self.found.made, self.found.is_whole = before, False

    def _repeated(self, lines: list[CommitLine]) -> None:
        """Add the makers of the commits with the same changes, author's time and other ids."""
        patches = {(each.record.get("patch_id"), each.record.get("authored_at")) for each in lines}
        for patch_id, authored in patches:
            if patch_id is not None and authored is not None:
                self.of_patch(patch_id, authored)

    def of_patch(self, patch_id: str, authored_at: str) -> None:
        """Add the makers of commits with a patch id and a time of the author: a repeated commit keeps both."""
        self.found.is_rewrite = True
        same = [
            each
            for each in lines_about(self._db, "patch_id", patch_id)
            if each.record.get("authored_at") == authored_at and each.record["commit"] not in self._seen
        ]
        own = [each for each in same if each.is_own]
        if own or (same and self._here.has_second(micros(authored_at) // SECOND)):
            same = own
        if not same:
            self.found.is_whole = False
        for each in same:
            self.of(each.record["commit"])

    def _add(self, to: dict[str, CommitLine], lines: list[CommitLine]) -> None:
        for each in lines:
            to.setdefault(each.record.get("sender_session") or each.record["sender_identity"], each)


READ_MAX = 256 * 1024
ROTATE_BYTES = 128 * 1024
SESSION, TASK, HOOK = "GITMEM_SESSION", "GITMEM_TASK", "hook"
ODD = "?"


def read(repo: Repo) -> dict[str, set[Variables]]:
    """Return the variables of each run of the hook, by the commit that it saw at HEAD, in the order of their first notes."""
    where = heartbeats.commit_notes(repo)
    found = _notes(f"{where}.1")
    for oid, notes in _notes(where).items():
        found.setdefault(oid, set()).update(notes)
    return found


def _notes(path: str) -> dict[str, set[Variables]]:
    found: dict[str, set[Variables]] = {}
    for line in read_tail(path, READ_MAX)[0].decode("ascii", "replace").splitlines():
        oid, *words = line.split(" ")
        if is_oid(oid):
            variables = frozenset((name, value) for name, _, value in (word.partition("=") for word in words))
            found.setdefault(oid, set()).add(variables)
    return found


def rotate(repo: Repo) -> None:
    """Keep a large file of notes as the former one. Never raises."""
    where = heartbeats.commit_notes(repo)
    try:
        if os.stat(where).st_size > ROTATE_BYTES:
            local_files.refuse_link(os.path.dirname(where))
            os.replace(where, f"{where}.1")
    except OSError:
        return


def task_of(notes: Collection[Variables]) -> str | None:
    """Return the task that the variables name, if they name one."""
    named = {value for each in notes for name, value in each if name == TASK and is_id("task", value)}
    return named.pop() if len(named) == 1 else None


def of_hook(notes: Collection[Variables], hook: str) -> bool:
    """Return whether all notes are of the hook that git runs after the commit: another one saw the HEAD of somebody else."""
    return all(dict(each).get(HOOK, POST_COMMIT) == hook for each in notes)


class NamedSessions(Struct):
    """Which session variables name, each asked once."""

    _store: Store
    _known: dict[Variables, Presence | None] = {}

    def of_notes(self, notes: Collection[Variables], seconds: int) -> Presence | None:
        """Return the session that every run of the hook for one commit names, if it was open at that time; else None."""
        named = [self._of(each) for each in notes]
        first = named[0] if named else None
        if first is None or any(each is None or each.session_id != first.session_id for each in named):
            return None
        return first if was_open(first, seconds) else None

    def _of(self, variables: Variables) -> Presence | None:
        if variables not in self._known:
            self._known[variables] = (
                self._find(dict(variables)) if len(dict(variables)) == len(variables) else None
            )
        return self._known[variables]

    def _find(self, values: dict[str, str]) -> Presence | None:
        """Return the session of this clone that all variables name.

        A session in GITMEM_SESSION that no client has started may be passed on to a client, whose own id then names nothing here. Of
        two clients, one has started the other: nobody knows which of them runs git.
        """
        values.pop(TASK, None)
        values.pop(HOOK, None)
        session = values.pop(SESSION, None)
        clients = [value for name, value in values.items() if name.isupper()]
        markers = {name for name in values if not name.isupper()}
        if ODD in clients or session == ODD or len(set(clients)) > 1 or len(markers) > 1:
            return None
        of_clients = [self._of_client(value) for value in clients]
        found = self._own(session) if session is not None else next(iter(of_clients), None)
        if found is None:
            return None
        passed_on = session is not None and found.harness_session is None
        for one in of_clients:
            if one.session_id != found.session_id if one is not None else not passed_on:
                return None
        client = found.record.get("client")
        return None if client and markers - {client} else found

    def _own(self, session_id: str) -> Presence | None:
        if not is_id("sess", session_id) or not own_sessions.is_own(self._store.db(), session_id):
            return None
        return presence.get(self._store, session_id)

    def _of_client(self, client_id: str) -> Presence | None:
        found = presence.of_client(self._store, client_id)
        return found or presence.of_client(self._store, client_id, ended=True)


def was_open(one: Presence, seconds: int) -> bool:
    """Return whether a session had started and not ended in that second."""
    started, ended = one.started // SECOND, None if one.ended is None else one.ended // SECOND
    return started <= seconds and (ended is None or seconds <= ended)


LOCK = "commits"
SECONDS = 5.0
AT_ONCE = 50  # commits that are recorded in one entry
WAIT_SECONDS = 10  # for the note of the hook that runs after a commit
STATE_MAX = 4_096
ACTIVE_MICROS = 24 * 3600 * 1_000_000

TICK = 20_000  # by which the times of files are behind, at most: kernels count them in ticks


class Clues(Struct):
    """What a process that looks for commits knows about them.

    Attributes:
        caller: Whose command or hook it is, if that is a session.
        printed: The beginnings of ids that the caller's own command has printed as commits that it made.
        in_turn: Whether the caller's client is between a prompt and the end of its turn.
    """

    caller: Caller | None = None
    printed: Collection[str] = ()
    in_turn: bool = False


def note(store: Store, clues: Clues, *, seconds: float = SECONDS) -> int:
    """Record the new commits of this worktree. Another process that does so already is not waited for.

    Args:
        seconds: The limit for git; what is left then is recorded at the next call.

    Returns:
        The number of records.

    Raises:
        GitmemError: They can't be read or recorded; the next call tries again.
    """
    if store.repo.worktree is None or not heartbeats.has_new_commits(store.repo):
        return 0
    if heartbeats.are_commits_off(store):
        heartbeats.begin_commits(store)
        return 0
    with delivery_lock(store, LOCK) as mine:
        return _Look(store, clues, time.monotonic() + seconds).run() if mine else 0


class _Look:
    """One look at the reflog and the notes of a worktree."""

    def __init__(self, store: Store, clues: Clues, until: float) -> None:
        self._store = store
        self._clues = clues
        self._until = until
        self._has_hook = heartbeats.has_commit_hook(store.repo)
        self._at = heartbeats.commits_changed_at(store.repo)
        self._notes = read(store.repo)
        self._entries = history.read_reflog(store.repo.git_dir)
        self._sessions = NamedSessions(store)
        self._own = callers_session(store, clues.caller)  # of this clone
        self._kept = _kept(store)

    def run(self) -> int:
        """Record what is new, and note how far it was read."""
        new = self._new()
        oids = [self._entries[at].new for at in new]
        known = recorded(self._store.db(), oids)
        count, read_to = 0, len(self._entries)
        for start in range(0, len(new), AT_ONCE):
            some = new[start : start + AT_ONCE]
            if self._left() <= 0:
                read_to = some[0]
                break
            count += self._record(some, known)
            if waits := [at for at in some if self._waits_for_note(at)]:
                read_to = waits[0]
                break
        self._keep(read_to)
        rotate(self._store.repo)
        return count

    def _left(self) -> float:
        return self._until - time.monotonic()

    def _new(self) -> list[int]:
        """Return the entries that may have made a commit, and that were not read before.

        A reflog that was shortened is read from its beginning: `known` tells what is recorded already.
        """
        offset, last = self._kept
        ends = [each.end for each in self._entries]
        first = (
            ends.index(offset) + 1 if offset in ends and self._entries[ends.index(offset)].new == last else 0
        )
        return [
            at for at in range(first, len(self._entries)) if self._entries[at].action not in ("", "start")
        ]

    def _record(self, places: Sequence[int], known: Collection[tuple[str, str]]) -> int:
        entries = [self._entries[at] for at in places]
        wanted = [oid for each in entries for oid in (each.new, each.old) if oid]
        common = self._store.repo.common
        facts = history.facts_of(common, wanted, max(0.1, self._left()))
        made: list[Made] = []
        rewrites = Rewrites(self._store.repo.git_dir, self._entries, facts, max(0.1, self._left()))
        for at in places:
            entry = self._entries[at]
            found = facts.get(entry.new)
            if found is None or found.committed != entry.seconds:
                continue  # it was made elsewhere, and HEAD only moved to it
            evidence, who = self._who(at, found)
            origin = None
            if who is None and self._own is not None:
                origin = rewrites.of(at)
                is_made = any(other.new in origin.sources for other, *_ in made)
                tools = OtherTools(self._store) if origin.sources and not is_made else None
                if (
                    is_made
                    or (tools and any(map(tools.knows, origin.sources)))
                    or recorded(self._store.db(), origin.sources)
                ):
                    evidence, who = NONE, self._clues.caller
            if who is None or (entry.new, who.session_id) in known:
                continue
            origin = origin or rewrites.of(at, is_session=True)
            made.append((entry, found, origin, evidence, who))
        patches = history.patch_ids(common, [entry.new for entry, *_ in made], max(0.1, self._left()))
        self._write(made, patches)
        return len(made)

    def _who(self, at: int, found: CommitFacts) -> tuple[str, Caller | None]:
        """Return the evidence and the session that has made the commit of an entry; None if nobody is known."""
        entry, clues = self._entries[at], self._clues
        notes = self._notes.get(entry.new)
        if notes is not None:
            one = self._sessions.of_notes(notes, found.committed)
            if one is None or not of_hook(notes, entry.hook):
                return "", None
            return "environment", callers.of_session(one, "session")
        one, caller = self._own, clues.caller
        if one is None or caller is None or not was_open(one, found.committed):
            return "", None
        if any(entry.new.startswith(each) for each in clues.printed):
            return "output", caller
        return ("alone", caller) if self._is_alone(one, found.committed) else ("", None)

    def _is_alone(self, one: Presence, seconds: int) -> bool:
        """Return whether a session was in its turn, and the only one in the worktree, when a commit was made."""
        store = self._store
        if self._has_hook or not self._clues.in_turn:
            return False
        here = [
            name
            for name, (where, at) in heartbeats.known_sessions(store).items()
            if where == store.repo.tree and at > store.now() - ACTIVE_MICROS
        ]
        prompted = heartbeats.prompted_at(store, one.session_id)
        if not here and heartbeats.has_met(store, heartbeats.client_of(store, one.session_id)):
            here = [one.session_id]  # its subagent has a worktree of its own
        return here == [one.session_id] and 0 < prompted // SECOND <= seconds

    def _waits_for_note(self, at: int) -> bool:
        """Return whether git's hook has perhaps not yet noted a commit that was made a moment ago."""
        entry = self._entries[at]
        is_new = entry.seconds > self._store.now() // SECOND - WAIT_SECONDS
        return self._has_hook and is_new and bool(entry.hook) and entry.new not in self._notes

    def _write(self, made: Sequence[Made], patches: Mapping[str, str]) -> None:
        """Record commits in one entry, which waits for the next commit of the log."""
        if not made:
            return
        store = self._store
        branch = recordable_branch(store.branch())
        work = WorkThen(store)
        lines = []
        for entry, facts, origin, evidence, who in made:
            session = who.session_id or ""
            if store.is_of_another_key(session):
                continue  # of another user of this clone, who records it
            task, unit = None, None  # with the evidence `none` the session has only found it
            if evidence != NONE:
                task, unit = work.of(who, entry.new, facts.committed)
                task = task_of(self._notes.get(entry.new, ())) or task
            fields: CommitFields = {
                "link_id": store.own_id("link", entry.new, session), "commit": entry.new, "patch_id": patches.get(entry.new), "authored_at": format_at(facts.authored * SECOND),
                "action": origin.action, "evidence": evidence, "sources": origin.sources, "parts": origin.parts, "branch": branch,
                "task_id": task, "wu_id": unit,
                "workspace_id": who.workspace, "sender_identity": who.reader, "sender_session": who.session_id,
                "sender_name": who.name,
            }  # fmt: skip
            lines.append(store.line("commit", fields, allow_secret=True))  # it has no new text
        if not lines:
            return
        who = made[0][-1]
        count = "a commit" if len(lines) == 1 else f"{len(lines)} commits"
        message = CommitMessage(who.author, f"{who.name or who.reader} made {count}", "", who.trailers())
        store.record(lines, message, deferred=True)

    def _keep(self, read_to: int) -> None:
        """Note up to which entry the reflog was read. If that is not its end, the next call goes on."""
        last = self._entries[read_to - 1] if read_to else None
        content = json.dumps({"end": last.end if last else 0, "last": last.new if last else ""}).encode()
        where = heartbeats.commits_read(self._store.repo)
        at = self._at if read_to >= len(self._entries) else 0
        local_files.replace(where, content)
        local_files.utime(where, (at, at))


def callers_session(store: Store, caller: Caller | None) -> Presence | None:
    """Return the session of a caller, if it was started in this clone."""
    session = caller.session_id if caller is not None else None
    if session is None or not ids.is_id("sess", session) or not heartbeats.is_here(store, session):
        return None
    return presence.get(store, session)


def try_note(store: Store, clues: Clues, *, seconds: float = SECONDS) -> None:
    """Record the new commits of this worktree as `note` does. Never raises: whatever else the process does matters more."""
    try:
        note(store, clues, seconds=seconds)
    except (GitmemError, OSError, ValueError, KeyError):
        return


def _kept(store: Store) -> tuple[int, str]:
    """Return up to which byte the reflog was read, and the commit of the entry that ends there."""
    try:
        found = json.loads(local_files.read(heartbeats.commits_read(store.repo), STATE_MAX))
        return int(found["end"]), str(found["last"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return -1, ""


class Origin(Struct):
    """What a commit was made of.

    Attributes:
        action: How it was made: that of its entry, or what the commits say.
        sources: The commits that it replaces or repeats.
        parts: The patch ids of the changes that it combines.
    """

    action: str
    sources: list[str] = []
    parts: list[str] = []


class Rewrites(Struct):
    """The origins of the commits of one reflog.

    Attributes:
        git_dir: The git folder of the worktree.
        entries: The entries of the reflog, oldest first.
        facts: The facts of the commits in question, and of those before them.
        seconds: The limit of each run of git.
    """

    _git_dir: str
    _entries: Sequence[ReflogEntry]
    _facts: Mapping[str, CommitFacts]
    _seconds: float
    _others: Mapping[str, CommitFacts] | None = None
    _ranges: dict[tuple[str, str], Mapping[str, CommitFacts]] = {}
    _patches: dict[str, str] = {}

    def of(self, at: int, *, is_session: bool = False) -> Origin:
        """Return the origin of the commit of an entry.

        Args:
            is_session: Whether a session has committed.

        Raises:
            StoreError: git failed, or did not end in time.
        """
        entry = self._entries[at]
        new, old = self._facts[entry.new], self._facts.get(entry.old or "")
        origin = Origin(entry.action)
        replaces = old is not None and entry.old not in new.parents and new.parents[:1] == old.parents[:1]
        if entry.action == "commit" and not new.is_fresh:
            origin.action = "rewrite"
        if entry.action == "amend" or (entry.action == "rebase" and replaces):
            self._replaced(origin, entry, old, new, at)
        elif entry.action == "rebase":
            origin.sources = self._same(self._range_of(at), new)
        elif entry.action == "cherry-pick":
            origin.sources = self._picked(entry, new)
        elif entry.action == "commit":
            self._squashed(origin, at, is_session=is_session)
        return origin

    def _squashed(self, origin: Origin, at: int, *, is_session: bool) -> None:
        """Set the origin of a commit whose changes are those of other commits together.

        Of `merge --squash` only ORIG_HEAD is left, which names the commit before until git begins something else.
        """
        entry = self._entries[at]
        new = self._facts[entry.new]
        begun = files.loose_tip(self._git_dir, "ORIG_HEAD") in new.parents
        is_over = any(each.action not in ("commit", "amend") for each in self._entries[at + 1 :])
        if not (begun or is_over or new.subject == ranges.SQUASHED):
            return
        begun = begun or (is_over and is_session)
        patch = self._patch_ids({entry.new: new}).get(entry.new)
        found: list[Range] = []
        later = {each.new for each in self._entries[at + 1 :]}
        for seen in ((), [each.new for each in self._entries[at::-1]]):
            if patch and not found:
                found = ranges.find(
                    self._git_dir, entry.new, new, patch, seen, self._seconds, later=later, begun=begun
                )
        if len(found) == 1:
            origin.sources = list(found[0].commits)
            origin.action = "squash" if len(origin.sources) > 1 else "rewrite"

    def _picked(self, entry: ReflogEntry, new: CommitFacts) -> list[str]:
        """Return the commits that a cherry-pick can have repeated: it keeps author, time and, if nobody edits it, the subject.

        The reflog does not say which commit was picked, and anybody can copy these three. So every commit counts that refs, worktrees and
        FETCH_HEAD have and HEAD had not. None is returned if they are too many to compare all.
        """
        if self._others is None:
            outside = ("FETCH_HEAD", f"^{entry.old or LOG_REF}", f"^{LOG_REF}")
            found = history.facts_between(self._git_dir, outside, self._seconds, "--all")
            self._others = found if len(found) < history.RANGE_MAX else {}
        wanted = (new.author, new.authored, new.subject)
        same = (
            oid for oid, each in self._others.items() if (each.author, each.authored, each.subject) == wanted
        )
        return [oid for oid in same if oid != entry.new]

    def _replaced(
        self, origin: Origin, entry: ReflogEntry, old: CommitFacts | None, new: CommitFacts, at: int
    ) -> None:
        """Set the origin of a commit that has taken the place of the one before it."""
        if old is None or entry.old is None:
            return
        origin.sources = [entry.old]
        step = (old.tree, new.tree)
        patch = history.step_ids(self._git_dir, [step], self._seconds).get(step)
        if patch is None:
            return
        origin.parts = [patch]
        if entry.action == "rebase":
            origin.action = "squash"
            known = self._patch_ids(self._range_of(at))
            same = [oid for oid, each in known.items() if each == patch]
            origin.sources += same if len(same) == 1 else []

    def _range_of(self, at: int) -> Mapping[str, CommitFacts]:
        """Return the commits that the rebase of an entry has to repeat."""
        start = next((each for each in reversed(self._entries[:at]) if each.action == "start"), None)
        if start is None or start.old is None:
            return {}
        key = (start.old, f"^{start.new}")
        if key not in self._ranges:
            self._ranges[key] = history.facts_between(self._git_dir, key, self._seconds, "--no-merges")
        return self._ranges[key]

    def _same(self, known: Mapping[str, CommitFacts], new: CommitFacts) -> list[str]:
        """Return the commit that a rebase has repeated, if exactly one of its commits can be meant: it keeps author and time."""
        found = [
            oid for oid, each in known.items() if (each.author, each.authored) == (new.author, new.authored)
        ]
        if len(found) > 1:
            found = [oid for oid in found if known[oid].subject == new.subject]
        return found if len(found) == 1 else []

    def _patch_ids(self, known: Mapping[str, CommitFacts]) -> Mapping[str, str]:
        missing = [oid for oid in list(known)[:STEPS_MAX] if oid not in self._patches]
        self._patches.update(history.patch_ids(self._git_dir, missing, self._seconds))
        return {oid: self._patches[oid] for oid in known if oid in self._patches}


class WorkThen(Struct):
    """The work of sessions at the times of their commits, in the worktree of a store."""

    _store: Store
    _known: dict[tuple[str, int, int], tuple[str | None, str | None]] = {}
    _tasks: dict[str, FoldedTask | None] = {}

    def of(self, who: Caller, commit: str, committed: int) -> tuple[str | None, str | None]:
        """Return the task and the work unit that a session had while a commit was made; None for what is not certain.

        Args:
            who: The session.
            commit: The commit.
            committed: The time of its committer, in seconds.
        """
        session = who.session_id
        if session is None:
            return None, None
        time = self._time(commit, committed)
        if (session, *time) not in self._known:
            self._known[session, *time] = self._work(who.reader, session, *time)
        return self._known[session, *time]

    def _time(self, commit: str, committed: int) -> tuple[int, int]:
        """Return from when to when a commit was made: git tells the second, the file of the commit tells more."""
        first, last = committed * SECOND, (committed + 1) * SECOND - 1
        written = history.written_at(self._store.repo.common, commit)
        if written is not None and first <= written <= last:
            first, last = written, written + TICK
        now = self._store.now()
        return min(first, now), min(last, now)

    def _work(self, reader: str, session: str, first: int, last: int) -> tuple[str | None, str | None]:
        db = self._store.db()
        before, after = (session_view.fields_at(db, session, at) for at in (first, last))
        same = {name: value for name, value in before.items() if after.get(name) == value}
        task = same.get("task_id")
        if task is None and "task_id" not in {*before, *after}:
            task = task_state.only_held_at(db, (reader, session), first, last, known=self._tasks)
        return task, same.get("wu_id")
