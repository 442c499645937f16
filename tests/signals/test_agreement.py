"""Every answer about a thread says the same: `converged`, `thread`, `receipts`, `why`, `top`, the page, inbox, hooks, the gate, MCP."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import gitmem
from cli.mcp import tool_results
from cli.render import claims as rendered_why
from cli.render import signals as rendered
from cli.top import board
from gitmem import records
from gitmem.agents.caller import Caller
from gitmem.conformance.reference import Agreement
from gitmem.history import open_work, why
from gitmem.log.lines import CommitMessage, digest
from gitmem.memory import context
from gitmem.order import thread as causality
from gitmem.order.content import ASKS
from gitmem.order.thread import FoldedThread, ThreadSignal
from gitmem.page import page_data
from gitmem.signals import gate, history, inbox, thread_list, threads
from gitmem.signals.empty_inbox import unread_counts
from gitmem.store import Store

from ..each import each as one_test_for
from . import references
from .references import random_thread

PARTIES = ("test:worker:ada", "test:worker:bohr", "test:worker:curie")
OTHER = "test:worker:dirac"
INTENTS = ("AGREE", "AGREE", "AGREE", "REJECT", "COUNTER", "COUNTER", "PROPOSE", "INFO")
NOW = 1_795_000_000_000_000  # microseconds
REPLY = re.compile(r"To agree: gitmem reply (sig-\w+) agreed --agree")


def random_signals(number: int) -> list[dict[str, Any]]:
    """A proposal, and up to twelve answers whose writers have seen some of what was said before."""
    draw = random.Random(number)
    thread, unit = f"thread-{number:08}", f"WU-{number // 10}"
    asked = list(PARTIES[1 : draw.choice((2, 3, 3, 3))])
    if draw.random() < 0.1:
        asked = draw.choice(([], [PARTIES[0]]))
    ids = [f"sig-{number:06}{place:04}" for place in range(1 + draw.randint(0, 12))]
    found: list[dict[str, Any]] = []
    for place, id in enumerate(ids):
        seen = draw.sample(ids[:place], min(place, draw.randint(1, 3)))
        who = PARTIES[0] if not place else draw.choice((*PARTIES, *PARTIES, OTHER))
        intent = draw.choice(("PROPOSE", "PROPOSE", "INFO")) if not place else draw.choice(INTENTS)
        proposed = [each for each in found if each["intent"] in ASKS]
        if proposed and draw.random() < 0.15:  # its author withdraws it
            taken_back = draw.choice(proposed)
            who, intent = taken_back["sender_identity"], "REJECT"
            seen = list(dict.fromkeys([taken_back["signal_id"], *seen]))
        to = asked if not place else [each for each in PARTIES if each != who]
        quorum = _random_quorum(number, asked) if not place and intent == "PROPOSE" else {}
        found.append(
            {
                "signal_id": id, "thread_id": thread, "wu_id": unit, "intent": intent, "message": f"text {number} {place}",
                "sender_identity": who, "sender_session": f"sess-{who[-4:]}00000000", "recipients": to,
                "interrupt_class": "priority", "origin": "local", "requires_ack": draw.random() < 0.3,
                **({"reply_to": seen[0], "after": seen} if place else quorum),
            }
        )  # fmt: skip
    return found


def _random_quorum(number: int, asked: list[str]) -> dict[str, Any]:
    """How many have to agree, of every other thread; sometimes more than there are."""
    draw = random.Random(f"quorum {number}")
    if not asked or draw.random() < 0.5:
        return {}
    veto = draw.sample(asked, draw.choice((0, 0, 1, len(asked))))
    return {"need": str(draw.choice((1, 1, 2, 3))), **({"veto": veto} if veto else {})}


def write(store: Store, number: int, said: list[dict[str, Any]], order: random.Random) -> None:
    lines: dict[str, bytes] = {}
    for place, each in enumerate(said):
        at = f"2026-11-18T{number // 60 % 24:02}:{number % 60:02}:{order.randint(0, 59):02}.{place:06}Z"
        head = {"at": at, "kind": "signal", "schema_version": "A2A.V1"}
        answers = {"answers_digest": digest(lines[each["reply_to"]])} if "reply_to" in each else {}
        lines[each["signal_id"]] = json.dumps({**head, **each, **answers}, separators=(",", ":")).encode()
    shuffled = order.sample(list(lines.values()), len(lines))
    store.record([("signals", line) for line in shuffled], CommitMessage("A <a@b>", "elsewhere"))


class Places:
    """What each place says of a thread."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.callers = {each: _caller(each) for each in PARTIES}
        page = page_data.collect(store)
        lanes = {each["id"]: each["identity"] for each in page["agents"]}
        self.page = {each["id"]: each for each in page["threads"]}
        self.on_page = {
            id: [(lanes[lane], how) for lane, how in each["stands"]] for id, each in self.page.items()
        }
        db = store.db()
        self.owed = {
            (each.owes, each.id) for each in open_work.waits(store, limit=100_000, fold_most=1 << 30).rows
        }
        self.blocking: dict[
            tuple[str, str], set[str]
        ] = {}  # by reader and work unit, of which ten threads are
        self.inbox: dict[str, dict[str, Any]] = {}
        self.open: dict[str, set[str]] = {}
        self.listed: dict[str, set[str]] = {}
        self.counts: dict[str, tuple[tuple[int, int], tuple[int, int]]] = {}
        for who, caller in self.callers.items():
            shown = inbox.read(store, caller, all=True, limit=100_000, max_bytes=1 << 30, fold_most=1 << 30)
            self.inbox[who] = {each["signal_id"]: each for each in shown.signals}
            left = inbox.read(store, caller, limit=100_000, max_bytes=1 << 30, fold_most=1 << 30).signals
            wants = sum(each.get("owed", False) and "settled" not in each for each in left)
            self.counts[who] = (len(left), wants), unread_counts(db, who, caller.session_id, None, NOW)
            self.open[who] = {each.signal_id for each in context.find_open_threads(store, caller)}
            rows = thread_list.list_threads(store, caller, limit=100_000, fold_most=1 << 30).threads
            self.listed[who] = {id for row in rows for id in row.owed}

    def check(self, thread: str, said: list[dict[str, Any]]) -> None:
        """All places say what the reference says."""
        wanted = Agreement(
            {each["signal_id"]: {**each, "created_at": f"{at:04}"} for at, each in enumerate(said)}, {}
        )  # type: ignore[misc]
        lists = wanted.convergence((), thread)
        root, force, on = said[0]["signal_id"], {*wanted.in_force}, wanted.agreed_on
        found = threads.converged(self.store, thread)
        assert (found.converged, found.agreed_on and found.agreed_on.signal_id) == (on is not None, on)
        assert {each.signal_id for each in found.in_force} == force
        assert (found.agreed, found.rejected, found.countered, found.pending) == tuple(
            lists[name] for name in ("agreed", "rejected", "countered", "pending")  # type: ignore[literal-required]
        )  # fmt: skip
        for id in wanted.ids:
            assert threads.converged(self.store, id).converged == (id == on)
        self.check_texts(thread, found, on, force, root)
        stands = [(each.identity, each.decision) for each in found.recipients]
        self.check_page(thread, stands, on, force, root)
        self.check_why(thread, said, found)
        for who in PARTIES:
            self.check_owed(thread, who, said, found)

    def check_texts(
        self, thread: str, found: threads.Converged, on: str | None, force: set[str], root: str
    ) -> None:
        shown = threads.thread(self.store, thread)
        assert (
            shown.agreed_on and shown.agreed_on.signal_id,
            {each.signal_id for each in shown.in_force},
        ) == (on, force)
        assert [each.as_json() for each in shown.recipients] == [each.as_json() for each in found.recipients]
        foot = rendered.standing(shown)
        texts = ["\n".join(rendered.converged(found)), "\n".join(foot) if shown.asks or on else None,
                 str(tool_results.of(found, rendered.converged(found)).content)]  # fmt: skip
        detail = board.thread_detail(self.store, self.callers[PARTIES[0]], thread)
        assert detail.blocks[-1].lines == foot
        for text in texts:
            is_named = text is None or not found.recipients or all(id in text for id in force)
            assert is_named and (
                text is None or ('agreed on "' in text) >= (on is not None and bool(found.recipients))
            )

    def check_page(
        self, thread: str, stands: list[tuple[str, str]], on: str | None, force: set[str], root: str
    ) -> None:
        mark = self.page[thread]
        assert (mark["state"] == "converged") == (on is not None)
        assert {each["signal"] for each in mark.get("in_force", [{"signal": root}])} == force  # type: ignore[typeddict-item]
        assert self.on_page[thread] == stands or mark["state"] == "notice"

    def check_why(self, thread: str, said: list[dict[str, Any]], found: threads.Converged) -> None:
        told = [
            each
            for each in why.threads_of(self.store.db(), None, said[0]["wu_id"], NOW)
            if each.thread_id == thread
        ]
        for each in told:
            assert [one.as_json() for one in each.in_force] == [one.as_json() for one in found.in_force]
            assert (each.agreed_on is not None) == found.converged
            assert all(one.signal_id in rendered_why._thread(each) for one in found.in_force)
            names = {one.by for one in found.in_force}
            for name, listed in (
                ("agreed", each.agreed),
                ("pending", each.pending),
                ("rejected", each.rejected),
            ):
                if found.recipients and name != "agreed":
                    assert {*listed} - names == {*getattr(found, name)} - names

    def check_owed(self, thread: str, who: str, said: list[dict[str, Any]], found: threads.Converged) -> None:
        caller = self.callers[who]
        mine = {
            each["signal_id"] for each in said if who in each["recipients"] and each["sender_identity"] != who
        }
        shown = threads.thread(self.store, thread, caller)
        asks = {each["signal_id"] for each in shown.signals if each.get("owed")} & mine
        assert asks == {id for reader, id in self.owed if reader == who} & mine
        shown_here = {id: self.inbox[who][id] for id in mine}
        assert asks == {
            id for id, each in shown_here.items() if each.get("owed") and "asks_about" not in each
        }
        again = {each["asks_about"] for each in shown_here.values() if "asks_about" in each}
        every = {each["signal_id"] for each in shown.signals if each.get("owed")}
        assert again <= every and again <= {each.signal_id for each in found.in_force}
        assert asks == self.listed[who] & mine
        assert bool(every) == bool(self.open[who] & {each["signal_id"] for each in said})
        asked_by_line = {
            id for each in mine for id in REPLY.findall(self.inbox[who][each].get("reply_line", ""))
        }
        assert asked_by_line == {id for id in asks if self.inbox[who][id]["intent"] != "AGREE"} | again
        assert asks | every <= self.blocks(who, said[0]["wu_id"])
        asking = {each["signal_id"] for each in said if each["requires_ack"] or each["intent"] in ASKS}
        force = {each.signal_id for each in found.in_force}
        quorum = found.quorum
        is_done = quorum is not None and (
            found.converged or (quorum.agreed >= quorum.need and who not in quorum.waits_for)
        )
        assert not (is_done and force & every)
        if who in found.pending and len(force) == 1 and force <= asking and not is_done:
            assert found.in_force[0].signal_id in every
        recorded = {
            each.reader_identity: each.delivery_state
            for each in history.receipt_list(self.store, said[0]["signal_id"]).receipts
        }
        delivered = shown.signals[0]["delivery"]
        assert {reader: state for reader, state in recorded.items() if reader in delivered} == delivered

    def blocks(self, who: str, wu: str) -> set[str]:
        if (who, wu) not in self.blocking:
            self.blocking[who, wu] = {*gate.look(self.store, self.callers[who], wu, ())[1]}
        return self.blocking[who, wu]


