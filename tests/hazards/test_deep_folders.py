"""Folders that somebody nested by hand in a clone's own log: no depth ends a command, and nobody else meets them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from gitmem.git.objects import Draft, Signature
from gitmem.git.port import DulwichGit
from gitmem.log import ref, tree_union

from ..signing import history
from .peers import BRANCH, Peer, Town, git

NORMAL = 3  # folders in a log
DEEP = 2_000  # more than Python's recursion and less than git's
EVERYDAY = (
    ("inbox",),
    ("signal", "two"),
    ("log",),
    ("whoami",),
    ("mem", "context"),
    ("task", "list"),
    ("doctor",),
)
SAID = (
    '{"at":"2026-11-20T10:00:00.000001Z","kind":"signal","schema_version":"A2A.V1","signal_id":"sig-000000000001",\
"sender_identity":"test:worker:mallory","recipients":[],"intent":"INFO","message":"nested","origin":"import"}'
)


def nest(peer: Peer, folders: int) -> str:
    """Commit a valid line below that many folders on the log, as merging a hostile branch by hand does; return its path."""
    path = f"signals/{'d/' * (folders - 1)}gm-1.jsonl"
    content = b"\n".join((SAID.encode(), *history([SAID.encode()]), b"")).decode()
    given = (
        f"commit {ref.LOG_REF}\ncommitter Mallory <m@example.org> 1795000000 +0000\ndata 7\nBy hand\n"
        f"from {ref.LOG_REF}^0\nM 100644 inline {path}\ndata {len(content)}\n{content}\n"
    )
    git("fast-import", "--quiet", cwd=peer.path, input=given.encode())
    return path


def said(peer: Peer) -> set[str]:
    """What the log of a clone says."""
    answer = peer.run("log", "--json")
    assert answer.code == 0, answer.text
    return {each["message"] for each in answer.json["entries"]}


def findings(peer: Peer) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = peer.run("doctor", "--json").json["findings"]
    return found


def folders(peer: Peer, name: str = ref.LOG_REF) -> int:
    """How deep the folders of a log are nested."""
    return max(path.count("/") for path in git("ls-tree", "-r", "--name-only", name, cwd=peer.path).split())


def alone(town: Town, a: Peer) -> None:
    """It has never synced."""


def shared(town: Town, a: Peer) -> None:
    """Its log stands on the shared tip."""
    assert a.sync().code == 0


def behind(town: Town, a: Peer) -> None:
    """Others have pushed since."""
    shared(town, a)
    c = town.clone("c")
    c.say("three")
    assert c.sync().code == 0


@pytest.mark.parametrize("place", [alone, shared, behind])
def test_no_depth_ends_a_command_or_reaches_another_clone(
    town: Town, place: Callable[[Town, Peer], None]
) -> None:
    """Every command works, what was recorded is shown and sent, and nothing below is read."""
    a = town.clone("a")
    a.say("one")
    a.run("log")  # commits it
    place(town, a)
    nest(a, DEEP)
    for args in EVERYDAY:
        answer = a.run(*args)
        assert answer.code == 0, (args, answer.text)
    assert said(a) == {"one", "two"}
    assert folders(a) == DEEP
    answer = a.sync()
    assert (answer.code, answer.remote["state"]) == (0, "synced"), answer.text
    b = town.clone("b")
    assert b.sync().remote["left_out"] == []
    assert {"one", "two"} <= said(b) == said(a)
    assert folders(a) == folders(b) == NORMAL
    b.say("four")
    assert (b.sync().code, a.sync().code) == (0, 0)
    assert "four" in said(a)
    assert not [each for each in findings(a) if each["code"] == "deep-folder"]


@pytest.mark.parametrize("more", [0, 1])
def test_what_is_nested_as_deep_as_clones_accept_is_read(town: Town, more: int) -> None:
    """And sent; one folder more is neither."""
    a, b = town.clone("a"), town.clone("b")
    a.say("one")
    assert a.sync().code == 0
    nest(a, ref.FOLDERS_MAX + more)
    expected = {"one"} if more else {"one", "nested"}
    assert said(a) == expected
    assert (a.sync().code, b.sync().code) == (0, 0)
    assert said(b) == said(a) == expected


def test_doctor_names_the_folder_in_short_and_takes_it_out(town: Town) -> None:
    """Also where it was pushed by hand, so that other clones leave the shared ref out until then."""
    a, b = town.clone("a"), town.clone("b")
    a.say("one")
    assert (a.sync().code, b.sync().code) == (0, 0)
    nest(a, DEEP)
    git("push", "--quiet", "origin", f"{ref.LOG_REF}:{BRANCH}", cwd=a.path)
    assert b.sync().remote["state"] == "refused"
    (found,) = (each for each in findings(a) if each["code"] == "deep-folder")
    assert found["where"].startswith(f"{ref.LOG_REF}:signals/d/d/") and len(found["where"]) < 100
    assert (found["severity"], found["fixable"], found["command"]) == ("note", True, "gitmem doctor --fix")
    answer = a.run("doctor", "--fix")
    assert answer.code == 0, answer.text
    assert {each["code"] for each in findings(a)}.isdisjoint(["deep-folder", "dropped-lines", "lost-lines"])
    assert said(a) == {"one"} and folders(a) == NORMAL
    b.say("two")
    assert [each.sync().code for each in (a, b, a)] == [0, 0, 0]
    assert said(a) == said(b) == {"one", "two"}


@pytest.mark.parametrize("say", [(), ("two",)])
def test_a_deep_folder_that_was_pushed_is_repaired_by_any_clone(town: Town, say: Sequence[str]) -> None:
    """And the clone that pushed it does not bring it back, whether or not it has recorded on top of it."""
    a, b = town.clone("a"), town.clone("b")
    a.say("one")
    assert (a.sync().code, b.sync().code) == (0, 0)
    nest(a, DEEP)
    git("push", "--quiet", "origin", f"{ref.LOG_REF}:{BRANCH}", cwd=a.path)
    for text in say:
        a.say(text)
    a.sync()
    assert b.sync().remote["state"] == "refused"
    assert b.run("sync", "--repair", "origin").code == 0
    assert (a.sync().code, b.sync().code) == (0, 0)
    assert said(a) == said(b) == {"one", *say}
    assert folders(a) == folders(b) == NORMAL


def test_a_union_takes_the_file_where_another_tree_has_a_folder_that_is_too_deep(repo: Path) -> None:
    """From either side, and a folder that is too deep in one of them alone is not added, nor what is beside it left out."""
    port = DulwichGit(str(repo / ".git"))
    who = Signature("M", "m@m", 1)
    parent = "s/" * ref.FOLDERS_MAX

    def tree(**files: bytes) -> str:
        changes = {parent + path.replace("_", "/"): content for path, content in files.items()}
        return port.commit(port.write([Draft({**changes}, who, who, "x\n")], None)[0]).tree

    file, folder, nothing = tree(x=b"1\n"), tree(x_y=b"2\n", z=b"3\n"), tree(w=b"4\n")
    assert tree_union.union_changes(port, file, [folder]).keys() == {parent + "z"}
    assert tree_union.union_changes(port, folder, [file]).keys() == {parent + "x"}
    assert tree_union.union_changes(port, nothing, [folder]).keys() == {parent + "z"}
    empty = port.commit(port.write([ref.genesis_draft()], None)[0]).tree
    assert tree_union.union_changes(port, empty, [folder]).keys() == {parent + "z"}
    assert not tree_union.union_changes(port, folder, [folder])
    assert [path for path, *_ in tree_union.differing(port, folder, [empty])] == [parent + "z"]
