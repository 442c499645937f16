"""Delivery: one at a time shows a reader its signals, and what is left of its flags afterwards is right."""

from __future__ import annotations

import shutil
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from gitmem.agents import delivery, heartbeats, lifecycle, mailbox
from gitmem.agents.caller import Caller, CallerClaims
from gitmem.errors import StoreError
from gitmem.open_store import DOMAIN
from gitmem.signals import inbox, message_frame
from gitmem.signals import send as signals
from gitmem.signals.inbox import InboxResult
from gitmem.store import Store

from ..file_faults import at
from ..sandbox import DAY, Clock, acting, annas, carry, new_repo, open_store

HARNESS = "7d0c2f5e-5f0a-4f4e-9d3c-0a1b2c3d4e5f"
IDENTITY = annas("test:worker:curie")


class Desk:
    """A clone with Planck, who writes, and Curie, who reads in a harness."""

    def __init__(self, repo: Path) -> None:
        self.clock = Clock()
        self.store = open_store(repo, self.clock)
        self.state = Path(self.store.repo.state)
        self.planck = self.start("Planck")
        self.curie = self.start("Curie", HARNESS, agent_identity=IDENTITY)

    def start(self, name: str, client_session: str | None = None, **more: str) -> Caller:
        who = CallerClaims(
            client_session=("CLAUDE_CODE_SESSION_ID", client_session) if client_session else None
        )
        return acting(self.store, lifecycle.start(self.store, who, name=name, **more))  # type: ignore[arg-type]

    def send(self, message: str = "hello", *to: str, **options: object) -> str:
        to = to or ("Curie",)
        sent = signals.send(
            self.store,
            self.planck,
            message,
            to=[] if options.get("broadcast") else to,
            **options,  # type: ignore[arg-type]
        )
        return str(sent.signal["signal_id"])

    def read(self, of: Caller | None = None, **options: object) -> InboxResult:
        return inbox.read(self.store, of or self.curie, **options)  # type: ignore[arg-type]

    def drain(self, of: Caller | None = None, **options: object) -> list[str]:
        """What a hook would show, and does."""
        reader = of or self.curie
        with delivery.delivery_lock(self.store, reader.reader) as mine:
            if not mine:
                return []
            reading = self.read(reader, **options)
            inbox.mark(self.store, reading)
        return ids(reading)

    def events(self, of: Caller | None = None) -> set[str]:
        """What is unread by a session whose flag is raised."""
        who = of or self.curie
        if not heartbeats.is_flagged(str(self.state), str(who.session_id)):
            return set()
        rows = mailbox.unread_ids(self.store.db(), who.reader, who.session_id, who.workspace, self.clock())
        return {id for _, id in rows}

    def flags(self) -> set[str]:
        folder = self.state / "flags"
        return {path.name for path in folder.iterdir()} if folder.is_dir() else set()

    def receipts(self) -> list[tuple[str, str]]:
        rows = self.store.db().execute("SELECT reader, signal_id FROM receipt WHERE state = 'delivered'")
        return sorted(rows.fetchall())

    def again(self) -> Store:
        return Store(self.store.repo, self.store.git, DOMAIN, machine="test", now=self.clock)


def ids(reading: InboxResult) -> list[str]:
    return [str(fields["signal_id"]) for fields in reading.signals]


@pytest.fixture
def desk(repo: Path) -> Desk:
    return Desk(repo)


