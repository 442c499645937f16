"""What mending looks at and takes away: reflogs, refs that are none, refs in the way, objects that are damaged."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.git import history, plumbing
from gitmem.git import packs as packing
from gitmem.git.objects import Draft, Signature
from gitmem.git.port import DulwichGit
from gitmem.git.port import Git as PlumbingGit

from .. import newer_git
from ..conftest import Git
from ..git_on_path import GitOnPath
from ..loose_objects import path_of

Run = Callable[..., str]
REF = "refs/gitmem/log"
WHO = Signature("Planck", "planck@gitmem", 1_795_000_000)


def commits(git: Run, repo: Path, count: int) -> list[str]:
    """Some commits in a row, of no ref."""
    made = [git("commit-tree", "-m", "0", "HEAD^{tree}", cwd=repo).strip()]
    for number in range(1, count):
        made.append(
            git("commit-tree", "-m", str(number), "-p", made[-1], f"{made[-1]}^{{tree}}", cwd=repo).strip()
        )
    return made


def moves(common: str, ref: str = REF) -> list[tuple[str | None, str, str]]:
    return [(move.old, move.new, move.why) for move in plumbing.reflog(common, ref)]


@pytest.mark.parametrize("form", ["files", "reftable"])
def test_where_a_ref_has_been_is_told_oldest_first(
    tmp_path: Path, git: Run, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """The same of either form of refs, with the reason of each move."""
    more = []
    if form == "reftable":
        newer_git.put_on_path(tmp_path, monkeypatch)
        more = ["--ref-format=reftable"]
    git("init", "--quiet", *more, "a")
    repo = tmp_path / "a"
    git("commit", "--quiet", "--allow-empty", "-m", "m", cwd=repo)
    one, two, three = commits(git, repo, 3)
    for why, oid in (("stärt", one), ("append", three), ("sync", two)):
        git("update-ref", "--create-reflog", "-m", why, REF, oid, cwd=repo)
    common = str(repo / ".git")

    assert moves(common) == [(None, one, "stärt"), (one, three, "append"), (three, two, "sync")]
    assert moves(common, "refs/gitmem/other") == []


def test_what_is_torn_of_a_reflog_is_left_out(common: str, repo: Path, git: Run) -> None:
    """After a power loss a line may be half there; those around it count."""
    one, two = commits(git, repo, 2)
    path = repo / ".git/logs" / REF
    path.parent.mkdir(parents=True)
    rows = [
        f"{'0' * 40} {one} x 1 +0000\tstart",
        f"{one} {two[:20]}",
        "",
        "\0" * 90,
        f"{two} {'0' * 40} x 1 +0000\tgone",
    ]
    path.write_text("\n".join([*rows, f"{one} {two} x 1 +0000\tlast \udcff\n"]), errors="surrogateescape")

    assert moves(common) == [(None, one, "start"), (one, two, "last \ufffd")]


def test_moves_to_what_is_gone_are_forgotten(common: str, repo: Path, git: Run) -> None:
    """A gc would stop at them; what is whole stays told."""
    one, two = commits(git, repo, 2)
    for oid in (one, two, one):
        git("update-ref", "--create-reflog", "-m", "m", REF, oid, cwd=repo)
    os.unlink(repo / ".git/objects" / two[:2] / two[2:])

    assert plumbing.expire_broken(common, REF)
    assert two not in [new for _, new, _ in moves(common)]
    assert moves(common)[0] == (None, one, "m")
    assert not plumbing.expire_broken(str(repo), REF)


def test_a_ref_goes_only_from_where_it_was_seen(common: str, repo: Path, git: Run) -> None:
    """Somebody may have moved it since."""
    one, two = commits(git, repo, 2)
    git("update-ref", REF, two, cwd=repo)

    assert not plumbing.delete_ref(common, REF, one)
    assert plumbing.tip_of(common, REF) == two
    assert plumbing.delete_ref(common, REF, two)
    assert plumbing.tip_of(common, REF) is None


def test_refs_that_are_none_are_named(common: str, repo: Path, git: Run) -> None:
    """Empty, torn and odd ones; a lock, a symbolic one and what git writes in another form are none of them."""
    folder = repo / ".git/refs/gitmem"
    (folder / "deep").mkdir(parents=True)
    whole = commits(git, repo, 1)[0]
    for name, text in {
        "empty": "", "torn": whole[:30] + "\n", "deep/odd": "\0" * 41,
        "whole": whole + "\n", "crlf": whole + "\r\n", "bare": whole, "sha256": "a" * 64, "symbolic": "ref: refs/heads/main\n",
        "log.lock": "",
    }.items():  # fmt: skip
        (folder / name).write_text(text)

    assert sorted(plumbing.damaged_refs(common, "refs/gitmem")) == [
        f"refs/gitmem/{name}" for name in ("deep/odd", "empty", "torn")
    ]
    assert list(plumbing.damaged_refs(common, "refs/gitmem/empty")) == ["refs/gitmem/empty"]
    assert list(plumbing.damaged_refs(common, "refs/none")) == []


def test_the_file_of_a_damaged_object_is_put_away(common: str, repo: Path, tmp_path: Path, git: Run) -> None:
    """A fetch may bring it then."""
    oid, aside = (
        git("hash-object", "-w", "--stdin", cwd=repo, input="one").strip(),
        tmp_path / "aside" / "objects",
    )
    path = path_of(repo / ".git", oid)
    whole = path.read_bytes()

    assert packing.move_aside(common, oid, str(aside), PlumbingGit(common).read) == str(aside / oid)
    assert not path.exists() and (aside / oid).read_bytes() == whole
    assert packing.move_aside(common, "0" * 40, str(aside), PlumbingGit(common).read) is None


def test_of_a_damaged_pack_what_can_be_read_is_kept(common: str, repo: Path, tmp_path: Path) -> None:
    """Everything else of it is in another pack before it goes. One that is not ours stays where it is."""
    port, packs = PlumbingGit(common), repo / ".git/objects/pack"
    (oid,) = port.write([Draft({"a": b"a" * 900, "b": b"b" * 900}, WHO, WHO, "m\n")], None)
    assert port.swap("refs/gitmem/log", None, oid, "start")
    entries = port.tree(port.commit(oid).tree)
    port.close()
    (path,) = packs.glob("*.pack")
    data = path.read_bytes()
    damaged = zlib.compress(b"a" * 900)
    path.chmod(0o644)
    path.write_bytes(data.replace(damaged, b"\0" * len(damaged)))
    for reader in (PlumbingGit(common), DulwichGit(common)):
        assert not reader.has(entries["a"].oid) and reader.has(entries["b"].oid)
        reader.close()

    own = repo / ".git/gitmem/own-packs" / path.stem
    own.rename(tmp_path / "own")
    assert (
        packing.move_aside(common, entries["a"].oid, str(tmp_path / "aside"), PlumbingGit(common).read)
        is None
    )
    (tmp_path / "own").rename(own)
    to = packing.move_aside(common, entries["a"].oid, str(tmp_path / "aside"), PlumbingGit(common).read)

    assert to == str(tmp_path / "aside" / path.name) and not path.exists()
    for reader in (PlumbingGit(common), DulwichGit(common)):
        assert reader.blob(entries["b"].oid) == b"b" * 900 and not reader.has(entries["a"].oid)
        assert reader.commit(oid).parents == []
        (again,) = reader.write([Draft({"a": b"a" * 900}, WHO, WHO, "m\n")], None)
        assert reader.blob(entries["a"].oid) == b"a" * 900 and again
        reader.close()
        for name in packs.glob("*.pack"):
            if entries["a"].oid in packing.ids_in(str(name.with_suffix(".idx")), 40):
                packing.remove(common, name.stem)
    assert not list(packs.glob("*.keep"))


# Which commits took lines out of which files: whatever a repository's settings say, and never less than all of them.

ODD = """
[diff]
    external = false
    renames = copies
    orderFile = nowhere
    noprefix = true
