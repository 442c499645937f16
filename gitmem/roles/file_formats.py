"""Read TOML, and the flat YAML between `---` at the beginning of Markdown files. The texts are untrusted."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

DOTS_MAX = 1_000  # in a line: the time that Python's reader of TOML takes for a key is quadratic in its parts
HEAD_LINES_MAX = 1_000
KEYS_MAX = 200
_KEY = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]{0,99})[ \t]*:(?:[ \t]+(.*)|)$")
_BLOCK = re.compile(r"[|>][-+0-9]{0,2}(?:[ \t]+#.*)?$")
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/"}


class FormatError(ValueError):
    """A text has another form. `line` is None if the whole text is meant."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


def toml(text: str) -> dict[str, Any]:
    """Return the values of a TOML text.

    Raises:
        FormatError: It is not TOML, or is made to take long.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > DOTS_MAX:
            raise FormatError(f"more than {DOTS_MAX} dots in a line", number)
    import tomllib

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        found = re.search(r" \(at line (\d+), column \d+\)$", str(error))
        if found is None:
            is_deep = isinstance(error, RecursionError)
            raise FormatError("too many levels" if is_deep else str(error) or "not TOML") from None
        raise FormatError(str(error)[: found.start()], int(found[1])) from None


def frontmatter(text: str) -> dict[str, str | list[str]]:
    """Return the texts and lists of texts at the top level of a Markdown file's YAML head; {} without a head.

    Clients accept much that is not YAML, such as a colon in a text without quotes; so does this. Anything else than
    texts, block texts and lists, such as objects, is left out.

    Raises:
        FormatError: The head has no end.
    """
    lines = text.split("\n", HEAD_LINES_MAX + 1)
    if lines[0].rstrip() != "---":
        return {}
    end = next(
        (at for at, line in enumerate(lines[1 : HEAD_LINES_MAX + 1], 1) if line.rstrip() == "---"), None
    )
    if end is None:
        raise FormatError("the head that begins with --- has no end", 1)
    found: dict[str, str | list[str]] = {}
    at = 1
    while at < end and len(found) < KEYS_MAX:
        match = _KEY.match(lines[at].rstrip())
        at += 1
        if match is None:
            continue
        inner = []
        # A list may stand at the indentation of its key.
        while at < end and (not lines[at].strip() or lines[at][0] in " \t" or lines[at].startswith("- ")):
            inner.append(lines[at].rstrip())
            at += 1
        value = _value((match[2] or "").strip(), inner)
        if value is not None:
            found[match[1]] = value
    return found


def _value(given: str, inner: Sequence[str]) -> str | list[str] | None:
    """Return the value of a key by the rest of its line and the lines that belong to it; None for an object."""
    words = [line.strip() for line in inner]
    if _BLOCK.match(given):
        return _block(inner, folded=given[0] == ">")
    if given and not given.startswith("#"):
        if given.startswith("[") and given.endswith("]"):
            return [_scalar(each.strip()) for each in given[1:-1].split(",") if each.strip()]
        return _scalar(" ".join([given, *filter(None, words)]))
    items = [word for word in words if word and not word.startswith("#")]
    if items and all(word.startswith("- ") for word in items):
        return [_scalar(word[2:].strip()) for word in items]
    return None if any(_KEY.match(word) for word in items) else _scalar(" ".join(items))


def _block(inner: Sequence[str], *, folded: bool) -> str:
    depth = min((len(line) - len(line.lstrip()) for line in inner if line), default=0)
    lines = [line[depth:] for line in inner]
    if not folded:
        return "\n".join(lines).strip("\n")
    return "\n".join(" ".join(part.split("\n")) for part in "\n".join(lines).strip("\n").split("\n\n"))


def _scalar(text: str) -> str:
    """Return a text without its quotes and escapes, or without a comment behind it."""
    if len(text) > 1 and text[0] == text[-1] == '"':
        return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), text[1:-1])
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    return text.partition(" #")[0].rstrip()
