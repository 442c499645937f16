"""What agents who propose, counter and answer are told: what is agreed on, by whom, and what each still owes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gitmem
from gitmem import records
from gitmem.log.lines import CommitMessage
from gitmem.page import page_data

from ..commits.people import git, install_hook
from ..signing import own_key
from .conftest import Run, Said
from .test_next_commands import steps

Start = Callable[..., str]
AGREE = "To agree: gitmem reply {} agreed --agree"


class Talk:
    """Agents of one repository, each with a session; `signals` are the ids of what was said."""

    def __init__(self, run: Run, start: Start, *names: str) -> None:
        self.run = run
        self.sessions = {name: start(name) for name in names}

    def __call__(self, who: str, *words: str) -> Said:
        return self.run(*words, session=self.sessions[who])

    def says(self, who: str, *words: str) -> str:
        said = self(who, *words, "-q")
        assert said.status == 0, said
        return said.out.strip()

    def proposes(self, who: str, text: str, to: str, *more: str) -> str:
        return self.says(who, "signal", text, "--to", to, "--intent", "PROPOSE", *more)

    def counters(self, who: str, id: str, text: str, *more: str) -> str:
        return self.says(who, "reply", id, text, "--counter", *more)

    def agrees(self, who: str, id: str) -> str:
        return self.says(who, "reply", id, "agreed", "--agree")

    def converged(self, id: str) -> Any:
        found = self.run("converged", id, "--json")
        assert found.status == (0 if found.json["converged"] else 1), found
        return found.json


@pytest.fixture
def talk(run: Run, start: Start, repo: Path) -> Talk:
    own_key(repo)
    return Talk(run, start, "Ada", "Bohr", "Curie")


def test_a_counter_that_its_proposer_rejects_is_not_agreed(talk: Talk) -> None:
    """Ada proposes vim, Bohr counters with emacs, Curie and Bohr agree to that, Ada rejects it: nobody may build vim."""
    vim = talk.proposes("Ada", "Use vim", "Bohr,Curie")
    emacs = talk.counters("Bohr", vim, "Use emacs")
    for each in ("Curie", "Bohr"):
        talk.agrees(each, emacs)
    talk.says("Ada", "reply", emacs, "does not count", "--reject")

    for id in (vim, emacs):
        found = talk.converged(id)
        assert (found["converged"], found["agreed_on"], found["rejected"]) == (
            False,
            None,
            ["test:worker:ada"],
        )
    said = talk("Ada", "converged", vim, "--wait", "60s")
    assert f'{vim} was replaced by "Use emacs" (Bohr, {emacs}); ask about that' in said.out
    assert steps(said)[0] == f"gitmem converged {emacs}" and said.status == 1


def test_a_counter_that_all_accept_is_named(talk: Talk) -> None:
    """Its writer has agreed to it by writing it; text, JSON, the thread and the first proposal say what was agreed on."""
    vim = talk.proposes("Ada", "Use vim", "Bohr,Curie")
    emacs = talk.counters("Bohr", vim, "Use emacs")
    assert talk.converged(emacs)["pending"] == ["test:worker:ada", "test:worker:curie"]
    for each in ("Ada", "Curie"):
        talk.agrees(each, emacs)

    agreed = {"signal_id": emacs, "text": "Use emacs", "by": "test:worker:bohr", "by_name": "Bohr"}
    thread = talk.run("thread", vim, "--json").json
    for id in (emacs, thread["thread_id"], thread["signals"][-1]["signal_id"]):
        found = talk.converged(id)
        assert (found["converged"], found["agreed_on"]) == (True, agreed)
    assert thread["agreed_on"] == agreed and thread["in_force"] == [agreed]
    assert f'agreed on "Use emacs" (Bohr, {emacs})' in talk.run("thread", vim).out
    assert f'all 3 parties agreed on "Use emacs" (Bohr, {emacs})' in talk.run("converged", emacs).out
    found = talk.converged(vim)
    assert (found["converged"], found["replaced"], found["agreed_on"]) == (False, True, agreed)


def test_a_thread_without_a_counter_needs_its_recipients_alone(talk: Talk) -> None:
    """Each has agreed; a rejection is reported and keeps it open; who proposed is not asked."""
    root = talk.proposes("Ada", "Use vim", "Bohr,Curie")
    talk.agrees("Bohr", root)
    talk.says("Curie", "reply", root, "no", "--reject")
    found = talk.converged(root)
    assert (found["agreed"], found["rejected"], found["pending"]) == (
        ["test:worker:bohr"],
        ["test:worker:curie"],
        [],
    )
    talk.agrees("Curie", root)

    assert "all 2 recipients agreed on" in talk.run("converged", root).out
    assert talk.converged(root)["agreed_on"]["signal_id"] == root


def test_each_party_that_owes_an_answer_has_both_commands(talk: Talk) -> None:
    """Of proposals and counters, without --requires-ack too; looking decides nothing, and the writer is not asked."""
    vim = talk.proposes("Ada", "Use vim", "Bohr,Curie")
    assert AGREE.format(vim) in talk("Bohr", "inbox").out
    assert steps(talk("Bohr", "thread", vim))[0] == f"gitmem reply {vim} agreed --agree"
    emacs = talk.counters("Bohr", vim, "Use emacs")

    shown = talk("Curie", "inbox").out
    assert AGREE.format(emacs) in shown and AGREE.format(vim) not in shown
    assert f"replaced by {emacs}" in shown
    assert AGREE.format(emacs) in talk("Ada", "inbox").out
    for who in ("Ada", "Curie"):
        assert steps(talk(who, "thread", vim))[:2] == [
            f"gitmem reply {emacs} agreed --agree", f"gitmem reply {emacs} rejected --reject"
        ]  # fmt: skip
        assert steps(talk(who, "converged", emacs))[0] == f"gitmem reply {emacs} agreed --agree"
    assert "--agree" not in talk("Bohr", "inbox").out
    assert not any("--agree" in each for each in steps(talk("Bohr", "thread", vim)))
    assert talk.converged(emacs)["pending"] == ["test:worker:ada", "test:worker:curie"]


def test_a_pass_of_the_gate_keeps_the_counts_and_names_its_record(talk: Talk) -> None:
    """The proposal is still unread, and then still unanswered."""
    gate = ("gate", "--wu", "WU-7", "--json")
    root = talk.proposes("Ada", "Use vim", "Bohr", "--wu", "WU-7")
    assert talk("Bohr", *gate).json["unread"] == 1
    passed = talk("Bohr", *gate, "--anyway", "paired review").json

    found = talk("Bohr", *gate)
    assert found.status == 0
    assert {name: found.json[name] for name in ("open", "passed", "unread", "unanswered", "recorded", "audit_id")} == {
        "open": True, "passed": True, "unread": 1, "unanswered": 0, "recorded": False, "audit_id": passed["audit_id"]
    }  # fmt: skip
    assert (
        f"gate passed: 1 unread signal on WU-7 for test:worker:bohr · {passed['audit_id']}"
        in talk("Bohr", *gate[:3]).out
    )
    talk("Bohr", "inbox")
    assert (found := talk("Bohr", *gate).json)["unanswered"] == 1 and found["passed"]
    more = talk.proposes("Ada", "Use ed", "Bohr", "--wu", "WU-7")
    found = talk("Bohr", *gate)
    assert (found.status, [each["signal_id"] for each in found.json["signals"]]) == (1, [more])
    for each in (root, more):
        talk.agrees("Bohr", each)
    assert "no unread or unanswered signals" in talk("Bohr", *gate[:3]).out


def test_the_gate_counts_a_counter_for_who_proposed(talk: Talk) -> None:
    """Read or not, until it is answered; its writer's gate is open."""
    vim = talk.proposes("Ada", "Use vim", "Bohr", "--wu", "WU-7")
    emacs = talk.counters("Bohr", vim, "Use emacs")
    assert talk("Bohr", "gate", "--wu", "WU-7").status == 0
    talk("Ada", "inbox")
    found = talk("Ada", "gate", "--wu", "WU-7", "--json").json
    assert [(each["signal_id"], each["why"]) for each in found["signals"]] == [(emacs, "unanswered")]
    talk.agrees("Ada", emacs)
    assert talk("Ada", "gate", "--wu", "WU-7").status == 0


