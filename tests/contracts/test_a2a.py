"""What gitmem promises beside the A2A.V1 contract, whose cases are in gitmem/conformance/."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import gitmem
from gitmem import UsageError
from gitmem.agents import lifecycle
from gitmem.log.lines import CommitMessage
from tests.sandbox import annas, bodies
from tests.signing import own_key

from ..empty_index import empty_index

A, B, C = map(annas, ("claude:planner:one", "codex:builder:two", "gemini:tester:three"))


class World:
    """One clone, a clock that moves a second with every look, and whoever is asked for."""

    def __init__(self, repo: Path) -> None:
        own_key(repo)
        self.repo = repo
        self.micros = 1_793_000_000_000_000
        self.open: list[gitmem.Log] = []

    def now(self) -> int:
        self.micros += 1_000_000
        return self.micros

    def agent(self, identity: str | None = None, name: str | None = None, **options: str) -> gitmem.Log:
        log = gitmem.open(str(self.repo), identity=identity, now=self.now)
        log.sessions.start(name=name, **options)
        self.open.append(log)
        return log


@pytest.fixture
def world(repo: Path) -> Iterator[World]:
    made = World(repo)
    yield made
    for log in made.open:
        log.close()


def messages(log: gitmem.Log, **filters: object) -> list[str]:
    return [str(signal["message"]) for signal in log.inbox(**filters).signals]


def test_an_unknown_intent_is_refused(world: World) -> None:
    """Nothing is written."""
    b = world.agent(B)
    tip = b.store.git.tip("refs/gitmem/log")
    with pytest.raises(UsageError, match="intent"):
        b.signals.send("x", intent="MAYBE")

    assert b.store.git.tip("refs/gitmem/log") == tip


def test_an_idempotency_key_is_one_signal(world: World) -> None:
    """The same content again is the same signal, in the same commit; other content is an error."""
    world.agent(A)
    b = world.agent(B)
    first = b.signals.send("x", to=[A], idempotency_key="k")
    again = b.signals.send("x", to=[A], idempotency_key="k")

    assert (again.signal["signal_id"], again.commit) == (first.signal["signal_id"], first.commit)
    with pytest.raises(UsageError, match="key"):
        b.signals.send("y", to=[A], idempotency_key="k")
    with pytest.raises(UsageError, match="other content"):
        b.signals.send("x", to=[A], idempotency_key="k", requires_ack=True)


def test_an_idempotency_key_is_one_signal_also_from_two_clones(world: World, tmp_path: Path) -> None:
    """A retry on another machine is no second signal, and can be answered without ambiguity."""
    _, other = _hub(world.repo, tmp_path)
    a, here = world.agent(A), world.agent(B)
    a.sync(publish=True)
    there = World(other)
    there.micros = world.micros
    b = there.agent(B)
    b.sync(publish=True)
    first = here.signals.send("x", to=[A], idempotency_key="k", intent="PROPOSE")
    second = b.signals.send("x", to=[A], idempotency_key="k", intent="PROPOSE")
    b.sync()
    a.sync()
    b.close()

    assert first.signal["signal_id"] == second.signal["signal_id"]
    assert messages(a) == ["x"]
    a.signals.reply(str(first.signal["signal_id"]), "yes", intent="AGREE")
    assert a.converged(str(first.signal["signal_id"])).converged


def test_a_reply_answers_what_it_names_first(world: World) -> None:
    """Another `reply_to` is an error: ignoring it would answer a signal that the writer did not mean."""
    a, b = world.agent(A), world.agent(B)
    one, other = (a.signals.send(each, to=[B]).signal["signal_id"] for each in ("one", "other"))
    with pytest.raises(TypeError, match="reply_to"):
        b.signals.reply(one, "yes", reply_to=other)

    assert len(a.inbox().signals) == 0
    assert b.signals.reply(one, "yes").signal["reply_to"] == one


def test_role_and_delegation_are_fields_and_choose_no_recipients(world: World) -> None:
    """As given, in JSON; a line end in one of them is refused and nothing is written."""
    a, b = world.agent(A), world.agent(B)
    about = {"target_role": "tester", "delegation_id": "deleg-1"}
    sent = a.signals.send("x", to=[B], **about).signal

    (got,) = b.inbox().signals
    assert {field: got[field] for field in about} == about  # type: ignore[literal-required]
    assert sent["recipients"] == [B]
    for field in about:
        with pytest.raises(UsageError, match=field):
            a.signals.send("x", to=[B], **{field: "a\nb"})
        with pytest.raises(UsageError, match=field):
            a.signals.send("x", to=[B], **{field: "a" * 201})
    assert b.inbox().signals == []


def test_a_receipt_is_recorded_once(world: World) -> None:
    """However often it is read."""
    a, b = world.agent(A), world.agent(B)
    root = str(b.signals.send("x", to=[A]).signal["signal_id"])
    messages(a)
    messages(a, all=True)
    messages(a, all=True)

    rows = a.store.db().execute("SELECT count(*) FROM line WHERE kind = 'receipt'").fetchone()
    assert rows == (1,)
    assert b.thread(root).recipients[0].delivery_state == "delivered"


def _proposal(world: World) -> tuple[gitmem.Log, gitmem.Log, gitmem.Log, str]:
    a, b, c = world.agent(A), world.agent(B), world.agent(C)
    return a, b, c, str(a.signals.send("shall we?", to=[B, C], intent="PROPOSE").signal["signal_id"])


def test_an_agreement_to_what_was_replaced_is_none_to_the_counter(world: World) -> None:
    """An AGREE that came before a later COUNTER stays one to the first proposal."""
    a, b, c, root = _proposal(world)
    b.signals.reply(root, "y", intent="AGREE")
    c.signals.reply(root, "rather so?", intent="COUNTER", to=[A, B])
    found = a.converged(root)
    assert (found.converged, found.replaced, found.pending, found.countered) == (False, True, [A, B], [C])
    c.signals.reply(root, "fine", intent="AGREE")

    found = a.converged(root)
    assert found.agreed_on is not None and found.agreed_on.signal_id == root


def test_a_session_that_was_addressed_and_then_gets_an_identity_still_answers(world: World) -> None:
    """Its mail stays its own, and its AGREE counts for the session that was asked."""
    a, late = world.agent(A), world.agent(name="Late")
    root = str(a.signals.send("x", to=["Late"], intent="PROPOSE").signal["signal_id"])
    from gitmem.agents import lifecycle

    lifecycle.change(late.store, late.caller, agent_identity=B)

    assert messages(late) == ["x"]
    assert messages(late) == []
    late.signals.reply(root, "y", intent="AGREE")
    assert a.converged(root).converged


def _hub(repo: Path, tmp_path: Path) -> tuple[Path, Path]:
    hub, other = tmp_path / "hub.git", tmp_path / "other"
    for args in (
        ["clone", "--quiet", "--bare", str(repo), str(hub)],
        ["-C", str(repo), "remote", "add", "origin", str(hub)],
        ["clone", "--quiet", str(hub), str(other)],
    ):
        subprocess.run(["git", *args], check=True)
    return hub, other


def test_a_word_in_a_thread_answers_its_root(world: World) -> None:
    """So that a clock that is behind never makes it the root."""
    a, b = world.agent(A), world.agent(B)
    root = b.signals.send("x", to=[A])
    said = b.signals.send("y", thread=str(root.signal["thread_id"]))

    assert said.signal["reply_to"] == root.signal["signal_id"]
    assert said.signal["recipients"] == [A]
    assert messages(a) == ["x", "y"]


def test_an_own_broadcast_stays_ones_own_with_a_new_identity(world: World) -> None:
    """It was said by this session, whatever it is called now."""
    from gitmem.agents import lifecycle

    late = world.agent()
    late.signals.send("mine")
    lifecycle.change(late.store, late.caller, agent_identity=A)

    assert messages(late) == []


def test_a_second_word_on_ones_own_letter_is_no_broadcast(world: World) -> None:
    """Where only oneself is in a conversation, the word stays there."""
    late, b = world.agent(name="Late"), world.agent(B)
    note = late.signals.send("note to self", to=["Late"])
    from gitmem.agents import lifecycle

    lifecycle.change(late.store, late.caller, agent_identity=A)
    late.signals.reply(str(note.signal["signal_id"]), "private follow-up")

    assert messages(b) == []


def test_everything_shows_what_was_sent_here_and_no_receipt_that_is_not(world: World) -> None:
    """`all` keeps to the workspace, and says delivered only of what was."""
    a = world.agent(A, workspace="red")
    b = world.agent(B, workspace="blue")
    a.signals.send("red")
    b.inbox(mark=False)
    shown = b.inbox(mark=False, all=True).signals

    assert [(each["message"], each["delivery_state"]) for each in shown] == []


def test_one_key_from_two_sessions_counts_the_same_in_every_order(world: World) -> None:
    """Also where one of them has a workspace and the other has none."""
    from gitmem import views
    from gitmem.agents import mailbox
    from gitmem.index import catch_up

    a, b = world.agent(A), world.agent(A, workspace="red")
    reader = world.agent(B, workspace="blue")
    for log in (a, b):
        line = log.store.line(
            "signal",
            {"schema_version": "A2A.V1", "signal_id": "sig-same", "sender_identity": A, "message": "x",
             "recipients": [B], "idempotency_key": "k", "thread_id": "thread-x",
             "workspace_id": log.caller.workspace, "sender_session": log.caller.session_id},
        )  # fmt: skip
        log.store.record([line], CommitMessage("x <x>", "x"))
    lines = [body.encode() for (body,) in reader.store.db().execute("SELECT body FROM line ORDER BY id")]
    counts = []
    for order in (lines, lines[::-1]):
        index = empty_index(*views.VIEWS)
        for line in order:
            catch_up.insert_lines(index, catch_up.OWN_FILE, [line])
        counts.append(sorted(mailbox.unread_ids(index.db, B, None, "blue", world.now())))

    assert counts[0] == counts[1] == [(B, "sig-same")]


def test_a_signal_that_its_recipient_would_never_see_is_refused(world: World) -> None:
    """Nothing is written, also if others could see it; a session of the same agent here is enough."""
    a = world.agent(A, workspace="red")
    world.agent(B, workspace="blue", name="Curie")
    world.agent(C)

    for to in ([B], [B, C]):
        with pytest.raises(UsageError, match="Curie is in workspace blue") as refused:
            a.signals.send("x", to=to)
        assert refused.value.code == "other-workspace"
    assert a.signals.send("x", to=[C]).warnings == []
    assert world.agent(C).signals.send("x", to=[B]).warnings == []
    world.agent(B, workspace="red")
    assert a.signals.send("x", to=[B]).recorded


def test_a_retry_by_key_succeeds_after_its_recipient_has_moved(world: World) -> None:
    """The signal is recorded: the answer must not say that nothing was written."""
    a, b = world.agent(A, workspace="red"), world.agent(B, workspace="red", name="Curie")
    first = a.signals.send("x", to=[B], idempotency_key="k").signal["signal_id"]
    lifecycle.change(b.store, b.caller, workspace="blue")

    assert a.signals.send("x", to=[B], idempotency_key="k").signal["signal_id"] == first


def test_a_forged_move_to_another_workspace_stops_no_mail(world: World) -> None:
    """Of a session of this clone only its own records count, of another one every workspace that it was in."""
    a, b = world.agent(A, workspace="red"), world.agent(B, workspace="red", name="Curie")
    genuine = next(
        line for line in bodies(a.store) if b'"session_id":"' + b.caller.session_id.encode() in line
    )
    record = {name: value for name, value in json.loads(genuine).items() if name not in ("writer", "clone")}
    moved = {**record, "at": "2026-12-31T00:00:00.000000Z", "event": "change", "workspace_id": "evil"}
    line = json.dumps(moved, separators=(",", ":")).encode()
    a.store.record([("sessions", line)], CommitMessage("a <a@b>", "sync"))

    sent = a.signals.send("x", to=[B])
    assert sent.recorded
    assert "evil" not in str(sent.next)


def test_a_word_in_a_thread_of_one_has_one_recipient(world: World) -> None:
    """Who is alone in a thread stays its recipient, once: none would be a broadcast."""
    a = world.agent(A)
    note = a.signals.send("note", to=[A]).signal

    assert a.signals.send("more", thread=str(note["thread_id"])).signal["recipients"] == [A]


def test_a_counter_proposal_goes_to_the_whole_thread(world: World) -> None:
    """Each party has to answer it, so `to` only adds readers; an answer of another kind goes to the asker alone."""
    a, b, c = world.agent(A), world.agent(B), world.agent(C)
    root = str(a.signals.send("so?", to=[B, C], intent="PROPOSE").signal["signal_id"])

    assert set(b.signals.reply(root, "rather so", intent="COUNTER").signal["recipients"]) == {A, C}
    assert c.signals.reply(root, "yes", intent="AGREE").signal["recipients"] == [A]
    assert b.signals.reply(root, "only you", intent="COUNTER", to=[A]).signal["recipients"] == [A, C]


def test_a_session_that_only_looks_keeps_its_name(world: World) -> None:
    """Its last record is a day old: an empty inbox writes another, which rides, and only one."""
    a = world.agent(A)
    a.inbox()
    world.micros += 25 * 3600 * 1_000_000
    a.inbox()
    a.inbox()

    rows = a.store.db().execute("SELECT count(*) FROM line WHERE kind = 'session'").fetchone()
    assert rows == (2,)
