"""What the port (`gitmem/git/port.py`) promises, held against both implementations on real repositories."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gitmem.errors import StoreError
from gitmem.git.objects import FILE_MODE, TREE_MODE, Draft, Signature, TreeEntry
from gitmem.git.port import DulwichGit, Git
from gitmem.repo import find

from .. import newer_git
from ..loose_objects import loosen, path_of

REF = "refs/gitmem/log"
EMPTY_TREES = (
    "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
)
GENESES = (
    "45788d4cd5abb587813b901f8cf28b8f29c15c6f",
    "c55dee08abe6393e438ed03e098a5a2627ef804c2f24a2dff5ca3a24ee13f119",
)
MISSING = "1234567890" * 7
AGENT = Signature("Planck <codex>", "planck@gitmem", 1_795_000_000, "+0130")
PERSON = Signature("Zoë Ünal", "zoe@example.org", 1_795_000_001, "-0330")
ZERO_TIME = Signature("gitmem", "gitmem@localhost", 0)
IMPLEMENTATIONS = {"plumbing": Git, "inprocess": DulwichGit}

Run = Callable[..., str]


def like(oid: str, *ids: str) -> str:
    """The first of the ids that has the form of another one, or that may be cut to it."""
    return next(each for each in (*ids, MISSING[: len(oid)]) if len(each) == len(oid))


@pytest.fixture(params=["usual", pytest.param("sha256 and reftable", marks=pytest.mark.deep)], autouse=True)
def kind(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What `git init` makes: today's usual repository, and that of git 3."""
    if request.param != "usual":
        newer_git.put_on_path(tmp_path, monkeypatch)
        monkeypatch.setenv("GIT_DEFAULT_HASH", "sha256")
        monkeypatch.setenv("GIT_DEFAULT_REF_FORMAT", "reftable")
    return str(request.param)


def draft(
    changes: dict[str, bytes | TreeEntry | None], message: str = "m\n", tree: str | None = None
) -> Draft:
    return Draft(changes, AGENT, PERSON, message, tree)


@pytest.fixture(params=IMPLEMENTATIONS)
def opened(request: pytest.FixtureRequest) -> Iterator[Callable[[Path], Git]]:
    """Opens a port on the repository that a folder lies in."""
    ports: list[Git] = []

    def open_at(folder: Path) -> Git:
        port: Git = IMPLEMENTATIONS[request.param](find(str(folder)).common)
        ports.append(port)
        return port

    yield open_at
    for port in ports:
        port.close()


@pytest.fixture
def port(opened: Callable[[Path], Git], repo: Path) -> Git:
    return opened(repo)


@pytest.fixture
def started(port: Git) -> str:
    """The log's first commit, with the ref on it."""
    (genesis,) = port.write([Draft({}, ZERO_TIME, ZERO_TIME, "gitmem log\n")], None)
    assert port.swap(REF, None, genesis, "start")
    return genesis


def fsck(git: Run, folder: Path) -> None:
    """Git finds nothing to complain about but objects that nothing reaches."""
    said = git("fsck", "--strict", "--no-dangling", cwd=folder)
    assert [row for row in said.splitlines() if not row.startswith(("notice:", "dangling"))] == []


def test_the_first_commit_is_the_same_everywhere(started: str) -> None:
    """Clones that start logs apart get related histories: the root is a constant."""
    assert started == like(started, *GENESES)


def test_a_commit_reads_back_as_it_was_drafted(port: Git, started: str, git: Run, repo: Path) -> None:
    """Authors, times, offsets, message and content survive, and git itself agrees."""
    message = "Planck → Curie: PROPOSE\n\nLine\n\nSignal: sig-1\n"
    (oid,) = port.write([draft({"signals/2026-11/21/gm-a.jsonl": b"one\ntwo\n"}, message)], started)
    commit = port.commit(oid)

    assert commit.parents == [started]
    assert commit.message == message
    assert (commit.author.name, commit.author.mail) == ("Planck codex", "planck@gitmem")
    assert (commit.author.seconds, commit.author.offset) == (1_795_000_000, "+0130")
    assert (commit.committer.name, commit.committer.mail) == ("Zoë Ünal", "zoe@example.org")
    assert (commit.committer.seconds, commit.committer.offset) == (1_795_000_001, "-0330")
    assert git("log", "-1", "--format=%an|%ae|%cn|%s", oid, cwd=repo) == (
        "Planck codex|planck@gitmem|Zoë Ünal|Planck → Curie: PROPOSE\n"
    )
    assert git("show", f"{oid}:signals/2026-11/21/gm-a.jsonl", cwd=repo) == "one\ntwo\n"
    assert git("for-each-ref", "refs/gitmem", "--format=%(refname)", cwd=repo) == REF + "\n"
    fsck(git, repo)


