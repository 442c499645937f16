"""What the user's own history and worktree say, read without leaving a trace in them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.errors import StoreError
from gitmem.git import branches, processes
from gitmem.git.port import ARGUMENT_BYTES, STAT_LINES, WORK_TREE_SECONDS
from gitmem.git.port import Git as PlumbingGit
from gitmem.git.repository import open_port, root_commits
from gitmem.repo import Repo, find

from ..conftest import Git
from ..git_on_path import GitOnPath


@pytest.fixture
def port(repo: Path) -> PlumbingGit:
    return PlumbingGit(str(repo / ".git"))


def save(git: Git, repo: Path, name: str, content: str) -> str:
    (repo / name).parent.mkdir(parents=True, exist_ok=True)
    (repo / name).write_text(content)
    git("add", "--", name, cwd=repo)
    git("commit", "--quiet", "-m", f"{name} {content}", cwd=repo)
    return git("rev-parse", "HEAD", cwd=repo).strip()


def everything(place: Repo) -> dict[str, tuple[bytes, int]]:
    """Every file of the git folder and the worktree: its bytes, and when it was last written."""
    found = {}
    for top in {place.common, place.worktree or place.common}:
        for folder, _, names in os.walk(top):
            for name in names:
                path = Path(folder, name)
                found[str(path)] = (path.read_bytes(), path.stat().st_mtime_ns)
    return found


def ask_all(port: PlumbingGit, place: Repo, old: str, new: str) -> None:
    port.head(place.git_dir)
    port.find_commit(place.git_dir, "HEAD")
    port.behind(new, [(old, "README"), (old, "a")])
    port.commits_since(old, new)
    port.files_between(old, new)
    if place.worktree:
        port.work_tree(place.git_dir, place.worktree)


def test_nothing_of_the_user_s_is_written(port: PlumbingGit, repo: Path, tmp_path: Path, git: Git) -> None:
    """Not the index that `git diff` would refresh, no lock, no file; no hook, driver or monitor of theirs runs."""
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\necho $0 $@ >> {tmp_path / 'ran'}\nexit 1\n")
    trap.chmod(0o755)
    old = save(git, repo, "README", "1\n")
    save(git, repo, "a", "1\n")
    save(git, repo, ".gitattributes", "* diff=trap\n")
    new = save(git, repo, "a", "2\n")
    for key in ("core.fsmonitor", "diff.external", "diff.trap.textconv", "diff.trap.command", "core.pager",
                "core.sshCommand"):  # fmt: skip
        git("config", key, str(trap), cwd=repo)
    for hook in ("post-index-change", "reference-transaction", "pre-commit", "fsmonitor-watchman"):
        (repo / ".git/hooks").mkdir(exist_ok=True)
        (repo / ".git/hooks" / hook).write_bytes(trap.read_bytes())
        (repo / ".git/hooks" / hook).chmod(0o755)
    (repo / "a").write_text("3\n")
    os.utime(repo / "README", (1, 1))  # only touched: `git diff` would note in the index that it is clean
    place = find(str(repo))
    before = everything(place)

    ask_all(port, place, old, new)

    assert everything(place) == before
    assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text()


def test_a_configuration_that_bends_git_log_changes_no_answer(
    port: PlumbingGit, repo: Path, git: Git
) -> None:
    """Orders, relative paths, followed renames, signatures, colours: all of it is the user's own business."""
    old = save(git, repo, "a", "1\n")
    git("mv", "a", "b", cwd=repo)
    git("commit", "--quiet", "-m", "moved ü", cwd=repo)
    new = save(git, repo, "b", "2\n")
    plain = (port.commits_since(old, new), port.files_between(old, new))
    for key, value in (
        ("log.follow", "true"), ("log.showSignature", "true"), ("log.showRoot", "false"), ("log.diffMerges", "off"),
        ("diff.orderFile", "/no/such/file"), ("diff.relative", "true"), ("diff.renames", "copies"),
        ("color.ui", "always"), ("core.quotePath", "false"), ("format.pretty", "fuller"), ("diff.noprefix", "true"),
        ("status.showUntrackedFiles", "no"), ("status.relativePaths", "true"), ("status.branch", "true"),
        ("diff.statNameWidth", "3"), ("i18n.logOutputEncoding", "latin1"), ("diff.ignoreSubmodules", "all"),
    ):  # fmt: skip
        git("config", key, value, cwd=repo)
    (repo / "free").write_text("1")
    (repo / "b").write_text("3\n")

    assert (port.commits_since(old, new), port.files_between(old, new)) == plain
    found = port.behind(new, [(old, "a"), (old, "b")])
    assert {path: (each.count, each.gone) for (_, path), each in found.items()} == {
        "a": (1, True),
        "b": (1, False),
    }
    for path, count in (("a", 1), ("b", 1)):  # of one path git would follow renames
        assert port.behind(new, [(old, path)])[old, path].count == count
    tree = port.work_tree(str(repo / ".git"), str(repo))
    assert (tree.changed, tree.untracked) == (1, 1)
    assert tree.stat == " b | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)"


