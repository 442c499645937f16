"""The port inside the process: what it keeps in mind never changes an answer, and a missing object is named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gitmem.errors import StoreError
from gitmem.git.inprocess import DulwichGit
from gitmem.git.objects import FILE_MODE, Draft, Signature, TreeEntry
from gitmem.git.port import STEPS_MAX, STEPS_MIN
from tests import loose_objects, newer_git
from tests.conftest import Git

WHO = Signature("Planck", "planck@gitmem", 1_795_000_000)
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
    port.trees_kept_max = 2
    port.commits_kept_max = 2
    chain = port.write([draft({f"d/{number}": b"x", "n": b"%d" % number}) for number in range(6)], None)

    for _ in range(2):
        for number, oid in enumerate(chain):
            root = port.tree(port.commit(oid).tree)
            assert sorted(port.tree(root["d"].oid)) == [str(each) for each in range(number + 1)]
            assert port.blob(root["n"].oid) == b"%d" % number
            assert port.commit(oid).parents == chain[:number][-1:]
    assert len(port._trees) <= 2 and len(port._commits) <= 2


def test_messages_that_are_kept_in_mind_have_a_limit(port: DulwichGit) -> None:
    """Of peers' commits each may be large: only so much of them is kept, and all are read again."""
    port.message_chars_kept_max = 250
    texts = [str(number) * 100 + "\n" for number in range(1, 5)]
    chain = port.write([Draft({"n": text.encode()}, WHO, WHO, text) for text in ("x", *texts)], None)
    for _ in range(2):
        assert [port.commit(oid).message for oid in chain[1:]] == texts
        assert len(port._commits) == 2 and port._kept_chars == 202


def test_what_was_read_last_is_remembered_and_missing_all_the_same(port: DulwichGit, common: str) -> None:
    """Up to so many bytes, until the port is closed. Whether an object is there is looked up each time."""
    port.object_bytes_kept_max = 25
    (tip,) = port.write([draft({name: name.encode() * 10 for name in "abc"})], None)
    files = [port.tree(port.commit(tip).tree)[name].oid for name in "abc"]
    port.close()
    loose_objects.loosen(Path(common))
    assert [port.blob(oid) for oid in files] == [b"a" * 10, b"b" * 10, b"c" * 10]
    assert list(port._objects) == files[1:]
    assert port.blob(files[0]) == b"a" * 10 and list(port._objects) == [files[2], files[0]]
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
