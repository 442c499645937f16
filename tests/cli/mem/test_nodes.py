"""`gitmem mem create|update|relate` as typed: what is answered, and what a wrong word leads to."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from cli.app import build
from gitmem.records import CLEARABLE

from ..conftest import Run

Start = Callable[..., str]


@pytest.fixture
def session(start: Start) -> str:
    return start("Planck", "--wu", "WU-7")


@pytest.mark.usefixtures("commits")
def test_the_answer_says_for_how_long_and_about_what(run: Run, session: str) -> None:
    """Lifecycle and paths: both may have been chosen for the writer."""
    said = run("mem", "create", "text", "--type", "note", "--path", "README", session=session)

    assert re.match(r"mem-\w{22} · note · WU-7 · session · README · commit \w{12}\n", said.out)


def test_the_help_names_what_can_be_given(run: Run) -> None:
    """Of --clear, and of --type where it is changed."""

    def option(command: str, name: str) -> str:
        shown = run("mem", command, "--help").out
        return " ".join(shown.partition(f"  {name} ")[2].partition("\n  -")[0].split())

    for name in CLEARABLE["patch"]:
        assert re.search(rf"\b{name.removesuffix('_id')}\b", option("update", "--clear")), name
    assert "bug" in option("create", "--type")


@pytest.mark.parametrize(
    ("option", "field"), [("wu", "wu_id"), ("tag", "tags"), ("path", "paths"), ("meta", "metadata")]
)
def test_a_field_is_cleared_by_the_name_of_its_option(
    run: Run, session: str, option: str, field: str
) -> None:
    """Both names will do."""
    for name in (option, field):
        id = run("mem", "create", "text", "--wu", "WU-8", "--tag", "a", "--path", "README", "--meta", "a=1", "-q",
                 session=session).out.strip()  # fmt: skip
        assert run("mem", "update", id, "--clear", name, session=session).status == 0
        assert field not in run("show", id, "--json").json["node"]


@pytest.mark.parametrize(
    ("args", "suggestions", "hint"),
    [
        (["update", "ID", "--status", "done"], [], "Choose from active"),
        (["update", "ID", "--status", "archive"], ["archived"], "Choose from active"),
        (["update", "ID", "--clear", "a"], [], "Choose from priority"),
        (["create", "text", "--type", "decision"], [], "That is a tag: `--type discovery --tag decision`."),
        (["create", "text", "--type", "todo"], [], "That is a tag: `--type discovery --tag todo`."),
        (["create", "text", "--type", "disc"], ["discovery"], "Choose from session"),
        (["relate", "ID", "relates", "ID"], ["related"], "Choose from blocks"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_a_wrong_word_leads_to_what_was_meant(
    run: Run, session: str, args: list[str], suggestions: list[str], hint: str
) -> None:
    """Never to the opposite: not from `done` to `deleted`."""
    id = run("mem", "create", "text", "-q", session=session).out.strip()

    said = run("mem", *(id if arg == "ID" else arg for arg in args), "--json", session=session)

    assert said.status == 2
    assert said.json["error"]["suggestions"] == suggestions
    assert hint in said.json["error"]["hint"]


@pytest.mark.parametrize(
    ("args", "what"),
    [
        (["create", "text", "--priority", " "], "Missing priority"),
        (["create", "text", "--lifecycle", " "], "Missing lifecycle"),
        (["create", "text", "--type", " "], "Missing type of node"),
        (["create", "text", "--wu", ""], "Missing work unit"),
        (["list", "--status", ""], "Missing status"),
        (["list", "--type", ""], "Missing type of node"),
        (["promote", "ID", "--tag", ""], "Missing taxonomy tag"),
        (["profile", "--tag", ""], "Missing tag"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_an_empty_word_is_none(run: Run, session: str, args: list[str], what: str) -> None:
    """A variable that is not set: "Nothing is no tag" could be read as if none were needed."""
    said = run("mem", *args, session=session)

    assert said.status == 2
    assert f"{what}. Nothing was written." in said.err


def test_the_first_sentence_of_a_command_fits_beside_its_name() -> None:
    """Or the list of commands cuts it."""
    for command in build(["mem"]).commands["mem"].commands.values():  # type: ignore[attr-defined]
        assert len((command.help or "").split(". ")[0].rstrip(".")) < 45, command.name