@pytest.mark.parametrize(
    "content", [b"", b"no newline", b"\0\xff\r\n\n", b"data 5\n", b"x" * 300_000], ids=range(5)
)
def test_content_is_kept_byte_for_byte(port: Git, started: str, content: bytes) -> None:
    """Nothing in a file's bytes means anything on the way in or out."""
    (oid,) = port.write([draft({"f": content})], started)
    entry = port.tree(port.commit(oid).tree)["f"]

    assert entry.mode == FILE_MODE
    assert port.blob(entry.oid) == content


@pytest.mark.parametrize(
    "name", ['quo"te', "back\\slash", "spa ce", "new\nline", "ünï", "-n", "\udcff", "tab\t", ".gitattributes"]
)
def test_odd_names_are_kept(port: Git, started: str, name: str) -> None:
    """A path that a human made survives, even one that is no UTF-8."""
    (oid,) = port.write([draft({f"a/{name}": b"x", f"{name}.d/f": b"y"})], started)
    root = port.tree(port.commit(oid).tree)

    assert list(port.tree(root["a"].oid)) == [name]
    assert root[f"{name}.d"].is_tree


@pytest.mark.parametrize("path", ["", "/a", "a//b", "a/", "../a", "a/./b", ".git/config", "a/.GIT"])
def test_paths_that_git_refuses_are_refused(port: Git, started: str, path: str) -> None:
    """Such a path would break every later checkout of the branch; no ref moves."""
    with pytest.raises(ValueError, match="is not a valid path in a tree"):
        port.write([draft({path: b"x"})], started)
    assert port.tip(REF) == started


def test_changes_apply_to_the_parent_s_tree(port: Git, started: str) -> None:
    """What is not named stays; None removes a file or folder, and folders that get empty go away."""
    first, second, third = port.write(
        [
            draft({"a/b/c": b"1", "a/d": b"2", "e/f": b"3", "g": b"4"}),
            draft({"a/b/c": None, "e": None, "absent/too": None, "g": b"5"}),
            draft({"a/d": None, "g": None}),
        ],
        started,
    )

    assert set(port.tree(port.commit(first).tree)) == {"a", "e", "g"}
    after = port.tree(port.commit(second).tree)
    assert set(after) == {"a", "g"}
    assert set(port.tree(after["a"].oid)) == {"d"}
    assert port.blob(after["g"].oid) == b"5"
    assert port.commit(third).tree == like(started, *EMPTY_TREES)
    assert port.tree(port.commit(third).tree) == {}


def test_entries_reuse_objects(port: Git, started: str) -> None:
    """A file or a whole folder that exists is taken over by id, also as the place for further changes."""
    (first,) = port.write([draft({"a/b": b"1", "a/c": b"2"})], started)
    folder = port.tree(port.commit(first).tree)["a"]
    file = port.tree(folder.oid)["b"]
    empty = like(started, *EMPTY_TREES)
    (second,) = port.write(
        [draft({"copy": folder, "copy/c": None, "x": file, "none": TreeEntry(TREE_MODE, empty)})], first
    )
    root = port.tree(port.commit(second).tree)

    assert set(root) == {"a", "copy", "x"}
    assert port.tree(root["copy"].oid) == {"b": file}
    assert root["x"] == file


def test_a_draft_can_start_from_another_tree(port: Git, started: str) -> None:
    """`tree` replaces the parent's tree; the changes come on top; parents stay as they are."""
    (first,) = port.write([draft({"a": b"1", "b": b"2"})], started)
    tree = port.commit(first).tree
    empty = like(started, *EMPTY_TREES)
    onto_root, emptied, alone = port.write(
        [draft({"c": b"3"}, tree=tree), draft({}, tree=empty), draft({"b": None}, tree=tree)], started
    )

    assert set(port.tree(port.commit(onto_root).tree)) == {"a", "b", "c"}
    assert port.commit(onto_root).parents == [started]
    assert port.commit(emptied).tree == empty
    assert set(port.tree(port.commit(alone).tree)) == {"a"}


