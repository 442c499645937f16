"""Odd places: what is no usable repository is refused with a sentence, and what is one works wherever one stands."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..conftest import Git
from ..signing import history
from .conftest import Desk, check_next, check_text, nothing_written, powerless, process, refs, waiting

IDENTITY = ("--agent-identity", "test:worker:planck")


@pytest.fixture
def bound(repo: Path) -> Iterator[Path]:
    """The repository, whose permissions are given back after the test."""
    yield repo
    _chmod(repo / ".git", write=True)


def _chmod(folder: Path, *, write: bool) -> None:
    for at, folders, files in os.walk(folder):
        for name in [at, *(os.path.join(at, each) for each in (*folders, *files))]:
            mode = os.stat(name).st_mode & 0o777
            os.chmod(name, mode | 0o200 if write else mode & ~0o222)


def _talk(one: Desk, where: Path, there: Path) -> None:
    """An agent in one folder is heard in another one, and answered."""
    planck = one.start("Planck", cwd=where)
    curie = one.start("Curie", cwd=there)
    one.send(planck, "Approve this?", "--to", "Curie", "--intent", "propose", cwd=where)
    inbox = one("inbox", "--json", session=curie, cwd=there).json
    assert [each["message"] for each in inbox["signals"]] == ["Approve this?"]
    signal_id = inbox["signals"][0]["signal_id"]
    assert one("reply", signal_id, "Yes.", "--agree", session=curie, cwd=there).status == 0
    assert one("converged", signal_id, session=planck, cwd=where).status == 0


# Not a repository, and one with nothing in it


@pytest.mark.parametrize("command", [["signal", "hi"], ["inbox"], ["roster"], ["sync"], ["session", "start"]])
def test_outside_a_repository_a_command_says_so(tmp_path: Path, desk: Desk, command: list[str]) -> None:
    """Outside a repository nothing is made, and the answer says how to name one."""
    outside = tmp_path / "outside"
    outside.mkdir()
    said = desk(*command, "--json", cwd=outside)
    assert (said.status, said.error["code"]) == (2, "not-a-repository")
    assert "Not a git repository: " in said.error["message"]
    check_text(desk(*command, cwd=outside))
    assert list(outside.iterdir()) == []


def test_a_folder_that_is_missing_is_named(desk: Desk) -> None:
    """`-C` with a folder that is not there is a wrong question."""
    said = desk("-C", "no/such", "inbox", "--json")
    assert (said.status, said.error["code"]) == (2, "no-such-folder")
    assert "no/such" in said.error["message"]
    assert "-C" not in str(desk("-C", "no/such", "inbox").err.splitlines()[1:])


def test_the_current_folder_may_have_been_deleted(tmp_path: Path, repo: Path) -> None:
    """A worktree that was removed under an agent is a sentence, not a traceback."""
    gone = tmp_path / "gone"
    gone.mkdir()
    said = process("inbox", "--json", cwd=gone, before=gone.rmdir)
    assert said.status == 2
    assert "current directory" in said.error["message"]


def test_schema_needs_no_repository(tmp_path: Path, desk: Desk) -> None:
    """The records' schema can be had anywhere."""
    assert desk("schema", cwd=tmp_path).status == 0


def test_a_repository_without_commits_works(tmp_path: Path, git: Git, desk: Desk) -> None:
    """Before the first commit agents talk already, and HEAD stays unborn."""
    fresh = tmp_path / "fresh"
    git("init", "--quiet", str(fresh))
    git("config", "user.email", "person@example.org", cwd=fresh)
    _talk(desk, fresh, fresh)
    assert subprocess.run(["git", "rev-parse", "--verify", "-q", "HEAD"], cwd=fresh).returncode == 1


