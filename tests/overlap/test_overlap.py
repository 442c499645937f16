"""`overlap`: which branches and worktrees change the same files, and what of a repository it can stand."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import gitmem
from gitmem.agents import lifecycle
from gitmem.agents.caller import CallerClaims
from gitmem.errors import UsageError
from gitmem.history import overlap
from gitmem.store import Store

from ..conftest import Git
from ..git_on_path import GitOnPath
from ..sandbox import DAY, Clock, open_store

DATE = "2026-10-25T12:00:00Z"  # a day before the clock of the sandbox


@pytest.fixture(autouse=True)
def dates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_COMMITTER_DATE", DATE)
    monkeypatch.setenv("GIT_AUTHOR_DATE", DATE)


def branch(git: Git, repo: Path, name: str, files: dict[str, str], start: str = "main") -> None:
    """A branch with one commit that writes these files."""
    git("switch", "--quiet", "-c", name, start, cwd=repo)
    for path, text in files.items():
        (repo / path).parent.mkdir(parents=True, exist_ok=True)
        (repo / path).write_text(text)
    git("add", "--all", cwd=repo)
    git("commit", "--quiet", "-m", name, cwd=repo)
    git("switch", "--quiet", "main", cwd=repo)


def rows(store: Store, name: str | None = None) -> list[tuple[str, str, bool | None, list[str]]]:
    """The branches of each pair, whether they conflict, and the files that both change."""
    found = overlap.overlap(store, name).overlaps
    return [(*(side.branch for side in each.sides), each.conflicts, each.files) for each in found]  # type: ignore[misc]


def test_pairs_that_conflict_come_first(git: Git, repo: Path, store: Store) -> None:
    """Then those that change the same files; a branch on top of another one is no pair with it."""
    (repo / "long").write_text("1\n2\n3\n4\n5\n6\n7\n")
    git("add", "long", cwd=repo)
    git("commit", "--quiet", "-m", "long", cwd=repo)
    branch(git, repo, "one", {"README": "one\n", "long": "one\n2\n3\n4\n5\n6\n7\n"})
    branch(git, repo, "other", {"README": "other\n"})
    branch(git, repo, "below", {"long": "1\n2\n3\n4\n5\n6\nbelow\n"})
    branch(git, repo, "above", {"more": "more\n"}, "other")
    branch(git, repo, "alone", {"alone": "alone\n"})

    found = overlap.overlap(store)

    assert rows(store) == [
        ("above", "one", True, ["README"]),
        ("one", "other", True, ["README"]),
        ("below", "one", False, ["long"]),
    ]
    assert (found.default_branch, found.compared, found.conflicts, found.warnings) == ("main", 5, 2, [])
    assert found.next == ["git diff above...one -- README"]
    assert [each[:2] for each in rows(store, "below")] == [("below", "one")]
    with pytest.raises(UsageError, match="nowhere was not compared"):
        overlap.overlap(store, "nowhere")


def test_old_branches_count_only_while_a_session_holds_them(
    git: Git, repo: Path, store: Store, clock: Clock
) -> None:
    for name in ("one", "other"):
        branch(git, repo, name, {"README": f"{name}\n"})
    clock.forward(12 * DAY)
    assert len(rows(store)) == 1
    clock.forward(2 * DAY)
    assert rows(store) == []
    for name in ("one", "other"):
        git("switch", "--quiet", name, cwd=repo)
        lifecycle.start(store, CallerClaims(), name=name.title())
    git("switch", "--quiet", "main", cwd=repo)
    (found,) = overlap.overlap(store).overlaps
    assert [(side.branch, side.sessions) for side in found.sides] == [("one", ["One"]), ("other", ["Other"])]
    assert overlap.overlap(store).next[0] == "gitmem overlap --notify"


def test_uncommitted_files_of_worktrees_count_by_name(
    git: Git, repo: Path, tmp_path: Path, store: Store
) -> None:
    """On a branch, on the default branch, and with a detached HEAD."""
    branch(git, repo, "one", {"README": "one\n"})
    git("worktree", "add", "--quiet", "-b", "other", str(tmp_path / "two"), cwd=repo)
    git("worktree", "add", "--quiet", "--detach", str(tmp_path / "three"), cwd=repo)
    for place in (repo, tmp_path / "two", tmp_path / "three"):
        (place / "README").write_text("uncommitted\n")
    (tmp_path / "two" / "new").write_text("new\n")
    (tmp_path / "three" / "new").write_text("new\n")

    found = overlap.overlap(store)

    files = {tuple(side.branch for side in each.sides): each.files for each in found.overlaps}
    names = ["main", "one", "other", "three (detached)"]
    assert files == {
        (one, other): ["README", "new"] if one == "other" else ["README"]
        for at, one in enumerate(names)
        for other in names[at + 1 :]
    }
    assert all(each.uncommitted == each.files for each in found.overlaps)
    assert {each.conflicts for each in found.overlaps} == {None}


def test_a_branch_that_only_a_remote_has_or_that_is_newer_there(
    git: Git, repo: Path, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    branch(git, repo, "one", {"README": "one\n"})
    branch(git, repo, "other", {"unrelated": "other\n"})
    git("clone", "--quiet", str(repo), str(tmp_path / "clone"))
    git("branch", "--quiet", "other", "origin/other", cwd=tmp_path / "clone")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-10-25T13:00:00Z")
    branch(git, repo, "newer", {"README": "newer\n"}, "other")
    git("branch", "--quiet", "--force", "other", "newer", cwd=repo)
    git("branch", "--quiet", "-D", "newer", cwd=repo)
    git("fetch", "--quiet", cwd=tmp_path / "clone")

    (found,) = overlap.overlap(open_store(tmp_path / "clone", clock)).overlaps

    assert [(side.branch, side.revision) for side in found.sides] == [
        ("one", "origin/one"),
        ("other", "origin/other"),
    ]
    assert found.conflicts


def test_nothing_changed_starts_no_git_but_for_worktrees(
    git: Git, repo: Path, tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a damaged cache, whatever is wrong with it, gives the same answer."""
    git("update-ref", "refs/remotes/origin/main", "main", cwd=repo)
    git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main", cwd=repo)
    for name in ("one", "other"):
        branch(git, repo, name, {"README": f"{name}\n"})
    first = overlap.overlap(store).as_json()
    file = repo / ".git" / "gitmem" / overlap.FILE
    content = file.read_bytes()
    started = GitOnPath(tmp_path, monkeypatch)

    assert overlap.overlap(store).as_json() == first
    assert [" status " in args for _, args in started.started] == [True]

    for damaged in (b"", content[:-9], b"\xff" * 99, b"[" * 99_999, b'{"version":3,"tips":3}', b"null"):
        file.write_bytes(damaged)
        assert overlap.overlap(store).as_json() == first
        assert file.read_bytes() == content
    file.unlink()
    file.mkdir()  # it cannot be written
    assert overlap.overlap(store).as_json() == first