def test_somebody_who_was_not_asked_neither_proposes_nor_decides(talk: Talk, start: Start) -> None:
    """Its counter is displayed, asks nobody, and keeps nothing open; it hears that."""
    talk.sessions["Dirac"] = start("Dirac")
    vim = talk.proposes("Ada", "Use vim", "Bohr,Curie")
    said = talk("Dirac", "reply", vim, "Use ed", "--counter")
    assert "You are no party of this thread, so this COUNTER does not count" in said.out
    assert not any("--wait" in each for each in steps(said))
    assert "| Use ed" in (shown := talk("Ada", "inbox").out) and "--agree" not in shown
    ed = said.out.split()[0]
    said = talk("Bohr", "reply", ed, "agreed", "--agree")
    assert f"{ed} leads to no proposal of a party of this thread, so this AGREE decides nothing." in said.out
    talk.agrees("Curie", vim)

    assert not talk.converged(vim)["converged"]  # Bohr has agreed to another text
    talk.agrees("Bohr", vim)
    found = talk.converged(vim)
    assert found["converged"] and [each["signal_id"] for each in found["in_force"]] == [vim]


def test_a_proposal_in_a_thread_replaces_the_one_before(talk: Talk) -> None:
    """And an agreement to it is none to the root."""
    vim = talk.proposes("Ada", "Use vim", "Bohr,Curie")
    vi = talk.says("Ada", "signal", "Use vi", "--reply-to", vim, "--to", "Curie", "--intent", "PROPOSE")
    assert talk.run("show", vi, "--json").json["record"]["recipients"] == [
        "test:worker:curie",
        "test:worker:bohr",
    ]
    talk.agrees("Bohr", vim)
    talk.agrees("Curie", vi)

    found = talk.converged(vi)
    assert (found["converged"], found["pending"]) == (False, ["test:worker:bohr"])
    assert "was replaced by" in talk("Bohr", "reply", vim, "yes", "--agree").out
    talk.agrees("Bohr", vi)
    assert talk.converged(vi)["agreed_on"]["signal_id"] == vi