def test_strange_folder_names_do_not_stop_an_agent(tmp_path: Path, git: Git, desk: Desk) -> None:
    """A worktree's folder may have escapes, newlines, bidi and no UTF-8 in its name: none of it is repeated."""
    name = os.fsdecode(b"a\x1b[31m\n\xe2\x80\xaeb\xff ")
    folder = tmp_path / name
    git("init", "--quiet", str(folder))
    _talk(desk, folder, folder)
    for said in (desk("roster", cwd=folder), desk("roster", "--json", cwd=folder), desk("log", cwd=folder)):
        assert "\x1b" not in said.out and "\u202e" not in said.out
    assert "\x1b" not in git("log", "--format=%B", "gitmem/log", "--", cwd=folder)


# Nobody, and no identity


def test_without_a_git_identity_agents_work(tmp_path: Path, git: Git, desk: Desk) -> None:
    """Where git has no identity, not even one to guess, the agent is author and committer."""
    git("config", "--unset", "user.name", cwd=desk.repo)
    git("config", "--unset", "user.email", cwd=desk.repo)
    git("config", "user.useConfigOnly", "true", cwd=desk.repo)
    planck = desk.start("Planck")
    desk.send(planck, "Hello")
    who = git("log", "-1", "--format=%an <%ae> %cn <%ce>", "gitmem/log", "--", cwd=desk.repo).strip()
    assert who == "Planck <test:worker:planck@gitmem> Planck <test:worker:planck@gitmem>"


@pytest.mark.parametrize("command", [["signal", "hi"], ["inbox"], ["whoami"], ["reply", "sig-abcdef", "yes"]])
def test_a_person_without_a_mail_address_cannot_act(desk: Desk, git: Git, command: list[str]) -> None:
    """Nobody acts anonymously: exit 2 with the command that sets a mail address, and nothing written."""
    git("config", "--unset", "user.email", cwd=desk.repo)
    with nothing_written(desk.repo):
        said = desk(*command, "--json")
    assert (said.status, said.error["code"]) == (2, "no-person")
    assert said.json["next"][0].startswith("git config user.email ")
    assert "git config user.email" in said.err


@pytest.mark.parametrize("command", [["roster"], ["log"], ["claim", "list"]])
def test_a_person_without_a_mail_address_may_look(desk: Desk, git: Git, command: list[str]) -> None:
    """Looking needs nobody."""
    git("config", "--unset", "user.email", cwd=desk.repo)
    said = desk(*command)
    assert said.status == 0
    check_text(said)


# A git folder that can't be written


@pytest.mark.skipif(
    sys.platform != "linux" and os.getuid() == 0, reason="root can't lay down its powers here"
)
def test_in_a_read_only_git_folder_a_signal_is_recorded(bound: Path, desk: Desk) -> None:
    """A sandbox that can't write the git folder records in the state folder; the next writer commits it, once."""
    planck, curie = desk.start("Planck"), desk.start("Curie")
    desk.send(planck, "before", "--to", "Curie")
    _chmod(bound / ".git", write=False)
    before = refs(bound)
    env = {"GITMEM_SESSION": curie}
    looked = process("inbox", "--json", cwd=bound, env=env, before=powerless)
    assert [each["message"] for each in looked.json["signals"]] == ["before"]
    assert process("inbox", "--count", cwd=bound, env=env, before=powerless).out == "0\n"
    sent = process(
        "signal", "from the sandbox", "--to", "Planck", "--json", cwd=bound, env=env, before=powerless
    )
    assert sent.status == 0, sent
    assert (sent.json["commit"], sent.json["recorded"]) == (None, True)
    assert any(f"waiting in {os.environ['XDG_STATE_HOME']}" in each for each in sent.json["warnings"])
    check_next(sent.json["next"])
    text = process("signal", "and more", "--to", "Planck", cwd=bound, env=env, before=powerless)
    assert text.status == 0 and "recorded" in text.out
    assert refs(bound) == before
    kept = [Path(each) for each in waiting(bound)]
    state = Path(os.environ["XDG_STATE_HOME"], "gitmem")
    assert len(kept) >= 2 and all(state in each.parents for each in kept)
    assert all(each.stat().st_mode & 0o777 == 0o600 for each in kept)
    assert state.stat().st_mode & 0o777 == 0o700
    seen = process("inbox", "--json", cwd=bound, env={"GITMEM_SESSION": planck}, before=powerless)
    assert [each["message"] for each in seen.json["signals"]] == ["from the sandbox", "and more"]
    for command in (["roster"], ["log"], ["whoami"]):
        assert process(*command, cwd=bound, env=env, before=powerless).status == 0
    _chmod(bound / ".git", write=True)
    assert desk.send(planck, "after")["commit"]
    assert waiting(bound) == []
    signal_id = sent.json["signal"]["signal_id"]
    assert desk("show", signal_id, "--json").json["commit"]
    said = [each.get("message") for each in desk("log", "--json").json["entries"]]
    assert [each for each in said if each] == ["before", "from the sandbox", "and more", "after"]


