"""The A2A.V1 contract, case by case, over the library: visibility, routing, receipt, convergence."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import gitmem
from gitmem import UsageError
from gitmem.log.spool import Story

A, B, C = "claude:planner:one", "codex:builder:two", "gemini:tester:three"


class World:
    """One clone, a clock that moves a second with every look, and whoever is asked for."""

    def __init__(self, repo: Path) -> None:
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


# Visibility


def test_a_broadcast_shows_in_every_inbox_but_the_senders(world: World) -> None:
    """Every session's inbox shows it, the sender's own does not."""
    a, b, c = world.agent(A), world.agent(B), world.agent()
    a.signals.send("to all")

    assert [messages(log) for log in (a, b, c)] == [[], ["to all"], ["to all"]]


def test_a_directed_signal_shows_to_its_recipient_alone(world: World) -> None:
    """A's inbox shows it, B's does not; A's also shows broadcasts."""
    a, b, c = world.agent(A), world.agent(B), world.agent(C)
    c.signals.send("to a", to=[A])
    c.signals.send("to all")

    assert (messages(a), messages(b)) == (["to a", "to all"], ["to all"])


def test_one_signal_for_two(world: World) -> None:
    """`--to A,B` is one signal with two recipients; C does not see it."""
    a, b, c = world.agent(A), world.agent(B), world.agent(C)
    d = world.agent("cursor:editor:four")
    sent = d.signals.send("to both", to=[f"{A},{B}"])

    assert sent.signal["recipients"] == [A, B]
    assert sent.signal["target_agent"] == A
    assert (messages(a), messages(b), messages(c)) == (["to both"], ["to both"], [])


def test_a_record_with_only_the_old_alias_is_routed(world: World) -> None:
    """`target_agent` is treated as `recipients: [target_agent]`."""
    a, b = world.agent(A), world.agent(B)
    stream, line = b.store.line(
        "signal",
        {"schema_version": "A2A.V1", "signal_id": "sig-aaaa1111", "sender_identity": B, "target_agent": A,
         "recipients": [A], "message": "old style"},
    )  # fmt: skip
    b.store.record(
        [(stream, line.replace(b'"recipients":["claude:planner:one"],', b""))], Story("x <x>", "x")
    )

    assert messages(a) == ["old style"]


def test_sessions_that_share_an_identity_share_receipts(world: World) -> None:
    """The first reads, the second sees it as read."""
    first, second, b = world.agent(A), world.agent(A), world.agent(B)
    b.signals.send("once", to=[A])

    assert (messages(first), messages(second)) == (["once"], [])


def test_sessions_without_identity_have_their_own_receipts(world: World) -> None:
    """What one has read, the other has not."""
    first, second, b = world.agent(), world.agent(), world.agent(B)
    b.signals.send("to all")

    assert (messages(first), messages(second)) == (["to all"], ["to all"])


def test_a_look_leaves_it_unread(world: World) -> None:
    """Without marking it is there again."""
    a, b = world.agent(A), world.agent(B)
    b.signals.send("still there", to=[A])

    assert (messages(a, mark=False), messages(a), messages(a)) == (["still there"], ["still there"], [])


def test_an_inbox_shows_its_own_workspace_and_signals_without_one(world: World) -> None:
    """A tenant's broadcasts stay with the tenant."""
    a = world.agent(A, workspace="red")
    b = world.agent(B, workspace="blue")
    c = world.agent(C)
    a.signals.send("red")
    c.signals.send("plain")

    assert (messages(b), messages(world.agent("x:y:z", workspace="red"))) == (["plain"], ["red", "plain"])


# Routing


def test_a_session_with_identity_is_addressed_by_it(world: World) -> None:
    """`--to` a display name or session id: `recipients` holds the identity."""
    a, b = world.agent(A, name="Planck"), world.agent(B)
    session = a.caller.session_id
    assert session

    assert b.signals.send("x", to=["Planck"]).signal["recipients"] == [A]
    assert b.signals.send("x", to=[session]).signal["recipients"] == [A]


def test_a_session_without_identity_is_addressed_by_its_id(world: World) -> None:
    """`recipients` holds the session id."""
    a, b = world.agent(name="Planck"), world.agent(B)

    assert b.signals.send("x", to=["Planck"]).signal["recipients"] == [a.caller.session_id]


def test_an_identity_must_have_been_seen_or_be_allowed(world: World) -> None:
    """A misspelt identity is no letter box."""
    b = world.agent(B)
    with pytest.raises(UsageError):
        b.signals.send("x", to=["claude:planner:onee"])

    assert b.signals.send("x", to=["new:agent:here"], allow_unseen=True).signal["recipients"] == [
        "new:agent:here"
    ]


