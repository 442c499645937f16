"""Visibility: who sees which signal, and for how long."""

from __future__ import annotations

from .adapter import FullBus
from .case_setup import A, B, C, D, messages, needs, read, session, sessions, written


def test_a_broadcast_shows_in_every_inbox(bus: FullBus) -> None:
    """A2A.V1: “A signal without recipients is a broadcast: every session's inbox shows it.”"""
    a, b = sessions(bus, A, B)
    c = session(bus)
    bus.send(a, "to all")

    assert read(bus, b, c) == [["to all"], ["to all"]]


def test_a_broadcast_does_not_show_to_its_sender(bus: FullBus) -> None:
    """gitmem: “The sender's own inbox does not show a broadcast.”"""
    a, b = sessions(bus, A, B)
    nobody = session(bus)
    bus.send(a, "said by a")
    bus.send(nobody, "said by nobody in particular")
    again = session(bus, A)

    assert messages(bus.inbox(again, mark=False)) == ["said by nobody in particular"]
    assert read(bus, a, nobody) == [["said by nobody in particular"], ["said by a"]]
    assert len(bus.inbox(b)) == 2


@needs("take")
def test_a_broadcast_from_a_slow_clock_shows(bus: FullBus) -> None:
    """gitmem: “A broadcast that arrives after a session started is shown to it, even if the writer's clock is far behind.”"""
    a = session(bus, A)
    bus.take(written("sig-slow0001", B, [], "from last week", hours=-168, seen=[]))

    assert read(bus, a) == [["from last week"]]


def test_a_directed_signal_shows_to_its_recipient_alone(bus: FullBus) -> None:
    """A2A.V1: “A signal to A shows in A's inbox and not in B's.”"""
    a, b, c = sessions(bus, A, B, C)
    bus.send(c, "to a", to=[A])

    assert read(bus, a, b, c) == [["to a"], [], []]


def test_an_inbox_shows_directed_signals_and_broadcasts(bus: FullBus) -> None:
    """A2A.V1: “A's inbox shows signals to A, and broadcasts.”"""
    a, b = sessions(bus, A, B)
    bus.send(b, "to a", to=[A])
    bus.send(b, "to all")

    assert read(bus, a) == [["to a", "to all"]]


def test_one_signal_has_several_recipients(bus: FullBus) -> None:
    """A2A.V1: “A signal with several recipients shows in each of their inboxes, and in no other.”"""
    a, b, c, d = sessions(bus, A, B, C, D)
    sent = bus.send(d, "to both", to=[f"{A},{B}"])

    assert sent["recipients"] == [A, B]
    assert [each["signal_id"] for each in bus.inbox(a)] == [sent["signal_id"]]
    assert [each["signal_id"] for each in bus.inbox(b)] == [sent["signal_id"]]
    assert bus.inbox(c) == []


@needs("take")
def test_the_old_alias_alone_routes_a_record(bus: FullBus) -> None:
    """A2A.V1: “If `recipients` is missing, `target_agent` is the only recipient.”"""
    a, b, c = sessions(bus, A, B, C)
    record = written("sig-aaaa1111", C, [A], "old style", target_agent=A)
    del record["recipients"]
    bus.take(record)

    assert [each["recipients"] for each in bus.inbox(a)] == [[A]]
    assert read(bus, b, c) == [[], []]


def test_the_old_alias_is_still_written(bus: FullBus) -> None:
    """A2A.V1: “`target_agent` is still written: it is the first recipient, and absent from a broadcast.”"""
    a, _, _ = sessions(bus, A, B, C)

    assert bus.send(a, "to two", to=[B, C]).get("target_agent") == B
    assert bus.send(a, "to all").get("target_agent") is None


def test_sessions_with_one_identity_share_what_was_read(bus: FullBus) -> None:
    """A2A.V1: “Two sessions with one agent identity share their receipts: a signal that one has read is read for the other.”"""
    first, second, b = sessions(bus, A, A, B)
    bus.send(b, "once", to=[A])
    bus.send(b, "once for all")

    assert read(bus, first, second) == [["once", "once for all"], []]


