"""Add, find and remove our entries in the text of a client's settings file.

There are two forms:

- `groups`: `{"hooks": {EVENT: [{"matcher": …, "hooks": [{"command": …}]}]}}`
- `flat`: `{"hooks": {EVENT: [{"command": …}]}}`

Only the command line identifies an entry of ours: clients drop unknown keys when they write their settings. Our entries
come last, so no other entry changes its position.
"""

from __future__ import annotations

import json

from .install_record import InstallRecord
from .json_text import BOM, JsonNode, JsonSyntaxError, Style, cuts, parse, splice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

SCRIPT = "signal-received.sh"
END = " gitmem"  # the last word of each of our command lines
COMMANDS = ("command", "bash")  # the keys of a command line in clients' settings
HOOKS = "hooks"


class HookEntry:
    """An entry that a file should contain.

    Attributes:
        event: The client's own name of it.
        value: The group or, in the flat form, the handler.
        command: Its command line.
    """

    __slots__ = ("command", "event", "value")

    def __init__(self, event: str, value: dict[str, object], command: str) -> None:
        self.event = event
        self.value = value
        self.command = command


class Ours:
    """An entry of ours in a file.

    Attributes:
        group, handler: Its position: the index in the event's array, and in the group's.
    """

    __slots__ = ("command", "event", "group", "handler")

    def __init__(self, event: str, command: str, group: int, handler: int) -> None:
        self.event = event
        self.command = command
        self.group = group
        self.handler = handler


class FormatError(ValueError):
    """A part of the file has another type than the client's format; see JsonSyntaxError."""

    def __init__(self, node: JsonNode, where: str, wanted: str) -> None:
        place = JsonSyntaxError("", node.text, node.start)
        self.line, self.column = place.line, place.column
        self.what = f"{where} is no {wanted}"
        super().__init__(self.what)


def is_ours(command: str | None) -> bool:
    """Return whether this or an earlier gitmem has written a command line."""
    return command is not None and command.endswith(END) and SCRIPT in command


def read(text: str, *, comments: bool) -> tuple[JsonNode, JsonNode | None]:
    """Return the root of a file, and its hooks.

    Raises:
        JsonSyntaxError: The text is not JSON.
        FormatError: It is not of a client's format.
    """
    root = parse(text, comments=comments)
    if root.kind != "object":
        raise FormatError(root, "the whole", "object")
    hooks = root.get(HOOKS)
    if hooks is not None and hooks.kind != "object":
        raise FormatError(hooks, f'"{HOOKS}"', "object")
    return root, hooks


def found(hooks: JsonNode | None, *, groups: bool) -> list[Ours]:
    """Return our entries, in the order of the file."""
    return [
        Ours(name, command, at, inner)
        for name, event in events(hooks)
        for at, inner, command in handlers(event, groups=groups)
        if command is not None and is_ours(command)
    ]


def events(hooks: JsonNode | None) -> Iterator[tuple[str, JsonNode]]:
    """Yield the events that have an array, in the order of the file."""
    if hooks is not None:
        yield from (
            (name, item)
            for name, item in zip(hooks.names(), hooks.items, strict=True)
            if item.kind == "array"
        )


def handlers(event: JsonNode, *, groups: bool) -> Iterator[tuple[int, int, str | None]]:
    """Yield the handlers of an event: index of the group, index in the group, command line."""
    for at, item in enumerate(event.items):
        if item.kind != "object":
            continue
        inner = item.get(HOOKS) if groups else None
        if inner is not None and inner.kind == "array":
            for index, handler in enumerate(inner.items):
                yield at, index, _command(handler)
        else:
            yield at, 0, _command(item)


def _command(handler: JsonNode) -> str | None:
    if handler.kind != "object":
        return None
    lines = [handler.get(key) for key in COMMANDS]
    return next((node.string() for node in lines if node is not None and node.kind == "string"), None)


def add_entries(
    text: str | None,
    entries: Sequence[HookEntry],
    *,
    comments: bool = False,
    extra: Sequence[tuple[str, object]] = (),
) -> tuple[str, InstallRecord]:
    """Return a text with entries added, and the record to remove them by.

    Args:
        text: The file, which contains none of ours for the same events; None for no file. An empty one becomes an
            object.
        extra: Further members that the root must have.

    Raises:
        JsonSyntaxError: The text is not JSON.
        FormatError: It is not of a client's format.
    """
    wanted: dict[str, list[object]] = {}
    for entry in entries:
        wanted.setdefault(entry.event, []).append(entry.value)
    of_events = [f"{HOOKS}.{name}" for name in wanted]
    if text is None or not text.strip().strip(BOM):
        whole = _layout({**dict(extra), HOOKS: wanted})
        record = InstallRecord(is_new=text is None, inserted=[whole], made=[HOOKS, *of_events])
        return (text or "") + whole, record
    node, hooks = read(text, comments=comments)
    style = Style(node)
    members: list[tuple[str | None, object]] = [pair for pair in extra if node.get(pair[0]) is None]
    made: list[str] = []
    edits: list[tuple[int, str]] = []
    if hooks is None:
        members.append((HOOKS, wanted))
        made = [HOOKS, *of_events]
    else:
        new = [name for name in wanted if hooks.get(name) is None]
        made = [f"{HOOKS}.{name}" for name in new]
        edits += style.append(hooks, [(name, wanted[name]) for name in new])
        for name in wanted:
            event = hooks.get(name)
            if event is not None and event.kind != "array":
                raise FormatError(event, f'"{HOOKS}.{name}"', "array")
            if event is not None:
                edits += style.append(event, [(None, value) for value in wanted[name]])
    edits += style.append(node, members)
    edits.sort()
    record = InstallRecord(inserted=[part for _, part in edits], made=made)
    return splice(text, [(at, at, part) for at, part in edits]), record


