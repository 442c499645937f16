"""The data of the page say what the commands say, within limits, and have nothing that is private."""

from __future__ import annotations

import gzip
import json
import random
import re
from pathlib import Path
from typing import Any

import gitmem
from benchmarks import workbench
from cli.render import repository as render
from gitmem import records
from gitmem.agents import roster
from gitmem.api.log import Log
from gitmem.errors import UsageError
from gitmem.history import figures
from gitmem.memory import decay, stored_nodes
from gitmem.page import page_data, page_file
from gitmem.page.board import Lanes, SignalMarks
from gitmem.signals import threads
from gitmem.signals.thread_list import ManyThreads, Selection
from gitmem.text.addresses import words_of, writer_of

from ..conftest import Git
from ..sandbox import annas
from ..signing import ANNA, attest, own_key
from .conftest import AGENTS, NODES, NOW, SIGNALS

HOUR = 3600 * 1_000_000
HOSTILE = "</script><img src=x onerror=alert(1)>\u202e\x1b[31m\x00"


def opened(path: Path, now: int = NOW, **options: object) -> Log:
    return gitmem.open(str(path), now=lambda: now, commit_after=0, **options)  # type: ignore[arg-type]


def data_of(path: Path, now: int = NOW, **filters: object) -> dict[str, Any]:
    with opened(path, now) as log:
        return page_data.collect(log.store, **filters)  # type: ignore[arg-type]


def publish(path: Path, *lines: tuple[str, bytes]) -> None:
    of_anna = [line for _, line in lines if writer_of(json.loads(line)["sender_identity"])]
    seals = [("seals", attest(of_anna, ANNA, NOW))] if of_anna else []
    workbench.publish(str(path), iter([*lines, *seals]))


def signal(id: str, at: int, text: str, **more: object) -> tuple[str, bytes]:
    fields = {
        "signal_id": f"sig-{id:0>8}", "sender_identity": "x:y:mallory", "recipients": [], "thread_id": "thread-longlong1", "intent": "INFO",
        "interrupt_class": "advisory", "message": text, "origin": "local",
    }  # fmt: skip
    whole = {**fields, **more}
    return "signals", records.line("signal", at, whole, writer=writer_of(str(whole["sender_identity"])))


def test_the_page_says_what_the_commands_say(page_log: Path) -> None:
    """Names, decisions, unread signals, scores; each id that is named is one of the page."""
    data = data_of(page_log)
    assert data["omitted"] == {} and data["notes"] == []
    assert (len(data["signals"]), len(data["nodes"]), len(data["agents"])) == (SIGNALS, NODES, AGENTS + 1)
    agents = {each["id"]: each for each in data["agents"]}
    signals = {each["id"]: each for each in data["signals"]}
    assert [each["at"] for each in data["signals"]] == sorted(each["at"] for each in data["signals"])
    for each in data["signals"]:
        assert {each["from"], *each["to"], *(reader for reader, *_ in each["receipts"])} <= agents.keys()
        assert each.get("reply", each["id"]) in signals
    with opened(page_log) as log:
        db = log.store.db()
        states = set()
        for thread in data["threads"]:
            states.add(thread["state"])
            if thread["stands"]:
                said = threads.converged(log.store, thread["id"])
                found = [(agents[lane]["identity"], word) for lane, word in thread["stands"]]
                assert found == [(words_of(each.identity), each.decision) for each in said.recipients]
                assert (thread["state"] == "converged") == said.converged
                writers = {agents[lane]["identity"]: {*of} for lane, of in thread["writers"]}
                assert (thread["verified"], writers) == (
                    said.verified,
                    {words_of(each): of for each, of in said.writers.items()},
                )
            shown = threads.thread(log.store, thread["id"])
            for each in shown.signals[:1]:
                receipts = {
                    agents[lane]["identity"]: state
                    for lane, state, _ in signals[each["signal_id"]]["receipts"]
                }
                delivery = {words_of(reader): state for reader, state in each["delivery"].items()}
                assert {**receipts, **delivery} == receipts
        assert {"open", "converged", "notice", "rejected"} <= states
        unread = {
            words_of(each["reader_identity"]): each["unread"]
            for each in roster.roster(log.store).sessions
            if each["unread"]
        }
        assert {
            agents[each["agent"]]["identity"]: each["count"] for each in data["board"]["unread"]
        } == unread
        nodes = {each.id: each for each in stored_nodes.load(db, [each["id"] for each in data["nodes"]])}
    for node in data["nodes"]:
        assert node["text"] == nodes[node["id"]].content
        assert node["decay"] == round(min(1.0, decay.score(nodes[node["id"]], now=NOW)), 3)
        assert node["history"][0]["what"] == "created"
    assert any(len(node["history"]) > 1 for node in data["nodes"]) and any(
        "superseded_by" in node for node in data["nodes"]
    )
    assert len(data["board"]["contested"]) == 1
    done = {"completed", "failed"}
    assert {each["state"] for each in data["tasks"]} - done == {"submitted", "working"}
    assert {each["state"] for each in data["tasks"] if not each["open"]} <= done
    assert set(data["board"]["open_tasks"]) == {each["id"] for each in data["tasks"] if each["open"]}
    assert all(each["result"] and each["ended"] for each in data["tasks"] if not each["open"])
    assert len(data["commits"]) == 11 and len(data["branches"]) == 9


