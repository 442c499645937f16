"""Work units: any issue key or branch name, stored as typed, the same in any case and with or without `#`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gitmem import records, views
from gitmem.agents import lifecycle, roster
from gitmem.agents.caller import Caller, CallerClaims
from gitmem.errors import UsageError
from gitmem.index import index_file, insert
from gitmem.memory import context, edit, knowledge, listing, session_checkpoints, triage
from gitmem.records import ids
from gitmem.signals import gate, history, inbox, send
from gitmem.store import Store
from tests.sandbox import Clock, acting, open_store

FORMS = ["123", "#123", "gh-123", "fix-login", "bd-a1b2", "feature/x_1.2", "WU-12", "wu-12", "#" + "a" * 99]
ALIKE = [("#123", "123"), ("Fix-Login", "fix-login"), ("GH-7", "#gh-7"), ("WU-12", "wu-12")]
HOSTILE = [
    "",
    " ",
    "a b",
    "a\nb",
    "a\0b",
    "\u202eWU-1",
    "WU-\u0661",
    "a,b",
    "$(id)",
    "a" * 101,
    "x" * 1_000_000,
    "Unlinked",
]


@pytest.fixture
def store(repo: Path) -> Store:
    return open_store(repo, Clock())


def start(store: Store, name: str, wu: str | None = None) -> Caller:
    found = lifecycle.start(store, CallerClaims(), name=name, agent_identity=f"a:b:{name.lower()}", wu=wu)
    return acting(store, found)


def lines_of(store: Store, kind: str) -> list[dict[str, Any]]:
    return [
        json.loads(body) for (body,) in store.db().execute("SELECT body FROM line WHERE kind = ?", (kind,))
    ]


@pytest.mark.parametrize("unit", FORMS)
def test_every_kind_of_record_keeps_a_unit_as_it_was_typed(store: Store, unit: str) -> None:
    curie, planck = start(store, "Curie", unit), start(store, "Planck")
    sent = send.send(store, planck, "look", to=["Curie"], wu=unit)
    made = edit.create(store, curie, "found", wu=unit)
    passed = gate.check(store, curie, wu=unit, reason="later")

    assert (sent.signal["wu_id"], made.node.wu_id, passed.wu_id) == (unit, unit, unit)
    assert [each["wu_id"] for each in roster.roster(store).sessions if each["display_name"] == "Curie"] == [
        unit
    ]
    for kind in ("session", "signal", "node", "audit"):
        line = lines_of(store, kind)[0]
        assert line["wu_id"] == unit, kind


@pytest.mark.parametrize(("typed", "asked"), [*ALIKE, *(pair[::-1] for pair in ALIKE)])
def test_every_comparison_takes_two_spellings_as_one(store: Store, typed: str, asked: str) -> None:
    """Gate, inbox, log and memory."""
    curie, planck = start(store, "Curie"), start(store, "Planck")
    sent = send.send(store, planck, "look", to=["Curie"], wu=typed, requires_ack=True)
    node = edit.create(store, planck, "found", wu=typed).node
    note = edit.create(store, planck, "where I am", wu=typed, type="checkpoint").node

    assert [each["wu_id"] for each in inbox.read(store, curie, wu=asked).signals] == [typed]
    assert gate.check(store, curie, wu=asked).unread == 1
    assert gate.check(store, curie, wu=asked, reason="later").passed
    assert gate.check(store, curie, wu=typed).open
    assert {each.get("signal_id") or each.get("id") for each in history.log(store, wu=asked).entries} >= {
        sent.signal["signal_id"], node.id,
    }  # fmt: skip
    assert {each.id for each in listing.by_wu(store, asked)} == {node.id, note.id}
    assert node.id in {each.id for each in listing.ready(store, asked).nodes}
    assert "found" in context.context_at(store, None, wu=asked).block
    assert session_checkpoints.last_checkpoint(store, None, asked, None).id == note.id  # type: ignore[union-attr]
    assert [each.id for each in triage.listing(store, wu=asked).discoveries] == [node.id]
    assert knowledge.summarize(store, planck, asked).source_ids == [node.id]


@pytest.mark.parametrize("unit", HOSTILE)
def test_what_can_name_no_unit_is_refused_with_the_valid_form(store: Store, unit: str) -> None:
    """Also a megabyte, in a short answer, and the word of filters for "no work unit"."""
    curie = start(store, "Curie")
    before = store.db().execute("SELECT count(*) FROM line").fetchone()
    if unit:
        for write in (
            lambda: send.send(store, curie, "look", broadcast=True, wu=unit),
            lambda: edit.create(store, curie, "found", wu=unit),
            lambda: lifecycle.change(store, curie, wu=unit),
            lambda: gate.check(store, curie, wu=unit),
        ):
            with pytest.raises(UsageError) as refused:
                write()
            said = refused.value.message + refused.value.hint
            assert ids.UNIT_FORM in said and len(said) < 300, said
    assert not ids.is_work_unit(unit)
    assert store.db().execute("SELECT count(*) FROM line").fetchone() == before


def test_a_unit_that_nobody_named_does_not_open_the_gate(store: Store) -> None:
    """A typing error is answered with the units that are spelt alike; the caller can say that it is new."""
    curie, planck = start(store, "Curie"), start(store, "Planck", "fix-login")
    send.send(store, planck, "look", to=["Curie"], wu="fix-login")

    with pytest.raises(UsageError) as refused:
        gate.check(store, curie, wu="fix-logn")

    assert (refused.value.status, refused.value.code) == (2, "unknown-work-unit")
    assert refused.value.suggestions == ["fix-login"]
    assert refused.value.next == [
        "gitmem gate --wu fix-login", "gitmem session set --wu fix-logn", "gitmem gate --wu fix-logn --new",
    ]  # fmt: skip
    assert gate.check(store, curie, wu="fix-logn", new=True).open
    push = gate.check(store, curie, wu="fix-logn", push=True)
    assert push.open and "fix-logn" in push.warnings[0]  # a push goes on
    lifecycle.change(store, curie, wu="fix-logn")
    assert gate.check(store, curie, wu="fix-logn").open


def test_a_signal_on_a_unit_that_nobody_named_has_a_warning(store: Store) -> None:
    """Once: then it is named. The work unit of the sender's session needs none."""
    curie, planck = start(store, "Curie"), start(store, "Planck", "fix-login")

    warned = send.send(store, planck, "look", to=["Curie"], wu="fix-logn").warnings
    assert warned == [
        "No session, signal or memory node names the work unit fix-logn yet. Check its spelling."
    ]
    for writer, unit in ((planck, "FIX-LOGN"), (planck, "#Fix-Login"), (curie, "fix-login")):
        assert (
            send.send(store, writer, "look", to=["Curie" if writer is planck else "Planck"], wu=unit).warnings
            == []
        )


