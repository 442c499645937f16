"""What is in git's commits and trees, read and written as git does."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitmem.errors import StoreError
from gitmem.git import fetch, objects, plumbing, processes
from gitmem.git.objects import FILE_MODE, Draft, Signature, TreeEntry
from gitmem.git.port import COMMIT_BYTES, HEADS_AT_ONCE, STEPS_MAX, STEPS_MIN, DulwichGit
from gitmem.git.port import Git as PlumbingGit

from .. import loose_objects, newer_git
from ..conftest import Git
from ..git_on_path import GitOnPath

WHO = Signature("Planck", "planck@gitmem", 1_795_000_000)


@pytest.mark.parametrize(
    "who",
    [
        "Noether <n@x> 1795000000 +0130",
        "Noether <the <first@x> 1795000000 -0330",
        "Zoë Ünal <> 0 +0000",
        " <n@x> 1 +0000",
    ],
)
def test_who_wrote_a_commit_is_read_as_git_reads_it(repo: Path, git: Git, who: str) -> None:
    """Also where a name has a bracket in it, or is none; other lines of the head are passed over."""
    tree = git("mktree", cwd=repo, input="").strip()
    more = "encoding UTF-8\ngpgsig -----BEGIN\n author A <b> 1 +0000\n"
    text = f"tree {tree}\nauthor {who}\ncommitter {who}\n{more}\nm\n"
    oid = git("hash-object", "-t", "commit", "--literally", "-w", "--stdin", cwd=repo, input=text).strip()

    found = objects.parse_commit(text.encode()).author

    shown = git("show", "--no-patch", "--date=raw", "--format=%an%n%ae%n%ad", oid, cwd=repo)
    assert [found.name, found.mail, f"{found.seconds} {found.offset}"] == shown.splitlines()


def test_what_git_wrote_is_written_back_to_the_byte(repo: Path, git: Git) -> None:
    """A tree in git's own order with names in any bytes, and a merge with a message in paragraphs."""
    blob = git("hash-object", "-w", "--stdin", cwd=repo, input="x").strip()
    empty = git("mktree", cwd=repo, input="").strip()
    names = ["a", "a.b", "a0", "b.c", "B", "ä", "x y"]
    rows = [f"100644 blob {blob}\t{name}\0" for name in names] + [f"040000 tree {empty}\ta-\0"]
    tree = git("mktree", "-z", cwd=repo, input="".join(rows) + f"040000 tree {empty}\tb\0").strip()
    head = git("rev-parse", "HEAD", cwd=repo).strip()
    other = git("commit-tree", "-m", "o", empty, cwd=repo).strip()
    oid = git(
        "commit-tree", "-p", head, "-p", other, "-F", "-", tree, cwd=repo, input="ü\n\nmore\n\n\n"
    ).strip()
    port = PlumbingGit(str(repo / ".git"))

    (_, kept_tree), (_, kept) = port.read(tree), port.read(oid)
    port.close()
    commit = objects.parse_commit(kept)
    entries = objects.parse_tree(kept_tree)

    assert sorted(entries) == sorted([*names, "a-", "b"])
    assert objects.format_tree(dict(reversed(entries.items()))) == kept_tree
    assert (commit.tree, commit.parents) == (tree, [head, other])
    written = (commit.tree, commit.parents, commit.author, commit.committer, commit.message)
    assert objects.format_commit(*written) == kept


@pytest.mark.parametrize(
    ("signature", "line"),
    [
        (Signature(" A <b>\n ", "<c>\0", 5, "-0330"), "A b <c> 5 -0330"),
        (Signature("<>", "", -5, "0330"), "unknown <> 0 +0000"),
        (Signature("A", "b", 5, "+033x"), "A <b> 5 +0000"),
        (Signature("A", "b", 5, "+03300"), "A <b> 5 +0000"),
        (Signature("A", "b", 5, "*0330"), "A <b> 5 +0000"),
    ],
)
def test_nothing_in_a_signature_breaks_its_line(signature: Signature, line: str) -> None:
    """Whatever a person has set as name and mail, git can read the commit."""
    assert objects.format_signature(signature).decode() == line
    assert (
        objects.format_signature(objects.parse_signature(b"A <b>c> 5 +0100")) == b"A <b> 5 +0100"
    )  # as git reads it