def test_a_branch_that_moved_is_compared_again(git: Git, repo: Path, store: Store) -> None:
    for name in ("one", "other"):
        branch(git, repo, name, {"README": f"{name}\n"})
    assert rows(store) == [("one", "other", True, ["README"])]
    git("branch", "--quiet", "--force", "one", "other", cwd=repo)
    assert rows(store) == []
    content = (repo / ".git" / "gitmem" / overlap.FILE).read_bytes()
    assert content.count(b'"merges":[]') == 1, "what is known of former tips is dropped"


def test_the_default_branch(git: Git, repo: Path, store: Store) -> None:
    """What the remote says, else git's setting, else a usual name; with none of them nothing is compared."""
    for name in ("one", "other"):
        branch(git, repo, name, {"README": f"{name}\n"})
    git("branch", "--quiet", "-m", "main", "first", cwd=repo)
    with pytest.raises(UsageError, match="No default branch") as caught:
        overlap.overlap(store)
    assert caught.value.code == "no-default-branch"
    git("config", "init.defaultBranch", "first", cwd=repo)
    assert overlap.overlap(store).default_branch == "first"
    git("update-ref", "refs/remotes/up/one", "one", cwd=repo)
    git("symbolic-ref", "refs/remotes/up/HEAD", "refs/remotes/up/one", cwd=repo)
    assert overlap.overlap(store).default_branch == "one"


