"""A pager only where it was asked for, the one that the user has chosen, and an answer whatever becomes of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from . import pseudo_terminal
from .conftest import Run

Start = Callable[..., str]
COMMANDS = (
    ["log"], ["thread", "SIGNAL"], ["show", "SIGNAL"], ["mem", "show", "NODE"], ["mem", "list"],
    ["mem", "search", "tabs"], ["mem", "context"],
)  # fmt: skip


class Scene:
    """A repository with a signal and a node, and a pager that writes down what it gets."""

    def __init__(self, run: Run, start: Start, repo: Path, folder: Path) -> None:
        start("Planck")
        self.ids = {
            "SIGNAL": run("signal", "The parser drops tabs", "-q", "--broadcast").out.strip(),
            "NODE": run("mem", "create", "The parser drops tabs", "-q", "--lifecycle", "project").out.strip(),
        }
        self.repo = repo
        self.shown = folder / "shown"
        self.pager = f"cat > '{self.shown}'"

    def __call__(self, *args: str, **variables: str) -> str:
        """Run a command on a terminal; return what the terminal got."""
        words = [self.ids.get(word, word) for word in args]
        status, said = pseudo_terminal.run(words, self.repo, variables={"NO_COLOR": "1", **variables})
        assert status == 0, said
        return said

    def paged(self) -> str:
        """Return what the pager got since the last call."""
        if not self.shown.exists():
            return ""
        said = self.shown.read_text()
        self.shown.unlink()
        return said


@pytest.fixture
def scene(run: Run, start: Start, repo: Path, tmp_path: Path) -> Scene:
    return Scene(run, start, repo, tmp_path)


@pytest.mark.parametrize("args", COMMANDS, ids=" ".join)
def test_a_pager_shows_the_same_answer_where_it_was_asked_for(args: list[str], scene: Scene) -> None:
    """Without `--pager` no terminal gets one: agents run in terminals, too."""
    printed = scene(*args, GIT_PAGER=scene.pager)
    assert scene.paged() == ""

    assert scene(*args, "--pager", GIT_PAGER=scene.pager) == ""
    assert scene.paged() == printed != ""


def test_pipes_and_json_have_no_pager(scene: Scene, run: Run) -> None:
    """As git has it."""
    assert "tabs" in run("log", "--pager", GIT_PAGER=scene.pager).out
    assert scene("log", "--pager", "--json", GIT_PAGER=scene.pager).startswith("{")
    assert scene.paged() == ""


def test_a_repository_does_not_choose_the_program(
    scene: Scene, git: Callable[..., str], tmp_path: Path
) -> None:
    """Its configuration may come with a copy that somebody else has made; the user's own counts."""
    ran = tmp_path / "ran"
    git("config", "core.pager", f"touch '{ran}'", cwd=scene.repo)
    own = tmp_path / "own-config"
    own.write_text(f'[core]\n\tpager = "{scene.pager}"\n')

    assert scene("log", "--pager", GIT_CONFIG_GLOBAL=str(own)) == ""

    assert "tabs" in scene.paged()
    assert not ran.exists()


@pytest.mark.parametrize("pager", ["/nowhere/less", "/dev/null", "no-such-pager -R"])
def test_a_pager_that_cannot_run_loses_nothing(pager: str, scene: Scene) -> None:
    """The answer is printed; why, is on standard error."""
    status, said = pseudo_terminal.run(
        ["log", "--pager"], scene.repo, variables={"GIT_PAGER": f"{pager} 2>/dev/null"}, both=True
    )

    assert status == 0
    assert "The parser drops tabs" in said
    assert f"Cannot run the pager: {pager}" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("pager", ["true", "head -c 1", "exit 1", "kill $$"])
def test_a_pager_that_ends_early_ends_the_command(pager: str, scene: Scene, run: Run) -> None:
    """`q` in less: no traceback, no second answer, even where much was left to read."""
    for number in range(3):
        run("signal", f"{number} " + "word " * 12_000, "--to", "human:person@example.org")
    thread = run("signal", "x " * 30_000, "--reply-to", scene.ids["SIGNAL"], "-q").out.strip()

    said = scene("thread", thread, "--pager", GIT_PAGER=pager)

    assert len(said) <= 1


@pytest.mark.parametrize("pager", ["", "cat"])
def test_an_empty_pager_is_none(pager: str, scene: Scene) -> None:
    """As for git."""
    assert "tabs" in scene("log", "--pager", GIT_PAGER=pager, PAGER=pager)
