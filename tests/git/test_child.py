"""A git on pipes behaves the same with posix_spawn and with subprocess."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gitmem.errors import StoreError
from gitmem.git import child, run


@pytest.fixture(params=["spawned", "portable"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Either way to start a child; the second is for a Python built for an old C library."""
    if request.param == "portable":

        def refuse(*_: object, **options: object) -> None:
            raise NotImplementedError

        monkeypatch.setattr(os, "posix_spawnp", refuse)
    return str(request.param)


def shell(
    script: str, folder: Path, data: bytes = b"", *, input: bool = True, seconds: float = 10
) -> child.ChildProcess:
    return run.start(
        ["git", "-c", f"alias.x=!{script}", "x"], run.environment(), str(folder), input=input, errors=True
    )


def test_much_in_and_much_out(way: str, repo: Path) -> None:
    """Both sides have more to say than a pipe holds, at the same time, on all three streams."""
    data = os.urandom(1 << 20)
    process = shell("tee /dev/stderr", repo)

    assert process.communicate(data, 30) == (0, data, data)


def test_of_errors_without_end_the_end_is_kept(way: str, repo: Path) -> None:
    """They count as no output."""
    script = "yes | head -c 3000000 >&2; echo last >&2; echo done"
    code, out, err = shell(script, repo).communicate(b"", 30, out_max=10)

    assert (code, out, len(err), err[-5:]) == (0, b"done\n", child.ERRORS_MAX, b"last\n")


def test_a_child_that_does_not_read(way: str, repo: Path) -> None:
    """Its end is the end; what it did not want is dropped."""
    code, out, err = shell("echo done; exit 3", repo).communicate(b"x" * (1 << 20), 30)

    assert (code, out, err) == (3, b"done\n", b"")


def test_without_input_there_is_nothing_to_read(way: str, repo: Path) -> None:
    """Not even the standard input of the caller."""
    assert shell("cat", repo, input=False).communicate(b"", 10) == (0, b"", b"")


def test_a_child_that_lives_on_is_a_timeout(way: str, repo: Path) -> None:
    """Whether it holds its pipes or has closed them."""
    for script in ("sleep 20", "exec >&- 2>&-; sleep 20"):
        process = shell(script, repo)
        with pytest.raises(TimeoutError):
            process.communicate(b"", 0.3)
        process.kill()
        assert process.poll() == -signal.SIGKILL


def test_the_folder_and_a_session_of_its_own(way: str, repo: Path) -> None:
    """Relative paths in git's arguments mean the folder; a Ctrl-C at the terminal does not reach git."""
    code, out, _ = shell("pwd -P; ps -o sid= -p $$", repo).communicate(b"", 10)

    assert code == 0
    folder, session = out.decode().split()
    assert folder == str(repo)
    assert int(session) != os.getsid(0)


def test_from_a_folder_that_is_gone(
    way: str, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent's own folder may have been deleted under it."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()

    assert run.run(str(repo / ".git"), ["rev-parse", "--git-dir"]).code == 0
    monkeypatch.undo()


def test_with_closed_standard_streams(repo: Path) -> None:
    """As a harness may start a hook: our pipes then get the streams' numbers, and must not mix them up."""
    code = (
        "import os\nfor n in (0, 1, 2): os.close(n)\n"
        "from gitmem.git import run\n"
        f"done = run.run({str(repo / '.git')!r}, ['hash-object', '--stdin'], input=b'x')\n"
        f"open({str(repo / 'said')!r}, 'wb').write(done.out)"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, timeout=30, capture_output=True)

    assert done.returncode == 0
    assert (repo / "said").read_text() == "c1b0730e0133447badcfd47fd144e254807b06e1\n"


def test_an_ignored_sigchld_is_an_error_and_no_success(repo: Path) -> None:
    """The system forgets exit statuses then; nobody takes a failure for a success."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with pytest.raises(StoreError, match="SIGCHLD") as caught:
            run.run(str(repo / ".git"), ["rev-parse", "--git-dir"])
        assert caught.value.code == "git-failed"
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_git_gets_the_default_signals(repo: Path) -> None:
    """Python ignores SIGPIPE; a git that did would not end when its reader does."""
    code, out, _ = shell("cat /proc/$$/status || echo SigIgn: 0", repo).communicate(b"", 10)
    ignored = next(int(row.split()[1], 16) for row in out.decode().splitlines() if row.startswith("SigIgn"))

    assert code == 0
    assert not ignored & (1 << (signal.SIGPIPE - 1))


def test_who_was_waited_for_is_not_signalled(way: str, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may have given its id to a stranger."""
    process = shell("true", repo)
    process.communicate(b"", 30)
    killed: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda group, number: killed.append(group))

    process.kill()
    assert killed == []
