"""Whom a name means in this clone, if lines of the log disagree about a session, or several sessions claim the name.

A peer can push a session that claims any name since any time, and the log then shows the name for that session. This
clone therefore notes each name that it wrote to, acted as or started a session under, in a file of its own. Pins are
local: a pin decides whom a typed name means here, or makes a command refuse; it never changes what the log shows.
Deleting the files is safe.
"""

from __future__ import annotations

import os

from .. import local_files
from ..errors import UsageError
from ..order.session import HOLD_MICROS
from ..outcome import Struct
from ..text.digests import sha256
from ..text.name_matching import fold, is_reserved, mixes_scripts, strip_numbers
from ..text.sanitize import sanitize
from ..trust import sender_tables
from . import presence
from .presence import Presence, format_age

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..store import Store


def corrected(store: Store, found: Presence) -> tuple[Presence, str | None]:
    """Return a session named by its id as its own lines show it, and a warning if forged lines differ."""
    if not sender_tables.is_forged(store.db(), (found.session_id,)):
        return found, None
    own = presence.trusted(store, found.session_id) or found
    if own.reader == found.reader:
        return own, _difference(found, own)
    return own, (
        f"Records not written in this clone claim that {found.session_id} is {sanitize(found.reader)}; by its own records "
        f"it is {own.reader}, which receives this. `gitmem doctor` lists them."
    )


def own_named(store: Store, name: str) -> list[Presence]:
    """Return this clone's open sessions with forged lines that have this name by their own lines."""
    return [own for _, own in _forged_sessions(store) if own.ended is None and _has_name(own, name)]


def of_identity(store: Store, identity: str) -> list[Presence]:
    """Return the sessions of an agent identity; those of this clone by their own lines alone."""
    forged = {own.session_id: own for _, own in _forged_sessions(store)}
    others = [one for one in presence.of_identity(store, identity) if one.session_id not in forged]
    return [*others, *(own for own in forged.values() if own.agent_identity == identity)]


def of_role(store: Store, lifecycle_role: str, specialty_profile: str | None) -> list[Presence]:
    """Return the open sessions with a role as `presence.of_role` does; those of this clone by their own lines alone."""
    forged = {own.session_id: own for _, own in _forged_sessions(store)}
    found = [*presence.of_role(store, lifecycle_role, specialty_profile)]
    found = [one for one in found if one.session_id not in forged]
    wanted = (lifecycle_role, specialty_profile)
    for own in forged.values():
        stated, profile = (own.record.get(name) for name in ("lifecycle_role", "specialty_profile"))
        if own.ended is None and wanted in ((stated, profile), (stated, None)):
            found.append(own)
    return found


def forgery_warning(store: Store, session_id: str | None = None) -> str | None:
    """Return what forged lines change about open sessions of this clone, or None.

    Args:
        session_id: The only session to check. Without it, the first one found is described and the others counted.
    """
    found = []
    for shown, own in _forged_sessions(store):
        difference = _difference(shown, own) if session_id in (None, own.session_id) else None
        if difference is not None:
            found.append(difference)
    if not found:
        return None
    return found[0] + (f" {len(found) - 1} more sessions of this clone are affected." if found[1:] else "")


def _difference(shown: Presence, own: Presence) -> str | None:
    """Return what the log shows of an open session against its own lines, or None."""
    if own.ended is not None:
        return None
    claims = []
    if shown.ended is not None:
        claims.append("has ended")
    if fold(shown.asked) != fold(own.asked):
        claims.append(f"is called {sanitize(shown.asked)[:80]}")
    if shown.reader != own.reader:
        claims.append(f"is {sanitize(shown.reader)}")
    if not claims:
        return None
    return (
        f"FORGED: records not written in this clone claim that {own.session_id} {' and '.join(claims)}. By its own records it "
        f"is open, and is {own.name} ({own.reader}). `gitmem doctor` lists them."
    )