def test_an_unborn_head_has_all_of_the_index_on_top(tmp_path: Path, git: Git) -> None:
    """Before the first commit: what was added counts, and nothing is behind."""
    git("init", "--quiet", "-b", "main", str(tmp_path / "new"))
    (tmp_path / "new" / "a").write_text("1\n")
    (tmp_path / "new" / "b").write_text("1\n")
    git("add", "a", cwd=tmp_path / "new")
    place = find(str(tmp_path / "new"))

    port = PlumbingGit(place.common)
    found = port.work_tree(place.git_dir, str(place.worktree))

    assert (found.changed, found.untracked) == (1, 1)
    assert found.stat.startswith(" a | 1 +")
    assert port.find_commit(place.git_dir, "HEAD") is None


def test_each_worktree_has_its_own_changes(port: PlumbingGit, repo: Path, tmp_path: Path, git: Git) -> None:
    """A linked worktree with a detached HEAD, through links, and a caller that has GIT_DIR and GIT_INDEX_FILE set."""
    git("worktree", "add", "--quiet", "--detach", str(tmp_path / "tree"), cwd=repo)
    (tmp_path / "link").symlink_to(tmp_path / "tree")
    (tmp_path / "tree" / "README").write_text("other\n")
    place = find(str(tmp_path / "link"))

    found = port.work_tree(place.git_dir, str(place.worktree))

    assert found.changed == 1
    assert port.work_tree(str(repo / ".git"), str(repo)).changed == 0


def test_changes_in_the_middle_of_a_merge(port: PlumbingGit, repo: Path, git: Git) -> None:
    """Both sides changed one file: it is one that changed."""
    save(git, repo, "a", "1\n")
    git("checkout", "--quiet", "-b", "side", cwd=repo)
    save(git, repo, "a", "2\n")
    git("checkout", "--quiet", "main", cwd=repo)
    save(git, repo, "a", "3\n")
    done = subprocess.run(["git", "merge", "side"], cwd=repo, capture_output=True, check=False)
    assert done.returncode == 1

    found = port.work_tree(str(repo / ".git"), str(repo))

    assert found.changed == 1
    assert found.stat.splitlines()[-1].startswith(" 1 file changed")


def test_names_with_blanks_are_counted_whole(port: PlumbingGit, repo: Path, git: Git) -> None:
    """Changed, in conflict, and not known to git."""
    save(git, repo, "a  b c", "1\n")
    save(git, repo, "d e ", "1\n")
    git("checkout", "--quiet", "-b", "side", cwd=repo)
    save(git, repo, "a  b c", "2\n")
    git("checkout", "--quiet", "main", cwd=repo)
    save(git, repo, "a  b c", "3\n")
    subprocess.run(["git", "merge", "side"], cwd=repo, capture_output=True, check=False)
    (repo / "d e ").write_text("2\n")
    (repo / "f  g").write_text("1\n")

    found = port.work_tree(str(repo / ".git"), str(repo))

    assert (found.changed, found.untracked) == (2, 1)
    assert [line.partition("|")[0].strip() for line in found.stat.split("\n")[:-1]] == ["a  b c", "d e"]


