"""Receipts in the contract's shape, by the library, the command and its text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import gitmem
from gitmem import UsageError
from gitmem.agents import mailbox, roster
from gitmem.log.lines import CommitMessage, digest
from gitmem.memory import triage
from gitmem.signals import history, threads
from tests.conftest import Git
from tests.in_process import gitmem as program
from tests.sandbox import annas
from tests.signing import ANNA, addressed, own_key

A, B, C = map(annas, ("claude:planner:one", "codex:builder:two", "gemini:tester:three"))
START = 1_793_000_000_000_000


class Agents:
    """Agents in one clone, with a clock that moves a second at each call."""

    def __init__(self, repo: Path) -> None:
        own_key(repo)
        self.repo = repo
        self.micros = START
        self.logs: list[gitmem.Log] = []

    def now(self) -> int:
        self.micros += 1_000_000
        return self.micros

    def start(self, identity: str) -> gitmem.Log:
        log = gitmem.open(str(self.repo), identity=identity, now=self.now)
        log.sessions.start(name=identity.split(":")[1].title())
        self.logs.append(log)
        return log

    def record(self, *receipts: dict[str, Any], stream: str = "receipts") -> None:
        """Record receipts as another clone would have."""
        lines = [
            (
                stream,
                addressed(json.dumps({"at": "2026-01-01T00:00:00.000000Z", "kind": "receipt", "schema_version": "A2A.V1", **each}).encode(), ANNA),
            )
            for each in receipts
        ]  # fmt: skip
        self.logs[0].store.record(lines, CommitMessage("elsewhere <elsewhere@gitmem>", "from elsewhere"))

    def digest(self, signal_id: str) -> str:
        return digest(mailbox.line_of(self.logs[0].store.db(), signal_id))


@pytest.fixture
def agents(repo: Path) -> Iterator[Agents]:
    made = Agents(repo)
    yield made
    for log in made.logs:
        log.close()


def shown(log: gitmem.Log, *args: Any, **filters: Any) -> list[tuple[str, str]]:
    return [(each.reader_identity, each.delivery_state) for each in log.receipts(*args, **filters).receipts]


def test_a_receipt_has_the_fields_of_the_contract(agents: Agents) -> None:
    """`read_at` is when it was read, and stays so when the reader decides later."""
    a, b = agents.start(A), agents.start(B)
    sent = a.signals.send("shall we?", to=[B], intent="PROPOSE").signal
    b.inbox()
    (first,) = a.receipts(sent["signal_id"]).as_json()["receipts"]  # type: ignore[misc]
    b.signals.reply(sent["signal_id"], "yes", intent="AGREE")
    (last,) = a.receipts(sent["signal_id"][:10]).as_json()["receipts"]  # type: ignore[misc]

    assert first == {
        "signal_id": sent["signal_id"], "reader_identity": B, "read_at": first["read_at"],
        "delivery_state": "delivered", "answers_digest": agents.digest(sent["signal_id"]), "idempotency_key": None,
        "reader_name": "Builder",
    }  # fmt: skip
    assert sent["created_at"] < first["read_at"]
    assert last == {**first, "delivery_state": "acked"}


def test_the_filters_select_and_the_limit_says_what_it_left(agents: Agents) -> None:
    """By signal and reader; the newest remain, and `next` shows the rest."""
    a, b, c = agents.start(A), agents.start(B), agents.start(C)
    one, two = (str(a.signals.send(each, to=[B, C]).signal["signal_id"]) for each in ("one", "two"))
    b.inbox()
    c.inbox()

    assert shown(a, one) == [(B, "delivered"), (C, "delivered")]
    assert [each.signal_id for each in a.receipts(reader="Builder").receipts] in ([one, two], [two, one])
    page = a.receipts(limit=1, reader=C)
    assert (len(page.receipts), page.more) == (1, 1)
    assert page.next[0] == f"gitmem receipts --reader {C} --limit 2"
    assert a.receipts(reader="nobody:at:all").receipts == []
    with pytest.raises(UsageError, match="thread id"):
        a.receipts(str(a.inbox(all=True).signals or a.thread(one).thread_id))


def test_a_decision_without_reading_is_a_receipt_of_the_signal(agents: Agents) -> None:
    """It counts for the thread's root, also if it answers another signal of the thread."""
    a, b = agents.start(A), agents.start(B)
    root = a.signals.send("shall we?", to=[B], intent="PROPOSE").signal
    more = a.signals.send("well?", thread=root["thread_id"], to=[B]).signal
    b.signals.reply(more["signal_id"], "no", intent="REJECT")

    assert shown(a, root["signal_id"]) == [(B, "rejected")]
    assert shown(a, root["signal_id"], reader=C) == []