@pytest.mark.parametrize("to", [("--to", "Ada"), ("--broadcast",)])
def test_a_question_that_asks_nobody_else_never_converges(talk: Talk, to: tuple[str, ...]) -> None:
    """Also after its sender, or anybody, has agreed; waiting ends at once."""
    root = talk.says("Ada", "signal", "Use vim?", *to, "--intent", "PROPOSE")
    for each in ("Ada", "Bohr"):
        talk.says(each, "reply", root, "yes", "--agree")

    said = talk("Ada", "converged", root, "--wait", "60s")
    assert (said.status, "nobody was asked" in said.out) == (1, True)
    assert not any("--agree" in each for each in steps(said))


def test_two_counters_at_the_same_moment_conflict(talk: Talk, repo: Path) -> None:
    """Both are named, each party has the commands for those it has not answered; one that all agree to ends it."""
    vim = talk.proposes("Ada", "Use vim", "Bohr,Curie")
    thread = talk.run("thread", vim, "--json").json["thread_id"]
    for id, who, others in (
        ("sig-aaaa1111", "bohr", ("ada", "curie")),
        ("sig-bbbb2222", "curie", ("ada", "bohr")),
    ):
        at(repo, signal_id=id, thread_id=thread, reply_to=vim, after=[vim], intent="COUNTER", message=f"Use {id}",
           sender_identity=f"test:worker:{who}", recipients=[f"test:worker:{each}" for each in others])  # fmt: skip
    both = ["sig-aaaa1111", "sig-bbbb2222"]

    said = talk.run("converged", vim)
    assert said.status == 1 and all(each in said.out for each in both)
    said = talk.run("converged", thread)
    assert said.status == 1 and "these conflict: " in said.out and all(each in said.out for each in both)
    assert "these conflict: " in talk.run("thread", vim).out
    assert talk("Ada", "thread", vim, "--json").json["next"][::2][:2] == [
        f"gitmem reply {each} agreed --agree" for each in both
    ]
    assert steps(talk("Bohr", "thread", vim))[0] == f"gitmem reply {both[1]} agreed --agree"
    for each in ("Ada", "Curie"):
        talk.agrees(each, both[0])
    assert talk.converged(both[0])["agreed_on"]["signal_id"] == both[0]
    assert talk.converged(both[1])["replaced"]
    talk("Bohr", "inbox")
    third = talk.counters("Bohr", both[0], "Use ed")
    assert [each["signal_id"] for each in talk.converged(vim)["in_force"]] == [third]


