"""What a client says, whatever it says: a hook takes what it knows and lets the rest be."""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import pytest

from cli.hooks import hook_call


def read(monkeypatch: pytest.MonkeyPatch, data: bytes, client: str = "codex") -> hook_call.HookInput:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    return hook_call.read_call(client, "PostToolUse", "tool")


@pytest.mark.parametrize(
    "data",
    [b"", b" \n", b"{", b"null", b"[]", b'"text"', b"\xff\xfe\x00", b"{" * 100_000, b"[" * 100_000, b"1e999",
     b'{"session_id":5}', b'{"session_id":""}', b'{"session_id":null}', b'{"session_id":"a\\nb"}',
     b'{"session_id":"\\ud800"}', b'{"session_id":"' + b"x" * 500 + b'"}', b'{"session_id":["h-1"]}'],
)  # fmt: skip
def test_what_is_no_session_is_none(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    assert read(monkeypatch, data).session is None


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_every_encoding_of_json_is_read(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    data = json.dumps({"session_id": "h-1", "tool_response": "größer"}, ensure_ascii=False).encode(encoding)

    assert read(monkeypatch, data).session == "h-1"


def test_what_is_too_much_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A megabyte of a tool's output is usual; beyond the limit it is silence, not memory."""
    big = b'{"tool_response":"' + b"x" * 2_000_000 + b'","session_id":"h-1"}'
    assert read(monkeypatch, big).session == "h-1"

    big = big.replace(b"xx", b"x" * (hook_call.INPUT_MAX_BYTES // 1_000_000 + 1))
    assert read(monkeypatch, big).session is None


def test_a_terminal_or_nothing_at_all_is_no_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would wait for a person who types JSON."""

    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    typed = io.BytesIO(b'{"session_id":"h-1"}')
    for stdin in (Terminal(typed), None, io.StringIO("{}")):
        monkeypatch.setattr(sys, "stdin", stdin)
        assert hook_call.read_call("codex", "PostToolUse", "tool").session is None


@pytest.mark.parametrize(
    ("client", "said", "again"),
    [("codex", {"stop_hook_active": True}, True), ("codex", {"stop_hook_active": "true"}, False),
     ("cursor", {"loop_count": 2}, True), ("cursor", {"loop_count": 0}, False), ("codex", {}, False)],
)  # fmt: skip
def test_whether_a_hook_had_it_go_on(client: str, said: dict[str, Any], again: bool) -> None:
    assert hook_call.HookInput(client, "Stop", "stop", said).again is again


@pytest.mark.parametrize(
    ("client", "said", "inside"),
    [("claude-code", {"agent_id": "a"}, True), ("claude-code", {"agent_type": "reviewer"}, False),
     ("cline", {"agent_id": "a", "parent_agent_id": None}, False), ("cline", {"parent_agent_id": "b"}, True),
     ("copilot", {"agentId": "a"}, True)],
)  # fmt: skip
def test_who_is_a_helper(client: str, said: dict[str, Any], inside: bool) -> None:
    assert hook_call.HookInput(client, "PostToolUse", "tool", said).in_subagent is inside
