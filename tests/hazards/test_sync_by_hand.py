"""People who use plain git on the log's branch: nothing is lost, and the next sync puts it right."""

from __future__ import annotations

from pathlib import Path

from gitmem.log import ref
from tests.clones import Clone, Hub, git


def two_that_shared(hub: Hub) -> tuple[Clone, Clone]:
    a, b = hub.clone("a"), hub.clone("b")
    a.add("first")
    a.exchange()
    b.exchange()
    return a, b


def worktree(clone: Clone, start: str) -> Path:
    """A worktree of a local branch `gitmem`, as a person makes one."""
    path = clone.path.parent / f"{clone.path.name}-log"
    git("worktree", "add", "--quiet", "-B", "gitmem", str(path), start, cwd=clone.path)
    return path


def test_fetch_merge_and_push_by_plain_git(hub: Hub) -> None:
    """A merge commit on the shared branch is what history stands on, and nobody adds another."""
    a, b = two_that_shared(hub)
    a.add("from a")
    b.add("from b")
    b.exchange()
    git("fetch", "--quiet", "origin", cwd=a.path)
    at = worktree(a, "refs/gitmem/log")
    git("merge", "--quiet", "--no-edit", "origin/gitmem", cwd=at)
    git("push", "--quiet", "origin", "gitmem", cwd=at)
    found = a.exchange()
    assert (found.received, found.sent) == (1, 0)
    assert b.exchange().received == 1
    assert a.tip == b.tip == hub.tip()
    assert a.texts() == ["first", "from a", "from b"]
    assert a.merges() == 1


def test_a_merge_that_was_not_pushed_is_flattened(hub: Hub) -> None:
    """What a person merged locally is replayed as single commits, without the merge."""
    a, b = two_that_shared(hub)
    a.add("from a")
    b.add("from b")
    b.exchange()
    git("fetch", "--quiet", "origin", cwd=a.path)
    at = worktree(a, "refs/gitmem/log")
    git("merge", "--quiet", "--no-edit", "origin/gitmem", cwd=at)
    git("update-ref", ref.LOG_REF, "HEAD", cwd=at)
    assert a.exchange().sent == 1
    assert a.merges() == 0
    assert a.texts() == hub.texts() == ["first", "from a", "from b"]


def test_a_fetch_alone_brings_lines_to_an_offline_sync(hub: Hub) -> None:
    """`refs/remotes/*/gitmem` counts as a place, also where the remote can't be reached now."""
    a, b = two_that_shared(hub)
    b.add("from b")
    b.exchange()
    git("fetch", "--quiet", "origin", cwd=a.path)
    git("remote", "set-url", "--push", "origin", str(hub.root / "nowhere.git"), cwd=a.path)
    found = a.exchange()
    assert found.state == "offline"
    assert a.texts() == ["first", "from b"]


def test_a_line_that_somebody_deleted_by_hand_comes_back(hub: Hub) -> None:
    """Also where it would be a fast-forward: trees are compared, not only histories."""
    a, b = two_that_shared(hub)
    a.add("second")
    a.exchange()
    b.exchange()
    git("fetch", "--quiet", "origin", cwd=a.path)
    at = worktree(a, "origin/gitmem")
    (segment,) = at.glob("notes/**/*.jsonl")
    segment.write_bytes(b"".join(segment.read_bytes().splitlines(keepends=True)[1:]))
    git("commit", "--quiet", "-am", "Tidy up", cwd=at)
    git("push", "--quiet", "origin", "gitmem", cwd=at)
    assert hub.texts() == ["second"]
    assert b.exchange().sent == 1
    assert hub.texts() == b.texts() == ["first", "second"]
    assert b.subjects()[:2] == ["Repair: 1 line that was missing", "Tidy up"]
    a.exchange()
    assert a.tip == b.tip


def test_a_segment_that_somebody_deleted_by_hand_comes_back(hub: Hub) -> None:
    """A whole file, and the fixed files too."""
    a, b = two_that_shared(hub)
    at = worktree(b, "refs/gitmem/log")
    git("rm", "--quiet", "-r", "notes", "README.md", cwd=at)
    git("commit", "--quiet", "-m", "Remove", cwd=at)
    git("push", "--quiet", "origin", "gitmem", cwd=at)
    assert a.exchange().sent == 1
    assert hub.texts() == ["first"]
    assert "README.md" in git("ls-tree", "--name-only", "gitmem", cwd=hub.path)