@pytest.mark.skipif(
    sys.platform != "linux" and os.getuid() == 0, reason="root can't lay down its powers here"
)
@pytest.mark.parametrize("args", [[], ["--git", "pre-push"]])
def test_remove_begins_only_where_the_git_folder_can_be_written(
    bound: Path, desk: Desk, args: list[str]
) -> None:
    """One sentence, and every file as before: a half of what setup has added would be hard to find."""
    desk("setup", "--yes", "--client", "claude-code", "--git", "pre-push", "--autosync", "1h")

    def seen() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in bound.rglob("*") if path.is_file()}

    before = seen()
    _chmod(bound / ".git", write=False)
    said = process("remove", *args, "--json", cwd=bound, before=powerless)
    assert (said.status, said.error["code"]) == (4, "read-only")
    assert f"{bound}/.git cannot be written" in said.error["message"]
    assert seen() == before


@pytest.mark.skipif(
    sys.platform != "linux" and os.getuid() == 0, reason="root can't lay down its powers here"
)
def test_in_a_read_only_git_folder_a_session_can_start(bound: Path, desk: Desk) -> None:
    """Also the very first command in a sandbox is accepted: its line waits in a write-ahead log."""
    _chmod(bound / ".git", write=False)
    said = process("session", "start", *IDENTITY, "--json", cwd=bound, before=powerless)
    assert said.status == 0, said
    session = said.json["session_id"]
    sent = process("signal", "hi", "--json", cwd=bound, env={"GITMEM_SESSION": session}, before=powerless)
    assert (sent.status, sent.json["commit"]) == (0, None)
    _chmod(bound / ".git", write=True)
    assert desk("signal", "now", session=session).status == 0
    assert waiting(bound) == []
    (row,) = desk("roster", "--json").json["sessions"]
    assert row["session_id"] == session


@pytest.mark.skipif(
    sys.platform != "linux" and os.getuid() == 0, reason="root can't lay down its powers here"
)
def test_where_nothing_can_be_written_a_signal_fails_aloud(bound: Path, desk: Desk, temporary: Path) -> None:
    """Neither the git folder nor another one: exit 4, never a signal that is lost in silence."""
    planck = desk.start("Planck")
    _chmod(bound / ".git", write=False)
    temporary.chmod(0o500)
    said = process(
        "signal",
        "hi",
        "--json",
        cwd=bound,
        env={"GITMEM_SESSION": planck, "XDG_STATE_HOME": "/proc"},
        before=powerless,
    )
    temporary.chmod(0o700)
    assert said.status == 4, said
    assert "Nothing was recorded" in said.error["message"]
    assert waiting(bound) == []


@pytest.mark.skipif(
    sys.platform != "linux" and os.getuid() == 0, reason="root can't lay down its powers here"
)
def test_a_folder_of_somebody_else_is_not_trusted(bound: Path, desk: Desk, temporary: Path) -> None:
    """In a shared $TMPDIR a link or an open folder under our name takes nothing and gives nothing."""
    planck = desk.start("Planck")
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir()
    (temporary / f"gitmem-{os.getuid()}").symlink_to(elsewhere)
    _chmod(bound / ".git", write=False)
    for state in (str(temporary / "state"), "/proc"):
        env = {"GITMEM_SESSION": planck, "XDG_STATE_HOME": state}
        said = process("signal", "hi", "--json", cwd=bound, env=env, before=powerless)
        assert list(elsewhere.iterdir()) == []
        assert said.status == (4 if state == "/proc" else 0), said
    assert all("state" in each for each in waiting(bound)) and waiting(bound)


