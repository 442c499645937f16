"""How far paths moved on is asked once, and again as soon as the answer could be another one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.git.port import Git as PlumbingGit
from gitmem.git.repository import open_port
from gitmem.repo import find
from tests.conftest import Git


class Asked:
    """A repository in which `a.py` changes, and what is known of it."""

    def __init__(self, repo: Path, git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
        self.repo = repo
        self.git = git
        self.calls = 0
        (repo / ".git" / "gitmem").mkdir(exist_ok=True)
        self.first = self.commit("one")
        self.commit("two")
        real = PlumbingGit.behind

        def behind(port: PlumbingGit, *args: object) -> object:
            self.calls += 1
            return real(port, *args)  # type: ignore[arg-type]

        monkeypatch.setattr(PlumbingGit, "behind", behind)

    def commit(self, text: str) -> str:
        (self.repo / "a.py").write_text(text)
        self.git("add", ".", cwd=self.repo)
        self.git("commit", "-qm", text, cwd=self.repo)
        return self.git("rev-parse", "HEAD", cwd=self.repo).strip()

    def count(self, commit: str = "") -> int:
        """How many commits `a.py` is ahead of a commit, as a process of its own finds it; 0 for none or unknown."""
        port = open_port(find(str(self.repo)), long_lived=False)
        tip = self.git("rev-parse", "HEAD", cwd=self.repo).strip()
        found = port.behind(tip, [(commit or self.first, "a.py")])
        port.close()
        return sum(each.count for each in found.values())

    @property
    def file(self) -> Path:
        (path,) = (self.repo / ".git" / "gitmem" / "behind").iterdir()
        return path


@pytest.fixture
def asked(repo: Path, git: Git, monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(repo, git, monkeypatch)


def test_git_is_asked_once_while_head_is_the_same(asked: Asked) -> None:
    """A new commit is another question."""
    assert [asked.count(), asked.count(), asked.calls] == [1, 1, 1]
    asked.commit("three")
    assert [asked.count(), asked.count(), asked.calls] == [2, 2, 2]


def test_a_commit_that_a_fetch_brings_is_seen(asked: Asked, tmp_path: Path) -> None:
    """Of a commit that is not here nothing is known; that is no answer for good."""
    other = tmp_path / "other"
    asked.git("clone", "-q", str(asked.repo), str(other), cwd=tmp_path)
    asked.git("checkout", "-qb", "side", "HEAD~1", cwd=other)
    (other / "b.py").write_text("b")
    asked.git("add", ".", cwd=other)
    asked.git("commit", "-qm", "b", cwd=other)
    side = asked.git("rev-parse", "HEAD", cwd=other).strip()
    assert asked.count(side) == 0

    asked.git("fetch", "-q", str(other), "side", cwd=asked.repo)

    assert asked.count(side) == 1


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-1],
        lambda text: text + "\n",
        lambda text: text.replace(" 0 0\n", " 0 0 0\n"),
        lambda text: text.replace("\n0 1 ", "\n7 1 "),
        lambda text: text.replace("\n0 1 ", "\n0 " + "9" * 300 + " "),
        lambda text: text.replace("\n0 1 ", "\n0 1 \x1b["),
        lambda text: "\n" * 100_000,
    ],
    ids=[
        "torn",
        "longer",
        "a word more",
        "a pair that nobody asked for",
        "a long number",
        "no commit",
        "no lines",
    ],
)
def test_a_file_that_is_damaged_or_hostile_is_no_answer(asked: Asked, damage: Callable[[str], str]) -> None:
    """Git is asked again, and the file is good then."""
    asked.count()
    text = asked.file.read_text()
    asked.file.write_text(damage(text))
    assert asked.file.read_text() != text

    assert asked.count() == 1
    assert asked.calls == 2
    assert asked.file.read_text() == text


def test_where_nothing_can_be_kept_git_answers(asked: Asked) -> None:
    """A file is where the folder should be."""
    (asked.repo / ".git" / "gitmem" / "behind").write_text("")

    assert [asked.count(), asked.count(), asked.calls] == [1, 1, 2]