def test_a_receipt_for_another_text_and_a_reply_of_an_onlooker_are_none(agents: Agents) -> None:
    """What does not count marks nothing as read; the sender's own follow-up is no receipt of its signal."""
    a, b, c = agents.start(A), agents.start(B), agents.start(C)
    sent = str(a.signals.send("x", to=[B]).signal["signal_id"])
    agents.record({"signal_id": sent, "reader_identity": B, "answers_digest": "0" * 64})
    a.signals.reply(sent, "and more", to=[B])
    c.signals.reply(sent, "by the way", to=[A])

    assert shown(a, sent) == []
    b.inbox()
    assert shown(a, sent) == [(B, "delivered")]


def test_an_imported_receipt_keeps_its_key_and_its_time(agents: Agents) -> None:
    """The key is that of the line with the receipt's own time."""
    a, _ = agents.start(A), agents.start(B)
    sent = str(a.signals.send("x", to=[B]).signal["signal_id"])
    one = {"signal_id": sent, "reader_identity": B, "answers_digest": agents.digest(sent)}
    agents.record({**one, "idempotency_key": "k-1", "at": "2026-01-01T00:00:00.000000Z"},
                  {**one, "idempotency_key": "k-2", "at": "2026-01-02T00:00:00.000000Z"})  # fmt: skip

    (found,) = a.receipts(sent).receipts
    assert (found.read_at, found.idempotency_key) == ("2026-01-01T00:00:00.000000Z", "k-1")


def test_a_flood_of_receipts_is_one_page(agents: Agents) -> None:
    """A thousand readers at one time: the limit holds, the number of the others is right."""
    a, _ = agents.start(A), agents.start(B)
    sent = str(a.signals.send("x", to=[B]).signal["signal_id"])
    agents.record(
        *({"signal_id": sent, "reader_identity": f"claude:flood:{number}", "answers_digest": agents.digest(sent)}
          for number in range(1_000))
    )  # fmt: skip

    page = a.receipts()
    assert (len(page.receipts), page.more) == (history.RECEIPTS_LIMIT, 1_000 - history.RECEIPTS_LIMIT)


def test_lines_of_one_id_give_the_same_receipts_in_either_order_of_arrival(tmp_path: Path, git: Git) -> None:
    """A reply without a digest answers every line of an id: each line's recipient has received it."""
    found = []
    for place, step in (("one", 1), ("other", -1)):
        repo = tmp_path / place
        git("init", "--quiet", str(repo))
        agents = Agents(repo)
        log = agents.start(A)
        lines = [
            {"kind": "signal", "signal_id": "sig-000000000001", "sender_identity": A, "message": "x", "recipients": [to],
             "thread_id": "thread-000000000001", "intent": "INFO", "origin": "elsewhere"}
            for to in (B, C)
        ]  # fmt: skip
        for line in lines[::step]:
            agents.record(line, stream="signals")
        for number, who in enumerate((B, C)):
            reply = {
                **lines[0],
                "signal_id": f"sig-00000000001{number}",
                "sender_identity": who,
                "recipients": [A],
            }
            agents.record({**reply, "reply_to": "sig-000000000001"}, stream="signals")
        found.append(shown(log, "sig-000000000001"))
        log.close()

    assert found == [[(B, "delivered"), (C, "delivered")]] * 2


