"""`gitmem verify`: an auditor is told which key attested what, and that somebody wrote in another's name or without a name."""

from __future__ import annotations

import cProfile
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gitmem.log import attestations
from gitmem.log.lines import line_hash
from gitmem.trust.keys import SigningKey
from tests.hazards.forging import Answer, Clone, Hub, Ring, changed, digest, exchange
from tests.signing import ANNA, AT, BOB, MALLORY, addressed, attest, named, put_key

from .conftest import Run


def verify(at: Clone, *words: str, status: int) -> Answer:
    """Ask twice, as text and as JSON: both have one exit status."""
    said, shown = at("verify", *words, "--json"), at("verify", *words)
    assert (said.status, shown.status) == (status, status), (said, shown)
    said.err = shown.out
    return said


def forged(hub: Hub, original: str, number: int, **fields: object) -> bytes:
    """A line like that of a signal, of its writer and another id."""
    return of_its_writer(hub.line_of(original), signal_id=f"sig-00000000000{number}", **fields)


def of_its_writer(line: bytes, **fields: object) -> bytes:
    """The line with other fields, in the name of its writer."""
    return changed(line, writer=json.loads(line)["writer"], **fields)


def unnamed(line: bytes) -> bytes:
    return changed(line, writer=None)


def test_all_clones_of_a_user_are_one_writer_and_another_key_is_another(ring: Ring, tmp_path: Path) -> None:
    """Everything is attested, on each clone alike; `you` says whose key it is."""
    hub, planck, curie = ring
    key = tmp_path / "bob.key"
    put_key(key, BOB)
    theirs = {"GITMEM_KEY_FILE": str(key)}
    bob = "test:worker:bob"
    began = curie("session", "start", "--agent-identity", bob, "--json", env={**theirs, "GITMEM_SESSION": ""})
    theirs["GITMEM_SESSION"] = began.json["session_id"]
    curie("sync", "--publish", env=theirs)
    exchange(planck, curie)
    sent = planck.send("Split it?", "--to", bob, "--intent", "PROPOSE")["signal_id"]
    exchange(planck, curie)
    assert curie("reply", sent, "yes", "--agree", env=theirs).status == 0
    curie("sync", "--publish", env=theirs)
    exchange(planck)

    found = verify(planck, status=0)

    other, own = found.json["writers"][:: 1 if found.json["writers"][0]["writer"] == BOB.writer else -1]
    assert (other["writer"], other["you"], other["clones"]) == (BOB.writer, False, 1)
    assert (own["you"], own["clones"], own["gaps"], own["forks"]) == (True, 2, [], [])
    count = sum(json.loads(line)["kind"] != "attestation" for line in hub.lines())
    assert own["lines"] + other["lines"] == count
    assert found.err.startswith("verified: the log · ") and BOB.writer in found.err
    lines = verify(planck, json.loads(hub.line_of(sent))["thread_id"], status=0).json["lines"]
    answers = {each["event"]: (each["sender"], each["writer"], each["since"]) for each in lines}
    assert answers == {
        "PROPOSE": (planck.identity, own["writer"], own["since"]),
        "AGREE": (bob, BOB.writer, other["since"]),
    }
    assert all(each["attested"] >= each["at"] for each in lines)
    agreed = planck("converged", sent, "--json")
    assert (agreed.status, agreed.json["verified"]) == (0, True)
    assert agreed.json["writers"] == {planck.identity: [own["writer"]], bob: [BOB.writer]}
    assert planck("whoami", "--json").json["writer"] == own["writer"]
    assert curie("doctor", "--json", env=theirs).json["writer"] == BOB.writer
    assert f"the key of {own['writer']} writes here" in planck("doctor").out
    assert planck("roster", "--json").json["writer"] == own["writer"]
    assert f"you write with the key of {own['writer']}" in planck("roster").out


def test_every_kind_of_thing_can_be_asked_for(ring: Ring) -> None:
    """By its id or the beginning of one, with the lines that its state is made of."""
    _, planck, curie = ring
    task = planck("delegate", "Review", "--to", "Curie", "--json").json["task"]["task_id"]
    curie_session = curie.session
    exchange(planck, curie)
    assert curie("task", "take", task, "--json").status == 0
    node = planck("mem", "create", "A fact", "--json").json["node"]["id"]
    planck("mem", "update", node, "--priority", "P1")
    claim = planck("claim", "src", "--json").json["claim_id"]
    exchange(curie, planck)

    for id, kinds in (
        (task, ["task", "task_event"]), (node, ["node", "patch"]), (claim, ["claim"]), (curie_session, ["session"]),
    ):  # fmt: skip
        found = verify(planck, id, status=0).json
        assert (found["asked"], sorted(each["kind"] for each in found["lines"])) == (id, kinds)
        assert verify(planck, id[:-2], status=0).json["asked"] == id