def test_two_sessions_of_one_agent_that_differ_have_rejected(talk: Talk, repo: Path) -> None:
    """Whichever clock is ahead."""
    vim = talk.proposes("Ada", "Use vim", "Bohr")
    thread = talk.run("thread", vim, "--json").json["thread_id"]
    talk.agrees("Bohr", vim)
    assert talk.converged(vim)["converged"]
    at(repo, signal_id="sig-aaaa1111", thread_id=thread, reply_to=vim, after=[vim], intent="REJECT", message="no",
       sender_identity="test:worker:bohr", recipients=["test:worker:ada"], at="2020-01-01T00:00:00.000000Z")  # fmt: skip

    assert talk.converged(vim)["rejected"] == ["test:worker:bohr"]


def test_an_answer_to_an_id_of_another_thread_is_refused(talk: Talk) -> None:
    """With the command that shows where it belongs; nothing is written, and a word may be taken there."""
    vim, tabs = talk.proposes("Ada", "Use vim", "Bohr"), talk.proposes("Ada", "Use tabs", "Bohr")
    thread = talk.run("thread", tabs, "--json").json["thread_id"]
    for intent in ("AGREE", "REJECT", "COUNTER"):
        said = talk("Bohr", "signal", "yes", "--reply-to", vim, "--thread", thread, "--intent", intent)
        assert (
            said.status == 2
            and f"{vim} is not in thread {thread}" in said.err
            and "Nothing was written." in said.err
        )
        assert "Leave out --thread" in said.err
    assert talk("Bohr", "signal", "see there", "--reply-to", vim, "--thread", thread).status == 0
    assert [talk.converged(each)["pending"] for each in (vim, tabs)] == [["test:worker:bohr"]] * 2
    talk.agrees("Bohr", vim)
    assert talk.converged(vim)["converged"]


def test_a_counter_is_no_broadcast(talk: Talk) -> None:
    """Its parties have to answer it."""
    vim = talk.proposes("Ada", "Use vim", "Bohr")
    said = talk("Bohr", "signal", "Use ed", "--reply-to", vim, "--broadcast", "--intent", "COUNTER")
    assert (
        said.status == 2
        and "goes to its parties: test:worker:ada, test:worker:bohr. Nothing was written." in said.err
    )


def test_a_withdrawn_counter_gives_way(talk: Talk) -> None:
    """The proposal before it is in force again, and who countered owes it an answer."""
    vim = talk.proposes("Ada", "Use vim", "Bohr")
    emacs = talk.counters("Bohr", vim, "Use emacs")
    talk.says("Bohr", "reply", emacs, "forget it", "--reject")

    assert [each["signal_id"] for each in talk.converged(emacs)["in_force"]] == [vim]
    assert steps(talk("Bohr", "converged", vim))[0] == f"gitmem reply {vim} agreed --agree"
    talk.agrees("Bohr", vim)
    assert talk.converged(vim)["converged"]


