"""What is planted in place of a file of the state folder: a link, a pipe, a folder, or 8 GB of nothing."""

from __future__ import annotations

import ast
import os
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gitmem import local_files

from .. import templates
from ..hook_agents import Agent, note_program, program
from ..sandbox import new_repo
from .conftest import ROOT, Desk, Said

SECONDS_MAX = 30
SPARSE_BYTES = 8 * 1024**3
SECRET = b"the victim's own file\n"

# Functions that open files which are not of the state folder, and what they open.
OTHERS = {
    "cli/commands/demo.py:_build": "the demo's repository",
    "cli/commands/demo.py:_delegate_and_claim": "the demo's repository",
    "cli/environment.py:_may_sync": "git's config",
    "cli/hooks/client_session.py:_export": "the file that a client names for variables",
    "cli/mcp/server.py:claim": "/dev/null",
    "cli/render/output.py:_redirect_to_null": "/dev/null",
    "cli/commands/watch.py:_read": "a file that the user names",
    "gitmem/clients/install.py:_config": "a client's settings",
    "gitmem/clients/managed_files.py:installed_content": "this package",
    "gitmem/clients/managed_files.py:read_file": "files of the user",
    "gitmem/commit_process.py:_is_zombie": "/proc",
    "gitmem/local_files.py:fsync_dir": "a folder",
    "gitmem/git/fetch.py:reset": "a folder that it has just made",
    "gitmem/git/packs.py:gc_runs": "git's own file",
    "gitmem/git/files.py:loose_tip": "git's own file",
    "gitmem/git/files.py:tables": "git's own file",
    "gitmem/git/plumbing.py:damaged_refs": "git's own file",
    "gitmem/importers/lumenflow_import.py:read": "files that the user names",
    "gitmem/importers/beads.py:_open": "a file that the user names",
    "gitmem/calls/process_guard.py:all_processes": "/proc",
    "gitmem/log/write_ahead.py:sync_folder": "a folder",
    "gitmem/page/page_file.py:_read": "this package",
    "gitmem/repo.py:read_small": "git's own files",
    "gitmem/agents/vocabulary.py:builtin": "this package",
    "gitmem/agents/signers.py:_write": "a temporary folder",
    "gitmem/agents/signers.py:sign": "a temporary folder",
    "gitmem/local_files.py:open_file": "the files of the state folder",
    "gitmem/history/why.py:_beginning": "the work tree",
    "gitmem/git/work_tree_files.py:read_text": "the work tree",
    "merge_driver/main.py:_read": "what git hands to a merge driver",
    "cli/render/output.py:append_summary": "the summary of a job of CI, which it names",
    "gitmem/agents/doors.py:started": "what the system says of a process",
    "merge_driver/main.py:_replace": "what git hands to a merge driver",
    "merge_driver/install.py:edit": "git's config and attributes",
    "merge_driver/install.py:read": "git's config and attributes",
}
GITS = {  # modules that read git's and users' small files, following links as git does
    "gitmem/clients/clients.py",
    "gitmem/clients/git_hook.py", "gitmem/git/branches.py", "gitmem/git/files.py",
    "gitmem/git/packs.py", "gitmem/git/history.py", "gitmem/git/config.py",
    "gitmem/git/port.py", "gitmem/git/plumbing.py",
    "gitmem/calls/worktree_runs.py", "gitmem/history/overlap.py", "gitmem/repo.py",
    "gitmem/signals/watch.py", "gitmem/local_files.py", "gitmem/sync/autosync.py",
    "gitmem/sync/sync_remotes.py",
}  # fmt: skip
SMALL = (
    "beats",
    "prompts",
    "empty",
    "tool-calls",
    "flags",
    "sync",
)  # folders that a day may not have made
METHODS = ("read_bytes", "read_text", "write_bytes", "write_text", "mkfifo")