def test_a_thread_with_a_name_is_verified_and_forgotten_whole(ring: Ring) -> None:
    """Not only its last signal."""
    _, planck, curie = ring
    said = [
        planck.send(text, "--to", "Curie", "--thread", "launch")["signal_id"]
        for text in ("zebra 1", "zebra 2")
    ]
    lines = verify(planck, "launch", status=0).json["lines"]
    assert [each["id"] for each in lines] == said
    assert planck("forget", "launch", "leak").status == 0
    exchange(planck, curie)
    assert not any("zebra" in each["message"] for each in curie.inbox("--no-mark"))


@pytest.mark.parametrize("signer", [None, MALLORY], ids=["nobody", "another writer"])
def test_a_line_in_another_s_name_is_held_and_named(ring: Ring, signer: SigningKey | None) -> None:
    """Of the log, of the thread that it names and of its own id; other things stay verified."""
    hub, planck, curie = ring
    sent = planck.send("Split it?", "--to", "Curie", "--intent", "PROPOSE")["signal_id"]
    other = planck.send("Hello", "--to", "Curie")["signal_id"]
    exchange(planck, curie)
    line = forged(hub, sent, 1, message="No")
    hub.forge(line, *([attest([line], signer)] if signer else []))
    exchange(planck)

    thread = json.loads(line)["thread_id"]
    for asked, status in (((), 0), ((thread,), 0), (("sig-000000000001",), 1)):
        found = verify(planck, *asked, status=status)
        (held,) = found.json["held"]
        assert (held["id"], held["writer"], held["attested"]) == (
            "sig-000000000001",
            json.loads(line)["writer"],
            None,
        )
        assert (
            found.json["verified"] == (not status)
            and "1 held" in found.err
            and "sig-000000000001" in found.err
        )
        assert f"from {planck.identity}" in found.err and found.json["next"] == [
            "gitmem sync",
            "gitmem doctor",
        ]
    verify(planck, sent, status=0)
    hub.forge(of_its_writer(hub.line_of(sent), thread_id="thread-000000000001", message="Yes"))
    exchange(planck)
    assert len(verify(planck, thread, status=0).json["held"]) == 2  # it is of the thread by its id
    verify(planck, other, status=0)


def test_a_line_without_a_writer_is_unsigned(ring: Ring) -> None:
    """It is attested by who imported it, names nothing of a writer, and is marked."""
    hub, planck, curie = ring
    sent = planck.send("Split it?", "--to", "Curie", "--intent", "PROPOSE")["signal_id"]
    exchange(planck, curie)
    one = hub.line_of(sent)
    begun = unnamed(changed(next(line for line in hub.lines() if json.loads(line).get("event") == "start"),
                            session_id="sess-000000000003", display_name="Nemo", agent_identity="test:worker:nemo", clone_id="zzzzzzzzzz"))  # fmt: skip
    old = {
        "sender_identity": "test:worker:nemo",
        "sender_session": None,
        "recipients": ["test:worker:one"],
        "target_agent": None,
    }
    asked = changed(one, signal_id="sig-000000000001", thread_id="thread-000000000001", **old)
    agreed = changed(one, signal_id="sig-000000000002", thread_id="thread-000000000001", intent="AGREE", **{**old, "sender_identity": "test:worker:one"},
                     reply_to="sig-000000000001", answers_digest=digest(asked), after=["sig-000000000001"])  # fmt: skip
    before = planck("roster", "--json", "--all").json["sessions"]
    earlier = addressed(changed(begun, event="change", at="2026-01-01T00:00:00.000000Z"), BOB)
    hub.bring_in(asked, agreed, begun, earlier, attest([earlier], BOB))
    exchange(planck)

    found = verify(planck, status=0)
    assert found.json["unsigned"] == {"session": 1, "signal": 2} and not found.json["held"]
    assert "3 unsigned: 1 session, 2 signal" in found.err
    of_thread = verify(planck, "thread-000000000001", status=1)
    assert of_thread.json["unsigned"] == {"signal": 2} and "  unsigned" in of_thread.err
    said = planck("converged", "sig-000000000001", "--json").json
    assert (said["converged"], said["verified"]) == (True, False)
    rows = {
        each["display_name"]: each["writer"] for each in planck("roster", "--json", "--all").json["sessions"]
    }
    assert rows == {**{each["display_name"]: each["writer"] for each in before}, "Nemo": None}
    assert None not in {each["writer"] for each in before}
    marked = [row.split()[0] for row in planck("roster", "--all").out.splitlines() if "(unsigned)" in row]
    assert marked == ["Nemo"]