def refuse_redirected(store: Store, text: str, found: Sequence[Presence]) -> None:
    """Reject a name that forged lines gave to a session of this clone, or took from one.

    Args:
        text: The name as typed.
        found: The sessions that the log shows for it.

    Raises:
        UsageError: The own lines of the session differ.
    """
    shown = {one.session_id: one for one in found}
    for _, own in _forged_sessions(store):
        other = shown.get(own.session_id)
        is_own = own.ended is None and _has_name(own, text)
        if other is not None and (not is_own or other.reader != own.reader):
            raise _refusal(text, other.reader, own)
        if other is None and is_own and found:
            raise _refusal(text, found[0].reader, own)


def of_published_client(store: Store, value: str) -> Presence | None:
    """Return the latest open session that was started here under the published id of a client of this clone."""
    if not sender_tables.is_own(store.db(), value):
        return None
    ids = presence.ids_under(store.db(), value)
    every = [presence.trusted(store, id) for id in ids if sender_tables.is_own(store.db(), id)]
    own = [one for one in every if one is not None and one.ended is None and one.harness_session == value]
    return max(own, key=lambda one: (one.started, one.session_id), default=None)


def _forged_sessions(store: Store) -> Iterator[tuple[Presence, Presence]]:
    """Yield each session of this clone with forged lines: as the log shows it, and by its own lines."""
    for name in sender_tables.forged_names(store.db(), "sess-"):
        shown = presence.get(store, name) if sender_tables.is_own(store.db(), name) else None
        own = presence.trusted(store, shown.session_id) if shown is not None else None
        if shown is not None and own is not None:
            yield shown, own


def _has_name(own: Presence, text: str) -> bool:
    return fold(text) == fold(own.name)


def _refusal(text: str, shared: str, own: Presence) -> UsageError:
    shown = sanitize(text)[:80]
    return UsageError(
        f"{shown} means {sanitize(shared)} according to records not written in this clone; its session {own.session_id} "
        f"is {own.reader} ({sanitize(own.name)}) by its own records. Nothing was written.",
        hint="Use the session id or the identity that you mean. `gitmem doctor` lists the records.",
        code="ambiguous-recipient",
        suggestions=[own.session_id, sanitize(shared)],
        next=["gitmem doctor", "gitmem roster --all"],
    )


def trusted_only(store: Store, found: Sequence[Presence]) -> list[Presence]:
    """Return sessions as `presence.trusted` does, without those whose identity or name is forged."""
    kept = []
    for one in found:
        if not sender_tables.is_forged(store.db(), (one.session_id,)):
            kept.append(one)
            continue
        own = presence.trusted(store, one.session_id)
        if (
            own is not None
            and own.ended is None
            and (own.reader, fold(own.asked)) == (one.reader, fold(one.asked))
        ):
            kept.append(own)
    return kept


def changed_identity(store: Store, session: Presence) -> str | None:
    """Return why signals to a session go to its id and not to its identity, or None if they go to the identity."""
    if session.agent_identity is None or sender_tables.is_own(store.db(), session.session_id):
        return None
    if len(presence.identities_had(store.db(), session.session_id)) < 2:
        return None
    return (
        f"The identity of {session.session_id} has changed to {sanitize(session.agent_identity)}. The session "
        "itself receives this, by its id; if you trust the identity, send with --to and that identity."
    )


def took_first_identity(store: Store, session: Presence) -> bool:
    """Return whether a session has had no other identity than its present one, but none when it began."""
    return presence.identities_had(store.db(), session.session_id) == {"", session.agent_identity}


def refuse_changed_identity(store: Store, name: str, identity: str, holder: Presence, code: str) -> None:
    """Reject a name of another clone's session that has changed its identity since the name was pinned here.

    Args:
        name: The name as typed.
        identity: The pinned identity; "" for none: the pin then means the session.
        holder: The session that the pin names.
        code: The code of the error.

    Raises:
        UsageError: The identity differs from the pinned one.
    """
    if (
        not identity
        or identity == holder.agent_identity
        or sender_tables.is_own(store.db(), holder.session_id)
    ):
        return
    shown = sanitize(name)[:80]
    raise UsageError(
        f"{shown} meant {sanitize(identity)} in this clone, but its session {holder.session_id} is "
        f"now {sanitize(holder.reader)}. Nothing was written.",
        hint="Anybody who can push can write such a change. Ask the agent you mean, and use its identity or the id of "
        "the session.",
        code=code,
        suggestions=[holder.session_id, sanitize(identity), sanitize(holder.reader)],
        next=["gitmem roster --all"],
    )


