"""Check a clone's own files: the state folder, the index against one that is rebuilt from the log, and the clone key."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator

from .. import local_files, settings
from .. import repo as repo_module
from ..agents import mailbox, other_keys
from ..agents.caller import own_person
from ..calls import a2a_files
from ..errors import StoreError
from ..index import catch_up, index_file
from ..index.index_file import Index, StepLimit, sqlite3
from ..log import ref, write_ahead
from ..memory import reader_store
from ..outcome import command
from ..store import Store
from ..trust import keys
from .findings import Check, Finding, Fixed, note, problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..trust.keys import KeyFile


def differing(ours: Index, theirs: Index, *, but: Sequence[str] = ()) -> list[str]:
    """Return the tables whose rows differ, among the table of lines and those of all views.

    Args:
        but: Columns to ignore because they depend on the order of arrival.
    """
    known, found = (_sums(index, but) for index in (ours, theirs))
    return [table for table in found if known.get(table) != found[table]]


def _sums(index: Index, but: Sequence[str]) -> dict[str, int]:
    """Return for each table the sum of the hashes of its rows, which is independent of their order.

    Every row has a text or a key. Its hash is a 64-bit function that differs from process to process.
    """
    return {table: sum(map(hash, _rows(index, table, but))) for table in _tables(index)}


def _tables(index: Index) -> list[str]:
    own = ("meta", "file", "lost")  # bookkeeping, not content of the log
    rows = index.db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    return [name for (name,) in rows if name not in own and not name.startswith("sqlite_")]


def _rows(index: Index, table: str, but: Sequence[str]) -> Iterator[tuple[object, ...]]:
    """Return the rows of a table, in any order. Lines are identified by their keys, because their numbers, and those of files, differ."""
    names = [row[1] for row in index.db.execute(f'PRAGMA table_info("{table}")')]
    wanted = {"line": "key, at, kind, body", "held": "key, writer", "whole": "key"}.get(table)
    if wanted is None:
        key = "(SELECT key FROM line WHERE line.id = t.line)"
        wanted = ", ".join(key if name == "line" else f't."{name}"' for name in names if name not in but)
    return index.db.execute(f'SELECT {wanted} FROM "{table}" t')


RESTORED = "restored"  # the stream of lines whose own is not known
LEFT_SECONDS = 600  # an older temporary file belongs to a dead process
OLDEST_GIT = (2, 36)
PROBE_BYTES = 256 * 1024  # more than an everyday commit writes


class Leftovers(Check):
    """Temporary files in the state folder that are too old to be renamed by a process."""

    codes = fixes = ("leftover-file",)

    def check(self) -> Iterator[Finding]:
        for path in self._left():
            yield note(
                "leftover-file",
                "A temporary file of gitmem, left by a killed process. It is not used.",
                path,
                "--fix removes it.",
            )

    def fix(self) -> Iterator[Fixed]:
        """Remove them."""
        for path in self._left():
            local_files.remove_quietly(path)
            if not os.path.lexists(path):
                yield "leftover-file", path, "It was removed."

    def _left(self) -> list[str]:
        found, now = [], time.time()
        for folder, _, names in os.walk(self.store.repo.state):
            for name in names:
                path = os.path.join(folder, name)
                if (
                    name.startswith(local_files.TEMPORARY)
                    and now - local_files.modified(path, now) > LEFT_SECONDS
                ):
                    found.append(path)
        return sorted(found)


class PrivateNodes(Check):
    """Private nodes that other users could read, or that are damaged."""

    codes = ("private-open", "private-damaged")
    fixes = ("private-open",)

    def check(self) -> Iterator[Finding]:
        for path in self._folders():
            if not write_ahead.is_private(path):
                yield problem(
                    "private-open",
                    "The folder of private nodes is open to other users, or not yours; its nodes are not read.",
                    path,
                    "--fix sets the mode 700 if it is yours.",
                )
                continue
            try:
                damaged = self._damaged(path)
            except StoreError as error:
                yield problem("private-damaged", error.message, path, "Move its files away.")
                continue
            if damaged:
                yield problem(
                    "private-damaged",
                    f"Damaged parts in the file of private nodes: {damaged}; the other nodes are read.",
                    path,
                    "Create what is missing in `gitmem mem list` again.",
                )

    def fix(self) -> Iterator[Fixed]:
        """Close them to other users."""
        for path in self._folders():
            if not write_ahead.is_private(path) and os.path.isdir(path) and not os.path.islink(path):
                os.chmod(path, 0o700)
                yield "private-open", path, "Its mode is 700 now."

    def _folders(self) -> list[str]:
        top = reader_store.root(self.store.repo)
        if not os.path.lexists(top):
            return []
        return [top, *(os.path.join(top, name) for name in sorted(local_files.names_in(top)))]

    def _damaged(self, path: str) -> int:
        if path == reader_store.root(self.store.repo):
            return 0
        lines = reader_store.PrivateLines(path, self.store.now)
        lines.read()
        return lines.damaged


class Repository(Check):
    """Properties of the repository and its git with which the log is not safe."""

    codes = ("odd-repository", "old-git")

    def check(self) -> Iterator[Finding]:
        try:
            repo_module.reject_unsupported(self.store.repo)
        except StoreError as error:
            config = os.path.join(self.store.repo.common, "config")
            yield problem("odd-repository", error.message, config, error.hint)
        version = self.store.git.version()
        number = [int(part) for part in version.split(".")[:2] if part.isdecimal()]
        if len(number) == 2 and tuple(number) < OLDEST_GIT:
            yield note(
                "old-git",
                f"git {version} does not know core.fsync: after a power loss the last fetched objects may be missing.",
                "git",
                "Install git 2.36 or later.",
            )


def move_aside(store: Store, path: str, *, folder: str | None = None) -> str:
    """Move a file to the folder `ASIDE`, by default below the state folder; return its new path.

    Raises:
        OSError: The file can't be moved.
    """
    where = os.path.join(folder or store.repo.state, local_files.ASIDE)
    os.makedirs(where, mode=0o700, exist_ok=True)
    local_files.adjust(where)
    day = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(store.now() // 1_000_000))
    name, number = os.path.basename(path), 0
    while True:
        to = os.path.join(where, f"{day}-{name}" + (f".{number}" if number else ""))
        if not os.path.lexists(to):
            os.rename(path, to)
            return to
        number += 1


def is_writable(store: Store) -> bool:
    """Return whether this process may write to the git folder."""
    repo = store.repo
    state = repo.state if os.path.isdir(repo.state) else repo.common
    return all(os.access(folder, os.W_OK) for folder in (state, os.path.join(repo.common, "objects")))


def disk_error(store: Store) -> tuple[str, str]:
    """Return the folder of the git folder that takes no more data, and why; empty if all take some.

    It writes and syncs a temporary file, as free blocks alone do not tell about quotas, inodes and limits of processes.
    """
    for folder in (store.repo.state, os.path.join(store.repo.common, "objects")):
        if not os.path.isdir(folder):
            continue
        try:
            with tempfile.TemporaryFile(dir=folder, prefix=local_files.TEMPORARY, buffering=0) as file:
                left = PROBE_BYTES
                while left:
                    left -= os.write(file.fileno(), bytes(left))
                os.fsync(file.fileno())
        except OSError as error:
            return folder, error.strerror or str(error)
    return "", ""


class GatewayFiles(Check):
    """The files of `gitmem a2a serve`: tokens that can't be read, so that every client is refused, and push configurations that can't."""

    codes = ("bad-tokens", "bad-push")

    def check(self) -> Iterator[Finding]:
        state = self.store.repo.state
        known = a2a_files.Tokens(state)
        try:
            known.list()
        except StoreError as error:
            what = error.message.removesuffix(" Nothing was written.")
            fix = "Correct its permissions, or remove it and make new tokens."
            yield problem("bad-tokens", what, known.path, fix)
        try:
            a2a_files.read_push_file(state)
        except StoreError as error:
            yield problem("bad-push", error.message, a2a_files.push_file_of(state), error.hint)


UNREAD_STEPS = 2_000_000  # SQLite steps for the cursors of readers
ARRIVAL = ("cursor",)  # columns that depend on the order of arrival; results derived from them don't


class IndexContent(Check):
    """Differences between the index and a rebuilt one, and lines that neither could read in full."""

    codes = ("index", "skipped-lines")
    fixes = ("index",)

    def check(self) -> Iterator[Finding]:
        """Yield the findings, with the index that was filled from the lines."""
        where, rebuilt = index_file.path(self.store.repo, self.store.machine), self.run.rebuilt
        lacks = has = 0
        try:
            if self.run.failure is not None:
                raise self.run.failure
            for _ in range(3):  # another process may write in between
                index = self.store.caught_up()
                catch_up.catch_up(rebuilt, self.store.log)
                differs = _differing(index, rebuilt, self.store)
                if not differs:
                    break
            if differs:
                lacks, has = _lacking(index, rebuilt), _lacking(rebuilt, index)
            skipped = rebuilt.skipped()
        except (sqlite3.Error, StoreError) as error:
            yield problem(
                "index",
                f"Cannot read or build the index: {str(error).rstrip('.')}.",
                where,
                "It is rebuilt once the object problems are fixed.",
            )
            return
        if differs:
            what = f"The index lacks {lacks} lines of the log, and has {has} that the log lacks."
            if not lacks and not has:
                what = f"The index has every line, but differs from a rebuilt one in: {', '.join(differs)}."
            yield problem("index", what, where, "--fix rebuilds it from the log.")
        if skipped:
            yield problem(
                "skipped-lines",
                f"{skipped} line{'s' if skipped > 1 else ''} of the log cannot be read completely: "
                "they are kept, but some results lack them.",
                where,
                "A newer gitmem may read them; if it does not, report the output of `gitmem doctor --json`.",
                "pip install --upgrade gitmem-coord",
            )

    def fix(self) -> Iterator[Fixed]:
        """Rebuild the index from the log, in one transaction: other processes use the old index until then."""
        where = index_file.path(self.store.repo, self.store.machine)
        if os.path.isdir(where):
            yield "index", where, f"The old file was moved to {move_aside(self.store, where)}."
        try:
            self.store.index.db.execute("PRAGMA user_version = 0")
            self.store.caught_up()
        except sqlite3.Error:
            self.store.leave_index()
            index_file.remove(where)
            try:
                self.store.caught_up()
            except sqlite3.Error as error:
                raise StoreError(f"Cannot build the index: {error}.", code="index") from error
        yield "index", where, "It was rebuilt."


def _differing(ours: Index, theirs: Index, store: Store) -> list[str]:
    """Return the names of tables that differ, and "unread" if a cursor skips unread signals.

    If the tables are equal but for the cursors, nothing else can make unread signals differ. The readers of this clone
    come first; if there are very many readers, the cursors of some others are not checked.
    """
    found = differing(ours, theirs, but=ARRIVAL)
    if found:
        return found
    readers = ours.db.execute(
        "SELECT r.reader FROM reader r ORDER BY r.reader NOT IN (SELECT coalesce(agent_identity, session_id)"
        " FROM session WHERE clone_id = ?), r.reader",
        (store.log.clone_id(),),
    ).fetchall()
    steps = StepLimit(ours.db, UNREAD_STEPS)
    return (
        ["unread"] if any(steps.ask(mailbox.skips_unread, ours.db, reader) for (reader,) in readers) else []
    )


def _lacking(index: Index, other: Index) -> int:
    """Return how many lines of another index it lacks."""
    ask = index.db.execute
    keys = other.db.execute("SELECT key FROM line")
    return sum(ask("SELECT 1 FROM line WHERE key = ?", row).fetchone() is None for row in keys)


DAMAGED, EXPOSED = "clone-key", "clone-key-exposed"


class CloneKey(Check):
    """A key that can't be used, or that others may read."""

    codes = fixes = (DAMAGED, EXPOSED)

    def check(self) -> Iterator[Finding]:
        key = self.store.keys.now()
        if key.damage:
            yield problem(
                DAMAGED,
                f"Cannot use the clone key: {key.damage}. Clients can't begin sessions.",
                key.path,
                "Restore it from a backup if there is one. Otherwise --fix moves it aside and creates a new key: clients then begin new "
                "sessions.",
            )
        if key.is_exposed:
            yield problem(
                EXPOSED,
                "Other users of this machine can read the clone key, by which the ids of clients are hidden.",
                key.path,
                f"--fix sets its mode to {key.mode:o}.",
            )

    def fix(self) -> Iterator[Fixed]:
        """Move a damaged key aside and create a new one; restrict the mode of an exposed key."""
        key = self.store.keys.now()
        if key.damage:
            where = move_aside(self.store, key.path)
            self.store.keys.for_writing()
            yield DAMAGED, key.path, f"Moved to {where}; a new key was created."
        if key.is_exposed:
            os.chmod(key.path, key.mode)
            self.store.keys.forget()
            yield EXPOSED, key.path, "Other users can no longer read it."