def test_a_file_gives_way_to_a_folder_and_back(port: Git, started: str) -> None:
    """The last change of a path decides what it is."""
    first, second = port.write([draft({"a": b"1"}), draft({"a/b": b"2"})], started)
    (third,) = port.write([draft({"a": b"3"})], second)

    assert not port.tree(port.commit(first).tree)["a"].is_tree
    assert port.tree(port.commit(second).tree)["a"].is_tree
    assert not port.tree(port.commit(third).tree)["a"].is_tree


@pytest.mark.parametrize("mode", [FILE_MODE, TREE_MODE], ids=["file", "folder"])
def test_what_is_missing_is_never_committed(port: Git, started: str, mode: str, git: Run, repo: Path) -> None:
    """A draft on a missing parent, tree or entry is an error: no hole gets into the history."""
    missing = like(started)
    for bad, onto in (
        (draft({"x": TreeEntry(mode, missing)}), started),
        (draft({}, tree=missing), started),
        (draft({}), missing),
    ):
        with pytest.raises(StoreError):
            port.write([bad], onto)
    with pytest.raises(StoreError):
        port.swap(REF, started, missing, "bad")
    assert port.tip(REF) == started
    assert not [name for name in os.listdir(repo / ".git") if name.startswith("fast_import_crash")]
    fsck(git, repo)


def test_missing_objects_are_key_errors(port: Git, started: str) -> None:
    """Also ids of another kind of object, and names that git could look up."""
    missing = like(started)
    assert not port.has(missing)
    assert port.has(started)
    for read in (port.tree, port.blob, port.commit):
        for oid in (missing, MISSING[:40], "HEAD", REF, "", started[:12]):
            with pytest.raises(KeyError):
                read(oid)
    for read in (port.tree, port.blob):
        with pytest.raises(KeyError):
            read(started)
    with pytest.raises(KeyError):
        port.commit(like(started, *EMPTY_TREES))
    with pytest.raises(KeyError):
        port.history(missing)
    with pytest.raises(KeyError):
        port.contains(missing, started)
    assert port.has(started)


def test_damaged_objects_are_not_there(port: Git, started: str, repo: Path) -> None:
    """After a power loss a file may be empty or torn: that object is missing, and others still read."""
    first, second = port.write([draft({"a": b"1"}), draft({"a": b"2" * 500})], started)
    loosen(repo / ".git")
    for oid, keep in ((first, 0), (second, 20)):
        path = path_of(repo / ".git", oid)
        data = path.read_bytes()
        path.chmod(0o644)
        path.write_bytes(data[:keep])

        assert not port.has(oid)
        with pytest.raises(KeyError):
            port.commit(oid)
        assert port.has(started)


def test_a_chain_of_a_thousand(port: Git, started: str, git: Run, repo: Path) -> None:
    """A long replay is one call, leaves no ref behind and a history that fsck accepts."""
    oids = port.write(
        [draft({f"s/{n % 9}/gm-{n}.jsonl": b"%d\n" % n}, f"n {n}\n") for n in range(1_000)], started
    )

    assert len(set(oids)) == 1_000
    assert port.history(oids[-1], [started]) == oids
    assert port.swap(REF, started, oids[-1], "replay")
    assert list(port.refs("refs/gitmem/")) == [REF]
    fsck(git, repo)


def test_both_implementations_write_the_same_objects(tmp_path: Path, git: Run) -> None:
    """The same drafts give the same ids, so that a log does not depend on who wrote it."""
    drafts = [
        draft({"b/x": b"1", "b.y": b"2", "b-z": b"3", "signals/2026-11/21/gm-a.jsonl": b"4\n"}, "no newline"),
        draft({"b/x": None, "ü/é": b"", "b0": b"5"}, "line\n\n\nbody\0nul\n\n"),
        Draft({"b.y": None}, Signature(" ", "", -5, "bad"), Signature("a>\nb", "<m>", 0, "+1400"), ""),
        Draft({}, Signature("\udcff", "x", 1), AGENT, "\udcff and trailing  \n"),
    ]
    written = []
    for name, implementation in IMPLEMENTATIONS.items():
        git("init", "--quiet", name)
        port = implementation(str(tmp_path / name / ".git"))
        written.append(port.write(drafts, None))
        port.close()
        fsck(git, tmp_path / name)

    assert written[0] == written[1]


