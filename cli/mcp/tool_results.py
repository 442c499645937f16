"""Results of tools: the text that the command line prints, and the fields of its JSON.

Some clients show their model the fields and not the text. Therefore peers' texts are sanitized in both, and a result
that contains peers' texts says so in both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_types import CallToolResult, TextContent

from gitmem.agents import heartbeats
from gitmem.errors import GitmemError, UsageError
from gitmem.outcome import plain
from gitmem.signals.message_frame import LIMIT
from gitmem.signals.message_frame import PEERS as PEERS
from gitmem.text.sanitize import sanitize_for_model

from .. import failure
from ..render import output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitmem.outcome import Outcome

    from .mcp_session import CallEnvironment

REPHRASE = (
    "Call the tool again without that text or with different words: others can read records once they are pushed. "
    "If it is not a secret, ask your user: a person can record it at a terminal with `--allow-secret`."
)
NOTHING = "No memory nodes for this yet."


def of(
    outcome: Outcome,
    lines: Sequence[str],
    *,
    peers: bool = False,
    stamped: bool = False,
    text_next: Sequence[str] | None = None,
) -> CallToolResult:
    """Return an outcome as the result of a tool.

    Args:
        outcome: The outcome; its `next` commands get this server's options.
        lines: The text.
        peers: Whether it contains texts of peers.
        stamped: Whether `reply_line` in it is ours, and not a field of a record.
        text_next: The next commands of the text (default: those of the outcome).
    """
    commands = list(getattr(outcome, "next", ()))
    values = _safe(plain(outcome.as_json()), stamped)
    if "next" in values:
        values["next"] = [sanitize_for_model(each) for each in output.with_options(commands)]
    if peers:
        values = {"peers": PEERS, **values}
        lines = lines if stamped and LIMIT in lines[0] else [PEERS, *lines]  # an inbox says it itself
    return CallToolResult(
        content=[
            TextContent(
                type="text", text=output.with_next(lines, commands if text_next is None else text_next)
            )
        ],
        structured_content=values,
    )


def with_notice(at: CallEnvironment, answer: CallToolResult) -> CallToolResult:
    """Return an answer with the notice of the caller's unread signals, if any wait: a field, and a last line."""
    at.store()
    name = at.own_name
    if name is None or not heartbeats.is_flagged(at.repo.state, name):
        return answer
    from .. import unread_notice

    found = unread_notice.find(at, name)
    if found is not None:
        (block,) = answer.content
        assert isinstance(block, TextContent)
        block.text += f"\n{sanitize_for_model(found.line)}"
        if (
            answer.structured_content is not None
        ):  # fields with the notice alone would hide the text of an export
            answer.structured_content = {**answer.structured_content, "notice": found.as_json()}
    return answer


def of_error(error: Exception, tool: str) -> CallToolResult:
    """Return an error as a result, with the commands to run next.

    The details of an unexpected error go to standard error.
    """
    known = _known(error, tool)
    lines = [
        known.message,
        *([known.hint] if known.hint else []),
        *(f"  {each}" for each in known.suggestions),
    ]
    return CallToolResult(
        content=[
            TextContent(type="text", text=output.with_next([*map(sanitize_for_model, lines)], known.next))
        ],
        structured_content=_safe(failure.error_object(known), False),
        is_error=True,
    )


def sentences(error: Exception, where: str) -> str:
    """Return an error in one paragraph, for a client that shows only one message."""
    known = _known(error, where)
    shown = [
        known.message,
        known.hint,
        *(f"next: {each}" for each in output.with_options(known.next[: output.NEXT_MAX])),
    ]
    return " ".join(sanitize_for_model(each) for each in shown if each)


def _known(error: Exception, where: str) -> GitmemError:
    """Return our error for an exception; write the details of an unexpected one to standard error."""
    known = failure.own_error_of(error)
    if known is None:
        output.write_error(failure.details(error, ["mcp", where]))
        known = failure.unexpected(error, "The details are on the server's standard error.")
    if known.code == "secret":  # tools have no --allow-secret
        known.hint = REPHRASE
    if not known.next:
        known.next = ["gitmem roster" if isinstance(known, UsageError) else "gitmem doctor"]
    return known


def _safe(value: Any, stamped: bool) -> Any:
    """Return values with every text sanitized, except our own reply lines."""
    if isinstance(value, str):
        return sanitize_for_model(value, keep="\n\t")
    if isinstance(value, dict):
        return {
            sanitize_for_model(str(key)): item if stamped and key == "reply_line" else _safe(item, stamped)
            for key, item in value.items()
            if stamped or key != "reply_line"
        }
    if isinstance(value, (list, tuple)):
        return [_safe(each, stamped) for each in value]
    return value
