"""Hooks of agents, run as a client runs them: time and tokens of a tool call without and with new signals."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from gitmem import repo as place
from gitmem.clients import client_scope, git_hook

from . import messages
from . import workbench as workbenches
from .measure import Figure, cpu_of, in_turn, wall_of
from .workbench import Workbench

CLIENT = "claude-code"
HARNESS = "5f0c6a52-0b1d-4d6e-9a53-6a5d8a3b7c10"
CALLS, SIGNALS = 1_000, 10
FIRST_MAX, FURTHER_MAX = 65.0, 45.0  # tokens
PEERS = ("Planck", "Curie", "Noether")


class Agent:
    """A session of Claude Code with hooks, and other sessions that send it signals."""

    def __init__(self, workbench: Workbench, name: str) -> None:
        self.where = workbench.repository(name)
        self.peers = {each: workbenches.start(self.where, each) for each in PEERS}
        workbenches.publish(self.where, workbenches.sessions(workbenches.START))
        workbenches.publish(self.where, workbenches.history(workbench.size.few))
        self.script = os.path.join(workbench.folder, f"{name}.sh")
        with open(self.script, "w", encoding="utf-8") as file:
            file.write(client_scope.script_text(CLIENT))
        self.environment = {
            **workbench.environment, "CLAUDE_CODE_SESSION_ID": HARNESS, "CLAUDE_PROJECT_DIR": self.where,
            "PATH": workbench.programs + os.pathsep + workbench.environment.get("PATH", ""),
        }  # fmt: skip
        self.input = os.path.join(workbench.folder, f"{name}.json")
        with open(self.input, "w", encoding="utf-8") as file:
            json.dump(_said("PostToolUse"), file)
        self.run("SessionStart")
        self.reader = self._reader()

    def _reader(self) -> str:
        folder = os.path.join(self.where, ".git", "gitmem", "sessions")
        (own,) = set(os.listdir(folder)) - set(self.peers.values())
        return own

    def command(self, event: str) -> list[str]:
        """Return the command that runs the hook of an event."""
        return ["/bin/sh", self.script, event]

    def run(self, event: str) -> str:
        """Run the hook of an event; return the text that it adds for the model."""
        done = subprocess.run(
            self.command(event), cwd=self.where, env=self.environment, input=json.dumps(_said(event)),
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return str(json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]) if done.stdout else ""

    def signal(self, number: int, text: str) -> None:
        """Send the agent a signal from one of the others."""
        peer = PEERS[number % len(PEERS)]
        with workbenches.open_log(self.where, self.peers[peer]) as log:
            log.signals.send(text, to=[self.reader], wu=f"WU-{100 + number}")


def _said(event: str) -> dict[str, object]:
    """Return Claude Code's input of a hook, with a tool's output of two kilobytes."""
    said = {"session_id": HARNESS, "transcript_path": "/t.jsonl", "cwd": "/w", "hook_event_name": event}
    more = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_response": {"stdout": "x" * 2_000}}
    return {**said, **(more if event == "PostToolUse" else {"source": "startup"})}


def quiet(workbench: Workbench) -> list[Figure]:
    """Measure the wall time of the script after a tool call with nothing new."""
    agent = Agent(workbench, "hook-quiet")
    one, other = (
        wall_of(command, agent.where, agent.environment, stdin=agent.input)
        for command in (agent.command("PostToolUse"), ["/bin/sh", "-c", ":"])
    )
    got, base = in_turn(workbench.size.rounds * 10, one, other, warm=5)
    before = wall_of(agent.command("PreToolUse"), agent.where, agent.environment, stdin=agent.input)
    crowded, same = in_turn(workbench.size.rounds * 10, before, other, warm=5)
    shutil.rmtree(Path(agent.where, ".git", "gitmem", "edits", "inputs"))
    edit, bare = in_turn(workbench.size.rounds * 10, before, other, warm=5)
    guard = git_hook.Hook(place.find(agent.where), None, git_hook.PRE_COMMIT)
    git_hook.install(guard)
    commit = wall_of([guard.path], agent.where, agent.environment, stdin=agent.input)
    free, shell = in_turn(workbench.size.rounds * 10, commit, other, warm=5)
    return [
        Figure("hook with nothing new, wall", "`sh -c :`", got, base, 2, "ms"),
        Figure("hook with nothing claimed by others before an edit, wall", "`sh -c :`", edit, bare, 2, "ms"),
        Figure("the same in a worktree of several sessions, wall", "`sh -c :`", crowded, same, None, "ms"),
        Figure("hook with nothing new before a commit, wall", "`sh -c :`", free, shell, 2, "ms"),
    ]


def one_signal(workbench: Workbench) -> list[Figure]:
    """Measure the CPU of the script after a tool call with one signal: the shell, gitmem, and their children."""
    agent = Agent(workbench, "hook-signal")
    body = cpu_of(agent.command("PostToolUse"), agent.where, agent.environment, stdin=agent.input)
    number = iter(range(10_000))

    def once() -> float:
        at = next(number)
        agent.signal(at, messages.USUAL[at % len(messages.USUAL)])
        return body()

    empty = cpu_of(workbenches.python(), agent.where, workbench.environment)
    got, base = in_turn(workbench.size.rounds, once, empty, warm=2)
    if agent.run("PostToolUse"):
        raise RuntimeError("a signal was left unread: the hook was not measured with one")
    return [Figure("hook with one signal, CPU", "`python -c pass`", got, base, 4, "ms")]


def tokens(workbench: Workbench) -> list[Figure]:
    """Measure the tokens of all hook output of many tool calls with a few signals, against the messages themselves."""
    name, count = counter()
    figures: list[Figure] = []
    for kind, texts in (
        ("60 to 120 words each", messages.USUAL),
        ("12 to 16 words each", messages.SHORT),
        ("about 280 words each", messages.LONG),
    ):
        agent = Agent(workbench, f"hook-tokens-{len(figures)}")
        got, base = _injected(agent, workbench.size.calls, texts, count)
        what = (
            f"hooks for {workbench.size.calls:,} tool calls with {SIGNALS} signals of {kind}, tokens ({name})"
        )
        figures.append(Figure(what, "the signals' own text", got, base, None, "tokens"))
    return [*figures, *_beside(Agent(workbench, "hook-tokens-beside"), name, count)]


def _beside(agent: Agent, name: str, count: Callable[[str], int]) -> list[Figure]:
    """Measure the tokens beside the text: of one signal in a delivery, and of each further one."""
    text = messages.SHORT[0]
    found: dict[int, list[int]] = {1: [], 2: []}
    for number in range(4 * SIGNALS):
        waiting = 1 + number % 2
        for at in range(waiting):
            agent.signal(number + at, text)
        found[waiting].append(count(agent.run("PostToolUse")) - waiting * count(text))
    one = sum(found[1]) / len(found[1])
    further = sum(found[2]) / len(found[2]) - one
    return [
        Figure(f"hook, tokens beside the text of {which} ({name})", "limit", got, limit, 1, "tokens")
        for which, got, limit in (("one signal", one, FIRST_MAX), ("each further one", further, FURTHER_MAX))
    ]


def _injected(
    agent: Agent, calls: int, texts: Sequence[str], count: Callable[[str], int]
) -> tuple[float, float]:
    """Return the tokens that hooks added for the model, and the tokens of the messages."""
    due = {(number * calls) // SIGNALS: number for number in range(SIGNALS)}
    got = base = 0
    for call in range(calls):
        number = due.get(call)
        if number is not None:
            text = texts[number % len(texts)]
            base += count(text)
            agent.signal(number, text)
        got += count(agent.run("PostToolUse"))
    return float(got), float(base)


def counter() -> tuple[str, Callable[[str], int]]:
    """Return the unit's name and the function that counts.

    It counts tokens if a vocabulary is there, otherwise words and signs.
    """
    spec = find_spec("anthropic")
    if spec is None or spec.origin is None or find_spec("tokenizers") is None:
        import re

        pattern = re.compile(r"\w{1,8}|[^\w\s]")
        return "counted as words and signs", lambda text: len(pattern.findall(text))
    path = os.path.join(os.path.dirname(spec.origin), "tokenizer.json")
    found = import_module("tokenizers").Tokenizer.from_file(path)
    return "as Claude's tokenizer of 2023 counts", lambda text: len(found.encode(text).ids)