def test_swap_moves_several_refs_or_none(port: Git, started: str) -> None:
    """Each from where it is told, or made; one that is elsewhere keeps the others where they are."""
    first, second = port.write([draft({"a": b"1\n"}), draft({"a": b"2\n"})], started)
    one, two = "refs/gitmem/one", "refs/gitmem/deep/two"
    assert port.swap(REF, started, first, "both", [(one, None, second)])
    assert (port.tip(REF), port.tip(one), port.tip(two)) == (first, second, None)
    for stale in ((one, first, started), (one, None, started)):
        assert not port.swap(REF, first, second, "stale", [(two, None, first), stale])
        assert (port.tip(REF), port.tip(one), port.tip(two)) == (first, second, None)
    assert not port.swap(REF, started, second, "stale", [(two, None, first)])
    assert port.swap(two, None, first, "all", [(REF, first, second), (one, second, first)])
    assert (port.tip(REF), port.tip(one), port.tip(two)) == (second, first, first)


def test_swap_moves_only_from_where_it_is_told(port: Git, started: str, git: Run, repo: Path) -> None:
    """A ref that is elsewhere, exists or does not exist against expectation is left alone."""
    first, second = port.write([draft({"a": b"1"}), draft({"a": b"2"})], started)

    assert not port.swap(REF, None, first, "create")
    assert not port.swap(REF, first, second, "stale")
    assert not port.swap("refs/gitmem/none", started, first, "absent")
    assert port.tip("refs/gitmem/none") is None
    assert port.swap(REF, started, first, "append\nmore")
    assert port.swap(REF, first, started, "rewind")
    assert port.tip(REF) == started
    assert git("log", "-g", "--format=%gs|%H", REF, "--", cwd=repo) == (
        f"rewind|{started}\nappend more|{first}\nstart|{started}\n"
    )


def test_advance_appends_one_commit(port: Git, started: str, git: Run, repo: Path) -> None:
    """It writes the commit and moves the ref, and the reflog remembers both ends."""
    oid = port.advance(REF, started, draft({"signals/gm-a.jsonl": b"1\n"}), "append")

    assert oid is not None
    assert port.tip(REF) == oid
    assert port.history(oid) == [started, oid]
    assert git("log", "-g", "--format=%H", REF, "--", cwd=repo).split() == [oid, started]
    fsck(git, repo)


def test_a_sibling_s_move_is_a_lost_race(port: Git, started: str, git: Run, repo: Path) -> None:
    """Nobody's commit is overwritten: the loser gets False or None and starts again on the new tip."""
    ours, theirs = (port.write([draft({name: b"x"})], started)[0] for name in "ab")
    git("update-ref", REF, theirs, cwd=repo)

    assert port.advance(REF, started, draft({"c": b"x"}), "append") is None
    assert not port.swap(REF, started, ours, "append")
    assert port.tip(REF) == theirs
    assert not [name for name in os.listdir(repo / ".git") if name.startswith("fast_import_crash")]