def test_roots_get_a_thread_or_none(world: World) -> None:
    """Directed: a thread id and priority; broadcast: advisory."""
    world.agent(A)
    b = world.agent(B)
    directed, broadcast = b.signals.send("x", to=[A]).signal, b.signals.send("y").signal

    assert str(directed["thread_id"]).startswith("thread-")
    assert (directed["interrupt_class"], broadcast["interrupt_class"]) == ("priority", "advisory")
    assert "thread_id" not in broadcast


def test_a_reply_inherits_the_thread_and_goes_to_the_sender(world: World) -> None:
    """Unless `--thread` is given."""
    a, b = world.agent(A), world.agent(B)
    root = b.signals.send("x", to=[A])
    reply = a.signals.reply(str(root.signal["signal_id"]), "y")
    other = a.signals.reply(str(root.signal["signal_id"]), "z", thread="thread-other")

    assert reply.signal["thread_id"] == root.signal["thread_id"]
    assert (reply.signal["recipients"], reply.signal["reply_to"]) == ([B], root.signal["signal_id"])
    assert other.signal["thread_id"] == "thread-other"


def test_a_broadcasts_id_names_the_thread_of_its_replies(world: World) -> None:
    """A root without thread."""
    a, b = world.agent(A), world.agent(B)
    root = b.signals.send("x").signal["signal_id"]

    assert a.signals.reply(str(root), "y").signal["thread_id"] == root
    assert a.thread(str(root)).root == root


def test_a_word_in_a_thread_goes_to_its_members(world: World) -> None:
    """To the root's sender and recipients except oneself; `broadcast` says otherwise."""
    a, b = world.agent(A), world.agent(B)
    world.agent(C)
    thread = str(b.signals.send("x", to=[A, C]).signal["thread_id"])

    assert a.signals.send("y", thread=thread).signal["recipients"] == [B, C]
    assert "recipients" not in a.signals.send("z", thread=thread, broadcast=True).signal


def test_an_inbox_by_thread_and_intent(world: World) -> None:
    """`--thread T --intent PROPOSE,AGREE` shows only those."""
    a, b = world.agent(A), world.agent(B)
    thread = str(b.signals.send("p", to=[A], intent="PROPOSE").signal["thread_id"])
    b.signals.send("i", to=[A], thread=thread)
    b.signals.send("other", to=[A], intent="PROPOSE")

    assert messages(a, thread=thread, intent=["PROPOSE,AGREE"]) == ["p"]


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


def test_an_idempotency_key_is_one_signal_also_from_two_clones(world: World, tmp_path: Path) -> None:
    """A retry on another machine is no second signal, and can be answered without ambiguity."""
    _, other = _hub(world.repo, tmp_path)
    a, here = world.agent(A), world.agent(B)
    a.sync()
    there = World(other)
    there.micros = world.micros
    b = there.agent(B)
    b.sync()
    first = here.signals.send("x", to=[A], idempotency_key="k", intent="PROPOSE")
    second = b.signals.send("x", to=[A], idempotency_key="k", intent="PROPOSE")
    b.sync()
    a.sync()
    b.close()

    assert first.signal["signal_id"] == second.signal["signal_id"]
    assert messages(a) == ["x"]
    a.signals.reply(str(first.signal["signal_id"]), "yes", intent="AGREE")
    assert a.converged(str(first.signal["signal_id"])).converged


# Receipt


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


@pytest.mark.parametrize(
    ("intent", "state"),
    [("AGREE", "acked"), ("REJECT", "rejected"), ("COUNTER", "delivered"), ("INFO", "delivered")],
)
def test_an_answer_promotes_the_receipt(world: World, intent: str, state: str) -> None:
    """AGREE to acked, REJECT to rejected; COUNTER and INFO leave it."""
    a, b = world.agent(A), world.agent(B)
    root = str(b.signals.send("x", to=[A]).signal["signal_id"])
    a.signals.reply(root, "y", intent=intent)

    assert b.thread(root).recipients[0].delivery_state == state


def test_an_agreement_elsewhere_or_by_somebody_else_promotes_nothing(world: World) -> None:
    """Another thread, and a non-recipient."""
    a, b, c = world.agent(A), world.agent(B), world.agent(C)
    root = str(b.signals.send("x", to=[A]).signal["signal_id"])
    other = str(b.signals.send("y", to=[A]).signal["signal_id"])
    a.signals.reply(other, "z", intent="AGREE")
    c.signals.reply(root, "me too", intent="AGREE")

    assert b.thread(root).recipients[0].delivery_state is None


