"""What the screen of `gitmem top` reads and records, without the screen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.top import answers, board, panes
from gitmem.agents import lifecycle
from gitmem.agents.caller import Caller, CallerClaims
from gitmem.signals import inbox, send
from gitmem.store import Store
from gitmem.work import claim_work, new_task, task_work
from tests.sandbox import SECOND, Clock, acting, open_store

LIMITS = dict.fromkeys(board.PANES, 50)


class Desk:
    """Planck writes, Curie looks at the screen."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store, self.clock = store, clock
        self.planck, self.curie = (
            acting(
                store, lifecycle.start(store, CallerClaims(), name=name, agent_identity=identity, wu="WU-7")
            )
            for name, identity in (("Planck", "claude:architect:shop"), ("Curie", "codex:builder:host"))
        )

    def say(self, text: str, by: Caller | None = None, **options: object) -> str:
        self.clock.forward(SECOND)
        return str(send.send(self.store, by or self.planck, text, **options).signal["signal_id"])  # type: ignore[arg-type]

    def unread(self) -> list[str]:
        return [each["signal_id"] for each in inbox.read(self.store, self.curie).signals]


@pytest.fixture
def desk(repo: Path) -> Iterator[Desk]:
    clock = Clock()
    store = open_store(repo, clock)
    yield Desk(store, clock)
    store.close()


def test_reading_lists_and_details_marks_nothing(desk: Desk) -> None:
    signal_id = desk.say("one", to=["Curie"])

    found = board.read(desk.store, desk.curie, LIMITS)
    shown = board.thread_detail(desk.store, desk.curie, signal_id)

    assert (found.unread, found.heads["threads"]) == (1, "Threads 1 *1")
    assert [block.is_new for block in shown.blocks if block.signal] == [True]
    assert desk.unread() == [signal_id]


def test_only_what_was_shown_word_for_word_is_marked(desk: Desk) -> None:
    """Another line under the same id may arrive between reading and showing."""
    one, two, three = (desk.say(text, to=["Curie"]) for text in ("one", "two", "three"))

    marked = answers.mark_shown(
        desk.store, desk.curie, {one: {"one"}, two: {"not what it says"}, "sig-unknown": {""}}
    )

    assert marked == 1
    assert desk.unread() == [two, three]


def test_a_wide_claim_makes_no_wide_row(desk: Desk) -> None:
    """Each refresh measures the cells of 200 rows; the claim itself has all of its paths."""
    claim_work.claim_paths(desk.store, desk.planck, [f"{'p' * 200}/{number}" for number in range(90)])

    found = board.read(desk.store, desk.curie, LIMITS)

    (row,) = found.rows[board.CLAIMS]
    assert max(map(len, row.cells)) <= board.CELL_MAX
    shown = board.listed_detail(found, board.CLAIMS, row.id)
    assert shown is not None and sum(len(block.lines) for block in shown.blocks) > 90


def test_looking_as_somebody_else_marks_nothing(desk: Desk) -> None:
    """As in an inbox, an agent that names another one with --as only peeks."""
    signal_id = desk.say("one", to=["Curie"])
    desk.curie.who = CallerClaims(as_="Curie", session=desk.planck.session_id)

    assert answers.mark_shown(desk.store, desk.curie, {signal_id: {"one"}}) == 0
    assert "Nothing is marked as delivered" in " ".join(board.read(desk.store, desk.curie, LIMITS).notes)
    desk.curie.who = None
    assert desk.unread() == [signal_id]


def test_a_long_thread_is_shown_in_pages_by_number_and_by_size(
    desk: Desk,
) -> None:
    root = desk.say("the first", to=["Curie"])
    for number in range(9):
        desk.say(f"answer {number}", reply_to=root)

    def shown(limit: int, most: int = board.BYTES_MAX) -> list[str]:
        found = board.thread_detail(desk.store, desk.curie, root, limit, bytes_most=most)
        told = [block.signal["message"] for block in found.blocks if block.signal]
        assert found.more == 10 - len(told)
        assert any("earlier signals not shown" in block.lines[0] for block in found.blocks) == (
            found.more > 0
        )
        return told

    assert shown(4) == ["the first", "answer 6", "answer 7", "answer 8"]
    assert len(shown(100)) == 10
    assert shown(10, 30) == ["the first", "answer 7", "answer 8"]
    assert shown(10, 1) == ["the first", "answer 8"]
    assert shown(4 * board.SIGNALS, 8) == ["the first", "answer 7", "answer 8"]  # more pages, more bytes


def test_rows_say_what_needs_somebody(desk: Desk) -> None:
    """A question, a task that waits, a contested claim; and they are the first words of their lists."""
    asked = desk.say("Agreed?", to=["Curie"], intent="PROPOSE")
    task = new_task.delegate(
        desk.store, desk.curie, "Measure it", to="Planck", role="reviewer", wu="WU-7"
    ).task["task_id"]
    task_work.take(desk.store, desk.planck, task)
    task_work.report(desk.store, desk.planck, task, "input-required", "Cold or warm?")
    claim_work.claim_paths(desk.store, desk.planck, ["src/a.py"])
    claim_work.claim_paths(desk.store, desk.curie, ["src/**"], reason="only reading", anyway="only reading")

    found = board.read(desk.store, desk.curie, LIMITS)

    marked = {
        pane: [row.id for row in found.rows[pane] if row.cells[0].startswith("!")] for pane in board.PANES
    }
    assert marked["threads"] == [board.thread_detail(desk.store, desk.curie, asked).id]
    assert marked["tasks"] == [task]
    assert len(marked["claims"]) == 1
    (contested,) = marked["claims"]
    told = "\n".join(
        line for block in board.listed_detail(found, "claims", contested).blocks for line in block.lines
    )  # type: ignore[union-attr]
    assert "src/a.py" in told and "only reading" in told
    assert board.listed_detail(found, "agents", desk.planck.session_id or "").to == desk.planck.session_id  # type: ignore[union-attr]
    assert board.listed_detail(found, "claims", "claim-gone") is None


@pytest.mark.parametrize(
    ("text", "width", "pieces"),
    [
        ("", 5, [""]),
        ("one two three", 7, ["one two", "three"]),
        ("abcdefghij", 4, ["abcd", "efgh", "ij"]),
        ("| one two three", 9, ["| one two", "| three"]),
        ("日本語日本語", 5, ["日本", "語日", "本語"]),
        ("\tx", 8, ["    x"]),
        ("日", 1, ["日"]),
    ],
)
def test_lines_are_wrapped_by_columns_and_keep_their_bar(text: str, width: int, pieces: list[str]) -> None:
    """A line of a peer's text that went on without its bar would look like ours."""
    assert list(panes.wrap(text, width)) == pieces


@pytest.mark.parametrize(
    "text", ["a\x1b]8;;http://x\x07b", "a\u202eb", "a\nb", "a\x9bb", "[bold]x[/bold]", "日本語"]
)
def test_a_row_has_its_width_and_no_control_character(text: str) -> None:
    row = panes.strip(text, 8)

    assert row.cell_length == 8
    assert row.text.isprintable()
    assert all(segment.style is None or segment.style.link is None for segment in row)
