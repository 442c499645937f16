"""JSON as a text with positions, so that a settings file can be changed where it must be and nowhere else.

Reading it into values and writing it again would lose its indentation, its line ends and its comments.
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


class BrokenError(ValueError):
    """The text is no JSON.

    Args:
        what: What is wrong, for a sentence.
        line, column: Where, counted from 1.
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
        """The keys of an object."""
        return [json.loads(self.text[start:end]) for start, end in self.keys]

    def get(self, name: str) -> JsonNode | None:
        """The value of a key: of the last one, where it stands there twice, as every reader takes it."""
        found = [item for key, item in zip(self.names(), self.items, strict=True) if key == name]
        return found[-1] if found else None

    def string(self) -> str | None:
        """The text of a string, None for any other kind."""
        return str(json.loads(self.text[self.start : self.end])) if self.kind == "string" else None

    def whole(self, index: int) -> tuple[int, int]:
        """The span of an item with its key."""
        return (self.keys[index] if self.keys else (self.items[index].start, 0))[0], self.items[index].end


def parse(text: str, *, comments: bool = False) -> JsonNode:
    """The value that a text is.

    Args:
        comments: Accept comments and a comma behind the last item.

    Raises:
        BrokenError: It is none.
    """
    return _Reader(text, comments).value()


class _Reader:
    """Reads without recursion: a settings file may nest deeper than Python's stack."""

    def __init__(self, text: str, comments: bool) -> None:
        self.text = text
        self.comments = comments
        self.at = len(BOM) if text.startswith(BOM) else 0
        self.open: list[JsonNode] = []

    def value(self) -> JsonNode:
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
                        raise BrokenError("a comma stands before the end", self.text, comma)
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
        """The value that starts here; one that has items is left open."""
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
        """Pass white space, and comments where there may be some."""
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

    def _broken(self, what: str) -> BrokenError:
        return BrokenError(what, self.text, self.at)