def _opened(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Each function that opens a file by its name, with the call. A descriptor of `open_file` may be wrapped."""
    for function in ast.walk(tree):
        for call in ast.walk(function) if isinstance(function, ast.FunctionDef) else ():
            if isinstance(call, ast.Call):
                yield function.name, call


def test_one_function_opens_files_of_the_state_folder() -> None:
    """Whoever opens a file elsewhere says here which, so that nobody opens one of the state folder without its checks."""
    found, small = set(), set()
    for path in sorted(
        each for top in ("gitmem", "cli", "merge_driver") for each in (ROOT / top).rglob("*.py")
    ):
        name = str(path.relative_to(ROOT))
        for function, call in _opened(ast.parse(path.read_text())) if "/conformance/" not in name else ():
            called, given = ast.unparse(call.func), ast.unparse(call.args[0]) if call.args else ""
            wraps = given in ("handle", "descriptor") or given.startswith(
                ("local_files.open_file(", "os.open(")
            )
            of_paths = called.rpartition(".")[2] in METHODS and not called.startswith("work_tree_files.")
            if (
                (called == "open" and not wraps)
                or called in ("os.open", "io.open", "codecs.open")
                or of_paths
            ):
                found.add(f"{name}:{function}")
            if called.rpartition(".")[2] == "read_small":
                small.add(name)

    assert found == set(OTHERS)
    assert small == GITS


@pytest.fixture(scope="module")
def a_day(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The place of a repository after a day of use, once it was made."""
    return [tmp_path_factory.mktemp("day") / "repo"]


@pytest.fixture
def used(a_day: list[Path], desk: Desk, tmp_path: Path) -> Path:
    """A repository after a day of use: sessions, signals, claims, memory, hooks, commits."""
    (day,) = a_day
    if not day.exists():
        desk("setup")
        note_program(desk.repo / ".git" / "gitmem", program(tmp_path))
        one, two = desk.start("Ada"), desk.start("Ben")
        claude = Agent("claude-code", "claude-1", desk.repo)
        claude.reads("SessionStart")
        desk.send(one, "Tabs?", "--to", "Ben", "--requires-ack")
        desk("inbox", session=two)
        desk("claim", "src/*.py", session=one)
        desk("mem", "create", "The parser drops tabs", session=one)
        desk("mem", "create", "Mine alone", "--private", session=one)
        desk("mem", "context", session=two)
        claude.call("PostToolUse")
        desk("log", "--commit", session=one)
        desk.send(two, "Spaces.", "--to", "Ada")
        shutil.copytree(desk.repo, day, symlinks=True)
        day.with_name("ada").write_text(one)
    return day


@contextmanager
def limit(what: str) -> Iterator[None]:
    def late(*_: object) -> None:
        raise AssertionError(f"{what}: still running after {SECONDS_MAX} s")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS_MAX)
    try:
        yield
    finally:
        signal.alarm(0)


def link(path: Path, victim: Path) -> None:
    path.symlink_to(victim)


def dangling(path: Path, victim: Path) -> None:
    path.symlink_to(victim.with_name("created"))


def pipe(path: Path, victim: Path) -> None:
    os.mkfifo(path)


def folder(path: Path, victim: Path) -> None:
    path.mkdir()
    (path / "kept").write_bytes(SECRET)


def sparse(path: Path, victim: Path) -> None:
    with path.open("wb") as file:
        file.truncate(SPARSE_BYTES)


EVERYDAY = (
    ("signal", "Now?", "--to", "Ben", "--json"), ("inbox",), ("roster",), ("log",), ("whoami",), ("claim", "list"),
    ("mem", "ready"), ("thread",), ("doctor",),
)  # fmt: skip


ALIKE = ("deliver", "own-packs", "pins")  # folders whose files are all of one kind


def state_of(repo: Path) -> list[Path]:
    """Files of the state folder; of those that are alike, one."""
    state = repo / ".git" / "gitmem"
    found = sorted(path for path in state.rglob("*") if path.is_file() and not path.is_symlink())
    return list({path.parent if path.parent.name in ALIKE else path: path for path in found}.values())


def restore(repo: Path, used: Path, *more: str) -> None:
    """Make the state folder, the refs and more folders of git what they were when the repository was copied.

    The committer of an earlier command may still write there.
    """
    for name in ("gitmem", "refs", *more):
        for attempt in range(100):
            try:
                shutil.rmtree(repo / ".git" / name, ignore_errors=bool(attempt))
                shutil.copytree(used / ".git" / name, repo / ".git" / name, symlinks=True)
                break
            except OSError:
                time.sleep(0.1)
        else:
            pytest.fail(f"{name} is written all the time")


