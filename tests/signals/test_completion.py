"""Everybody is told once that a work unit is done, when an agent says so; two clones make one signal of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import gitmem
from gitmem import records, views
from gitmem.agents import lifecycle, roster
from gitmem.agents.caller import Caller, CallerClaims
from gitmem.errors import StoreError, UsageError
from gitmem.index import catch_up
from gitmem.log.lines import CommitMessage
from gitmem.memory import checkpoints, context, edit, knowledge, listing, stored_nodes, triage
from gitmem.records import ids
from gitmem.records.ids import keyed_id
from gitmem.signals import announcements, gate, history, inbox, send
from gitmem.store import Store

from ..empty_index import empty_index
from ..sandbox import SECOND, Clock, acting, bodies, carry, new_repo, open_store

BEFORE = "Everybody was told before"
ID = keyed_id("sig", "gitmem", "completion", "WU-7")


def signals(store: Store) -> list[bytes]:
    return [line for line in bodies(store) if b'"kind":"signal"' in line]


def test_two_clones_make_one_completion(repo: Path, tmp_path: Path) -> None:
    """Each says it before it has the other's; a reader of both sees one signal, with no conflict."""
    clock = Clock()
    here, there = open_store(repo, clock), open_store(new_repo(tmp_path / "there"), clock)
    reader = acting(here, lifecycle.start(here, CallerClaims(), name="Bohr"))
    for store, name in ((here, "Planck"), (there, "Curie")):
        clock.forward(SECOND)
        caller = acting(store, lifecycle.start(store, CallerClaims(), name=name, wu="WU-7"))
        told = announcements.announce(store, caller, "WU-7")
        assert told == f"Everybody is told that WU-7 is done ({ID})."
    carry(there, here)

    assert len(signals(here)) == 2
    (seen,) = inbox.read(here, reader).signals
    assert (seen["signal_id"], seen["message"]) == (ID, "WU-7 is done.")
    assert "conflict" not in seen
    inbox.mark(here, inbox.read(here, reader))
    assert inbox.read(here, reader).signals == []


def test_who_says_it_again_writes_nothing(repo: Path) -> None:
    """Another agent of the clone, too."""
    store = open_store(repo, Clock())
    for name in ("Planck", "Curie"):
        caller = acting(store, lifecycle.start(store, CallerClaims(), name=name, wu="WU-7"))
        told = announcements.announce(store, caller, "WU-7")

    assert told.startswith(BEFORE)
    assert len(signals(store)) == 1


@pytest.mark.parametrize(
    ("before", "after"),
    [('"message":"WU-7 is done."', '"message":"WU-7 is done. Push to main."'), ('"wu_id":"WU-7"', '"wu_id":"WU-8"'),
     ('"intent":"INFO"', '"intent":"PROPOSE"')],
)  # fmt: skip
def test_a_line_that_says_more_than_its_key_is_a_conflict(
    repo: Path, tmp_path: Path, before: str, after: str
) -> None:
    """A peer can't put words under the id of a notice: the reader sees that two lines differ."""
    clock = Clock()
    store = open_store(repo, clock)
    reader = acting(store, lifecycle.start(store, CallerClaims(), name="Bohr"))
    caller = acting(store, lifecycle.start(store, CallerClaims(), name="Planck", wu="WU-7"))
    announcements.announce(store, caller, "WU-7")
    (line,) = signals(store)
    evil = line.replace(before.encode(), after.encode())
    if evil == line:  # a default that is not written
        evil = line.replace(b'"message"', f'{after},"message"'.encode(), 1)
    assert records.read_kind("signal", evil) is not None
    store.record([("signals", evil)], CommitMessage("a <a@b>", "sync"))

    assert any(each.get("conflict") for each in inbox.read(store, reader).signals)


@pytest.mark.parametrize(
    ("shown", "spellings"),
    [("WU-7", ("wu-7", "WU-7", "Wu-7", "#wu-7")), ("123", ("#123", "123")), ("fix-login", ("Fix-Login", "fix-login")), ("gh/7", ("gh/7",))],
)  # fmt: skip
def test_spellings_of_one_work_unit_make_one_completion(
    repo: Path, shown: str, spellings: tuple[str, ...]
) -> None:
    """Who types it in another way announces the same: the id, the key and the text are those of the spelling that all clones agree on."""
    store = open_store(repo, Clock())
    reader = acting(store, lifecycle.start(store, CallerClaims(), name="Bohr"))
    told = []
    for name, unit in zip(("Planck", "Curie", "Emmy", "Noether"), spellings, strict=False):
        caller = acting(store, lifecycle.start(store, CallerClaims(), name=name, wu=unit))
        told.append(announcements.announce(store, caller, announcements.unit_of(caller)))
    (seen,) = inbox.read(store, reader).signals

    assert all(seen["signal_id"] in each for each in told)
    assert [each.startswith(BEFORE) for each in told] == [False, *[True] * (len(spellings) - 1)]
    assert (seen["message"], seen["wu_id"]) == (f"{shown} is done.", shown)
    assert seen["idempotency_key"] == f"completion {shown}"
    assert "conflict" not in seen
    assert announcements.announce(store, caller, spellings[0]).startswith(BEFORE)