def refuse_mixed(text: str) -> None:
    """Reject a text that mixes scripts.

    Raises:
        UsageError: `unknown-recipient`.
    """
    if not any(mixes_scripts(part) for part in text.split(":")):
        return
    raise UsageError(
        f"{ascii(text)[:80]} mixes letters of several scripts and could imitate another name. "
        "Nothing was written.",
        hint="Type the name, or use the session id from the roster.",
        code="unknown-recipient",
        next=["gitmem roster"],
    )


PINS = "pins"
PINS_MAX = 1000
PIN_MAX_BYTES = 4096


class NamePin(Struct):
    """A name, and whom it meant at its first use here.

    Attributes:
        name: The name as displayed then.
        session_id: The session that had it.
        identity: The agent identity of that session, or "".
    """

    name: str
    session_id: str
    identity: str


def pin_of(store: Store, name: str) -> NamePin | None:
    """Return the pin of a name in any spelling, or None if there is no readable one."""
    return _parse_pin(_pin_content(_pin_path(store, name)), fold(name))


def pinned(
    store: Store, name: str, *, code: str = "ambiguous-recipient"
) -> tuple[Presence, str | None] | None:
    """Return whom a pinned name means here, and a warning if others claim it.

    Args:
        name: The name as typed.
        code: The code of the error.

    Returns:
        None if the name is not pinned or the pin no longer applies. The log then decides.

    Raises:
        UsageError: The holder is gone or has another name, and another session claims this one; or the holder has
            another identity.
    """
    pin = None if is_reserved(name) else pin_of(store, name)  # identities and ids are exact
    kept = _holder(store, pin) if pin is not None else None
    if pin is None or kept is None or (not kept.is_current and store.now() >= kept.record_at + HOLD_MICROS):
        return None
    refuse_changed_identity(store, name, pin.identity, kept, code)
    others = _claimants(store, name, kept)
    shown = sanitize(name)[:80]
    if kept.is_current and _asks_for(kept, name):
        warning = (
            f"{', '.join(others)} also claims the name {shown}. In this clone it still means {kept.reader}."
        )
        return kept, warning if others else None
    if not others:
        return None
    state = (
        f"ended {format_age(store.now() - kept.ended)}"
        if kept.ended is not None
        else f"was last seen {format_age(kept.age)}"
    )
    if kept.is_current:
        state = f"is now called {kept.name}"
    raise UsageError(
        f"{shown} is ambiguous: in this clone it meant {kept.reader}, which {state}, and now {', '.join(others)} claims it. "
        "Nothing was written.",
        hint="Check who they are, then use the id of the one you mean.",
        code=code,
        suggestions=[presence.describe(kept, kept.reader), *others],
        next=["gitmem roster --all"],
    )


def meant_instead(store: Store, shown: Presence) -> str | None:
    """Return a sentence about whom the displayed name of a session means here, if that is another one; else None."""
    pin = None if is_reserved(shown.name) else pin_of(store, shown.name)
    kept = _holder(store, pin) if pin is not None else None
    if kept is None or kept.reader == shown.reader or not (kept.is_current and _asks_for(kept, shown.name)):
        return None
    return (
        f"In this clone the name {sanitize(shown.name)} means {sanitize(kept.reader)}, which had it here first and is shown as "
        f"{sanitize(kept.name)}; send to the other one with --to {sanitize(shown.reader)}."
    )


