"""What mending looks at and takes away: reflogs, refs that are none, refs in the way, objects that are damaged."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.git import held, loose, queries, repair
from tests import newer_git

Run = Callable[..., str]
REF = "refs/gitmem/log"


def commits(git: Run, repo: Path, count: int) -> list[str]:
    """Some commits in a row, of no ref."""
    made = [git("commit-tree", "-m", "0", "HEAD^{tree}", cwd=repo).strip()]
    for number in range(1, count):
        made.append(
            git("commit-tree", "-m", str(number), "-p", made[-1], f"{made[-1]}^{{tree}}", cwd=repo).strip()
        )
    return made


def moves(common: str, ref: str = REF) -> list[tuple[str | None, str, str]]:
    return [(move.old, move.new, move.why) for move in repair.reflog(common, ref)]


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

    assert repair.forget_broken(common, REF)
    assert two not in [new for _, new, _ in moves(common)]
    assert moves(common)[0] == (None, one, "m")
    assert not repair.forget_broken(str(repo), REF)


def test_a_ref_goes_only_from_where_it_was_seen(common: str, repo: Path, git: Run) -> None:
    """Somebody may have moved it since."""
    one, two = commits(git, repo, 2)
    git("update-ref", REF, two, cwd=repo)

    assert not repair.delete(common, REF, one)
    assert queries.tip_of(common, REF) == two
    assert repair.delete(common, REF, two)
    assert queries.tip_of(common, REF) is None


def test_a_ref_in_the_way_keeps_a_name(common: str, repo: Path, git: Run) -> None:
    """Killed in the middle it is done again; where the new name is another's, or the old one moved, it has its old one."""
    one, two = commits(git, repo, 2)
    way, free = REF + "/x", "refs/gitmem/aside-x"
    for left in (None, one):  # the second: it was killed before it deleted
        if left is None:
            git("update-ref", way, one, cwd=repo)
        else:
            git("update-ref", free, one, cwd=repo)
            git("update-ref", way, one, cwd=repo)
        assert repair.rename(common, way, one, free)
        assert queries.refs_below(common, "refs/gitmem/") == {free: one}

    git("update-ref", way, two, cwd=repo)
    assert not repair.rename(common, way, two, free)
    assert not repair.rename(common, way, one, free)
    assert queries.refs_below(common, "refs/gitmem/") == {free: one, way: two}


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

    assert sorted(repair.damaged(common, "refs/gitmem")) == [
        f"refs/gitmem/{name}" for name in ("deep/odd", "empty", "torn")
    ]
    assert list(repair.damaged(common, "refs/gitmem/empty")) == ["refs/gitmem/empty"]
    assert list(repair.damaged(common, "refs/none")) == []


def test_the_file_of_a_damaged_object_is_put_away(common: str, repo: Path, tmp_path: Path) -> None:
    """With its second name, if that is the same file; another one may be whole, and the next look takes it up."""
    objects, aside = str(repo / ".git/objects"), tmp_path / "aside" / "objects"
    for content in (b"one", b"two"):
        oid = loose.write(objects, b"blob", content, "sha1")
        path = Path(objects, oid[:2], oid[2:])
        assert held.hold(objects, oid) and repair.written(common) == [oid]
        whole = path.read_bytes()
        if content == b"two":
            path.unlink()
            path.write_bytes(b"")

        assert repair.put_away(common, oid, str(aside)) == str(aside / oid)
        assert not path.exists() and (aside / oid).read_bytes() == (whole if content == b"one" else b"")
        assert repair.written(common) == ([] if content == b"one" else [oid])
        assert held.give_back(objects, oid) is (content == b"two")
        assert repair.put_away(common, "0" * 40, str(aside)) is None