def test_filters_leave_whole_threads_and_nothing_else(page_log: Path) -> None:
    """A work unit, an agent, a time; an unknown agent is an error with the next command."""
    of_unit = data_of(page_log, wu="WU-3")
    assert 0 < len(of_unit["signals"]) < SIGNALS
    assert {
        each["wu"]
        for each in (*of_unit["signals"], *of_unit["nodes"], *of_unit["tasks"], *of_unit["sessions"])
    } == {"WU-3"}
    of_agent = data_of(page_log, agent="Agent2")
    (lane,) = (each["id"] for each in of_agent["agents"] if each["name"] == "Agent2")
    for thread in of_agent["threads"]:
        own = [each for each in of_agent["signals"] if each["thread"] == thread["id"]]
        assert any(lane in (each["from"], *each["to"]) for each in own) and "more" not in thread
    assert {each["agent"] for each in (*of_agent["claims"], *of_agent["nodes"], *of_agent["sessions"])} == {
        lane
    }
    late = data_of(page_log, since=NOW - 24 * HOUR)
    start = (NOW - 24 * HOUR) // 1_000
    assert late["signals"] and min(each["at"] for each in (*late["signals"], *late["commits"])) >= start
    assert late["filters"] == {"since": start}
    try:
        data_of(page_log, agent="Nobody")
    except UsageError as error:
        assert (error.code, error.next) == ("unknown-agent", ["gitmem roster --all"])
    else:
        raise AssertionError


def test_private_nodes_and_other_folders_never_get_into_a_page(page_log: Path) -> None:
    """Not even into that of their writer."""
    with opened(page_log) as log:
        session = log.sessions.start(name="Curie", agent_identity="a:b:curie").session_id
    with opened(page_log, session=session) as log:
        log.memory.append("only for me: 4711", private=True)
        log.memory.append("for everybody: 4712")

    data = json.dumps(data_of(page_log))

    assert "4712" in data and "4711" not in data and str(page_log.parent) not in data


def test_a_stale_node_names_the_commit_that_made_it_stale(page_log: Path, git: Git) -> None:
    """The newest that changed its file."""
    oids = []
    for text in ("one", "two", "three"):
        (page_log / "feed.py").write_text(text)
        git("add", "feed.py", cwd=page_log)
        git("-c", "user.name=A", "-c", "user.email=a@b.org", "commit", "--quiet", "-m", text, cwd=page_log)
        oids.append(git("rev-parse", "HEAD", cwd=page_log).strip())
        if text == "one":
            with opened(page_log) as log:
                session = log.sessions.start(name="Curie").session_id
            with opened(page_log, session=session) as log:
                log.memory.append("It holds the whole feed", paths=["feed.py"])

    node = next(each for each in data_of(page_log)["nodes"] if each["text"] == "It holds the whole feed")

    assert node["stale"] == "stale (2 commits behind in feed.py)" and node["stale_by"] == oids[-1:]


def test_hostile_texts_are_data_and_have_limits(page_log: Path, git: Git) -> None:
    """Signs that act are escaped in every text, long ones are cut, and a subject can't break the list of commits."""
    text = HOSTILE + "x" * 60_000
    git("commit", "--quiet", "--allow-empty", "-m", f"{HOSTILE[:-1]}{'s' * 5_000}\n\nbody", cwd=page_log)
    publish(page_log, signal("1", NOW, text.replace("\x00", ""), sender_name="M\u034fallory"))

    data = data_of(page_log)

    shown = next(each for each in data["signals"] if each["id"] == "sig-00000001")
    assert len(shown["text"]) < 2_100 and shown["cut"] == len(text) - 1 - 2_000
    assert (
        data["commits"][-1]["subject"].startswith("</script><img src=x")
        and len(data["commits"][-1]["subject"]) <= 220
    )
    whole = json.dumps(data, ensure_ascii=False)
    assert not {"\u202e", "\x1b", "\u034f"} & set(whole)


