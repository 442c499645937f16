"""Results of tools: the text of the command line, or with `gitmem mcp --json` the fields of its JSON; and errors in the words of tools."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING, Any

from mcp_types import CallToolResult, TextContent

from gitmem.agents import heartbeats
from gitmem.errors import GitmemError, UsageError
from gitmem.outcome import plain
from gitmem.signals.message_frame import LIMIT
from gitmem.signals.message_frame import PEERS as PEERS
from gitmem.text.sanitize import sanitize_for_model

from .. import failure, parser_table
from ..parser import CommandLineError, Parsed, claims_first, parse
from ..render import output
from . import tools

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from gitmem.outcome import Outcome

    from ..environment import Environment


ELLIPSIS = "…"
WORDS_MAX = 2  # missing words of a command that only names what to call
# The tool and the action of each function of a command.
CALLS = {
    parser_table.COMMANDS[path].split()[0]: (name, tools.SAME.get(path, path))
    for name, tool in tools.TOOLS.items()
    for path in (
        *tool.commands.values(),
        *(each for each, other in tools.SAME.items() if other in tool.commands.values()),
    )
}
_CODE = re.compile(r"`([^`\n]*)`")
_OPTION = re.compile(r"(?<![\w`-])--[a-z]+(?:-[a-z]+)*(?![\w=-])")
_OPTIONS = {
    word.partition("=")[0]
    for declared in parser_table.COMMANDS.values()
    for word in declared.split()
    if word.startswith("--")
}
_ELSEWHERE = ("signal", "session")  # the tools whose parameters errors of others name


def translate(error: GitmemError, tool: str, served: Collection[str]) -> None:
    """Put an error's message, hint and next commands into the words of a tool."""
    error.message, error.hint = (_prose(text, tool, served) for text in (error.message, error.hint))
    error.next = [call_of(each, served) or each for each in error.next if not each.endswith(" --help")]


