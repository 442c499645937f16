"""The port on the git program: its reading child, and what a fast-import that goes wrong is taken for."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitmem.errors import StoreError
from gitmem.git import fast_import, run
from gitmem.git.plumbing import PlumbingGit
from gitmem.git.port import Draft, Signature

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
    """Of a ref with one commit, while a gc runs."""
    (first,) = port.write([DRAFT], None)
    assert port.swap(REF, None, first, "start")
    Path(port.common, "gc.pid").write_text(f"{os.getpid()} {platform.node()}")
    return first


def test_one_child_answers_all_reads(port: PlumbingGit, tip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stays until the port is closed; where it died another one takes its place."""
    started = []
    spawn = run.spawn

    def counted(common: str, args: list[str]) -> object:
        started.append(spawn(common, args))
        return started[-1]

    monkeypatch.setattr(run, "spawn", counted)
    port.close()
    for _ in range(2):
        assert port.blob(port.tree(port.commit(tip).tree)["f"].oid) == b"line\n"
    assert len(started) == 1

    started[0].end_group()
    assert port.has(tip) and port.has(tip)
    assert len(started) == 2
    port.close()
    assert started[1].poll() == 0


def test_a_child_that_never_answers_is_a_missing_object_or_no_repository(
    port: PlumbingGit, tip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git dies of some damage to an object: that one is missing. Where git can't work at all it says why."""
    spawn = run.spawn
    monkeypatch.setattr(run, "spawn", lambda common, args: spawn(common, ["rev-parse"]))
    with pytest.raises(KeyError, match=tip):
        port.commit(tip)

    os.rename(Path(port.common, "HEAD"), Path(port.common, "was-head"))
    with pytest.raises(StoreError, match=r"^git rev-parse failed: fatal: not a git repository"):
        port.commit(tip)


def test_fewer_commits_than_were_asked_for_are_an_error(
    port: PlumbingGit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is taken for written that git has not named."""
    monkeypatch.setattr(fast_import, "written", lambda out: ([], []))
    with pytest.raises(StoreError, match="named 0 of 2 commits") as caught:
        port.write([DRAFT, DRAFT], None)
    assert caught.value.code == "git-failed"


@pytest.mark.parametrize("in_gc", [False, True])
def test_a_fast_import_that_fails_is_named(port: PlumbingGit, tip: str, in_gc: bool) -> None:
    """Whatever it was, the ref is where it was, and the sentence says which git it was."""
    if not in_gc:
        Path(port.common, "gc.pid").unlink()
    with pytest.raises(StoreError, match=r"^git fast-import failed: fatal: Not a tree") as caught:
        port.advance(REF, tip, Draft({}, WHO, WHO, "m\n", tip), "x")
    assert caught.value.code == "git-failed"
    assert port.tip(REF) == tip


@pytest.mark.parametrize("moved", [False, True])
def test_a_fast_import_that_is_stopped_in_a_gc(
    port: PlumbingGit, tip: str, monkeypatch: pytest.MonkeyPatch, moved: bool
) -> None:
    """Had it moved the ref, that is for the next look to find; had it not, nothing was recorded and that is said."""
    feed = fast_import.feed

    def stopped(*args: object) -> run.Result:
        if moved:
            feed(*args)  # type: ignore[arg-type]
        raise run.GitTimeoutError("stopped")

    monkeypatch.setattr(fast_import, "feed", stopped)
    if moved:
        assert port.advance(REF, tip, DRAFT, "append") is None
    else:
        with pytest.raises(run.GitTimeoutError):
            port.advance(REF, tip, DRAFT, "append")
    assert (port.tip(REF) != tip) is moved


@pytest.mark.parametrize(
    "words",
    [
        "fatal: cannot store pack file",
        "error: cannot lock ref 'refs/gitmem/log': is at 1 but expected 2",
    ],
)
def test_what_another_try_can_mend_is_a_lost_race_in_a_gc(
    port: PlumbingGit, tip: str, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    """The gc took the pack as it was written, or a sibling moved the ref: the caller comes again."""
    monkeypatch.setattr(fast_import, "feed", lambda *_: run.Result(1, b"", words))

    assert port.advance(REF, tip, DRAFT, "append") is None
