"""What others wrote, as it may be shown: nothing in it moves a cursor, hides, or passes for a frame.

The log keeps every text as it was written. Here a character that nobody sees becomes its number, and what
only a program that speaks to a model writes (`<system-reminder>`, our own reply line) loses the sign that
it begins with, so that it is seen for the quotation that it is. Code stays as it is.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MARK = "‹"  # stands for the first sign of what was made harmless
_CONTROL = [*range(0x20), *range(0x7F, 0xA0)]
_BIDI = [0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)]  # with the line separators
# Soft hyphen, zero-width space and joiners, word joiner and what follows it, byte order mark, annotations;
# and what is as wide as a letter and blank: the fillers of Hangul, Braille without a dot.
_UNSEEN = [0xAD, 0x180E, *range(0x200B, 0x200E), *range(0x2060, 0x2066), *range(0x206A, 0x2070), 0xFEFF,
           *range(0xFFF9, 0xFFFC), 0x115F, 0x1160, 0x2800, 0x3164, 0xFFA0]  # fmt: skip
# What spells unseen words: the tags, and the supplement of the variation selectors.
_SPELLING = [*range(0xE0000, 0xE0080), *range(0xE0100, 0xE01F0)]
_HARMFUL = frozenset([*_CONTROL, *_BIDI, *_UNSEEN, *_SPELLING])
_OPENING = "<＜﹤"
_CLOSING = ">＞﹥"
_DASHES = "-‐‑‒–—―−─━⸺⸻﹘﹣－"
_HYPHENS = "-‐‑"  # these stand inside of words, too
_SPACES = " \t\xa0"
# Names that an agent's harness gives to what it says to its model, without `-`, `_` and `.`; also as a beginning.
_HARNESS = (
    "systemreminder", "systemmessage", "systemprompt", "systeminstruction", "systemnotification", "userprompt",
    "usermessage", "userquery", "userinstruction", "developermessage", "assistantmessage", "agentmessage",
    "teammatemessage", "tooluse", "toolcall", "toolresult", "toolresponse", "tooloutput", "functioncall",
    "functionresult", "functionresponse", "functionoutput", "localcommand", "commandname", "commandmessage",
    "commandargs", "tasknotification", "environmentcontext", "hookcontext", "additionalcontext",
)  # fmt: skip
# The same as whole words. In code they are types, too: `List<User>`.
_ROLES = frozenset(
    ["system", "user", "assistant", "human", "developer", "signal", "invoke", "instructions", "permissions",
     "thinking"]
)  # fmt: skip
_NAME_MAX = 64
_TAG_MAX = 300
_tables: dict[str, dict[int, str]] = {}
_in_json: dict[int, str] = {}
_SMALL = {ord(large): ord(large) + 32 for large in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


def sanitize(text: str, keep: str = "") -> str:
    """A text as it may be shown: harmful characters but those in `keep` as `\\uXXXX`, false frames marked."""
    text = defuse_tags(text)
    if text.isascii() and text.isprintable():
        return text
    table = _tables.get(keep)
    if table is None:
        table = {code: _number(code) for code in _HARMFUL if chr(code) not in keep}
        _tables[keep] = table
    return text.translate(table)


def is_unsafe(char: str) -> bool:
    """Whether a character could move a cursor, reorder text, break a line, or hide something."""
    return ord(char) in _HARMFUL


def _number(code: int) -> str:
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def defuse_tags(text: str) -> str:
    """A text of the same length in which no frame of ours or of a harness begins."""
    found = [*_tags(text), *_reply_lines(text)]
    if not found:
        return text
    chars = list(text)
    for at in found:
        chars[at] = MARK
    return "".join(chars)


def sanitize_json(text: str) -> str:
    """JSON in which the same is written as numbers: who parses it gets every text back as it was."""
    found = [*_tags(text)]
    if not found and text.isascii() and text.isprintable():
        return text
    if found:
        chars = list(text)
        for at in found:
            chars[at] = f"\\u{ord(chars[at]):04x}"
        text = "".join(chars)
    if not _in_json:
        _in_json.update((code, _json_number(code)) for code in _HARMFUL)
    return text.translate(_in_json)


def _json_number(code: int) -> str:
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def _tags(text: str) -> Iterator[int]:
    """Where a tag begins that a model could take for its harness's."""
    for opening in _OPENING:
        at = text.find(opening)
        while at >= 0:
            if _is_tag(text, at):
                yield at
            at = text.find(opening, at + 1)


def _is_tag(text: str, at: int) -> bool:
    inside = text[at + 1 : at + 1 + _NAME_MAX]
    if inside.startswith("|"):  # `<|im_start|>`
        name, bar, rest = inside[1:].partition("|")
        return bool(bar and rest) and rest[0] in _CLOSING and name.replace("_", "").isalnum()
    if not inside.isascii():
        from unicodedata import normalize

        inside = normalize("NFKC", inside)
    inside = inside.lstrip()
    word = ""
    for char in inside.lstrip("/ \t").lower():
        if not (char.isalnum() or char in "-_.:"):
            break
        word += char
    space, _, name = word.rpartition(":")
    parts = name.replace("_", "-").replace(".", "-").split("-")
    name = "".join(parts)
    if space == "antml" or (len(parts) > 1 and name.startswith(_HARNESS)):
        return True
    if name not in _ROLES and name.rstrip("s") not in _HARNESS:
        return False
    if not inside.startswith("/") and _is_word(text, at - 1):
        return False  # a type: `List<User>`
    return any(sign in text[at : at + _TAG_MAX] for sign in _CLOSING)


def _is_word(text: str, at: int) -> bool:
    """Whether a letter, a digit or a line below stands there, and no `\\n` of JSON."""
    return at >= 0 and (text[at].isalnum() or text[at] == "_") and text[max(0, at - 1)] != "\\"


def _reply_lines(text: str) -> Iterator[int]:
    """Where something begins that looks like the line below a signal: `— from session …`."""
    small = text.lower() if text.isascii() else text.translate(_SMALL)
    at = small.find("session")
    while at >= 0:
        end = _back(small, at, _SPACES)
        if end < at and small.endswith("from", 0, end):
            end = _back(small, end - 4, _SPACES)
            start = _back(small, end, _DASHES)
            if not (text[start:end] in _HYPHENS and _is_word(text, start - 1)):
                yield from range(start, end)
        at = small.find("session", at + 1)


def _back(text: str, at: int, chars: str) -> int:
    """Where the run of such characters begins that ends at a place."""
    while at > 0 and text[at - 1] in chars:
        at -= 1
    return at