def test_repositories_with_nothing_to_compare(git: Git, tmp_path: Path, clock: Clock) -> None:
    """Without a commit, bare, and with branches that share no commit."""
    new = tmp_path / "new"
    new.mkdir()
    git("init", "--quiet", "-b", "main", cwd=new)
    (new / "README").write_text("uncommitted\n")
    store = open_store(new, clock)
    assert overlap.overlap(store).overlaps == []
    git("add", "README", cwd=new)
    git("commit", "--quiet", "-m", "first", cwd=new)
    git("switch", "--quiet", "--orphan", "alone", cwd=new)
    (new / "README").write_text("alone\n")
    git("add", "README", cwd=new)
    git("commit", "--quiet", "-m", "alone", cwd=new)
    found = overlap.overlap(store)
    assert found.overlaps == []
    assert "no commit in common with main" in " ".join(found.warnings)
    git("clone", "--quiet", "--bare", str(new), str(tmp_path / "bare.git"))
    assert overlap.overlap(open_store(tmp_path / "bare.git", clock)).overlaps == []


def test_names_of_strangers(git: Git, repo: Path, store: Store) -> None:
    """A branch and files with names that are not UTF-8, that escape or break lines."""
    odd = os.fsdecode(b"a\n\x1b[2J\xff<system-reminder>")
    for name in (os.fsdecode(b"\xff\xe2\x80\xae"), "--upload-pack=x"[2:]):
        branch(git, repo, name, {odd: name[-3:] if name.isascii() else "other"})
    found = overlap.overlap(store)
    found.as_json()
    assert [each.files for each in found.overlaps] == [["a\n\x1b[2J�<system-reminder>"]]
    assert found.next == [], "no command with such a name"


def test_the_branches_of_the_log_are_none(git: Git, repo: Path, store: Store) -> None:
    for name in ("gitmem", "gitmem-outbox-0123"):
        branch(git, repo, name, {"README": f"{name}\n"})
    assert overlap.overlap(store).compared == 0


def test_an_old_git_lists_the_files(
    git: Git, repo: Path, tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "other"):
        branch(git, repo, name, {"README": f"{name}\n"})
    GitOnPath(tmp_path, monkeypatch).says(129, to="merge-tree")
    found = overlap.overlap(store)
    assert rows(store) == [("one", "other", None, ["README"])]
    assert "git 2.39 or newer is needed" in found.warnings[0]


def test_without_time_or_room_the_answer_says_so(git: Git, repo: Path, store: Store) -> None:
    for name in ("one", "other", "third"):
        branch(git, repo, name, {"README": f"{name}\n"})
    found = overlap.overlap(store, pairs_max=1)
    assert sorted(str(each.conflicts) for each in found.overlaps) == ["None", "None", "True"]
    assert "2 pairs of branches were not merged" in found.warnings[0]
    found = overlap.overlap(store, pairs_max=1)
    assert sorted(str(each.conflicts) for each in found.overlaps) == ["None", "True", "True"], "it continues"
    (repo / ".git" / "gitmem" / overlap.FILE).unlink()
    git("commit", "--quiet", "--allow-empty", "-m", "more", cwd=repo)
    found = overlap.overlap(store, seconds=0.0)
    assert found.overlaps == []
    assert found.warnings


def test_many_branches_are_cut_to_the_latest(git: Git, repo: Path, store: Store) -> None:
    (repo / "README").write_text("x\n")
    tree = git("write-tree", cwd=repo).strip()
    base = git("rev-parse", "main", cwd=repo).strip()
    lines = []
    for number in range(overlap.BRANCHES_MAX + 20):
        oid = git("commit-tree", tree, "-p", base, "-m", str(number), cwd=repo).strip()
        lines.append(f"create refs/heads/b{number:03} {oid}\n")
    git("update-ref", "--stdin", cwd=repo, input="".join(lines))
    found = overlap.overlap(store)
    assert found.compared == overlap.BRANCHES_MAX
    assert "recent branches were left out" in " ".join(found.warnings)


def test_the_library_has_it(git: Git, repo: Path) -> None:
    """With the caller of the log as the one who tells."""
    for name in ("one", "other"):
        branch(git, repo, name, {"README": f"{name}\n"})
    with gitmem.open(str(repo), now=Clock()) as log:
        git("switch", "--quiet", "one", cwd=repo)
        log.sessions.start(name="One")
        found = log.overlap("one", notify=True)
    assert (found.conflicts, found.sent) == (1, [])


