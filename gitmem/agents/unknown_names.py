"""Names that nobody has: errors with similar names, remarks about ended sessions, and searches of the roster.

Imported where needed, and rapidfuzz only for a comparison: its import costs twice the start of Python.
"""

from __future__ import annotations

from ..commit_message import sanitize
from ..errors import UsageError
from ..outcome import command
from ..records.ids import unit_key
from ..text.addresses import words_of
from ..text.name_matching import fold, is_identity, is_reserved, is_word
from ..text.sanitize import within
from . import presence
from .presence import Presence, format_age

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..store import Store


SUGGESTIONS_MAX = 3
# Share of equal characters, for searches and suggestions: half accepts `plnk` → Planck and rejects unrelated
# names. No share is safe for identifiers: `…:host8` has 0.95 of `…:host7`.
SIMILARITY_MIN = 0.5
PERSON_MIN = 0.8  # share of equal characters of a person's name
PEOPLE_MAX, IDENTITIES_MAX = 50, 10_000
NAME_MAX = 64  # columns


def is_known(store: Store, text: str) -> bool:
    """Return whether a session has or had this name, or this id or identity is known."""
    return bool(
        presence.readers_named(store.db(), text)
        or presence.is_known_reader(store, text)
        or presence.get(store, text)
    )


def suggested(store: Store, text: str, *, here: bool = False) -> list[str]:
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
    identity = fold(words_of(one.agent_identity or ""))
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
    from . import session_view

    known = session_view.first_identities(store.db(), IDENTITIES_MAX)
    asked = fold(words_of(text))
    scored = [(Levenshtein.normalized_similarity(asked, fold(words_of(each))), each) for each in known]
    return sorted(scored, key=lambda each: (-each[0], each[1]))[: 2 * SUGGESTIONS_MAX]


def _people(store: Store, text: str) -> list[tuple[float, str, str]]:
    """Return the addresses of people by the display names in their latest signals. Anybody can use any display name."""
    from rapidfuzz.distance import Levenshtein

    from . import signal_rows

    found = []
    for record in signal_rows.last_of_people(store.db(), PEOPLE_MAX):
        name = within(record.get("sender_name") or "", NAME_MAX)
        if name:
            likeness = Levenshtein.normalized_similarity(fold(text), fold(name))
            found.append((likeness, record["sender_identity"], name))
    return found


DID_YOU_MEAN = "Did you mean one of these? Check who it is, not only the spelling."


def recipient_error(store: Store, text: str, option: str) -> UsageError:
    """Return the error for an unknown recipient.

    Args:
        store: The open store.
        text: The text as typed.
        option: The option of the text, such as `--to`.
    """
    former = presence.last_holder(store, fold(text)) if text and not is_reserved(text) else None
    if former is not None:
        return _former_name(store, text, option, former)
    suggestions = suggested(store, text)
    hint = DID_YOU_MEAN if suggestions else ""
    next_commands = [
        command("gitmem", "roster", text) if text.isprintable() and 0 < len(text) <= 80 else "gitmem roster"
    ]
    if _has_never_synced(store):
        hint = f"{hint} This clone has never synced: `gitmem sync` fetches the other agents.".strip()
        next_commands.insert(0, "gitmem sync")
    elif is_word(text):
        hint = "This word is reserved and cannot be a name. To reach everybody, use --broadcast."
    elif is_identity(text):
        hint = f"{hint} To send to an identity that is not in the log yet, use --allow-unseen.".strip()
    return UsageError(
        f"{option}: unknown recipient: {sanitize(text)[:80] or '(empty)'}. Nothing was written.",
        hint=hint or "`gitmem roster` lists the agents.",
        code="unknown-recipient",
        suggestions=suggestions,
        next=next_commands,
    )