def test_receipts_survive_a_restart(bus: FullBus) -> None:
    """A2A.V1: “An agent identity keeps its receipts when its agent restarts.”"""
    first, b = sessions(bus, A, B)
    bus.send(b, "read before", to=[A])
    bus.inbox(first)
    bus.end(first)
    bus.send(b, "while it was away", to=[A])

    assert read(bus, session(bus, A)) == [["while it was away"]]


def test_sessions_without_identity_have_receipts_of_their_own(bus: FullBus) -> None:
    """A2A.V1: “Without an agent identity, receipts belong to one session.”"""
    first, second = session(bus), session(bus)
    bus.send(session(bus, B), "to all")

    assert read(bus, first, second, first) == [["to all"], ["to all"], []]


def test_showing_without_marking_leaves_it_unread(bus: FullBus) -> None:
    """A2A.V1: “A signal shown without marking stays unread.”"""
    a, b = sessions(bus, A, B)
    bus.send(b, "still there", to=[A])
    looked = [messages(bus.inbox(a, mark=False)) for _ in range(2)]

    assert (looked, read(bus, a, a)) == ([["still there"]] * 2, [["still there"], []])


@needs("count")
def test_counting_leaves_it_unread(bus: FullBus) -> None:
    """gitmem: “A signal that is only counted stays unread.”"""
    a, b = sessions(bus, A, B)
    bus.send(b, "to a", to=[A])
    bus.send(b, "to all")

    assert [bus.count(a), bus.count(a), bus.count(b)] == [2, 2, 0]
    assert read(bus, a) == [["to a", "to all"]]
    assert bus.count(a) == 0


def test_an_inbox_that_does_not_show_all_marks_what_it_shows(bus: FullBus) -> None:
    """gitmem: “An inbox may show a part of what is unread; it marks that part alone.”"""
    a, b = sessions(bus, A, B)
    sent = [bus.send(b, f"{number} {'m' * 1_000}", to=[A])["signal_id"] for number in range(25)]
    shown: list[str] = []
    while found := [each["signal_id"] for each in bus.inbox(a)]:
        shown += found

    assert shown == sent


def test_a_signal_that_is_sent_again_is_not_shown_again(bus: FullBus) -> None:
    """gitmem: “A signal that was read is not shown again when it is sent again under its key.”"""
    a, b = sessions(bus, A, B)
    shown = []
    for _ in range(2):
        bus.send(b, "once", to=[A], idempotency_key="k")
        bus.send(b, "once for all", idempotency_key="for all")
        shown += read(bus, a)

    assert shown == [["once", "once for all"], []]


@needs("take")
def test_a_record_that_arrives_again_is_not_shown_again(bus: FullBus) -> None:
    """gitmem: “A signal that was read is not shown again when its record arrives again.”"""
    a, _ = sessions(bus, A, B)
    records = [
        written("sig-aaaa1111", B, [A], "once"),
        written("sig-aaaa2222", B, [], "once for all", seen=[]),
    ]
    shown = []
    for _ in range(2):
        for each in records:
            bus.take(each)
        shown += [sorted(each) for each in read(bus, a)]

    assert shown == [["once", "once for all"], []]


def test_a_new_reader_sees_the_broadcasts_of_the_last_day(bus: FullBus) -> None:
    """gitmem: “A new reader sees the broadcasts of the last day.”"""
    bus.send(session(bus, A), "said before")

    assert read(bus, session(bus, B), session(bus)) == [["said before"], ["said before"]]