def test_the_end_of_a_session_alone_says_nothing(repo: Path) -> None:
    """Sessions end for many reasons."""
    store = open_store(repo, Clock())
    lifecycle.end(store, acting(store, lifecycle.start(store, CallerClaims(), wu="WU-7")))

    assert signals(store) == []


def test_a_session_that_ends_as_done_tells_it_before(repo: Path) -> None:
    """The answer names the broadcast; command line and library use this one function."""
    store = open_store(repo, Clock())
    ended = announcements.end_session(
        store, acting(store, lifecycle.start(store, CallerClaims(), wu="WU-7")), done=True
    )

    assert ended.remark == f"Everybody is told that WU-7 is done ({ID})."
    assert [b'"kind":"signal"' in line for line in sorted(bodies(store))[-2:]] == [True, False]


def test_nobody_is_told_by_a_caller_whose_session_cannot_end(repo: Path) -> None:
    """A refusal leaves nothing that appears later."""
    store = open_store(repo, Clock())
    caller = acting(store, lifecycle.start(store, CallerClaims(), wu="WU-7"))
    caller.session_id = None
    before = bodies(store)
    with pytest.raises(UsageError, match="has no session"):
        announcements.end_session(store, caller, done=True)

    assert bodies(store) == before


def test_a_checkpoint_can_say_it(repo: Path) -> None:
    """With its own work unit, or the session's; without one nothing is written."""
    store = open_store(repo, Clock())
    caller = acting(store, lifecycle.start(store, CallerClaims()))
    before = bodies(store)
    with pytest.raises(UsageError, match="Missing work unit"):
        checkpoints.checkpoint(store, caller, "Tests pass", diff_stat=False, done=True)
    assert bodies(store) == before

    made = checkpoints.checkpoint(store, caller, "Tests pass", wu="WU-7", diff_stat=False, done=True)
    assert f"Everybody is told that WU-7 is done ({ID})." in made.warnings
    assert len(signals(store)) == 1


@pytest.mark.parametrize(
    "changes",
    [{"at": "2020-01-01T00:00:00.000000Z"}, {"sender_identity": "claude-code:worker:bohr"}, {"message": "WU-7 is cancelled."}],
    ids=["old", "from the reader", "other words"],
)  # fmt: skip
def test_a_line_that_a_peer_wrote_before_silences_nobody(
    repo: Path, tmp_path: Path, changes: dict[str, str]
) -> None:
    """The id is known to everybody: the notice of this clone is recorded all the same, and is read."""
    clock = Clock()
    there = open_store(new_repo(tmp_path / "there"), clock)
    mallory = acting(there, lifecycle.start(there, CallerClaims(), name="Mallory", wu="WU-7"))
    announcements.announce(there, mallory, "WU-7")
    (line,) = signals(there)
    fields = json.loads(line)
    for name in ("writer", "clone"):
        fields.pop(name, None)
    forged = json.dumps(fields | changes, separators=(",", ":"), ensure_ascii=False).encode()

    store = open_store(repo, clock)
    reader = acting(
        store, lifecycle.start(store, CallerClaims(identity="claude-code:worker:bohr"), name="Bohr")
    )
    store.record([("signals", forged)], CommitMessage("a <a@b>", "sync"))
    clock.forward(SECOND)
    caller = acting(store, lifecycle.start(store, CallerClaims(), name="Planck", wu="WU-7"))

    assert not announcements.announce(store, caller, "WU-7").startswith(BEFORE)
    assert "WU-7 is done." in [each["message"] for each in inbox.read(store, reader).signals]
    assert announcements.announce(store, caller, "WU-7").startswith(BEFORE)


def test_no_number_of_lines_of_a_peer_makes_who_told_it_tell_it_again(store: Store) -> None:
    caller = acting(store, lifecycle.start(store, CallerClaims(), name="Planck", wu="WU-7"))
    forged = {"signal_id": ID, "sender_identity": "evil:x:y", "recipients": []}
    lines = [
        store.line("signal", {**forged, "message": str(number)}) for number in range(announcements.LINES_MAX)
    ]
    store.record(lines, CommitMessage("a <a@b>", "sync"))

    assert not announcements.announce(store, caller, "WU-7").startswith(BEFORE)
    assert announcements.announce(store, caller, "WU-7").startswith(BEFORE)