@pytest.mark.parametrize("plant", [link, dangling, pipe, sparse, folder])
def test_whatever_is_planted_no_command_waits_or_writes_elsewhere(
    used: Path, tmp_path: Path, plant: Callable[[Path, Path], None]
) -> None:
    """Everyday commands answer, or say in a sentence which file is not gitmem's; the victim's file stays as it is."""
    names = [path.relative_to(used) for path in state_of(used)]
    assert len(names) > 20
    victim = tmp_path / "victim"
    victim.write_bytes(SECRET)
    ada = used.with_name("ada").read_text()
    refused: list[tuple[Path, Said]] = []
    repo = tmp_path / "copy"
    desk = Desk(repo)
    shutil.copytree(used, repo, symlinks=True)
    for number, name in enumerate(names):
        restore(repo, used)
        (repo / name).unlink()
        plant(repo / name, victim)
        for command in EVERYDAY if number % 4 == 0 else EVERYDAY[:2]:
            with limit(f"{command[0]} with {plant.__name__} at {name}"):
                said = desk(*command, session=ada)
            if command[0] == "signal" and said.status:
                refused.append((name, said))
            assert victim.read_bytes() == SECRET, (name, command)
            assert not victim.with_name("created").exists(), (name, command)
    for name, said in refused:
        if name.name.startswith("writer-"):  # the key that it names is in the folder of another user
            assert "It was made under another key" in said.err + said.out, said
            continue
        assert plant is folder or name.name == "key", (name, said)
        assert str(name.name) in said.out, (name, said)


def test_a_link_in_place_of_a_folder_leads_nobody_elsewhere(used: Path, tmp_path: Path) -> None:
    """Everyday commands neither remove nor create or touch anything in the folder that a link in the state folder names."""
    state = used / ".git" / "gitmem"
    names = {str(path.relative_to(state)) for path in state.rglob("*") if path.is_dir()}
    names |= {
        "claims/due",
        "claims/only-own",
        "claims/warned",
        "claims/seen",
        "claims/notices",
        "claims/told",
        *SMALL,
    }
    ada = used.with_name("ada").read_text()
    repo = tmp_path / "copy"
    desk = Desk(repo)
    shutil.copytree(used, repo, symlinks=True)
    for number, name in enumerate(sorted(names)):
        victim = tmp_path / f"victim-{number}"
        restore(repo, used, "objects")  # `doctor` would look through what the last ones left
        for each in ("",):
            (victim / each).mkdir()
            for file in ("kept", f"{'f' * 8}.log", ada):
                (victim / each / file).write_bytes(SECRET)
                os.utime(victim / each / file, (1, 1))
        place = repo / ".git" / "gitmem" / name
        if place.is_dir():
            shutil.rmtree(place)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(victim)
        before = _content(victim)
        for command in (
            ("inbox",),
            ("claim", "b.txt"),
            ("signal", "Now?", "--to", "Ben"),
            ("log", "--commit"),
        ):
            desk(*command, session=ada)
            assert _content(victim) == before, (name, command)
        desk.start("Cyd")
        desk("doctor", "--fix", session=ada)
        assert _content(victim) == before, name


def _content(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(folder)): (path.read_bytes() if path.is_file() else b"", path.stat().st_mtime_ns)
        for path in folder.rglob("*")
    }


def test_a_thread_that_opens_a_repository_disturbs_none_that_works_in_another(used: Path) -> None:
    """A process may have opened many: nobody walks through all of them, which would fail when another thread adds one."""
    state = str(used / ".git" / "gitmem")

    class Counted(set[str]):
        def __iter__(self) -> Iterator[str]:
            raise AssertionError("walks through all repositories")

    before = local_files.STATES
    try:
        local_files.STATES = Counted([*before, state])
        assert local_files.link_at(state) == "" == local_files.link_at(os.path.join(state, "wal"))
        assert local_files.link_at("/nowhere/else") == local_files.link_at("relative") == ""
    finally:
        local_files.STATES = before


def test_a_link_in_place_of_the_state_folder_is_named(used: Path, tmp_path: Path) -> None:
    """Nothing is made where it leads, and the advice is to remove the link."""
    repo, victim = tmp_path / "linked", tmp_path / "victim"
    shutil.copytree(used, repo, symlinks=True)
    shutil.rmtree(repo / ".git" / "gitmem")
    (repo / ".git" / "gitmem").symlink_to(victim)
    victim.mkdir()
    desk = Desk(repo)
    for command in EVERYDAY:
        said = desk(*command)
        assert not list(victim.iterdir()), command
        if command[0] in ("log", "roster", "signal"):
            assert said.status, command
            assert "a link" in said.out + said.err and "Remove the link" in said.out + said.err, said