@pytest.mark.parametrize("implementation", [PlumbingGit, DulwichGit])
def test_an_object_that_is_reused_keeps_its_mode(
    repo: Path, git: Git, common: str, implementation: type[PlumbingGit] | type[DulwichGit]
) -> None:
    """Programs, links, folders and submodules; ancient writable files become usual ones, a blank mode is no other."""
    blob = git("hash-object", "-w", "--stdin", cwd=repo, input="x").strip()
    head = git("rev-parse", "HEAD", cwd=repo).strip()
    tree = git("rev-parse", "HEAD^{tree}", cwd=repo).strip()
    modes = {"100644": "100644", "100664": "100644", "100755": "100755", "120000": "120000"}
    changes = {mode: TreeEntry(mode, blob) for mode in modes}
    changes |= {
        "0100755": TreeEntry("0100755", blob),
        "40000": TreeEntry("40000", tree),
        "160000": TreeEntry("160000", head),
    }
    port = implementation(common)

    (oid,) = port.write([Draft(changes, WHO, WHO, "m\0n\n")], None)

    rows = [row.split() for row in git("ls-tree", oid, cwd=repo).splitlines()]
    assert {row[3]: row[0] for row in rows} == {
        **modes, "0100755": "100755", "40000": "040000", "160000": "160000",
    }  # fmt: skip
    assert git("show", "--no-patch", "--format=%B", oid, cwd=repo).rstrip() == "m\N{REPLACEMENT CHARACTER}n"
    port.close()


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("a" * 40, True),
        ("0" * 64, True),
        ("a" * 39, False),
        ("A" * 40, False),
        ("HEAD", False),
        ("g" * 40, False),
    ],
)
def test_a_whole_id_is_told_from_a_name(text: str, is_one: bool) -> None:
    """A name would be looked up by git, and an option obeyed."""
    assert objects.is_oid(text) is is_one


@pytest.mark.parametrize("data", [b"", b"tree x\n\nm", b"tree " + b"a" * 40 + b"\n\nm", b"blob"])
def test_what_is_no_commit_is_not_read_as_one(data: bytes) -> None:
    """A tag or a torn object named by a ref."""
    with pytest.raises(ValueError, match="no commit"):
        objects.parse_commit(data)


# The port inside the process: what it keeps in mind never changes an answer, and a missing object is named.

MISSING = "1234567890" * 4


@pytest.fixture
def port(common: str) -> Iterator[DulwichGit]:
    opened = DulwichGit(common)
    yield opened
    opened.close()


def draft(changes: dict[str, bytes | TreeEntry | None], tree: str | None = None) -> Draft:
    return Draft(changes, WHO, WHO, "m\n", tree)


def test_what_is_kept_in_mind_has_a_limit(port: DulwichGit) -> None:
    """The oldest gives way to the newest, and all is read again that is asked for again."""
    port.kept_trees.most = 2
    port.kept_commits.most = 2 * COMMIT_BYTES + 10
    chain = port.write([draft({f"d/{number}": b"x", "n": b"%d" % number}) for number in range(6)], None)

    for _ in range(2):
        for number, oid in enumerate(chain):
            root = port.tree(port.commit(oid).tree)
            assert sorted(port.tree(root["d"].oid)) == [str(each) for each in range(number + 1)]
            assert port.blob(root["n"].oid) == b"%d" % number
            assert port.commit(oid).parents == chain[:number][-1:]
    assert len(port.kept_trees.values) <= 2 and len(port.kept_commits.values) <= 2


def test_messages_that_are_kept_in_mind_have_a_limit(port: DulwichGit) -> None:
    """Of peers' commits each may be large: only so much of them is kept, and all are read again."""
    port.kept_commits.most = 2 * COMMIT_BYTES + 250
    texts = [str(number) * 100 + "\n" for number in range(1, 5)]
    chain = port.write([Draft({"n": text.encode()}, WHO, WHO, text) for text in ("x", *texts)], None)
    for _ in range(2):
        assert [port.commit(oid).message for oid in chain[1:]] == texts
        assert len(port.kept_commits.values) == 2 and port.kept_commits.size == 2 * COMMIT_BYTES + 202


