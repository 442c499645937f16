"""What is in git's commits and trees, read and written as git does."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitmem.git import objects
from gitmem.git.inprocess import DulwichGit
from gitmem.git.objects import Draft, Signature, TreeEntry
from gitmem.git.port import Git as PlumbingGit

from ..conftest import Git

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
