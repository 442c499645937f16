"""A delegation and its thread agree: answers in the thread change the task, and its events are signals of the thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

import gitmem
from gitmem.log.lines import CommitMessage
from gitmem.page import page_data

from .conftest import Run, Said

Start = Callable[..., str]
Delegated = tuple[str, str, str]  # the asker's session, the task, the signal


@pytest.fixture
def delegate(run: Run, start: Start) -> Callable[..., Delegated]:
    """`delegate(to)`: work that Planck asks for."""

    def task(to: str = "Bohr", *more: str) -> Delegated:
        planck = start("Planck")
        role = () if to.startswith("role:") else ("--role", "implementer/test")
        said = run("delegate", "Write it", "--to", to, *role, "--wu", "WU-7", *more, "--json", session=planck)
        assert said.status == 0, said
        return planck, said.json["task"]["task_id"], said.json["signal_id"]

    return task


def inbox(run: Run, session: str) -> list[dict[str, object]]:
    return list(run("inbox", "--json", session=session).json["signals"])


def state(run: Run, id: str) -> str:
    return str(run("task", "show", id, "--json").json["state"])


@pytest.mark.usefixtures("commits")
def test_d11_a_reject_by_reply_rejects_the_task_in_the_same_commit(
    run: Run, start: Start, delegate: Callable[..., Delegated], git: Callable[..., str], repo: Path
) -> None:
    """R17: the outcome is the addressee's; one entry has signal and event, and the subject reads well."""
    bohr = start("Bohr")
    planck, id, signal = delegate()
    before = int(git("rev-list", "--count", "gitmem/log", cwd=repo))
    said = run("reply", signal, "no time\nbefore Monday", "--reject", "--json", "--commit", session=bohr)
    assert said.status == 0 and said.json["warnings"] == [f"{id} is rejected."]
    assert int(git("rev-list", "--count", "gitmem/log", cwd=repo)) == before + 1
    shown = run("task", "show", id, "--json", session=planck).json
    assert (shown["state"], shown["outcome"]["reason"]) == ("rejected", "no time")
    assert shown["outcome"]["message"] == "no time\nbefore Monday"
    assert "Bohr → Planck: REJECT no time" in git("log", "-1", "--format=%s", "gitmem/log", cwd=repo)
    assert id in git("log", "-1", "--format=%(trailers:key=Task,valueonly)", "gitmem/log", cwd=repo)
    (answer,) = inbox(run, planck)
    assert (answer["intent"], answer["task_id"], answer["reply_to"]) == ("REJECT", id, signal)


def test_d11_of_a_role_one_reject_leaves_the_task_to_others(
    run: Run, start: Start, delegate: Callable[..., Delegated]
) -> None:
    """R17: it is recorded once, and decides nothing."""
    bohr, curie = (start(name, "--role", "code-reviewer") for name in ("Bohr", "Curie"))
    _, id, signal = delegate("role:reviewer")
    said = run("reply", signal, "no", "--reject", session=bohr)
    assert f"note: {id} stays open for others." in said.out
    run("reply", signal, "still no", "--reject", session=bohr)
    assert len(run("task", "show", id, "--json").json["rejections"]) == 1
    assert state(run, id) == "submitted"
    assert run("task", "take", id, session=curie).status == 0


def test_r17_an_agree_takes_nothing_and_names_the_command_that_does(
    run: Run, start: Start, delegate: Callable[..., Delegated]
) -> None:
    bohr = start("Bohr")
    _, id, signal = delegate()
    said = run("reply", signal, "I will", "--agree", "--json", session=bohr).json
    assert (said["warnings"], said["next"][0]) == (
        [f"AGREE does not take {id}; `gitmem task take` does."], f"gitmem task take {id}",
    )  # fmt: skip
    assert state(run, id) == "submitted"


def test_r17_a_reject_after_the_take_gives_nothing_back(
    run: Run, start: Start, delegate: Callable[..., Delegated]
) -> None:
    """It may be about a later proposal; giving back and failing have commands of their own."""
    bohr = start("Bohr")
    _, id, signal = delegate()
    run("task", "take", id, session=bohr)
    said = run("reply", signal, "not like this", "--reject", "--json", session=bohr).json
    assert said["warnings"][0] == f"You have {id}, and this REJECT does not give it back."
    assert said["next"][0] == f"gitmem task release {id}"
    assert state(run, id) == "working"


