"""Whom a name means in this clone if several sessions claim it.

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
from . import presence
from .presence import Presence, format_age

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..store import Store


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
    sessions = presence.of_identity(store, pin.identity) if pin.identity else []
    if not sessions:
        return presence.get(store, pin.session_id)

    def rank(one: Presence) -> tuple[bool, bool, bool, int]:
        return one.is_current, _asks_for(one, pin.name), one.here, one.record_at

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
        aged = sorted(names, key=lambda each: local_files.modified(os.path.join(folder, each)))
        for each in aged[: len(names) - PINS_MAX + 1]:
            local_files.remove_quietly(os.path.join(folder, each))
