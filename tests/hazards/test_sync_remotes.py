"""Remotes that are away, hang, refuse, are rewound, deleted, or hold something else."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

import pytest

from gitmem.errors import UsageError
from gitmem.git.objects import Draft, Signature
from gitmem.log import ref
from tests.clones import Clone, Hub, git

WHO = Signature("somebody", "somebody@example.org", 1)


def synced(hub: Hub, *words: str) -> Clone:
    clone = hub.clone("a")
    for word in words or ("one",):
        clone.add(word)
    clone.exchange()
    return clone


def rewrite(clone: Clone, changes: dict[str, bytes | None], *, onto: str | None = None) -> str:
    """A commit by hand on a tip."""
    return clone.git.write([Draft(dict(changes), WHO, WHO, "By hand\n")], onto or clone.tip)[0]


def push(clone: Clone, oid: str, to: str = ref.BRANCH) -> None:
    git("push", "--quiet", "--force", "origin", f"{oid}:{to}", cwd=clone.path)


@pytest.mark.parametrize(
    "url", ["/nowhere/at/all.git", "git://127.0.0.1:9/x.git", "ssh://nobody@127.0.0.1:9/x.git"]
)
def test_an_unreachable_remote_is_offline_and_nothing_is_lost(hub: Hub, url: str) -> None:
    """The state says so, and the lines go with the next sync."""
    a = synced(hub)
    git("remote", "set-url", "origin", url, cwd=a.path)
    a.add("two")
    found = a.exchange()
    assert (found.state, found.sent) == ("offline", 0)
    assert "ocal records are kept" in found.message
    git("remote", "set-url", "origin", str(hub.path), cwd=a.path)
    assert a.exchange().sent == 1
    assert hub.texts() == ["one", "two"]


def test_a_remote_that_hangs_is_cut_off(hub: Hub) -> None:
    """A server that takes the connection and says nothing costs the time limit and no more."""
    a = synced(hub)
    with socket.create_server(("127.0.0.1", 0)) as server:
        held: list[socket.socket] = []
        thread = threading.Thread(target=lambda: held.append(server.accept()[0]), daemon=True)
        thread.start()
        git("remote", "set-url", "origin", f"git://127.0.0.1:{server.getsockname()[1]}/x.git", cwd=a.path)
        a.add("two")
        began = time.monotonic()
        found = a.exchange(timeout=1.0)
        assert time.monotonic() - began < 5
        for connection in held:
            connection.close()
    assert found.state == "offline"
    assert a.texts() == ["one", "two"]


def test_a_remote_that_was_rewound_gets_its_lines_back(hub: Hub) -> None:
    """Somebody forced the branch to an older commit."""
    a = synced(hub, "one", "two", "three")
    b = hub.clone("b")
    b.exchange()
    push(a, f"{a.tip}~2")
    assert hub.texts() == ["one"]
    assert b.exchange().sent == 2
    assert hub.tip() == b.tip == a.tip
    push(a, f"{a.tip}~2")
    c = hub.clone("c")
    c.add("meanwhile")
    c.exchange()
    b.exchange()
    a.exchange()
    assert sorted(hub.texts()) == ["meanwhile", "one", "three", "two"]
    assert a.tip == b.tip == hub.tip() and a.merges() == 0


def test_a_remote_that_was_deleted_gets_the_whole_log_again(hub: Hub) -> None:
    """The branch is made anew, with the history that it had."""
    a = synced(hub, "one", "two")
    git("update-ref", "-d", ref.BRANCH, cwd=hub.path)
    found = a.exchange()
    assert (found.state, found.sent) == ("synced", 2)
    assert "Made the branch" in found.message
    assert hub.tip() == a.tip


def test_a_branch_of_that_name_that_is_no_log_is_left_alone(hub: Hub) -> None:
    """Unrelated history: not read, not pushed to, and said."""
    a = hub.clone("a")
    a.add("one")
    git("push", "--quiet", "origin", "main:gitmem", cwd=a.path)
    found = a.exchange()
    assert found.state == "refused"
    assert "was ignored: its tree has no file `format`" in found.message
    assert found.left_out[0].ref == ref.BRANCH and found.left_out[0].author.startswith("Test Person")
    assert git("rev-parse", "main", "gitmem", cwd=hub.path).split()[0] == hub.tip()
    assert a.texts() == ["one"]


def test_a_log_without_the_first_commit_is_no_log(hub: Hub) -> None:
    """A tree that looks right on a history of its own is not ours to unite with."""
    a = synced(hub)
    (orphan,) = a.git.write([Draft({}, WHO, WHO, "Start\n", tree=a.tree)], None)
    push(a, orphan)
    a.add("two")
    found = a.exchange()
    assert found.state == "refused" and "first commit" in found.message


def test_what_is_no_log_elsewhere_is_no_hindrance(hub: Hub) -> None:
    """Only the place that we publish to must be a log."""
    a = synced(hub)
    git("push", "--quiet", "origin", "main:refs/gitmem/log", cwd=a.path)
    a.add("two")
    found = a.exchange()
    assert (found.state, found.sent) == ("synced", 1)
    assert "refs/gitmem/log of origin (commit" in found.message


def foreign(hub: Hub, tmp_path: Path) -> Clone:
    """A clone of another project whose remote is our hub."""
    path = tmp_path / "foreign"
    git("init", "--quiet", "--initial-branch=main", str(path), cwd=tmp_path)
    (path / "other").write_text("another project\n")
    git("add", "other", cwd=path)
    git("commit", "--quiet", "-m", "Another first", cwd=path)
    git("remote", "add", "origin", str(hub.path), cwd=path)
    return hub.open(path)


def test_the_log_of_another_project_is_refused(hub: Hub, tmp_path: Path) -> None:
    """Union can't be undone; `--allow-foreign` is the way."""
    synced(hub)
    other = foreign(hub, tmp_path)
    other.add("theirs")
    before = other.tip
    refused = other.exchange()
    assert refused.state == "refused" and refused.sent == 0 and "--allow-foreign" in refused.message
    with pytest.raises(UsageError) as asked:
        other.exchange(push=False)
    assert asked.value.code == "foreign-log" and "--allow-foreign" in asked.value.hint
    assert other.tip == before and hub.texts() == ["one"]
    assert other.exchange(allow_foreign=True).state == "synced"
    assert hub.texts() == ["one", "theirs"]
    assert other.exchange().state == "up-to-date"


