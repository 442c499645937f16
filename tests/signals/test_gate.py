"""The gate: what stands in the way of a reader, what does not, and what goes past it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest

from gitmem import commit_message, records
from gitmem.agents import caller as callers
from gitmem.agents import lifecycle, session_view
from gitmem.agents.caller import Caller, CallerClaims
from gitmem.errors import UsageError
from gitmem.log.lines import CommitMessage, digest
from gitmem.signals import gate, history, inbox, send
from gitmem.signals.gate import Gate
from gitmem.store import Store
from tests.sandbox import Clock, acting, annas, carry, new_repo, open_store
from tests.signing import ANNA, MALLORY

PROPOSER, READER, OTHER = (
    annas("claude:architect:shop"),
    annas("codex:builder:host"),
    annas("codex:tester:host"),
)


class Desk:
    """A clone with three agents: Planck asks, Curie is asked, Gauss is somebody else."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.clock = clock
        self.planck = self.start("Planck", PROPOSER)
        self.curie = self.start("Curie", READER, wu="WU-7")
        self.gauss = self.start("Gauss", OTHER)

    def start(self, name: str, identity: str, **options: str) -> Caller:
        self.clock.forward(1_000_000)
        return acting(
            self.store,
            lifecycle.start(self.store, CallerClaims(), name=name, agent_identity=identity, **options),
        )

    def say(self, text: str, by: Caller | None = None, **options: object) -> str:
        self.clock.forward(1_000_000)
        sent = send.send(self.store, by or self.planck, text, **options)  # type: ignore[arg-type]
        return str(sent.signal["signal_id"])

    def read(self, reader: Caller | None = None) -> None:
        self.clock.forward(1_000_000)
        inbox.mark(self.store, inbox.read(self.store, reader or self.curie))

    def look(self, reader: Caller | None = None, **options: str) -> Gate:
        return gate.check(self.store, reader or self.curie, **options)  # type: ignore[arg-type]

    def audits(self) -> list[str]:
        return [body for (body,) in self.store.db().execute("SELECT body FROM line WHERE kind = 'audit'")]


@pytest.fixture
def desk(repo: Path) -> Iterator[Desk]:
    clock = Clock()
    store = open_store(repo, clock)
    yield Desk(store, clock)
    store.close()


def listed(found: Gate) -> list[tuple[object, object]]:
    return [(fields["signal_id"], fields["why"]) for fields in found.signals]


def test_an_unread_directed_signal_on_the_work_unit_closes_it_until_it_is_read(desk: Desk) -> None:
    """With who sent it, what it wants, and the command that shows it; looking marks nothing."""
    signal_id = desk.say("look", to=["Curie"], wu="WU-7")

    for _ in range(2):
        found = desk.look(wu="WU-7")
        assert (found.open, found.unread, found.unanswered) == (False, 1, 0)
        (fields,) = found.signals
        assert fields["signal_id"] == signal_id
        assert (fields["sender_identity"], fields["sender_name"]) == (PROPOSER, "Planck")
        assert (fields["intent"], fields["requires_ack"], fields["why"]) == ("INFO", False, "unread")
        assert fields["commands"] == [f"gitmem inbox --thread {fields['thread_id']}"]
        assert "message" not in fields
        assert found.next[0] == "gitmem inbox --wu WU-7"
    desk.read()

    assert desk.look(wu="WU-7").open


def test_without_a_work_unit_it_is_that_of_the_session(desk: Desk) -> None:
    """And a reader without one is told to name it."""
    desk.say("look", to=["Curie"], wu="WU-7")

    assert not desk.look().open
    with pytest.raises(UsageError) as refused:
        desk.look(desk.gauss)
    assert refused.value.code == "no-work-unit"