class TestTurn:
    """Whoever shows signals to a reader."""

    def test_two_do_not_have_it_at_once(self, desk: Desk) -> None:
        """The second one is told at once; another reader is not concerned; afterwards it is free."""
        with delivery.delivery_lock(desk.store, annas("a:b:c")) as mine:
            assert mine
            with delivery.delivery_lock(desk.again(), annas("a:b:c")) as second:
                assert not second
            with delivery.delivery_lock(desk.again(), annas("a:b:d")) as other:
                assert other
        with delivery.delivery_lock(desk.again(), annas("a:b:c")) as free:
            assert free

    def test_who_was_asked_waits_a_while(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        """It ends as soon as the other's turn does, and else with the time that was given."""
        slept: list[float] = []
        real = time.sleep
        with ExitStack() as turn:
            assert turn.enter_context(delivery.delivery_lock(desk.store, annas("a:b:c")))

            def sleep(seconds: float) -> None:
                if seconds != delivery.PAUSE_SECONDS:  # of whoever waits for a process
                    real(seconds)
                    return
                slept.append(seconds)
                if len(slept) == 2:
                    turn.close()

            monkeypatch.setattr(time, "sleep", sleep)
            with delivery.delivery_lock(desk.again(), annas("a:b:c"), wait_seconds=60) as mine:
                assert mine and len(slept) == 2
                with delivery.delivery_lock(desk.again(), annas("a:b:c"), wait_seconds=0.001) as late:
                    assert not late

    def test_who_marks_nothing_takes_none(self, desk: Desk) -> None:
        """A peek disturbs nobody, and nobody disturbs it."""
        with (
            delivery.delivery_lock(desk.store, annas("a:b:c")),
            delivery.delivery_lock(desk.again(), annas("a:b:c"), wait_seconds=None) as mine,
        ):
            assert mine

    def test_a_folder_that_cannot_be_written_has_no_turns(self, desk: Desk) -> None:
        """Better twice than never."""
        shutil.rmtree(desk.state / "deliver", ignore_errors=True)
        (desk.state / "deliver").write_text("A file where the folder should be.\n")
        with (
            delivery.delivery_lock(desk.store, annas("a:b:c")) as mine,
            delivery.delivery_lock(desk.again(), annas("a:b:c")) as second,
        ):
            assert mine and second

    def test_an_error_inside_ends_it(self, desk: Desk) -> None:
        """The next one is not kept waiting by what went wrong."""
        with pytest.raises(ValueError, match="oh"), delivery.delivery_lock(desk.store, annas("a:b:c")):
            raise ValueError("oh")
        with delivery.delivery_lock(desk.again(), annas("a:b:c")) as mine:
            assert mine

    def test_an_error_on_the_way_in_ends_it_too(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        """A watch goes on after it: with its own lock left behind it would shut out itself and every hook for good."""
        with monkeypatch.context() as patch:
            patch.setattr(desk.store, "db", lambda: 1 / 0)
            with pytest.raises(ZeroDivisionError), delivery.delivery_lock(desk.store, annas("a:b:c")):
                pass
        with delivery.delivery_lock(desk.again(), annas("a:b:c")) as mine:
            assert mine


class TestAfterwards:
    """What `mark` leaves of the flags."""

    def test_what_was_shown_waits_no_more(self, desk: Desk) -> None:
        """In every session of that reader, also where nobody took a turn; others keep theirs."""
        twin, bohr = desk.start("Marie", agent_identity=IDENTITY), desk.start("Bohr")
        signal = desk.send("both", IDENTITY, "Bohr")
        assert desk.events() == desk.events(twin) == {signal}
        inbox.mark(desk.store, desk.read(twin))
        assert desk.events() == desk.events(twin) == set()
        assert desk.events(bohr) == {signal}
        assert desk.flags() == {bohr.session_id}
        assert desk.receipts() == [(IDENTITY, signal)]

    def test_what_was_not_shown_still_waits(self, desk: Desk) -> None:
        """A part of it leaves the flag up."""
        first, second = desk.send("one"), desk.send("two")
        assert desk.drain(limit=1) == [first]
        assert desk.events() == {second}
        assert HARNESS in desk.flags()
        assert desk.drain() == [second]
        assert desk.flags() == set()

    def test_what_is_left_says_whether_it_may_interrupt(self, desk: Desk) -> None:
        """A broadcast that is left waits quietly."""
        broadcast, directed = desk.send("all", broadcast=True), desk.send("you")
        assert desk.drain(directed=True) == [directed]
        assert desk.events() == {broadcast}
        assert (desk.state / "flags" / HARNESS).stat().st_size == 0

    def test_a_peek_leaves_all(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        """Who looks at another's mail takes no flag."""
        signal = desk.send()
        removed = at(monkeypatch, "unlink", "*/flags/*", lambda: None)
        inbox.mark(desk.store, desk.read(desk.planck, for_="Curie"))
        assert desk.events() == {signal} and HARNESS in desk.flags() and not removed

    def test_a_batch_takes_nothing_before_it_is_recorded(self, desk: Desk) -> None:
        """It may come to nothing, and then the signals are unread as before."""
        signal = desk.send()
        desk.store.collect(lambda entry: None)
        inbox.mark(desk.store, desk.read())
        desk.store.collect(None)
        assert desk.events() == {signal} and HARNESS in desk.flags()
        assert desk.drain() == [signal]

    def test_the_flag_of_a_session_that_ended_goes(self, desk: Desk, tmp_path: Path) -> None:
        """A hook of a client that goes on is not called for it at each tool."""
        flags = desk.state / "flags"
        flags.mkdir(exist_ok=True)
        for name in (HARNESS, str(desk.curie.session_id)):
            (flags / name).write_bytes(b"urgent\n")
        lifecycle.end(desk.store, desk.curie)
        (flags / HARNESS).write_bytes(b"urgent\n")
        raw = Caller(HARNESS, f"{HARNESS} <{HARNESS}@gitmem>", "raw")
        raw.session_id, raw.raw = HARNESS, True
        assert desk.drain(raw) == []
        assert desk.flags() == set()

    def test_an_odd_name_of_a_harness_reaches_no_file(self, desk: Desk) -> None:
        """It could be a path out of the folder."""
        desk.send()
        kept = desk.state / "kept"
        kept.mkdir()
        (kept / "file").touch()
        raw = Caller("../kept", "../kept <x@gitmem>", "raw")
        raw.session_id, raw.raw = "../kept", True
        inbox.mark(desk.store, inbox.read(desk.store, raw))
        assert (kept / "file").exists()


class TestWithoutReceipts:
    """What was shown while no receipt could be recorded."""

    def test_hooks_are_not_called_for_it_again_and_it_stays_unread(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The flag goes until the next signal; who looks then marks both."""

        def refuse(*args: object, **options: object) -> None:
            raise StoreError("The spool cannot be written (No space left on device).", code="spool")

        signal = desk.send()
        with monkeypatch.context() as patch:
            patch.setattr(desk.store, "record", refuse)
            with pytest.raises(StoreError):
                desk.drain()
            assert desk.flags() == set()
            assert ids(desk.read()) == [signal]  # who asks is told
        assert desk.receipts() == []
        later = desk.send("later")
        assert desk.flags() != set()
        assert sorted(desk.drain()) == sorted([signal, later])
        assert desk.receipts() == sorted([(IDENTITY, later), (IDENTITY, signal)])


class TestResumed:
    """A conversation that ended and is taken up again, under the same id of its harness."""

    def test_it_gets_the_mail_of_its_former_session(self, desk: Desk) -> None:
        """Sent before the end or after it; the receipt goes to the address that the signal was sent to."""
        former = desk.start("Bohr", "harness-of-bohr")
        before = desk.send("before", str(former.session_id))
        lifecycle.end(desk.store, former)
        after = desk.send("after", str(former.session_id))
        now = desk.start("Bohr", "harness-of-bohr")
        assert now.session_id != former.session_id
        assert desk.events(now) == {before, after}

        assert sorted(desk.drain(now)) == sorted([before, after])
        assert {reader for reader, _ in desk.receipts()} == {former.session_id}
        later = desk.send("later", str(former.session_id))
        assert desk.events(now) == {later}
        assert desk.drain(now) == [later]

    def test_it_is_not_shown_broadcasts_again(self, desk: Desk) -> None:
        """What its former session has receipts for, and what that said itself; the rest it is shown."""
        former = desk.start("Bohr", "harness-of-bohr")
        read = desk.send("read", broadcast=True)
        assert desk.drain(former) == [read]
        signals.send(desk.store, former, "my own words", broadcast=True)
        unread = desk.send("unread", broadcast=True)
        lifecycle.end(desk.store, former)
        now = desk.start("Bohr", "harness-of-bohr")
        assert desk.drain(now) == [unread]
        assert desk.drain(now) == []

    def test_it_is_not_shown_what_it_said_as_somebody(self, desk: Desk) -> None:
        """Its former session had an agent identity, and this one has none: the words are still its own."""
        signals.send(desk.store, desk.curie, "my own words", broadcast=True)
        lifecycle.end(desk.store, desk.curie)
        assert desk.drain(desk.start("Marie", HARNESS)) == []

    def test_the_mail_of_another_harness_is_not_its_own(self, desk: Desk) -> None:
        """Nobody's mail is read by anybody else."""
        other = desk.start("Bohr", "harness-of-bohr")
        unnamed = desk.start("Marie")
        desk.send("for Bohr", str(other.session_id))
        lifecycle.end(desk.store, other)
        assert desk.drain(desk.start("Noether", "another-harness")) == []
        assert desk.drain(unnamed) == []

    def test_an_index_that_is_built_anew_says_the_same(self, desk: Desk) -> None:
        """Whatever order the session and its receipts come in."""
        former = desk.start("Bohr", "harness-of-bohr")
        for number in range(3):
            desk.send(f"read {number}", broadcast=True)
        desk.drain(former)
        lifecycle.end(desk.store, former)
        now = desk.start("Bohr", "harness-of-bohr")
        unread = desk.send("unread", broadcast=True)
        other = open_store(new_repo(desk.state.parent.parent.parent / "there"), desk.clock)
        carry(desk.store, other)
        for store in (desk.store, other):
            assert ids(inbox.read(store, acting(store, str(now.session_id)))) == [unread]


class TestBudget:
    """How much is shown at once."""

    def measure(self, fields: dict[str, object]) -> int:
        return len(message_frame.signal_text(fields, reader=IDENTITY).encode()) + 2

    def test_whole_signals_priority_first(self, desk: Desk) -> None:
        """What does not fit waits; what is shown stands in order of time."""
        quiet = desk.send("q" * 300, broadcast=True)
        first, second, third = (desk.send(letter * 300) for letter in "abc")
        reading = desk.read(max_text=1100, measure=self.measure)
        assert ids(reading) == [first, second] and reading.more == 2
        assert sum(map(self.measure, reading.signals)) <= 1100
        inbox.mark(desk.store, reading)
        assert ids(desk.read(max_text=1100, measure=self.measure)) == [quiet, third]

    @pytest.mark.parametrize("letter", ["a", "é", "\n", "\u202e"])
    def test_a_single_signal_that_is_too_long_is_cut(self, desk: Desk, letter: str) -> None:
        """As much of it as fits, whatever its characters become; the rest with `gitmem show`."""
        text = "x" + letter * 3000
        signal = desk.send(text)
        desk.send("next")
        reading = desk.read(max_text=1000, measure=self.measure)
        (fields,) = reading.signals
        assert fields["message_cut"] is True and text.startswith(str(fields["message"]))
        assert 800 < self.measure(fields) <= 1000
        assert f"gitmem show {signal}" in message_frame.signal_text(fields, reader=IDENTITY)
        assert reading.more == 1 and reading.next[0] == f"gitmem show {signal}"

    def test_what_fits_just_so_is_whole(self, desk: Desk) -> None:
        """The limit itself is allowed."""
        desk.send("hello there")
        size = self.measure(desk.read().signals[0])
        whole, cut = (desk.read(max_text=most, measure=self.measure).signals[0] for most in (size, size - 1))
        assert "message_cut" not in whole
        assert cut["message_cut"] is True

    def test_only_what_may_interrupt(self, desk: Desk) -> None:
        """`directed` leaves out broadcasts and what is advisory, also what went to the session's own id."""
        desk.send("all", broadcast=True)
        desk.send("by the way", interrupt="advisory")
        directed = [desk.send("you"), desk.send("your session", str(desk.curie.session_id))]
        reading = desk.read(directed=True)
        assert ids(reading) == directed and (reading.unread, reading.more) == (2, 0)
        assert len(desk.read().signals) == 4


def test_a_signal_that_is_alone_in_its_thread_is_shown_without_reading_the_thread(desk: Desk) -> None:
    """And one with answers shows what its reader decided, though it never opened its inbox."""
    asked = desk.send("Shall we?", intent="PROPOSE", requires_ack=True)
    assert desk.read().signals[0]["delivery_state"] is None
    second = signals.send(desk.store, desk.planck, "And this?", reply_to=asked).signal["signal_id"]
    signals.send(desk.store, desk.curie, "yes", reply_to=str(second), intent="AGREE")
    assert {str(fields["signal_id"]): fields["delivery_state"] for fields in desk.read().signals} == {
        asked: "acked"
    }


def test_day_old_broadcasts_are_nobodys_news(desk: Desk) -> None:
    """A session that starts later is not fed what was said before its first day."""
    desk.send("old", broadcast=True)
    desk.clock.forward(2 * DAY)
    assert desk.events(desk.start("Bohr", "harness-of-bohr")) == set()