def call_of(command: str, served: Collection[str], missing: int = 0) -> str | None:
    """Return the call of a tool that does what a command does, such as `task(action="take", id="task-…")`; None if no tool does.

    Args:
        served: The tools that the client has.
        missing: How many words at its end may be missing.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if words[:1] != ["gitmem"]:
        return None
    if words[-1] == "--help":
        words, missing = words[:-1], WORDS_MAX
    for count in range(missing + 1):
        try:
            parsed = parse(claims_first([*words[1:], *[ELLIPSIS] * count]))
        except CommandLineError:
            continue
        if isinstance(parsed, Parsed):
            return _call(parsed.function, parsed.values, served)
    return None


def _call(function: str, values: Mapping[str, Any], served: Collection[str]) -> str | None:
    tool, path = CALLS.get(function, ("", ""))
    if tool not in served or not values.keys() <= tools.parameters_of(path).keys():
        return None
    (action,) = (each for each, of in tools.TOOLS[tool].commands.items() if of == path)
    named = {"action": action} if action != tools.action_for(tool, values) else {}
    order = tools.parameters(tool)
    return call(tool, {**named, **{name: values[name] for name in order if name in values}})


def call(tool: str, given: Mapping[str, Any]) -> str:
    """Return a call of a tool as text."""
    return f"{tool}({', '.join(f'{name}={json.dumps(value, ensure_ascii=False)}' for name, value in given.items())})"


def _prose(text: str, tool: str, served: Collection[str]) -> str:
    """Return a text with calls for commands in backquotes, and parameters for options; what no tool does is said to be of a shell."""
    parts = _CODE.split(text)
    for place, part in enumerate(parts):
        if place % 2 == 0:
            parts[place] = _OPTION.sub(lambda found: _described(found[0], tool), part)
        elif part.startswith(("gitmem ", "export ")):
            call = call_of(part, served, WORDS_MAX)
            parts[place] = f"`{call}`" if call else f"`{part}` in a shell"
        else:
            shown = _OPTION.sub(lambda found: _parameter(found[0], tool)[1] or found[0], part)
            parts[place] = f"`{shown}`"
    return "".join(parts)


def _described(option: str, tool: str) -> str:
    """Return an option in the words of a tool."""
    of, name = _parameter(option, tool)
    if name:
        return f"`{name}`{'' if of == tool else f' of {of}'}"
    return f"`{option}` of the command line" if option in _OPTIONS else option


def _parameter(option: str, tool: str) -> tuple[str, str]:
    """Return the parameter that an option is in a tool, else in one of the tools that errors of others name; "" if in none."""
    for each in (tool, *_ELSEWHERE):
        known = tools.parameters(each) if each in tools.TOOLS else {}
        found = next((name for name, one in known.items() if one.flag == option), None)
        if found is not None:
            return each, found
    return "", ""


REPHRASE = (
    "Call the tool again without that text or with different words: others can read records once they are pushed. "
    "If it is not a secret, ask your user: a person can record it at a terminal with GITMEM_ALLOW_SECRET=1 before the command."
)
NOTHING = "No memory nodes for this yet."
IN_FIELDS = (
    "The answer is in structuredContent. If you see only this line, start `gitmem mcp` without --json."
)
# The limits of every answer but those with a limit of their own: peers can make any list and any text long.
TEXT_BYTES = 16 * 1024
ENTRIES = 200  # of a list in the fields
FIELDS_BYTES = 256 * 1024  # of all fields, by texts of at most one of these parts of `TEXT_BYTES`
FIELD_PARTS = (1, 4, 16, 64, 256)
FURTHER = ("|", " ", "\t")  # begins a line that is not the first of its entry: quoted or indented


def of(
    outcome: Outcome,
    lines: Sequence[str],
    *,
    peers: bool = False,
    stamped: bool = False,
    is_framed: bool = False,
    text_next: Sequence[str] | None = None,
    whole: str = "",
    most: int | None = TEXT_BYTES,
) -> CallToolResult:
    """Return an outcome as the result of a tool, with its text and its fields; see `in_one_form`.

    Args:
        outcome: The outcome; its `next` commands get this server's options.
        lines: The text.
        peers: Whether it contains texts of peers.
        stamped: Whether `reply_line` in it is ours, and not a field of a record.
        is_framed: Whether the lines say themselves that they are texts of peers.
        text_next: The next commands of the text (default: those of the outcome).
        whole: The command that shows everything, if the answer is cut.
        most: Maximum bytes of the text; None if the operation has limited it.
    """
    commands = list(getattr(outcome, "next", ()))
    values, not_shown = _fields(outcome, most, stamped)
    lines, is_cut = (lines, False) if most is None else _cut_lines(lines, most)
    if not_shown:
        values["not_shown"] = not_shown
    if whole and (is_cut or not_shown):
        commands = [whole, *(each for each in commands if each != whole)]
    if "next" in values:
        values["next"] = [sanitize_for_model(each) for each in output.with_options(commands)]
    if peers:
        values = {"peers": PEERS, **values}
        is_framed = is_framed or (stamped and LIMIT in lines[0])  # an inbox says it itself
        lines = lines if is_framed else [PEERS, *lines]
    return CallToolResult(
        content=[
            TextContent(
                type="text", text=output.with_next(lines, commands if text_next is None else text_next)
            )
        ],
        structured_content=values,
    )


def with_addresses(at: Environment, answer: CallToolResult) -> CallToolResult:
    """Return an answer with the addresses in it as they are shown, while the call's store, which knows them, is open."""
    output.set_addresses(at.short_address)  # other calls set theirs
    for block in answer.content:
        if isinstance(block, TextContent):
            block.text = output.plain(block.text)
    if answer.structured_content is not None:
        answer.structured_content = output.plain_values(answer.structured_content)
    return answer


def in_one_form(result: CallToolResult, *, fields: bool) -> CallToolResult:
    """Return a result with its text alone, or its fields alone. An error keeps both: some clients show only its text.

    Args:
        result: The result of a tool.
        fields: Whether the client asked for fields.
    """
    if not fields:
        result.structured_content = None
    elif result.structured_content is not None and not result.is_error:
        result.content = [TextContent(type="text", text=IN_FIELDS)]
    return result