def test_writers_at_once_lose_nothing(
    opened: Callable[[Path], Git], started: str, repo: Path, git: Run
) -> None:
    """Each of 4 × 5 appends that was acknowledged is in the history, once."""
    acknowledged: list[str] = []

    def append(name: str) -> None:
        port = opened(repo)
        for number in range(5):
            for _ in range(500):
                old = port.tip(REF)
                oid = (
                    None
                    if old is None
                    else port.advance(REF, old, draft({f"{name}{number}": b"x"}), "append")
                )
                if oid is not None:
                    acknowledged.append(oid)
                    break
                time.sleep(0.005)

    writers = [threading.Thread(target=append, args=(name,)) for name in "abcd"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    port = opened(repo)
    tip = port.tip(REF)

    assert tip is not None
    assert len(acknowledged) == 20
    assert set(port.history(tip)) == {started, *acknowledged}
    assert len(port.tree(port.commit(tip).tree)) == 20
    fsck(git, repo)


def lock_of(repo: Path, kind: str) -> Path:
    """What git makes while it moves our ref: in a reftable one lock for all."""
    return repo / ".git" / (REF + ".lock" if kind == "usual" else "reftable/tables.list.lock")


def test_a_young_lock_is_respected_and_an_old_one_broken(
    port: Git, started: str, git: Run, repo: Path, kind: str
) -> None:
    """Git's own lock means "busy"; a leftover one never stops the store for good."""
    (new,) = port.write([draft({"a": b"1"})], started)
    lock = lock_of(repo, kind)
    lock.touch()

    assert not port.swap(REF, started, new, "append")
    assert port.advance(REF, started, draft({"b": b"1"}), "append") is None
    assert not port.break_stale_lock(REF, 10)
    assert lock.exists()

    old = time.time() - 11
    os.utime(lock, (old, old))
    assert port.break_stale_lock(REF, 10)
    assert not port.break_stale_lock(REF, 10)
    assert port.swap(REF, started, new, "append")
    fsck(git, repo)


def test_a_lock_from_the_future_is_as_dead_as_an_old_one(
    port: Git, started: str, repo: Path, kind: str
) -> None:
    """The clock was set back: what was left before is not respected until the clock has come there again."""
    lock = lock_of(repo, kind)
    lock.touch()
    soon, later = time.time() + 5, time.time() + 3600
    os.utime(lock, (soon, soon))
    assert not port.break_stale_lock(REF, 10)

    os.utime(lock, (later, later))
    assert port.break_stale_lock(REF, 10)
    assert not lock.exists()


def test_a_leftover_lock_of_packed_refs_hinders_no_append(port: Git, started: str, repo: Path) -> None:
    """Appends do not touch packed-refs, so they do not even wait for its lock."""
    (repo / ".git" / "packed-refs.lock").touch()
    begun = time.monotonic()

    (new,) = port.write([draft({"a": b"1"})], started)
    assert port.swap(REF, started, new, "append")
    assert port.advance(REF, new, draft({"b": b"1"}), "append") is not None
    assert time.monotonic() - begun < 0.9  # git's patience with it is a second


def test_packed_refs_and_gc_in_between(port: Git, started: str, git: Run, repo: Path) -> None:
    """An open port finds what a gc has moved: refs in packed-refs, objects in packs made later."""
    tip = started
    for number in range(3):
        oid = port.advance(REF, tip, draft({"a": b"%d" % number}), "append")
        assert oid is not None
        tip = oid
        git("gc", "--quiet", "--prune=now", cwd=repo)
        assert not (repo / ".git" / REF).exists()

        assert port.tip(REF) == tip
        assert port.refs("refs/gitmem/") == {REF: tip}
        entry = port.tree(port.commit(tip).tree)["a"]
        assert port.blob(entry.oid) == b"%d" % number
        assert not port.swap(REF, None, started, "create")
        (sibling,) = port.write([draft({"b": b"1"})], tip)
        assert port.swap(REF, tip, sibling, "append")
        tip = sibling
    assert len(port.history(tip)) == 7
    fsck(git, repo)


def test_refs_of_a_prefix(port: Git, started: str) -> None:
    """Whole path components are matched, and names come back in full."""
    for name in ("a/x", "a/y", "ab"):
        assert port.swap(f"refs/gitmem/remotes/{name}", None, started, "fetch")

    assert port.refs("refs/gitmem/remotes/a/") == dict.fromkeys(
        ("refs/gitmem/remotes/a/x", "refs/gitmem/remotes/a/y"), started
    )
    assert port.refs("refs/gitmem/nothing/") == {}


def test_refs_come_in_the_order_of_their_names(port: Git, started: str, git: Run, repo: Path) -> None:
    """What is folded first must not hang on the order of a disk, nor on what is packed."""
    names = [f"refs/gitmem/outbox/{name}" for name in ("c", "a", "e", "b", "d")]
    for at, name in enumerate(names):
        assert port.swap(name, None, started, "fetch")
        if at == 2:
            git("pack-refs", "--all", cwd=repo)

    assert list(port.refs("refs/gitmem/outbox/")) == sorted(names)


def test_history_and_ancestry(port: Git, started: str, git: Run, repo: Path) -> None:
    """Parents come before children, in branched and merged histories and with unknown ids left out."""
    left = port.write([draft({"l": b"%d" % n}) for n in range(40)], started)
    right = port.write([draft({"r": b"1"}), draft({"r": b"2"})], started)
    empty, missing = like(started, *EMPTY_TREES), like(started)
    merge = git("commit-tree", "-p", left[-1], "-p", right[-1], "-m", "merge", empty, cwd=repo).strip()

    assert port.history(left[-1]) == [started, *left]
    assert port.history(left[-1], [left[9]]) == left[10:]
    assert port.history(left[-1], [left[-2]]) == left[-1:]
    assert port.history(left[-1], [right[-1]]) == left
    assert port.history(left[-1], [left[-1]]) == []
    assert port.history(left[3], [left[9]]) == []
    assert port.history(right[-1], [right[0], left[0], missing]) == right[1:]
    assert port.history(right[-1], [missing]) == [started, *right]
    order = port.history(merge, [started])
    assert sorted(order) == sorted([*left, *right, merge])
    for line in (left, right):
        places = [order.index(oid) for oid in [*line, merge]]
        assert places == sorted(places)
    assert port.contains(merge, right[0])
    assert port.contains(left[-1], started)
    assert port.contains(left[2], left[2])
    assert not port.contains(left[2], left[3])
    assert not port.contains(left[-1], right[0])
    assert not port.contains(left[-1], missing)


def test_linked_worktrees_and_bare_repositories(
    opened: Callable[[Path], Git], repo: Path, tmp_path: Path, git: Run
) -> None:
    """All worktrees of a clone share the log at once; a bare repository has one as well."""
    git("worktree", "add", "--quiet", str(tmp_path / "linked"), cwd=repo)
    git("clone", "--quiet", "--bare", str(repo), str(tmp_path / "bare.git"))
    main, linked, bare = (opened(path) for path in (repo, tmp_path / "linked", tmp_path / "bare.git"))
    (genesis,) = linked.write([draft({"a": b"1"})], None)

    assert linked.swap(REF, None, genesis, "start")
    assert main.tip(REF) == genesis
    assert main.has(genesis)
    assert bare.tip(REF) is None
    assert not bare.has(genesis)
    (started,) = bare.write([draft({"a": b"1"})], None)
    assert bare.swap(REF, None, started, "start")
    assert bare.advance(REF, started, draft({"b": b"1"}), "append") is not None
    assert len(git("log", "-g", "--format=%H", REF, "--", cwd=tmp_path / "bare.git").split()) == 2
    fsck(git, tmp_path / "bare.git")


def test_the_user_s_hooks_and_signing_do_not_fire(port: Git, started: str, git: Run, repo: Path) -> None:
    """A hook that fails and a signature without a key stop the user's commits, not the log's."""
    hooks = repo / "hooks"
    hooks.mkdir()
    for name in ("reference-transaction", "pre-commit", "commit-msg", "post-commit"):
        (hooks / name).write_text("#!/bin/sh\ntouch fired\nexit 1\n")
        (hooks / name).chmod(0o755)
    git("config", "core.hooksPath", str(hooks), cwd=repo)
    git("config", "commit.gpgSign", "true", cwd=repo)
    git("config", "gpg.program", "/bin/false", cwd=repo)

    (new,) = port.write([draft({"a": b"1"})], started)
    assert port.swap(REF, started, new, "append")
    assert port.advance(REF, new, draft({"a": b"2"}), "append")
    assert port.swap("refs/gitmem/x", None, new, "x")
    assert not list(repo.rglob("fired"))
    assert "gpgsig" not in git("cat-file", "commit", REF, cwd=repo)
    assert port.config("^core\\.hookspath$") == {"core.hookspath": str(hooks)}


def test_variables_of_a_hook_do_not_redirect(
    port: Git, started: str, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, git: Run
) -> None:
    """Inside the user's hook git points at another index, object folder or repository; the log stays home."""
    git("init", "--quiet", "other")
    for name in ("GIT_DIR", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_NAMESPACE", "other")

    assert port.advance(REF, started, draft({"a": b"1"}), "append")
    assert set(port.refs("refs/gitmem/")) == {REF}
    for name in list(os.environ):
        if name.startswith("GIT_") and "CONFIG" not in name:
            monkeypatch.delenv(name)
    fsck(git, repo)


def test_nothing_of_the_user_s_is_touched(port: Git, git: Run, repo: Path) -> None:
    """HEAD, branches, index, work tree and configuration are byte for byte what they were."""

    def state() -> list[bytes | str]:
        files = [(repo / ".git" / name).read_bytes() for name in ("HEAD", "index", "config")]
        files.append(git("reflog", "HEAD", cwd=repo).encode())
        return [*files, git("status", "--porcelain", cwd=repo), git("for-each-ref", "refs/heads", cwd=repo)]

    git("status", cwd=repo)  # writes what it finds out about the files to the index
    before = state()
    (genesis,) = port.write([draft({"a": b"1"})], None)
    port.swap(REF, None, genesis, "start")
    port.advance(REF, genesis, draft({"a": b"2"}), "append")

    assert state() == before
    assert set(os.listdir(repo / ".git")) <= {
        *("HEAD", "config", "description", "hooks", "info", "index", "logs", "objects", "refs", "branches"),
        *("COMMIT_EDITMSG", "reftable", "gitmem"),
    }


def test_config_reads_the_last_value(port: Git, repo: Path, git: Run) -> None:
    """Keys as git prints them; the value that git would use; newlines and missing values survive."""
    git("config", "--add", "remote.Origin.fetch", "one", cwd=repo)
    git("config", "--add", "remote.Origin.fetch", "two\nlines", cwd=repo)
    with (repo / ".git" / "config").open("a") as file:
        file.write('[remote "Origin"]\n\tprune\n')

    assert port.config("^remote\\.") == {"remote.Origin.fetch": "two\nlines", "remote.Origin.prune": "true"}
    assert port.config("^nothing\\.") == {}


def test_a_closed_port_opens_again(port: Git, started: str) -> None:
    """Closing ends children and files, not the port."""
    assert port.has(started)
    port.close()
    port.close()
    assert port.has(started)


def test_a_full_disk_is_an_error_and_leaves_no_lock(
    port: Git, started: str, repo: Path, git: Run, kind: str
) -> None:
    """Where nothing can be written the log stays as it was, and works again as soon as there is room."""
    import resource

    (new,) = port.write([draft({"a": b"1"})], started)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8, limits[1]))
    try:
        with pytest.raises(StoreError):
            port.advance(REF, started, draft({"b": b"1"}), "append")
        with pytest.raises(StoreError):
            port.write([draft({"c": b"1"})], started)
        with pytest.raises(StoreError):
            port.swap(REF, started, new, "append")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    port.break_stale_lock(REF, -1)  # the limit kills git, which a full disk does not
    assert port.tip(REF) == started
    assert port.swap(REF, started, new, "append")
    assert port.advance(REF, new, draft({"b": b"1"}), "append")
    packs = {path.stem for path in (repo / ".git" / "objects" / "pack").iterdir()}
    assert packs == set(os.listdir(repo / ".git" / "gitmem" / "own-packs")) and len(packs) == 3
    fsck(git, repo)