def caller_error(store: Store, text: str) -> UsageError:
    """Return the error for a `--as` that names nobody. It only suggests sessions of this clone, and never guesses."""
    shown = sanitize(text)[:80] or "(empty)"
    former = presence.last_holder(store, fold(text)) if text and not is_reserved(text) else None
    what = f"; {_why_former(store, text, former)}" if former is not None else ""
    suggestions = suggested(store, text, here=True) if text else []
    return UsageError(
        f"--as: unknown session, identity or name: {shown}{what}. Nothing was written.",
        hint=DID_YOU_MEAN
        if suggestions
        else "Give an exact session id, an agent identity or the name of an active session; "
        "an identity becomes known when its first session starts.",
        code="unknown-session",
        suggestions=suggestions,
        next=["gitmem roster --all", "gitmem session start"],
    )


def ambiguous_id(text: str, found: Sequence[Presence]) -> UsageError:
    """Return the error for a text that is the beginning of several session ids.

    Args:
        text: The text as typed.
        found: The sessions.
    """
    return UsageError(
        f"Ambiguous session id: {sanitize(text)} is the beginning of several. Nothing was written.",
        hint="Use a full id or a longer prefix.",
        code="ambiguous-recipient",
        suggestions=[presence.describe(one, one.session_id) for one in found[:3]],
        next=["gitmem roster --all"],
    )


def _former_name(store: Store, text: str, option: str, former: Presence) -> UsageError:
    """Return the error for a name that a session had and no longer has."""
    shown, what = sanitize(text)[:80], _why_former(store, text, former)
    to = sanitize(former.reader)
    if former.agent_identity is not None and former.ended is not None:
        hint = f"To reach the next session of the same agent, send to its identity: --to {to}."
    elif former.ended is not None and former.harness_session is not None:
        hint = f"Its conversation reads it if it is resumed: --to {to}. The roster has the agents at work."
    elif former.ended is not None:
        hint = (
            "It has no agent identity, so no later session reads its signals. Send to an agent in the roster."
        )
    else:
        hint = f"To reach it anyway, send to {to}."
    return UsageError(
        f"{option}: unknown recipient: {shown}; {what}. Nothing was written.",
        hint=hint,
        code="unknown-recipient",
        suggestions=suggested(store, text),
        next=["gitmem roster"],
    )


def _why_former(store: Store, text: str, former: Presence) -> str:
    """Return what became of the session that had a name."""
    session = f"the session of that name, {former.session_id},"
    if former.ended is not None:
        return f"{session} ended {format_age(store.now() - former.ended)}"
    if fold(former.name) != fold(text):
        return f"{session} is now called {sanitize(former.name)}"
    return f"{session} was last seen {format_age(former.age)}, and the name is free"


def ended_session(session: Presence, now: int) -> str:
    """Return the remark for signals to the id of an ended session.

    Args:
        session: The session; `ended` is set.
        now: Microseconds since the epoch.
    """
    when = f"{sanitize(session.name)} ({session.session_id}) ended {format_age(now - (session.ended or now))}"
    if session.agent_identity is not None:
        return f"{when}; this is sent to its identity {sanitize(session.agent_identity)}, whose sessions all read it."
    if session.harness_session is not None:
        return f"{when} and has no agent identity: only its conversation reads this, if it is resumed. `gitmem roster` lists active agents."
    return f"{when} and has no agent identity, so no later session reads this. `gitmem roster` lists active agents."


def ended_identity(identity: str, latest: Presence, now: int) -> str:
    """Return the remark for signals to an identity whose sessions have all ended.

    Args:
        identity: The agent identity.
        latest: Its session that was seen last; `ended` is set.
        now: Microseconds since the epoch.
    """
    when = f"the last one, {sanitize(latest.name)}, {format_age(now - (latest.ended or now))}"
    return f"All sessions of {sanitize(identity)} have ended ({when}); its next session reads this."


def unheld_identity(identity: str) -> str:
    """Return the remark for signals to a known identity that no session has."""
    return f"No session has the identity {sanitize(identity)} now: the signal is read when one takes it."


def _has_never_synced(store: Store) -> bool:
    from ..log.ref import REMOTES_PREFIX

    return not store.git.refs(REMOTES_PREFIX) and store.has_remote()
