"""Errors of tools in the words of tools: a model has parameters and calls, and no command line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from cli.mcp import tool_results, tools
from cli.mcp.tool_results import call_of
from cli.parser_table import COMMANDS
from gitmem.errors import UsageError

from .conftest import Serve, text, within


def test_each_command_that_a_tool_runs_is_one_of_ours() -> None:
    functions = {declared.split()[0] for declared in COMMANDS.values()}
    assert set(tool_results.CALLS) <= functions
    assert {tool for tool, _ in tool_results.CALLS.values()} == set(tools.NAMES)
    run = {path for each in tools.TOOLS.values() for path in each.commands.values()}
    assert {*tools.READS, *tools.QUOTES, *tools.LIMITED, *tools.FRAMED} <= run


@pytest.mark.parametrize(
    ("command", "call"),
    [
        ("gitmem roster --all", "roster(all=true)"),
        ("gitmem roster Bohr", 'roster(query="Bohr")'),
        ("gitmem gate --help", "gate()"),
        ("gitmem show --help", 'mem(action="show", id="…")'),
        ("gitmem signal 'May I?' --to Bohr,Curie", 'signal(message="May I?", to=["Bohr,Curie"])'),
        ("gitmem reply sig-1 agreed --agree", 'signal(message="agreed", id="sig-1", agree=true)'),
        ("gitmem task take task-1", 'task(action="take", id="task-1")'),
        (
            "gitmem task release task-1 'not now'",
            'task(action="release", id="task-1", reason="not now")',
        ),
        ("gitmem task list --open", "task(open=true)"),
        ("gitmem claim docs --for 2h", 'claim(paths=["docs"], lease="2h")'),
        ("gitmem converged sig-1 --wait 60s", 'converged(id="sig-1", wait="60s")'),
        ("gitmem --as Bohr session set --role x", 'session(role="x")'),
        ("gitmem task launch task-1 --again x", None),  # no tool does it
        ("gitmem signal x --to Bohr --insist", None),  # the tool can't
        ("gitmem doctor", None),
        ("git config x y", None),
        ("gitmem roster 'unclosed", None),
    ],
)
def test_a_command_is_the_call_that_does_the_same_or_stays(command: str, call: str | None) -> None:
    assert call_of(command, tools.NAMES) == call


def test_a_text_names_parameters_and_keeps_what_no_tool_has() -> None:
    error = UsageError(
        "--to has an empty name; --for 40d is too long; '--to=x' was typed.",
        hint="Name it with --role; `gitmem role` lists them, `gitmem session set --role` states one. To everybody: --broadcast. "
        "`gitmem doctor --fix` repairs. Send with --insist.",
        next=["gitmem role", "gitmem doctor --fix"],
    )
    tool_results.translate(error, "delegate", tools.NAMES)
    assert (
        error.message
        == "`to` has an empty name; `--for` of the command line 40d is too long; '--to=x' was typed."
    )
    assert error.hint == (
        'Name it with `role`; `role()` lists them, `session(role="…")` states one. To everybody: `broadcast` of signal. '
        "`gitmem doctor --fix` in a shell repairs. Send with `--insist` of the command line."
    )
    assert error.next == ["role()", "gitmem doctor --fix"]
    of_few = UsageError("No role.", hint="`gitmem role` lists them.", next=["gitmem role", "gitmem roster"])
    tool_results.translate(of_few, "signal", tools.DEFAULT)
    assert (of_few.hint, of_few.next) == ("`gitmem role` in a shell lists them.", ["gitmem role", "roster()"])
    of_claim = UsageError("--for 40d: at most 24h.")
    tool_results.translate(of_claim, "claim", tools.NAMES)
    assert of_claim.message == "`lease` 40d: at most 24h."


def test_no_error_of_a_tool_names_an_option(serve: Serve, shop: Path) -> None:
    """All that a call can provoke: names, roles, times, paths, ids, and arguments that are missing or contradict others."""
    id = "task-abcdef"
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("role", {"role": "nonsense"}), ("session", {"scope": ["lane=a,b"]}), ("session", {"name": "all"}), ("session", {"name": "Bohr"}),
        ("session", {"agent_identity": "x"}), ("session", {"wu": "a b"}), ("session", {"done": True}),
        ("session", {"done": True, "name": "x"}), ("session", {"role": "x/y/z"}),
        ("signal", {"message": "x"}), ("signal", {"message": "x", "to": ["Nobody"]}), ("signal", {"message": "x", "to": ["a:b:c"]}),
        ("signal", {"message": "x", "to": ["all"]}), ("signal", {"message": "x", "to": [""]}), ("signal", {"message": " ", "broadcast": True}),
        ("signal", {"message": "x", "to": ["Bohr"], "broadcast": True}), ("signal", {"message": "x", "to": ["role:reviewer/docs"]}),
        ("signal", {"message": "x", "reply_to": "thread-abcdef"}), ("signal", {"message": "x", "reply_to": "sig-abcdef"}),
        ("signal", {"message": "x", "thread": "sig-abcdef", "intent": "AGREE"}), ("signal", {"text": "x"}),
        ("inbox", {"thread": "sig-abcdef"}), ("thread", {"id": "sig-abcdef"}), ("converged", {"id": "sig-abcdef"}),
        ("receipts", {"id": "sig-abcdef"}), ("roster", {"limit": 0}),
        ("delegate", {"text": "x"}), ("delegate", {"text": "x", "to": "Nobody", "wu": "WU-7"}), ("delegate", {"text": "x", "to": "Bohr"}),
        ("delegate", {"text": "x", "to": "Bohr", "role": "tester"}), ("delegate", {"text": "x", "to": "Bohr", "role": "implementer/test"}),
        ("delegate", {"text": "x", "to": "all", "wu": "WU-7"}), ("delegate", {"text": "x", "to": "role:nobody", "wu": "WU-7"}),
        ("delegate", {"text": "x", "to": "role:implementer/test", "wu": "WU-7", "brief": "../../etc/passwd"}),
        ("delegate", {"text": "x", "to": "role:implementer/test", "wu": "WU-7", "brief": "none.md"}),
        ("delegate", {"text": "x", "to": "role:implementer/test", "wu": "WU-7", "deadline": "soon"}),
        ("delegate", {"text": "x", "to": "role:implementer/test", "wu": "WU-7", "priority": "P9"}),
        ("delegate", {"text": "x", "to": "role:implementer/test", "wu": "WU-7", "within": id}),
        ("delegate", {"text": "x", "to": "role:implementer/test", "wu": "WU-7", "blocked_by": [id]}),
        ("delegate", {"text": "x", "to": "role:implementer/test", "scope": ["/etc"]}),
        ("task", {"action": "take", "id": id}), ("task", {"action": "show", "id": "x"}), ("task", {"action": "done", "id": id, "text": "x"}),
        ("task", {"action": "take"}), ("call", {"agent": "Nobody", "text": "x"}), ("call", {"agent": "", "text": "x"}),
        ("call", {"agent": "Bohr", "text": " "}), ("claim", {"paths": ["../outside"]}), ("claim", {"paths": ["a"], "lease": "40d"}),
        ("claim", {"paths": ["a"], "lease": "x"}), ("claim", {"paths": ["zzz/*.nothing"]}), ("claim", {"action": "release", "id": "claim-abcdef"}),
        ("claim", {"action": "release"}), ("handoff", {"to": "Nobody"}), ("handoff", {"to": ""}), ("handoff", {"to": "Bohr"}),
        ("overlap", {"branch": "none"}), ("sync", {"remotes": ["none"]}), ("sync", {}), ("gate", {}), ("gate", {"wu": "WU-99"}),
        ("mem", {"action": "create", "text": " "}), ("mem", {"action": "create", "text": "x", "type": "y"}), ("mem", {"action": "create", "text": "x", "wu": "a b"}),
        ("mem", {"action": "show", "id": "mem-abcdef"}), ("mem", {"action": "update", "id": "mem-abcdef", "text": "x"}), ("mem", {"action": "promote", "tag": "decision"}),
        ("mem", {"action": "delete", "id": ["mem-abcdef"]}), ("mem", {"action": "search", "text": " "}), ("mem", {"action": "ready", "type": "x"}), ("mem", {"action": "serch"}),
        ("mem", {"action": "context", "wu": "a b"}), ("mem", {"action": "checkpoint", "text": " "}),
    ]  # fmt: skip
    kept: set[str] = set()
    named: list[tuple[str, Any, str]] = []
    refused = 0

    async def talk() -> None:
        nonlocal refused
        async with serve(json=False) as agent, serve() as other:
            await other.call_tool("session", {"name": "Bohr"})
            for tool, given in wrong:
                found = await agent.call_tool(tool, given)
                if not found.is_error:
                    continue
                refused += 1
                commands = re.findall(r"`(gitmem [^`]*)`|next: (gitmem .*)", text(found))
                every = [re.sub(r" --as \S+", "", quoted or after) for quoted, after in commands]
                kept.update(" ".join(each.split()[:3]) for each in every)
                said = re.sub(
                    r"`gitmem [^`]*`|next: gitmem .*|`--[a-z-]+`( of the command line)?", "", text(found)
                )
                if re.search(r"(?<![\w-])--[a-z]|next: (signal|mem|delegate|call)\(\)", said):
                    named.append((tool, given, text(found)))

    within(talk)
    assert named == []
    assert kept == {
        "gitmem session end",
        "gitmem mem list",
        "gitmem log",
        "gitmem serve-agent",
    }
    assert refused > len(wrong) * 3 // 4