def test_a_question_without_a_work_unit_is_on_that_of_its_thread(desk: Desk) -> None:
    """Another program may leave it out. Read and not answered, it closes the gate of that unit, and of no other one."""
    first = send.send(desk.store, desk.planck, "look", to=["Curie"], wu="WU-7").signal
    question = "sig-ofanother"
    fields = {
        "signal_id": question, "sender_identity": annas("codex:tester:far"), "recipients": [READER], "thread_id": first["thread_id"],
        "intent": "INFO", "interrupt_class": "priority", "requires_ack": True, "message": "agreed?", "origin": "local",
    }  # fmt: skip
    line = records.line("signal", desk.clock() + 1_000_000, fields, writer=ANNA.writer)
    desk.store.record([("signals", line)], CommitMessage("A <a@b>", "sync"))
    desk.read()

    assert listed(desk.look(wu="WU-7")) == [(question, "unanswered")]


def test_another_work_unit_that_looks_alike_does_not_close_it(desk: Desk) -> None:
    """Names are compared whole."""
    for wu in ["WU-1", "WU-77", "WU-70", "U-7", "WWU-7"]:
        desk.say("look", to=["Curie"], wu=wu, requires_ack=True)

        assert desk.look(wu="WU-7").open
        assert not desk.look(wu=wu).open


def test_what_names_no_known_work_unit_is_refused_rather_than_open(desk: Desk) -> None:
    """A slip of the finger must not open the gate."""
    desk.say("look", to=["Curie"], wu="WU-7")
    for wu in ["WU7", "WU-7 ", "WU-", "7", "WU-7x"]:
        with pytest.raises(UsageError) as refused:
            desk.look(wu=wu)

        assert refused.value.code == ("bad-work-unit" if " " in wu else "unknown-work-unit")


def test_signals_to_others_and_from_oneself_do_not_close_it(desk: Desk) -> None:
    """Only what was sent to this reader in particular counts."""
    desk.say("to another", to=["Gauss"], wu="WU-7", requires_ack=True)
    desk.say("my own", desk.curie, to=["Planck"], wu="WU-7", requires_ack=True)

    assert desk.look(wu="WU-7").open
    assert not desk.look(desk.gauss, wu="WU-7").open


def test_a_broadcast_never_closes_it(desk: Desk) -> None:
    """Not even one that asks for an answer."""
    desk.say("to all", wu="WU-7", requires_ack=True, intent="PROPOSE")

    assert desk.look(wu="WU-7").open


def test_somebody_elses_reading_does_not_open_it(desk: Desk) -> None:
    """A signal to two readers is unread by each until that one has read it."""
    desk.say("look", to=["Curie", "Gauss"], wu="WU-7")
    desk.read(desk.gauss)

    assert desk.look(desk.gauss, wu="WU-7").open
    assert not desk.look(wu="WU-7").open


def test_a_signal_that_wants_an_answer_keeps_it_closed_after_it_was_read(desk: Desk) -> None:
    """A receipt says that it was read, not what the reader thinks."""
    signal_id = desk.say("agree?", to=["Curie"], wu="WU-7", requires_ack=True, intent="PROPOSE")
    desk.read()

    found = desk.look(wu="WU-7")

    assert listed(found) == [(signal_id, "unanswered")]
    assert found.signals[0]["commands"] == found.next[:2] == [
        f"gitmem reply {signal_id} agreed --agree",
        f"gitmem reply {signal_id} rejected --reject",
    ]  # fmt: skip


@pytest.mark.parametrize("intent", ["AGREE", "REJECT"])
@pytest.mark.parametrize("first", ["read", "not read"])
def test_agreeing_or_rejecting_opens_it(desk: Desk, intent: str, first: str) -> None:
    """Also without having read it in the inbox: who answers has."""
    signal_id = desk.say("agree?", to=["Curie"], wu="WU-7", requires_ack=True)
    if first == "read":
        desk.read()

    desk.say("my word", desk.curie, reply_to=signal_id, intent=intent)

    assert desk.look(wu="WU-7").open


def test_a_word_leaves_it_closed(desk: Desk) -> None:
    """Who only says something has neither agreed nor rejected."""
    signal_id = desk.say("agree?", to=["Curie"], wu="WU-7", requires_ack=True)

    desk.say("what about this?", desk.curie, reply_to=signal_id)

    assert listed(desk.look(wu="WU-7")) == [(signal_id, "unanswered")]