@pytest.mark.parametrize(
    "field", ["reply_to", "thread_id", "after", "recipients", "task_id", "sender_session", "signal_id"]
)
def test_a_line_without_a_writer_names_nothing_of_a_writer(ring: Ring, field: str) -> None:
    """Whoever attests it: in no field that names a record, a session or an agent."""
    hub, planck, curie = ring
    sent = planck.send("Split it?", "--to", "Curie", "--intent", "PROPOSE")["signal_id"]
    exchange(planck, curie)
    one = json.loads(hub.line_of(sent))
    theirs = {"reply_to": sent, "thread_id": one["thread_id"], "after": [sent], "recipients": one["recipients"],
              "task_id": f"task-{sent[4:]}", "sender_session": curie.session, "signal_id": sent}[field]  # fmt: skip
    free = {"signal_id": "sig-000000000001", "thread_id": "thread-000000000001", "sender_identity": "test:worker:nemo",
            "sender_session": None, "recipients": [], "target_agent": None}  # fmt: skip

    def answers() -> list[Any]:
        said = [
            planck(*words, "--json").json for words in (("thread", sent), ("converged", sent), ("inbox",))
        ]
        return [
            {name: each[name] for name in each if name not in ("commit", "warnings", "next")} for each in said
        ]

    before = answers()
    hub.bring_in(changed(hub.line_of(sent), **{**free, field: theirs}))
    exchange(planck)

    assert answers() == before
    assert planck("show", "sig-000000000001", "--json").status == 2
    assert verify(planck, status=0).json["unsigned"] == {}
    hub.bring_in(changed(hub.line_of(sent), **free))
    exchange(planck)
    assert planck("show", "sig-000000000001", "--json").status == 0  # else this test would show nothing


def test_a_line_without_a_writer_counts_once_it_is_attested(ring: Ring) -> None:
    """By anybody; until then it is held and counted by doctor."""
    hub, planck, curie = ring
    sent = planck.send("Split it?", "--to", "Curie", "--intent", "PROPOSE")["signal_id"]
    exchange(planck, curie)
    line = changed(hub.line_of(sent), signal_id="sig-000000000001", thread_id="thread-000000000001", sender_identity="test:worker:nemo",
                   sender_session=None, recipients=[], target_agent=None)  # fmt: skip
    hub.push(line)
    exchange(planck)

    assert [each["id"] for each in verify(planck, status=0).json["held"]] == ["sig-000000000001"]
    assert planck("show", "sig-000000000001", "--json").status == 2
    hub.forge(attest([line], BOB))
    exchange(planck)
    assert planck("show", "sig-000000000001", "--json").status == 0
    assert verify(planck, status=0).json["held"] == []


def chain(lines: list[bytes], clone: str) -> list[bytes]:
    """An attestation of Bob's for each line, one after the other."""
    made: list[bytes] = []
    clock = itertools.count(AT)
    for number, line in enumerate(lines):
        last = (number, line_hash(made[-1]).hex()) if made else None
        made += attestations.seal(BOB, [line], lambda: next(clock), clone, last)
    return made


def bobs(hub: Hub, sent: str, count: int) -> list[bytes]:
    return [addressed(unnamed(forged(hub, sent, number, sender_identity="test:worker:bob", sender_session=None)), BOB)
            for number in range(count)]  # fmt: skip


Push = Callable[[Hub, list[bytes]], None]


def withhold(hub: Hub, lines: list[bytes]) -> None:
    one, _, three = chain(lines, "clone")
    hub.forge(lines[0], lines[2], one, three)


def fork(hub: Hub, lines: list[bytes]) -> None:
    one, two, _ = chain(lines, "clone")
    hub.forge(*lines, one, two, chain([lines[2]], "clone")[0])


def fork_without_its_other_branch(hub: Hub, lines: list[bytes]) -> None:
    """The second attestation names a first one that is not there, but another one."""
    _, two, _ = chain(lines, "clone")
    hub.forge(lines[1], lines[2], two, chain([lines[2]], "clone")[0])


@pytest.mark.parametrize(
    ("push", "gaps", "forks", "said"),
    [
        (withhold, [{"clone": "clone", "first": 2, "last": 2}], [], "clone clone: no attestation 2 to 2"),
        (fork, [], [{"clone": "clone", "number": 1}], "clone clone: several attestations 1"),
        (
            fork_without_its_other_branch,
            [],
            [{"clone": "clone", "number": 1}],
            "clone clone: several attestations 1",
        ),
    ],
)
def test_gaps_and_forks_are_told_and_decide_nothing(
    ring: Ring, push: Push, gaps: list[object], forks: list[object], said: str
) -> None:
    """Whoever withholds or forks takes nothing away from what is attested."""
    hub, planck, curie = ring
    sent = planck.send("Hello", "--to", "Curie")["signal_id"]
    exchange(planck, curie)
    push(hub, bobs(hub, sent, 3))
    exchange(planck)

    found = verify(planck, status=0)

    numbers = {each["writer"] == BOB.writer: (each["gaps"], each["forks"]) for each in found.json["writers"]}
    assert numbers == {True: (gaps, forks), False: ([], [])}
    assert said in found.err


