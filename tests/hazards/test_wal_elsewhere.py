"""Lines that a sandbox had to leave outside the repository: whoever comes next finds them, whatever its own $TMPDIR."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli import environment
from gitmem.repo import find

from .conftest import Desk, Said, powerless, process, waiting

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" and os.getuid() == 0, reason="root can't lay down its powers here"
)


@pytest.fixture
def sealed(desk: Desk) -> Iterator[str]:
    """A session in a repository whose git folder can't be written until the test opens it."""
    session = desk.start("Planck")
    folders = [path for path in (desk.repo / ".git").rglob("*") if path.is_dir()]
    every = [desk.repo / ".git", *folders]
    for path in every:
        path.chmod(0o500)
    yield session
    for path in every:
        path.chmod(0o700)


def opened(desk: Desk) -> None:
    git_folder = desk.repo / ".git"
    git_folder.chmod(0o700)
    for path in git_folder.rglob("*"):
        if path.is_dir():
            path.chmod(0o700)


def sandbox(desk: Desk, session: str, text: str, **env: str) -> None:
    """A signal from a process that may not write the git folder."""
    said = process(
        "signal", text, "--json", cwd=desk.repo, env={"GITMEM_SESSION": session, **env}, before=powerless
    )
    assert (said.status, said.json["recorded"]) == (0, True), said


def messages(desk: Desk) -> list[str]:
    entries = desk("log", "--json").json["entries"]
    return [each["message"] for each in entries if each.get("message")]


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that stands for /tmp."""
    found = tmp_path / "shared"
    found.mkdir()
    monkeypatch.setattr(environment, "SHARED", (str(found), str(tmp_path / "var")))
    return found


@pytest.mark.parametrize("place", ["shared", "state"])
def test_a_line_from_a_sandbox_is_found_under_another_tmpdir(
    desk: Desk, sealed: str, shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """What was accepted in /tmp, or in the state folder, is answered and committed by who has a $TMPDIR of its own."""
    state = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    env = {"TMPDIR": str(shared), "XDG_STATE_HOME": "/proc"} if place == "shared" else {"TMPDIR": "/proc"}
    sandbox(desk, sealed, "from the sandbox", **env)
    (left,) = (shared if place == "shared" else state).rglob("*.wal1")

    seen = process(
        "log",
        "--json",
        cwd=desk.repo,
        env={"TMPDIR": str(shared), "GITMEM_SESSION": sealed},
        before=powerless,
    )
    assert "from the sandbox" in seen.out
    opened(desk)

    assert messages(desk) == ["from the sandbox"]
    assert not left.exists()
    assert waiting(desk.repo) == []
    assert desk("doctor", "--json").json["healthy"]


def test_nothing_elsewhere_costs_a_look_and_a_folder_with_two_names_is_read_once(
    repo: Path, shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the git folder can be written nothing is to be written elsewhere; what is not there is not read."""
    link = tmp_path / "link"
    link.symlink_to(shared)
    monkeypatch.setenv("TMPDIR", str(link))
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    place = find(str(repo))
    assert environment.external_wals(place) == ([], [])

    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda path, mode: False)
        written, read = environment.external_wals(place)
        state = os.path.join(os.environ["HOME"], ".local", "state", "gitmem")
        assert [os.path.dirname(each) for each in written] == [state, f"{link}/gitmem-{os.getuid()}"]
        assert read == []
        os.makedirs(written[1])
        assert environment.external_wals(place) == (written, [])
    assert environment.external_wals(place) == ([], written[1:])


def test_processes_with_different_folders_do_not_undo_each_others_index(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One finds a receipt in a folder that the other does not read: neither takes it for a line that is lost."""
    from gitmem.index import index_file
    from gitmem.log.write_ahead import WriteAheadLog

    from .faults import open_store, speak

    session = desk.start("Planck")
    one, other = open_store(desk.repo), open_store(desk.repo)
    one.log.others = [WriteAheadLog(str(tmp_path / "gitmem-1" / "project"), one.now, check_owner=True)]
    one.log.elsewhere = one.log.others
    with monkeypatch.context() as patch:
        patch.setattr(one.log, "make_state", lambda: False)
        speak(one, "rides", deferred=True)
    rebuilt: list[object] = []
    monkeypatch.setattr(index_file.Index, "reshape", rebuilt.append)
    for _ in range(2):
        for store in (one, other):
            (count,) = store.db().execute("SELECT count(*) FROM signal").fetchone()
            assert count == 1
    assert not rebuilt
    assert desk("inbox", "--count", session=session).status == 0
    one.close()
    other.close()


@pytest.mark.parametrize("other", [None, "Planck"], ids=["alone", "beside an older session"])
def test_nobody_speaks_for_a_session_that_started_in_a_sandbox(
    desk: Desk, tmp_path: Path, other: str | None
) -> None:
    """Its file can't be written. The next command must be neither the person nor the other session of the worktree."""
    if other:
        desk.start(other)
    folders = [desk.repo / ".git", *(path for path in (desk.repo / ".git").rglob("*") if path.is_dir())]
    for path in folders:
        path.chmod(0o500)
    env = {"XDG_STATE_HOME": str(tmp_path / "state")}

    def run(*args: str, **more: str) -> Said:
        return process(*args, "--json", cwd=desk.repo, env={**env, **more}, before=powerless)

    try:
        started = run("session", "start", "--name", "Cerf", "--agent-identity", "claude:x:y")
        silent = run("signal", "hello from Cerf")
        named = run("signal", "hello again", GITMEM_SESSION=started.json["session_id"])
    finally:
        for path in folders:
            path.chmod(0o700)

    assert (silent.status, silent.error["code"]) == (2, "which-session"), silent
    assert "read-only" in silent.error["message"]
    assert named.json["signal"]["sender_name"] == "Cerf"
