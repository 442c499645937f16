"""Edits of a JSON text that change only the necessary part: values with their positions, additions and removals.

The standard library decides what is valid. It gives no positions, and writing its values again would lose indentation,
line ends and comments; so the tokens of a valid text are read once more.
"""

from __future__ import annotations

import json
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# Strings and comments without an end reach to the end of the text: each pattern passes over a text once.
_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)'
_TOKEN = re.compile(rf'{_STRING}|[{{}}\[\],:]|[^ \t\r\n{{}}\[\],:"]+', re.DOTALL)
_COMMENT = re.compile(rf"{_STRING}|//[^\r\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMA = re.compile(rf"{_STRING}|[\[{{][ \t\r\n]*,|,(?=[ \t\r\n]*[}}\]])", re.DOTALL)
_KINDS = {"{": "object", "[": "array", '"': "string", "t": "word", "f": "word", "n": "word"}
BOM = "\ufeff"


class JsonSyntaxError(ValueError):
    """The text is not JSON.

    Args:
        what: The error, for a sentence.
        at: The offset of the error; `line` and `column` give it counted from 1.
    """

    def __init__(self, what: str, text: str, at: int) -> None:
        before = text[:at].replace("\r\n", "\n").replace("\r", "\n")
        self.what = what
        self.line = before.count("\n") + 1
        self.column = len(before) - (before.rfind("\n") + 1) + 1
        super().__init__(f"line {self.line}, column {self.column}: {what}")


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


def parse(text: str, *, comments: bool = False) -> JsonNode:
    """Return the root value of a text.

    Args:
        comments: Whether to accept comments and a comma after the last item.

    Raises:
        JsonSyntaxError: The text is not valid JSON, or nested too deeply.
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
        raise JsonSyntaxError(what, text, error.pos) from None
    except RecursionError:
        raise JsonSyntaxError("it is nested too deeply", text, 0) from None
    for token in _TOKEN.finditer(plain) if constants else ():
        if token[0] == constants[0]:
            raise JsonSyntaxError(f"{token[0]} is not a value", text, token.start())
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
