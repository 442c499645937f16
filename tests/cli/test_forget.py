"""`gitmem forget`: a text is gone from every answer on every clone, and nothing else is."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from tests.hazards.forging import Clone, Ring, exchange
from tests.signing import BOB, put_key

SECRET = "hunter2-is-the-password"


def forget(at: Clone, id: str, reason: str = "A leaked key.") -> Any:
    answer = at("forget", id, reason, "--json")
    assert answer.status == 0, answer
    return answer.json


def agreement(at: Clone, thread: str) -> Any:
    """Who agreed on what, without the texts, and the commit that was read."""
    found = at("converged", thread, "--json").json
    assert found["converged"]
    for each in (found["agreed_on"], *found["in_force"]):
        del each["text"]
    return {**found, "commit": None}


def answers(at: Clone, *lines: tuple[str, ...]) -> str:
    """What these commands print, in both forms."""
    return "".join(at(*line, *form).out for line in lines for form in ((), ("--json",)))


def test_a_signal_is_forgotten_on_every_clone_and_all_else_stays(ring: Ring) -> None:
    """Its text is in no answer; who agreed on it agrees, and a reply finds it."""
    _, planck, curie = ring
    asked = planck.send(f"Use {SECRET}?", "--to", "Curie", "--intent", "PROPOSE", "--wu", "WU-7")
    exchange(planck, curie)
    id, thread = asked["signal_id"], asked["thread_id"]
    assert curie("reply", id, "yes", "--agree").status == 0
    exchange(curie, planck)
    before = [agreement(each, thread) for each in (planck, curie)]

    found = forget(planck, id)
    exchange(planck, curie)

    assert (found["lines"], len(found["records"]), found["quoted"]) == (1, 1, [])
    assert [agreement(each, thread) for each in (planck, curie)] == before
    for each in (planck, curie):
        shown = each("show", id, "--json").json["record"]
        assert (shown["message"], shown["forgotten"]) == ("(forgotten)", True)
        commands = (
            ("thread", thread),
            ("show", id),
            ("log",),
            ("inbox", "--peek", "Curie"),
            ("converged", thread),
            ("gate",),
        )
        assert SECRET not in answers(each, *commands)
        assert "A leaked key." in each("log").out
        assert each("verify").status == 0
        assert each("doctor").status == 0
    assert curie("reply", id, "still here").status == 0
    assert forget(curie, id)["warnings"] == [f"The texts of {id} were forgotten before. Nothing was written."]


def test_a_node_is_forgotten_with_its_changes(ring: Ring) -> None:
    """No search, context or export has it; what others wrote is theirs."""
    _, planck, curie = ring
    id = planck(
        "mem", "create", f"first {SECRET}", "--type", "note", "--lifecycle", "project", "--json"
    ).json["node"]["id"]
    assert planck("mem", "update", id, "--content", f"second {SECRET}").status == 0
    kept = planck("mem", "create", f"It says first {SECRET}", "--type", "note", "--json").json["node"]["id"]
    exchange(planck, curie)
    assert SECRET in answers(curie, ("mem", "search", SECRET))

    found = forget(planck, id)
    exchange(planck, curie)

    assert (found["lines"], found["quoted"]) == (2, [kept])
    forget(planck, kept)
    exchange(planck, curie)
    for each in (planck, curie):
        node = each("show", id, "--json").json
        assert "(forgotten)" in str(node) and "'forgotten': True" in str(node)
        commands = (
            ("mem", "list"),
            ("show", id),
            ("mem", "context"),
            ("mem", "export"),
            ("mem", "search", SECRET),
        )
        said = answers(each, *commands[:-1])
        assert SECRET not in said and "(forgotten)" in said
        assert id not in answers(each, commands[-1])


def test_a_task_is_forgotten_with_what_its_writer_wrote_about_it(ring: Ring) -> None:
    """Its state and outcome stay."""
    _, planck, curie = ring
    id = planck("delegate", f"Use {SECRET}", "--to", "Curie", "--json").json["task"]["task_id"]
    exchange(planck, curie)
    assert curie("task", "take", id).status == 0
    assert curie("task", "done", id, "a result").status == 0
    exchange(curie, planck)
    before = planck("task", "show", id, "--json").json

    assert forget(planck, id)["lines"] >= 1
    exchange(planck, curie)

    for each in (planck, curie):
        shown = each("task", "show", id, "--json").json
        assert shown["state"] == before["state"]
    assert "(forgotten)" in planck("task", "show", id).out
    assert f"Use {SECRET}" not in planck("task", "show", id).out


def test_who_wrote_it_is_asked(ring: Ring, tmp_path: Path) -> None:
    """With another key nothing of it is forgotten, even by a record that says so."""
    _, planck, curie = ring
    key = tmp_path / "bob.key"
    put_key(key, BOB)
    bob = {"GITMEM_KEY_FILE": str(key)}
    id = planck.send(f"Use {SECRET}", "--to", "Curie")["signal_id"]
    exchange(planck, curie)
    started = curie("session", "start", "--name", "Bob", "--json", env={**bob, "GITMEM_SESSION": ""}).json[
        "session_id"
    ]
    own = {**bob, "GITMEM_SESSION": started}
    answer = curie("forget", id, "A leaked key.", "--json", env=own)
    assert answer.status == 0 and len(answer.json["asked"]) == 1, answer
    assert curie("sync", "--publish", env=own).status == 0
    planck.sync()
    (told,) = [each for each in planck.inbox() if each["signal_id"] == answer.json["asked"][0]]
    assert id in told["message"] and "A leaked key." in told["message"]
    assert SECRET in planck("show", id).out


def test_what_has_no_text_is_refused(ring: Ring) -> None:
    """With a sentence; so are an unknown id and a missing reason."""
    _, planck, _ = ring
    assert planck("forget", planck.session, "x").status == 2
    assert planck("forget", "sig-000000", "x").status == 2
    answer = planck("forget", planck.send("hello to all of you")["signal_id"])
    assert answer.status == 2 and "reason" in answer.err.lower()


def test_copies_that_gitmem_keeps_let_go_of_it(ring: Ring) -> None:
    """Lines in files that were put aside are reduced there; a file that has the text elsewhere is named. So is the index."""
    hub, planck, curie = ring
    sent = planck.send(f"Use {SECRET}", "--to", "Curie")
    exchange(planck, curie)
    state = planck.path / ".git" / "gitmem"
    line = hub.line_of(sent["signal_id"])
    (state / "aside").mkdir(exist_ok=True)
    (state / "aside" / "lines.jsonl").write_bytes(b"x\n" + line + b"\ny\n")
    (state / "wal" / "0.damaged").write_bytes(b"\0" * 9 + line)
    (state / "aside" / "note").write_text(f"Use {SECRET}")
    large = state / "aside" / "large.jsonl"
    rest = b"\n" + b"z" * 17_000_000  # more than is read of other files
    large.write_bytes(line + rest)
    large.chmod(0o600)
    curie("roster")

    found = forget(planck, sent["signal_id"])
    exchange(planck, curie)
    curie("roster")

    assert found["copies"] == [str(state / "aside" / "note")]
    assert large.read_bytes().endswith(rest) and large.stat().st_mode & 0o777 == 0o600
    (state / "aside" / "note").unlink()
    for each in (planck, curie):
        for path in (each.path / ".git" / "gitmem").rglob("*"):
            if path.is_file() and not path.name.endswith(("-wal", "-shm")):
                assert SECRET.encode() not in path.read_bytes(), path
    assert sqlite3.connect(next(state.glob("index-*.sqlite3"))).execute(
        "PRAGMA integrity_check"
    ).fetchone() == ("ok",)
