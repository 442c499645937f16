"""The lines of AGENTS.md: added, kept up to date and taken out, and nobody else's byte is touched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitmem.clients import agents_md
from gitmem.errors import StoreError, UsageError

BLOCK = str(agents_md.show().text).encode()

THEIRS = {
    "nothing": b"",
    "one line": b"# Rules\n",
    "no newline at its end": b"# Rules\nBe kind.",
    "a blank line at its end": b"# Rules\n\n",
    "CRLF": b"# Rules\r\n\r\nBe kind.\r\n",
    "CRLF without the last": b"# Rules\r\nBe kind.",
    "mixed": b"one\r\ntwo\nthree",
    "BOM": b"\xef\xbb\xbf# Rules\n",
    "BOM alone": b"\xef\xbb\xbf",
    "Latin-1": b"# R\xe8gles\n",
    "a form feed": b"# Rules\x0c\n\x0b\x85 \xe2\x80\xa8",
    "the name of a marker": b"The marker is `<!-- gitmem:begin` at the beginning.\n",
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "AGENTS.md"


@pytest.mark.parametrize("theirs", THEIRS.values(), ids=list(THEIRS))
def test_what_was_there_stays_and_comes_back(file: Path, theirs: bytes) -> None:
    """Before our lines stands every byte of before; without them there is nothing else."""
    file.write_bytes(theirs)

    assert agents_md.write(str(file), "AGENTS.md").state == "added"
    written = file.read_bytes()
    assert written.startswith(theirs)
    assert agents_md.check(str(file), "AGENTS.md").state == "current"
    assert agents_md.write(str(file), "AGENTS.md").state == "unchanged"
    assert file.read_bytes() == written
    assert agents_md.remove(str(file), "AGENTS.md").state == "removed"

    assert file.read_bytes() == theirs


@given(
    theirs=st.lists(st.sampled_from([b"a", b"\n", b"\r\n", b"\r", b" ", b"\xff", b"\xc3\xa9", b"-->"])).map(
        b"".join
    )
)
def test_any_text_comes_back(tmp_path_factory: pytest.TempPathFactory, theirs: bytes) -> None:
    """Whatever its line ends."""
    file = tmp_path_factory.mktemp("any") / "AGENTS.md"
    file.write_bytes(theirs)

    agents_md.write(str(file), "AGENTS.md")
    agents_md.remove(str(file), "AGENTS.md")

    assert file.read_bytes() == theirs


def test_a_file_that_it_made_goes_again(file: Path) -> None:
    """One that was empty before does not."""
    assert agents_md.write(str(file), "AGENTS.md").state == "created"
    assert file.read_bytes().replace(b" new-file", b"") == BLOCK

    assert agents_md.remove(str(file), "AGENTS.md").state == "deleted"
    assert not file.exists()
    assert agents_md.remove(str(file), "AGENTS.md").state == "missing"


def test_what_was_written_into_the_new_file_stays(file: Path) -> None:
    """It is theirs by then."""
    agents_md.write(str(file), "AGENTS.md")
    file.write_bytes(b"# Ours\n\n" + file.read_bytes() + b"\nMore.\n")

    assert agents_md.remove(str(file), "AGENTS.md").state == "removed"

    assert file.read_bytes() == b"# Ours\n\n\nMore.\n"


def test_only_what_is_between_the_markers_is_replaced(file: Path) -> None:
    """An older version's lines, with text around them that came later."""
    file.write_bytes(b"# Rules\r\n")
    agents_md.write(str(file), "AGENTS.md")
    written = file.read_bytes()
    old = written.replace(b"gitmem inbox", b"gitmem mailbox") + b"After.\r\n"
    file.write_bytes(old)

    assert agents_md.check(str(file), "AGENTS.md").state == "outdated"
    assert agents_md.write(str(file), "AGENTS.md").state == "updated"
    assert file.read_bytes() == written + b"After.\r\n"

    agents_md.remove(str(file), "AGENTS.md")
    assert file.read_bytes() == b"# Rules\r\nAfter.\r\n"


def test_line_ends_that_git_changed_are_no_change(file: Path) -> None:
    """`core.autocrlf` on another machine."""
    agents_md.write(str(file), "AGENTS.md")
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))

    assert agents_md.check(str(file), "AGENTS.md").state == "current"
    assert agents_md.write(str(file), "AGENTS.md").state == "unchanged"