def note_pin(store: Store, name: str, session_id: str, identity: str | None) -> None:
    """Pin a displayed name to its present holder. A state folder that can't be written is not an error.

    Args:
        session_id: The session that has the name.
        identity: Its agent identity.
    """
    path = _pin_path(store, name)
    content = "\n".join((name, session_id, identity or "", "")).encode("utf-8", "replace")
    before = _pin_content(path)
    known = _parse_pin(before, fold(name))
    if before == content or (known is not None and identity and known.identity == identity):
        return
    try:
        if before is None:
            _evict_oldest(os.path.dirname(path))
        local_files.replace(path, content)
    except OSError:
        return


def repin(store: Store, one: Presence, *former: str) -> None:
    """Pin the name that a session of this clone has taken, and remove the pins of the names that it gave up."""
    for name in former:
        pin = pin_of(store, name)
        if pin is not None and pin.session_id == one.session_id:
            local_files.remove_quietly(_pin_path(store, name))
    note_pin(store, one.name, one.session_id, one.agent_identity)


def unreadable_pins(store: Store) -> Iterator[str]:
    """Yield the paths of pins that can't be read, for doctor. Their names are not pinned."""
    folder = os.path.join(store.repo.state, PINS)
    for entry in local_files.names_in(folder):
        path = os.path.join(folder, entry)
        pin = _parse_pin(_pin_content(path), None)
        if (pin is None or path != _pin_path(store, pin.name)) and not entry.startswith(
            local_files.TEMPORARY
        ):
            yield path


def _claimants(store: Store, name: str, kept: Presence) -> list[str]:
    """Return descriptions of others that the log has for a name: by name, as a client's id, or as an address."""
    found: dict[str, Presence | None] = {one.reader: one for one in presence.of_name(store, fold(name))}
    by_client = presence.of_published_client(store, name)
    if by_client is not None:
        found.setdefault(by_client.reader, by_client)
    if presence.is_known_reader(store, name):
        found.setdefault(name, None)
    found.pop(kept.reader, None)
    found.pop(kept.session_id, None)
    if not found:
        return []
    return [
        presence.describe(one, reader) if one is not None else f"the address {sanitize(reader)[:80]}"
        for reader, one in list(found.items())[:3]
    ]


def _holder(store: Store, pin: NamePin) -> Presence | None:
    """Return the session of a pin; if its identity has several, one that is at work and asks for the name, of this clone if it can be."""
    sessions = of_identity(store, pin.identity) if pin.identity else []
    if not sessions:
        return presence.trusted(store, pin.session_id)
    db = store.db()

    def rank(one: Presence) -> tuple[bool, bool, bool, int]:
        is_own = sender_tables.is_own(db, one.session_id)
        return one.is_current, _asks_for(one, pin.name), is_own, one.record_at

    return max(sessions, key=rank)


def _asks_for(one: Presence, name: str) -> bool:
    """Return whether a session shows under a name, or would if no other session claimed it."""
    return fold(one.name) == fold(name) or strip_numbers(fold(one.asked)) == strip_numbers(fold(name))


def _pin_path(store: Store, name: str) -> str:
    return os.path.join(
        store.repo.state, PINS, sha256(fold(name).encode("utf-8", "replace")).hexdigest()[:32]
    )


def _pin_content(path: str) -> bytes | None:
    return local_files.read(path, PIN_MAX_BYTES) or None


def _parse_pin(content: bytes | None, folded: str | None) -> NamePin | None:
    """Return the pin in a file; None for another name's pin, a torn file or a foreign one."""
    try:
        name, session_id, identity, rest = (content or b"").decode().split("\n")
    except ValueError:
        return None
    if not (name and session_id) or rest or folded not in (None, fold(name)):
        return None
    return NamePin(name, session_id, identity)


def _evict_oldest(folder: str) -> None:
    """Create the folder, and keep it below its limit by removing the oldest pins."""
    local_files.make_dirs(folder)
    names = local_files.names_in(folder)
    if len(names) >= PINS_MAX:
        aged = sorted(names, key=lambda each: _modified(os.path.join(folder, each)))
        for each in aged[: len(names) - PINS_MAX + 1]:
            local_files.remove_quietly(os.path.join(folder, each))


def _modified(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0