def _caller(identity: str) -> Caller:
    found = Caller(identity, identity, "as")
    found.identity = identity
    return found


def _check(repo: Path, numbers: range) -> None:
    said = {number: random_signals(number) for number in numbers}
    with gitmem.open(str(repo), now=lambda: NOW) as log:
        for number, each in said.items():
            write(log.store, number, each, random.Random(number))
        places = Places(log.store)
        for shown, counted in places.counts.values():
            assert shown == counted and shown[1]
        for number, each in said.items():
            places.check(f"thread-{number:08}", each)


def test_all_places_say_the_same_about_random_threads(repo: Path) -> None:
    """With counters, conflicts, answers to what was replaced, and people who were not asked."""
    _check(repo, range(60))


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(each, marks=pytest.mark.deep if each < 1_060 else pytest.mark.soak)
        for each in range(60, 2_060, 50)
    ],
)
def test_all_places_say_the_same_about_2_000_random_threads(repo: Path, first: int) -> None:
    """The same for more threads."""
    _check(repo, range(first, first + 50))


# The root of a thread, and what a new signal names: decided by what was seen, whatever the clocks say.


def said(
    id: str,
    by: str = "a",
    intent: str = "INFO",
    *,
    at: int = 0,
    after: tuple[str, ...] = (),
    reply_to: str = "",
    session: str | None = None,
) -> ThreadSignal:
    record = {"at": f"2026-11-21T20:00:00.{at:06d}Z", "signal_id": id, "sender_identity": by, "intent": intent,
              "after": list(after), "reply_to": reply_to or None, "sender_session": session, "recipients": []}  # fmt: skip
    return ThreadSignal(record, [json.dumps(record, separators=(",", ":")).encode()])