def test_what_was_read_last_is_remembered_and_missing_all_the_same(port: DulwichGit, common: str) -> None:
    """Up to so many bytes, until the port is closed. Whether an object is there is looked up each time."""
    port.kept_objects.most = 25
    (tip,) = port.write([draft({name: name.encode() * 10 for name in "abc"})], None)
    files = [port.tree(port.commit(tip).tree)[name].oid for name in "abc"]
    port.close()
    loose_objects.loosen(Path(common))
    assert [port.blob(oid) for oid in files] == [b"a" * 10, b"b" * 10, b"c" * 10]
    assert list(port.kept_objects.values) == files[1:]
    assert port.blob(files[0]) == b"a" * 10 and list(port.kept_objects.values) == [files[2], files[0]]
    loose_objects.remove(Path(common), files[0])
    assert not port.has(files[0]) and port.has(files[1])
    port.close()
    with pytest.raises(KeyError):
        port.blob(files[0])


@pytest.mark.parametrize(
    "length", [1, 2, STEPS_MIN, STEPS_MIN + 1, STEPS_MIN + 2, STEPS_MAX + 1, STEPS_MAX + 2]
)
def test_a_line_of_any_length_is_told_whole(port: DulwichGit, length: int) -> None:
    """Up to some length it is followed here, beyond that git is asked: the answer is one."""
    chain = port.write([draft({"n": b"%d" % number}) for number in range(length)], None)

    assert port.history(chain[-1]) == chain
    assert port.history(chain[-1], [chain[0]]) == chain[1:]
    assert port.contains(chain[-1], chain[0])
    assert not port.contains(chain[-1], MISSING)


def test_the_object_that_is_missing_is_named(port: DulwichGit) -> None:
    """Whether it is an entry, the tree to start from or the parent; also where it is no id at all."""
    (first,) = port.write([draft({"f": b"x"})], None)
    for missing in (MISSING, "short"):
        for bad, onto in (
            (draft({"x": TreeEntry(FILE_MODE, missing)}), first),
            (draft({}, tree=missing), first),
            (draft({}), missing),
        ):
            with pytest.raises(StoreError, match=f"^The object {missing} is missing or damaged") as caught:
                port.write([bad], onto)
            assert caught.value.code == "missing-object"


