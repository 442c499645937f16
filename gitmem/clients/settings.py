"""A client's settings file, with our entries behind those of others; its JSON is changed in place.

There are two forms:

- `groups`: `{"hooks": {EVENT: [{"matcher": …, "hooks": [{"command": …}]}]}}`
- `flat`: `{"hooks": {EVENT: [{"command": …}]}}`

Only the command line identifies an entry of ours: clients drop unknown keys when they write their settings. Our entries
come last, so no other entry changes its position.

Edits of a JSON text that change only the necessary part: values with their positions, additions and removals.

The standard library decides what is valid. It gives no positions, and writing its values again would lose indentation,
line ends and comments; so the tokens of a valid text are read once more.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from ..errors import UsageError
from .clients import END, GROUPS, SCRIPT, START
from .managed_files import InstallRecord, ManagedFile, read_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from .clients import Client, HookEntry


# Strings and comments without an end reach to the end of the text: each pattern passes over a text once.
_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)'
_TOKEN = re.compile(rf'{_STRING}|[{{}}\[\],:]|[^ \t\r\n{{}}\[\],:"]+', re.DOTALL)
_COMMENT = re.compile(rf"{_STRING}|//[^\r\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMA = re.compile(rf"{_STRING}|[\[{{][ \t\r\n]*,|,(?=[ \t\r\n]*[}}\]])", re.DOTALL)
_KINDS = {"{": "object", "[": "array", '"': "string", "t": "word", "f": "word", "n": "word"}
BOM = "\ufeff"


class JsonNode:
    """A value in a text.

    Attributes:
        text, plain: The whole text, and the same with spaces for comments.
        kind: `object`, `array`, `string`, `number` or `word`.
        start, end: Its span.
        items: The values in an array or object, in order.
        keys: The spans of the keys of an object, one for each of `items`.
    """

    def __init__(self, text: str, plain: str, kind: str, span: tuple[int, int]) -> None:
        self.text = text
        self.plain = plain
        self.kind = kind
        self.start, self.end = span
        self.items: list[JsonNode] = []
        self.keys: list[tuple[int, int]] = []

    def names(self) -> list[str]:
        """Return the keys of an object."""
        return [json.loads(self.text[start:end]) for start, end in self.keys]

    def get(self, name: str) -> JsonNode | None:
        """Return the value of a key, or None. Of a repeated key the last value counts, as for every reader."""
        if self.kind != "object":
            return None
        found = [item for key, item in zip(self.names(), self.items, strict=True) if key == name]
        return found[-1] if found else None

    def string(self) -> str | None:
        """Return the text of a string, or None for any other kind."""
        return str(json.loads(self.text[self.start : self.end])) if self.kind == "string" else None

    def whole(self, index: int) -> tuple[int, int]:
        """Return the span of an item with its key."""
        return (self.keys[index] if self.keys else (self.items[index].start, 0))[0], self.items[index].end


def parse_json(text: str, *, comments: bool = False) -> JsonNode:
    """Return the root value of a text.

    Args:
        comments: Whether to accept comments and a comma after the last item.

    Raises:
        json.JSONDecodeError: The text is not valid JSON, or nested too deeply.
    """
    plain = " " + text[1:] if text.startswith(BOM) else text
    plain = _COMMENT.sub(_blank, plain) if comments else plain
    constants: list[str] = []
    try:
        json.loads(
            _LAST_COMMA.sub(_blank, plain) if comments else plain,
            parse_int=str,
            parse_float=str,
            parse_constant=constants.append,
        )
    except json.JSONDecodeError as error:
        is_comment = plain.startswith(("//", "/*"), error.pos)
        unclosed = "unterminated comment" if comments else "a comment, which this client does not support"
        what = unclosed if is_comment else error.msg[:1].lower() + error.msg[1:]
        raise json.JSONDecodeError(what, text, error.pos) from None
    except RecursionError:
        raise json.JSONDecodeError("it is nested too deeply", text, 0) from None
    for token in _TOKEN.finditer(plain) if constants else ():
        if token[0] == constants[0]:
            raise json.JSONDecodeError(f"{token[0]} is not a value", text, token.start())
    return _nodes(text, plain)


def _nodes(text: str, plain: str) -> JsonNode:
    """Return the root of a valid text."""
    opened = [JsonNode(text, plain, "array", (0, 0))]
    for token in _TOKEN.finditer(plain):
        inside, char = opened[-1], token[0][0]
        if char in "}]":
            inside.end = token.end()
            opened.pop()
        elif char in ",:":
            continue
        elif inside.kind == "object" and len(inside.keys) == len(inside.items):
            inside.keys.append(token.span())
        else:
            node = JsonNode(text, plain, _KINDS.get(char, "number"), token.span())
            inside.items.append(node)
            if char in "{[":
                opened.append(node)
    return opened[0].items[0]


def _blank(found: re.Match[str]) -> str:
    """Return spaces for a comment or a comma; other matches stay, and so does unterminated comment."""
    stays = found[0][0] in '"{[' or (found[0].startswith("/*") and not found[0].endswith("*/", 2))
    return found[0] if stays else " " * len(found[0])


def splice(text: str, edits: Sequence[tuple[int, int, str]]) -> str:
    """Return a text with spans replaced; a span inside another one is part of that."""
    parts, at = [], 0
    for start, end, new in sorted(edits):
        parts += [text[at:start], new]
        at = max(at, end)
    return "".join([*parts, text[at:]])


def cuts(node: JsonNode, gone: Sequence[int]) -> list[tuple[int, int, str]]:
    """Return the edits that remove items with their commas; of others' comments between items none goes."""
    found: list[tuple[int, int, str]] = []
    taken = set(gone)
    for first in gone:
        if first - 1 in taken:
            continue
        last = first
        while last + 1 in taken:
            last += 1
        start, end = node.whole(first)[0], node.items[last].end
        from_, to, comma = node.start + 1, node.end - 1, node.plain.find(",", end, node.end)
        if first:
            from_, to, comma = (
                node.items[first - 1].end,
                end,
                node.plain.index(",", node.items[first - 1].end),
            )
        elif last + 1 < len(node.items):
            from_, to = start, node.whole(last + 1)[0]
        if node.text[from_:start] + node.text[end:to] == node.plain[from_:start] + node.plain[end:to]:
            found.append((from_, to, ""))
        else:
            found += [(start, end, ""), *([(comma, comma + 1, "")] if comma >= 0 else [])]
    return found


