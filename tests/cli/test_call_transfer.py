"""`gitmem call --with-context --with-memory`: what is handed over, as caller and callee see it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ..sandbox import worktree
from .conftest import Run, Said

TOKEN = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"


class Pair:
    """A caller with some memory, and the agent that it calls, in another worktree."""

    def __init__(self, run: Run, repo: Path, tmp_path: Path) -> None:
        self.run = run
        self.other = worktree(repo, tmp_path / "wt")
        self.caller = self._start("Planck", "codex:planner:shop", "--wu", "WU-7")
        self.callee = self._start("Bohr", "claude:prices:shop", cwd=self.other)
        self.decision = self.create(
            "Round once per line", "--tag", "decision", "--meta", "reasoning=as invoices do"
        )
        self.node = self.create("Prices of orders are rounded", "--priority", "P1")

    def _start(self, name: str, identity: str, *more: str, cwd: Path | None = None) -> str:
        said = self.run(
            "session", "start", "--name", name, "--agent-identity", identity, *more, "--json", cwd=cwd
        )
        return str(said.json["session_id"])

    def create(self, *args: str) -> str:
        return self.run("mem", "create", *args, "-q", session=self.caller).out.strip()

    def call(self, *args: str) -> Said:
        return self.run("call", "Bohr", "Is it right?", "--no-wait", *args, session=self.caller)

    def seen(self, *args: str) -> Said:
        return self.run("task", *args, session=self.callee, cwd=self.other)


@pytest.fixture
def pair(run: Run, repo: Path, tmp_path: Path) -> Pair:
    return Pair(run, repo, tmp_path)


def test_i5_a_call_hands_over_nothing_unasked(pair: Pair) -> None:
    said = pair.call("--json")
    assert said.json["transfer"] is None
    task = said.json["results"][0]["task_id"]
    shown = pair.seen("show", task, "--json").json
    assert (shown["received"], "context" in shown["task"]) == (None, False)


def test_i12_i20_to_i25_the_answer_counts_and_the_callee_sees_it(pair: Pair) -> None:
    args = (
        "--with-context",
        "--with-memory",
        "--var",
        "limit=3",
        "--var",
        'map={"a":[1]}',
        "--var",
        "word=x",
    )
    said = pair.call(*args, "--json").json
    transfer = said["transfer"]
    assert transfer["counts"] == {"decisions": 1, "memory": 2, "variables": 3}
    assert list(transfer["stages"]) == [
        "acquisition",
        "encoding",
        "derivation",
        "retrieval",
        "relations",
        "utilization",
    ]
    assert 0 < transfer["bytes"] <= transfer["budget"] == 16 * 1024
    task = said["results"][0]["task_id"]

    pair.run("mem", "update", pair.node, "--content", "Prices are rounded per order", session=pair.caller)
    for action in ("show", "take"):
        received = pair.seen(action, task, "--json").json["received"]
        assert received["inherited_from"] == "codex:planner:shop"
        assert received["context"]["variables"] == {"limit": 3, "map": {"a": [1]}, "word": "x"}
        assert received["context"]["decisions"][0]["metadata"] == {"reasoning": "as invoices do"}
        assert {each["id"]: each["state"] for each in received["memory_snapshot"]} == {
            pair.node: "changed", pair.decision: "unchanged",
        }  # fmt: skip
    text = pair.seen("show", task).out
    assert (
        "- limit: 3" in text
        and "has changed since the call" in text
        and "Prices are rounded per order" in text
    )
    assert text.count("Round once per line") == 1  # by value; the reference does not repeat it
    assert "handed over: decisions 1, memory 2, variables 3, " in pair.call(*args).out


def test_i19_a_dry_run_writes_nothing_and_shows_what_is_left_out(pair: Pair, repo: Path) -> None:
    sensitive = pair.create("about prices", "--sensitive", "--tag", "decision")
    private = pair.create("about prices, privately", "--private", "--tag", "decision")
    args = ("--with-context", "--with-memory", "--dry-run")

    said = pair.run("call", "Bohr", "x", *args, session=pair.caller)
    assert said.status == 0
    assert said.out.startswith("would call Bohr (claude:prices:shop); nothing was written\n")
    assert said.out.count(f"not handed over: {sensitive} is sensitive") == 1
    assert private not in said.out and "privately" not in said.out and "about prices" not in said.out
    more = ("--var", "a=b c", "--var", "n=1", "--timeout", "1h", "--join", "any", "--json")
    found = pair.run("call", "Bohr", "x y", *args, *more, session=pair.caller).json
    assert found["next"] == [
        "gitmem call Bohr 'x y' --timeout 1h --join any --with-context --var 'a=b c' --var n=1 --with-memory"
    ]
    assert found["recorded"] is False and found["transfer"]["omitted"] == [
        {"id": sensitive, "reason": "is sensitive"}
    ]
    assert pair.node in [each["id"] for each in found["context"]["memory"]]
    assert "No tasks." in pair.run("task", "list", session=pair.caller).out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--var", f"key={TOKEN}"), "Variable key seems to contain a GitHub token. Nothing was written."),
        (("--join", "some"), "Invalid --join: 'some'; choose from all, any. Nothing was written."),
        (("--timeout", "soon"), "Invalid duration: --timeout 'soon'."),
        (("--var", "limit"), "Invalid --var: 'limit'; it must be KEY=VALUE. Nothing was written."),
        (("--var", "x=NaN"), "Failed to serialize context: variable x has a float that JSON cannot represent."),
        (("--var", f"x={'y' * 17_000}"), "Failed to serialize context: it has 17"),
    ],
)  # fmt: skip
def test_i9_i20_bad_input_is_refused_before_any_write(
    pair: Pair, args: tuple[str, ...], message: str
) -> None:
    for more in ((), ("--dry-run",)):
        said = pair.call(*args, *more)
        assert said.status == 2 and message in said.err, said
    assert "No tasks." in pair.run("task", "list", session=pair.caller).out


def test_a_worker_reads_it_in_its_input(pair: Pair, tmp_path: Path) -> None:
    import gitmem
    from gitmem.calls import bundle
    from gitmem.calls.worker import ServedTask
    from gitmem.work import task_rules

    task = pair.call("--with-context", "--var", "limit=3", "--json").json["results"][0]["task_id"]
    with gitmem.open(str(pair.other), identity="claude:prices:shop") as log:
        found = task_rules.require(log.store, task)
        served = ServedTask(found, "sess-1", print, bundle.receive(log.store, found.record))
    assert "- limit: 3" in served.input() and "Round once per line" in served.input()
    assert served.input("text") == "Is it right?"
    assert served.context["variables"] == {"limit": 3}
    json.dumps(dict(served.context))