def test_r17_who_is_not_asked_rejects_nothing(
    run: Run, start: Start, delegate: Callable[..., Delegated]
) -> None:
    """Nor does a signal of somebody else in the thread make its answers count."""
    start("Bohr")
    curie = start("Curie")
    _, id, signal = delegate()
    assert run("reply", signal, "no", "--reject", session=curie).status == 0
    assert state(run, id) == "submitted"
    other = run("signal", "Do you want this?", "--to", "Bohr", "--intent", "PROPOSE", "--requires-ack", "--thread",
                run("task", "show", id, "--json").json["task"]["thread_id"], "--json", session=curie).json["signal"]  # fmt: skip
    assert run("reply", other["signal_id"], "no", "--reject", session=curie).status == 0
    assert state(run, id) == "submitted"


@pytest.mark.usefixtures("commits")
def test_r17_a_result_is_a_signal_of_the_thread(
    run: Run, start: Start, delegate: Callable[..., Delegated], git: Callable[..., str], repo: Path
) -> None:
    """The asker need not poll: its inbox has the end, as an answer to its own signal."""
    bohr = start("Bohr")
    planck, id, signal = delegate()
    run("task", "take", id, session=bohr)
    assert inbox(run, planck) == []
    run("task", "done", id, "12 cases", "--commit", session=bohr)
    (done,) = inbox(run, planck)
    assert (done["message"], done["intent"], done["reply_to"], done["task_id"], done["wu_id"]) == (
        "Done: 12 cases", "INFO", signal, id, "WU-7",
    )  # fmt: skip
    assert "Done: 12 cases" in run("thread", signal, session=planck).out
    assert git("log", "-1", "--format=%s", "gitmem/log", cwd=repo).strip() == "Bohr completed: 12 cases"


def test_r17_a_question_reaches_the_asker_and_its_reply_answers_it(
    run: Run, start: Start, delegate: Callable[..., Delegated]
) -> None:
    """A question and a message of a task are signals; a plain reply of the asker is the message that the holder waits for."""
    bohr = start("Bohr")
    planck, id, _ = delegate()
    run("task", "take", id, session=bohr)
    run("task", "message", "--ask", id, "Which year?", session=bohr)
    assert state(run, id) == "input-required"
    (question,) = inbox(run, planck)
    assert question["message"] == "Question: Which year?"
    run("reply", str(question["signal_id"]), "2026", session=planck)
    assert state(run, id) == "submitted"
    (answer,) = inbox(run, bohr)
    assert answer["message"] == "2026"
    run("task", "message", "--ask", id, "And which month?", session=bohr)
    run("task", "message", id, "May", session=planck)
    assert state(run, id) == "submitted"
    assert [each["message"] for each in inbox(run, bohr)] == ["May"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["done", "no disk", "--failed"], "Failed: no disk"),
        (["release", "ill"], "Given back: ill"),
        (["message", "half of it"], "half of it"),
    ],
)
def test_r17_the_asker_learns_of_each_other_step(
    args: list[str], message: str, run: Run, start: Start, delegate: Callable[..., Delegated]
) -> None:
    bohr = start("Bohr")
    planck, id, _ = delegate()
    run("task", "take", id, session=bohr)
    word, *rest = args
    said: Said = run("task", word, id, *rest, session=bohr)
    assert said.status == 0, said
    assert [each["message"] for each in inbox(run, planck)] == [message]


def test_r17_the_holder_learns_that_the_task_is_to_be_canceled(
    run: Run, start: Start, delegate: Callable[..., Delegated]
) -> None:
    bohr = start("Bohr")
    planck, id, _ = delegate()
    inbox(run, bohr)
    run("task", "take", id, session=bohr)
    run("task", "cancel", id, "not needed", session=planck)
    (told,) = inbox(run, bohr)
    assert told["message"] == "Please stop: not needed"
    shown = run("inbox", "--all", "--as", "Bohr").out
    assert f"| Please stop: not needed\nTo give it back: gitmem --as Bohr task release {id}\n" in shown


def test_a_long_result_is_cut_in_its_signal_and_whole_in_the_task(
    run: Run, start: Start, delegate: Callable[..., Delegated]
) -> None:
    bohr = start("Bohr")
    planck, id, _ = delegate()
    run("task", "take", id, session=bohr)
    assert run("task", "done", id, "x" * 65_000, session=bohr).status == 0
    (done,) = inbox(run, planck)
    assert str(done["message"]).endswith("x…")
    shown = run("inbox", "--all", "--as", "Planck").out
    assert f"x…\nfull text: gitmem --as Planck task show {id}\n" in shown
    assert len(run("task", "show", id, "--json").json["outcome"]["message"]) == 65_000


