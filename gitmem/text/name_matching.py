"""Comparison of names: which are equal, which are similar, and which could deceive."""

from __future__ import annotations

from .addresses import PERSON, words_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SIMILARITY_MIN = 0.5
SIMILAR_MAX = 3

_DIGITS = "0123456789"
# Scripts that count as one: Japanese and Korean use several in one word.
_EAST_ASIAN = frozenset(("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO"))
# Words for a group, for nobody in particular, or for the speaker.
_WORDS = frozenset((
    "all", "anybody", "anyone", "broadcast", "everybody", "everyone", "gitmem", "human", "me", "myself", "nobody", "none",
    "self", "somebody", "someone", "you",
))  # fmt: skip
_ID_PREFIXES = ("h-", "sess-", "sig-")
_ADDRESS_SIGNS = frozenset(
    ",:@\u02d0\u02f8\u0589\u05c3\u1803\u1809\u205a\u2236\ua4fd\ua789"
)  # `:` and its look-alikes
_OPENCODE_LETTERS = 20
_UUID = (8, 4, 4, 4, 12)  # lengths of its parts; clients use UUIDs as session ids


def fold(text: str) -> str:
    """Return the form in which names are compared: NFKC, without case, `_` and space as `-`."""
    if not text.isascii():
        from unicodedata import normalize

        text = normalize("NFKC", normalize("NFKC", text).casefold())
    return text.lower().replace("_", "-").replace(" ", "-")


def is_reserved(text: str) -> bool:
    """Return whether a text reads like an address, an id, an option, a list or a word for a group.

    Nobody may take such a name, and lookups ignore it: peers can write any name into the log.
    """
    folded = fold(text)
    if folded.startswith(_ID_PREFIXES) and strip_numbers(folded) not in (
        "h",
        "sig",
    ):  # `H-2` is the second session named H
        return True
    return is_word(text) or not _ADDRESS_SIGNS.isdisjoint(folded) or _is_uuid(folded)


def is_word(text: str) -> bool:
    """Return whether a text is never an address: an option, signs only, or a word for a group."""
    folded = fold(text)
    return folded.startswith("-") or not any(map(str.isalnum, folded)) or strip_numbers(folded) in _WORDS


def is_reserved_identity(text: str) -> bool:
    """Return whether an agent identity reads like an id, or consists of words for a group.

    No session may take such an identity: other code treats a text that starts like an id as a session or a client.
    """
    return fold(text).startswith(_ID_PREFIXES) or all(map(is_word, words_of(text).split(":")))


def is_client_id(text: str) -> bool:
    """Return whether a text has the form of a client's own session id: a UUID, or OpenCode's `ses_…`.

    A local process chooses these values, so a text of any other form never counts as one: it could be the address or
    the name of another agent.
    """
    start, _, rest = text.partition("_")
    is_opencode = start == "ses" and rest.isascii() and rest.isalnum() and len(rest) >= _OPENCODE_LETTERS
    return is_opencode or _is_uuid(fold(text))


def is_identity(text: str) -> bool:
    """Return whether a text has the form of an agent identity or of a person."""
    if not text.isprintable() or " " in text:
        return False
    text = words_of(text)
    if text.startswith(PERSON):
        name, at, domain = text[len(PERSON) :].partition("@")
        return bool(name and at and domain)
    parts = text.split(":")
    return len(parts) == 3 and all(parts)


def _is_uuid(folded: str) -> bool:
    parts = folded.split("-")
    return tuple(map(len, parts)) == _UUID and not "".join(parts).strip(f"{_DIGITS}abcdef")


def strip_numbers(folded: str) -> str:
    """Return a folded name without trailing `-<number>`s; only names with the same root can replace each other."""
    while True:
        head = folded.rstrip(_DIGITS)
        if head == folded or not head.endswith("-") or head == "-":
            return folded
        folded = head[:-1]


def mixes_scripts(text: str) -> bool:
    """Return whether a text mixes letters of several scripts, such as a Cyrillic `а` that imitates a Latin one."""
    if text.isascii():
        return False
    from unicodedata import category, name, normalize

    scripts = set()
    for char in normalize("NFKC", text):
        if category(char) in ("Ll", "Lu", "Lt", "Lo"):
            script = name(char, "?").partition(" ")[0].partition("-")[0]
            scripts.add("EAST ASIAN" if script in _EAST_ASIAN else script)
    return len(scripts) > 1


def similar(text: str, choices: Mapping[str, str]) -> list[str]:
    """Return at most three choices that a misspelt text may mean, the most similar first.

    Args:
        choices: The form of each in which it is compared with the text; the text has that form, too.
    """
    from rapidfuzz import process
    from rapidfuzz.distance import Levenshtein

    best = process.extract(
        text, dict(sorted(choices.items())), scorer=Levenshtein.normalized_similarity, limit=SIMILAR_MAX, score_cutoff=SIMILARITY_MIN
    )  # fmt: skip
    return [choice for _, _, choice in best]