def thread(*items: ThreadSignal) -> dict[str, ThreadSignal]:
    return {item.id: item for item in items}


@one_test_for(
    [
        {"reply_to": ""},
        {"reply_to": 1},
        {"after": "sig-1"},
        {"recipients": None},
        {"intent": "agree"},
        {"via": []},
    ]
)
def test_a_line_with_a_field_of_another_form_is_no_signal(odd: dict[str, object]) -> None:
    """Lines of others: what folds a thread need not ask for the form of a field."""
    whole = {"at": "2026-11-21T20:00:00.000000Z", "kind": "signal", "signal_id": "sig-0001",
             "sender_identity": "a:b:c", "message": "hello"}  # fmt: skip

    assert records.read_kind("signal", json.dumps(whole, separators=(",", ":")).encode()) is not None
    assert records.read_kind("signal", json.dumps({**whole, **odd}, separators=(",", ":")).encode()) is None


def test_the_root_answers_nothing_of_its_thread() -> None:
    """Of several, as when two clones opened one thread id apart, the lowest line."""
    late, early = said("late", at=5), said("early", at=3, reply_to="sig-of-another-thread")

    assert causality.root("thread-x", thread(late, early, said("re", at=1, reply_to="late"))).id == "early"


def test_a_new_signal_names_what_its_writer_had_seen() -> None:
    """Its own last signal and decision, and the heads of what it read; nothing that it did not see."""
    found = thread(
        said("root", "a"),
        said("mine", "b", "AGREE", at=1, reply_to="root"),
        said("read", "c", at=2, reply_to="mine"),
        said("unread", "c", at=3, reply_to="mine"),
    )

    folded = FoldedThread("thread-x", found)

    assert causality.ids_for_after(["b"], folded, {"root", "read"}, None) == ["mine", "read"]
    assert causality.ids_for_after(["b"], folded, {"root"}, "unread") == ["mine", "unread"]


