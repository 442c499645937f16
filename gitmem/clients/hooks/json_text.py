"""A JSON parser that keeps positions, for edits that change only the necessary part of a settings file.

Parsing into values and writing them again would lose indentation, line ends and comments.
"""

from __future__ import annotations

import json
import re

_STRING = re.compile(r'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![0-9A-Za-z_.+-])")
_WORD = re.compile(r"(?:true|false|null)(?![0-9A-Za-z_])")
_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
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
        kind: `object`, `array`, `string`, `number` or `word`.
        start, end: Its span.
        items: The values in an array or object, in order.
        keys: The spans of the keys of an object, one for each of `items`.
    """

    __slots__ = ("end", "items", "keys", "kind", "start", "text")

    def __init__(self, text: str, kind: str, start: int, end: int = 0) -> None:
        self.text = text
        self.kind = kind
        self.start = start
        self.end = end
        self.items: list[JsonNode] = []
        self.keys: list[tuple[int, int]] = []

    def names(self) -> list[str]:
        """Return the keys of an object."""
        return [json.loads(self.text[start:end]) for start, end in self.keys]

    def get(self, name: str) -> JsonNode | None:
        """Return the value of a key, or None. Of a repeated key the last value counts, as for every reader."""
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
        BrokenError: The text is not valid JSON.
    """
    return _Reader(text, comments).value()


class _Reader:
    """A parser without recursion: settings may be nested deeper than Python's stack."""

    def __init__(self, text: str, comments: bool) -> None:
        self.text = text
        self.comments = comments
        self.at = len(BOM) if text.startswith(BOM) else 0
        self.open: list[JsonNode] = []

    def value(self) -> JsonNode:
        """Parse the whole text and return its root."""
        root = self._begin()
        while self.open:
            inside = self.open[-1]
            close = "}" if inside.kind == "object" else "]"
            if inside.items:
                char = self._next(f"',' or '{close}'")
                if char not in (",", close):
                    raise self._broken(f"',' or '{close}' is expected")
                if char == ",":
                    comma = self.at
                    self.at += 1
                    if self._next("a value") == close and not self.comments:
                        raise JsonSyntaxError("a comma stands before the end", self.text, comma)
            if self._next(f"a value or '{close}'") == close:
                self.at += 1
                inside.end = self.at
                self.open.pop()
                continue
            if inside.kind == "object":
                inside.keys.append(self._key())
            inside.items.append(self._begin())
        if self._skip() < len(self.text):
            raise self._broken("something stands behind the end")
        return root

    def _begin(self) -> JsonNode:
        """Return the value that starts here; an array or object stays open."""
        char = self._next("a value")
        kind = {"{": "object", "[": "array", '"': "string", "t": "word", "f": "word", "n": "word"}.get(
            char, "number"
        )
        node = JsonNode(self.text, kind, self.at)
        if char in "{[":
            self.at += 1
            self.open.append(node)
            return node
        pattern = {"string": _STRING, "word": _WORD, "number": _NUMBER}[kind]
        found = pattern.match(self.text, self.at)
        if found is None:
            raise self._broken("a string that does not end" if kind == "string" else "a value is expected")
        self.at = node.end = found.end()
        return node

    def _key(self) -> tuple[int, int]:
        found = _STRING.match(self.text, self.at)
        if found is None:
            raise self._broken("a key in double quotes is expected")
        self.at = found.end()
        if self._next("':'") != ":":
            raise self._broken("':' is expected")
        self.at += 1
        return found.span()

    def _next(self, expected: str) -> str:
        if self._skip() >= len(self.text):
            raise self._broken(f"the text ends where {expected} is expected")
        return self.text[self.at]

    def _skip(self) -> int:
        """Skip white space, and comments if they are allowed; return the position."""
        while True:
            space = _SPACE.match(self.text, self.at)
            assert space is not None
            self.at = space.end()
            if not self.text.startswith(("//", "/*"), self.at):
                return self.at
            if not self.comments:
                raise self._broken("a comment, which this client does not read")
            comment = _COMMENT.match(self.text, self.at)
            if comment is None:
                raise self._broken("a comment that does not end")
            self.at = comment.end()

    def _broken(self, what: str) -> JsonSyntaxError:
        return JsonSyntaxError(what, self.text, self.at)
