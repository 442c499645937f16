"""The port on the git program: its reading child, and what a move of a ref that goes wrong is taken for."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitmem.errors import StoreError
from gitmem.git import plumbing, processes
from gitmem.git.objects import Draft, Signature
from gitmem.git.port import HEADS_AT_ONCE
from gitmem.git.port import Git as PlumbingGit
from tests.git_on_path import GitOnPath

REF = "refs/gitmem/log"
WHO = Signature("Planck", "planck@gitmem", 1_795_000_000)
DRAFT = Draft({"f": b"line\n"}, WHO, WHO, "m\n")


@pytest.fixture
def port(common: str) -> Iterator[PlumbingGit]:
    opened = PlumbingGit(common)
    yield opened
    opened.close()


@pytest.fixture
def tip(port: PlumbingGit) -> str:
    """Of a ref with one commit."""
    (first,) = port.write([DRAFT], None)
    assert port.swap(REF, None, first, "start")
    return first


def test_one_child_answers_all_reads(
    port: PlumbingGit, tip: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays until the port is closed; where it died another one takes its place."""
    program = GitOnPath(tmp_path, monkeypatch)
    port.close()
    for _ in range(2):
        entry = port.tree(port.commit(tip).tree)["f"]
        assert port.blob(entry.oid) == b"line\n"
        assert port.heads([entry.oid, tip])[entry.oid] == ("blob", 5)
    ((first, _),) = program.started

    os.kill(first, signal.SIGKILL)
    assert port.has(tip) and port.has(tip)
    _, (second, _) = program.started
    port.close()
    with pytest.raises(ProcessLookupError):
        os.kill(second, 0)


def test_heads_of_any_number_of_objects(port: PlumbingGit, tip: str) -> None:
    """Neither side waits for the other; what is missing, or no id at all, is left out."""
    (oid,) = port.write(
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
    files = [entry.oid for entry in port.tree(port.commit(oid).tree).values()]

    found = port.heads([*files, "1" * 40, "HEAD", "", tip, "info\nx"])

    assert found.pop(tip) == ("commit", len(port.read(tip)[1]))
    assert found.keys() == set(files) and {kind for kind, _ in found.values()} == {"blob"}


def test_a_child_that_never_answers_is_a_missing_object_or_no_repository(
    port: PlumbingGit, tip: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git dies of some damage to an object: that one is missing. Where git can't work at all it says why."""
    GitOnPath(tmp_path, monkeypatch).says(0, to="cat-file")
    with pytest.raises(KeyError, match=tip):
        port.commit(tip)

    os.rename(Path(port.common, "HEAD"), Path(port.common, "was-head"))
    with pytest.raises(StoreError, match=r"^git rev-parse failed: fatal: not a git repository"):
        port.commit(tip)


@pytest.mark.parametrize("moved", [False, True])
def test_a_move_that_is_stopped_takes_nothing_away(
    port: PlumbingGit, tip: str, monkeypatch: pytest.MonkeyPatch, moved: bool
) -> None:
    """It may have moved the ref: what was written stays, and is kept."""
    update_ref = plumbing.update_ref

    def stopped(*args: str) -> bool:
        if moved:
            assert update_ref(*args)
        raise processes.GitTimeoutError("stopped")

    monkeypatch.setattr(plumbing, "update_ref", stopped)
    with pytest.raises(processes.GitTimeoutError):
        port.advance(REF, tip, Draft({"g": b"1"}, WHO, WHO, "m\n"), "append")

    now = port.tip(REF)
    assert now is not None and (now != tip) is moved and port.has(now)
    assert len(list(Path(port.common, "objects/pack").glob("*.keep"))) == 1


def test_another_error_than_a_lost_race_is_said(port: PlumbingGit, tip: str) -> None:
    """Here the ref is to move to what is no commit."""
    with pytest.raises(StoreError, match=r"^git update-ref failed: ") as caught:
        port.swap(REF, tip, "1" * 40, "x")
    assert caught.value.code == "git-failed" and port.tip(REF) == tip