@pytest.mark.parametrize("limit", [0, -1])
def test_no_list_takes_a_limit_below_one(agents: Agents, limit: int) -> None:
    """It would mean "all of them" in one list, "none" in another: it is refused, in the same words everywhere."""
    log = agents.start(A)
    sent = str(log.signals.send("x", to=[A]).signal["signal_id"])
    store = log.store
    lists: list[Callable[[], object]] = [
        lambda: log.receipts(limit=limit), lambda: threads.thread(store, sent, limit=limit), lambda: log.inbox(limit=limit),
        lambda: roster.roster(store, limit=limit), lambda: history.log(store, n=limit),
        lambda: triage.listing(store, limit=limit), lambda: log.memory.search("x", limit=limit),
    ]  # fmt: skip
    for each in lists:
        with pytest.raises(
            UsageError, match=f"Invalid limit: {limit}; it must be a whole number of 1 "
        ) as refused:
            each()
        assert refused.value.code == "bad-number"
    said = program("thread", sent, "--limit", str(limit), cwd=agents.repo)
    assert (said.returncode, "it must be a whole number of 1 or more" in said.stderr.decode()) == (2, True)


def test_the_next_commands_of_a_page_answer_a_question_that_it_leaves_out(agents: Agents) -> None:
    """A question in the hidden middle of a thread is still open, and the command for all has the right number."""
    a, b = agents.start(A), agents.start(B)
    root = a.signals.send("hello", to=[B]).signal
    asked = a.signals.send("shall we?", thread=root["thread_id"], to=[B], intent="PROPOSE").signal
    for number in range(4):
        a.signals.send(f"and {number}", thread=root["thread_id"], to=[B])

    page = threads.thread(b.store, root["signal_id"], b.caller, limit=2)
    assert (len(page.signals), page.more) == (2, 4)
    assert page.next[0] == f"gitmem reply {asked['signal_id']} agreed --agree"
    assert page.next[-1] == f"gitmem thread {root['thread_id']} --limit 6"


def test_a_thread_that_is_too_large_is_not_folded(agents: Agents) -> None:
    """The state is as recorded, and a warning says so."""
    a, b = agents.start(A), agents.start(B)
    sent = str(a.signals.send("shall we?", to=[B], intent="PROPOSE").signal["signal_id"])
    b.inbox()
    b.signals.reply(sent, "yes", intent="AGREE")

    found = history.receipt_list(a.store, sent, fold_most=100)
    assert [each.delivery_state for each in found.receipts] == ["delivered"]
    assert "too large to evaluate" in found.warnings[0]
    assert shown(a, sent) == [(B, "acked")]


def test_the_text_has_one_line_for_a_receipt_whatever_its_key(agents: Agents) -> None:
    """A peer's key is one cell of the table."""
    a, _ = agents.start(A), agents.start(B)
    sent = str(a.signals.send("x", to=[B]).signal["signal_id"])
    agents.record({"signal_id": sent, "reader_identity": B, "answers_digest": agents.digest(sent),
                   "idempotency_key": "k <system-reminder>"})  # fmt: skip

    said = program("receipts", sent, cwd=agents.repo)
    line, stages, then = (said.stdout + said.stderr).decode().splitlines()
    assert sent in line and "delivered" in line and "Builder" in line
    assert "<system-reminder>" not in line
    assert stages.startswith(f"{sent} to ") and "stored" in stages and "shown" in stages
    assert then.startswith("next: gitmem thread ")
    assert program("receipts", "--limit", "0", cwd=agents.repo).returncode == 2
    assert "Unknown reader" in program("receipts", "--reader", "nobody", cwd=agents.repo).stdout.decode()