@pytest.mark.parametrize("length", [60, 240])
def test_a_stat_of_very_many_files_keeps_whole_lines_and_the_last(
    port: PlumbingGit, repo: Path, git: Git, length: int
) -> None:
    """Forty lines, then the count of all; also where the names don't fit into the arguments of a program."""
    names = [f"folder/of/some/depth/{number:04}-with-a-rather-long-name" for number in range(300)]
    names = [f"{name:x<{length}}" for name in names]
    assert (sum(map(len, names)) > ARGUMENT_BYTES) is (length == 240)
    for name in names:
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text("1\n")
    git("add", "--all", cwd=repo)

    lines = port.work_tree(str(repo / ".git"), str(repo)).stat.split("\n")

    assert len(lines) == STAT_LINES + 2
    assert lines[-1] == " 300 files changed, 300 insertions(+)"
    assert all(len(line) <= 80 for line in lines)


def test_a_submodule_counts_by_the_commit_that_it_is_at(
    port: PlumbingGit, repo: Path, tmp_path: Path, git: Git
) -> None:
    """Nothing is asked of the other repository, which may not even be there."""
    other = tmp_path / "other"
    git("init", "--quiet", "-b", "main", str(other))
    save(git, other, "x", "1\n")
    git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "deps/sub", cwd=repo)
    git("commit", "--quiet", "-m", "sub", cwd=repo)
    git("config", "diff.ignoreSubmodules", "all", cwd=repo)
    old = git("rev-parse", "HEAD", cwd=repo).strip()
    (repo / "deps" / "sub" / "x").write_text("dirty\n")
    assert port.work_tree(str(repo / ".git"), str(repo)).changed == 0
    save(git, repo / "deps" / "sub", "x", "2\n")

    found = port.work_tree(str(repo / ".git"), str(repo))

    assert (found.changed, found.untracked) == (1, 0)
    git("config", "--unset", "diff.ignoreSubmodules", cwd=repo)
    git("commit", "--quiet", "-am", "newer", cwd=repo)
    git("config", "diff.ignoreSubmodules", "all", cwd=repo)
    tip = git("rev-parse", "HEAD", cwd=repo).strip()
    assert port.behind(tip, [(old, "deps")])[old, "deps"].count == 1
    assert port.files_between(old, tip) == ["deps/sub"]


def linear(repo: Path, count: int) -> list[str]:
    """So many commits that change one of a few files; written at once."""
    parts = [
        f"commit refs/heads/main\ncommitter A <a@b> {1_700_000_000 + number} +0000\ndata 1\nm"
        + ("" if number else "\nfrom refs/heads/main^0")
        + f"\nM 100644 inline f{number % 7}\ndata {len(str(number))}\n{number}\n"
        for number in range(count)
    ]
    subprocess.run(["git", "fast-import", "--quiet"], cwd=repo, input="".join(parts).encode(), check=True)
    out = subprocess.run(
        ["git", "rev-list", "--reverse", "main"], cwd=repo, capture_output=True, check=True
    ).stdout
    return out.decode().split()