WRITER_KEY = "writer-key"
_KEPT = "Records that wait for the old key are kept, and count in this clone alone."


class WriterKey(Check):
    """The key that writes here is missing, can't be used, or others may read it; or the repository itself names one."""

    codes, fixes = (WRITER_KEY, "unheeded-key"), (WRITER_KEY,)

    def check(self) -> Iterator[Finding]:
        writers = self.store.writers
        sentence = writers.problem()
        if sentence:
            is_chosen, usual = bool(writers.given or writers.chosen()), writers.usual()
            key = usual.key() if usual is not None else None
            kept, is_usual_safe = self._kept(), key is None or not (usual and usual.is_exposed)
            if kept is not None:
                how = "Correct it, or name another file." if is_chosen else "--fix does that."
            elif is_chosen:
                how = f"Restore the file, or let GITMEM_KEY_FILE name it. {_KEPT}"
            elif is_usual_safe:
                then = (
                    f"the key that is in the usual place, whose writer is {key.writer}"
                    if key
                    else "a new key"
                )
                how = f"Restore the file, or let GITMEM_KEY_FILE name it. Otherwise --fix goes on with {then}: you are another writer then. {_KEPT}"
            else:
                how = f"{command('chmod', '600', usual.path if usual else '')}; then --fix goes on with the key that is there. {_KEPT}"
            yield problem(
                WRITER_KEY,
                sentence,
                writers.describe()[1],
                how,
                fixable=not is_chosen and (kept is not None or is_usual_safe),
            )

        for each in filter(None, [keys.unheeded(self.store.repo.git_dir)]):
            yield note(
                "unheeded-key", each, os.path.join(self.store.repo.common, "config"), "Remove it there."
            )

    def _kept(self) -> KeyFile | None:
        """Return the key file that stays in force, as there is nothing but its mode to correct; None if there is none."""
        writers = self.store.writers
        writer = writers.describe()[0]
        return writers.file_of(writer) if writer else None

    def fix(self) -> Iterator[Fixed]:
        """Restrict the mode of an exposed key; in place of one that is missing or damaged note the usual one, or make it."""
        writers = self.store.writers
        writer, path = writers.describe()
        if writers.given or writers.chosen() or not writers.problem():
            return
        kept, usual = self._kept(), writers.usual()
        if kept is not None:
            os.chmod(kept.path, 0o600)
            yield WRITER_KEY, kept.path, "Other users can no longer read it."
        elif usual is not None and usual.key() is not None:
            yield (
                WRITER_KEY,
                usual.path,
                f"The key that is there writes here now: the writer is {writers.renew()}, not {writer}.",
            )
        else:
            where = ""
            if usual is not None:
                to = move_aside(self.store, usual.path, folder=os.path.dirname(usual.path))
                where = f" The file was moved to {to}."
            yield (
                WRITER_KEY,
                path,
                f"A new key was made: the writer is {writers.renew()} now, not {writer}.{where}",
            )


