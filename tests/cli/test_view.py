"""`gitmem view`, from the command line to the file."""

from __future__ import annotations

import os
import stat
import sys
import webbrowser
from pathlib import Path

import pytest

from ..page.test_page_server import data_of
from .conftest import Run


def test_the_page_has_what_was_said(run: Run, repo: Path) -> None:
    """It is for its user alone, and not in the work tree."""
    run("session", "start", "--name", "Curie", "--agent-identity", "a:b:curie")
    run("signal", "Is it <b>done</b>?", "--broadcast", "--as", "Curie")

    said = run("view", "--json")

    path = Path(said.json["path"])
    assert path == repo / ".git" / "gitmem" / "view.html"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    data = data_of(path.read_bytes())
    assert [each["text"] for each in data["signals"]] == ["Is it <b>done</b>?"]
    assert [each["name"] for each in data["agents"]] == ["Curie"]
    assert b"Is it" not in path.read_bytes()


def test_a_file_that_can_not_be_written_is_named(run: Run, repo: Path) -> None:
    """A folder, and a folder that does not exist."""
    for out in (".", "no/where.html"):
        said = run("view", "--out", out)
        assert said.status == 2
        assert f"Cannot write {os.path.normpath(repo / out)}" in said.err
        assert "--out" in said.err


def test_only_a_file_is_replaced(run: Run, repo: Path) -> None:
    """As root, a page in place of /dev/null would break the machine; a link to another's folder would lead a page there."""
    target = repo / "target.html"
    target.write_text("mine")
    (repo / "link.html").symlink_to(target)
    (repo / "dangling.html").symlink_to(repo / "nothing")
    os.mkfifo(repo / "pipe.html")

    for out, why in (
        ("link.html", "a symbolic link"),
        ("dangling.html", "a symbolic link"),
        ("pipe.html", "not a regular file"),
    ):
        said = run("view", "--out", out)
        assert (said.status, f"(it is {why}). Nothing was written." in said.err) == (2, True)

    assert target.read_text() == "mine" and (repo / "link.html").is_symlink()
    assert stat.S_ISFIFO(os.lstat(repo / "pipe.html").st_mode)
    assert run("view", "--out", "target.html").status == 0
    assert stat.S_IMODE(target.stat().st_mode) == 0o600 and b"<!doctype html>" in target.read_bytes()


def test_figures_are_shown_as_a_table(run: Run, repo: Path) -> None:
    """An empty log gets a sentence, and --json the same figures."""
    assert run("view", "--stats").out.startswith("Nothing was said, and there are no tasks.")
    run("session", "start", "--name", "Curie", "--agent-identity", "a:b:curie")
    run("signal", "One", "--broadcast", "--as", "Curie")

    said = run("view", "--stats")

    assert said.out.splitlines()[0].split() == ["DAY", "SIGNALS", "AGENTS", "PROPOSALS", "ANSWERS"]
    assert said.out.splitlines()[1].split()[1:] == ["1", "1", "0", "0"]
    assert run("view", "--stats", "--since", "1h", "--json").json["days"][0]["signals"] == 1
    assert run("view", "--stats", "--agent", "nobody").status == 2


def test_serving_and_a_file_exclude_each_other(run: Run) -> None:
    """A filter that names nobody is a mistake, too."""
    assert "--serve writes none" in run("view", "--serve", "--out", "x.html").err
    assert "Unknown agent" in run("view", "--serve", "--agent", "nobody").err


def test_without_a_browser_the_path_is_printed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither none at all nor one that fails is an error; one in the terminal is started only if BROWSER asks for it."""
    monkeypatch.setattr(webbrowser, "get", no_browser)
    said = run("view", "--open")
    assert said.status == 0 and "wrote " in said.out
    assert "No browser was found: open the file with your own." in said.out

    opened: list[str] = []
    fake = webbrowser.GenericBrowser("lynx")
    fake.open = lambda url, *_: bool(opened.append(url)) or True  # type: ignore[method-assign]
    monkeypatch.setattr(webbrowser, "get", lambda: fake)
    assert run("view", "--open", "--json").json["opened"] is False
    assert run("view", "--open", "--json", BROWSER="lynx").json["opened"] is True
    assert opened[0].startswith("file:///")


def no_browser() -> None:
    raise webbrowser.Error("could not locate runnable browser")


def test_without_the_extra_serving_says_what_to_install(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page as a file needs no extra."""
    for name in [
        each for each in sys.modules if each.startswith(("gitmem.calls.http_guard", "gitmem.page_server"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("gitmem.calls.http_guard", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)

    said = run("view", "--serve")

    assert said.status == 2
    assert "gitmem view --serve needs it" in said.err and "gitmem-coord[a2a]" in said.err
    assert run("view").status == 0


def test_a_work_unit_of_which_there_is_nothing_is_named(run: Run) -> None:
    """A typing mistake in --wu is no empty page without a word."""
    run("session", "start", "--name", "Curie", "--agent-identity", "a:b:curie")
    run("signal", "Done", "--broadcast", "--wu", "WU-7", "--as", "Curie")
    run("claim", "a.py", "--wu", "WU-8", "--as", "Curie")
    said = "Nothing here is of the work unit WU-77."
    assert run("view", "--stats", "--wu", "WU-77").out.startswith(f"{said}\n")
    assert run("view", "--stats", "--wu", "WU-77", "--json").json["remark"] == said
    assert run("view", "--wu", "WU-77", "--json").json["warnings"] == [said]
    for unit in ("wu-7", "#wu-7", "WU-8"):
        assert run("view", "--wu", unit, "--json").json["warnings"] == []
    assert "Nothing here is of" not in run("view", "--stats", "--wu", "wu-7").out