# An index that somebody else has put there: with the number of its shape, but tables, views and triggers of theirs.

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
SCHEMAS = {
    "a trigger": (f"CREATE TRIGGER t AFTER INSERT ON line BEGIN SELECT ({ENDLESS}); END",),
    "a trigger on a deletion": (f"CREATE TRIGGER t AFTER DELETE ON file BEGIN SELECT ({ENDLESS}); END",),
    "a view in place of a table": ("DROP TABLE session", f"CREATE VIEW session AS SELECT i AS session_id FROM ({ENDLESS.replace('max(i)', 'i')})"),
    "an index on an expression": ("CREATE INDEX slow ON line (length(hex(zeroblob(400000000))))",),
    "a column that is computed": ("DROP TABLE skipped", "CREATE TABLE skipped (line INTEGER PRIMARY KEY, x AS (hex(zeroblob(400000000))) STORED)"),
    "a table more": ("CREATE TABLE more (x)",),
    "lost lines that never end": (f"CREATE VIEW lost AS SELECT i AS key, 0 AS epoch, '' AS path, '' AS body FROM ({ENDLESS.replace('max(i)', 'i')})",),
    "words that never end": (f"CREATE VIEW memory_words_row AS {ENDLESS}",),
    "a name with a quote": ('CREATE TABLE "a""b" (x)',),
}  # fmt: skip


def statements(path: Path) -> set[str]:
    db = sqlite3.connect(path)
    found = {sql for (sql,) in db.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    db.close()
    return found


@pytest.fixture
def with_index(tmp_path: Path) -> tuple[Desk, str, str]:
    """A repository with a signal and a node, and the sessions of Ada and Ben."""

    def make(root: Path) -> None:
        desk = Desk(new_repo(root / "used"))
        desk("setup")
        ada, ben = desk.start("Ada"), desk.start("Ben")
        desk.send(ada, "Tabs?", "--to", "Ben")
        desk("mem", "create", "The parser drops tabs", session=ada)
        desk("log", "--commit")
        (root / "sessions").write_text(f"{ada} {ben}")

    templates.copy("used-index", tmp_path / "day", make)
    ada, ben = (tmp_path / "day" / "sessions").read_text().split()
    return Desk(tmp_path / "day" / "used"), ada, ben


@pytest.mark.parametrize("version", [True, False], ids=["ours", "other"])
@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_an_index_with_a_foreign_schema_is_rebuilt(
    with_index: tuple[Desk, str, str], schema: tuple[str, ...], version: bool
) -> None:
    """Every command answers as before, and the index is gitmem's again; `version`: whether it has our number."""
    desk, ada, ben = with_index
    (path,) = (desk.repo / ".git" / "gitmem").glob("index-*.sqlite3")
    before = statements(path)
    db = sqlite3.connect(path)
    for statement in schema:
        db.execute(statement)
    if not version:
        db.execute("PRAGMA user_version = 7")
    db.commit()
    db.close()
    assert statements(path) != before

    with limit(str(schema)):
        assert "Tabs?" in desk("inbox", session=ben).out
        desk.send(ben, "Spaces.", "--to", "Ada")
        for command in (
            ("log",),
            ("roster",),
            ("claim", "list"),
            ("mem", "ready"),
            ("doctor",),
            ("mem", "search", "parser"),
        ):
            assert desk(*command, session=ada).status == 0, command
        desk("log", "--commit", session=ada)

    assert {each for each in statements(path) if "memory_words" not in each and "TABLE lost" not in each} == {
        each for each in before if "memory_words" not in each
    }


def test_a_search_leaves_the_index_as_it_is(desk: Desk) -> None:
    """What SQLite itself makes for the words is not foreign."""
    desk("setup")
    ada = desk.start("Ada")
    desk("mem", "create", "The parser drops tabs", session=ada)
    (path,) = (desk.repo / ".git" / "gitmem").glob("index-*.sqlite3")
    before = path.stat().st_ino
    for _ in range(2):
        assert "parser" in desk("mem", "search", "parser", session=ada).out
        assert {"memory_words", "memory_words_idx"} <= {
            each.split("(")[0].split()[2 if "VIRTUAL" not in each else 3].strip("'")
            for each in statements(path)
        }
    assert path.stat().st_ino == before