def test_a_session_moves_from_one_unit_to_another(store: Store) -> None:
    curie = start(store, "Curie", "WU-1")

    for unit in ("fix-login", "WU-2", "#7"):
        assert lifecycle.change(store, curie, wu=unit).wu_id == unit
    assert lifecycle.change(store, curie, wu="").wu_id is None


def bodies_of(store: Store) -> list[str]:
    return [body for (body,) in store.db().execute("SELECT body FROM line ORDER BY id")]


def test_the_units_of_the_log_are_the_same_in_any_order_of_lines(store: Store) -> None:
    """Of several spellings one is shown, whichever came first; a unit that a node was only moved to is known, too."""
    planck = start(store, "Planck", "Fix-Login")
    send.send(store, planck, "hello", wu="#fix-login")
    node = edit.create(store, planck, "x", wu="A-1").node.id
    edit.change(store, planck, [node], wu="B-2")
    lines = [body.encode() for body in bodies_of(store)]
    found = []
    for order in (lines, lines[::-1]):
        index = index_file.in_memory(views.VIEWS, records.read)
        index.reshape()
        for number, line in enumerate(order):
            insert.lines(index, number + 1, [line])
        found.append(index.db.execute("SELECT key, name FROM unit ORDER BY key").fetchall())

    assert found == [[("a-1", "A-1"), ("b-2", "B-2"), ("fix-login", "#fix-login")]] * 2