def test_counts_agree_with_git_s_own(port: PlumbingGit, repo: Path, git: Git) -> None:
    """For every pair of a tangled history what `git rev-list --count` says of it."""
    made = linear(repo, 14)
    git("reset", "--quiet", "--hard", cwd=repo)
    for at in (4, 9):
        git("checkout", "--quiet", "-B", f"side{at}", made[at], cwd=repo)
        made.append(save(git, repo, f"s{at}", "1\n"))
        made.append(save(git, repo, "f3", f"s{at}\n"))
        git("checkout", "--quiet", "main", cwd=repo)
        git("merge", "--quiet", "--no-edit", "-X", "ours", f"side{at}", cwd=repo)
        made.append(save(git, repo, "f5", f"m{at}\n"))
    git("checkout", "--quiet", "-b", "never-merged", made[3], cwd=repo)
    made.append(save(git, repo, "f3", "elsewhere\n"))
    tip = git("rev-parse", "main", cwd=repo).strip()
    pairs = [(oid, path) for oid in made for path in ("f0", "f3", "f5", "s10", "README")]

    names = [f"{oid}:{path}" for oid, path in [*pairs, *((tip, path) for _, path in pairs)]]
    rows = git(
        "cat-file", "--batch-check=%(objectname)", cwd=repo, input="\n".join(names) + "\n"
    ).splitlines()
    there = {name: "" if row.endswith(" missing") else row for name, row in zip(names, rows, strict=True)}

    found = port.behind(tip, pairs)

    for oid, path in pairs:
        words = ("rev-list", "--count", "--full-history", "--no-merges", f"{oid}..{tip}", "--", path)
        expected = int(git(*words, cwd=repo)) - (not there[f"{oid}:{path}"])
        if there[f"{oid}:{path}"] == there[f"{tip}:{path}"]:
            expected = 0
        mine = found[oid, path].count if (oid, path) in found else 0
        assert mine == max(expected, 0), (oid, path)


def test_a_merge_that_changes_a_file_itself_counts(port: PlumbingGit, repo: Path, git: Git) -> None:
    """What it says there is what neither side said."""
    old = save(git, repo, "a", "1\n")
    git("checkout", "--quiet", "-b", "side", cwd=repo)
    save(git, repo, "b", "1\n")
    git("checkout", "--quiet", "main", cwd=repo)
    save(git, repo, "c", "1\n")
    git("merge", "--quiet", "--no-commit", "side", cwd=repo)
    tip = save(git, repo, "a", "merged\n")

    found = port.behind(tip, [(old, "a")])

    assert (found[old, "a"].count, found[old, "a"].last) == (1, tip)


def test_histories_that_share_nothing_are_compared_all_the_same(
    port: PlumbingGit, repo: Path, git: Git
) -> None:
    """An orphan branch: every commit of HEAD is one that it lacks, the first one too, whatever git is told to show."""
    git("config", "log.showRoot", "false", cwd=repo)
    save(git, repo, "README", "2\n")
    tip = git("rev-parse", "HEAD", cwd=repo).strip()
    git("checkout", "--quiet", "--orphan", "other", cwd=repo)
    other = save(git, repo, "README", "3\n")

    found = port.behind(tip, [(other, "README")])

    assert found[other, "README"].count == 2