@pytest.mark.parametrize("intent", ["COUNTER", "PROPOSE"])
def test_a_proposal_of_ones_own_asks_the_first_proposer(desk: Desk, intent: str) -> None:
    """Who counters owes nothing; whoever proposed first owes an answer, read or not."""
    signal_id = desk.say("agree?", to=["Curie"], wu="WU-7", intent="PROPOSE")
    assert listed(desk.look(wu="WU-7")) == [(signal_id, "unread")]
    desk.read()
    assert listed(desk.look(wu="WU-7")) == [(signal_id, "unanswered")]

    counter = desk.say("what about this?", desk.curie, reply_to=signal_id, intent=intent)

    assert desk.look(wu="WU-7").open
    assert listed(desk.look(desk.planck, wu="WU-7")) == [(counter, "unread")]
    desk.say("word", reply_to=counter)
    assert listed(desk.look(desk.planck, wu="WU-7")) == [(counter, "unanswered")]
    desk.say("yes", reply_to=counter, intent="AGREE")
    assert desk.look(desk.planck, wu="WU-7").open


def test_another_readers_answer_opens_it_for_that_one_alone(desk: Desk) -> None:
    """Each has to say it for itself."""
    signal_id = desk.say("agree?", to=["Curie", "Gauss"], wu="WU-7", requires_ack=True)
    desk.read()

    desk.say("yes", desk.gauss, reply_to=signal_id, intent="AGREE")

    assert desk.look(desk.gauss, wu="WU-7").open
    assert not desk.look(wu="WU-7").open


def test_an_answer_to_another_signal_of_the_thread_does_not_open_it(desk: Desk) -> None:
    """A second question in a thread wants an answer of its own."""
    first = desk.say("agree?", to=["Curie"], wu="WU-7", requires_ack=True)
    second = desk.say("and to this?", reply_to=first, to=["Curie"], requires_ack=True)
    desk.say("yes", desk.curie, reply_to=first, intent="AGREE")

    assert (second, "unread") in listed(desk.look(wu="WU-7"))
    desk.read()
    assert listed(desk.look(wu="WU-7")) == [(second, "unanswered")]
    desk.say("yes", desk.curie, reply_to=second, intent="AGREE")
    assert desk.look(wu="WU-7").open


def test_a_receipt_alone_does_not_answer(desk: Desk) -> None:
    """Neither one's own, nor one that somebody writes in another's name with another state."""
    signal_id = desk.say("agree?", to=["Curie"], wu="WU-7", requires_ack=True)
    (body,) = (
        desk.store.db().execute("SELECT body FROM line WHERE body LIKE ?", (f"%{signal_id}%",)).fetchone()
    )
    for reader in (READER, OTHER):
        fields: dict[str, object] = {
            "schema_version": "A2A.V1", "signal_id": signal_id, "reader_identity": reader,
            "delivery_state": "delivered", "answers_digest": digest(body.encode()),
        }  # fmt: skip
        desk.store.record(
            [desk.store.line("receipt", fields)], CommitMessage("A <a@b>", "read"), deferred=True
        )

    assert listed(desk.look(wu="WU-7")) == [(signal_id, "unanswered")]


def test_signals_to_the_session_count_for_the_identity(desk: Desk) -> None:
    """Mail to the session id is this reader's, too, and its answer counts."""
    signal_id = desk.say("agree?", to=[str(desk.curie.session_id)], wu="WU-7", requires_ack=True)
    assert not desk.look(wu="WU-7").open

    desk.say("yes", desk.curie, reply_to=signal_id, intent="AGREE")

    assert desk.look(wu="WU-7").open


def test_signals_to_the_harness_count_and_are_answered_by_the_session(desk: Desk) -> None:
    """An agent that was written to before it had a session answers under the session that it gets."""
    who = CallerClaims(client_session=("CODEX_THREAD_ID", "0f8fad5b-d9cb-469f-a165-70867728950e"))
    desk.say("hello", callers.find(desk.store, who))
    signal_id = desk.say("agree?", to=["0f8fad5b-d9cb-469f-a165-70867728950e"], wu="WU-7", requires_ack=True)
    started = acting(desk.store, lifecycle.start(desk.store, who, name="Noether"))
    assert listed(desk.look(started, wu="WU-7")) == [(signal_id, "unread")]
    desk.read(started)
    assert listed(desk.look(started, wu="WU-7")) == [(signal_id, "unanswered")]

    desk.say("no", started, reply_to=signal_id, intent="REJECT")

    assert desk.look(started, wu="WU-7").open