def test_a_new_signal_names_ones_own_last_decision_beside_ones_own_last_word() -> None:
    """Also where the last word knew the decision: who reads one line learns where its writer stands."""
    found = thread(
        said("root", "a"),
        said("z-no", "b", "REJECT", at=9, reply_to="root"),
        said("y-yes", "b", "AGREE", at=2, after=("z-no",)),
        said("x-word", "b", at=3, after=("y-yes",)),
        said("w-unseen", "c", "REJECT", at=9, reply_to="root"),
    )

    assert causality.ids_for_after(["b"], FoldedThread("thread-x", found), set(), None) == ["y-yes", "x-word"]


# The folds of a thread are those of a naive reference, in any order of arrival.

READERS = ("a", "b", "c", "sess-1", "sess-2", "nobody")


def _check_folds(thread: Mapping[str, ThreadSignal], seed: int) -> None:
    edges = references.earlier(thread)
    items = list(thread.items())
    random.Random(seed).shuffle(items)
    found = FoldedThread("thread-x", dict(items))
    assert [one.id for one in found.order.shown()] == references.in_order(thread, edges)
    _check_agreement(found, thread)


def _check_agreement(found: FoldedThread, thread: Mapping[str, ThreadSignal]) -> None:
    oldest = sorted(thread.values(), key=lambda each: each.line)
    said: dict[str, Any] = {
        each.id: {**each.record, "created_at": f"{at:05}"} for at, each in enumerate(oldest)
    }
    wanted = Agreement(said, {})
    assert list(found.parties) == wanted.parties
    assert found.proposals.keys() == wanted.ids
    assert (found.agreed_on.id if found.agreed_on else None) == wanted.agreed_on
    assert found.in_force.keys() == {*wanted.in_force}
    for id in thread:
        assert found.answered.get(id) == wanted.proposal_of(id)
    for reader in READERS:
        at, (how, on) = found.position(reader), wanted.position(reader)
        assert (at is None) == (how == "pending")
        assert at is None or (at.rejects, set(at.proposals)) == (how == "reject", on)
        for id in thread:
            last, expected = found.answer(reader, id), wanted.answer(reader, id)
            assert (last.id if last else None) == (expected["signal_id"] if expected else None)
    lists = wanted.convergence((), "")
    names = {"agree": "agreed", "reject": "rejected", "counter": "countered", "pending": "pending"}
    for decision, name in names.items():
        decisions = (
            ("agree", "counter") if decision == "agree" else (decision,)
        )  # a counter's author agrees to it
        assert [each for each in found.asked if found.stands(each)[0] in decisions] == lists[name]  # type: ignore[literal-required]


def test_folds_of_random_threads_are_those_of_the_reference() -> None:
    """With cycles, ids that are named and missing, equal times and several decisions of one reader."""
    for seed in range(300):
        _check_folds(random_thread(seed), seed)


@pytest.mark.deep
def test_folds_of_many_random_threads_are_those_of_the_reference() -> None:
    """The same for more threads."""
    for seed in range(300, 5_000):
        _check_folds(random_thread(seed), seed)