def test_a_clone_without_a_log_does_not_adopt_a_foreign_one(hub: Hub, tmp_path: Path) -> None:
    """Neither by sync nor by what `git fetch` brought."""
    synced(hub)
    other = foreign(hub, tmp_path)
    assert other.exchange().state == "refused"
    git("fetch", "--quiet", "origin", cwd=other.path)
    other.add("theirs")
    assert other.texts() == ["theirs"]


def test_what_was_fetched_from_another_remote_is_not_read(hub: Hub, tmp_path: Path) -> None:
    """A fork that somebody fetched by hand, of this project or of another."""
    a = synced(hub)
    fork = rewrite(a, {"notes/2026-11/21/gm-f0rged00.jsonl": b'{"text":"forged"}\n'})
    other = foreign(hub, tmp_path)
    other.add("theirs")
    git("update-ref", "refs/remotes/alice/gitmem", fork, cwd=a.path)
    git("fetch", "--quiet", str(other.path), "refs/gitmem/log:refs/remotes/other/gitmem", cwd=a.path)
    a.add("two")

    found = a.exchange()

    assert (found.state, found.sent, found.message) == ("synced", 1, "")
    assert hub.texts() == a.texts() == ["one", "two"]


def test_a_foreign_branch_of_that_name_here_is_left_out(hub: Hub, tmp_path: Path) -> None:
    """Somebody made a branch `gitmem` of another project's log in this clone."""
    a = synced(hub)
    other = foreign(hub, tmp_path)
    other.add("theirs")
    git("fetch", "--quiet", str(other.path), "refs/gitmem/log:refs/heads/gitmem", cwd=a.path)
    found = a.exchange()
    assert found.state == "up-to-date" and a.texts() == ["one"]
    assert "refs/heads/gitmem of this clone" in found.message and "another project" in found.message


def test_a_clone_without_commits_takes_the_projects_of_the_log(hub: Hub, tmp_path: Path) -> None:
    """A log that was started before there was a project gets its id with a later sync."""
    path = tmp_path / "early"
    git("init", "--quiet", "--initial-branch=main", str(path), cwd=tmp_path)
    git("remote", "add", "origin", str(hub.path), cwd=path)
    early = hub.open(path)
    early.add("early")
    assert early.exchange().state == "synced"
    assert not git("ls-tree", "gitmem", "projects", cwd=hub.path)
    git("pull", "--quiet", "origin", "main", cwd=path)
    early.exchange()
    root = git("rev-list", "--max-parents=0", "main", cwd=path).strip()
    assert git("ls-tree", "--name-only", "gitmem:projects", cwd=hub.path).split() == [root]


def test_a_newer_format_is_not_read_and_not_overwritten(hub: Hub) -> None:
    """The sentence names what to install."""
    a = synced(hub)
    newer = rewrite(a, {"format": b'{"format":2,"epoch":0}\n', "s/gm-n.jsonl": b"new\n"})
    push(a, newer)
    a.add("two")
    found = a.exchange()
    assert (found.state, found.received, found.sent, found.has_our_lines) == ("refused", 0, 1, True)
    assert "format 2; upgrade gitmem" in found.message and "repair" not in found.message
    assert hub.tip() == newer and a.texts() == ["one", "two"]
    b = hub.clone("b")
    assert b.exchange().state == "refused"
    assert b.texts() == ["one", "two"], "what stands below it, and the outbox"