def agree_and_commit(talk: Talk, repo: Path) -> tuple[str, str]:
    """Ada agrees to a counter of Bohr's and commits; return the first proposal and the counter."""
    git(repo, "commit", "--quiet", "--amend", "--no-edit", GIT_COMMITTER_DATE="@1790000000 +0000")
    install_hook(repo)
    talk("Ada", "session", "set", "--wu", "WU-7")
    vim = talk.proposes("Ada", "Use vim", "Bohr", "--wu", "WU-7")
    emacs = talk.counters("Bohr", vim, "Use emacs")
    talk.agrees("Ada", emacs)
    (repo / "a.txt").write_text("emacs\n")
    git(repo, "add", "a.txt")
    git(repo, "commit", "--quiet", "-m", "Use emacs", GITMEM_SESSION=talk.sessions["Ada"])
    return vim, emacs


def test_why_names_what_was_agreed_on(talk: Talk, repo: Path) -> None:
    """The counter and not the first text, and that a later counter replaced it."""
    _, emacs = agree_and_commit(talk, repo)

    (told,) = talk("Ada", "why", "a.txt:1", "--json").json["commits"]
    (thread,) = told["threads"]
    assert thread["agreed_on"]["signal_id"] == emacs and thread["agreed"] == ["Ada"]
    shown = talk("Ada", "why", "a.txt:1").out
    assert f"Bohr proposed {emacs}: Use emacs (agreed: Ada)" in shown and "Use vim" not in shown
    time.sleep(1.1)  # git knows only the second of a commit
    ed = talk.counters("Ada", emacs, "Use ed")
    shown = talk("Ada", "why", "a.txt:1").out
    assert f"proposed {ed}: Use ed (no answer: Bohr)" in shown and "replaced in thread-" in shown


def test_a_thread_of_5_000_counters_is_answered(talk: Talk, repo: Path) -> None:
    """In seconds, each replacing the one before."""
    vim = talk.proposes("Ada", "Use vim", "Bohr,Curie")
    thread = talk.run("thread", vim, "--json").json["thread_id"]
    agents, before = [f"test:worker:{each}" for each in ("ada", "bohr", "curie")], vim
    lines, own = [], [vim, vim, vim]
    for number in range(5_000):
        id = f"sig-{number:012}"
        lines.append(
            {"signal_id": id, "thread_id": thread, "reply_to": before, "after": [before, own[number % 3]], "intent": "COUNTER", "message": f"Use {number}",
             "sender_identity": agents[number % 3], "recipients": [each for each in agents if each != agents[number % 3]]}
        )  # fmt: skip
        before = own[number % 3] = id
    write(repo, lines)
    for who in ("Ada", "Curie"):
        talk.agrees(who, before)

    assert talk.converged(before)["agreed_on"]["signal_id"] == before
    assert talk.converged(vim)["replaced"]


def at(repo: Path, **fields: Any) -> None:
    write(repo, [fields])


def write(repo: Path, signals: list[dict[str, Any]]) -> None:
    """Write lines of another program of this user."""
    head = {"at": "2026-11-21T20:00:00.000000Z", "kind": "signal"}
    rest = {"schema_version": "A2A.V1", "interrupt_class": "priority", "origin": "elsewhere"}
    with gitmem.open(str(repo)) as log:
        writer = log.store.writers.writer()
        whole = [
            {**head, "writer": writer, **rest, **records.addressed("signal", each, writer)}
            for each in signals
        ]
        lines = [json.dumps(each, separators=(",", ":")).encode() for each in whole]
        log.store.record([("signals", line) for line in lines], CommitMessage("A <a@b>", "elsewhere"))


