"""How git is started: whose variables it sees, how long it may take, and what its failures say."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.errors import StoreError
from gitmem.git import processes
from gitmem.git.repository import reject_untrusted
from gitmem.repo import Repo, find

from ..conftest import Git

Run = Callable[..., str]
SLOW = ["-c", "alias.slow=!echo $$ > pid; sleep 30 & echo $! >> pid; wait", "slow"]


def test_local_variables_do_not_pass_and_the_user_s_do(monkeypatch: pytest.MonkeyPatch, git: Run) -> None:
    """All that git calls local is dropped, except what the user said with `git -c` or GIT_CONFIG_COUNT."""
    local = set(git("rev-parse", "--local-env-vars").split())
    kept = {
        "GIT_CONFIG_PARAMETERS",
        "GIT_CONFIG_COUNT",
        "GIT_SSH_COMMAND",
        "GIT_ASKPASS",
        "GIT_TRACE",
        "GIT_SSL_CAINFO",
    }
    for name in (
        local | kept | {"GIT_NAMESPACE", "GIT_QUARANTINE_PATH", "GIT_PUSH_OPTION_0", "GIT_REFLOG_ACTION"}
    ):
        monkeypatch.setenv(name, "theirs")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")

    theirs = {name for name, value in processes.environment().items() if value == "theirs"}
    assert theirs == kept
    assert processes.environment({"A": "b"})["A"] == "b"
    assert processes.environment()["LC_ALL"] == "C"
    assert os.environ["GIT_DIR"] == "theirs"


def test_output_input_and_exit_status(common: str) -> None:
    """Input is passed whole; without any, git waits for nothing."""
    assert processes.run(common, ["hash-object", "--stdin"], input=b"x" * 200_000).out.strip()
    assert (
        processes.run(common, ["hash-object", "--stdin"]).out == b"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\n"
    )
    assert processes.run(common, ["rev-parse", "--verify", "-q", "refs/none"], check=False).code == 1


def test_what_is_done_meanwhile_is_done_once_and_while_git_runs(common: str, tmp_path: Path) -> None:
    """Also where git fails; where it fails itself, nothing of git is left running."""
    seen = tmp_path / "seen"
    wait = ["-c", f"alias.wait=!while ! test -e {seen}; do sleep 0.01; done; exit 3", "wait"]
    assert processes.run(common, wait, check=False, timeout=10, meanwhile=seen.touch).code == 3

    def fail() -> None:
        raise ValueError

    seen.unlink()
    with pytest.raises(ValueError):
        processes.run(common, ["-c", f"alias.late=!sleep 0.2; touch {seen}", "late"], meanwhile=fail)
    time.sleep(0.4)
    assert not seen.exists()


def test_a_failure_says_what_git_said(common: str) -> None:
    """The last telling line, with control characters made visible."""
    with pytest.raises(
        StoreError, match=r"^git cat-file failed: fatal: Not a valid object name x\.$"
    ) as caught:
        processes.run(common, ["cat-file", "-t", "x"])
    assert caught.value.code == "git-failed"
    with pytest.raises(StoreError, match="git rev-parse failed: fatal: not a git repository"):
        processes.run(os.path.dirname(common), ["rev-parse", "HEAD"])


def test_words_of_git_are_harmless_and_telling() -> None:
    """A hook on the remote may say anything; escapes and bidi marks don't reach a terminal."""
    said = "hint: x\nfatal: first\nerror: \x1b[31mred\u202e\x07\r\nhint: try again\n\n"

    assert processes.summary_line(said) == r"error: \u001b[31mred\u202e\u0007"
    assert processes.summary_line("only\nwords\n") == "words"
    assert processes.summary_line("") == ""


def test_words_that_are_no_text_are_told_all_the_same(common: str) -> None:
    """Git names paths in their own bytes; the error is git's, not one about its letters."""
    with pytest.raises(StoreError, match=r"^git odd failed: fatal: \ufffd is no file\.$"):
        processes.run(
            common, ["-c", "a.b=c", "-c", r"alias.odd=!printf 'fatal: \377 is no file\n' >&2; exit 1", "odd"]
        )