def test_the_initiative_that_is_given_closes_it(desk: Desk) -> None:
    """Alone, or beside the work unit."""
    signal_id = desk.say("look", to=["Curie"], initiative="checkout")

    assert desk.look(wu="WU-7").open
    assert desk.look(wu="WU-7", initiative="checkout2").open
    assert listed(desk.look(wu="WU-7", initiative="checkout")) == [(signal_id, "unread")]
    assert listed(desk.look(initiative="checkout")) == [(signal_id, "unread")]


def test_the_initiative_of_a_work_unit_is_known_from_a_session(desk: Desk) -> None:
    """Somebody who works on both says so by that."""
    desk.say("look", to=["Curie"], initiative="checkout")
    assert desk.look(wu="WU-7").open

    desk.start("Noether", annas("a:b:noether"), wu="WU-7", initiative="checkout")

    found = desk.look(wu="WU-7")
    assert (found.open, found.initiatives, found.about) == (False, ["checkout"], "WU-7, checkout")


def test_the_initiative_of_a_work_unit_is_known_from_a_signal(desk: Desk) -> None:
    """To anybody."""
    desk.say("look", to=["Curie"], initiative="checkout", requires_ack=True)
    desk.read()
    desk.say("both", to=["Gauss"], wu="WU-7", initiative="checkout")

    found = desk.look(wu="WU-7")

    assert (found.initiatives, found.unanswered) == (["checkout"], 1)


def test_a_word_in_a_thread_is_on_what_the_thread_is_about(desk: Desk) -> None:
    """A reply that names nothing counts for what its first signal names, and for nothing that it names itself."""
    first = desk.say("root", desk.curie, to=["Planck"], initiative="checkout")
    answer = desk.say("look here", reply_to=first)
    elsewhere = desk.say("by the way", reply_to=first, initiative="billing")

    assert listed(desk.look(initiative="checkout")) == [(answer, "unread")]
    assert listed(desk.look(initiative="billing")) == [(elsewhere, "unread")]


def test_a_reply_of_another_program_need_not_repeat_what_it_is_about(desk: Desk) -> None:
    """Ours take it over from what they answer; a line that does not is on what its thread is about all the same."""
    first = desk.say("root", desk.curie, to=["Planck"], wu="WU-7", initiative="checkout")
    (thread,) = desk.store.db().execute("SELECT thread FROM signal WHERE signal_id = ?", (first,)).fetchone()
    fields: dict[str, object] = {
        "schema_version": "A2A.V1", "signal_id": "sig-bare", "sender_identity": PROPOSER, "recipients": [READER],
        "message": "look here", "thread_id": thread, "reply_to": first, "requires_ack": True,
    }  # fmt: skip
    desk.store.record([desk.store.line("signal", fields)], CommitMessage("A <a@b>", "look here"))

    for about in ({"wu": "WU-7"}, {"initiative": "checkout"}):
        assert listed(desk.look(**about)) == [("sig-bare", "unread")]
    desk.read()
    for about in ({"wu": "WU-7"}, {"initiative": "checkout"}):
        assert listed(desk.look(**about)) == [("sig-bare", "unanswered")]


def test_what_is_in_the_way_is_listed_oldest_first_and_counted(desk: Desk) -> None:
    """Fifty at most are listed; all count."""
    asked = desk.say("agree?", to=["Curie"], wu="WU-7", requires_ack=True)
    desk.read()
    ids = [desk.say(f"look {number}", to=["Curie"], wu="WU-7") for number in range(gate.SHOWN_MAX)]

    found = desk.look(wu="WU-7")

    assert (found.unread, found.unanswered, found.more) == (gate.SHOWN_MAX, 1, 1)
    assert [id for id, _ in listed(found)] == [asked, *ids[:-1]]
    assert gate.count_text(found) == f"{gate.SHOWN_MAX} unread and 1 unanswered signals"


