"""Add and find our entries in the text of a client's settings file.

There are two forms:

- `groups`: `{"hooks": {EVENT: [{"matcher": …, "hooks": [{"command": …}]}]}}`
- `flat`: `{"hooks": {EVENT: [{"command": …}]}}`

Only the command line identifies an entry of ours: clients drop unknown keys when they write their settings. Our entries
come last, so no other entry changes its position.
"""

from __future__ import annotations

import json

from .json_text import BOM, JsonNode, JsonSyntaxError, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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


class Put:
    """A text with our entries added.

    Attributes:
        text: The text.
        ranges: The added spans of `text`; without them it is the original.
        made: The added members: `hooks`, `hooks.EVENT`, and those of `extra`.
    """

    __slots__ = ("made", "ranges", "text")

    def __init__(self, text: str, ranges: list[list[int]], made: list[str]) -> None:
        self.text = text
        self.ranges = ranges
        self.made = made


def add_entries(
    text: str,
    entries: Sequence[HookEntry],
    *,
    comments: bool = False,
    extra: Sequence[tuple[str, object]] = (),
) -> Put:
    """Add entries to a text, which contains none of ours for the same events.

    Args:
        text: The file; an empty one becomes an object.
        extra: Further members that the root must have.

    Raises:
        JsonSyntaxError: The text is not JSON.
        FormatError: It is not of a client's format.
    """
    if not text.strip().strip(BOM):
        root: dict[str, object] = {**dict(extra), HOOKS: _by_event(entries)}
        whole = json.dumps(root, indent=2, ensure_ascii=False) + "\n"
        made = [*dict(extra), HOOKS, *(f"{HOOKS}.{name}" for name in _by_event(entries))]
        return Put(text + whole, [[len(text), len(text) + len(whole)]], made)
    node, hooks = read(text, comments=comments)
    style = _Style(node)
    wanted = _by_event(entries)
    made = [key for key, _ in extra if node.get(key) is None]
    edits: list[tuple[int, str]] = []
    members: list[tuple[str | None, object]] = [(key, value) for key, value in extra if key in made]
    if hooks is None:
        members.append((HOOKS, wanted))
        made += [HOOKS, *(f"{HOOKS}.{name}" for name in wanted)]
    if members:
        edits.append(style.append(node, members))
    if hooks is not None:
        new = [name for name in wanted if hooks.get(name) is None]
        made += [f"{HOOKS}.{name}" for name in new]
        if new:
            edits.append(style.append(hooks, [(name, wanted[name]) for name in new]))
        for name in wanted:
            event = hooks.get(name)
            if event is not None and event.kind != "array":
                raise FormatError(event, f'"{HOOKS}.{name}"', "array")
            if event is not None:
                edits.append(style.append(event, [(None, value) for value in wanted[name]]))
    return Put(*_apply(text, edits), made)


def _by_event(entries: Sequence[HookEntry]) -> dict[str, list[object]]:
    found: dict[str, list[object]] = {}
    for entry in entries:
        found.setdefault(entry.event, []).append(entry.value)
    return found


def _apply(text: str, edits: list[tuple[int, str]]) -> tuple[str, list[list[int]]]:
    """Insert texts at offsets; return the text and the inserted spans."""
    parts, ranges, at, length = [], [], 0, 0
    for where, new in sorted(edits):
        parts += [text[at:where], new]
        length += where - at
        ranges.append([length, length + len(new)])
        length += len(new)
        at = where
    return "".join([*parts, text[at:]]), ranges


class _Style:
    """The layout of a text: its line ends, its indentation, and whether it is on one line."""

    def __init__(self, root: JsonNode) -> None:
        self.text = text = root.text
        self.newline = "\r\n" if "\r\n" in text else "\n" if "\n" in text or "\r" not in text else "\r"
        self.unit, self.one_line = "  ", False
        if root.items:
            indent = self._own_line(root.whole(0)[0])
            self.one_line = indent is None
            outer = self._indent(root.start)
            if indent is not None and indent.startswith(outer) and indent != outer:
                self.unit = indent[len(outer) :]

    def append(self, node: JsonNode, items: Sequence[tuple[str | None, object]]) -> tuple[int, str]:
        """Return the offset and the text that add items at the end of an array or object."""
        outer = self._indent(node.start)
        indent: str | None = outer + self.unit
        if node.items:
            indent = self._own_line(node.whole(len(node.items) - 1)[0])
            if indent is None and self._own_line(node.whole(0)[0]) is not None:
                indent = self._own_line(node.whole(0)[0])
        elif self.one_line:
            indent = None
        between = ", " if indent is None else "," + self.newline + indent
        new = between.join(self._item(key, value, indent) for key, value in items)
        if node.items:
            return node.items[-1].end, between + new
        if indent is None:
            return node.start + 1, new
        inner = self.text[node.start + 1 : node.end - 1]
        closing = "" if "\n" in inner or "\r" in inner else self.newline + outer
        return node.start + 1, self.newline + indent + new + closing

    def _item(self, key: str | None, value: object, indent: str | None) -> str:
        if indent is None:
            text = json.dumps(value, ensure_ascii=False)
        else:
            text = json.dumps(value, indent=self.unit, ensure_ascii=False)
            text = text.replace("\n", self.newline + indent)
        return text if key is None else f"{json.dumps(key)}: {text}"

    def _own_line(self, at: int) -> str | None:
        """Return the white space before the first character of a line; None if another character precedes."""
        start = max(self.text.rfind("\n", 0, at), self.text.rfind("\r", 0, at)) + 1
        before = self.text[start:at]
        return before if start and not before.strip(" \t") else None

    def _indent(self, at: int) -> str:
        """Return the indentation of the line at an offset."""
        start = max(self.text.rfind("\n", 0, at), self.text.rfind("\r", 0, at)) + 1
        line = self.text[start:at].lstrip(BOM)
        return line[: len(line) - len(line.lstrip(" \t"))]