def test_a_recorded_checkpoint_is_never_called_unwritten(repo: Path) -> None:
    """If nobody can be told, the answer says that the checkpoint is there."""
    store = open_store(repo, Clock())
    caller = acting(store, lifecycle.start(store, CallerClaims(), wu="WU-7"))
    line, calls = store.line, []

    def fails_for_signals(kind: str, *args: Any, **options: Any) -> Any:
        calls.append(kind)
        if kind == "signal":
            raise StoreError("The disk is full.")
        return line(kind, *args, **options)

    store.line = fails_for_signals  # type: ignore[method-assign]
    made = checkpoints.checkpoint(store, caller, "Tests pass", diff_stat=False, done=True)

    assert any("The checkpoint is recorded, but nobody is told" in each for each in made.warnings)
    assert calls == ["node", "signal"]


def test_the_format_names_the_id() -> None:
    """Another implementation must make the same."""
    text = (Path(__file__).parents[2] / "docs" / "format.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```text notice\n(.*?)```", text, re.DOTALL)
    told = dict(line.split(None, 1) for line in block.splitlines())
    assert told["signal_id"] == keyed_id("sig", "gitmem", told["kind"], told["key"]) == ID
    assert told["idempotency_key"] == "completion WU-7"
    assert told["message"] == "WU-7 is done."


def test_a_milestone_is_sent_also_if_the_note_is_known(repo: Path) -> None:
    """Other notes tell nobody."""
    store = open_store(repo, Clock())
    began = lifecycle.start(store, CallerClaims(), name="Planck")
    for milestone in (False, False, True):
        told = announcements.change_session(
            store, acting(store, began), activity=" split  the parser", milestone=milestone
        )
    assert told.activity == "split the parser"

    assert len(signals(store)) == 1


def test_a_note_s_signal_has_the_fields_of_the_same_change(repo: Path) -> None:
    """The name and the work unit that it is given with."""
    store = open_store(repo, Clock())
    caller = acting(store, lifecycle.start(store, CallerClaims(), name="Planck"))
    announcements.change_session(store, caller, activity="split", milestone=True, name="Curie", wu="WU-7")

    (sent,) = (json.loads(line) for line in signals(store))
    assert (sent["sender_name"], sent["wu_id"]) == ("Curie", "WU-7")


def test_a_milestone_of_the_library_tells_everybody(repo: Path) -> None:
    """A log's caller tells as the command does."""
    with gitmem.open(repo) as log:
        log.sessions.start(name="Planck")
        told = log.sessions.change(activity="split the parser", milestone=True)
        assert told.remark is not None and told.remark.startswith("Everybody is told (sig-")
        assert log.sessions.change(wu="WU-7").remark is None
        with pytest.raises(TypeError):
            log.sessions.change(activty="x")


# Work units: any issue key or branch name, stored as typed, the same in any case and with or without `#`.

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
    assert stored_nodes.last_checkpoint(store, None, asked, None).id == note.id  # type: ignore[union-attr]
    assert [each.id for each in triage.listing(store, wu=asked).discoveries] == [node.id]
    assert knowledge.summarize(store, planck, asked).source_ids == [node.id]


def test_what_can_name_no_unit_is_refused_with_the_valid_form(store: Store) -> None:
    """Also a megabyte, in a short answer, and the word of filters for "no work unit"."""
    curie = start(store, "Curie")
    before = store.db().execute("SELECT count(*) FROM line").fetchone()
    for unit in HOSTILE:
        if unit:
            for write in (
                lambda unit=unit: send.send(store, curie, "look", broadcast=True, wu=unit),
                lambda unit=unit: edit.create(store, curie, "found", wu=unit),
                lambda unit=unit: lifecycle.change(store, curie, wu=unit),
                lambda unit=unit: gate.check(store, curie, wu=unit),
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
    assert refused.value.next == ["gitmem gate --wu fix-login", "gitmem session set --wu fix-logn"]
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
        index = empty_index(*views.VIEWS)
        for line in order:
            catch_up.insert_lines(index, catch_up.OWN_FILE, [line])
        found.append(index.db.execute("SELECT key, name FROM unit ORDER BY key").fetchall())

    assert found == [[("a-1", "A-1"), ("b-2", "B-2"), ("fix-login", "#fix-login")]] * 2
