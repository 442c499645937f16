"""Colours and widths: for people at terminals, never in what programs and models read."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.render import output
from cli.render.terminal import GAP, Terminal
from gitmem.text.sanitize import columns_of

from . import pseudo_terminal
from .conftest import Run

Start = Callable[..., str]
SGR = re.compile("\x1b\\[[0-9;]+m")
GREEN_LIVE = "\x1b[32mlive\x1b[0m"
EVIL = "\x1b[31mred\x1b]0;title\x07\x9b2J"


def plain(line: str) -> str:
    """Return a line without our own colours; any other escape code stays in it."""
    return SGR.sub("", line)


@pytest.mark.parametrize(
    ("variables", "is_terminal", "has_colour"),
    [
        ({}, True, True),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"NO_COLOR": "0"}, True, False),
        ({"TERM": "dumb"}, True, False),
        ({"FORCE_COLOR": "0"}, False, True),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, True, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
    ],
)
def test_any_value_but_an_empty_one_of_the_conventional_variables_counts(
    variables: dict[str, str], is_terminal: bool, has_colour: bool
) -> None:
    """As https://no-color.org and https://force-color.org have it."""
    assert Terminal(variables, is_terminal=is_terminal).has_colour is has_colour


def test_a_terminal_gets_colours_and_a_pipe_none(run: Run, start: Start, repo: Path) -> None:
    """FORCE_COLOR colours text in a pipe, NO_COLOR and an empty FORCE_COLOR don't."""
    start("Planck")

    assert GREEN_LIVE in pseudo_terminal.run(["roster"], repo)[1]
    assert "\x1b" not in pseudo_terminal.run(["roster"], repo, variables={"NO_COLOR": "1"})[1]
    assert "\x1b" not in run("roster").out
    assert "\x1b" not in run("roster", FORCE_COLOR="").out
    assert GREEN_LIVE in run("roster", FORCE_COLOR="1").out