def test_a_place_without_git_is_an_error(opened: Callable[[Path], Git], tmp_path: Path, repo: Path) -> None:
    """A repository that went away is a sentence, not a wrong answer."""
    port = opened(repo)
    (repo / ".git").rename(tmp_path / "moved")

    with pytest.raises(StoreError):
        port.refs("refs/gitmem/")
    with pytest.raises(StoreError):
        port.write([draft({"a": b"1"})], None)


def test_the_version_is_that_of_the_program(port: Git) -> None:
    """`doctor` tells a git that is too old to be asked for fsync."""
    said = subprocess.run(["git", "version"], capture_output=True, text=True, check=True).stdout

    assert port.version() == said.split()[2]


# The user's own history and worktree: asked, and never touched.


ODD_NAMES = [
    "spa ce.py",
    "-dash",
    "ünï.py",
    "new\nline",
    "cr\r",
    'quo"te',
    "tab\t",
    ":(top)x",
    "*",
    "-O/x",
    "a/b c/d.py",
]


def save(git: Run, repo: Path, message: str, **files: str | None) -> str:
    """A commit of the user's: files by name, None removes one; its id."""
    for name, content in files.items():
        path = repo / name
        if content is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
    git("add", "--all", "--force", cwd=repo)
    git("commit", "--quiet", "--allow-empty", "-m", message, cwd=repo)
    return git("rev-parse", "HEAD", cwd=repo).strip()