def test_what_is_no_id_of_this_log_is_refused(ring: Ring) -> None:
    """With a sentence; also an id that a held line only mentions."""
    hub, planck, curie = ring
    sent = planck.send("Hello", "--to", "Curie")["signal_id"]
    exchange(planck, curie)
    line = changed(
        named(unnamed(forged(hub, sent, 5)), ANNA), reply_to="sig-000000000009", answers_digest=None
    )
    hub.forge(line)
    exchange(planck)

    for id in ("sig-000000000009", "mem-zzzzzz", "thread-zzzzzz", "task-zzzzzz"):
        said = planck("verify", id, "--json")
        assert (said.status, said.json["error"]["code"][:8]) == (2, "unknown-"), said
        assert id in said.json["error"]["message"]


def test_of_too_many_lines_none_is_verified_that_was_not_read(ring: Ring) -> None:
    """A claim of more than a thousand lines, all of them attested."""
    hub, planck, curie = ring
    claim = planck("claim", "src", "--json").json["claim_id"]
    exchange(planck, curie)
    (own,) = (line for line in hub.lines() if json.loads(line)["kind"] == "claim")
    ats = (f"2026-01-01T00:00:00.{number:06d}Z" for number in range(1_001))
    lines = [
        addressed(
            changed(
                own,
                event="release",
                sender_identity="test:worker:bob",
                sender_session=None,
                reason="over",
                at=at,
            ),
            BOB,
        )
        for at in ats
    ]
    hub.forge(*lines, attest(lines, BOB))
    exchange(planck)

    found = verify(planck, claim, status=1)

    assert (found.json["left_out"], found.json["unsigned"], found.json["held"]) == (2, {}, [])
    assert "2 not read, because there are too many" in found.err
    verify(planck, status=0)


def test_what_waits_for_its_commit_is_committed_first(run: Run, start: Callable[..., str]) -> None:
    """An agent that asks about what it has just written is not told that there is no such thing."""
    session = start("Planck")

    assert run("verify", session, "--json").json["verified"]


def test_a_line_that_nobody_can_read_is_none_of_a_writer(ring: Ring) -> None:
    """It is in no state; `gitmem doctor` names it."""
    hub, planck, curie = ring
    sent = planck.send("Hello", "--to", "Curie")["signal_id"]
    exchange(planck, curie)
    hub.forge(forged(hub, sent, 6, sender_identity="test:worker:\u202ecurie"))
    exchange(planck)

    verify(planck, status=0)


def test_without_a_log_there_is_nothing_to_verify(repo: Path) -> None:
    from tests.in_process import gitmem

    done = gitmem("verify", "--json", cwd=repo, env={})

    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (2, "no-log")


def test_what_was_verified_before_is_not_believed(ring: Ring) -> None:
    """Somebody who can write the index file shows nobody a forged line."""
    import sqlite3

    hub, planck, curie = ring
    sent = planck.send("Hello", "--to", "Curie")["signal_id"]
    exchange(planck, curie)
    hub.forge(forged(hub, sent, 7))
    exchange(planck)
    assert planck("doctor", "--json").json["findings"]
    for path in (planck.path / ".git" / "gitmem").glob("index*"):
        if path.read_bytes()[:6] == b"SQLite":
            with sqlite3.connect(path) as db:
                db.execute("DELETE FROM held")

    assert verify(planck, status=0).json["held"]


def test_each_address_that_is_shown_costs_no_look_at_the_log(ring: Ring) -> None:
    """Whoever can push can push lines of thousands of addresses, which are held."""
    hub, planck, _ = ring
    sent = planck.send("Hello.", "--to", "Curie")["signal_id"]
    planck.sync()
    hub.push(
        *(
            of_its_writer(
                hub.line_of(sent), signal_id=f"sig-{number:04}", sender_identity=f"a:b:c{number}@{BOB.writer}"
            )
            for number in range(200)
        )
    )
    planck.sync()
    profile = cProfile.Profile()
    assert len(profile.runcall(planck, "verify", "--json").json["held"]) == 200
    names = {getattr(each.code, "co_name", ""): each.callcount for each in profile.getstats()}
    assert 0 < names["caught_up"] < 20
