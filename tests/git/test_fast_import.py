"""What a run of `git fast-import` says that it wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitmem.git import fast_import
from gitmem.git.plumbing import PlumbingGit
from gitmem.git.port import Draft, Entry, Signature

from ..conftest import Git

WHO = Signature("Planck", "planck@gitmem", 1_795_000_000)


@pytest.mark.parametrize("quoted", ["true", "false"])
def test_names_in_any_letters_do_not_confuse_it(repo: Path, git: Git, common: str, quoted: str) -> None:
    """Git tells of a file by its name, in bytes where the user has asked for that."""
    git("config", "core.quotePath", quoted, cwd=repo)
    names = ["ä", "a b", 'say "x"', "tab\tand\nline", "é/ü", "b\udcff"]
    port = PlumbingGit(common)

    first, last = port.write(
        [
            Draft({name: name.encode("utf-8", "surrogateescape") for name in names}, WHO, WHO, "1\n"),
            Draft({"ä": None, "more": b"1"}, WHO, WHO, "2\n"),
        ],
        None,
    )

    root = port.tree(port.commit(first).tree)
    assert set(root) == {"ä", "a b", 'say "x"', "tab\tand\nline", "é", "b\udcff"}
    assert port.blob(root["b\udcff"].oid) == b"b\xff"
    assert port.commit(last).parents == [first]
    assert set(port.tree(port.commit(last).tree)) == {*root, "more"} - {"ä"}
    port.close()


def test_all_that_a_run_wrote_is_told(repo: Path, git: Git, common: str) -> None:
    """Commits in their order, and each tree and file that is new: what is not told is not kept from a gc."""
    blob = git("rev-parse", "HEAD:README", cwd=repo).strip()
    drafts = [
        Draft({"a/b/c": b"1", "a/b/d": b"2", "e": b"3"}, WHO, WHO, "1\n"),
        Draft({"a/b/c": None, "a/b/d": None, "e": None, "f/g": Entry("100644", blob)}, WHO, WHO, "2\n"),
    ]
    stream = fast_import.stream("refs/gitmem/scratch", drafts, None)

    commits, others = fast_import.written(fast_import.feed(common, [], stream, {}).out)

    assert commits == git("rev-list", "--reverse", commits[-1], cwd=repo).split()
    made = {row.split(" ")[0] for row in git("rev-list", "--objects", commits[-1], cwd=repo).splitlines()}
    assert set(others) == made - {*commits, blob}
    assert len(others) == len(set(others))


def test_a_run_that_dies_leaves_no_report_in_the_git_folder(repo: Path, common: str) -> None:
    """The user would find it there for ever; the error has its cause."""
    port = PlumbingGit(common)

    with pytest.raises(Exception, match="1234567890"):
        port.write([Draft({"a": Entry("100644", "1234567890" * 4)}, WHO, WHO, "m\n")], None)

    assert not list((repo / ".git").glob("fast_import_crash*"))
    port.close()
