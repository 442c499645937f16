"""Values in a JSON text with their positions, for edits that change only the necessary part of a settings file.

The standard library decides what is valid. It gives no positions, and writing its values again would lose indentation,
line ends and comments; so the tokens of a valid text are read once more.
"""

from __future__ import annotations

import json
import re

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

    __slots__ = ("end", "items", "keys", "kind", "plain", "start", "text")

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
            parse_int=str, parse_float=str, parse_constant=constants.append,
        )  # fmt: skip
    except json.JSONDecodeError as error:
        is_comment = plain.startswith(("//", "/*"), error.pos)
        unclosed = "a comment that does not end" if comments else "a comment, which this client does not read"
        what = unclosed if is_comment else error.msg[:1].lower() + error.msg[1:]
        raise JsonSyntaxError(what, text, error.pos) from None
    except RecursionError:
        raise JsonSyntaxError("it is nested too deeply", text, 0) from None
    for token in _TOKEN.finditer(plain) if constants else ():
        if token[0] == constants[0]:
            raise JsonSyntaxError(f"{token[0]} is no value", text, token.start())
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
    """Return spaces for a comment or a comma; other matches stay, and so does a comment that does not end."""
    stays = found[0][0] in '"{[' or (found[0].startswith("/*") and not found[0].endswith("*/", 2))
    return found[0] if stays else " " * len(found[0])