def new_epoch(clone: Clone, *, keep: bytes) -> str:
    """A new history from the first commit on, with a higher epoch."""
    files = {"format": b'{"format":1,"epoch":1}\n', "README.md": ref.README}
    files["notes/2026-11/20/gm-kept.jsonl"] = keep
    files.update(
        {f"projects/{oid}": b"" for oid in clone.git.tree(clone.git.tree(clone.tree)["projects"].oid)}
    )
    return clone.git.write([Draft(dict(files), WHO, WHO, "Redact\n")], ref.GENESIS)[0]


def test_another_epoch_empties_nobodys_log(hub: Hub) -> None:
    """It is left out; everybody goes on past it."""
    a = synced(hub, "one")
    b = hub.clone("b")
    b.exchange()
    b.add("mine")
    bad = new_epoch(a, keep=b'{"text":"kept"}\n')
    push(a, bad)
    for clone in (b, a):
        found = clone.exchange()
        assert found.state == "refused" and "its epoch is 1; only 0 is valid" in found.message
        assert clone.texts() == ["one", "mine"] and hub.tip() == bad
    good = a.git.tip("refs/gitmem/remotes/origin/accepted")
    git("update-ref", ref.BRANCH, str(good), cwd=hub.path)
    assert {a.exchange().state, b.exchange().state} <= {"synced", "up-to-date"}
    assert hub.texts() == ["one", "mine"]


def test_a_server_hook_that_refuses_is_said_and_nothing_is_lost(hub: Hub) -> None:
    """Its own words reach the user."""
    a = synced(hub)
    hook = hub.path / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho 'branches need a ticket' >&2\nexit 1\n")
    hook.chmod(0o755)
    a.add("two")
    found = a.exchange()
    assert found.state == "refused" and "ticket" in found.message
    hook.unlink()
    assert a.exchange().sent == 1


def test_a_ref_lock_on_the_server_is_tried_again(hub: Hub) -> None:
    """Another push holds it for a moment."""
    a = synced(hub)
    lock = hub.path / "refs/heads/gitmem.lock"
    lock.touch()
    a.add("two")
    found = a.exchange(pause=lambda seconds: lock.unlink(missing_ok=True))
    assert (found.state, found.attempts) == ("synced", 2)


def test_a_remote_whose_name_needs_care_works(hub: Hub) -> None:
    """Slashes and umlauts in a remote's name, and a url instead of a name."""
    a = hub.clone("a")
    git("remote", "rename", "origin", "fork/jürgen", cwd=a.path)
    a.add("one")
    assert a.exchange("fork/jürgen").state == "synced"
    assert "refs/gitmem/remotes/fork%2Fj%C3%BCrgen/heads/gitmem" in a.git.refs("refs/gitmem/remotes/")
    a.add("two")
    assert a.exchange(str(hub.path)).sent == 1


def test_a_log_that_was_started_on_an_orphan_branch_is_of_the_project(hub: Hub) -> None:
    """The first to speak stood in a worktree of `gh-pages`: a clone on `main` is no stranger to that log."""
    a, b = hub.clone("a"), hub.clone("b")
    git("checkout", "--quiet", "--orphan", "gh-pages", cwd=a.path)
    git("commit", "--quiet", "-m", "Pages", cwd=a.path)
    git("push", "--quiet", "origin", "gh-pages", cwd=a.path)
    git("branch", "--quiet", "-D", "main", cwd=a.path)
    a.add("from the pages")
    b.add("from main")
    assert a.exchange().state == "synced"

    assert b.exchange().state == "synced"
    assert sorted(b.texts()) == ["from main", "from the pages"]


def test_a_log_of_the_orphan_branch_alone_is_known_by_its_root(hub: Hub) -> None:
    """The clone had only the branch that it stood on."""
    a, b = hub.clone("a"), hub.clone("b")
    git("checkout", "--quiet", "--orphan", "gh-pages", cwd=a.path)
    git("commit", "--quiet", "-m", "Pages", cwd=a.path)
    git("push", "--quiet", "origin", "gh-pages", cwd=a.path)
    git("branch", "--quiet", "-D", "main", cwd=a.path)
    for name in ("origin/main", "origin/HEAD"):
        git("update-ref", "--no-deref", "-d", f"refs/remotes/{name}", cwd=a.path)
    a.add("from the pages")
    assert len(git("ls-tree", "--name-only", "refs/gitmem/log:projects", cwd=a.path).split()) == 1
    assert a.exchange().state == "synced"
    b.add("from main")
    assert b.exchange().state == "refused", "b has not heard of the branch yet"
    git("fetch", "--quiet", "origin", cwd=b.path)

    assert b.exchange().state == "synced"
    assert sorted(b.texts()) == ["from main", "from the pages"]