def test_whoami_and_a_node_have_colours(run: Run, start: Start, repo: Path, git: Callable[..., str]) -> None:
    """The names of fields, the status of the session, and what is stale or superseded; without NO_COLOR."""
    planck = start("Planck")
    (repo / "rules.py").write_text("1\n")
    commit = ("-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "--quiet", "-a", "-m")
    git("add", "rules.py", cwd=repo)
    git(*commit, "one", cwd=repo)
    made = run("mem", "create", "Cents", "--path", "rules.py", "-q", session=planck).out.strip()
    (repo / "rules.py").write_text("2\n")
    git(*commit, "two", cwd=repo)
    newer = run("mem", "create", "Mills", "--supersedes", made, "-q", session=planck).out.strip()

    who = run("whoami", session=planck, FORCE_COLOR="1").out
    node = run("show", made, session=planck, FORCE_COLOR="1").out
    listed = run("mem", "list", session=planck, FORCE_COLOR="1").out

    assert f"\x1b[1mstatus\x1b[0m: {GREEN_LIVE}\n" in who
    assert re.search("\x1b\\[1mabout\x1b\\[0m: rules.py  \x1b\\[33mstale \\(1 commit", node), node
    assert f"\x1b[1msuperseded by\x1b[0m: {newer}\n" in node
    assert f"\x1b[2msuperseded by {newer}\x1b[0m" in listed
    for args in (["whoami"], ["show", made]):
        assert "\x1b" in pseudo_terminal.run([*args, "--as", planck], repo)[1]
        assert (
            "\x1b" not in pseudo_terminal.run([*args, "--as", planck], repo, variables={"NO_COLOR": "1"})[1]
        )
        assert "\x1b" not in run(*args, session=planck).out


@pytest.mark.parametrize(
    "args",
    [
        ["roster"],
        ["whoami"],
        ["inbox", "--no-mark"],
        ["log"],
        ["converged", "SIGNAL"],
        ["gate", "--wu", "WU-1"],
    ],
)
def test_json_never_has_colours(args: list[str], run: Run, start: Start, repo: Path) -> None:
    """On a terminal neither, nor by force."""
    start("Planck")
    curie = start("Curie")
    sent = run(
        "signal", "Shall we?", "--to", "Planck", "--intent", "propose", "--wu", "WU-1", "-q", session=curie
    )
    args = [sent.out.strip() if word == "SIGNAL" else word for word in args]

    said = run(*args, "--json", "--as", "Planck", FORCE_COLOR="1")

    assert said.json and "\x1b" not in said.out
    assert "\x1b" not in pseudo_terminal.run([*args, "--json", "--as", "Planck"], repo)[1]


def test_ids_for_scripts_never_have_colours(run: Run, start: Start) -> None:
    """`ask=$(gitmem signal … -q)` must work where a user has set FORCE_COLOR for all."""
    planck = start("Planck")

    for args in (["signal", "Hello", "-q"], ["mem", "create", "A finding", "-q"], ["inbox", "--count"]):
        assert re.fullmatch(r"[a-z0-9-]+\n", run(*args, session=planck, FORCE_COLOR="1").out), args


def test_the_mcp_server_shows_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """It writes for models, whatever its variables are."""
    monkeypatch.setitem(output._state, "for_models", True)
    output.begin({"FORCE_COLOR": "1"})

    assert output.terminal() is None
    output.begin()


def test_a_peer_cannot_colour_or_move_anything(run: Run, start: Start) -> None:
    """Peers' escape codes are shown as text where we write codes of our own."""
    planck, curie = start("Planck"), start("Curie")
    said = ["signal", EVIL, "--to", "Planck", "--intent", "propose", "--wu", "WU-1"]
    for args in (said, ["mem", "create", EVIL, "--type", "bug"]):
        assert run(*args, session=curie).status == 0

    node = run("mem", "create", EVIL, "--meta", f"note={EVIL}", "-q", session=curie).out.strip()

    for args in (
        ["log"], ["mem", "list"], ["mem", "search", "title"], ["show", node], ["inbox"],
    ):  # fmt: skip
        shown = run(*args, session=planck, FORCE_COLOR="1").out
        assert r"\u001b[31mred" in shown, (args, shown)
        assert not set(plain(shown)) & set("\x1b\x07\x9b"), args


TEXTS = st.text(st.sampled_from("ab cé漢字🙂e\u0301\u0300-"), max_size=60).map(str.strip)
TABLES = st.integers(2, 6).flatmap(
    lambda count: st.lists(st.lists(TEXTS, min_size=count, max_size=count), min_size=1, max_size=5)
)


@given(rows=TABLES, columns=st.integers(30, 200), data=st.data())
def test_no_line_is_wider_than_the_terminal_and_no_id_is_cut(
    rows: list[list[str]], columns: int, data: st.DataObject
) -> None:
    """In any script. An id that has no room in its column stands below, in full and alone."""
    every = list(range(len(rows[0])))
    shortened = data.draw(st.lists(st.sampled_from(every[1:]), unique=True))
    table = Terminal({"COLUMNS": str(columns), "FORCE_COLOR": "1"}, is_terminal=True)
    lines = table.table(rows, shortened, lambda row, column, cell: table.paint(cell, "head"))

    whole = {GAP + cell for row in rows for at, cell in enumerate(row) if at not in shortened}
    said = [plain(line) for line in lines]
    if len(every) - len(shortened) <= 2:
        assert [line for line in said if columns_of(line) > columns and line not in whole] == []
    for row in rows:
        for at, cell in enumerate(row):
            assert at in shortened or not columns_of(cell) or any(cell in line for line in said)


def test_a_wide_terminal_and_a_pipe_have_all_values() -> None:
    """Nothing is shortened where there is room, or where a program reads."""
    rows = [["Planck", "live", "漢字" * 60], ["Curie", "gone", "-"]]
    lines = Terminal({"COLUMNS": "300"}, is_terminal=True).table(rows, [2, 1], lambda row, at, cell: cell)

    assert lines == ["Planck  live  " + "漢字" * 60, "Curie   gone  -"]
    assert Terminal({}, is_terminal=False).columns == 0


@pytest.mark.parametrize("columns", [80, 60, 41])
def test_the_roster_fits_and_shows_whom_to_address(columns: int, run: Run, start: Start, repo: Path) -> None:
    """Names and identities in full: the next command needs one of them."""
    planck = start("Planck", "--wu", "WU-1234", "--lane", "the price rules of the shop")
    start("漢字漢字", "--lane", "a long lane")
    run("session", "note", "moving the price rules behind one interface, and their tests", session=planck)
    whole = run("roster").out

    status, said = pseudo_terminal.run(["roster"], repo, columns=columns)

    lines = plain(said).splitlines()
    assert status == 0
    assert [line for line in lines if columns_of(line) > columns and not line.startswith("next: ")] == []
    assert {"Planck", "test:worker:planck", "漢字漢字", "test:worker:漢字漢字"} <= set(
        " ".join(lines).split()
    )
    assert max(map(len, whole.splitlines())) > 80


def test_the_log_fits_and_shows_ids(run: Run, start: Start, repo: Path) -> None:
    """`gitmem show` takes them."""
    start("Planck")
    run("signal", "漢" * 100, "--broadcast", "--as", "Planck", "--intent", "propose")
    sent = run("signal", "Hello " * 30, "--broadcast", "--as", "Planck", "-q").out.strip()

    for columns in (80, 50):
        said = pseudo_terminal.run(["log"], repo, columns=columns)[1]
        assert max(columns_of(plain(line)) for line in said.splitlines()) <= columns
        assert sent in said
        assert "\x1b[33mPROPOSE\x1b[0m" in said or columns < 80


def test_a_terminal_that_does_not_know_its_width_gets_all(run: Run, start: Start, repo: Path) -> None:
    """As programs that start a terminal without a size read it."""
    start("Planck", "--lane", "lane " * 30)

    assert "lane " * 29 in pseudo_terminal.run(["roster"], repo, columns=0)[1]
    assert "…" in pseudo_terminal.run(["roster"], repo, columns=0, variables={"COLUMNS": "100"})[1]


def test_a_signal_breaks_between_words_and_its_sender_stands_out(run: Run, start: Start, repo: Path) -> None:
    """At any width; each line of a message keeps its bar, each command a line; without colour the lines are the same."""
    planck = start("Planck")
    start("Curie", "--agent-identity", "test:worker:curie")
    words = "whoever edits src/tax/** until then has to merge by hand " * 3
    run("signal", words, "--to", "Curie", "--intent", "propose", "--wu", "WU-7", session=planck)
    for columns in (80, 40):
        inbox = ["inbox", "--for", "Curie"]
        said = pseudo_terminal.run(inbox, repo, columns=columns)[1].splitlines()
        bare = pseudo_terminal.run(inbox, repo, columns=columns, variables={"TERM": "dumb"})[1].splitlines()
        assert "\x1b[1mPlanck\x1b[0m" in "".join(said) and "\x1b[33mPROPOSE\x1b[0m" in "".join(said)
        assert [plain(line) for line in said] == bare
        assert all(columns_of(line) <= columns or line.startswith(("Inbox", "next: ")) for line in bare), bare
        text = [line for line in bare if line.startswith("| ")]
        assert " ".join(line[2:] for line in text) == words.strip() and len(text) > 1
