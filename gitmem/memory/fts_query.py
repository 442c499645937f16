"""Translate a user's query to FTS5 expressions that cannot contain syntax from the user."""

from __future__ import annotations

from .tokenize import NameToken, is_unspaced, named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

READ_MAX = 8_192  # characters of a query that are read
WORDS_MAX = 40  # of a query: each costs a pass over the index
BEGINNING_LEAST = 3  # characters: shorter prefixes match almost everything
# English words that are ignored in a query.
STOP = frozenset(
    (  # noqa: SIM905  (a list of seventy quoted words can't be read)
        "a an and are as at be been but by can could did do does for from had has have how i if in into is it its me my"
        " no not of on or our should so than that the their them then there these they this to was we were what when"
        " where which who why will with would you your"
    ).split()
)

ENDINGS = frozenset(
    ("", "e", "s", "es", "d", "ed", "er", "ers", "ing", "ings", "ion", "ions", "ly", "y", "ies", "ied")
)


class FtsQuery:
    """FTS5 expressions for a query, from the narrowest to the widest; None if one would add nothing.

    Attributes:
        every: All words, and all phrases.
        begun: All words, or words with them as a prefix; and all phrases.
        some: Any of the words, and all phrases.
        words: One expression for each word of `some`.
        parts: The words that may be replaced by similar ones.
        starts: Prefixes of all words to highlight.

    Args:
        similar: Words to replace by others.
    """

    def __init__(self, text: str, similar: Mapping[str, str] | None = None) -> None:
        pieces = text[:READ_MAX].split('"')
        if len(pieces) % 2 == 0:  # the last quotation mark is unmatched
            pieces[-2:] = [pieces[-2] + " " + pieces[-1]]
        phrases = [[part for name in named(piece) for part in name.parts] for piece in pieces[1::2]]
        asked = [phrase[:WORDS_MAX] for phrase in phrases if phrase][:WORDS_MAX]
        must = [_phrase(phrase) for phrase in asked]
        groups = _without_stop(_groups(" ".join(pieces[::2])), bool(must))[:WORDS_MAX]
        self.similar = dict(similar or {})
        self.parts = [part for group in groups if len(group) == 1 for part in group[0].parts]
        if similar:
            groups = [[_replaced(name, similar) for name in group] for group in groups]
        self.words = list(dict.fromkeys(word for group in groups for word in _single(group)))[:WORDS_MAX]
        self._words = {part for phrase in asked for part in phrase}
        self._words.update(
            part for group in groups for name in group for part in (*name.parts, name.whole) if part
        )
        self._beginnings = [group[0].parts[-1] for group in groups if _can_begin(group)]
        self.every = _all([*must, *map(_exact, groups)])
        self.begun = _all([*must, *map(_starts_word, groups)]) if self._beginnings else None
        # `WU-7` is one thing: a node with `wu` or with `7` has no part of it.
        is_number = len(groups) == 1 and len(groups[0]) == 1 and any(map(str.isnumeric, groups[0][0].parts))
        self.some = _all([*must, _any(self.words)]) if len(self.words) > 1 and not is_number else None
        self.starts = {word[:BEGINNING_LEAST] for word in self._words}
        self._known: dict[str, bool] = {}

    def marks(self, word: str) -> bool:
        """Return whether to highlight a word. Only for display: SQLite's stemmer knows more endings."""
        found = self._known.get(word)
        if found is None:
            found = word in self._words or (
                word[:BEGINNING_LEAST] in self.starts
                and (
                    any(word.startswith(start) for start in self._beginnings)
                    or any(_share_stem(word, each) for each in self._words)
                )
            )
            self._known[word] = found
        return found


def _share_stem(one: str, other: str) -> bool:
    """Return whether two English words differ only in their endings: `parses` and `parsing`."""
    if one[:3] != other[:3]:
        return False
    same = 3
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    return one[same:] in ENDINGS and other[same:] in ENDINGS


def _groups(text: str) -> list[list[NameToken]]:
    """Return the names of a text; adjacent names of a script without spaces form one group."""
    groups: list[list[NameToken]] = []
    for piece in text.split():
        joins = False
        for name in named(piece):
            unspaced = is_unspaced(name)
            if unspaced and joins:
                groups[-1].append(name)
            elif name.parts:
                groups.append([name])
            joins = unspaced
    return groups


def _replaced(name: NameToken, similar: Mapping[str, str]) -> NameToken:
    return NameToken([similar.get(part, part) for part in name.parts])


def _without_stop(groups: Sequence[list[NameToken]], asks_more: bool) -> list[list[NameToken]]:
    kept = [group for group in groups if len(group) > 1 or not STOP.issuperset(group[0].parts)]
    return kept if kept or asks_more else list(groups)


def _exact(group: Sequence[NameToken]) -> str:
    phrase = _phrase([part for name in group for part in name.parts])
    return f'({phrase} OR "{group[0].whole}")' if len(group) == 1 and group[0].whole else phrase


def _starts_word(group: Sequence[NameToken]) -> str:
    if not _can_begin(group):
        return _exact(group)
    return f"({_exact(group)} OR {_phrase(group[0].parts)} *)"


def _can_begin(group: Sequence[NameToken]) -> bool:
    return len(group) == 1 and len(group[0].parts[-1]) >= BEGINNING_LEAST


def _single(group: Sequence[NameToken]) -> list[str]:
    """Return the words of a group one by one; in a script without spaces, pairs of characters."""
    parts = [part for name in group for part in name.parts]
    if len(group) > 1:
        return [_phrase(parts[at : at + 2]) for at in range(len(parts) - 1)]
    return [_phrase([part]) for part in (*parts, group[0].whole) if part]


def _phrase(parts: Sequence[str]) -> str:
    return '"' + " ".join(parts[:WORDS_MAX]) + '"'  # words contain only letters and digits


def _all(expressions: Iterable[str]) -> str | None:
    return " AND ".join(dict.fromkeys(each for each in expressions if each)) or None


def _any(expressions: Sequence[str]) -> str:
    return f"({' OR '.join(expressions)})" if expressions else ""