# Convergence


def _proposal(world: World) -> tuple[gitmem.Log, gitmem.Log, gitmem.Log, str]:
    a, b, c = world.agent(A), world.agent(B), world.agent(C)
    return a, b, c, str(a.signals.send("shall we?", to=[B, C], intent="PROPOSE").signal["signal_id"])


def test_all_agree(world: World) -> None:
    """Every recipient of the root at AGREE: converged."""
    a, b, c, root = _proposal(world)
    b.signals.reply(root, "y", intent="AGREE")
    assert not a.converged(root).converged
    c.signals.reply(root, "y", intent="AGREE")

    assert (a.converged(root).converged, a.converged(root).agreed) == (True, [B, C])


@pytest.mark.parametrize(
    ("intent", "listed"),
    [(None, "pending"), ("REJECT", "rejected"), ("COUNTER", "countered"), ("INFO", "pending")],
)
def test_one_who_does_not_agree_is_listed_apart(world: World, intent: str | None, listed: str) -> None:
    """Missing, REJECT or COUNTER: not converged."""
    a, b, c, root = _proposal(world)
    b.signals.reply(root, "y", intent="AGREE")
    if intent:
        c.signals.reply(root, "n", intent=intent)
    found = a.converged(root)

    assert (found.converged, getattr(found, listed)) == (False, [C])


def test_agreement_of_somebody_who_was_not_asked_changes_nothing(world: World) -> None:
    """The root's recipients decide."""
    a, b, _c, root = _proposal(world)
    b.signals.reply(root, "y", intent="AGREE")
    world.agent("x:y:z").signals.reply(root, "y", intent="AGREE")

    assert not a.converged(root).converged


@pytest.mark.parametrize(("first", "last"), [("REJECT", "AGREE"), ("AGREE", "REJECT")])
def test_the_latest_decision_counts(world: World, first: str, last: str) -> None:
    """REJECT then AGREE is an AGREE, and the other way round."""
    a, b, c, root = _proposal(world)
    c.signals.reply(root, "y", intent="AGREE")
    b.signals.reply(root, "1", intent=first)
    b.signals.reply(root, "2", intent=last)

    assert a.converged(root).converged == (last == "AGREE")


def test_strict_wants_agreement_after_every_proposal(world: World) -> None:
    """An AGREE that came before a later COUNTER is stale."""
    a, b, c, root = _proposal(world)
    b.signals.reply(root, "y", intent="AGREE")
    c.signals.reply(root, "rather so?", intent="COUNTER", to=[A, B])
    c.signals.reply(root, "fine", intent="AGREE")

    assert (a.converged(root).converged, a.converged(root, strict=True).converged) == (True, False)
    assert [each.stale for each in a.converged(root).recipients] == [True, False]


def test_unknown_threads_and_broadcasts_cannot_converge(world: World) -> None:
    """Exit 2."""
    a = world.agent(A)
    root = str(a.signals.send("x").signal["signal_id"])
    for id in ("thread-nowhere", root):
        with pytest.raises(UsageError):
            a.converged(id)


def test_a_session_that_was_addressed_and_then_gets_an_identity_still_answers(world: World) -> None:
    """Its mail stays its own, and its AGREE counts for the session that was asked."""
    a, late = world.agent(A), world.agent(name="Late")
    root = str(a.signals.send("x", to=["Late"], intent="PROPOSE").signal["signal_id"])
    from gitmem.operations import sessions

    sessions.change(late.store, late.caller, agent_identity=B)

    assert messages(late) == ["x"]
    assert messages(late) == []
    late.signals.reply(root, "y", intent="AGREE")
    assert a.converged(root).converged


def test_swapped_text_makes_the_thread_ambiguous(world: World) -> None:
    """An id with two contents: nobody can say what was agreed to."""
    a, b, c, root = _proposal(world)
    for log in (b, c):
        log.signals.reply(root, "y", intent="AGREE")
    assert a.converged(root).converged
    stream, line = a.store.line(
        "signal",
        {"schema_version": "A2A.V1", "signal_id": root, "sender_identity": A, "recipients": [B, C],
         "thread_id": a.thread(root).thread_id, "intent": "PROPOSE", "message": "something else"},
    )  # fmt: skip
    a.store.record([(stream, line)], Story("x <x>", "x"))

    assert (a.converged(root).converged, a.converged(root).ambiguous) == (False, [root])


