"""Split texts and queries into words.

SQLite's tokenizers do not split `snake_case` and `camelCase`, so text is split here and the index gets words
separated by spaces. Queries are split the same way, and reach FTS5 only as quoted words: a user's input is never
parsed as syntax.
"""

from __future__ import annotations

import re
from unicodedata import category, normalize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

WORD_MAX = 64  # characters: longer words are blobs; the index and the query truncate them alike
PARTS_MAX = 6  # of a name that is also indexed as a whole
KNOWN_MAX = 50_000  # names in the cache of a process: most occur repeatedly
KNOWN_LONGEST = 200
# Scripts without spaces between words: each character is a word, and a sequence of them a phrase.
_UNSPACED = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3005, 0x3007), (0x3040, 0x30FF), (0x31F0, 0x31FF),
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xF900, 0xFAFF), (0x1B000, 0x1B16F), (0x20000, 0x3FFFF),
)  # fmt: skip
# Accents, Hebrew points and Arabic vowel signs: users omit them in queries.
_LOOSE_MARKS = re.compile("[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670]")
# A name consists of parts: `HTTPServer`, `snake_case`, `kebab-case`, `sha256`. The patterns match character
# classes, one letter each (see `_Classes`), so positions are the same as in the text.
_NAME = re.compile("[Ulsd]+(?:_+[Ulsd]+)*|c")
_ASCII_NAME = re.compile("[A-Za-z0-9]+(?:[_-]+[A-Za-z0-9]+)*")
_PART = re.compile("UU+s(?![Ulsd])|U+(?![ls])|U?[ls]+|d+")
_RUN = re.compile("[Ulsd]+")


class NameToken:
    """A run of letters and digits with `_` and `-` between: its parts, and the whole as one word if it has several."""

    def __init__(self, parts: Sequence[str]) -> None:
        self.parts = tuple(parts)
        whole = "".join(parts) if 1 < len(parts) <= PARTS_MAX else ""
        self.whole = whole if not whole.isnumeric() and len(whole) <= WORD_MAX else ""


class _Classes(dict[int, str]):
    """The class of a character, by code point.

    U upper case, l lower case or a letter without case, s the letter s, d digit, c a word by itself, _ a joiner of
    the parts of a name, or a space.
    """

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if any(first <= code <= last for first, last in _UNSPACED):
            found = "c" if char.isalnum() or category(char)[0] == "M" else " "
        elif char.isupper() or char.istitle():
            found = "U"
        elif char.isnumeric():
            found = "d"
        elif char.isalpha() or category(char)[0] == "M":
            found = "s" if char == "s" else "l"
        else:
            found = "_" if char in "_-" else " "
        self[code] = found
        return found


class _Plain(dict[int, str]):
    """A character without case, accent and form, by code point: `É` is e, `ß` is ss, `Ａ` is a."""

    def __missing__(self, code: int) -> str:
        bare = _LOOSE_MARKS.sub("", normalize("NFKD", chr(code)))
        found = normalize("NFC", _LOOSE_MARKS.sub("", normalize("NFKD", bare.casefold())))
        self[code] = found
        return found


_CLASSES = _Classes()
_PLAIN = _Plain()
_known: dict[str, NameToken] = {}


def words(text: str) -> list[str]:
    """Return the words of a text in their order, the parts of a name one by one."""
    return [part for name in named(text) for part in name.parts]


def whole(text: str) -> list[str]:
    """Return names of several parts as one word each: `file_name`, `fileName` and `filename` become equal."""
    return [name.whole for name in named(text) if name.whole]


def named(text: str) -> list[NameToken]:
    """Return the names of a text in their order; most words are names of one part."""
    if text.isascii():
        found = _ASCII_NAME.findall(text)
    else:
        text = normalize("NFKC", text)  # one code point for each accented letter
        found = [text[each.start() : each.end()] for each in _NAME.finditer(text.translate(_CLASSES))]
    if len(_known) > KNOWN_MAX:
        _known.clear()
    return [_known.get(name) or _learn(name) for name in found]


def find_words(
    text: str, wanted: Callable[[str], bool], starts: Iterable[str]
) -> Iterator[tuple[int, int, str]]:
    """Yield the start, end and word of each wanted word of a text; a name that only matches as a whole is one word.

    Args:
        starts: Prefixes of all wanted words: the rest of the text is not split.
    """
    for start, end in _near(text, starts) if text.isascii() else _spans(text):
        raw = text[start:end]
        name = _known.get(raw) or _learn(raw)
        if any(map(wanted, name.parts)):
            for (first, last), word in _name_parts(raw):
                if wanted(word):
                    yield start + first, start + last, word
        elif name.whole and wanted(name.whole):
            yield start, end, name.whole


def _spans(text: str) -> Iterator[tuple[int, int]]:
    return (each.span() for each in _NAME.finditer(text.translate(_CLASSES)))


def _near(text: str, starts: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield the positions of the names of an ASCII text that contain one of these prefixes."""
    low = text.lower()
    offsets = []
    for start in starts:
        at = low.find(start)
        while at >= 0:
            offsets.append(at)
            at = low.find(start, at + 1)
    done = 0
    for at in sorted(offsets):
        if at < done:
            continue
        while at > done and (text[at - 1].isalnum() or text[at - 1] in "_-"):
            at -= 1
        name = _ASCII_NAME.search(text, at)
        if name is not None:
            yield name.span()
            done = name.end()


def _name_parts(raw: str) -> list[tuple[tuple[int, int], str]]:
    """Return the parts of a name, each with its start and end."""
    classes = raw.translate(_CLASSES)
    return [(span, _plain(raw[slice(*span)])) for span in _parts(classes, 0, len(raw))]


def is_unspaced(name: NameToken) -> bool:
    """Return whether it is one character of a script without spaces between words."""
    return len(name.parts) == 1 and _CLASSES[ord(name.parts[0][0])] == "c"


def _learn(text: str) -> NameToken:
    name = NameToken([word for _, word in _name_parts(text) if word])
    if len(text) <= KNOWN_LONGEST:
        _known[text] = name
    return name


def _plain(part: str) -> str:
    return part.translate(_PLAIN)[:WORD_MAX]


def _parts(classes: str, start: int, end: int) -> list[tuple[int, int]]:
    if classes[start] == "c":
        return [(start, end)]
    found = []
    for run in _RUN.finditer(classes, start, end):
        parts = [part.span() for part in _PART.finditer(classes, run.start(), run.end())]
        # An id or a hash such as 6f3k9q alternates between digits and letters: it is one word.
        is_id = len(parts) > 3 and len(run.group()) < 2.5 * len(parts)
        found += [run.span()] if is_id else parts
    return found
