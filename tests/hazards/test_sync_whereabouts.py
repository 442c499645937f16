"""Between clones: an answer says whether a signal was sent and fetched, and what git has fetched but no sync has read."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.hazards.peers import Answer, Peer, Town, git

UNREAD = "git has fetched records to origin/gitmem that no answer has yet: gitmem sync"


@pytest.fixture
def two(town: Town) -> tuple[Peer, Peer]:
    """Planck in a clone and Curie in another; both know each other."""

    def day(town: Town) -> None:
        a, b = town.clone("a"), town.clone("b")
        start(a, "Planck")
        assert a.sync().code == 0
        start(b, "Curie")
        assert b.sync().code == 0
        assert a.sync().code == 0

    town.after("acquainted", day)
    return town.peer("a"), town.peer("b")


def start(peer: Peer, name: str) -> None:
    answer = peer.run(
        "session", "start", "--name", name, "--agent-identity", f"codex:implementer:{name.lower()}"
    )
    assert answer.code == 0, answer.text


def ask(a: Peer) -> str:
    answer = a.run("signal", "Use vim?", "--as", "Planck", "--to", "Curie", "--intent", "propose", "--json")
    assert answer.code == 0, answer.text
    return str(answer.json["signal"]["signal_id"])


def notes(answer: Answer) -> str:
    return " ".join(answer.json["warnings"])


def test_whoever_waits_is_told_where_the_signal_is(two: tuple[Peer, Peer]) -> None:
    """In this clone alone, on the remote, or with the other agent; text and JSON."""
    a, b = two
    id = ask(a)
    for word in ("converged", "thread"):
        said = a.run(word, id, "--json")
        assert f"not sent yet: {id} is only in this clone (gitmem sync)" in notes(said), said.text
    assert f"not sent yet: {id}" in a.run("converged", id).text
    a.sync()
    for word in ("converged", "thread"):
        assert f"sent, not fetched there as far as this clone knows: {id} to Curie" in notes(
            a.run(word, id, "--json")
        )
    b.sync()
    assert b.run("inbox", "--as", "Curie").code == 0
    assert "sent" not in notes(b.run("converged", id, "--json"))
    b.sync()
    a.sync()
    said = a.run("converged", id, "--json")
    assert said.code == 1 and "sent" not in notes(said), "Curie has it, and has not answered"


def test_an_own_line_about_a_fetched_signal_does_not_make_it_unsent(two: tuple[Peer, Peer]) -> None:
    """Only the line of the signal itself counts."""
    a, b = two
    start(a, "Noether")
    said = a.run(
        "signal", "Use vim?", "--as", "Planck", "--to", "Curie,Noether", "--intent", "propose", "--json"
    )
    assert said.code == 0, said.text
    id = str(said.json["signal"]["signal_id"])
    a.sync()
    b.sync()
    assert b.run("reply", id, "Let me think", "--as", "Curie").code == 0
    said = b.run("thread", id, "--json")
    assert "sent, not fetched there" in notes(said) and "not sent yet" not in notes(said), said.text


def test_receipts_say_where_a_signal_without_one_is(two: tuple[Peer, Peer]) -> None:
    """An empty list does not show whether the other clone has the signal."""
    a, b = two
    id = ask(a)
    assert f"not sent yet: {id}" in notes(a.run("receipts", id, "--json"))
    assert "sent" not in notes(a.run("receipts", id, "--reader", "Planck", "--json"))
    a.sync()
    assert f"sent, not fetched there as far as this clone knows: {id} to Curie" in notes(
        a.run("receipts", id, "--json")
    )
    b.sync()
    assert b.run("inbox", "--as", "Curie").code == 0
    b.sync()
    a.sync()
    assert "sent" not in notes(a.run("receipts", id, "--json"))


def test_a_receipt_of_the_root_does_not_hide_an_unsent_counter(two: tuple[Peer, Peer]) -> None:
    """The question is where the proposal in force is."""
    a, b = two
    id = ask(a)
    a.sync()
    b.sync()
    assert b.run("inbox", "--as", "Curie").code == 0
    b.sync()
    a.sync()
    made = a.run("signal", "Use ed?", "--as", "Planck", "--reply-to", id, "--intent", "propose", "--json")
    assert made.code == 0, made.text
    newer = made.json["signal"]["signal_id"]
    for word in ("converged", "thread"):
        assert f"not sent yet: {newer}" in notes(a.run(word, id, "--json"))
    a.sync()
    assert f"sent, not fetched there as far as this clone knows: {newer} to Curie" in notes(
        a.run("converged", id, "--json")
    )


def test_a_signal_in_an_outbox_was_sent(town: Town, two: tuple[Peer, Peer]) -> None:
    """The shared branch is left out, and lines travel beside it."""
    a, _ = two
    town.break_with({"format": b"[[[["})
    id = ask(a)
    assert a.sync().remote["outbox"]
    assert "sent, not fetched there" in notes(a.run("converged", id, "--json"))
    later = ask(a)
    assert "not sent yet" in notes(a.run("converged", later, "--json"))


def test_nobody_is_told_of_other_clones_in_one_clone(two: tuple[Peer, Peer]) -> None:
    """Agents of one clone share the log at once."""
    a, _ = two
    start(a, "Bohr")
    said = a.run("signal", "Use vim?", "--as", "Planck", "--to", "Bohr", "--intent", "propose", "--json")
    assert notes(a.run("converged", said.json["signal"]["signal_id"], "--json")) == ""


def test_what_a_plain_fetch_brought_is_said_to_be_unread(two: tuple[Peer, Peer]) -> None:
    """Each answer that it may change names the command that reads it, and is right after it."""
    a, b = two
    id = ask(a)
    a.sync()
    b.sync()
    assert b.run("reply", id, "Agreed.", "--as", "Curie", "--agree").code == 0
    b.sync()
    asked = (["converged", id], ["inbox", "--as", "Planck"], ["roster"], ["doctor"])
    for each in asked:
        assert UNREAD not in a.run(*each).text
    assert a.run("inbox", "--as", "Planck").code == 0, "nothing is new: the stamp is written"

    git("fetch", "--quiet", "origin", cwd=a.path)

    assert a.run("converged", id).code == 1
    for each in asked:
        assert UNREAD in a.run(*each).text, each
        assert UNREAD in json.dumps(a.run(*each, "--json").json), each
    assert a.sync().code == 0
    assert a.run("converged", id).code == 0
    for each in asked:
        assert UNREAD not in a.run(*each).text


def test_a_fetch_of_what_is_known_is_nothing_to_say(two: tuple[Peer, Peer]) -> None:
    """Also where the branch is behind the log, or is no log at all after a sync has looked at it."""
    a, b = two
    git("fetch", "--quiet", "origin", cwd=a.path)
    assert UNREAD not in a.run("roster").text
    ask(a)
    a.sync()
    b.sync()
    mark = Path(a.path / ".git/refs/remotes/origin/gitmem")
    mark.write_text(git("rev-parse", "HEAD", cwd=a.path) + "\n")
    assert UNREAD in a.run("roster").text
    a.sync()
    assert UNREAD not in a.run("roster").text


def delegate(a: Peer, *more: str) -> Answer:
    return a.run("delegate", "Write it", "--as", "Planck", "--to", "Curie", "--wu", "WU-7", *more)


@pytest.mark.parametrize("automatic", ["", "agreed", "to another remote, which only fetches"])
def test_whoever_sends_to_another_clone_is_told_that_it_is_not_sent_yet(
    two: tuple[Peer, Peer], automatic: str
) -> None:
    """Signal, reply, delegation, handoff and call; in text and JSON; with the command, or that a sync comes by itself."""
    a, b = two
    how = "automatic sync sends it" if automatic == "agreed" else "gitmem sync"
    if automatic.startswith("to"):
        how = "your user may agree to publish: gitmem sync --publish"
    asked = b.run("signal", "Why?", "--as", "Curie", "--to", "Planck", "-q").text.strip()
    assert b.sync().code == 0 and a.sync().code == 0
    if automatic:  # else it may be sent before the answer is written
        hub = Path(git("remote", "get-url", "origin", cwd=a.path).strip())
        hub.rename(hub.with_name("away"))
        git("config", "gitmem.autosync", "1d", cwd=a.path)
    if automatic.startswith("to"):
        git("remote", "set-url", "origin", str(a.path / "nowhere"), cwd=a.path)
    assert a.run("mem", "checkpoint", "half", "--as", "Planck", "--wu", "WU-7").code == 0
    for words in (
        ("signal", "Hello", "--to", "Curie"), ("reply", asked, "So."), ("delegate", "Write it", "--to", "Curie", "--wu", "WU-7"),
        ("handoff", "--to", "Curie", "--wu", "WU-7"), ("call", "Curie", "Read it", "--no-wait"),
    ):  # fmt: skip
        said = a.run(*words, "--as", "Planck", "--json")
        id = said.json["signal"]["signal_id"] if "signal" in said.json else None
        id = id or said.json.get("task", {}).get("task_id") or said.json["results"][0]["task_id"]
        assert f"not sent yet: {id} is only in this clone ({how})" in said.json["warnings"], said.text
    said = a.run("signal", "Hello again", "--to", "Curie", "--as", "Planck")
    assert "\nnote: not sent yet: sig-" in said.text
    if not automatic:
        said = a.run("signal", "Now", "--to", "Curie", "--as", "Planck", "--sync", "--json")
        id = said.json["signal"]["signal_id"]
        assert said.json["pushed"] and said.json["warnings"] == [
            f"sent, not fetched there as far as this clone knows: {id} to Curie"
        ]
    start(a, "Bohr")
    assert notes(a.run("signal", "Hello", "--to", "Bohr", "--as", "Planck", "--json")) == ""


@pytest.mark.parametrize("by_call", [False, True])
def test_whoever_waits_for_a_task_of_another_clone_is_told_where_it_is(
    two: tuple[Peer, Peer], by_call: bool
) -> None:
    """`task show`, `task wait` and `call` say so until the other clone has recorded something; then so of the last word to it."""
    a, b = two

    def waits(id: str) -> list[Answer]:
        return [a.run("task", "show", id, "--json"), a.run("task", "wait", id, "--timeout", "0s", "--as", "Planck", "--json")]  # fmt: skip

    if by_call:
        said = a.run("call", "Curie", "Write it", "--timeout", "0s", "--as", "Planck", "--json")
        id = said.json["results"][0]["task_id"]
        assert f"not sent yet: {id} is only in this clone (gitmem sync)" in said.json["warnings"]
    else:
        id = delegate(a, "-q").text.strip()
    assert all(f"not sent yet: {id} is only in this clone (gitmem sync)" in notes(each) for each in waits(id))
    assert f"note: not sent yet: {id}" in a.run("task", "show", id).text
    a.sync()
    sent = f"sent, not fetched there as far as this clone knows: {id} to Curie"
    assert all(sent in notes(each) for each in waits(id))
    b.sync()
    assert "sent" not in notes(b.run("task", "show", id, "--json"))
    assert b.run("task", "take", id, "--as", "Curie").code == 0
    b.sync()
    a.sync()
    assert not any("sent" in notes(each) for each in waits(id))
    assert b.run("task", "message", "--ask", id, "Which?", "--as", "Curie").code == 0
    word = "tev-" if by_call else "sig-"
    assert f"not sent yet: {word}" in notes(b.run("task", "show", id, "--json"))
    b.sync()
    a.sync()
    said = a.run("task", "message", id, "The first", "--as", "Planck", "--json")
    assert by_call or f"not sent yet: {word}" in notes(said)
    assert all(f"not sent yet: {word}" in notes(each) for each in waits(id))
    a.sync()
    assert all(
        f"sent, not fetched there as far as this clone knows: {word}" in notes(each) for each in waits(id)
    )
    b.sync()
    assert b.run("task", "done", id, "ok", "--as", "Curie").code == 0
    b.sync()
    a.sync()
    assert "sent" not in notes(a.run("task", "show", id, "--json"))


def test_a_task_that_was_taken_there_is_not_waiting_to_be_fetched(two: tuple[Peer, Peer]) -> None:
    """Its addressee took it without opening the signal."""
    a, b = two
    id = delegate(a, "-q").text.strip()
    thread = a.run("task", "show", id, "--json").json["task"]["thread_id"]
    signal = a.run("thread", thread, "--json").json["root"]
    a.sync()
    b.sync()
    assert b.run("task", "take", id, "--as", "Curie").code == 0
    b.sync()
    a.sync()
    for each in ("thread", "converged", "receipts"):
        assert "sent" not in notes(a.run(each, signal, "--json"))


def test_a_call_that_was_sent_while_it_waited_says_so(two: tuple[Peer, Peer]) -> None:
    """Not what was true when it began."""
    a, _ = two
    words = ("call", "Curie", "Write it", "--timeout", "8s", "--as", "Planck", "--json")
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(a.run, *words, timeout=60)
        deadline = time.monotonic() + 6
        while not a.run("task", "list", "--json").json["tasks"] and time.monotonic() < deadline:
            time.sleep(0.1)
        assert a.sync().code == 0
        said = notes(call.result())
    assert "sent, not fetched there" in said and "not sent yet" not in said
