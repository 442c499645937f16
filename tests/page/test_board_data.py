"""The board's data say what the commands say: closed gates, reasons, debts, contested claims, agreements, handoffs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import gitmem
from benchmarks import workbench
from gitmem import records
from gitmem.agents.caller import CallerClaims
from gitmem.api.log import Log
from gitmem.log.lines import format_at
from gitmem.page import page_data
from gitmem.page.board import Lanes, SessionBars
from gitmem.page.page_data import GateMarks
from gitmem.signals.thread_list import ManyThreads, Selection

from .. import templates
from ..conftest import Git
from ..signing import ANNA, MALLORY, attest, own_key

NOW = 1_795_000_000_000_000  # microseconds
MINUTE = 60 * 1_000_000
HOSTILE = "</script><img src=x onerror=alert(1)>\u202e\x1b[31m"
NAMES = ("Curie", "Noether", "Gauss")


def opened(path: Path, who: str | None = None, minutes: float = 0) -> Log:
    return gitmem.open(str(path), now=lambda: NOW + int(minutes * MINUTE), commit_after=0, session=who)


def data_of(path: Path, minutes: float = 60, **filters: Any) -> dict[str, Any]:
    with opened(path, minutes=minutes) as log:
        return page_data.collect(log.store, **filters)


def named(data: dict[str, Any], name: str) -> str:
    return next(each["id"] for each in data["agents"] if each["name"] == name)


def made(path: Path) -> None:
    """Make a repository with a session of each agent, on WU-1, WU-2 and WU-3."""
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", str(path)], check=True)
    own_key(path)
    for number, name in enumerate(NAMES, 1):
        with opened(path) as log:
            identity = f"claude:implementer:{name.lower()}"
            log.sessions.start(
                name=name,
                agent_identity=identity,
                wu=f"WU-{number}",
                role="implementer/general",
                scope=["src/**"],
            )


def start(tmp_path: Path) -> Path:
    templates.copy("page-board", tmp_path / "board", made)
    return tmp_path / "board"


def from_far(path: Path, *lines: tuple[str, bytes]) -> None:
    """Publish lines that Mallory wrote and attested."""
    attested = attest([line for _, line in lines], MALLORY)
    workbench.publish(str(path), iter([*lines, ("attestations", attested)]))


def asked(path: Path, who: str, to: str, text: str, wu: str, minutes: float = 1) -> str:
    with opened(path, who, minutes) as log:
        return str(
            log.signals.send(text, to=[to], intent="PROPOSE", requires_ack=True, wu=wu).signal["signal_id"]
        )


def delegated(log: Log, text: str, **asked_for: Any) -> str:
    """Delegate a task; return its id."""
    return str(log.tasks.delegate(text, **asked_for).task["task_id"])


def test_a_closed_gate_is_that_of_the_command(tmp_path: Path) -> None:
    """With its blocking signals; on the unit of a task that the session has, too; not on other units, and not once it is passed."""
    path = start(tmp_path)
    first = asked(path, "Noether", "Curie", "Rename it?", "WU-1")
    asked(path, "Noether", "Curie", "Something on other work", "WU-9")
    with opened(path, "Gauss", 2) as log:
        task = delegated(log, "Test it", to="Curie", wu="WU-7", role="implementer/general", scopes=["src/**"])
    with opened(path, "Curie", 3) as log:
        log.tasks.take(task)
        log.inbox(wu="WU-7")
    second = asked(path, "Gauss", "Curie", "With the old data?", "WU-7", 4)
    with opened(path, "Curie", 5) as log:
        log.inbox(wu="WU-7")
        command = {wu: log.gate(wu=wu) for wu in ("WU-1", "WU-7")}

    data = data_of(path)

    shown = {each["wu"]: each for each in data["board"]["gates"]}
    assert {each["agent"] for each in data["board"]["gates"]} == {named(data, "Curie")}
    assert {wu: (each["unread"], each["unanswered"]) for wu, each in shown.items()} == {
        wu: (each.unread, each.unanswered) for wu, each in command.items()
    } == {"WU-1": (1, 0), "WU-7": (0, 1)}  # fmt: skip
    blockers = [*shown["WU-1"]["blockers"], *shown["WU-7"]["blockers"]]
    assert [(each["signal"], each["why"], each["from"]) for each in blockers] == [
        (first, "unread", named(data, "Noether")),
        (second, "unanswered", named(data, "Gauss")),
    ]
    assert [each["wu"] for each in data_of(path, wu="WU-7")["board"]["gates"]] == ["WU-7"]
    assert not data_of(path, agent="Gauss")["board"]["gates"]

    with opened(path, "Curie", 6) as log:
        log.gate(wu="WU-1", reason="the freeze")
    assert [each["wu"] for each in data_of(path)["board"]["gates"]] == ["WU-7"]


def test_reasons_are_shown_with_what_they_passed(tmp_path: Path) -> None:
    """Of the gate its signals, of a claim its id; the filters leave out others, and what a peer writes there is data."""
    path = start(tmp_path)
    signal = asked(path, "Noether", "Curie", "Rename it?", "WU-1")
    with opened(path, "Curie", 2) as log:
        log.gate(wu="WU-1", reason=f"the freeze {HOSTILE}")
        claim = log.claims.claim(["src/a.py"], reason="mine").claim_id
    with opened(path, "Gauss", 3) as log:
        log.claims.release(claim, reason="Curie is away")
    data = data_of(path)

    gate, release = data["board"]["passed"]
    assert (gate["agent"], gate["rule"], gate["wu"]) == (named(data, "Curie"), "gate", "WU-1")
    assert gate["signals"] == [signal] and gate["claims"] == []
    assert gate["reason"].startswith("the freeze ") and not {"\u202e", "\x1b"} & set(gate["reason"])
    assert (release["rule"], release["reason"], release["claims"]) == (
        "claim-release",
        "Curie is away",
        [claim],
    )
    assert "src/a.py" in release["past"]
    assert [each["id"] for each in data_of(path, agent="Gauss")["board"]["passed"]] == [release["id"]]
    assert not data_of(path, wu="WU-3")["board"]["passed"]


def test_what_is_owed_names_who_owes_what_to_whom_since_when(tmp_path: Path) -> None:
    """An answer, a reply to a question, the start of a task, and the decision on a result; each once."""
    path = start(tmp_path)
    proposal = asked(path, "Noether", "Curie", "Rename it?", "WU-1")
    with opened(path, "Curie", 2) as log:
        waiting, done, fresh, late = (
            delegated(log, text, to=to, wu="WU-2", role="implementer/general", scopes=["src/**"])
            for text, to in (
                ("Ask me", "Noether"),
                ("Do it", "Gauss"),
                ("Begin it", "Gauss"),
                ("Gone", "Gauss"),
            )
        )
    with opened(path, "Curie", 3) as log:
        log.tasks.cancel(late)
    with opened(path, "Noether", 4) as log:
        log.tasks.take(waiting)
    with opened(path, "Noether", 5) as log:
        log.tasks.ask(waiting, "Which of the two?")
    with opened(path, "Gauss", 6) as log:
        log.tasks.take(done)
    with opened(path, "Gauss", 7) as log:
        log.tasks.report(done, "completed", "It is done")

    data = data_of(path)

    agents = {each["id"]: each["name"] for each in data["agents"]}
    rows = [
        (each["to_do"], agents[each["owes"]], agents[each["waiter"]], each["since"] - NOW // 1_000, each["text"], each["id"], each["yours"])
        for each in data["board"]["waits"]
    ]  # fmt: skip
    assert rows == [
        ("to answer", "Curie", "Noether", 60_000, "Rename it?", proposal, False),
        ("to take", "Gauss", "Curie", 120_000, "Begin it", fresh, False),
        ("to answer", "Curie", "Noether", 300_000, "Which of the two?", waiting, False),
        ("to accept", "Curie", "Gauss", 420_000, "Do it", done, False),
    ]
    gauss = data_of(path, who=CallerClaims(as_="Gauss"))
    assert gauss["you"] == {"agent": named(gauss, "Gauss")}
    assert [(each["id"], each["yours"], each["ways"]) for each in gauss["board"]["waits"]][:2] == [
        (fresh, True, ["take", "refuse"]),
        (proposal, False, []),
    ]

    with opened(path, "Curie", 8) as log:
        log.tasks.message(waiting, "The first one")
        log.tasks.seal(done)
    for minutes, to_do in ((60, "to finish"), (70, "to take")):  # its lease of an hour is over
        shown = data_of(path, minutes)["board"]["waits"]
        assert {each["id"]: each["to_do"] for each in shown}[waiting] == to_do
        assert sorted(each["to_do"] for each in shown) == sorted(["to answer", "to take", to_do])


def test_a_thread_says_what_was_agreed_in_the_end(tmp_path: Path) -> None:
    """The counter-proposal that all agreed to, its writer by writing it."""
    path = start(tmp_path)
    with opened(path, "Curie", 1) as log:
        root = log.signals.send(
            "In cents?", to=["Noether", "Gauss"], intent="PROPOSE", requires_ack=True
        ).signal["signal_id"]
    with opened(path, "Gauss", 2) as log:
        log.inbox()
        log.signals.reply(root, "Fine", intent="AGREE")
    with opened(path, "Noether", 3) as log:
        log.inbox()
        counter = log.signals.reply(root, "In tenths of a cent", intent="COUNTER").signal["signal_id"]
    (before,) = data_of(path)["threads"]
    proposal = {"signal": counter, "agent": named(data_of(path), "Noether"), "text": "In tenths of a cent"}
    assert (before["state"], before["in_force"]) == ("countered", [proposal])

    for minutes, name in ((4, "Curie"), (5, "Gauss")):
        with opened(path, name, minutes) as log:
            log.inbox()
            log.signals.reply(counter, "Agreed", intent="AGREE")

    (thread,) = data_of(path)["threads"]
    assert (thread["state"], thread["title"]) == ("converged", "In cents?")
    assert thread["in_force"] == [proposal]
    agents = [named(data_of(path), name) for name in NAMES]
    assert (thread["verified"], sorted(thread["writers"])) == (
        True,
        sorted((each, [ANNA.writer]) for each in agents),
    )


def test_what_nobody_signed_is_unsigned_and_words_of_two_writers_are_two_agents(tmp_path: Path) -> None:
    """An agreement that was imported is unverified, and an agent has its writer."""
    path = start(tmp_path)
    words, at = "claude:implementer:curie", NOW + 2 * MINUTE
    thread_id, asker, asked = "thread-imported1", "sess-elsewhere1", "sess-elsewhere2"

    def unsigned(id: str, at: int, by: str, to: str, **more: Any) -> tuple[str, bytes]:
        fields = {
            "signal_id": id,
            "sender_identity": by,
            "recipients": [to],
            "thread_id": thread_id,
            "origin": "import",
            **more,
        }
        return "signals", records.line("signal", at, fields)

    lines = (
        unsigned("sig-0001", NOW, asker, asked, intent="PROPOSE", message="In cents?"),
        unsigned("sig-0002", at, asked, asker, reply_to="sig-0001", intent="AGREE", message="Yes"),
    )
    workbench.publish(str(path), iter(lines))
    with opened(path, "Curie", 1) as log:
        signed = log.signals.send("In euros?", to=["Gauss"], intent="PROPOSE").signal["thread_id"]
    same = {
        "signal_id": "sig-0003",
        "sender_identity": f"{words}@{MALLORY.writer}",
        "recipients": [],
        "message": "Hello",
    }
    from_far(path, ("signals", records.line("signal", at, same, writer=MALLORY.writer)))

    data = data_of(path)

    assert [each["id"] for each in data["signals"] if each.get("unsigned")] == ["sig-0001", "sig-0002"]
    thread = next(each for each in data["threads"] if each["id"] == thread_id)
    assert (thread["state"], thread["verified"]) == ("converged", False)
    signed_thread = next(each for each in data["threads"] if each["id"] == signed)
    assert (named(data, "Curie"), [ANNA.writer]) in signed_thread["writers"]
    curies = {
        each["identity"]: each.get("writer") for each in data["agents"] if each["identity"].startswith(words)
    }
    assert curies == {words: ANNA.writer, f"{words}@{MALLORY.writer}": MALLORY.writer}


def test_a_thread_that_returned_to_its_first_proposal_names_no_other(tmp_path: Path) -> None:
    """All agree, and to the first text."""
    path = start(tmp_path)
    with opened(path, "Curie", 1) as log:
        root = log.signals.send("In cents?", to=["Gauss"], intent="PROPOSE", requires_ack=True).signal[
            "signal_id"
        ]
    with opened(path, "Gauss", 2) as log:
        log.inbox()
        log.signals.reply(root, "In tenths of a cent", intent="COUNTER")
    with opened(path, "Gauss", 3) as log:
        log.signals.reply(root, "Or as you like", intent="AGREE")

    (thread,) = data_of(path)["threads"]

    assert thread["state"] == "converged" and "in_force" not in thread


def test_a_mismatch_of_a_task_that_ended_stays_on_the_board(tmp_path: Path) -> None:
    """Marked with when it ended, after those of open tasks."""
    path = start(tmp_path)
    ids = []
    for number, name in enumerate(("Noether", "Gauss")):
        with opened(path, "Curie", 1 + number) as log:
            ids.append(delegated(log, "Review it", to=name, role="reviewer/general", scopes=["src/**"]))
        with opened(path, name, 3 + number) as log:
            log.tasks.take(ids[-1])
    with opened(path, "Noether", 5) as log:
        log.tasks.report(ids[0], "completed", "Fine")

    found = data_of(path)["board"]["mismatches"]

    assert [(each["task"], "ended" in each) for each in found] == [(ids[1], False), (ids[0], True)]
    assert all("reviewer/general" in each["text"] for each in found)


def claim_line(number: int, minutes: float, paths: list[str], **more: object) -> tuple[str, bytes]:
    at = NOW + int(minutes * MINUTE)
    fields = {
        "claim_id": f"claim-{number:012d}", "event": "claim", "until": format_at(NOW + 300 * MINUTE), "mode": "exclusive", "paths": paths,
        "sender_identity": f"x:y:agent{number}@{MALLORY.writer}", "sender_name": f"Far {number}",
    }  # fmt: skip
    return "claims", records.line("claim", at, {**fields, **more}, writer=MALLORY.writer)


def test_claims_in_each_others_way_are_one_entry_with_the_reason(tmp_path: Path) -> None:
    """Which paths overlap, who came first, and whether they knew of one another; a filter for one side keeps the pair."""
    path = start(tmp_path)
    first = f"claim-{1:012d}"
    from_far(
        path,
        *(
            claim_line(1, 1, ["src/**", "docs/a.md"], reason="all of it", wu_id="WU-1"),
            claim_line(2, 2, ["src/b.py", "tests/b.py"], wu_id="WU-2"),
            claim_line(3, 0, ["docs/a.md"], after=[first]),
        ),
    )  # fmt: skip

    data = data_of(path)

    names = {each["id"]: each["name"] for each in data["agents"]}
    found = {
        tuple(names[side["agent"]] for side in each["sides"]): (each["why"], each["overlaps"])
        for each in data["board"]["contested"]
    }
    assert found == {
        ("Far 1", "Far 2"): ("unseen", [("src/**", "src/b.py")]),
        ("Far 1", "Far 3"): ("behind", [("docs/a.md", "docs/a.md")]),
    }
    of_one = data_of(path, wu="WU-2")
    assert [each["id"] for each in of_one["claims"]] == [f"claim-{2:012d}"]
    assert [side["claim"] for side in of_one["board"]["contested"][0]["sides"]] == [first, f"claim-{2:012d}"]


def test_a_handoff_names_what_it_hands_over(tmp_path: Path) -> None:
    """Its task, its claim and its checkpoint, by the ids under which the page has them."""
    path = start(tmp_path)
    with opened(path, "Gauss", 1) as log:
        task = delegated(
            log, "Export it", to="Curie", wu="WU-1", role="implementer/general", scopes=["src/**"]
        )
    with opened(path, "Curie", 2) as log:
        log.tasks.take(task)
        claim = log.claims.claim(["src/export.py"], wu="WU-1").claim_id
        log.memory.checkpoint("The header is missing", wu="WU-1")
        handoff = str(log.tasks.handoff("Noether", "My quota ends", wu="WU-1").task["task_id"])

    data = data_of(path)

    hands = next(each for each in data["tasks"] if each["id"] == handoff)["hands"]
    assert (hands["tasks"], hands["claims"], hands["threads"]) == ([task], [claim], [])
    assert hands["checkpoint"] in {each["id"] for each in data["nodes"]}
    assert claim in {each["id"] for each in data["claims"]}
    assert handoff in {each["id"] for each in data["board"]["waits"] if each["what"] == "handoff"}
    late = data_of(path, 25 * 60)["board"]["waits"]  # nobody can accept it any more
    assert handoff not in {each["id"] for each in late}


def test_a_task_names_what_it_waits_for_after_that_has_ended(tmp_path: Path) -> None:
    """A blocker that failed blocks no more, and stays named."""
    path = start(tmp_path)
    with opened(path, "Curie", 1) as log:
        first = delegated(log, "Try it", to="Gauss", wu="WU-3")
        second = delegated(log, "Test it", to="Noether", wu="WU-3", blocked_by=[first])  # fmt: skip

    def waits() -> tuple[list[str], list[str]]:
        task = next(each for each in data_of(path)["tasks"] if each["id"] == second)
        return task["blocked_by"], task["waits_for"]

    assert waits() == ([first], [first])
    with opened(path, "Gauss", 2) as log:
        log.tasks.take(first)
        log.tasks.report(first, "failed", "No quota")
    assert waits() == ([], [first])


def test_a_mismatch_after_a_handoff_names_who_was_asked(tmp_path: Path) -> None:
    """On the page and in `task show`: the taker was not asked."""
    path = start(tmp_path)
    with opened(path, "Gauss", 1) as log:
        task = delegated(log, "Export", to="Curie", wu="WU-1", role="implementer/delivery", scopes=["src/**"])  # fmt: skip
    with opened(path, "Curie", 2) as log:
        log.tasks.take(task)
        handoff = str(log.tasks.handoff("Noether", "My quota ends", wu="WU-1").task["task_id"])
    text = "Curie was asked as implementer/delivery and works as implementer/general"
    assert [each["text"] for each in data_of(path)["board"]["mismatches"]] == [text]
    with opened(path, "Noether", 3) as log:
        log.tasks.take(handoff)
        shown = [each.text for each in log.tasks.show(task).mismatches]

    text = "The task asks for implementer/delivery; Noether, who took it over from Curie, works as implementer/general"
    assert [each["text"] for each in data_of(path)["board"]["mismatches"]] == [text]
    assert shown[-1] == text


def test_unread_signals_are_counted_for_each_work_unit(tmp_path: Path) -> None:
    """A filter for one of them counts only its signals."""
    path = start(tmp_path)
    for minutes, unit in ((1, "WU-1"), (2, "WU-5"), (3, "WU-5")):
        asked(path, "Noether", "Curie", "Read me", unit, minutes)

    data = data_of(path)

    curie = named(data, "Curie")
    assert data["board"]["unread"] == [{"agent": curie, "count": 3, "units": {"WU-1": 1, "WU-5": 2}}]
    assert [each["count"] for each in data_of(path, wu="WU-1")["board"]["unread"]] == [1]


def test_commits_of_a_person_are_of_that_persons_lane(tmp_path: Path, git: Git) -> None:
    """By the mail address, whatever the name; nobody gets a lane by writing commits."""
    path = start(tmp_path)
    for mail in ("ada@example.org", "eve@example.org"):
        git("commit", "--quiet", "--allow-empty", f"--author=A <{mail}>", "-m", mail, cwd=path)  # fmt: skip
    fields = {
        "signal_id": "sig-00000001", "sender_identity": "human:ada@example.org", "recipients": [], "thread_id": "thread-longlong1",
        "intent": "INFO", "interrupt_class": "advisory", "message": "Good morning", "origin": "local",
    }  # fmt: skip
    workbench.publish(str(path), iter([("signals", records.line("signal", NOW, fields))]))

    data = data_of(path)

    lanes = {each["id"]: each["identity"] for each in data["agents"]}
    found = {each["subject"]: lanes.get(each.get("person", "")) for each in data["commits"]}
    assert found == {"ada@example.org": "human:ada@example.org", "eve@example.org": None}


def test_an_audit_opens_the_gate_of_its_reader_alone(tmp_path: Path) -> None:
    """Also where the reader works in another clone."""
    path = start(tmp_path)
    meitner = f"x:y:meitner@{MALLORY.writer}"

    def publish(kind: str, at: int, **fields: object) -> None:
        made = records.line(kind, at, fields, writer=MALLORY.writer)
        lines = [(records.STREAMS[kind], made), ("attestations", attest([made], MALLORY, at))]
        workbench.publish(str(path), iter(lines))

    publish("session", NOW, session_id="sess-000000000009", event="start", display_name="Meitner", clone_id="elsewhere0",
            agent_identity=meitner, wu_id="WU-1")  # fmt: skip
    ids = [asked(path, "Noether", to, "Rename it?", "WU-1") for to in ("Curie", "Meitner")]
    closed = data_of(path)["board"]["gates"]
    assert {each["blockers"][0]["signal"] for each in closed} == set(ids)

    publish("audit", NOW + MINUTE, audit_id="audit-000000000001", action="gate", reason=f"never mind {HOSTILE}",
            reader_identity=meitner, signal_ids=ids, wu_id="WU-1", sender_identity=meitner)  # fmt: skip
    data = data_of(path)
    assert [each["agent"] for each in data["board"]["gates"]] == [named(data, "Curie")]
    assert len(data["board"]["passed"]) == 1


def test_the_history_of_a_node_says_who_verified_it_at_which_commit(tmp_path: Path, git: Git) -> None:
    """And not that a field of the record has changed."""
    path = start(tmp_path)
    git("commit", "--quiet", "--allow-empty", "-m", "First", cwd=path)
    with opened(path, "Curie", 1) as log:
        node = log.memory.append("It is so").node.id
    with opened(path, "Noether", 2) as log:
        log.memory.update(node, verified=True)

    data = data_of(path)

    head = git("rev-parse", "HEAD", cwd=path)[:12]
    (shown,) = data["nodes"]
    assert [(each["agent"], each["what"]) for each in shown["history"]] == [
        (named(data, "Curie"), "created"),
        (named(data, "Noether"), f"verified at {head}"),
    ]


def test_a_summary_leads_to_all_that_it_covers(tmp_path: Path) -> None:
    """The marks of the covered nodes are relations of the page, though no line of a relation says so."""
    path = start(tmp_path)
    with opened(path, "Curie", 1) as log:
        nodes = [str(log.memory.append(text, wu="WU-1").node.id) for text in ("one", "two")]
        summary = str(log.memory.summarize("WU-1").summary.id)

    relations = data_of(path)["relations"]

    found = {(each["from"], each["to"], each["type"]) for each in relations}
    assert found == {(summary, node, "summarizes") for node in nodes}


def test_gates_that_were_not_looked_at_are_counted(tmp_path: Path) -> None:
    """Nobody reads from the page that they are open."""
    with opened(start(tmp_path)) as log:
        db, only = log.store.db(), Selection(log.store)
        current = SessionBars(log.store, only).current
        lanes = Lanes(log.store, current)
        found = GateMarks(log.store, only, current, [], ManyThreads(db, only, 1), lanes, most=1)

    assert found.unseen == len(NAMES) - 1
    assert found.notes == ["Not all gates were looked at: there are too many signals."]


def test_hostile_words_of_the_board_are_data_and_have_limits(tmp_path: Path) -> None:
    """In questions, agreements, reasons and paths; of many reasons and claims the newest are shown, and the rest is counted."""
    path = start(tmp_path)
    with opened(path, "Curie", 1) as log:
        task = delegated(log, f"Do {HOSTILE}", to="Gauss", role="implementer/general", scopes=["src/**"])  # fmt: skip
    with opened(path, "Gauss", 2) as log:
        log.tasks.take(task)
    with opened(path, "Gauss", 3) as log:
        log.tasks.ask(task, f"Which {HOSTILE}" + "x" * 10_000)
    lines = [
        (
            "audits",
            records.line("audit", NOW + number, {
                "audit_id": f"audit-{number:012d}", "action": "gate<script>", "reason": "r" * 20_000, "reader_identity": f"x:y:z{number}",
                "signal_ids": [f"sig-{each:08d}" for each in range(100)], "sender_identity": "x:y:z",
            }),
        )
        for number in range(220)
    ]  # fmt: skip
    claims = [claim_line(number, number / 10, [f"src/<b>{number % 2}\u202e"] * 40) for number in range(20)]
    workbench.publish(str(path), iter(lines))
    from_far(path, *claims)

    data = data_of(path)

    board = data["board"]
    assert 100 < len(board["passed"]) == 220 - data["omitted"]["passed"] < 200
    assert sum(len(each["reason"]) for each in board["passed"]) <= 200_000
    assert max(len(each["signals"]) for each in board["passed"]) == 50
    assert 0 < len(board["contested"]) <= 200
    assert max(len(each["overlaps"]) for each in board["contested"]) <= 10
    assert any(each["text"].startswith("Which ‹/script>") for each in board["waits"])
    assert not {"\u202e", "\x1b"} & set(json.dumps(data, ensure_ascii=False))