def test_m5_after_the_first_take_nobody_else_owes_an_answer(
    run: Run, start: Start, delegate: Callable[..., Delegated]
) -> None:
    """R17, in inbox, notice, gate, thread and context: the others see who has it; before, each is told how to take it."""
    bohr, curie = (start(name, "--role", "code-reviewer") for name in ("Bohr", "Curie"))
    _, id, signal = delegate("role:reviewer")
    read = run("inbox", "--no-mark", session=curie)
    assert (
        f"To take it: gitmem task take {id} · To refuse: gitmem reply {signal} --reject - <<'EOF'" in read.out
    )
    assert f"next: gitmem task take {id}" in read.out
    assert "1 unread (1 wants an answer)" in run("roster", session=curie).err
    run("inbox", session=curie)
    closed = run("gate", "--wu", "WU-7", "--json", session=curie).json
    assert (closed["unanswered"], closed["signals"][0]["commands"][0]) == (1, f"gitmem task take {id}")
    assert f"gitmem task take {id}" in run("thread", signal, session=curie).out
    assert f"answer: gitmem task take {id}" in run("mem", "context", "--wu", "WU-7", session=curie).out

    assert run("task", "take", id, session=bohr).status == 0

    for session in (bohr, curie):
        shown = run("inbox", "--all", session=session)
        assert "taken by test:worker:bohr" in shown.out and "task take" not in shown.out
        assert "needs AGREE or REJECT" not in run("thread", signal, session=session).out
        assert "task take" not in run("thread", signal, session=session).out
        assert signal not in run("mem", "context", "--wu", "WU-7", session=session).out
    assert run("gate", "--wu", "WU-7", session=curie).status == 0
    run("task", "release", id, session=bohr)
    assert run("gate", "--wu", "WU-7", session=curie).status == 0


def test_m5_a_take_by_somebody_else_takes_no_duty_from_the_addressee(
    run: Run, start: Start, delegate: Callable[..., Delegated], repo: Path
) -> None:
    """Readers accept every take, since another clone may know more; the addressee still sees what it is asked."""
    bohr, curie = start("Bohr"), start("Curie")
    _, id, _ = delegate()
    run("inbox", session=bohr)
    with gitmem.open(str(repo), session=curie) as log:
        line = log.store.line("task_event", {
            "event_id": "tev-mallory0001", "task_id": id, "event": "take", "sender_identity": "test:worker:curie",
            "sender_session": curie, "until": "2126-01-01T00:00:00.000000Z",
        })  # fmt: skip
        log.store.record([line], CommitMessage("Curie <c@example.org>", "forged"))
    assert run("gate", "--wu", "WU-7", "--json", session=bohr).json["unanswered"] == 1


def test_m5_a_signal_to_a_role_that_nobody_holds_names_the_delegation_instead(run: Run, start: Start) -> None:
    """R35: nothing is written."""
    said = run("signal", "x", "--to", "role:reviewer/docs", session=start("Planck"))
    assert said.status == 2 and "nobody holds role:reviewer/docs" in said.err
    assert "next: gitmem delegate 'what to do' --to role:reviewer/docs --wu WU-7" in said.err


def test_m5_each_recipients_age_is_shown(run: Run, start: Start) -> None:
    """Holders are those with a record of the last 24 hours, so the sender should know how old it is."""
    planck = start("Planck")
    start("Bohr", "--role", "reviewer/docs")
    said = run("signal", "x", "--to", "role:reviewer/docs", session=planck)
    assert "note: Bohr holds reviewer/docs; its last record: just now." in said.out
    said = run("delegate", "x", "--to", "role:reviewer/docs", "--wu", "WU-7", session=planck)
    assert "note: Bohr holds reviewer/docs; its last record: just now." in said.out