def test_what_the_limits_leave_out_is_counted(page_log: Path) -> None:
    """The newest stay."""
    with opened(page_log) as log:
        db = log.store.db()
        only = Selection(log.store)
        few = SignalMarks(db, ManyThreads(db, only, 5), Lanes(log.store, []))
        newest = data_of(page_log)["signals"][-5:]
        assert [each["id"] for each in few.marks] == [each["id"] for each in newest]
        assert few.omitted == SIGNALS - 5
        assert all(
            each.get("more", 0) == each["signals"] - sum(mark["thread"] == each["id"] for mark in few.marks)
            for each in few.states
        )
        large = SignalMarks(db, ManyThreads(db, only, SIGNALS, fold_most=20_000), Lanes(log.store, []))
        assert 0 < len(large.marks) < SIGNALS and large.omitted == SIGNALS - len(large.marks)
        lanes = Lanes(log.store, [], 3)
        SignalMarks(db, ManyThreads(db, only, SIGNALS), lanes)
        assert (len(lanes.lanes()), lanes.omitted) == (4, AGENTS - 3)


def test_an_empty_log_and_a_repository_without_commits_make_a_page(tmp_path: Path, git: Git) -> None:
    """There is nothing in it."""
    git("init", "--quiet", "--initial-branch=main", str(tmp_path / "new"))

    data = data_of(tmp_path / "new")

    assert (data["signals"], data["commits"], data["agents"], data["notes"]) == ([], [], [], [])
    assert data["statistics"]["first_answer"] == {"n": 0}


def test_clocks_years_apart_and_a_long_thread(repo: Path) -> None:
    """All of them are shown; an answer before its question took no time."""
    lines = [signal(str(number), NOW + number * 1_000, f"line {number}") for number in range(1, 300)]
    asked = signal(
        "a", NOW, "May I?", recipients=["x:y:other"], intent="PROPOSE", thread_id="thread-clockfar1"
    )
    answer = signal(
        "b", NOW - 50 * 365 * 24 * HOUR, "Yes", recipients=["x:y:mallory"], intent="AGREE", thread_id="thread-clockfar1",
        sender_identity="x:y:other", reply_to="sig-0000000a", answers_digest=records_digest(asked[1]), after=["sig-0000000a"],
    )  # fmt: skip
    with opened(repo, NOW) as log:
        log.sessions.start(name="Curie")
    publish(repo, *lines, asked, answer)

    data = data_of(repo)

    assert len(data["signals"]) == 301
    assert [(each["state"], each["signals"]) for each in data["threads"]] == [
        ("notice", 299),
        ("converged", 2),
    ]
    assert data["statistics"]["agreement"] == {"n": 1, "median_ms": 0, "p90_ms": 0}


def records_digest(line: bytes) -> str:
    from gitmem.log.lines import digest

    return digest(line)


def test_commits_have_who_made_them_and_nobody_is_guessed(page_log: Path, git: Git) -> None:
    """A record names the session; what repeats commits is of those who made them; two sessions that claim one commit get none.

    What another clone says is marked, and counts for nothing about a commit that was made here.
    """
    env = ("-c", "user.name=A", "-c", "user.email=a@b.org")

    def commit(text: str, *args: str) -> str:
        git(*env, "commit", "--quiet", "--allow-empty", "-m", text, *args, cwd=page_log)
        return git("rev-parse", "HEAD", cwd=page_log).strip()

    first, inferred, claimed, nobody = (commit(each) for each in ("one", "two", "three", "four"))
    rebased = commit("five")
    (page_log / ".git" / "logs" / "HEAD").unlink()  # as if they came from elsewhere
    here = commit("six")
    number = iter(range(100))

    def made(of: str, session: int, **more: object) -> tuple[str, bytes]:
        fields = {
            "link_id": f"link-{next(number):012d}", "commit": of, "action": "commit", "evidence": "environment",
            "sender_identity": f"bench:x:agent{session}", "sender_session": f"sess-far{session}", "wu_id": "WU-9",
        }  # fmt: skip
        return "commits", records.line("commit", NOW, {**fields, **more})

    gone = "ab" * 20  # was amended, and is not here any more
    publish(
        page_log, made(first, 1), made(inferred, 2, evidence="alone"), made(claimed, 1), made(claimed, 2),
        made(nobody, 1, evidence="none"), made(here, 1), made(gone, 3), made(rebased, 4, action="rebase", sources=[gone]),
    )  # fmt: skip

    commits = data_of(page_log)["commits"]
    found = {each["id"]: (each.get("session"), each.get("inferred", False)) for each in commits}

    assert found[first] == ("sess-far1", False)
    assert found[inferred] == ("sess-far2", True)
    assert found[claimed] == found[nobody] == found[here] == (None, False)
    assert all(each.get("foreign") == ("session" in each or None) for each in commits)
    assert found[rebased] == ("sess-far3", False)
    assert sum(session is not None for session, _ in found.values()) == 3