# Worktrees, folders and variables


def test_linked_worktrees_share_one_log(tmp_path: Path, git: Git, desk: Desk) -> None:
    """Two worktrees of a clone hear each other at once."""
    other = tmp_path / "other"
    git("worktree", "add", "--quiet", "-b", "other", str(other), cwd=desk.repo)
    _talk(desk, desk.repo, other)
    (tmp_path / "other" / "deep" / "er").mkdir(parents=True)
    assert desk("log", "--json", cwd=other / "deep" / "er").json["entries"]
    rows = desk("roster", "--json", cwd=other).json["sessions"]
    assert {row["worktree"] for row in rows} == {"repo", "other"}


def test_a_bare_repository_with_worktrees(tmp_path: Path, git: Git, desk: Desk) -> None:
    """Worktrees of a bare repository share its log; in the bare folder itself one can look."""
    bare = tmp_path / "bare.git"
    git("clone", "--quiet", "--bare", str(desk.repo), str(bare))
    for name in ("one", "two"):
        git("worktree", "add", "--quiet", "-b", name, str(tmp_path / name), cwd=bare)
    _talk(desk, tmp_path / "one", tmp_path / "two")
    assert len(desk("roster", "--json", cwd=bare).json["sessions"]) == 2
    assert desk("log", "--json", cwd=tmp_path / "one").json == desk("log", "--json", cwd=bare).json
    assert "refs/gitmem/log" not in refs(desk.repo)


def test_a_dot_bare_layout_with_worktrees(tmp_path: Path, git: Git, desk: Desk) -> None:
    """`project/.git` that names `project/.bare`, with worktrees beside it, is one log."""
    project = tmp_path / "project"
    project.mkdir()
    git("clone", "--quiet", "--bare", str(desk.repo), str(project / ".bare"))
    (project / ".git").write_text("gitdir: ./.bare\n")
    for name in ("one", "two"):
        git("worktree", "add", "--quiet", "-b", name, str(project / name), cwd=project)
    _talk(desk, project / "one", project / "two")
    assert len(desk("roster", "--json", cwd=project).json["sessions"]) == 2


def test_a_subdirectory_is_the_same_repository(desk: Desk) -> None:
    """Commands may run in any folder of a worktree, or name it with -C."""
    deep = desk.repo / "a" / "b"
    deep.mkdir(parents=True)
    _talk(desk, deep, desk.repo)
    said = desk("-C", str(desk.repo), "roster", "--json", cwd=deep.parents[3])
    assert len(said.json["sessions"]) == 2


def test_inside_git_s_own_folder(desk: Desk) -> None:
    """`.git` and a folder in it are in the repository too."""
    _talk(desk, desk.repo / ".git", desk.repo / ".git" / "refs")


def test_git_dir_and_work_tree_name_the_repository(tmp_path: Path, git: Git, desk: Desk) -> None:
    """GIT_DIR and GIT_WORK_TREE lead to the repository from anywhere, and to no other one."""
    other = tmp_path / "another"
    git("init", "--quiet", str(other))
    env = {"GIT_DIR": str(desk.repo / ".git"), "GIT_WORK_TREE": str(desk.repo)}
    planck = desk.start("Planck")
    sent = desk("signal", "hi", "--json", session=planck, cwd=other, env=env)
    assert sent.status == 0 and sent.json["commit"] in refs(desk.repo)
    assert refs(other) == ""
    assert not (other / ".git" / "gitmem").exists()