@pytest.mark.parametrize(
    ("steps", "settled", "state"),
    [
        (["take"], "taken by test:worker:bohr", "settled"),
        (["take", "ask"], "taken by test:worker:bohr", "settled"),
        (["take", "release"], "taken before", "settled"),
        (["take", "done"], "completed", "settled"),
        (["take", "done", "seal"], "completed", "settled"),
        (["take", "fail"], "failed", "settled"),
        (["cancel"], "canceled", "settled"),
        (["reject"], "rejected", "rejected"),
    ],
)
def test_a_settled_task_asks_nobody(
    steps: list[str],
    settled: str,
    state: str,
    run: Run,
    start: Start,
    delegate: Callable[..., Delegated],
    repo: Path,
) -> None:
    """`converged`, `thread`, the page, the gate and the unread line say what became of it, and propose no waiting."""
    bohr = start("Bohr")
    planck, id, signal = delegate()
    assert run("converged", signal, "--json").json["settled"] == ""
    words = {
        "take": (bohr, "task", "take", id), "ask": (bohr, "task", "message", "--ask", id, "Which?"),
        "release": (bohr, "task", "release", id, "ill"), "done": (bohr, "task", "done", id, "ok"),
        "fail": (bohr, "task", "done", id, "no disk", "--failed"), "seal": (planck, "task", "accept", id),
        "cancel": (planck, "task", "cancel", id), "reject": (bohr, "reply", signal, "no", "--reject"),
    }  # fmt: skip
    for step in steps:
        session, *args = words[step]
        assert run(*args, session=session).status == 0

    for who in (planck, bohr):
        found = run("converged", signal, "--json", session=who)
        assert (found.status, found.json["settled"], found.json["pending"]) == (1, settled, [])
        assert not any(
            word in each for each in found.json["next"] for word in ("--wait", "--agree", "task take")
        )
        began = time.monotonic()
        said = run("converged", signal, "--wait", "60s", session=who)
        assert (
            time.monotonic() - began < 30
            and said.status == 1
            and f'{settled}, so nobody is asked any more: "Write it" (Planck, {signal})' in said.out
        )
        said = run("thread", signal, session=who)
        assert f'\n{settled}: "Write it" (Planck, {signal})\n' in said.out and "not answered" not in said.out
        assert "converged" not in said.out
        run("inbox", session=who)
        assert run("gate", "--wu", "WU-7", session=who).status == 0
        assert "wants an answer" not in run("roster", session=who).err
    with gitmem.open(str(repo)) as log:
        (thread,) = page_data.collect(log.store)["threads"]
    assert thread["state"] == state and all(how != "pending" for _, how in thread["stands"])


def test_a_counter_before_the_take_is_still_asked(
    run: Run, start: Start, delegate: Callable[..., Delegated]
) -> None:
    """Only what asks for the settled task is settled, not another proposal in its thread."""
    bohr = start("Bohr")
    planck, id, signal = delegate()
    counter = run("reply", signal, "Only the half", "--counter", "-q", session=bohr).out.strip()
    run("task", "take", id, session=bohr)
    found = run("converged", counter, "--json", session=planck).json
    assert (found["settled"], found["pending"]) == ("", ["test:worker:planck"])
    assert found["next"][0] == f"gitmem reply {counter} agreed --agree"


def test_nobody_is_told_to_take_a_task_whose_deadline_is_over(
    run: Run, start: Start, delegate: Callable[..., Delegated]
) -> None:
    """It would be refused: in the inbox, in the thread, and by whoami; who asked hears what became of it."""
    bohr = start("Bohr")
    planck, id, signal = delegate("Bohr", "--deadline", "1s")
    said = run(
        "delegate",
        "Check it",
        "--to",
        "Bohr",
        "--role",
        "tester",
        "--wu",
        "WU-7",
        "--deadline",
        "1h",
        "-q",
        session=planck,
    )
    late = said.out.strip()
    time.sleep(1.1)
    for words in (("inbox", "--no-mark"), ("inbox",), ("thread", signal), ("whoami",), ("mem", "recover")):
        said = run(*words, session=bohr)
        assert f"task take {id}" not in said.out, said
    assert run("task", "take", id, session=bohr).status == 2
    text = run("inbox", "--all", session=bohr).out
    assert "It had to begin before its deadline, which is over · To refuse: gitmem reply" in text
    assert f"To take it: gitmem task take {late}" in text
    (shown,) = (each for each in run("thread", signal, "--json", session=bohr).json["signals"])
    assert shown["overdue"] is True
    assert run("reply", signal, "too late", "--reject", session=bohr).status == 0
    assert state(run, id) == "rejected"


def test_whoever_waits_for_the_task_of_others_is_not_told_to_cancel_it(
    run: Run, start: Start, delegate: Callable[..., Delegated]
) -> None:
    """Only who asked, or a person, may."""
    bohr = start("Bohr")
    planck, id, _ = delegate()
    for session, may in ((bohr, False), (planck, True)):
        said = run("task", "wait", id, "--timeout", "0s", "--json", session=session)
        assert (f"gitmem task cancel {id}" in said.json["next"]) == may, said
