"""What kind of repository it is, read from its files without git."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gitmem.git import files, packs, processes

REF = "refs/gitmem/log"


@pytest.mark.parametrize(
    ("config", "length", "promising"),
    [
        ("", 40, []),
        ("[extensions]\n\tobjectFormat = SHA256\n", 64, []),
        ("[Extensions]\nobjectformat=sha1", 40, []),
        ("# extensions.objectformat = sha256, promisor\n", 40, []),
        ("[extensions]\n\tpartialClone = origin\n", 40, ["origin"]),
        ('[remote "a.b"]\n\tpromisor\n[remote "c"]\n\tpromisor = false\n', 40, ["a.b"]),
        ('[remote "a"]\n\tpromisor = true\n\tpartialclonefilter = tree:0\n', 40, ["a"]),
        ("".join(f'[remote "{no}"]\n\tpromisor = {no}\n' for no in ("", "No", "off", "0", "FALSE")), 40, []),
        ('[remote "a"]\n\tpartialCloneFilter = blob:none\n[branch "b"]\n\tpromisor = true\n', 40, ["a"]),
    ],
)
def test_the_config_says_of_which_kind_it_is(
    tmp_path: Path, config: str, length: int, promising: list[str]
) -> None:
    """As git reads it; a word in a comment is none."""
    (tmp_path / "config").write_text(config)

    assert files.id_length(str(tmp_path)) == length
    assert files.promisors(str(tmp_path)) == promising


def test_where_nothing_is_said_it_is_a_usual_one(tmp_path: Path) -> None:
    """No config that can be read, no cut, nothing borrowed, refs in files."""
    there = str(tmp_path)

    assert (files.id_length(there), files.promisors(there), files.shallow_commits(there)) == (
        40,
        [],
        frozenset(),
    )
    assert packs.alternates(there) == []
    assert files.tables(there) is None


def test_where_a_history_was_cut_is_told(tmp_path: Path) -> None:
    """As a shallow clone keeps it: a commit a line."""
    cuts = ["a1" * 20, "b2" * 20]
    (tmp_path / "shallow").write_text("\n".join(cuts) + "\n")

    assert files.shallow_commits(str(tmp_path)) == set(cuts)


def test_object_folders_that_are_borrowed_are_found_as_git_finds_them(tmp_path: Path) -> None:
    """Relative, quoted and commented lines; folders that are gone, and circles."""
    names = ("a", "b", 'with "quotes"\nand lines', "c")
    folders = {name: tmp_path / name / "objects" for name in names}
    for folder in folders.values():
        (folder / "info").mkdir(parents=True)
    quoted = str(folders[names[2]]).replace('"', '\\"').replace("\n", "\\n")
    (folders["a"] / "info/alternates").write_text(f'# none\n../../b/objects\n\n"{quoted}"\n/no/where\n')
    (folders["b"] / "info/alternates").write_text(f"{folders['c']}\n{folders['a']}\n")

    assert packs.alternates(str(folders["a"])) == [str(folders[name]) for name in ("b", "c", names[2])]


def test_what_was_remembered_of_a_reftable_counts_for_that_state_alone(tmp_path: Path) -> None:
    """Another list, a torn file and a repository without tables say nothing; a file of the ref's name never counts."""
    common = str(tmp_path)
    (tmp_path / "reftable").mkdir()
    (tmp_path / "gitmem").mkdir()
    (tmp_path / "refs/gitmem").mkdir(parents=True)
    (tmp_path / REF).write_text("0" * 40 + "\n")
    listed = tmp_path / "reftable/tables.list"
    listed.write_text("one.ref\ntwo.ref\n")
    known = tmp_path / files.REMEMBERED
    whole = f"one.ref\ntwo.ref\n\n{'a' * 64} {REF}\n"
    known.write_text(whole)

    assert files.plain_tip(common, REF) == "a" * 64
    assert files.plain_tip(common, REF + "2") is None
    for text in (whole[:-1], whole[:40], "", "one.ref\n\n" + whole.partition("\n\n")[2]):
        known.write_text(text)
        assert files.plain_tip(common, REF) is None, text
    known.write_text(whole)
    listed.write_text("one.ref\nthree.ref\n")
    assert files.plain_tip(common, REF) is None
    listed.unlink()
    assert files.plain_tip(common, REF) == "0" * 40


def test_only_a_run_that_is_to_use_the_network_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the user allows protocols; online these stay the user's."""
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "https:ssh")

    offline, online = processes.environment(), processes.environment(online=True)

    assert (offline["GIT_ALLOW_PROTOCOL"], offline["GIT_NO_LAZY_FETCH"]) == ("none", "1")
    assert online["GIT_ALLOW_PROTOCOL"] == os.environ["GIT_ALLOW_PROTOCOL"]
    assert "GIT_NO_LAZY_FETCH" not in online