def test_a_named_folder_outranks_git_s_variables(tmp_path: Path, git: Git, desk: Desk) -> None:
    """Within a hook or alias of another repository `-C` means what it says, for the command and what it starts."""
    other = tmp_path / "another"
    git("init", "--quiet", str(other))
    env = {"GIT_DIR": str(other / ".git"), "GIT_WORK_TREE": str(other), "GIT_COMMON_DIR": str(other / ".git"), "GIT_INDEX_FILE": str(other / "index")}  # fmt: skip
    planck = desk.start("Planck")

    sent = desk("-C", str(desk.repo), "signal", "hi", "--json", session=planck, cwd=other, env=env)

    assert sent.status == 0 and sent.json["commit"] in refs(desk.repo)
    assert desk("-C", str(desk.repo), "setup", "--client", "codex", cwd=other, env=env).status == 0
    assert (desk.repo / "AGENTS.md").exists()
    assert (refs(other), os.listdir(other)) == ("", [".git"])
    assert not (other / ".git" / "gitmem").exists()


@pytest.mark.parametrize("git_dir", ["absolute", "relative"])
def test_what_runs_later_finds_a_repository_that_variables_name(
    git_dir: str, tmp_path: Path, git: Git
) -> None:
    """As for files of a home folder in a bare repository: the work tree has no `.git`, and still its records are committed."""
    home = tmp_path / "home folder"
    home.mkdir()
    folder = home / "files.git"
    git("init", "--quiet", "--bare", str(folder))
    git("config", "user.email", "test@example.org", cwd=folder)
    env = {"GIT_DIR": str(folder) if git_dir == "absolute" else folder.name, "GIT_WORK_TREE": str(home), "GITMEM_COMMIT_AFTER": "0.2"}  # fmt: skip

    sent = process("signal", "hi", cwd=home, env=env)
    assert sent.status == 0, sent
    until = time.monotonic() + 20
    while "refs/gitmem/log" not in refs(folder) and time.monotonic() < until:
        time.sleep(0.1)

    assert "refs/gitmem/log" in refs(folder)


def test_git_dir_of_nothing_is_refused(tmp_path: Path, desk: Desk) -> None:
    """A GIT_DIR that is no repository is not passed over."""
    said = desk("roster", "--json", env={"GIT_DIR": str(tmp_path)})
    assert (said.status, said.error["code"]) == (2, "not-a-repository")
    assert "GIT_DIR" in said.error["message"]


@pytest.mark.parametrize("linked", [False, True], ids=["main worktree", "linked worktree"])
def test_a_signal_from_inside_a_hook(tmp_path: Path, git: Git, desk: Desk, linked: bool) -> None:
    """In a hook, with git's GIT_DIR and GIT_INDEX_FILE, the commit in progress is not disturbed."""
    planck = desk.start("Planck")
    where = desk.repo
    if linked:
        where = tmp_path / "linked"
        git("worktree", "add", "--quiet", "-b", "linked", str(where), cwd=desk.repo)
    root = Path(__file__).resolve().parents[2]
    hook = desk.repo / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        f"#!/bin/sh\nexport PYTHONPATH='{root}' GITMEM_SESSION={planck}\n"
        f"test -n \"$GIT_INDEX_FILE\" || exit 1\nexec '{sys.executable}' -m cli signal 'from the hook' -q\n"
    )
    hook.chmod(0o755)
    (where / "new").write_text("new\n")
    (where / "unstaged").write_text("not added\n")
    git("add", "new", cwd=where)
    git("commit", "--quiet", "-m", "Second", cwd=where)
    assert git("status", "--porcelain", cwd=where) == "?? unstaged\n"
    assert git("ls-tree", "--name-only", "HEAD", cwd=where) == "README\nnew\n"
    assert [each.get("message") for each in desk("log", "--json").json["entries"]][-1] == "from the hook"


def test_packed_refs(git: Git, desk: Desk) -> None:
    """After `git pack-refs --all` and `git gc` the log is found, grows, and is one."""
    planck, curie = desk.start("Planck"), desk.start("Curie")
    desk.send(planck, "one", "--to", "Curie")
    git("pack-refs", "--all", cwd=desk.repo)
    assert not (desk.repo / ".git" / "refs" / "gitmem" / "log").exists()
    assert desk("inbox", "--count", session=curie).out == "1\n"
    desk.send(planck, "two", "--to", "Curie")
    git("gc", "--quiet", "--prune=now", cwd=desk.repo)
    assert desk("inbox", "--count", session=curie).out == "2\n"
    desk.send(planck, "three", "--to", "Curie")
    shown = desk("inbox", "--json", session=curie).json["signals"]
    assert [each["message"] for each in shown] == ["one", "two", "three"]