@pytest.mark.parametrize("form", ["sha1", "sha256"])
def test_what_is_borrowed_is_read_in_either_hash(
    tmp_path: Path, git: Git, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """Loose and packed; also where the two repositories borrow from each other, and then what neither has is missing."""
    if form == "sha256":
        newer_git.put_on_path(tmp_path, monkeypatch)
    git("init", "--quiet", f"--object-format={form}", "lender")
    lender, borrower = tmp_path / "lender", tmp_path / "borrower"
    git("commit", "--quiet", "--allow-empty", "-m", "m", cwd=lender)
    git("gc", "--quiet", cwd=lender)
    git("clone", "--quiet", "--shared", str(lender), str(borrower))
    loose = git("hash-object", "-w", "--stdin", cwd=lender, input="loose\n").strip()
    packed = git("rev-parse", "HEAD", cwd=lender).strip()
    (lender / ".git/objects/info/alternates").write_text(f"{borrower}/.git/objects\n")

    port = DulwichGit(str(borrower / ".git"))
    assert port.blob(loose) == b"loose\n"
    assert port.commit(packed).message == "m\n"
    assert not port.has(loose[::-1])
    port.close()


# The port on the git program: its reading child, and what a move of a ref that goes wrong is taken for.

REF = "refs/gitmem/log"
DRAFT = Draft({"f": b"line\n"}, WHO, WHO, "m\n")


@pytest.fixture
def git_port(common: str) -> Iterator[PlumbingGit]:
    opened = PlumbingGit(common)
    yield opened
    opened.close()


@pytest.fixture
def tip(git_port: PlumbingGit) -> str:
    """Of a ref with one commit."""
    (first,) = git_port.write([DRAFT], None)
    assert git_port.swap(REF, None, first, "start")
    return first


def test_one_child_answers_all_reads(
    git_port: PlumbingGit, tip: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays until the port is closed; where it died another one takes its place."""
    program = GitOnPath(tmp_path, monkeypatch)
    git_port.close()
    for _ in range(2):
        entry = git_port.tree(git_port.commit(tip).tree)["f"]
        assert git_port.blob(entry.oid) == b"line\n"
        assert git_port.heads([entry.oid, tip])[entry.oid] == ("blob", 5)
    ((first, _),) = program.started

    os.kill(first, signal.SIGKILL)
    assert git_port.has(tip) and git_port.has(tip)
    _, (second, _) = program.started
    git_port.close()
    with pytest.raises(ProcessLookupError):
        os.kill(second, 0)


def test_heads_of_any_number_of_objects(git_port: PlumbingGit, tip: str) -> None:
    """Neither side waits for the other; what is missing, or no id at all, is left out."""
    (oid,) = git_port.write(
        [
            Draft(
                {f"{number}": b"%d" % number for number in range(12 * HEADS_AT_ONCE)},
                WHO,
                WHO,
                "m\n",
            )
        ],
        tip,
    )
    files = [entry.oid for entry in git_port.tree(git_port.commit(oid).tree).values()]

    found = git_port.heads([*files, "1" * 40, "HEAD", "", tip, "info\nx"])

    assert found.pop(tip) == ("commit", len(git_port.read(tip)[1]))
    assert found.keys() == set(files) and {kind for kind, _ in found.values()} == {"blob"}


def test_a_child_that_never_answers_is_a_missing_object_or_no_repository(
    git_port: PlumbingGit, tip: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git dies of some damage to an object: that one is missing. Where git can't work at all it says why."""
    GitOnPath(tmp_path, monkeypatch).says(0, to="cat-file")
    with pytest.raises(KeyError, match=tip):
        git_port.commit(tip)

    os.rename(Path(git_port.common, "HEAD"), Path(git_port.common, "was-head"))
    with pytest.raises(StoreError, match=r"^git rev-parse failed: fatal: not a git repository"):
        git_port.commit(tip)


@pytest.mark.parametrize("moved", [False, True])
def test_a_move_that_is_stopped_takes_nothing_away(
    git_port: PlumbingGit, tip: str, monkeypatch: pytest.MonkeyPatch, moved: bool
) -> None:
    """It may have moved the ref: what was written stays, and is kept."""
    update_ref = plumbing.update_ref

    def stopped(*args: str) -> bool:
        if moved:
            assert update_ref(*args)
        raise processes.GitTimeoutError("stopped")

    monkeypatch.setattr(plumbing, "update_ref", stopped)
    with pytest.raises(processes.GitTimeoutError):
        git_port.advance(REF, tip, Draft({"g": b"1"}, WHO, WHO, "m\n"), "append")

    now = git_port.tip(REF)
    assert now is not None and (now != tip) is moved and git_port.has(now)
    assert len(list(Path(git_port.common, "objects/pack").glob("*.keep"))) == 1


def test_another_error_than_a_lost_race_is_said(git_port: PlumbingGit, tip: str) -> None:
    """The ref is asked to move to an object that is not a commit."""
    with pytest.raises(StoreError, match=r"^git update-ref failed: ") as caught:
        git_port.swap(REF, tip, "1" * 40, "x")
    assert caught.value.code == "git-failed" and git_port.tip(REF) == tip


# Clones that left files with a remote: what they lack is told exactly, and brought only when it is asked for.


@pytest.fixture
def lent(repo: Path, git: Git) -> Path:
    """A remote of two commits, each with a file in a folder of its own."""
    for name in ("one", "two"):
        (repo / name).mkdir()
        (repo / name / "file").write_text(name)
        git("add", name, cwd=repo)
        git("commit", "--quiet", "-m", name, cwd=repo)
    git("config", "uploadpack.allowFilter", "true", cwd=repo)
    git("config", "uploadpack.allowAnySHA1InWant", "true", cwd=repo)
    return repo


def clone(git: Git, lent: Path, kind: str) -> str:
    less = lent.parent / "less"
    git("clone", "--quiet", "--bare", f"--filter={kind}", f"file://{lent}", str(less))
    git("tag", "-a", "-m", "a tag is no log", "v1", "main~1", cwd=less)
    for name, at in (("main", "main"), ("old", "main~1"), ("tag", "v1")):
        git("update-ref", f"refs/copies/{name}", at, cwd=less)
    return str(less)


def ids(git: Git, lent: Path, *names: str) -> set[str]:
    return set(git("rev-parse", *names, cwd=lent).split())


def test_what_is_not_here_is_told(lent: Path, git: Git) -> None:
    """Of two commits the files of both, once each; of a history all; of a whole clone nothing."""
    less = clone(git, lent, "blob:none")
    old, tip = git("rev-list", "--reverse", "main", cwd=lent).split()[1:]
    first, last = ids(git, lent, "main:README", "main:one/file"), ids(git, lent, "main:two/file")

    assert set(fetch.missing_objects(less, [old])) == first
    assert sorted(fetch.missing_objects(less, [old, tip])) == sorted(first | last)
    assert fetch.missing_objects(less, []) == []
    assert fetch.promised_objects(less, tip) == first | last
    assert fetch.is_incomplete(less, tip)
    whole = str(lent / ".git")
    assert (
        fetch.missing_objects(whole, [tip]),
        fetch.promised_objects(whole, tip),
        fetch.is_incomplete(whole, tip),
    ) == (
        [],
        set(),
        False,
    )


def test_what_nobody_promised_is_not_promised(lent: Path, git: Git) -> None:
    """A commit whose file was lost here: no remote has it, so nothing of it is left to one."""
    less = clone(git, lent, "blob:none")
    lost = git("hash-object", "-w", "--stdin", cwd=Path(less), input="lost").strip()
    tree = git("mktree", cwd=Path(less), input=f"100644 blob {lost}\tlost\n").strip()
    oid = git("commit-tree", "-p", "main", "-m", "ours", tree, cwd=Path(less)).strip()
    (Path(less) / "objects" / lost[:2] / lost[2:]).unlink()

    assert fetch.promised_objects(less, oid) == set()
    assert fetch.missing_objects(less, [oid]) == [lost]


@pytest.mark.parametrize("kind", ["blob:none", "tree:0"])
def test_all_that_the_copies_lack_is_brought(lent: Path, git: Git, kind: str) -> None:
    """Folders first, then what is in them; from who promised it, and nothing that is here is asked for."""
    less = clone(git, lent, kind)
    tip = git("rev-parse", "main", cwd=lent).strip()
    before = (Path(less) / "config").read_bytes(), git("for-each-ref", cwd=Path(less))
    asked: list[tuple[str, set[str]]] = []

    def online(name: str, args: list[str], given: bytes) -> None:
        asked.append((name, set(given.decode("ascii").split())))
        subprocess.run(["git", *args], cwd=less, input=given, check=True, timeout=30)

    fetch.fetch_missing(less, "refs/copies/", online)
    rounds = len(asked)
    fetch.fetch_missing(less, "refs/copies/", online)
    fetch.fetch_missing(str(lent / ".git"), "refs/", online)

    files = ids(git, lent, "main:README", "main:one/file", "main:two/file")
    assert asked[-1][1] >= (files if kind == "blob:none" else set())
    assert (rounds, len(asked)) == (len(asked), 1 if kind == "blob:none" else rounds)
    assert {name for name, _ in asked} == {"origin"}
    assert fetch.missing_objects(less, [tip]) == []
    assert not fetch.is_incomplete(less, tip)
    assert ((Path(less) / "config").read_bytes(), git("for-each-ref", cwd=Path(less))) == before
    assert not (Path(less) / "FETCH_HEAD").exists()


def test_a_remote_that_never_gives_them_is_not_asked_for_ever(lent: Path, git: Git) -> None:
    """It answers, and what was promised is still not here; nothing outside of the prefix is asked for."""
    less = clone(git, lent, "blob:none")
    asked: list[str] = []

    fetch.fetch_missing(less, "refs/none/", lambda name, *_: asked.append(name))
    assert asked == []
    fetch.fetch_missing(less, "refs/copies/", lambda name, *_: asked.append(name))
    assert asked == ["origin"] * fetch.ROUNDS_MAX