def counts(port: Git, tip: str, *pairs: tuple[str, str]) -> dict[str, int]:
    return {path: each.count for (_, path), each in port.behind(tip, pairs).items()}


@pytest.mark.parametrize("name", ODD_NAMES)
def test_how_far_a_path_is_behind_whatever_its_name(port: Git, repo: Path, git: Run, name: str) -> None:
    """A name is never an option, a pattern or two lines."""
    old = save(git, repo, "one", **{name: "1\n", "other": "1\n"})
    save(git, repo, "two", **{name: "2\n"})
    tip = save(git, repo, "three", other="2\n")

    found = port.behind(tip, [(old, name), (tip, name)])

    assert {pair: (each.count, each.gone, each.at_least) for pair, each in found.items()} == {
        (old, name): (1, False, False)
    }
    assert port.files_between(old, tip) == sorted([name, "other"])


def test_what_did_not_move_on_is_not_behind(port: Git, repo: Path, git: Run) -> None:
    """A change that was taken back, another branch's file, a commit that is not here, paths of no tree."""
    old = save(git, repo, "one", a="1\n", b="1\n")
    save(git, repo, "two", a="2\n")
    back = save(git, repo, "three", a="1\n")
    git("checkout", "--quiet", "-b", "side", old, cwd=repo)
    side = save(git, repo, "side", b="side\n", c="new\n")

    assert counts(port, back, (old, "a")) == {}
    assert counts(port, back, (side, "b"), (side, "c")) == {}
    assert counts(port, back, (like(old), "a"), ("HEAD", "a"), ("--all", "a")) == {}
    assert counts(port, back, (old, ""), (old, "./a"), (old, "../a"), (old, "/a"), (old, "a//b")) == {}
    assert port.behind(back, []) == {}