def test_a_submodule_has_a_log_of_its_own(tmp_path: Path, git: Git, desk: Desk) -> None:
    """What is said in a submodule stays in its repository, and the other way round."""
    inner = tmp_path / "inner"
    git("init", "--quiet", str(inner))
    git("-C", str(inner), "commit", "--quiet", "--allow-empty", "-m", "Inner")
    git(
        "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub", cwd=desk.repo
    )  # fmt: skip
    git("commit", "--quiet", "-m", "Add it", cwd=desk.repo)
    sub = desk.repo / "sub"
    _talk(desk, sub, sub)
    assert "refs/gitmem/log" not in refs(desk.repo)
    assert desk("roster", "--json").json["sessions"] == []
    assert git("status", "--porcelain", cwd=desk.repo) == ""


# Refused, with a sentence


def _refused(desk: Desk, where: Path, *words: str) -> None:
    before = refs(where)
    for command in (
        ["signal", "hi"],
        ["session", "start", *IDENTITY],
        ["inbox", "--for", "x:y:z"],
        ["setup"],
    ):
        said = desk(*command, "--json", cwd=where)
        assert (said.status, said.error["code"]) == (4, "unsupported-repository"), said
        for word in words:
            assert word in said.error["message"]
        assert "Nothing was written" in said.error["message"]
        assert said.error["hint"]
        check_next(said.json["next"])
    assert before == refs(where)
    assert not list(where.glob("**/gitmem"))


@pytest.mark.parametrize("linked", [False, True], ids=["bare", "linked worktree"])
def test_a_mirror_clone_is_refused(tmp_path: Path, git: Git, desk: Desk, linked: bool) -> None:
    """Its next fetch would delete the log: wherever one stands in it, nothing is begun."""
    where = tmp_path / "odd"
    git("clone", "--quiet", "--mirror", f"file://{desk.repo}", str(where))
    if linked:
        git("worktree", "add", "--quiet", "-b", "x", str(tmp_path / "linked"), cwd=where)
    _refused(desk, tmp_path / "linked" if linked else where, "mirror")


def test_odd_file_names_in_the_log_cost_nothing(git: Git, desk: Desk) -> None:
    """A file that somebody put on the log by hand may have a name of any bytes: its lines are read, the rest goes on."""
    planck = desk.start("Planck")
    desk.send(planck, "one")

    def make(kind: str, data: bytes) -> bytes:
        args = ["git", "hash-object", "-w", "-t", kind, "--stdin"] if kind == "blob" else ["git", "mktree"]
        return subprocess.run(args, input=data, cwd=desk.repo, capture_output=True, check=True).stdout.strip()

    line = (
        b'{"at":"2026-11-21T20:00:00.123456Z","kind":"signal","signal_id":"sig-abcdefgh2222",'
        b'"sender_identity":"a:b:c","message":"by hand"}'
    )
    content = b"\n".join((line, *history([line]), b""))
    folder = make("tree", b"100644 blob %s\tgm-\xff\x1b[31m.jsonl\n" % make("blob", content))
    tree = subprocess.run(
        ["git", "ls-tree", "gitmem/log"], cwd=desk.repo, capture_output=True, check=True
    ).stdout
    root = make("tree", tree + b"040000 tree %s\tby\xffhand\n" % folder).decode()
    commit = git("commit-tree", "-p", "gitmem/log", "-m", "By hand", root, cwd=desk.repo).strip()
    git("update-ref", "refs/gitmem/log", commit, cwd=desk.repo)
    desk.send(planck, "two")
    said = [each["message"] for each in desk("log", "--json").json["entries"] if "message" in each]
    assert sorted(said) == ["by hand", "one", "two"]
    assert desk("show", "sig-abcdefgh2222").status == 0
    assert desk("doctor", "--json").status == 0
    assert "\x1b" not in desk("doctor").out
