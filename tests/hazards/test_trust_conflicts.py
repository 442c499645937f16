"""Several lines of one id: all of them are shown, marked, and no command answers one of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .forging import Clone, Hub, changed

EARLIER = "2020-01-01T00:00:00.000000Z"


@pytest.fixture
def asked(tmp_path: Path) -> tuple[Hub, Clone, Clone, dict[str, str]]:
    """Planck asks Curie for a decision, and Mallory puts another text under that id, with an earlier time."""
    hub = Hub(tmp_path)
    planck, curie = hub.clone("Planck"), hub.clone("Curie")
    for each in (planck, curie, planck):
        each.sync()
    signal = planck.send(
        "Delete the branch feature", "--to", "Curie", "--intent", "PROPOSE", "--requires-ack"
    )
    planck.sync()
    return hub, planck, curie, signal


def forge(hub: Hub, signal: dict[str, str], message: str, sender: str = "test:worker:mallory") -> None:
    line = changed(
        hub.line_of(signal["signal_id"]), at=EARLIER, message=message, sender_identity=sender, mac=None
    )
    hub.forge(line)


def test_both_lines_are_shown_and_neither_can_be_agreed_to(
    asked: tuple[Hub, Clone, Clone, dict[str, str]],
) -> None:
    """In the inbox, for people and programs, in the thread, by the gate and by doctor."""
    hub, planck, curie, signal = asked
    id = signal["signal_id"]
    forge(hub, signal, "Delete the branch main")
    curie.sync()
    found = curie("inbox", "--no-mark", "--json").json
    assert [each["message"] for each in found["signals"]] == [
        "Delete the branch main",
        "Delete the branch feature",
    ]
    for each in found["signals"]:
        assert each["conflict"]["versions"] == 2
        assert {"sender", "message", "time"} <= set(each["conflict"]["differs"])
        assert "reply_line" not in each
    assert found["signals"][1]["conflict"]["clone"] != ""
    assert found["next"] == [f"gitmem thread {id}", "gitmem doctor"]

    text = curie("inbox").out
    assert text.count("CONFLICT") == 2 and "--agree" not in text and "gitmem reply" not in text
    assert curie.inbox() == []
    shown = curie("thread", id, "--json").json
    assert [each["message"] for each in shown["signals"]] == [
        "Delete the branch main",
        "Delete the branch feature",
    ]
    assert not any("reply" in each for each in shown["next"]) and "gitmem doctor" in shown["next"]
    assert "CONFLICT" in curie("show", id).out
    assert "--agree" not in curie("mem", "context", "--json").out

    refused = curie("reply", id, "yes", "--agree", "--json")
    assert (refused.status, refused.json["error"]["code"]) == (2, "conflicting-lines")
    assert "different contents, by test:worker:mallory, test:worker:planck" in curie("doctor").out
    assert planck("converged", signal["thread_id"]).status == 1


def test_a_second_line_after_the_first_was_read_is_news(
    asked: tuple[Hub, Clone, Clone, dict[str, str]],
) -> None:
    """A receipt is for the line that was shown; both are shown again, since one of them is new."""
    hub, _, curie, signal = asked
    curie.sync()
    assert len(curie.inbox()) == 1
    forge(hub, signal, "Delete the branch main", signal["sender_identity"])
    curie.sync()
    assert [each["delivery_state"] for each in curie.inbox()] == [None, "delivered"]
    assert curie.inbox() == []


@pytest.mark.parametrize(
    "fields",
    [{"sender_identity": "test:worker:mallory"}, {"thread_id": "thread-other"}, {"idempotency_key": "k2"},
     {"requires_ack": True},
     *(pytest.param(each, marks=pytest.mark.deep)
       for each in ({"workspace_id": "elsewhere"}, {"via": "sess-mall0ry0"}, {"origin": "lumenflow"}))],
)  # fmt: skip
def test_lines_of_one_idempotency_key_by_others_or_elsewhere_conflict(
    asked: tuple[Hub, Clone, Clone, dict[str, str]], fields: dict[str, object]
) -> None:
    """An answer would go to the sender of the earlier line, or into its thread. A retry of the sender is one signal."""
    hub, planck, curie, _ = asked
    signal = planck.send("Keyed", "--to", "Curie", "--intent", "PROPOSE", "--idempotency-key", "k1")
    planck.sync()
    original = hub.line_of(signal["signal_id"])
    again = {"sender_name": "again", "sender_session": "sess-aga1n000", "interrupt_class": "advisory"}
    hub.forge(changed(original, at=EARLIER, mac=None, **again, seen=[]))
    curie.sync()
    assert [each.get("conflict") for each in curie.inbox("--no-mark", "--thread", signal["thread_id"])] == [
        None
    ]

    hub.forge(changed(original, at=EARLIER, mac=None, **fields))
    curie.sync()
    found = [each for each in curie.inbox("--no-mark") if each["signal_id"] == signal["signal_id"]]
    assert len(found) == 2 and all(each["conflict"]["versions"] == 2 for each in found)
    refused = curie("reply", signal["signal_id"], "yes", "--agree", "--json")
    assert (refused.status, refused.json["error"]["code"]) == (2, "conflicting-lines")


@pytest.mark.deep
def test_many_lines_of_one_id_fill_no_inbox(asked: tuple[Hub, Clone, Clone, dict[str, str]]) -> None:
    """Four at a time, with the number of all; what was not shown stays unread."""
    hub, _, curie, signal = asked
    original = hub.line_of(signal["signal_id"])
    hub.forge(*(changed(original, at=EARLIER, message=f"text {number}", mac=None) for number in range(6)))
    curie.sync()
    first = curie("inbox", "--json").json
    assert [each["message"] for each in first["signals"]] == ["text 0", "text 1", "text 2", "text 3"]
    assert "3 not shown" in curie("inbox", "--no-mark").out
    then = [each["message"] for each in curie.inbox()]
    assert set(then) >= {"text 4", "text 5", "Delete the branch feature"} and len(then) == 4
    assert curie.inbox() == []


@pytest.mark.deep
def test_a_hook_marks_the_conflict(asked: tuple[Hub, Clone, Clone, dict[str, str]]) -> None:
    """What an agent gets without asking offers no way to agree either."""
    hub, _, curie, signal = asked
    forge(hub, signal, "Delete the branch main")
    curie.sync()
    given = curie("watch", "--exec", "cat >> events; kill -INT $PPID", "--write", "signals")
    events = [json.loads(each) for each in (curie.path / "events").read_text().splitlines()]
    assert events and events[0]["next"] == [f"gitmem thread {signal['signal_id']}", "gitmem doctor"], given
    assert "CONFLICT" in (curie.path / "signals").read_text()
    assert "--agree" not in (curie.path / "signals").read_text()


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"lane": "release"}, "lane"),
        ({"artifact_path": "b.txt"}, "artifact"),
        ({"sender_role": "x"}, "other fields"),
    ],
)
def test_a_conflict_says_in_what_the_lines_differ(
    asked: tuple[Hub, Clone, Clone, dict[str, str]], fields: dict[str, str], word: str
) -> None:
    """Also where that is not the message."""
    hub, _, curie, signal = asked
    hub.forge(changed(hub.line_of(signal["signal_id"]), **fields, mac=None))
    curie.sync()
    for each in curie("inbox", "--no-mark", "--json").json["signals"]:
        assert each["conflict"]["differs"] == [word]