def test_a_withdrawal_tells_whoever_owes_an_answer_again(talk: Talk) -> None:
    """The first proposer too, who had agreed to the counter: inbox, gate, next commands and the unread line say so."""
    vim = talk.proposes("Ada", "Use vim", "Bohr", "--wu", "WU-7")
    emacs = talk.counters("Bohr", vim, "Use emacs")
    talk("Ada", "inbox")
    talk.says("Ada", "reply", emacs, "not yet", "--reject")
    talk.says("Ada", "reply", emacs, "fine", "--agree")
    assert talk.converged(emacs)["converged"]
    talk.says("Bohr", "reply", emacs, "withdrawn", "--reject")
    talk.agrees("Bohr", vim)

    assert talk.converged(vim)["pending"] == ["test:worker:ada"]
    assert "(1 wants an answer)" in talk("Ada", "roster").err
    shown = talk("Ada", "inbox", "--json").json
    back = next(each for each in shown["signals"] if each["message"] == "withdrawn")
    assert back["owed"] and back["asks_about"] == vim and AGREE.format(vim) in back["reply_line"]
    assert shown["next"][:2] == [
        f"gitmem reply {vim} agreed --agree",
        f"gitmem reply {vim} rejected --reject",
    ]
    gate = talk("Ada", "gate", "--wu", "WU-7", "--json")
    assert gate.status == 1 and [(each["signal_id"], each["why"]) for each in gate.json["signals"]] == [
        (vim, "unanswered")
    ]
    talk.agrees("Ada", vim)
    assert talk("Ada", "gate", "--wu", "WU-7").status == 0
    assert talk.converged(vim)["converged"]


def test_a_withdrawn_proposal_is_not_replaced(talk: Talk) -> None:
    """`converged`, an answer to it and the thread name who withdrew it, and what is in force again."""
    vim = talk.proposes("Ada", "Use vim", "Bohr,Curie")
    emacs = talk.counters("Bohr", vim, "Use emacs")
    nano = talk.counters("Curie", emacs, "Use nano")
    talk.says("Curie", "reply", nano, "no", "--reject")

    found = talk.converged(nano)
    assert (found["withdrawn"], found["replaced"]) == (True, False)
    assert (
        f'{nano} was withdrawn by Curie; in force now: "Use emacs" (Bohr, {emacs})'
        in talk.run("converged", nano).out
    )
    assert (found["agreed"], found["countered"]) == (["test:worker:bohr"], ["test:worker:bohr"])
    assert f'1 of 3 parties agreed on "Use emacs" (Bohr, {emacs})' in talk.run("converged", emacs).out
    said = talk("Ada", "reply", nano, "yes", "--agree")
    assert f"{nano} was withdrawn by test:worker:curie; now in force: {emacs}" in said.out
    assert steps(said)[:2] == [
        f"gitmem reply {emacs} agreed --agree",
        f"gitmem reply {emacs} rejected --reject",
    ]


def test_nothing_is_in_force_when_all_is_withdrawn(talk: Talk) -> None:
    """Nobody is asked, and waiting ends at once."""
    vim = talk.proposes("Ada", "Use vim", "Bohr", "--wu", "WU-7")
    emacs = talk.counters("Ada", vim, "Use emacs")
    for who, id in (("Ada", emacs), ("Bohr", vim), ("Ada", vim)):
        talk.says(who, "reply", id, "no", "--reject")

    for id in (vim, emacs):
        said = talk("Ada", "converged", id, "--wait", "60s")
        assert said.status == 1 and f"{id} was withdrawn by Ada; nothing is in force" in said.out
        found = talk.converged(id)
        assert (found["in_force"], found["pending"], found["recipients"]) == ([], [], [])
    assert "nothing, all was withdrawn" in talk.run("thread", vim).out
    for who in ("Ada", "Bohr"):
        assert not any("--agree" in each for each in steps(talk(who, "thread", vim)))
        talk(who, "inbox")
        assert talk(who, "gate", "--wu", "WU-7").status == 0


