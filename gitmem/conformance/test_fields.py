"""Fields: what a signal carries from its sender to its reader."""

from __future__ import annotations

import datetime
import re
from typing import Any

import pytest

from .adapter import FullBus, Refused
from .case_setup import A, B, C, needs, read, session, sessions, written


def test_a_signal_has_the_fields_of_the_contract(bus: FullBus) -> None:
    """A2A.V1: “A signal has version, id, time, sender, recipients, intent, interrupt class, `requires_ack` and origin.”"""
    a, b = sessions(bus, A, B)
    sent = bus.send(a, "as it is", to=[B])
    (got,) = bus.inbox(b)
    at = datetime.datetime.fromisoformat(sent["created_at"])

    assert at.utcoffset() == datetime.timedelta(0)
    assert (sent["schema_version"], sent["sender_identity"], sent["origin"]) == ("A2A.V1", A, "local")
    assert (sent["intent"], sent["requires_ack"], sent["message"]) == ("INFO", False, "as it is")
    for field in ("signal_id", "created_at", "sender_identity", "recipients", "thread_id", "message"):
        assert got.get(field) == sent.get(field), field


def test_a_signals_id_is_its_own(bus: FullBus) -> None:
    """gitmem: “A signal id is `sig-` and 4 to 32 characters of a-z and 0-9, and is unique.”"""
    a = session(bus, A)
    found = [bus.send(a, "the same words")["signal_id"] for _ in range(3)]

    assert all(re.fullmatch(r"sig-[a-z0-9]{4,32}", each) for each in found)
    assert len(set(found)) == 3


def test_a_sender_without_identity_is_its_session(bus: FullBus) -> None:
    """A2A.V1: “A sender without an agent identity is identified by its session id.”"""
    a = session(bus)

    assert bus.send(a, "signed")["sender_identity"] == a


@pytest.mark.parametrize("to", [[], [B]], ids=["broadcast", "directed"])
def test_a_signal_keeps_its_work_unit_and_lane(bus: FullBus, to: list[str]) -> None:
    """A2A.V1: “A signal keeps work unit, initiative, lane and `requires_ack` as given.”"""
    a, b = sessions(bus, A, B)
    bus.send(
        a,
        "x",
        to=to,
        wu_id="WU-123",
        initiative_id="INIT-7",
        lane="Core",
        artifact_path="docs/a.md",
        requires_ack=True,
    )
    (got,) = bus.inbox(b)

    assert (got.get("wu_id"), got.get("initiative_id"), got.get("lane")) == ("WU-123", "INIT-7", "Core")
    assert (got.get("artifact_path"), got["requires_ack"]) == ("docs/a.md", True)


@pytest.mark.parametrize("to", [[], [B]], ids=["broadcast", "directed"])
def test_a_signal_wishes_for_an_answer(bus: FullBus, to: list[str]) -> None:
    """A2A.V1: “A signal with `requires_ack` has it for each of its readers, also a broadcast; without it, it is false.”"""
    a, b, c = sessions(bus, A, B, C)
    bus.send(a, "please answer", to=[*to, C] if to else [], requires_ack=True)
    bus.send(a, "as you like", to=[*to, C] if to else [])

    for each in (b, c):
        assert [got["requires_ack"] for got in bus.inbox(each)] == [True, False]


def test_a_message_stays_as_it_was_written(bus: FullBus) -> None:
    """gitmem: “A message is stored unchanged.”"""
    a, b = sessions(bus, A, B)
    text = '  two\n\nlines, a tab\t"quotes", \\n, ünïcode \N{SNOWMAN} and trailing space \n'
    sent = bus.send(a, text, to=[B])

    assert (sent["message"], read(bus, b)) == (text, [[text]])


def test_a_message_has_a_size(bus: FullBus) -> None:
    """gitmem: “A message has 1 byte to 64 KiB; any other is refused.”"""
    a, b = sessions(bus, A, B)
    most = 64 * 1024
    for text in ("", "m" * (most + 1), "ü" * (most // 2 + 1)):
        with pytest.raises(Refused):
            bus.send(a, text, to=[B])
    assert bus.inbox(b) == []

    assert len(bus.send(a, "ü" * (most // 2), to=[B])["message"]) == most // 2


def test_roles_and_delegation_travel_with_a_signal(bus: FullBus) -> None:
    """A2A.V1: “A signal keeps the role that it is meant for and its delegation as given.”"""
    a, b = sessions(bus, A, B)
    bus.send(a, "x", to=[B], target_role="tester", delegation_id="deleg-1")
    (got,) = bus.inbox(b)

    assert (got.get("target_role"), got.get("delegation_id")) == ("tester", "deleg-1")


def test_a_signal_has_no_role_that_its_sender_does_not_state(bus: FullBus) -> None:
    """gitmem: “A sender without a stated role has no `sender_role`, whatever the parts of its agent identity are.”"""
    a, b = sessions(bus, A, B)
    bus.send(a, "x", to=[B])

    assert [each.get("sender_role") for each in bus.inbox(b)] == [None]


def test_a_signal_has_the_workspace_of_its_sender(bus: FullBus) -> None:
    """A2A.V1: “A signal names the workspace of its sender: `workspace_id`.”"""
    a, b = (bus.start(identity=each, workspace="w-1")["session_id"] for each in (A, B))
    sent = bus.send(a, "x", to=[B])

    assert [each.get("workspace_id") for each in (sent, *bus.inbox(b))] == ["w-1", "w-1"]


@needs("take")
def test_a_signal_of_another_program_keeps_its_fields(bus: FullBus) -> None:
    """A2A.V1: “A signal of another program keeps roles, delegation and workspace.”"""
    a, _ = sessions(bus, A, B)
    given: dict[str, Any] = {
        "sender_role": "builder",
        "target_role": "planner",
        "delegation_id": "deleg-1",
        "workspace_id": "w-1",
    }
    bus.take(written("sig-aaaa1111", B, [A], "x", **given))
    (got,) = bus.inbox(a)

    assert {name: got.get(name) for name in given} == given