@pytest.mark.usefixtures("commits")
def test_a_reason_goes_past_and_stays_on_record(desk: Desk) -> None:
    """In the log and in git's, with the ids. The signals stay unread, and only later ones close the gate again."""
    ids = [
        desk.say("look", to=["Curie"], wu="WU-7"),
        desk.say("too", to=["Curie"], wu="WU-7", requires_ack=True),
    ]

    found = desk.look(wu="WU-7", reason="handled in paired review")

    assert (found.open, found.passed, found.recorded) == (True, True, True)
    (body,) = desk.audits()
    record = records.read(body.encode())
    assert record is not None
    assert record["audit_id"] == found.audit_id
    assert list(record["signal_ids"]) == ids
    assert (record["action"], record["reason"], record["wu_id"]) == (
        "gate",
        "handled in paired review",
        "WU-7",
    )
    assert (record["reader_identity"], record["sender_session"]) == (READER, desk.curie.session_id)
    where = desk.store.repo.common
    told = subprocess.run(
        ["git", "--git-dir", where, "log", "-1", "--format=%an%n%B", str(found.commit), "--"],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert told[:2] == ["Curie", "Curie passes the gate of WU-7 with 2 unread signals: handled in paired…"]
    assert {"handled in paired review", *ids, f"Audit: {found.audit_id}", "WU: WU-7"} <= set(told)
    assert desk.look(wu="WU-7").open
    later = desk.say("and this", to=["Curie"], wu="WU-7")
    assert listed(desk.look(wu="WU-7")) == [(later, "unread")]
    assert len(desk.audits()) == 1


def test_audits_of_a_peer_cost_a_gate_next_to_nothing(desk: Desk) -> None:
    """They name somebody else, and are not even looked at."""
    desk.say("look", to=["Curie"], wu="WU-7")
    gate.check(desk.store, desk.curie, wu="WU-7", reason="handled")
    before = calls(lambda: desk.look(wu="WU-7"))
    (genuine,) = desk.audits()
    whose = {"writer": MALLORY.writer, "reader_identity": OTHER, "sender_identity": OTHER}
    fields = {**json.loads(genuine), **whose}
    forged = [
        json.dumps({**fields, "audit_id": f"audit-{n:06d}"}, separators=(",", ":")) for n in range(5_000)
    ]
    desk.store.db().executemany(
        "INSERT INTO line (file, key, at, kind, body) VALUES (1, ?, ?, 'audit', ?)",
        [(b"%d" % n, fields["at"], body) for n, body in enumerate(forged)],
    )

    after = calls(lambda: desk.look(wu="WU-7"))

    assert desk.look(wu="WU-7").open
    assert after["_read_kind"] == before["_read_kind"] > 0
    assert after.total() - before.total() < 100


def calls(what: Callable[[], object]) -> Counter[str]:
    """Count the calls of Python functions, by name."""
    found: Counter[str] = Counter()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            found[frame.f_code.co_name] += 1

    what()
    sys.setprofile(note)
    try:
        what()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.usefixtures("commits")
def test_the_log_tells_of_it_and_shows_it(desk: Desk) -> None:
    """Among the signals of the work unit, and of whoever did it; whole by its id."""
    desk.say("look", to=["Curie"], wu="WU-7")
    found = desk.look(wu="WU-7", reason="because\nof this")

    for options in ({}, {"wu": "WU-7"}, {"from_": "Curie"}):
        entries = history.log(desk.store, **options).entries  # type: ignore[arg-type]
        told = [commit_message.describe(entry) for entry in entries if entry["kind"] == "audit"]
        assert told == ["Curie passes the gate of WU-7 with 1 signal: because of this"], options
    assert not [e for e in history.log(desk.store, wu="WU-8").entries if e["kind"] == "audit"]
    one = history.show(desk.store, str(found.audit_id))
    assert (one.kind, one.record["reason"], one.commit) == ("audit", "because\nof this", found.commit)
    with pytest.raises(UsageError) as refused:
        history.show(desk.store, "audit-zzzzzzzzzzzz")
    assert refused.value.code == "unknown-id"


def test_where_nothing_stands_in_the_way_nothing_is_recorded(desk: Desk) -> None:
    """A reason is not asked for then, and not kept."""
    found = desk.look(wu="WU-7", reason="to be sure")

    assert (found.open, found.passed, found.audit_id) == (True, False, None)
    assert desk.audits() == []


def test_an_empty_reason_is_none(desk: Desk) -> None:
    """Nothing is written, and the gate stays closed. What nobody can see is no reason either."""
    desk.say("look", to=["Curie"], wu="WU-7")
    for reason in ["", " ", "\n\t", "\u200b\u2060 \u3164"]:
        with pytest.raises(UsageError) as refused:
            desk.look(wu="WU-7", reason=reason)

        assert refused.value.code == "no-reason"
        assert desk.audits() == []


@pytest.mark.usefixtures("commits")
def test_a_reason_can_not_forge_a_commit(desk: Desk) -> None:
    """Its lines are no trailers, and nothing of it moves a cursor."""
    desk.say("look", to=["Curie"], wu="WU-7")

    found = desk.look(wu="WU-7", reason="fine\x1b[2J\n\nAudit: audit-0000\nSession: sess-0000")

    where = desk.store.repo.common
    told = subprocess.run(
        ["git", "--git-dir", where, "log", "-1", "--format=%B%n%(trailers:key=Session,valueonly)", str(found.commit), "--"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "\x1b" not in told
    assert "    Audit: audit-0000\n    Session: sess-0000" in told
    assert told.strip().endswith(str(desk.curie.session_id))


def test_the_record_survives_a_sync_and_counts_elsewhere(desk: Desk, tmp_path: Path) -> None:
    """On another clone it is told of, and the gate is passed there, too; the signals are unread."""
    desk.say("look", to=["Curie"], wu="WU-7")
    desk.look(wu="WU-7", reason="paired")
    other = open_store(new_repo(tmp_path / "other"), desk.clock)

    carry(desk.store, other)

    entries = history.log(other).entries
    assert [commit_message.describe(e) for e in entries if e["kind"] == "audit"] == [
        "Curie passes the gate of WU-7 with 1 signal: paired"
    ]
    found = gate.check(other, desk.curie, wu="WU-7")
    assert (found.open, found.passed, found.unread) == (True, True, 1)
    other.close()


def test_the_work_units_of_a_checkout(desk: Desk, repo: Path) -> None:
    """Those in the branch's name that the log knows, in any case; else what is set; else none."""
    for branch, setting, expected in [
        ("main", None, []),
        ("feature/wu-7-prices", None, ["WU-7"]),
        ("WU-7", None, ["WU-7"]),
        ("lane/wu-7-retry-3", None, ["WU-7"]),
        ("wu-77", None, []),
        ("wu-7a", None, []),
        ("xwu-7", None, []),
        ("release-2026", "WU-7", ["WU-7"]),
        ("main", " wu-7 ", ["wu-7"]),
        ("123-fix-login", None, ["123"]),
        ("me/fix-login", None, ["fix-login"]),
        ("wu-7", "WU-8", ["WU-7"]),
        ("wu-7-and-wu-8", None, ["WU-7", "WU-8"]),
    ]:
        for unit in ("WU-8", "#123", "Fix-Login"):
            desk.say("another", to=["Gauss"], wu=unit)
        subprocess.run(["git", "checkout", "--quiet", "-B", branch], cwd=repo, check=True)
        subprocess.run(["git", "config", "gitmem.wu", setting or ""], cwd=repo, check=True)

        assert session_view.units_of_checkout(desk.store) == expected


def test_a_detached_head_is_about_nothing(desk: Desk, repo: Path) -> None:
    """Unless something is set."""
    subprocess.run(["git", "checkout", "--quiet", "--detach"], cwd=repo, check=True)

    assert session_view.units_of_checkout(desk.store) == []
    subprocess.run(["git", "config", "gitmem.wu", "WU-9"], cwd=repo, check=True)
    assert session_view.units_of_checkout(desk.store) == ["WU-9"]