class Settings(Check):
    """Settings with a value that does not count, and names that are no setting."""

    codes = ("setting",)

    def check(self) -> Iterator[Finding]:
        for key, what, correction in settings.problems(self.store.settings()):
            how = "Set it again, or unset it." if correction else "Unset it."
            yield note("setting", what, key, how, correction)


class OtherKeys(Check):
    """Addresses under a key that does not write here any more, with unread mail; and this user's name under another key."""

    codes = ("left-address", "same-words")

    def check(self) -> Iterator[Finding]:
        for each in other_keys.left_sentences(self.store):
            yield note("left-address", each, ref.LOG_REF, "`gitmem trust` shows which key writes here.")
        person = own_person(self.store)
        if said := person and other_keys.of_same_words(self.store, person):
            yield note("same-words", said, ref.LOG_REF, "`gitmem trust` shows which key writes here.")


class HeldLines(Check):
    """Lines that their writer has not attested, or nobody if they name none, or with an address of one that has not allowed it."""

    codes = ("unattested", "not-allowed")

    def check(self) -> Iterator[Finding]:
        unallowed = catch_up.count_unallowed(self.store.db())
        if unallowed:
            yield note(
                "not-allowed",
                f"{unallowed:,} line{'s' if unallowed > 1 else ''} of the log ha{'ve' if unallowed > 1 else 's'} an address of another "
                f"writer, who has not allowed {'them' if unallowed > 1 else 'it'}: shown to nobody.",
                ref.LOG_REF,
                "A grant may arrive with the next sync. If it is you who writes there, `gitmem trust WRITER` lets that key.",
            )
        held = catch_up.count_held(self.store.db()) - unallowed
        if held:
            yield note(
                "unattested",
                f"{held:,} line{'s' if held > 1 else ''} of the log {'are' if held > 1 else 'is'} not signed by the writer that "
                f"{'they name' if held > 1 else 'it names'}, or by nobody: shown to nobody.",
                ref.LOG_REF,
                "Signatures may arrive with the next sync. Whoever can push may have written what never gets one.",
            )