def test_a_withdrawal_among_three_asks_those_who_had_agreed_to_it(talk: Talk) -> None:
    """And who had stayed with the first proposal owes nothing; all three end on it."""
    vim = talk.proposes("Ada", "Use vim", "Bohr,Curie")
    talk.agrees("Curie", vim)
    emacs = talk.counters("Bohr", vim, "Use emacs")
    talk.agrees("Ada", emacs)
    talk.says("Bohr", "reply", emacs, "no", "--reject")

    found = talk.converged(vim)
    assert [each["signal_id"] for each in found["in_force"]] == [vim]
    assert (found["agreed"], found["pending"]) == (
        ["test:worker:curie"],
        ["test:worker:ada", "test:worker:bohr"],
    )
    for who, owes in (("Ada", True), ("Bohr", True), ("Curie", False)):
        talk(who, "inbox")
        assert (f"gitmem reply {vim} agreed --agree" in steps(talk(who, "thread", vim))) == owes
    for who in ("Ada", "Bohr"):
        talk.agrees(who, vim)
    assert talk.converged(vim)["agreed_on"]["signal_id"] == vim


def test_why_and_the_page_name_what_is_in_force_after_a_withdrawal(talk: Talk, repo: Path) -> None:
    """Not the counter that was withdrawn, which `why` says."""
    vim, emacs = agree_and_commit(talk, repo)
    time.sleep(1.1)  # git knows only the second of a commit
    talk.says("Bohr", "reply", emacs, "no", "--reject")

    (told,) = talk("Ada", "why", "a.txt:1", "--json").json["commits"]
    (thread,) = told["threads"]
    assert (thread["agreed_on"], thread["replaced"], thread["ended"]) == (None, True, "withdrawn")
    assert [each["signal_id"] for each in thread["in_force"]] == [vim] and thread["pending"] == ["Bohr"]
    shown = talk("Ada", "why", "a.txt:1").out
    assert f"Ada proposed {vim}: Use vim" in shown and "withdrawn in thread-" in shown
    with gitmem.open(str(repo)) as log:
        data = page_data.collect(log.store)
    (state,) = data["threads"]
    names = {each["id"]: each["name"] for each in data["agents"]}
    assert (state["state"], "in_force" in state) == ("open", False)
    assert {names[lane]: how for lane, how in state["stands"]} == {"Ada": "pending", "Bohr": "pending"}


def test_the_unread_line_counts_only_what_is_in_force(talk: Talk) -> None:
    """Neither the counter of somebody who was not asked, nor one that was replaced before it was read."""
    talk.sessions["Dirac"] = talk.run("session", "start", "--name", "Dirac", "--json").json["session_id"]
    vim = talk.proposes("Ada", "Use vim", "Bohr,Curie")
    talk("Dirac", "reply", vim, "Use ed", "--counter")
    assert "1 unread: gitmem inbox" in talk("Ada", "roster").err
    emacs = talk.counters("Bohr", vim, "Use emacs")
    assert "2 unread (1 wants an answer): gitmem inbox" in talk("Ada", "roster").err
    nano = talk.counters("Curie", emacs, "Use nano")
    assert "3 unread (1 wants an answer): gitmem inbox" in talk("Ada", "roster").err
    talk.agrees("Ada", nano)
    assert "wants an answer" not in talk("Ada", "roster").err


def test_who_agrees_to_what_was_replaced_is_led_to_what_is_in_force(talk: Talk) -> None:
    """Not to waiting for what nobody asks any more."""
    vim = talk.proposes("Ada", "Use vim", "Bohr,Curie")
    emacs = talk.counters("Bohr", vim, "Use emacs")
    said = talk("Curie", "reply", vim, "yes", "--agree")
    assert steps(said)[:2] == [
        f"gitmem reply {emacs} agreed --agree",
        f"gitmem reply {emacs} rejected --reject",
    ]
    assert not any(f"converged {vim}" in each for each in steps(said))
    talk.agrees("Curie", emacs)
    again = talk("Curie", "reply", vim, "yes, too", "--agree")  # which leaves what it had agreed to
    assert steps(again)[0] == f"gitmem reply {emacs} agreed --agree"
    assert not any(f"converged {vim}" in each for each in steps(again))
    said = talk("Bohr", "reply", vim, "well", "--agree")  # now all have: it is agreed on
    assert steps(said)[0] == f"gitmem converged {vim}" and talk.converged(vim)["converged"]