def test_a_log_of_a_newer_format_is_shown_with_a_sentence(page_log: Path, git: Git) -> None:
    """This version reads it, and may not understand all of it."""
    tip = git("rev-parse", "refs/gitmem/log", cwd=page_log).strip()
    newer = git("cat-file", "-p", f"{tip}:format", cwd=page_log).replace('"format":1', '"format":9')
    blob = git("hash-object", "-w", "--stdin", cwd=page_log, input=newer).strip()
    rows = git("ls-tree", tip, cwd=page_log).splitlines(keepends=True)
    kept = "".join(row for row in rows if not row.endswith("\tformat\n"))
    tree = git("mktree", cwd=page_log, input=f"{kept}100644 blob {blob}\tformat\n").strip()
    made = git("commit-tree", "-p", tip, "-m", "Newer", tree, cwd=page_log).strip()
    git("update-ref", "refs/gitmem/log", made, cwd=page_log)

    data = data_of(page_log)

    assert data["notes"] == [
        "The log has format 9, and this gitmem knows format 1: something may be missing here."
    ]
    assert len(data["signals"]) == SIGNALS


def test_a_page_has_a_limit_whatever_peers_write(page_log: Path) -> None:
    """Wide names, paths and titles of a peer leave out the oldest of their kind, which is counted, and nothing of other kinds."""
    data = data_of(page_log)
    whole = data_of(page_log)
    rng = random.Random(7)
    for each in data["nodes"]:
        each["paths"] = [rng.randbytes(150).hex() for _ in range(20)]

    found = page_file.packed(data, most=150_000)

    assert len(found) <= 150_000
    shown = json.loads(gzip.decompress(found))
    kept = shown["nodes"]
    assert 0 < len(kept) < NODES and shown["omitted"] == {"nodes": NODES - len(kept)}
    assert [each["id"] for each in kept] == [each["id"] for each in whole["nodes"]][-len(kept) :]
    ids = {each["id"] for each in kept}
    assert all({each["from"], each["to"]} <= ids for each in shown["relations"])
    for name in ("signals", "threads", "tasks", "claims", "commits", "agents", "board"):
        assert shown[name] == json.loads(page_file.as_json(whole[name]))

    small = json.loads(gzip.decompress(page_file.packed(whole, json_most=100_000)))

    assert len(page_file.as_json(whole)) < 110_000
    assert len(small["signals"]) + small["omitted"]["signals"] == SIGNALS
    assert {each["thread"] for each in small["signals"]} == {each["id"] for each in small["threads"]}
    assert small["signals"][-1]["id"] == data["signals"][-1]["id"]
    for thread in small["threads"]:
        here = sum(each["thread"] == thread["id"] for each in small["signals"])
        assert thread.get("more", 0) == thread["signals"] - here


# `gitmem view --stats`: each figure, and what is left out of it.


def test_the_figures_are_those_of_the_page_and_of_the_log(page_log: Path) -> None:
    """Days add up; an agreement takes until the last one agrees; what was never asked is not measured."""
    data = data_of(page_log)
    with opened(page_log) as log:
        found = figures.stats(log.store)
        few = figures.stats(log.store, most=10)

    shown = {
        name: value for name, value in found.as_json().items() if name not in ("older", "remark", "next")
    }
    assert shown == data["statistics"]
    assert sum(each["signals"] for each in found.days) == SIGNALS and found.older == 0
    assert sum(found.tasks.values()) == len(data["tasks"]) and found.tasks["open"] == len(
        data["board"]["open_tasks"]
    )
    assert found.unanswered == sum("thread" in each for each in data["board"]["waits"])
    assert (few.older, few.days) == (SIGNALS - 10, found.days)
    assert few.first_answer["n"] < found.first_answer["n"]
    assert found.agreement["n"] == sum(each["state"] == "converged" for each in data["threads"])


