"""Make text of peers fit for display: no control, bidi and invisible characters, no imitation client tags, not too wide.

The log keeps every text as it was written. On display, a character that is invisible or acts on the terminal becomes
its number, and a tag that only a program writes for a model (`<system-reminder>`, our own reply line) loses its
first sign. Text for models has a stricter rule: see `sanitize_for_model`.
"""

from __future__ import annotations

MARK = "‹"  # replaces the first sign of an imitation tag
_SEPARATOR = "·"  # common in our output, and it looks like no other character
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SEPARATOR = " · "
TITLE_MAX = 60  # columns
_QUOTES = dict.fromkeys(map(ord, '"“”„‟«»″‶〝〞＂ʺˮ'), "'")
_WAYS = ("toreply:", "toagree:", "toreject:")
_CACHE_MAX = 8_192  # code points that one table caches


class _Escapes(dict[int, "int | str"]):
    """A table for `str.translate` that is filled on demand.

    Args:
        keep: Unsafe characters that are not escaped.
        in_json: Whether an escape is one of JSON, with surrogate pairs.
    """

    def __init__(self, keep: str = "", *, in_json: bool = False) -> None:
        super().__init__((ord(char), char) for char in keep)
        self._escape = _json_number if in_json else _number

    def __missing__(self, code: int) -> int | str:
        value = self._escape(code) if _is_unsafe(code) else code
        if len(self) < _CACHE_MAX:
            self[code] = value
        return value


def _is_unsafe(code: int) -> bool:
    if code < 0x7F:
        return code < 0x20
    if 0x20000 <= code < 0xE0000:
        return False
    from .ignorable import UNSAFE  # most texts don't need the import

    for first, last in UNSAFE:
        if code <= last:
            return code >= first
    return False


def _number(code: int) -> str:
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _json_number(code: int) -> str:
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


_tables: dict[str, _Escapes] = {}
_json_table = _Escapes(in_json=True)


def is_unsafe(char: str) -> bool:
    """Return whether a character could move a cursor, reorder text, break a line, or be invisible."""
    return _is_unsafe(ord(char))


def is_blank(text: str) -> bool:
    """Return whether nothing of a text can be seen: it is empty, white space or invisible."""
    return all(char.isspace() or is_unsafe(char) for char in text)


def sanitize(text: str, keep: str = "") -> str:
    r"""Return a text as it may be displayed to people.

    Args:
        keep: Unsafe characters that are not escaped, such as a tab.

    Returns:
        The text with unsafe characters as `\uXXXX` and without imitation tags. Code such as `List<User>` is unchanged.
    """
    return _escape(defuse_tags(text), keep)


def sanitize_for_model(text: str, keep: str = "") -> str:
    """Return a text as it may be given to a language model.

    Like `sanitize`, and every `<`, `</`, `<|` or `</|` before a letter is marked, unless it is in Markdown code:
    between backticks or in a closed fence. Imitation tags are marked in code as well.
    """
    return _escape(defuse_tags(text, markup=True), keep)


def defuse_tags(text: str, *, markup: bool = False) -> str:
    """Return a text of the same length without imitation tags and reply lines.

    Args:
        markup: Whether any tag outside code is marked, known or not.
    """
    found = _imitations(text, markup)
    if not found:
        return text
    chars = list(text)
    for at in found:
        chars[at] = MARK
    return "".join(chars)


def sanitize_json(text: str) -> str:
    """Return JSON with the same characters and signs as JSON escapes; parsing it returns every text unchanged."""
    found = _imitations(text, False, lines=False)
    if found:
        chars = list(text)
        for at in found:
            chars[at] = _json_number(ord(chars[at]))
        text = "".join(chars)
    if text.isascii() and text.isprintable():
        return text
    return text.translate(_json_table)


def _escape(text: str, keep: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    table = _tables.get(keep)
    if table is None:
        table = _tables[keep] = _Escapes(keep)
    return text.translate(table)


def _imitations(text: str, markup: bool, *, lines: bool = True) -> list[int]:
    """Return where imitation tags and, with `lines`, reply lines begin."""
    if text.replace(_SEPARATOR, "").isascii() and not (
        "<" in text or "[" in text or (lines and "session" in text.lower())
    ):
        return []  # most texts don't need the import
    from .imitation import find

    return find(text, markup=markup, lines=lines)


def title(text: str) -> str:
    """Return a text as one line of at most 60 columns, without quotes or other text that could end it early."""
    plain = " ".join(text.split()).translate(_QUOTES)
    squeezed = plain.lower().replace("：", ":").replace(" ", "")
    if any(way in squeezed for way in _WAYS):  # it would imitate the command of the reply line
        plain = plain.replace(":", MARK).replace("：", MARK)
    plain = " ".join(sanitize_for_model(plain).split())
    if not plain.isprintable():  # such as surrogates: a line of the log is plain text
        plain = "".join(char if char.isprintable() else "\ufffd" for char in plain)
    return within(plain, TITLE_MAX)


def minute(at: str | None) -> str:
    """Return a time of a record as date and minute, in UTC."""
    return f"{at[:10]} {at[11:16]} UTC" if at else ""


def first_of(
    texts: Sequence[str], most: int, further: int = 0, shown: Callable[[str], str] = str, *, joint: str = ", "
) -> str:
    """Return the first texts of a list, and how many more it has.

    Args:
        further: How many more there are beside the list.
        shown: Returns a text as it is shown.
        joint: What stands between them.
    """
    more = max(0, len(texts) - most) + further
    return joint.join(map(shown, texts[:most])) + (f" and {more:,} more" if more else "")


def within(text: str, columns: int) -> str:
    """Return the beginning of a text, at most this many columns wide; `…` marks a cut."""
    if 2 * len(text) <= columns:
        return text
    if text.isascii():
        return text if len(text) <= columns else text[: columns - 1].rstrip() + "…"
    widths = _widths(text)
    if sum(widths) <= columns and len(text) <= 4 * columns:
        return text
    used, end = 0, 0
    while end < 4 * columns - 1 and used + widths[end] < columns:
        used += widths[end]
        end += 1
    return text[:end].rstrip() + "…"


def columns_of(text: str) -> int:
    """Return how many columns a sanitized text takes in a terminal; sequences such as flags may take fewer."""
    return len(text) if text.isascii() else sum(_widths(text))


def _widths(text: str) -> list[int]:
    from unicodedata import combining, east_asian_width

    return [0 if combining(char) else 1 + (east_asian_width(char) in "WF") for char in text]


def part(text: str) -> str:
    """Return a peer's text that is one part of a line, without the separator of parts: a name could pass for several."""
    return text.replace(_SEPARATOR, "-")


def sender_text(name: str | None, identity: str | None) -> str:
    """Return `Planck (codex:implementer:host42)`, or only the name or the identity."""
    shown = sanitize_for_model(name or "")
    exact = sanitize_for_model(identity or "")
    if shown and exact and shown != exact:
        return f"{shown} ({exact})"
    return shown or exact or "nobody"