class Style:
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

    def append(self, node: JsonNode, items: Sequence[tuple[str | None, object]]) -> list[tuple[int, str]]:
        """Return the offset and the text that add items at the end of an array or object; nothing without items."""
        if not items:
            return []
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
            return [(node.items[-1].end, between + new)]
        if indent is None:
            return [(node.start + 1, new)]
        inner = self.text[node.start + 1 : node.end - 1]
        closing = "" if "\n" in inner or "\r" in inner else self.newline + outer
        return [(node.start + 1, self.newline + indent + new + closing)]

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


COMMANDS = ("command", "bash")  # the keys of a command line in clients' settings
HOOKS = "hooks"


class OwnEntry(NamedTuple):
    """An entry of ours in a file.

    Attributes:
        group, handler: Its position: the index in the event's array, and in the group's.
    """

    event: str
    command: str
    group: int
    handler: int


def is_ours(command: str | None) -> bool:
    """Return whether a gitmem has written a command line, perhaps with a change by somebody else since."""
    return command is not None and command.startswith(START) and SCRIPT in command and END in command


class SettingsFile(ManagedFile):
    """A client's settings.

    Args:
        wanted: Returns the entries of this version.
        record_path: The record of an earlier installation.

    Attributes:
        record: The record of the last `with_ours`.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        wanted: Callable[[], Sequence[HookEntry]],
        record_path: str,
        *,
        top: str | None = None,
    ) -> None:
        super().__init__(path, top=top)
        self.client = client
        self.record_path = record_path
        self.record = InstallRecord()
        self._wanted = wanted

    def ours(self) -> list[OwnEntry]:
        """Return our entries, in the order of the file.

        Raises:
            UsageError: The settings can't be parsed.
        """
        return self._ours(self.read())

    def has_ours(self, content: bytes | None) -> bool:
        """Return whether there are entries of ours."""
        return bool(self._ours(content))

    def is_current(self, content: bytes) -> bool:
        """Return whether our entries are those of this version and scope."""
        return {each[:2] for each in self._ours(content)} == {each[:2] for each in self._wanted()}

    def with_ours(self, content: bytes | None) -> bytes:
        """Return the settings with our entries behind all others, and keep the record."""
        before = self.without_ours(content) if content is not None and self.has_ours(content) else content
        text, self.record = self.add(None if before is None else self._text(before), self._wanted())
        return text.encode()

    def without_ours(self, content: bytes) -> bytes | None:
        """Return the settings without our entries; None for no file."""
        rest = self.remove_from(self._text(content), read_record(self.record_path))
        return None if rest is None else rest.encode()

    def check(self) -> None:
        """Raise the UsageError that install would raise for these settings."""
        text = self._text(self.read() or b"")
        _, hooks = self._parse(text) if text.strip().strip(BOM) else (None, None)
        for name, _ in self.client.events:
            self._array(hooks, name)

    def add(self, text: str | None, entries: Sequence[HookEntry]) -> tuple[str, InstallRecord]:
        """Return a text with entries added, and the record to remove them by.

        Args:
            text: The file, without entries of ours; None for no file. An empty one becomes an object.

        Raises:
            UsageError: `broken-settings`.
        """
        wanted: dict[str, list[object]] = {}
        for entry in entries:
            wanted.setdefault(entry.event, []).append(entry.value)
        made = [HOOKS, *(f"{HOOKS}.{name}" for name in wanted)]
        if text is None or not text.strip().strip(BOM):
            whole = _layout({**dict(self.client.extra), HOOKS: wanted})
            return InstallRecord(text is None, made=made).insert(text or "", [(len(text or ""), whole)])
        root, hooks = self._parse(text)
        style = Style(root)
        members: list[tuple[str | None, object]] = [
            pair for pair in self.client.extra if root.get(pair[0]) is None
        ]
        edits: list[tuple[int, str]] = []
        if hooks is None:
            members.append((HOOKS, wanted))
        else:
            there = {name: event for name in wanted if (event := self._array(hooks, name)) is not None}
            made = [f"{HOOKS}.{name}" for name in wanted if name not in there]
            edits += style.append(hooks, [(name, wanted[name]) for name in wanted if name not in there])
            for name, event in there.items():
                edits += style.append(event, [(None, value) for value in wanted[name]])
        return InstallRecord(made=made).insert(text, sorted([*edits, *style.append(root, members)]))

    def remove_from(self, text: str, record: InstallRecord | None) -> str | None:
        """Return a text without our entries, or None if install created the file and nothing else is in it.

        Where the parts that install inserted are still there, exactly they go. Otherwise our entries go, with their
        commas and the containers that install made, as far as these are empty.

        Args:
            record: What install noted, or None, as in another clone.
        """
        if record is not None and not record.after:
            record = None  # of an install that left the settings as they were
        if record is not None:
            cut = record.cut(text)
            if cut is not None or (cut := self._without(text, record.inserted)) is not None:
                return None if record.is_new and not cut else cut
        root, hooks = self._parse(text)
        assert hooks is not None
        made = record.made if record is not None else self._made(root, hooks)
        rest = splice(text, self._edits(root, hooks, made))
        is_new = record.is_new if record is not None else _is_as_created(text)
        return None if is_new and set(self._parse(rest)[0].names()) <= set(dict(self.client.extra)) else rest

    def _without(self, text: str, parts: Sequence[str]) -> str | None:
        """Return a text without the parts that install inserted; None if they are not there, or not all of ours."""
        for part in parts:
            if text.count(part) != 1:
                return None
            text = text.replace(part, "")
        if not text.strip().strip(BOM):
            return text
        try:
            self._parse(text)
            return None if self._ours(text.encode()) else text
        except UsageError:
            return None

    def _made(self, root: JsonNode, hooks: JsonNode) -> list[str]:
        """Return the containers that install has probably made: it appends them after all others, in its order."""
        order = [name for name, _ in self.client.events]
        made: list[str] = []
        before = len(order)
        for name, event in reversed(list(zip(hooks.names(), hooks.items, strict=True))):
            place = order.index(name) if name in order else before - 1
            if place >= before or not self._event_goes(event, []):
                return made
            made.append(f"{HOOKS}.{name}")
            before = place
        return [*made, HOOKS] if root.names()[-1] == HOOKS else made

    def _edits(self, root: JsonNode, hooks: JsonNode, made: Container[str]) -> list[tuple[int, int, str]]:
        """Return the edits that remove our entries, and the containers in `made` that are empty afterwards."""
        edits: list[tuple[int, int, str]] = []
        emptied = [
            index
            for index, (name, event) in enumerate(zip(hooks.names(), hooks.items, strict=True))
            if self._event_goes(event, edits, may_go=f"{HOOKS}.{name}" in made)
        ]
        if emptied and len(emptied) == len(hooks.items) and HOOKS in made:
            return [*edits, *cuts(root, [root.items.index(hooks)])]
        return [*edits, *cuts(hooks, emptied)]

    def _event_goes(self, event: JsonNode, edits: list[tuple[int, int, str]], *, may_go: bool = True) -> bool:
        """Return whether an event goes as a whole; otherwise add the edits that remove what is ours in it."""
        gone = []
        for index, item in enumerate(event.items if event.kind == "array" else ()):
            handlers = self._handlers(item)
            ours = [at for at, handler in enumerate(handlers) if is_ours(_command(handler))]
            if ours and len(ours) == len(handlers):
                gone.append(index)
            elif ours and (group := item.get(HOOKS)) is not None:
                edits += cuts(group, ours)
        if gone and len(gone) == len(event.items) and may_go:
            return True
        edits += cuts(event, gone)
        return False

    def _ours(self, content: bytes | None) -> list[OwnEntry]:
        if not content or SCRIPT.encode() not in content:
            return []  # a broken file without our entries must not stop the other clients
        _, hooks = self._parse(self._text(content))
        return [
            OwnEntry(name, line, group, index)
            for name, event in (zip(hooks.names(), hooks.items, strict=True) if hooks is not None else ())
            for group, item in enumerate(event.items if event.kind == "array" else ())
            for index, handler in enumerate(self._handlers(item))
            if (line := _command(handler)) is not None and is_ours(line)
        ]

    def _handlers(self, item: JsonNode) -> list[JsonNode]:
        """Return the handlers of an item of an event: those of a group, or the item itself."""
        group = item.get(HOOKS) if self.client.form == GROUPS else None
        return group.items if group is not None and group.kind == "array" else [item]

    def _parse(self, text: str) -> tuple[JsonNode, JsonNode | None]:
        """Return the root of a text, and its hooks.

        Raises:
            UsageError: `broken-settings` if it is not JSON, or not of the client's format.
        """
        try:
            root = parse_json(text, comments=self.client.comments)
        except json.JSONDecodeError as error:
            raise self._broken(error, "this is not valid JSON: ") from None
        hooks = root.get(HOOKS)
        for node, name in ((root, "the whole"), (hooks, f'"{HOOKS}"')):
            if node is not None and node.kind != "object":
                raise self._broken(json.JSONDecodeError(f"{name} is not an object", text, node.start))
        return root, hooks

    def _array(self, hooks: JsonNode | None, name: str) -> JsonNode | None:
        """Return the array of an event, or None if there is none."""
        event = hooks.get(name) if hooks is not None else None
        if event is not None and event.kind != "array":
            raise self._broken(
                json.JSONDecodeError(f'"{HOOKS}.{name}" is not an array', event.text, event.start)
            )
        return event

    def _broken(self, error: json.JSONDecodeError, what: str = "") -> UsageError:
        return UsageError(
            f"{self.path}, line {error.lineno}, column {error.colno}: {what}{error.msg}. Nothing was written.",
            hint=f"{self.client.title} cannot read hooks from this file. Correct it, then run the command again.",
            code="broken-settings",
        )

    def _text(self, content: bytes) -> str:
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise UsageError(
                f"{self.path} is not UTF-8 (byte {error.start + 1}). Nothing was written.",
                hint="Save it as UTF-8.",
                code="broken-settings",
            ) from None


def _command(handler: JsonNode) -> str | None:
    lines = [handler.get(key) for key in COMMANDS]
    return next((node.string() for node in lines if node is not None and node.kind == "string"), None)


def _layout(value: object) -> str:
    """Return a value as in a file that install creates."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _is_as_created(text: str) -> bool:
    """Return whether a text has the layout of a file that install creates."""
    try:
        return _layout(json.loads(text)) == text
    except (ValueError, RecursionError):  # it has comments, or is nested too deeply
        return False
