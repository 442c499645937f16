"""Everybody is told once that a work unit is done, when an agent says so; two clones make one signal of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import gitmem
from gitmem import records
from gitmem.agents import lifecycle
from gitmem.agents.caller import CallerClaims
from gitmem.errors import StoreError, UsageError
from gitmem.log.lines import CommitMessage
from gitmem.memory import checkpoints
from gitmem.records.ids import keyed_id
from gitmem.signals import announcements, inbox
from gitmem.store import Store
from tests.conftest import Git
from tests.sandbox import SECOND, Clock, acting, bodies, carry, new_repo, open_store

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
        assert (told.signal_id, told.was_recorded) == (ID, False)
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

    assert told.was_recorded
    assert "before" in told.remark
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
    "spellings", [("wu-7", "WU-7", "Wu-7", "#wu-7"), ("#123", "123"), ("Fix-Login", "fix-login")]
)
def test_spellings_of_one_work_unit_make_one_completion(repo: Path, spellings: tuple[str, ...]) -> None:
    """Who types it in another way announces the same: the id, the key and the text are those of one spelling."""
    store = open_store(repo, Clock())
    reader = acting(store, lifecycle.start(store, CallerClaims(), name="Bohr"))
    told = []
    for name, unit in zip(("Planck", "Curie", "Emmy", "Noether"), spellings, strict=False):
        caller = acting(store, lifecycle.start(store, CallerClaims(), name=name, wu=unit))
        told.append(announcements.announce(store, caller, announcements.unit_of(caller)))
    (seen,) = inbox.read(store, reader).signals

    assert {each.signal_id for each in told} == {seen["signal_id"]}
    assert [each.was_recorded for each in told] == [False, *[True] * (len(spellings) - 1)]
    assert seen["message"] == f"{seen['wu_id']} is done."
    assert seen["idempotency_key"] == f"completion {seen['wu_id']}"
    assert "conflict" not in seen


@pytest.mark.parametrize(
    ("unit", "shown"), [("fix-login", "fix-login"), ("#123", "123"), ("gh/7", "gh/7"), ("wu-7", "WU-7")]
)
def test_a_work_unit_of_any_form_can_be_done(repo: Path, unit: str, shown: str) -> None:
    """The broadcast names it in the spelling that all clones agree on."""
    store = open_store(repo, Clock())
    reader = acting(store, lifecycle.start(store, CallerClaims(), name="Bohr"))
    caller = acting(store, lifecycle.start(store, CallerClaims(), name="Planck", wu=unit))
    announcements.announce(store, caller, announcements.unit_of(caller))
    (seen,) = inbox.read(store, reader).signals

    assert (seen["message"], seen["wu_id"]) == (f"{shown} is done.", shown)
    assert "conflict" not in seen
    assert announcements.announce(store, caller, unit).was_recorded


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
    for name in ("mac", "clone"):
        fields.pop(name, None)
    forged = json.dumps(fields | changes, separators=(",", ":"), ensure_ascii=False).encode()

    store = open_store(repo, clock)
    reader = acting(
        store, lifecycle.start(store, CallerClaims(identity="claude-code:worker:bohr"), name="Bohr")
    )
    store.record([("signals", forged)], CommitMessage("a <a@b>", "sync"))
    clock.forward(SECOND)
    caller = acting(store, lifecycle.start(store, CallerClaims(), name="Planck", wu="WU-7"))

    assert not announcements.announce(store, caller, "WU-7").was_recorded
    assert "WU-7 is done." in [each["message"] for each in inbox.read(store, reader).signals]
    assert announcements.announce(store, caller, "WU-7").was_recorded


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


@pytest.mark.parametrize(("policy", "sent"), [("all", 2), ("milestones", 1), ("silent", 0)])
def test_an_unchanged_note_is_sent_once(repo: Path, git: Git, policy: str, sent: int) -> None:
    """Agents repeat their note; what they send as a milestone is sent again."""
    git("config", "gitmem.progress", policy, cwd=repo)
    store = open_store(repo, Clock())
    began = lifecycle.start(store, CallerClaims(), name="Planck")
    for milestone in (False, False, True):
        told = announcements.change_session(
            store, acting(store, began), activity=" split  the parser", milestone=milestone
        )
    assert told.activity == "split the parser"
    assert (told.remark == "Not sent: gitmem.progress is silent.") == (policy == "silent")

    assert len(signals(store)) == sent


def test_a_note_s_signal_has_the_fields_of_the_same_change(repo: Path, git: Git) -> None:
    """The name and the work unit that it is given with."""
    git("config", "gitmem.progress", "all", cwd=repo)
    store = open_store(repo, Clock())
    caller = acting(store, lifecycle.start(store, CallerClaims(), name="Planck"))
    announcements.change_session(store, caller, activity="split", name="Curie", wu="WU-7")

    (sent,) = (json.loads(line) for line in signals(store))
    assert (sent["sender_name"], sent["wu_id"]) == ("Curie", "WU-7")


def test_the_policy_holds_in_the_library(repo: Path, git: Git) -> None:
    """A log's caller tells as the command does."""
    git("config", "gitmem.progress", "all", cwd=repo)
    with gitmem.open(repo) as log:
        log.sessions.start(name="Planck")
        told = log.sessions.change(activity="split the parser")
        assert told.remark is not None and told.remark.startswith("Everybody is told (sig-")
        assert log.sessions.change(wu="WU-7").remark is None
        with pytest.raises(TypeError):
            log.sessions.change(activty="x")