def _cut_lines(lines: Sequence[str], most: int) -> tuple[Sequence[str], bool]:
    """Return lines of at most this many bytes, and whether some were left out.

    They are left out in the middle: headings are at the beginning, the latest entries and warnings at the end. The end
    begins with a whole entry: further lines of one, below its omitted head, would seem to be another writer's.
    """
    every = "\n".join(lines).split("\n")
    if sum(map(_size, every)) <= most:
        return lines, False
    every = [_beginning(line, most // 4) for line in every]
    sizes = [*map(_size, every)]
    first, last, left = 0, len(every), most
    while first < last and (size := sizes[first]) <= left - most // 3:
        first, left = first + 1, left - size
    while last > first and (size := sizes[last - 1]) <= left:
        last, left = last - 1, left - size
    while last < len(every) and (not every[last] or every[last].startswith(FURTHER)):
        last += 1
    return [*every[:first], f"… {last - first} lines not shown …", *every[last:]], True


def _size(line: str) -> int:
    return len(line.encode("utf-8", "surrogatepass")) + 1


def _beginning(text: str, most: int) -> str:
    """Return the beginning of a text, and how many bytes are missing."""
    content = text.encode("utf-8", "surrogatepass")
    if len(content) <= most:
        return text
    return f"{content[:most].decode('utf-8', 'ignore')} … {len(content) - most:,} bytes not shown"


def _fields(outcome: Outcome, most: int | None, stamped: bool) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the fields of an outcome, and how many entries of which lists were left out; see `_cut`.

    The more the texts have together, the shorter each gets: a list of the longest would be megabytes.
    """
    values = plain(outcome.as_json())
    if most is None:
        return _safe(values, stamped), {}
    for part in FIELD_PARTS:
        not_shown: dict[str, int] = {}
        found = _safe(_cut(values, most // part, not_shown, ""), stamped)
        if len(json.dumps(found)) <= FIELDS_BYTES:
            break
    return found, not_shown


def _cut(value: Any, most: int, not_shown: dict[str, int], name: str) -> Any:
    """Return values with no list above `ENTRIES` and no text above `most` bytes; count left out entries by name."""
    if isinstance(value, str):
        return _beginning(value, most)
    if isinstance(value, (dict, list, tuple)) and len(value) > ENTRIES:
        not_shown[name] = not_shown.get(name, 0) + len(value) - ENTRIES
        value = dict([*value.items()][:ENTRIES]) if isinstance(value, dict) else value[:ENTRIES]
    if isinstance(value, dict):
        return {key: _cut(item, most, not_shown, str(key)) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_cut(each, most, not_shown, name) for each in value]
    return value


def with_notice(at: Environment, answer: CallToolResult) -> CallToolResult:
    """Return an answer with the notice of the caller's unread signals, if any wait: a field, and a last line."""
    at.store()
    name = at.own_name
    if name is None or not heartbeats.is_flagged(at.repo.state, name):
        return answer
    from .. import environment

    found = environment.unread_notice(at, name)
    if found is not None:
        _add_line(answer, sanitize_for_model(found.line), "notice", found.as_json())
    return answer


def with_offer(answer: CallToolResult, offer: str) -> CallToolResult:
    """Return an answer with the offer of an identity, if there is one: a field, and a last line."""
    if offer:
        offer = _prose(offer, "session", tools.DEFAULT)
        _add_line(answer, offer, "offer", offer)
    return answer


def _add_line(answer: CallToolResult, line: str, name: str, value: object) -> None:
    (block,) = answer.content
    assert isinstance(block, TextContent)
    block.text += f"\n{line}"
    if answer.structured_content is not None:  # this field alone would hide the text of an export
        answer.structured_content = {**answer.structured_content, name: value}


def of_error(error: Exception, tool: str, served: Collection[str]) -> CallToolResult:
    """Return an error as a result, with the commands to run next.

    The details of an unexpected error go to standard error.

    Args:
        served: The tools that the client has.
    """
    known = failure.own_error_of(error)
    if known is None:
        output.write_error(failure.details(error, ["mcp", tool]))
        known = failure.unexpected(error, "The details are on the server's standard error.")
    if known.code == "secret":  # tools cannot allow one
        known.hint = REPHRASE
    if not known.next and not isinstance(known, UsageError):
        known.next = ["gitmem doctor"]
    failure.without_remote(known)
    translate(known, tool, served)
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