def test_times_are_measured_from_the_question(repo: Path) -> None:
    """The first answer of somebody else counts, and the last agreement."""
    own_key(repo)
    one, two, mallory = (annas(f"x:y:{name}") for name in ("one", "two", "mallory"))
    with opened(repo, NOW) as log:
        log.sessions.start(name="Curie", agent_identity=one)
    thread: dict[str, object] = {"thread_id": "thread-measured", "wu_id": "WU-1"}
    by: dict[str, object] = {"sender_identity": mallory}
    asked = signal("a", NOW - 9 * HOUR, "May I?", recipients=[one, two], intent="PROPOSE", **by, **thread)
    more: dict[str, object] = {
        "reply_to": "sig-0000000a",
        "answers_digest": records_digest(asked[1]),
        "after": ["sig-0000000a"],
        **thread,
    }
    lines = [
        signal("b", NOW - 9 * HOUR + 1_000_000, "I forgot: today?", **by, **more),  # its own sender's
        signal("c", NOW - 8 * HOUR, "Yes", sender_identity=one, intent="AGREE", recipients=[mallory], **more),
        signal("d", NOW - 5 * HOUR, "Yes", sender_identity=two, intent="AGREE", recipients=[mallory], **more),
        signal("e", NOW - 2 * HOUR, "Read this", recipients=[one], **by, thread_id="thread-another1"),
    ]  # fmt: skip
    publish(repo, asked, *lines)

    with opened(repo, NOW) as log:
        found = figures.stats(log.store)
        none = figures.stats(log.store, wu="WU-2")

    hour = HOUR // 1_000
    assert found.first_answer == {"n": 1, "median_ms": hour, "p90_ms": hour}
    assert found.agreement == {"n": 1, "median_ms": 4 * hour, "p90_ms": 4 * hour}
    assert found.unread_age == {"n": 1, "median_ms": 2 * hour, "p90_ms": 2 * hour}
    assert found.unanswered == 0
    assert (none.days, none.first_answer, none.tasks) == ([], {"n": 0}, {})


def test_days_that_have_not_come_take_no_place_of_others(repo: Path) -> None:
    """Four hundred lines of a peer would hide the whole history; clocks that are a little ahead still count."""
    with opened(repo, NOW) as log:
        log.sessions.start(name="Curie", agent_identity="x:y:one")
    forged = (
        signal(f"{number}", NOW + (2 + number) * 24 * HOUR, "m", thread_id=f"thread-{number:08}")
        for number in range(figures.DAYS_MAX)
    )
    publish(repo, signal("today", NOW, "m"), signal("soon", NOW + HOUR, "m"), *forged)

    with opened(repo, NOW) as log:
        found = figures.stats(log.store)

    assert sum(each["signals"] for each in found.days) == 2
    assert found.ahead == figures.DAYS_MAX
    assert "400 signals with a date more than a day ahead; no day counts them" in render.stats(found)


# docs/page-data.md has every field of the page's data.

ROOT = Path(__file__).parents[2]
SOURCES = ("gitmem/page/page_data.py", "gitmem/page/board.py", "gitmem/history/figures.py")


def test_every_field_is_documented_and_no_other() -> None:
    """Those in literals of the code that makes them, and those that are set where they apply, which have a question mark."""
    import ast

    always: set[str] = set()
    perhaps: set[str] = set()
    for source in SOURCES:
        for node in ast.walk(ast.parse((ROOT / source).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Dict) and all(isinstance(key, ast.Constant) for key in node.keys):
                always |= {str(key.value) for key in node.keys if isinstance(key, ast.Constant)}
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "put":
                assert isinstance(node.args[1], ast.Constant)
                perhaps.add(str(node.args[1].value))
            elif isinstance(node, ast.Assign):
                targets = [each for found in node.targets for each in ast.walk(found)]
                keys = [each.slice for each in targets if isinstance(each, ast.Subscript)]
                perhaps |= {str(key.value) for key in keys if isinstance(key, ast.Constant)}
            elif isinstance(node, ast.ClassDef) and node.name in ("Statistics", "Spread", "DayFigures"):
                fields = [each for each in node.body if isinstance(each, ast.AnnAssign)]
                always |= {ast.unparse(each.target) for each in fields}
                perhaps |= {ast.unparse(each.target) for each in fields}
    page = (ROOT / "docs/page-data.md").read_text(encoding="utf-8")
    cells = [row.rpartition(" | ")[2] for row in page.splitlines() if row.startswith("| ")]
    shown = {(name, mark == "?") for cell in cells for name, mark in re.findall(r"`(\w+)`(\??)", cell)}

    assert {name for name, _ in shown} == always | perhaps
    in_one_of_two_literals = {"root", "why"}
    assert {name for name, may_lack in shown if may_lack} <= perhaps | in_one_of_two_literals