[diff "upper"]
    textconv = false
"""
Found = Callable[[], list[tuple[str, str]] | None]


@pytest.fixture(params=["plain", "odd"])
def found(repo: Path, git: Git, request: pytest.FixtureRequest) -> Found:
    """What took lines away; also in a repository whose settings change what a person sees of differences."""

    def ask() -> list[tuple[str, str]] | None:
        commits = git("rev-list", "--reverse", "HEAD", cwd=repo).split()
        if request.param == "odd":
            with open(repo / ".git/config", "a", encoding="utf-8") as config:
                config.write(ODD)
            (repo / ".git/info").mkdir(exist_ok=True)
            (repo / ".git/info/attributes").write_text("*.jsonl diff=upper\n")
        return history.removals(str(repo / ".git"), commits)

    return ask


def commit(git: Git, repo: Path, **files: bytes | None) -> str:
    """A commit that puts files, or takes them away."""
    for name, content in files.items():
        path = repo / f"{name}.jsonl"
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
    git("add", "--all", cwd=repo)
    git("commit", "--quiet", "-m", "change", cwd=repo)
    return git("rev-parse", "HEAD", cwd=repo).strip()


def test_what_only_grew_lost_nothing(repo: Path, git: Git, found: Found) -> None:
    """New files, and lines at any place of a file."""
    commit(git, repo, a=b"b\nd\n", b=b"x\n")
    commit(git, repo, a=b"a\nb\nc\nd\n\xff e\n", c=b"b\nd\n")
    commit(git, repo, a=b"a\nb\nc\nd\n\xff e\nf\n")

    assert found() == []


def test_each_commit_that_took_a_line_away_is_named_with_the_file(repo: Path, git: Git, found: Found) -> None:
    """A line, a whole file, and one that another took over; names are bytes."""
    commit(git, repo, a=b"a\nb\n", b=b"x\ny\n", c=b"1\n2\n3\n")
    one = commit(git, repo, a=b"a\nc\n")
    two = commit(git, repo, b=None, z=b"x\ny\n")
    three = commit(git, repo, **{"ä\tö": b"1\n"}, c=b"1\n\xff 2\n")
    four = commit(git, repo, **{"ä\tö": b""})

    assert found() == [(one, "a.jsonl"), (two, "b.jsonl"), (three, "c.jsonl"), (four, "ä\tö.jsonl")]


@pytest.mark.parametrize("attributes", ["", "*.jsonl binary\n"])
def test_what_git_takes_for_no_text_is_named_with_every_change(repo: Path, git: Git, attributes: str) -> None:
    """It says how many lines were removed of text alone."""
    (repo / ".git/info").mkdir(exist_ok=True)
    (repo / ".git/info/attributes").write_text(attributes)
    one = commit(git, repo, a=b"a\n\0b\n", b=b"x\n\0\n")
    two = commit(git, repo, a=b"a\n\0b\nc\n")
    three = commit(git, repo, b=None)

    assert history.removals(str(repo / ".git"), [one, two, three]) == [(two, "a.jsonl"), (three, "b.jsonl")]


def test_a_merge_is_compared_with_each_side(repo: Path, git: Git, found: Found) -> None:
    """One that forgot what one side had."""
    start = commit(git, repo, a=b"a\n")
    ours = commit(git, repo, a=b"a\nb\n")
    git("checkout", "--quiet", "-b", "side", start, cwd=repo)
    commit(git, repo, a=b"a\nc\n")
    git("checkout", "--quiet", "main", cwd=repo)
    git("merge", "--quiet", "-s", "ours", "-m", "merge", "side", cwd=repo)
    merge = git("rev-parse", "HEAD", cwd=repo).strip()

    assert ours != merge
    assert found() == [(merge, "a.jsonl")]


def test_many_commits_are_asked_for_in_portions(
    repo: Path, git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []
    for number in range(5):
        commit(git, repo, a=b"%d\nx\n" % number)
        taken.append(commit(git, repo, a=b"x\n"))
    commits = git("rev-list", "--reverse", "HEAD", cwd=repo).split()
    program = GitOnPath(tmp_path, monkeypatch)

    rows = history.removals(str(repo / ".git"), commits, at_once=2) or []

    assert [each for each, _ in rows] == taken
    assert len(program.started) == -(-len(commits) // 2)


@pytest.mark.parametrize("content", [b"", None])
def test_what_can_not_be_read_is_not_taken_for_whole(
    repo: Path, git: Git, found: Found, content: bytes | None
) -> None:
    """An older file that a power loss has emptied, or that is gone."""
    commit(git, repo, a=b"a\n")
    oid = git("rev-parse", "HEAD:a.jsonl", cwd=repo).strip()
    commit(git, repo, a=b"a\nb\n")
    path = repo / ".git/objects" / oid[:2] / oid[2:]
    path.chmod(0o644)
    if content is None:
        os.unlink(path)
    else:
        path.write_bytes(content)

    assert found() is None