def remove_entries(
    text: str,
    record: InstallRecord | None,
    order: Sequence[str],
    *,
    groups: bool,
    comments: bool = False,
    extra: Sequence[tuple[str, object]] = (),
) -> str | None:
    """Return a text without our entries, or None if install created the file and nothing else is in it.

    Where the parts that install inserted are still there, exactly they go. Otherwise our entries go, with their commas
    and the containers that install made, as far as these are empty.

    Args:
        record: What install noted, or None, as in another clone.
        order: The events in the order in which install adds them.
    """
    if record is not None:
        cut = _without_parts(text, record.inserted, groups=groups, comments=comments)
        if cut is not None:
            return None if record.is_new and not cut else cut
    root, hooks = read(text, comments=comments)
    assert hooks is not None
    made = record.made if record is not None else _made(root, hooks, order, groups)
    rest = splice(text, _cuts_of_ours(root, hooks, made, groups, [key for key, _ in extra]))
    left, _ = read(rest, comments=comments)
    is_new = record.is_new if record is not None else _layout_of(text) == text
    return None if is_new and set(left.names()) <= set(dict(extra)) else rest


def _without_parts(text: str, parts: Sequence[str], *, groups: bool, comments: bool) -> str | None:
    """Return a text without the parts that install inserted; None if they are not there, or not all of ours."""
    for part in parts:
        if text.count(part) != 1:
            return None
        text = text.replace(part, "")
    if not text.strip().strip(BOM):
        return text
    try:
        return None if found(read(text, comments=comments)[1], groups=groups) else text
    except ValueError:
        return None


def _made(root: JsonNode, hooks: JsonNode, order: Sequence[str], groups: bool) -> list[str]:
    """Return the containers that install has probably made: it puts them behind all others, in its order."""
    made: list[str] = []
    before = len(order)
    for name, event in reversed(list(zip(hooks.names(), hooks.items, strict=True))):
        place = order.index(name) if name in order else before - 1
        if place >= before or not event.items or len(_own_items(event, groups, [])) < len(event.items):
            return made
        made.append(f"{HOOKS}.{name}")
        before = place
    return [*made, HOOKS] if root.names()[-1] == HOOKS else made


def _cuts_of_ours(
    root: JsonNode, hooks: JsonNode, made: Container[str], groups: bool, extra: Sequence[str]
) -> list[tuple[int, int, str]]:
    """Return the edits that remove our entries, and the containers in `made` that are empty afterwards.

    Args:
        extra: Members of the root that go with the hooks if nothing else is left.
    """
    edits: list[tuple[int, int, str]] = []
    emptied = []
    for index, (name, event) in enumerate(zip(hooks.names(), hooks.items, strict=True)):
        gone = _own_items(event, groups, edits) if event.kind == "array" else []
        if gone and len(gone) == len(event.items) and f"{HOOKS}.{name}" in made:
            emptied.append(index)
        else:
            edits += cuts(event, gone)
    if not emptied or len(emptied) < len(hooks.items) or HOOKS not in made:
        return edits + cuts(hooks, emptied)
    names = root.names()
    last = len(names) - 1 - names[::-1].index(HOOKS)
    others = [index for index, name in enumerate(names) if index != last and name not in extra]
    return edits + cuts(root, [last] if others else list(range(len(names))))


def _own_items(event: JsonNode, groups: bool, edits: list[tuple[int, int, str]]) -> list[int]:
    """Return the items of an event that are only ours; add our handlers in others' groups to `edits`."""
    every: dict[int, list[bool]] = {}
    for group, _, command in handlers(event, groups=groups):
        every.setdefault(group, []).append(is_ours(command))
    for group, ours in every.items():
        inner = event.items[group].get(HOOKS)
        if inner is not None and any(ours) and not all(ours):
            edits += cuts(inner, [index for index, mine in enumerate(ours) if mine])
    return [group for group, ours in every.items() if all(ours)]


def _layout(value: object) -> str:
    """Return a value as in a file that install creates."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _layout_of(text: str) -> str:
    """Return a text's value as in a file that install creates; "" if it has comments or is nested too deeply."""
    try:
        return _layout(json.loads(text))
    except (ValueError, RecursionError):
        return ""