def test_markers_that_somebody_put_are_filled(file: Path) -> None:
    """Where they want the lines to stand."""
    file.write_bytes(b"# Rules\n<!-- gitmem:begin -->\n<!-- gitmem:end -->\nMore.\n")

    assert agents_md.write(str(file), "AGENTS.md").state == "updated"

    assert file.read_bytes() == b"# Rules\n" + BLOCK + b"More.\n"


@pytest.mark.parametrize(
    "broken",
    [
        b"<!-- gitmem:begin -->\nno end\n",
        b"no begin\n<!-- gitmem:end -->\n",
        b"<!-- gitmem:end -->\n<!-- gitmem:begin -->\n",
        b"no end\n<!-- gitmem:begin -->",
        BLOCK + BLOCK,
        BLOCK.replace(b"<!-- gitmem:end -->", b"") + BLOCK,
    ],
    ids=["no end", "no begin", "turned round", "no newline", "two blocks", "one and a half"],
)
def test_broken_markers_are_refused(file: Path, broken: bytes) -> None:
    """Nobody knows which lines are ours: a sentence, and not a byte is changed."""
    file.write_bytes(broken)

    for verb in (agents_md.write, agents_md.remove, agents_md.check):
        with pytest.raises(UsageError, match="are not a pair") as refused:
            verb(str(file), "AGENTS.md")
        assert refused.value.code == "markers"

    assert file.read_bytes() == broken


@pytest.mark.parametrize(
    ("encoding", "text"),
    [("utf-16", "規則"), ("utf-16-be", "Rules"), ("utf-32", "規則")],
    ids=ascii,
)
def test_a_text_of_another_kind_is_refused(file: Path, encoding: str, text: str) -> None:
    """Our bytes would be rubbish in it."""
    file.write_bytes(text.encode(encoding))

    with pytest.raises(UsageError, match="is not text in UTF-8"):
        agents_md.write(str(file), "AGENTS.md")

    assert file.read_bytes() == text.encode(encoding)


def test_a_link_stays_a_link_and_modes_stay(tmp_path: Path, file: Path) -> None:
    """AGENTS.md is often a link to CLAUDE.md."""
    real = tmp_path / "CLAUDE.md"
    real.write_bytes(b"# Rules\n")
    real.chmod(0o640)
    file.symlink_to("CLAUDE.md")

    found = agents_md.write(str(file), "AGENTS.md")

    assert found.remarks == []  # it is the same file
    assert file.is_symlink() and real.read_bytes().startswith(b"# Rules\n")
    assert real.stat().st_mode & 0o777 == 0o640
    assert agents_md.remove(str(file), "AGENTS.md").state == "removed"
    assert file.is_symlink() and real.read_bytes() == b"# Rules\n"


def test_a_link_out_of_the_work_tree_is_not_followed(tmp_path: Path) -> None:
    """Who wrote a repository must not choose which file of the user's is written."""
    tree = tmp_path / "tree"
    tree.mkdir()
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine\n")
    (tree / "AGENTS.md").symlink_to(victim)

    with pytest.raises(UsageError, match="outside of the work tree"):
        agents_md.default(str(tree))
    with pytest.raises(UsageError, match="no worktree"):
        agents_md.default(None)
    assert agents_md.default(str(tmp_path)) == str(tmp_path / "AGENTS.md")


def test_what_claude_code_needs_is_said(tmp_path: Path, file: Path) -> None:
    """It reads CLAUDE.md alone."""
    claude = tmp_path / "CLAUDE.md"
    claude.write_text("# Rules\nSee AGENTS.md.\n")

    (remark,) = agents_md.write(str(file), "AGENTS.md").remarks
    assert "@AGENTS.md" in remark
    claude.write_text("# Rules\n@AGENTS.md\n")
    assert agents_md.write(str(file), "AGENTS.md").remarks == []
    assert agents_md.write(str(claude), "CLAUDE.md").remarks == []


def test_a_file_that_cannot_be_written_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sentence; and nothing is left beside it."""
    file = tmp_path / "AGENTS.md"
    file.write_bytes(b"# Rules\n")

    def full(old: str, new: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)

    with pytest.raises(StoreError, match="No space left on device"):
        agents_md.write(str(file), "AGENTS.md")
    with pytest.raises(StoreError, match="Cannot read"):
        agents_md.write(str(tmp_path), "AGENTS.md")
    with pytest.raises(UsageError, match=r"folder of .* does not exist"):
        agents_md.write(str(tmp_path / "no" / "AGENTS.md"), "no/AGENTS.md")

    assert [path.name for path in tmp_path.glob("AGENTS*")] == ["AGENTS.md"]
    assert file.read_bytes() == b"# Rules\n"