def test_conflict_markers_duplicates_and_crlf_lose_nothing(hub: Hub) -> None:
    """A merge of one segment without our driver, and an editor that rewrote it."""
    a, b = two_that_shared(hub)
    at = worktree(b, "refs/gitmem/log")
    (segment,) = at.glob("notes/**/*.jsonl")
    (line,) = segment.read_bytes().splitlines()
    other = line.replace(b'"first"', b'"other"')
    segment.write_bytes(
        b"<<<<<<< HEAD\r\n" + line + b"\r\n" + line + b"\r\n=======\r\n" + other + b"\r\n>>>>>>> x\r\n"
    )
    git("commit", "--quiet", "-am", "Merge by hand", cwd=at)
    git("push", "--quiet", "origin", "gitmem", cwd=at)
    a.add("second")
    a.exchange()
    assert a.texts() == hub.texts()
    assert [text for text in a.texts() if text[0].islower()] == ["first", "other", "second"]
    assert {"<<<<<<< HEAD", "=======", ">>>>>>> x"} < set(a.texts())
    b.exchange()
    assert b.tip == a.tip


def test_a_branch_that_a_person_keeps_is_left_alone(hub: Hub) -> None:
    """Sync reads `refs/heads/gitmem` and never moves it, nor its worktree."""
    a, b = two_that_shared(hub)
    at = worktree(a, "refs/gitmem/log")
    before = git("rev-parse", "gitmem", cwd=at)
    b.add("from b")
    b.exchange()
    a.exchange()
    assert git("rev-parse", "gitmem", cwd=at) == before
    assert not git("status", "--porcelain", cwd=at)
    assert a.texts() == ["first", "from b"]


def test_a_copied_clone_writes_the_same_segment_and_loses_nothing(hub: Hub) -> None:
    """`cp -r` of a clone: two clones with one open segment unite line by line."""
    import shutil

    a, b = two_that_shared(hub)
    copied = hub.root / "copied"
    shutil.copytree(a.path, copied)
    c = hub.open(copied)
    a.add("from a")
    c.add("from the copy")
    for clone in (a, c, b, a):
        clone.exchange()
    assert a.texts() == c.texts() == b.texts() == ["first", "from a", "from the copy"]
    assert a.tip == c.tip == b.tip


def test_sync_leaves_the_users_repository_alone(hub: Hub) -> None:
    """HEAD, branches, index, work tree, config and FETCH_HEAD are as they were; hooks do not fire."""
    a, b = two_that_shared(hub)
    b.add("from b")
    b.exchange()
    git("tag", "-a", "v1", "-m", "v1", cwd=a.path)
    for hook in ("pre-push", "reference-transaction", "post-merge", "pre-auto-gc"):
        path = a.path / ".git" / "hooks" / hook
        path.write_text("#!/bin/sh\nexit 1\n")
        path.chmod(0o755)
    git("config", "push.default", "matching", cwd=a.path)
    git("config", "push.followTags", "true", cwd=a.path)
    git("config", "push.gpgSign", "true", cwd=a.path)
    before = [
        git("for-each-ref", "refs/heads", "refs/remotes", "refs/tags", cwd=a.path),
        git("symbolic-ref", "HEAD", cwd=a.path),
        (a.path / ".git/config").read_text(),
        (a.path / ".git/index").read_bytes(),
        git("ls-remote", "origin", "refs/tags/*", "refs/heads/main", cwd=a.path),
    ]
    a.add("from a")
    assert a.exchange().state == "synced"
    assert before == [
        git("for-each-ref", "refs/heads", "refs/remotes", "refs/tags", cwd=a.path),
        git("symbolic-ref", "HEAD", cwd=a.path),
        (a.path / ".git/config").read_text(),
        (a.path / ".git/index").read_bytes(),
        git("ls-remote", "origin", "refs/tags/*", "refs/heads/main", cwd=a.path),
    ]
    assert not (a.path / ".git/FETCH_HEAD").exists()
    assert not (a.path / ".git/shallow").exists()
    git("fsck", "--strict", cwd=a.path)
    git("fsck", "--strict", cwd=hub.path)