def test_a_branch_with_a_hundred_thousand_changed_files_is_left_out(
    git: Git, repo: Path, store: Store
) -> None:
    """And said; the others are compared, and the next call does not ask git again."""
    for name in ("one", "other"):
        branch(git, repo, name, {"README": f"{name}\n"})
    blob = git("hash-object", "-w", "--stdin", cwd=repo, input="x").strip()
    entries = "".join(f"100644 blob {blob}\tf{number:06}\n" for number in range(100_000))
    tree = git("mktree", cwd=repo, input=entries).strip()
    oid = git("commit-tree", tree, "-p", "main", "-m", "huge", cwd=repo).strip()
    git("update-ref", "refs/heads/huge", oid, cwd=repo)
    for _ in range(2):
        found = overlap.overlap(store)
        assert [[side.branch for side in each.sides] for each in found.overlaps] == [["one", "other"]]
        assert found.warnings == [
            "huge was left out: it changes more than 20,000 files, or has no commit in common with main."
        ]


def test_submodules_count_as_one_entry_and_nothing_of_them_is_read(
    git: Git, repo: Path, store: Store
) -> None:
    """Two branches that move a submodule to other commits, which are not here."""
    for number, name in enumerate(("one", "other"), start=1):
        git("switch", "--quiet", "-c", name, "main", cwd=repo)
        git("update-index", "--add", "--cacheinfo", f"160000,{str(number) * 40},lib", cwd=repo)
        git("commit", "--quiet", "-m", name, cwd=repo)
        git("switch", "--quiet", "--force", "main", cwd=repo)
    (found,) = overlap.overlap(store).overlaps
    assert (found.files, found.conflicts is False) == (["lib"], False)


def test_branches_that_were_deleted_or_renamed_are_forgotten(git: Git, repo: Path, store: Store) -> None:
    """Also by the cache; a renamed branch is another one."""
    for name in ("one", "other", "third"):
        branch(git, repo, name, {"README": f"{name}\n"})
    assert len(rows(store)) == 3
    git("branch", "--quiet", "-D", "third", cwd=repo)
    git("branch", "--quiet", "-m", "other", "odd'$(name)", cwd=repo)
    assert rows(store) == [("odd'$(name)", "one", True, ["README"])]
    with pytest.raises(UsageError, match="other was not compared"):
        overlap.overlap(store, "other")
    step = overlap.overlap(store).next[-1]
    assert step == "git diff 'odd'\"'\"'$(name)...one' -- README"


def test_detached_worktrees_count_by_their_folders(
    git: Git, repo: Path, tmp_path: Path, store: Store
) -> None:
    """Two without a branch change one file; one whose folder is gone is none."""
    for name in ("left", "right", "gone"):
        git("worktree", "add", "--quiet", "--detach", str(tmp_path / name), "main", cwd=repo)
        (tmp_path / name / "README").write_text(f"{name}\n")
    shutil.rmtree(tmp_path / "gone")
    assert rows(store) == [("left (detached)", "right (detached)", None, ["README"])]


@pytest.mark.timeout(60)
def test_a_pipe_in_the_place_of_a_branch_is_not_waited_for(git: Git, repo: Path, store: Store) -> None:
    """Nor a directory of git's that leads to one; git itself would hang."""
    for name in ("one", "other"):
        branch(git, repo, name, {"README": f"{name}\n"})
    os.mkfifo(repo / ".git" / "refs" / "heads" / "pipe")
    (repo / ".git" / "refs" / "remotes" / "origin").mkdir(parents=True)
    os.mkfifo(repo / ".git" / "refs" / "remotes" / "origin" / "HEAD")
    assert rows(store) == [("one", "other", True, ["README"])]


def test_many_branches_with_many_files_are_remembered_and_listed_in_part(
    git: Git, repo: Path, tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each pair some files, and some pairs; what was found is kept, however many files the branches share."""
    files = 300
    for number in range(16):
        branch(git, repo, f"b{number:02}", {f"file-{at:03}": f"{number}\n" for at in range(files)})
    first = overlap.overlap(store, seconds=300)
    assert (len(first.overlaps), first.more, first.conflicts) == (100, 20, 120)
    worst = first.overlaps[0]
    assert (len(worst.conflicting), worst.more_conflicting) == (20, files - 20)
    assert (len(worst.files), worst.more) == (20, files - 20)
    assert len(str(first.as_json())) < 200_000
    started = GitOnPath(tmp_path, monkeypatch)
    assert overlap.overlap(store).as_json() == first.as_json()
    assert not [args for _, args in started.started if "merge" in args or "diff-tree" in args]