def test_a_missing_git_is_a_sentence(common: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the program, and in a folder that went away, nothing was done and it says so."""
    with pytest.raises(StoreError, match="is missing") as caught:
        processes.run(str(tmp_path / "gone"), ["version"])
    assert caught.value.code == "folder-missing"
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StoreError, match="git was not found on PATH") as caught:
        processes.run(common, ["version"])
    assert caught.value.code == "git-missing"


def test_a_hanging_git_is_killed_with_all_it_started(common: str) -> None:
    """The limit is on the group: an ssh that git waits for ends as well."""
    begun = time.monotonic()
    with pytest.raises(processes.GitTimeoutError, match=r"^git slow did not end within 0\.5 seconds"):
        processes.run(common, SLOW, timeout=0.5)
    assert time.monotonic() - begun < 5
    for pid in (Path(common) / "pid").read_text().split():
        for _ in range(50):
            state = Path(f"/proc/{pid}/stat")
            if not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] == "Z":
                break
            time.sleep(0.02)
        else:
            pytest.fail(f"process {pid} lives")


def shell(common: str, script: str, data: bytes = b"", **options: int) -> processes.Result:
    return processes.run(common, ["-c", f"alias.x=!{script}", "x"], input=data, **options)


def test_much_in_and_much_out(common: str) -> None:
    """Input and output are larger than a pipe at the same time; of a large standard error the last part is kept, apart from the output."""
    data = os.urandom(1 << 20)
    done = shell(common, "tee /dev/stderr", data)
    assert (done.out, done.err) == (data, data.decode("utf-8", "replace"))

    done = shell(common, "yes | head -c 3000000 >&2; echo last >&2; echo done", out_max=10)
    assert (done.out, len(done.err), done.err[-5:]) == (b"done\n", processes.ERRORS_MAX, "last\n")
    with pytest.raises(processes.GitOutputError, match="wrote more than 10 bytes") as caught:
        shell(common, "yes", out_max=10)
    assert caught.value.out.startswith(b"y\ny\n")


def test_a_child_that_does_not_read(common: str) -> None:
    """Its end is the end; what it did not want is dropped. Without input there is nothing to read, not even the caller's."""
    assert shell(common, "echo done", b"x" * (1 << 20)).out == b"done\n"
    assert shell(common, "cat").out == b""


def test_the_folder_and_a_session_of_its_own(
    common: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative paths mean the folder, also where the caller's is gone; a Ctrl-C at the terminal does not reach git, and it gets the usual signals."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    script = "pwd -P; ps -o sid= -p $$; grep SigIgn /proc/$$/status || echo SigIgn: 0"
    folder, session, ignored = shell(common, script).out.decode().splitlines()
    assert folder == common and int(session) != os.getsid(0)
    assert not int(ignored.split()[1], 16) & (1 << (signal.SIGPIPE - 1))


def test_with_closed_standard_streams(repo: Path) -> None:
    """As a harness may start a hook: our pipes then get the streams' numbers, and must not mix them up."""
    code = (
        "import os\nfor n in (0, 1, 2): os.close(n)\n"
        "from gitmem.git import processes as run\n"
        f"done = run.run({str(repo / '.git')!r}, ['hash-object', '--stdin'], input=b'x')\n"
        f"open({str(repo / 'said')!r}, 'wb').write(done.out)"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, timeout=30, capture_output=True)

    assert done.returncode == 0
    assert (repo / "said").read_text() == "c1b0730e0133447badcfd47fd144e254807b06e1\n"


def test_an_ignored_sigchld_is_an_error_and_no_success(common: str) -> None:
    """The system forgets exit statuses then; nobody takes a failure for a success."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with pytest.raises(StoreError, match="SIGCHLD") as caught:
            processes.run(common, ["rev-parse", "--git-dir"])
        assert caught.value.code == "git-failed"
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_who_was_waited_for_is_not_signalled(common: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may have given its id to a stranger."""
    child = processes.start(common, ["version"], processes.environment(), None, input=False, errors=True)
    processes.communicate(child, b"", 30)
    killed: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda group, number: killed.append(group))

    processes.kill(child)
    assert killed == []


# A repository of somebody else: git is asked whether it trusts it, and nobody where it is ours.


@pytest.fixture
def place(repo: Path) -> Repo:
    """One with a name that a shell would take apart."""
    return find(str(repo.rename(repo.parent / "it's mine")))


@pytest.fixture
def distrust(place: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on git takes everything for somebody else's."""
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")


def refused(place: Repo, folder: str, quoted: str) -> None:
    with pytest.raises(StoreError) as caught:
        reject_untrusted(place)
    allow = f"git config --global --add safe.directory {quoted}"
    assert caught.value.code == "dubious-ownership"
    assert caught.value.message.startswith(f"The repository {folder} belongs to another user")
    assert allow in caught.value.hint and caught.value.next == [allow]


@pytest.mark.usefixtures("distrust")
def test_our_own_is_used_without_a_question(place: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every hook comes by here: no git is started for it."""
    monkeypatch.setenv("PATH", "/nowhere")
    reject_untrusted(place)
    reject_untrusted(Repo(place.common, place.common, None))
    reject_untrusted(Repo(place.common, place.common, "/nowhere"))


@pytest.mark.usefixtures("distrust")
@pytest.mark.parametrize("whose", ["common", "worktree"])
def test_another_s_is_refused_with_the_way_to_allow_it(
    place: Repo, monkeypatch: pytest.MonkeyPatch, whose: str
) -> None:
    """Whether its git folder is the other's or the work tree alone."""
    lstat, theirs = os.lstat, getattr(place, whose)

    def of_another(path: str) -> os.stat_result:
        found = lstat(path)
        return os.stat_result((*found[:4], found.st_uid + 1, *found[5:10])) if path == theirs else found

    monkeypatch.setattr(os, "lstat", of_another)
    folder = place.worktree or ""
    refused(place, folder, "'" + folder.replace("'", "'\"'\"'") + "'")


@pytest.mark.usefixtures("distrust")
def test_a_bare_one_of_another_is_named_by_itself(
    tmp_path: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    git("init", "--quiet", "--bare", "bare.git")
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    bare = str(tmp_path / "bare.git")
    refused(Repo(bare, bare, None), bare, bare)


def test_what_git_trusts_is_used(place: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whosever it is; also where git has something else to say against it."""
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    reject_untrusted(place)
    reject_untrusted(Repo(str(tmp_path), str(tmp_path), None))

    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    (tmp_path / "trusting").write_text(f'[safe]\n\tdirectory = "{place.worktree}"\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "trusting"))
    reject_untrusted(place)


def test_a_git_file_of_another_is_refused(
    place: Repo, tmp_path: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a linked worktree the file `.git` says where everything is."""
    git("worktree", "add", "--quiet", str(tmp_path / "linked"), cwd=Path(place.worktree or ""))
    linked = find(str(tmp_path / "linked"))
    reject_untrusted(linked)
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    lstat, theirs = os.lstat, str(tmp_path / "linked" / ".git")

    def of_another(path: str) -> os.stat_result:
        found = lstat(path)
        return os.stat_result((*found[:4], found.st_uid + 1, *found[5:10])) if path == theirs else found

    monkeypatch.setattr(os, "lstat", of_another)
    with pytest.raises(StoreError, match="belongs to another user"):
        reject_untrusted(linked)


def explicit(how: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Say that only a repository that is named may be bare, in one of the places that git heeds."""
    if how == "global":
        (folder / "explicit").write_text("[safe]\n\tbareRepository = explicit\n")
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(folder / "explicit"))
    elif how == "environment":
        for name, value in (("COUNT", "1"), ("KEY_0", "safe.bareRepository"), ("VALUE_0", "explicit")):
            monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    else:
        monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'safe.barerepository'='explicit'")


@pytest.mark.parametrize("how", ["global", "environment", "option"])
def test_bare_repositories_must_be_named_where_the_user_says_so(
    tmp_path: Path, git: Git, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """`safe.bareRepository`, as git heeds it: GIT_DIR names one, the current folder does not."""
    git("init", "--quiet", "--bare", "bare.git")
    bare = str(tmp_path / "bare.git")
    reject_untrusted(find(bare))
    explicit(how, tmp_path, monkeypatch)

    for found in (find(bare), find(bare, named=True)):
        with pytest.raises(StoreError, match="is a bare repository, and safe") as caught:
            reject_untrusted(found)
        assert caught.value.code == "bare-repository"
    reject_untrusted(find(str(tmp_path), git_dir="bare.git"))


def test_a_bare_repository_can_not_allow_itself(
    tmp_path: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own config is not asked."""
    git("init", "--quiet", "--bare", "bare.git")
    git("config", "safe.bareRepository", "all", cwd=tmp_path / "bare.git")
    explicit("global", tmp_path, monkeypatch)

    with pytest.raises(StoreError, match="is a bare repository, and safe"):
        reject_untrusted(find(str(tmp_path / "bare.git")))


def test_worktrees_of_a_bare_repository_need_no_name(
    repo: Path, tmp_path: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `.git` file leads to it, as in git."""
    git("clone", "--quiet", "--bare", str(repo), "bare.git")
    git("worktree", "add", "--quiet", str(tmp_path / "linked"), cwd=tmp_path / "bare.git")
    explicit("global", tmp_path, monkeypatch)

    reject_untrusted(find(str(tmp_path / "linked")))