@pytest.mark.parametrize("first", ["here", "there"])
def test_decisions_on_two_clones_give_one_answer(world: World, tmp_path: Path, first: str) -> None:
    """Synced in either order."""
    _, other = _hub(world.repo, tmp_path)
    a, b, c, root = _proposal(world)
    a.sync()
    there = World(other)
    there.micros = world.micros
    b2 = there.agent(B)
    b2.sync()
    c.signals.reply(root, "y", intent="AGREE")
    b.signals.reply(root, "no", intent="REJECT")
    b2.signals.reply(root, "yes", intent="AGREE")
    for log in (a, b2, a) if first == "here" else (b2, a, b2):
        log.sync()
    answers = [log.converged(root).as_json() for log in (a, b2)]
    b2.close()
    for answer in answers:
        answer.pop("commit")

    assert answers[0] == answers[1]


def _hub(repo: Path, tmp_path: Path) -> tuple[Path, Path]:
    hub, other = tmp_path / "hub.git", tmp_path / "other"
    for args in (
        ["clone", "--quiet", "--bare", str(repo), str(hub)],
        ["-C", str(repo), "remote", "add", "origin", str(hub)],
        ["clone", "--quiet", str(hub), str(other)],
    ):
        subprocess.run(["git", *args], check=True)
    return hub, other


def test_a_thread_that_is_not_known_is_no_broadcast(world: World) -> None:
    """A misspelt thread has no members: nothing is written, rather than told to everybody."""
    b = world.agent(B)
    with pytest.raises(UsageError, match="thread-typo"):
        b.signals.send("x", thread="thread-typo")


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
    from gitmem.operations import sessions

    late = world.agent()
    late.signals.send("mine")
    sessions.change(late.store, late.caller, agent_identity=A)

    assert messages(late) == []


def test_a_second_word_on_ones_own_letter_is_no_broadcast(world: World) -> None:
    """Where only oneself is in a conversation, the word stays there."""
    late, b = world.agent(name="Late"), world.agent(B)
    note = late.signals.send("note to self", to=["Late"])
    from gitmem.operations import sessions

    sessions.change(late.store, late.caller, agent_identity=A)
    late.signals.reply(str(note.signal["signal_id"]), "private follow-up")

    assert messages(b) == []


def test_everything_shows_what_was_sent_here_and_no_receipt_that_is_not(world: World) -> None:
    """`all` keeps to the workspace, and says delivered only of what was."""
    a = world.agent(A, workspace="red")
    b = world.agent(B, workspace="blue")
    a.signals.send("red")
    a.signals.send("to b", to=[B])
    b.inbox(mark=False)
    shown = b.inbox(mark=False, all=True).signals

    assert [(each["message"], each["delivery_state"]) for each in shown] == []


def test_one_key_from_two_sessions_counts_the_same_in_every_order(world: World) -> None:
    """Also where one of them has a workspace and the other has none."""
    from gitmem import records
    from gitmem.index import catch_up, schema
    from gitmem.operations import mail, views

    a, b = world.agent(A), world.agent(A, workspace="red")
    reader = world.agent(B, workspace="blue")
    for log in (a, b):
        line = log.store.line(
            "signal",
            {"schema_version": "A2A.V1", "signal_id": "sig-same", "sender_identity": A, "message": "x",
             "recipients": [B], "idempotency_key": "k", "thread_id": "thread-x",
             "workspace_id": log.caller.workspace, "sender_session": log.caller.session_id},
        )  # fmt: skip
        log.store.record([line], Story("x <x>", "x"))
    lines = [body.encode() for (body,) in reader.store.db().execute("SELECT body FROM line ORDER BY id")]
    counts = []
    for order in (lines, lines[::-1]):
        index = schema.in_memory(views.VIEWS, records.read)
        index.reshape()
        for line in order:
            catch_up.add_lines(index, 1, [line])
        counts.append(sorted(mail.unread_ids(index.db, B, None, "blue", world.now())))

    assert counts[0] == counts[1] == [(B, "sig-same")]


def test_a_letter_across_a_border_is_told_so(world: World) -> None:
    """It is recorded, and its sender learns that the recipient does not see it."""
    a = world.agent(A, workspace="red")
    world.agent(B, workspace="blue", name="Curie")
    world.agent(C)

    assert "Curie works in the workspace blue" in " ".join(a.signals.send("x", to=[B]).warnings)
    assert a.signals.send("x", to=[C]).warnings == []


def test_a_session_that_only_looks_keeps_its_name(world: World) -> None:
    """Its last record is a day old: an empty inbox writes another, which rides, and only one."""
    a = world.agent(A)
    a.inbox()
    world.micros += 25 * 3600 * 1_000_000
    a.inbox()
    a.inbox()

    rows = a.store.db().execute("SELECT count(*) FROM line WHERE kind = 'session'").fetchone()
    assert rows == (2,)