def test_folders_merges_new_and_lost_files_are_counted(port: Git, repo: Path, git: Run) -> None:
    """Each by the commits that the other one lacks, on all lines that were merged."""
    old = save(git, repo, "one", **{"d/a": "1\n", "d/e/b": "1\n", "gone": "1\n", "dd": "1\n"})
    save(git, repo, "two", **{"d/a": "2\n", "new": "1\n"})
    git("checkout", "--quiet", "-b", "side", old, cwd=repo)
    side = save(git, repo, "side", **{"d/e/b": "2\n"})
    git("checkout", "--quiet", "main", cwd=repo)
    git("merge", "--quiet", "--no-edit", "side", cwd=repo)
    lost = save(git, repo, "lost", gone=None)
    tip = save(git, repo, "again", new="2\n")

    assert counts(port, tip, (old, "d"), (old, "d/e"), (old, "d/a"), (old, "dd")) == {
        "d": 2,
        "d/e": 1,
        "d/a": 1,
    }
    assert counts(port, tip, (side, "d"), (side, "d/e/b")) == {"d": 1}
    assert counts(port, tip, (old, "new")) == {"new": 1}  # the commit that brought it does not count
    gone = port.behind(tip, [(old, "gone")])[old, "gone"]
    assert (gone.count, gone.gone, gone.last) == (1, True, lost)


def test_commits_of_a_text_of_a_time_and_since(port: Git, repo: Path, git: Run) -> None:
    """As git reads them; a text is never an option, and a missing commit is a KeyError."""
    git_dir = str(repo / ".git")
    first = port.head(git_dir)[0]
    assert first
    second = save(git, repo, "Zweiter \x1b[31m: ü", a="1\n")
    third = save(git, repo, "third", a="2\n")
    git("tag", "-a", "-m", "tag", "v1", second, cwd=repo)

    assert port.find_commit(git_dir, "HEAD~2") == first
    assert port.find_commit(git_dir, "v1") == second
    assert port.find_commit(git_dir, third[:7]) == third
    for text in (
        "",
        "nope",
        "-h",
        "--all",
        "HEAD HEAD",
        "HEAD..",
        "HEAD:a",
        "a\0b",
        "HEAD\nHEAD",
        "^HEAD",
        like(third),
    ):
        assert port.find_commit(git_dir, text) is None, text
    assert port.commits_since(first, third) == [(third, "third"), (second, "Zweiter \x1b[31m: ü")]
    assert port.commits_since(third, first) == []
    for old, new in ((like(third), third), ("--all", third), ("HEAD", third), (third, "-h")):
        with pytest.raises(KeyError):
            port.commits_since(old, new)
        with pytest.raises(KeyError):
            port.files_between(old, new)


def test_what_a_work_tree_has_on_top(port: Git, repo: Path, git: Run) -> None:
    """Git's own numbers, and what git does not know; a file that was only touched has not changed."""
    save(git, repo, "one", **{"a.py": "1\n2\n", "gone": "1\n", "touched": "1\n", ".gitignore": "*.o\n"})
    (repo / "a.py").write_text("1\n3\n4\n")
    (repo / "gone").unlink()
    (repo / "staged ü").write_text("1\n")
    git("add", "staged ü", cwd=repo)
    (repo / "x.o").write_text("ignored")
    (repo / "free").mkdir()
    for name in ("one", "new\nline"):
        (repo / "free" / name).write_text("1")
    os.utime(repo / "touched", (1, 1))

    found = port.work_tree(str(repo / ".git"), str(repo))

    assert [row.split() for row in found.stat.splitlines()[:-1]] == [
        ["a.py", "|", "3", "++-"], ["gone", "|", "1", "-"], ["staged", "ü", "|", "1", "+"],
    ]  # fmt: skip
    assert found.stat.splitlines()[-1] == " 3 files changed, 3 insertions(+), 2 deletions(-)"
    assert (found.changed, found.untracked) == (3, 2)