def test_who_is_too_far_behind_is_told_so_and_not_counted(port: PlumbingGit, repo: Path) -> None:
    """What costs too much to walk is a lower bound, never a wrong number and never silence."""
    made = linear(repo, branches.WALK_MAX + 44)

    found = port.behind(made[-1], [(made[1], "f2"), (made[1], "README"), (made[-3], "f3")])

    assert {key[1]: (each.count, each.at_least) for key, each in found.items()} == {
        "f2": (branches.WALK_MAX // 7 + 1, True),
        "f3": (1, False),
    }


def test_any_number_of_anchors_takes_three_runs_of_git(
    port: PlumbingGit, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One where nothing differs."""
    made = linear(repo, 200)
    program = GitOnPath(tmp_path, monkeypatch)
    port.behind(made[-1], [(oid, f"f{number % 7}") for number, oid in enumerate(made)])
    assert len(program.started) == 3
    port.behind(made[-1], [(oid, "README") for oid in made])
    (more,) = program.started[3:]
    assert "cat-file" in more[1]


def test_the_branch_is_told_from_head_alone(port: PlumbingGit, repo: Path, tmp_path: Path, git: Git) -> None:
    """Of each worktree its own; none where HEAD names no branch, is not there, or stands for a table of refs."""
    linked = tmp_path / "linked"
    git("worktree", "add", "--quiet", "-b", "topic/one", str(linked), cwd=repo)
    there = find(str(linked))
    found = [port.branch(find(str(repo)).git_dir), port.branch(there.git_dir)]
    head = Path(there.git_dir, "HEAD")
    for text in (
        "ref: refs/heads/.invalid\n",
        "ref: refs/other/x\n",
        "refs/heads/x\n",
        "ref: refs/heads/unborn\n",
        "",
    ):
        head.write_text(text)
        found.append(port.branch(there.git_dir))
    head.unlink()

    assert found == ["main", "topic/one", None, None, None, "unborn", None]
    assert port.branch(there.git_dir) is None


def test_where_head_is_takes_no_git_in_a_usual_repository(
    port: PlumbingGit, repo: Path, tmp_path: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loose branch, a packed one and a detached HEAD; every command asks."""
    git("commit", "--quiet", "--allow-empty", "-m", "Second", cwd=repo)
    old, new = git("rev-list", "--reverse", "HEAD", cwd=repo).split()
    for name, where in (("packed", ["-b", "packed"]), ("detached", ["--detach"])):
        git("worktree", "add", "--quiet", *where, str(tmp_path / name), old, cwd=repo)
    git("pack-refs", "--all", cwd=repo)
    git("update-ref", "refs/heads/main", new, cwd=repo)
    folders = [find(str(where)).git_dir for where in (repo, tmp_path / "packed", tmp_path / "detached")]
    monkeypatch.setenv("PATH", "/nowhere")

    assert [port.head(folder) for folder in folders] == [(new, "main"), (old, "packed"), (old, None)]
    assert [port.branch(folder) for folder in folders] == ["main", "packed", None]


def test_no_run_over_a_work_tree_waits_longer_than_is_said(
    port: PlumbingGit, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A huge one, or a filter that hangs, must not hold a session's end for two minutes."""
    (repo / "README").write_text("2\n")
    waits: list[object] = []
    real: Callable[..., object] = processes.run

    def timed(*args: object, **more: object) -> object:
        waits.append(more.get("timeout"))
        return real(*args, **more)

    monkeypatch.setattr(processes, "run", timed)
    assert port.work_tree(str(repo / ".git"), str(repo)).changed == 1
    assert waits == [WORK_TREE_SECONDS] * 2


def test_an_error_of_git_s_is_no_missing_commit(port: PlumbingGit, repo: Path, git: Git) -> None:
    """A commit that is not here is said to be missing; a history with a hole is git's failure, and is told."""
    old = git("rev-parse", "HEAD", cwd=repo).strip()
    hole = save(git, repo, "a", "1\n")
    tip = save(git, repo, "a", "2\n")
    (repo / ".git/objects" / hole[:2] / hole[2:]).unlink()

    for ask in (port.commits_since, port.files_between):
        for old_one, new_one in (("1" * 40, tip), (old, "1" * 40)):
            with pytest.raises(KeyError, match="1" * 40):
                ask(old_one, new_one)
    with pytest.raises(StoreError, match="git log failed"):
        port.commits_since(old, tip)


# The roots of a repository: the same project from every worktree, and no other's.


def root(git: Git, repo: Path, name: str) -> str:
    """A commit of its own history under a full ref name."""
    tree = git("mktree", cwd=repo, input="").strip()
    oid = git("commit-tree", "-m", name, tree, cwd=repo).strip()
    git("update-ref", name, oid, cwd=repo)
    return oid


def main(git: Git, repo: Path) -> str:
    return git("rev-parse", "main", cwd=repo).strip()


def test_an_orphan_branch_is_of_the_project(repo: Path, tmp_path: Path, git: Git) -> None:
    """From a worktree of `gh-pages` as from the one of `main`: both roots."""
    pages = root(git, repo, "refs/heads/gh-pages")
    git("worktree", "add", "--quiet", str(tmp_path / "pages"), "gh-pages", cwd=repo)

    assert root_commits(find(str(tmp_path / "pages"))) == {main(git, repo), pages}
    assert root_commits(find(str(repo))) == {main(git, repo), pages}


def test_what_only_the_remote_has_of_the_project_counts(repo: Path, git: Git) -> None:
    """A clone on `main` has the orphan branch of its origin under refs/remotes."""
    pages = root(git, repo, "refs/remotes/origin/gh-pages")
    git("update-ref", "refs/remotes/origin/main", "main", cwd=repo)

    assert root_commits(find(str(repo))) == {main(git, repo), pages}


def test_another_projects_remote_is_not_of_the_project(repo: Path, git: Git) -> None:
    """A vendor's branches do not make its log ours: a union can't be undone."""
    root(git, repo, "refs/remotes/vendor/main")
    pages = root(git, repo, "refs/remotes/origin/gh-pages")
    git("update-ref", "refs/remotes/origin/main", "main", cwd=repo)

    assert root_commits(find(str(repo))) == {main(git, repo), pages}


def test_every_remote_of_the_project_counts(repo: Path, git: Git) -> None:
    """A fork and the repository that it is of, each with an orphan branch; later commits are no roots."""
    first = main(git, repo)
    git("commit", "--quiet", "--allow-empty", "-m", "Second", cwd=repo)
    pages = [root(git, repo, f"refs/remotes/{name}/pages-of-{name}") for name in ("origin", "upstream")]
    for name in ("origin", "upstream"):
        git("update-ref", f"refs/remotes/{name}/main", "main", cwd=repo)

    assert root_commits(find(str(repo))) == {first, *pages}


def test_a_detached_head_is_of_the_project(repo: Path, git: Git) -> None:
    """No branch reaches it, and it is what this worktree has."""
    alone = root(git, repo, "refs/heads/alone")
    git("checkout", "--quiet", "--detach", "alone", cwd=repo)
    git("branch", "--quiet", "-D", "alone", cwd=repo)

    assert root_commits(find(str(repo))) == {main(git, repo), alone}


def test_logs_are_no_roots(repo: Path, git: Git) -> None:
    """Whatever branch named gitmem there is, and gitmem's own refs."""
    for name in ("refs/heads/gitmem", "refs/remotes/origin/gitmem", "refs/gitmem/log", "refs/tags/x"):
        root(git, repo, name)
    git("update-ref", "refs/remotes/origin/main", "main", cwd=repo)
    (repo / ".git" / "refs" / "remotes" / "origin" / "HEAD").write_text("ref: refs/remotes/origin/main\n")

    assert root_commits(find(str(repo))) == {main(git, repo)}


@pytest.mark.parametrize("has_remote", [False, True])
def test_an_unborn_head(tmp_path: Path, git: Git, has_remote: bool) -> None:
    """A clone without commits of its own has its remote's, if it has fetched."""
    git("init", "--quiet", str(tmp_path / "new"))
    expected = {root(git, tmp_path / "new", "refs/remotes/origin/main")} if has_remote else set()

    assert root_commits(find(str(tmp_path / "new"))) == expected


def test_a_shallow_clone_has_none(repo: Path, tmp_path: Path, git: Git) -> None:
    """Its roots are only where it was cut."""
    git("commit", "--quiet", "--allow-empty", "-m", "Second", cwd=repo)
    git("clone", "--quiet", "--depth=1", f"file://{repo}", str(tmp_path / "shallow"))

    assert root_commits(find(str(tmp_path / "shallow"))) == set()


def test_a_damaged_branch_costs_that_branch(repo: Path, git: Git) -> None:
    """What HEAD reaches is known nevertheless."""
    (repo / ".git" / "refs" / "heads" / "bad").write_text("1" * 40 + "\n")

    assert root_commits(find(str(repo))) == {main(git, repo)}


def test_a_history_with_a_hole_costs_that_branch(repo: Path, git: Git) -> None:
    """Git gives up on all of them; what HEAD reaches is known nevertheless, and nothing is where HEAD has the hole."""
    first = root(git, repo, "refs/heads/other")
    tree = git("mktree", cwd=repo, input="").strip()
    git(
        "update-ref",
        "refs/heads/other",
        git("commit-tree", "-p", first, "-m", "x", tree, cwd=repo).strip(),
        cwd=repo,
    )
    (repo / ".git/objects" / first[:2] / first[2:]).unlink()

    assert root_commits(find(str(repo))) == {main(git, repo)}
    git("symbolic-ref", "HEAD", "refs/heads/other", cwd=repo)
    assert root_commits(find(str(repo))) == set()


def test_names_in_foreign_bytes_are_names(repo: Path, git: Git) -> None:
    """A branch and a remote of somebody whose letters are not UTF-8."""
    pages, vendor = (root(git, repo, f"refs/heads/{name}") for name in ("pages", "vendor"))
    git("update-ref", "-d", "refs/heads/pages", cwd=repo)
    git("update-ref", "-d", "refs/heads/vendor", cwd=repo)
    rows = [(main(git, repo), "caf\udce9/main"), (pages, "caf\udce9/p\udce9"), (vendor, "vend\udce9/main")]
    (repo / ".git/packed-refs").write_bytes(
        b"".join(f"{oid} refs/remotes/{name}\n".encode("utf-8", "surrogateescape") for oid, name in rows)
    )

    assert root_commits(find(str(repo))) == {main(git, repo), pages}


# How far paths are behind: odd names, and what is too far to count.

ODD = ("new\nline", "cr\r")  # git reads them only where names end in NUL


def saved(git: Git, repo: Path, **files: str | None) -> str:
    """A commit of the user's; None removes a file."""
    for name, content in files.items():
        if content is None:
            (repo / name).unlink()
        else:
            (repo / name).write_text(content)
    git("add", "--all", cwd=repo)
    git("commit", "--quiet", "-m", "m", cwd=repo)
    return git("rev-parse", "HEAD", cwd=repo).strip()


@pytest.mark.parametrize("name", ODD)
def test_odd_names_that_came_or_went_are_told(repo: Path, common: str, git: Git, name: str) -> None:
    """The commit that brought a file is what was known of it; one that is there no more is gone."""
    old = saved(git, repo, went="1", **{name + "went": "1", "a" + name: "1"})
    saved(git, repo, **{name: "1", name + "went": None, "went": None})
    tip = saved(git, repo, **{name: "2"})
    asked = (name, "went", name + "went", "a" + name, "README")
    known = branches.behind(common, tip, [(old, path) for path in asked])

    assert {path: (each.count, each.gone) for (_, path), each in known.items()} == {
        name: (1, False),
        "went": (1, True),
        name + "went": (1, True),
    }


@pytest.mark.parametrize("name", ODD)
def test_an_older_git_knows_nothing_of_odd_names_and_all_of_the_others(
    repo: Path, common: str, git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Before 2.38 its `cat-file` has no way to be asked for them."""
    old = saved(git, repo, plain="1", **{name: "1"})
    tip = saved(git, repo, plain="2", **{name: "2"})
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "git"
    program.write_text(
        f'#!/bin/sh\ncase "$*" in *--batch-check*" -z") echo "error: unknown switch" >&2; exit 129;; esac\n'
        f'exec {shutil.which("git")} "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")

    known = branches.behind(common, tip, [(old, name), (old, "plain")])

    assert {path: each.count for (_, path), each in known.items()} == {"plain": 1}


def test_a_change_beyond_what_is_counted_is_no_change_of_the_tip(repo: Path, common: str, git: Git) -> None:
    """Of a path that was changed further back it is told that it moved on, and no commit that did not touch it."""
    steps = (("early", "1"), ("early", "2"), ("late", "1"), ("late", "2"), ("late", "3"))
    commits = [saved(git, repo, **{name: content}) for name, content in steps]

    found = branches.behind(common, commits[-1], [(commits[0], "early"), (commits[0], "late")], walk_max=2)

    early, late = found[commits[0], "early"], found[commits[0], "late"]
    assert (early.count, early.last, early.at_least) == (0, None, True)
    assert (late.count, late.last, late.at_least) == (2, commits[-1], True)


# How far paths moved on is asked once, and again as soon as the answer could be another one.


class Asked:
    """A repository in which `a.py` changes, and what is known of it."""

    def __init__(self, repo: Path, git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
        self.repo = repo
        self.git = git
        self.calls = 0
        (repo / ".git" / "gitmem").mkdir(exist_ok=True)
        self.first = self.commit("one")
        self.commit("two")
        real = PlumbingGit.behind

        def behind(port: PlumbingGit, *args: object) -> object:
            self.calls += 1
            return real(port, *args)  # type: ignore[arg-type]

        monkeypatch.setattr(PlumbingGit, "behind", behind)

    def commit(self, text: str) -> str:
        (self.repo / "a.py").write_text(text)
        self.git("add", ".", cwd=self.repo)
        self.git("commit", "-qm", text, cwd=self.repo)
        return self.git("rev-parse", "HEAD", cwd=self.repo).strip()

    def count(self, commit: str = "") -> int:
        """How many commits `a.py` is ahead of a commit, as a process of its own finds it; 0 for none or unknown."""
        port = open_port(find(str(self.repo)), long_lived=False)
        tip = self.git("rev-parse", "HEAD", cwd=self.repo).strip()
        found = port.behind(tip, [(commit or self.first, "a.py")])
        port.close()
        return sum(each.count for each in found.values())

    @property
    def file(self) -> Path:
        (path,) = (self.repo / ".git" / "gitmem" / "behind").iterdir()
        return path


@pytest.fixture
def asked(repo: Path, git: Git, monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(repo, git, monkeypatch)


def test_git_is_asked_once_while_head_is_the_same(asked: Asked) -> None:
    """A new commit is another question."""
    assert [asked.count(), asked.count(), asked.calls] == [1, 1, 1]
    asked.commit("three")
    assert [asked.count(), asked.count(), asked.calls] == [2, 2, 2]


def test_a_commit_that_a_fetch_brings_is_seen(asked: Asked, tmp_path: Path) -> None:
    """Of a commit that is not here nothing is known; that is no answer for good."""
    other = tmp_path / "other"
    asked.git("clone", "-q", str(asked.repo), str(other), cwd=tmp_path)
    asked.git("checkout", "-qb", "side", "HEAD~1", cwd=other)
    (other / "b.py").write_text("b")
    asked.git("add", ".", cwd=other)
    asked.git("commit", "-qm", "b", cwd=other)
    side = asked.git("rev-parse", "HEAD", cwd=other).strip()
    assert asked.count(side) == 0

    asked.git("fetch", "-q", str(other), "side", cwd=asked.repo)

    assert asked.count(side) == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-1],
        lambda text: text + "\n",
        lambda text: text.replace(" 0 0\n", " 0 0 0\n"),
        lambda text: text.replace("\n0 1 ", "\n7 1 "),
        lambda text: text.replace("\n0 1 ", "\n0 " + "9" * 300 + " "),
        lambda text: text.replace("\n0 1 ", "\n0 1 \x1b["),
        lambda text: "\n" * 100_000,
    ],
    ids=[
        "torn",
        "longer",
        "a word more",
        "a pair that nobody asked for",
        "a long number",
        "no commit",
        "no lines",
    ],
)
def test_a_file_that_is_damaged_or_hostile_is_no_answer(asked: Asked, damage: Callable[[str], str]) -> None:
    """Git is asked again, and the file is good then."""
    asked.count()
    text = asked.file.read_text()
    asked.file.write_text(damage(text))
    assert asked.file.read_text() != text

    assert asked.count() == 1
    assert asked.calls == 2
    assert asked.file.read_text() == text


def test_where_nothing_can_be_kept_git_answers(asked: Asked) -> None:
    """A file is where the folder should be."""
    (asked.repo / ".git" / "gitmem" / "behind").write_text("")

    assert [asked.count(), asked.count(), asked.calls] == [1, 1, 2]
