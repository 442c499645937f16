"""Similar names: for suggestions, for searches of the roster and, with --fuzzy and under strict conditions, for writes.

Imported where needed, and rapidfuzz only for a comparison: its import costs twice the start of Python.
"""

from __future__ import annotations

from .. import records
from ..records.ids import unit_key
from ..text.name_matching import fold
from ..text.sanitize import within
from . import presence
from .presence import Presence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..store import Store

SUGGESTIONS_MAX = 3
# Share of equal characters, for searches and suggestions: half accepts `plnk` → Planck and rejects unrelated
# names. No share is safe for identifiers: `…:host8` has 0.95 of `…:host7`.
SIMILARITY_MIN = 0.5
# For a write: one or two edits, and at most one in three characters. Names of the pool are more than two edits
# apart, so a name with one typo is at least two edits from every other name. Hence the gap.
WRITE_EDITS_MAX = 2
PERSON_MIN = 0.8  # share of equal characters of a person's name
PEOPLE_MAX, IDENTITIES_MAX = 50, 10_000
NAME_MAX = 64  # columns
WRITE_GAP = 2


def is_known(store: Store, text: str) -> bool:
    """Return whether a session has or had this name, or this id or identity is known."""
    return bool(
        presence.readers_named(store.db(), text)
        or presence.is_known_reader(store, text)
        or presence.get(store, text)
    )


def suggestions(store: Store, text: str, *, here: bool = False) -> list[str]:
    """Return at most three sessions or identities that could be meant, each with distinguishing details.

    Args:
        here: Only those of sessions that were started in this clone.
    """
    folded = fold(text)
    found: dict[str, tuple[float, str]] = {}
    before = presence.last_holder(store, folded)
    if before is not None and (before.here or not here):
        found[before.reader] = (1.0, presence.describe(before, before.reader))
    for score, one in _ranked(store, text):
        if score >= SIMILARITY_MIN and (one.here or not here):
            found.setdefault(
                one.reader, (score, presence.describe(one, one.name if one.held else one.reader))
            )
    for score, identity in _identities(store, text):
        if score >= SIMILARITY_MIN and identity not in found:
            sessions = presence.of_identity(store, identity)
            if here and not any(one.here for one in sessions):
                continue
            found[identity] = (score, presence.describe(sessions[0], identity) if sessions else identity)
    for score, identity, name in [] if here else _people(store, text):
        if score >= PERSON_MIN:
            found[identity] = (score, f"{identity} ({name})")
    best = sorted(found.values(), key=lambda each: -each[0])
    return [words for _, words in best[:SUGGESTIONS_MAX]]


def clearly_nearest(store: Store, text: str) -> Presence | None:
    """Return the session that a write may go to for a misspelt name; None in any doubt, also if there are too many to read.

    Two neighbouring letters in the wrong order are one edit.
    """
    from rapidfuzz.distance import OSA

    query = fold(text)
    if _has_digit(query):
        return None
    held = [one for one in presence.shown(store, most=presence.READ_MAX + 1).values() if one.held]
    edits = sorted((OSA.distance(query, fold(one.name)), one.session_id, one) for one in held)
    if not 0 < len(edits) <= presence.READ_MAX:
        return None
    least, _, one = edits[0]
    if least > WRITE_EDITS_MAX or 3 * least > len(query) or _has_digit(one.name):
        return None
    return one if len(edits) == 1 or edits[1][0] >= least + WRITE_GAP else None


def matching(store: Store, text: str, *, all: bool, most: int) -> list[Presence]:
    """Return the sessions that a roster query means, of so many: first those that contain the text, then similar ones."""
    ranked = _ranked(store, text, all=all, most=most)
    return [one for score, one in ranked if score >= SIMILARITY_MIN]


def _ranked(
    store: Store, text: str, *, all: bool = False, most: int = presence.READ_MAX
) -> list[tuple[float, Presence]]:
    scored = [(_score(text, one), one) for one in presence.shown(store, all=all, most=most).values()]
    return sorted(scored, key=lambda each: (-each[0], -each[1].last_seen, each[1].session_id))


def _score(text: str, one: Presence) -> float:
    """Return from 0 to 1 how well the text fits the session's name, identity or other fields."""
    from rapidfuzz.distance import Levenshtein

    query = fold(text)
    identity = fold(one.agent_identity or "")
    about = [fold(one.record.get(field, "")) for field in ("lane", "worktree", "initiative_id", "client")]
    about += filter(None, (one.role, one.record.get("lifecycle_role"), one.record.get("specialty_profile")))
    about.append(unit_key(one.wu_id))
    if query in (fold(one.name), identity, one.session_id):
        return 1.0
    if query and (query in identity.split(":") or query in about or unit_key(query) == about[-1]):
        return 0.9
    if len(query) >= 3 and any(query in each for each in (fold(one.name), identity, one.session_id, *about)):
        return 0.8
    return max(Levenshtein.normalized_similarity(query, each) for each in (fold(one.name), identity) if each)


def _identities(store: Store, text: str) -> list[tuple[float, str]]:
    """Return agents and people that the log has seen, regardless of their sessions."""
    from rapidfuzz.distance import Levenshtein

    if ":" not in text and "@" not in text:
        return []
    query = "SELECT reader FROM reader WHERE reader LIKE '%:%' ORDER BY line LIMIT ?"  # those known longest
    rows = store.db().execute(query, (IDENTITIES_MAX,)).fetchall()
    scored = [(Levenshtein.normalized_similarity(fold(text), fold(reader)), reader) for (reader,) in rows]
    return sorted(scored, key=lambda each: (-each[0], each[1]))[: 2 * SUGGESTIONS_MAX]


def _people(store: Store, text: str) -> list[tuple[float, str, str]]:
    """Return the addresses of people by the display names in their latest signals. Anybody can use any display name."""
    from rapidfuzz.distance import Levenshtein

    rows = store.db().execute(
        "SELECT s.sender, l.body FROM (SELECT sender, max(line) AS last FROM signal WHERE sender LIKE 'human:%'"
        " GROUP BY sender ORDER BY last DESC LIMIT ?) s JOIN line l ON l.id = s.last",
        (PEOPLE_MAX,),
    )
    found = []
    for sender, body in rows.fetchall():
        record = records.read_kind("signal", str(body).encode())
        name = within(record.get("sender_name") or "", NAME_MAX) if record is not None else ""
        if name:
            found.append((Levenshtein.normalized_similarity(fold(text), fold(name)), str(sender), name))
    return found


def _has_digit(text: str) -> bool:
    return any(char.isdigit() for char in text)