def test_an_inbox_shows_its_own_workspace(bus: FullBus) -> None:
    """gitmem: “An inbox shows signals of its own workspace, and signals without a workspace.”"""
    red = bus.start(identity=A, workspace="red")["session_id"]
    blue = bus.start(identity=B, workspace="blue")["session_id"]
    also_red = bus.start(identity=C, workspace="red")["session_id"]
    bus.send(red, "red")
    bus.send(session(bus, D), "plain")

    assert read(bus, blue, also_red) == [["plain"], ["red", "plain"]]


def in_workspaces(bus: FullBus) -> tuple[str, str, str]:
    """Return a session in red, and of one agent a session in blue and one in red."""
    given = ((B, "red"), (A, "blue"), (A, "red"))
    b, blue, red = (bus.start(identity=who, workspace=where)["session_id"] for who, where in given)
    return b, blue, red


def test_a_directed_signal_shows_in_its_workspace(bus: FullBus) -> None:
    """gitmem: “A directed signal shows in its recipient's sessions of its workspace, and not in those of another one.”"""
    b, blue, red = in_workspaces(bus)
    bus.send(b, "red", to=[A])

    assert read(bus, blue, red) == [[], ["red"]]


def test_a_filtered_inbox_shows_its_own_workspace(bus: FullBus) -> None:
    """gitmem: “An inbox filtered by thread and intents shows nothing of another workspace.”"""
    b, blue, red = in_workspaces(bus)
    sent = bus.send(b, "red", to=[A], intent="PROPOSE")
    shown = [
        messages(bus.inbox(each, thread=sent.get("thread_id"), intents=["PROPOSE"])) for each in (blue, red)
    ]

    assert shown == [[], ["red"]]


@needs("count")
def test_a_count_has_its_own_workspace(bus: FullBus) -> None:
    """gitmem: “A count has no signals of another workspace.”"""
    b, blue, red = in_workspaces(bus)
    bus.send(b, "red", to=[A])
    bus.send(b, "red for all")

    assert [bus.count(blue), bus.count(red)] == [0, 2]


@needs("watch")
def test_a_watcher_is_given_its_own_workspace(bus: FullBus) -> None:
    """gitmem: “A watcher is given nothing of another workspace.”"""
    b, blue, _ = in_workspaces(bus)
    bus.send(b, "red", to=[A])
    bus.send(b, "red for all")
    bus.send(session(bus, C), "plain", to=[A])

    assert messages(bus.watch(blue)) == ["plain"]


def test_a_session_without_workspace_sees_all(bus: FullBus) -> None:
    """gitmem: “A session without a workspace sees the signals of all workspaces.”"""
    b, _, _ = in_workspaces(bus)
    plain = session(bus, C)
    bus.send(b, "red for all")
    bus.send(b, "red", to=[C])

    assert read(bus, plain) == [["red for all", "red"]]


def test_an_inbox_is_read_in_the_order_of_writing(bus: FullBus) -> None:
    """gitmem: “An inbox shows the oldest signal first.”"""
    a, b = sessions(bus, A, B)
    for text in ("first", "second", "third"):
        bus.send(b, text, to=[A])

    assert read(bus, a) == [["first", "second", "third"]]


@needs("take")
def test_an_inbox_is_read_in_the_order_of_writing_whatever_arrives_first(bus: FullBus) -> None:
    """gitmem: “An inbox shows the oldest signal first, even if it arrives last.”"""
    a, _ = sessions(bus, A, B)
    for number in (2, 3, 1):
        bus.take(written(f"sig-aaaa000{number}", B, [A], f"number {number}", hours=number - 4))

    assert read(bus, a) == [["number 1", "number 2", "number 3"]]


@needs("take")
def test_a_record_of_another_version_is_not_shown(bus: FullBus) -> None:
    """gitmem: “A record with another `schema_version` is kept and not shown.”"""
    a, _ = sessions(bus, A, B)
    bus.take(written("sig-aaaa1111", B, [A], "from the future", schema_version="A2A.V9"))
    bus.take(written("sig-aaaa2222", B, [A], "of today"))

    assert read(bus, a) == [["of today"]]
