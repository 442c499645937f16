"""Clocks that are wrong: they order and display, and decide neither what was agreed nor what was read."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitmem.agents import lifecycle
from gitmem.agents.caller import Caller, CallerClaims
from gitmem.doctor import doctor
from gitmem.log import lines
from gitmem.signals import inbox, threads
from gitmem.signals import send as signals
from gitmem.store import Store
from gitmem.text.addresses import words_of

from ..sandbox import DAY, HOUR, MINUTE, SECOND, Clock, acting, annas, bodies, carry, new_repo
from .faults import check_index, open_store

YEAR = 365 * DAY
PLANCK, CURIE = annas("test:worker:planck"), annas("test:worker:curie")


class Side:
    """One clone with a clock of its own and one agent."""

    def __init__(self, where: Path, identity: str, ahead: int = 0) -> None:
        self.clock = Clock()
        self.clock.forward(ahead)
        self.path = new_repo(where)
        self.store = open_store(self.path, now=self.clock)
        started = lifecycle.start(
            self.store, CallerClaims(identity=identity), name=words_of(identity).rpartition(":")[2].title()
        )
        self.caller: Caller = acting(self.store, started.session_id)

    def send(self, message: str, **options: object) -> dict[str, object]:
        self.clock.forward(SECOND)
        return signals.send(self.store, self.caller, message, **options).signal  # type: ignore[arg-type]

    def reply(self, signal_id: object, intent: str) -> dict[str, object]:
        return self.send(intent, reply_to=str(signal_id), intent=intent)

    def read(self, *, mark: bool = True) -> list[str]:
        found = inbox.read(self.store, self.caller)
        if mark:
            inbox.mark(self.store, found)
        return [str(signal["message"]) for signal in found.signals]

    def decision(self, thread: object) -> str:
        (recipient,) = threads.converged(self.store, str(thread)).recipients
        return recipient.decision


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Side, Side]:
    return Side(tmp_path / "a", PLANCK), Side(tmp_path / "b", CURIE)


def times(store: Store, since: int = 0) -> list[int]:
    """The times of the notes of a log in the order in which they were written."""
    found = [
        (int(line.split(b'"message":"')[1].split(b'"')[0]), lines.parse_at(line[7:34].decode()))
        for line in bodies(store)
        if b'"kind":"signal"' in line
    ]
    return [at for number, at in sorted(found) if number >= since]


def test_times_of_a_clone_strictly_increase(tmp_path: Path) -> None:
    """A clock that stands, or goes back for less than a minute, in one process and in the next."""
    side = Side(tmp_path / "a", PLANCK)
    number = 0
    for step in (0, 0, -30 * SECOND, 0, 5 * SECOND, -20 * SECOND, 2 * MINUTE, -59 * SECOND):
        side.clock.value += step
        for _ in range(2):
            signals.send(side.store, side.caller, str(number))
            number += 1
        side.store.close()
        side.store = open_store(side.path, now=side.clock)
    found = times(side.store)
    assert found == sorted(set(found)) and len(found) == number


@pytest.mark.parametrize("wrong", [HOUR, YEAR, -HOUR])
def test_a_clock_that_was_set_right_is_believed_again(tmp_path: Path, wrong: int) -> None:
    """New lines have the time that it is, not the wrong one of before, and increase from there."""
    side = Side(tmp_path / "a", PLANCK, ahead=wrong)
    signals.send(side.store, side.caller, "0")
    side.clock.value -= wrong
    for number in range(1, 4):
        signals.send(side.store, side.caller, str(number))
    found = times(side.store, since=1)
    assert found == sorted(set(found))
    assert abs(found[0] - side.clock()) < MINUTE


@pytest.mark.parametrize("ahead", [YEAR, HOUR, -HOUR])
def test_lines_of_other_clones_do_not_move_our_clock(sides: tuple[Side, Side], ahead: int) -> None:
    """A line a year ahead in the log makes no line of ours wrong."""
    a, b = sides
    b.clock.value += ahead
    b.send("0")
    carry(a.store, b.store)
    signals.send(a.store, a.caller, "1")
    assert abs(times(a.store, since=1)[0] - a.clock()) < SECOND


@pytest.mark.parametrize("wrong", [-HOUR, -YEAR, HOUR, YEAR])
@pytest.mark.parametrize(("first", "then"), [("AGREE", "REJECT"), ("REJECT", "AGREE"), ("COUNTER", "AGREE")])
def test_the_later_decision_counts_though_its_clock_says_otherwise(
    sides: tuple[Side, Side], wrong: int, first: str, then: str
) -> None:
    """Later is what was said in the knowledge of the other, on every clone."""
    a, b = sides
    root = a.send("Approve?", to=[CURIE], intent="PROPOSE", allow_unseen=True)
    carry(a.store, b.store)
    b.reply(root["signal_id"], first)
    b.clock.value += wrong
    b.reply(root["signal_id"], then)
    carry(a.store, b.store)
    for side in sides:
        assert side.decision(root["thread_id"]) == then.lower()
        check_index(side.store)


@pytest.mark.parametrize("wrong", [-HOUR, -YEAR, HOUR, YEAR])
def test_a_reply_is_shown_after_what_it_answers(sides: tuple[Side, Side], wrong: int) -> None:
    """Also where its clock was behind; and who agreed to an old proposal has to answer the new one, whatever the clocks say."""
    a, b = sides
    b.clock.value += wrong
    root = a.send("root", to=[CURIE], intent="PROPOSE", allow_unseen=True)
    carry(a.store, b.store)
    agreed = b.reply(root["signal_id"], "AGREE")
    carry(a.store, b.store)
    a.send("second thoughts", to=[CURIE], intent="COUNTER", reply_to=str(agreed["signal_id"]))
    carry(a.store, b.store)
    for side in sides:
        shown = [each["message"] for each in threads.thread(side.store, str(root["thread_id"])).signals]
        assert shown == ["root", "AGREE", "second thoughts"]
        found = threads.converged(side.store, str(root["thread_id"]))
        assert (found.converged, found.pending) == (False, [CURIE])


@pytest.mark.parametrize("wrong", [-HOUR, -YEAR, HOUR, YEAR])
def test_direct_mail_is_read_and_unread_by_receipts_alone(sides: tuple[Side, Side], wrong: int) -> None:
    """Whatever the sender's or the reader's clock says: shown once, never again, and never skipped."""
    a, b = sides
    a.clock.value += wrong
    a.send("one", to=[CURIE], allow_unseen=True)
    carry(a.store, b.store)
    assert b.read() == ["one"]
    b.clock.value += wrong
    assert b.read() == []
    a.clock.value -= 2 * wrong
    a.send("two", to=[CURIE])
    carry(a.store, b.store)
    assert b.read() == ["two"]
    for moved in (DAY, 400 * DAY, -800 * DAY):
        b.clock.value += moved
        assert b.read(mark=False) == []
        store = open_store(b.path, now=b.clock)
        assert not inbox.read(store, acting(store, str(b.caller.session_id))).signals
        check_index(store)
        store.close()


def test_broadcasts_are_unread_where_a_readers_first_line_does_not_know_them(tmp_path: Path) -> None:
    """However old their clock says they are; only what the first line knew is measured by the clock: 24 hours."""
    a = Side(tmp_path / "a", PLANCK)
    a.send("two days before", broadcast=True)
    a.clock.forward(2 * DAY - HOUR)
    a.send("an hour before", broadcast=True)
    b = Side(tmp_path / "b", CURIE, ahead=2 * DAY)
    a.clock.value = b.clock.value - HOUR
    a.send("from a clock an hour behind", broadcast=True)
    a.clock.forward(YEAR)
    a.send("from a clock a year ahead", broadcast=True)
    carry(a.store, b.store)
    lately = ["an hour before", "from a clock an hour behind", "from a clock a year ahead"]
    started = lifecycle.start(b.store, CallerClaims(identity="test:worker:meitner"), name="Meitner")
    later = inbox.read(b.store, acting(b.store, started.session_id)).signals
    assert sorted(str(each["message"]) for each in later) == sorted(lately)
    a.clock.value = b.clock.value - 3 * DAY
    a.send("from a clock three days behind", broadcast=True)
    carry(a.store, b.store)
    later = inbox.read(b.store, acting(b.store, started.session_id)).signals
    assert sorted(str(each["message"]) for each in later) == sorted(
        [*lately, "from a clock three days behind"]
    )
    expected = sorted(["two days before", *lately, "from a clock three days behind"])
    for moved in (0, 3 * DAY, 2 * YEAR, -4 * YEAR, 2 * YEAR - 3 * DAY):
        b.clock.value += moved
        assert sorted(b.read(mark=False)) == expected
    assert sorted(b.read()) == expected
    assert b.read() == []
    check_index(b.store)


def test_doctor_tells_of_clocks_that_disagree(sides: tuple[Side, Side]) -> None:
    """A line from the future; with the place, and what to do."""
    a, b = sides
    assert "future-line" not in {each.code for each in doctor.examine(a.store).findings}
    b.clock.value += YEAR
    b.send("from next year", to=[PLANCK], allow_unseen=True)
    carry(a.store, b.store)
    (found,) = [each for each in doctor.examine(a.store).findings if each.code == "future-line"]
    assert found.severity == "note" and found.fix and "2027" in found.what and "/2027-" in found.where
