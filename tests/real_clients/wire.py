"""What the clients and their models say to each other: four dialects, as far as one tool call and one text need.

A dialect is a function from a step and the request that asks for it to the type and the body of the answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Request = Mapping[str, Any]
Dialect = Callable[["Step", Request, int], tuple[str, bytes]]

JSON = "application/json"
EVENTS = "text/event-stream"


class Step:
    """What the model does next: it calls a tool, maybe several times at once, or it says something and the turn is over.

    Claude Code's and Codex's models can say something `before` a tool, too.
    """

    def __init__(
        self,
        text: str = "",
        *,
        tool: str = "",
        arguments: Mapping[str, Any] | None = None,
        times: int = 1,
        before: str = "",
    ) -> None:
        self.text = text
        self.before = before if tool else ""
        self.tool = tool
        self.arguments = arguments or {}
        self.times = times if tool else 0

    def at_once(self, times: int) -> Step:
        """The same call several times in one answer."""
        return Step(tool=self.tool, arguments=self.arguments, times=times, before=self.before)


def strings(value: object) -> Iterator[str]:
    """Every text of a request, however deep, with its line ends and quotes as the model reads them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)


def _events(*events: Mapping[str, Any] | str, named: bool = False) -> tuple[str, bytes]:
    rows = []
    for event in events:
        if named and not isinstance(event, str):
            rows.append(f"event: {event['type']}\n")
        rows.append(f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n")
    return EVENTS, "".join(rows).encode()


def responses(step: Step, request: Request, number: int) -> tuple[str, bytes]:
    """OpenAI Responses, always streamed."""
    called: dict[str, Any] = {
        "type": "function_call",
        "name": step.tool,
        "arguments": json.dumps(step.arguments),
    }
    if step.text:  # a tool whose argument is a text
        called = {"type": "custom_tool_call", "name": step.tool, "input": step.text}
    items: list[dict[str, Any]] = [
        {**called, "id": f"fc_{number}_{each}", "call_id": f"call_{number}_{each}"}
        for each in range(step.times)
    ]
    if step.before or not items:
        said = {"type": "output_text", "text": step.before or step.text, "annotations": []}
        items.insert(0, {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": [said]})
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    answer = {"id": f"resp_{number}"}
    shown = [
        {"type": f"response.output_item.{state}", "output_index": place, "item": item}
        for place, item in enumerate(items)
        for state in ("added", "done")
    ]
    return _events(
        {"type": "response.created", "response": answer},
        *shown,
        {"type": "response.completed", "response": {**answer, "output": items, "usage": usage}},
        named=True,
    )


def messages(step: Step, request: Request, number: int) -> tuple[str, bytes]:
    """Anthropic Messages."""
    end = "tool_use" if step.tool else "end_turn"
    blocks: list[dict[str, Any]] = [
        {"type": "tool_use", "id": f"toolu_{number}_{each}", "name": step.tool, "input": step.arguments}
        for each in range(step.times)
    ]
    if step.before or not blocks:
        blocks.insert(0, {"type": "text", "text": step.before or step.text})
    answer: dict[str, Any] = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": request.get("model"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    if not request.get("stream"):
        return JSON, json.dumps({**answer, "content": blocks, "stop_reason": end}).encode()
    shown: list[dict[str, Any]] = []
    for place, block in enumerate(blocks):
        empty: dict[str, Any] = {"text": ""}
        more = {"type": "text_delta", "text": block.get("text")}
        if block["type"] == "tool_use":
            empty = {"input": {}}
            more = {"type": "input_json_delta", "partial_json": json.dumps(step.arguments)}
        shown += [
            {"type": "content_block_start", "index": place, "content_block": {**block, **empty}},
            {"type": "content_block_delta", "index": place, "delta": more},
            {"type": "content_block_stop", "index": place},
        ]
    last = {"stop_reason": end, "stop_sequence": None}
    return _events(
        {"type": "message_start", "message": answer},
        *shown,
        {"type": "message_delta", "delta": last, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
        named=True,
    )


def contents(step: Step, request: Request, number: int) -> tuple[str, bytes]:
    """Gemini's generateContent, one chunk where it streams: its caller says which by the path."""
    call: dict[str, Any] = {"functionCall": {"name": step.tool, "args": step.arguments}}
    parts = [call] * step.times or [{"text": step.text}]
    return _events(
        {
            "candidates": [
                {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
            ],
            "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
        }
    )


def completions(step: Step, request: Request, number: int) -> tuple[str, bytes]:
    """OpenAI chat completions, as everything that calls itself compatible speaks it."""
    message: dict[str, Any] = {"role": "assistant", "content": step.text}
    if step.tool:
        call = {"name": step.tool, "arguments": json.dumps(step.arguments)}
        message["content"] = None
        message["tool_calls"] = [
            {"index": each, "id": f"call_{number}_{each}", "type": "function", "function": call}
            for each in range(step.times)
        ]
    end = "tool_calls" if step.tool else "stop"
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    answer = {"id": f"chat_{number}", "created": 1, "model": request.get("model")}
    if not request.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": end}
        return JSON, json.dumps(
            {**answer, "object": "chat.completion", "choices": [choice], "usage": usage}
        ).encode()
    chunk = {**answer, "object": "chat.completion.chunk"}
    return _events(
        {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": end}], "usage": usage},
        "[DONE]",
    )
