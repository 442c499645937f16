"""How names compare: what counts as the same name, as a near one, and as one that could deceive."""

from __future__ import annotations

_DIGITS = "0123456789"
# Scripts that are written together: Japanese and Korean use several in one word.
_EAST_ASIAN = frozenset(("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO"))


def fold(text: str) -> str:
    """The form in which names are compared: NFKC, without case, `_` and space as `-`."""
    if not text.isascii():
        from unicodedata import normalize

        text = normalize("NFKC", normalize("NFKC", text).casefold())
    return text.lower().replace("_", "-").replace(" ", "-")


def root(folded: str) -> str:
    """A folded name without its trailing `-<number>`s: only names with one root can take each other's place."""
    while True:
        head = folded.rstrip(_DIGITS)
        if head == folded or not head.endswith("-") or head == "-":
            return folded
        folded = head[:-1]


def is_mixed(text: str) -> bool:
    """Whether letters of several scripts stand together, as when a Cyrillic `а` poses as a Latin one."""
    if text.isascii():
        return False
    from unicodedata import category, name, normalize

    scripts = set()
    for char in normalize("NFKC", text):
        if category(char) in ("Ll", "Lu", "Lt", "Lo"):
            script = name(char, "?").partition(" ")[0].partition("-")[0]
            scripts.add("EAST ASIAN" if script in _EAST_ASIAN else script)
    return len(scripts) > 1


def is_within(one: str, other: str, most: int) -> bool:
    """Whether at most that many insertions, deletions and replacements lead from one text to the other.

    Written out because the import of rapidfuzz costs more than a whole command.
    """
    if abs(len(one) - len(other)) > most:
        return False
    before = list(range(len(other) + 1))
    for row, char in enumerate(one, 1):
        current = [row]
        for column, against in enumerate(other, 1):
            cost = before[column - 1] + (char != against)
            current.append(min(cost, before[column] + 1, current[-1] + 1))
        if min(current) > most:
            return False
        before = current
    return before[-1] <= most
