"""Names as this clone has used them: a name keeps the holder of its first use.

A peer can push a session that claims any name since any time, and the log then shows the name for that session. This
clone therefore notes each name that it wrote to, acted as or started a session under, in a file of its own. Pins are
local: a pin decides whom a typed name means here, or makes a command refuse; it never changes what the log shows.
Deleting the files is safe.
"""

from __future__ import annotations

import os

from .. import atomic_write, state_files
from ..digests import sha256
from ..errors import UsageError
from ..text.name_matching import fold, is_reserved, strip_numbers
from ..text.sanitize import sanitize
from . import own_recipients, own_sessions, presence
from .presence import HOLD_MICROS, Presence, format_age

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..store import Store

FOLDER = "pins"
PINS_MAX = 1000
FILE_MAX_BYTES = 4096


class NamePin:
    """A name, and whom it meant at its first use here.

    Attributes:
        name: The name as displayed then.
        session_id: The session that had it.
        identity: The agent identity of that session, or "".
    """

    def __init__(self, name: str, session_id: str, identity: str) -> None:
        self.name = name
        self.session_id = session_id
        self.identity = identity


def read(store: Store, name: str) -> NamePin | None:
    """Return the pin of a name in any spelling, or None if there is no readable one."""
    return _parse(_content(_path(store, name)), fold(name))


def find(store: Store, name: str, *, code: str = "ambiguous-recipient") -> tuple[Presence, str | None] | None:
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
    pin = None if is_reserved(name) else read(store, name)  # identities and ids are exact
    kept = _holder(store, pin) if pin is not None else None
    if pin is None or kept is None or (not kept.is_current and store.now() >= kept.record_at + HOLD_MICROS):
        return None
    own_recipients.refuse_changed_identity(store, name, pin.identity, kept, code)
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
    pin = None if is_reserved(shown.name) else read(store, shown.name)
    kept = _holder(store, pin) if pin is not None else None
    if kept is None or kept.reader == shown.reader or not (kept.is_current and _asks_for(kept, shown.name)):
        return None
    return (
        f"In this clone the name {sanitize(shown.name)} means {sanitize(kept.reader)}, which had it here first and is shown as "
        f"{sanitize(kept.name)}; send to the other one with --to {sanitize(shown.reader)}."
    )


def note(store: Store, name: str, session_id: str, identity: str | None) -> None:
    """Pin a displayed name to its present holder. A state folder that can't be written is not an error.

    Args:
        session_id: The session that has the name.
        identity: Its agent identity.
    """
    path = _path(store, name)
    content = "\n".join((name, session_id, identity or "", "")).encode("utf-8", "replace")
    before = _content(path)
    known = _parse(before, fold(name))
    if before == content or (known is not None and identity and known.identity == identity):
        return
    try:
        if before is None:
            _evict_oldest(os.path.dirname(path))
        atomic_write.replace(path, content)
    except OSError:
        return


def replace(store: Store, one: Presence, *former: str) -> None:
    """Pin the name that a session of this clone has taken, and remove the pins of the names that it gave up."""
    for name in former:
        pin = read(store, name)
        if pin is not None and pin.session_id == one.session_id:
            atomic_write.remove_quietly(_path(store, name))
    note(store, one.name, one.session_id, one.agent_identity)


def unreadable(store: Store) -> Iterator[str]:
    """Yield the paths of pins that can't be read, for doctor. Their names are not pinned."""
    folder = os.path.join(store.repo.state, FOLDER)
    for entry in atomic_write.names_in(folder):
        path = os.path.join(folder, entry)
        pin = _parse(_content(path), None)
        if (pin is None or path != _path(store, pin.name)) and not entry.startswith(atomic_write.TEMPORARY):
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
    """Return the session of a pin; if its identity has several, one that is at work and asks for the name."""
    sessions = own_recipients.of_identity(store, pin.identity) if pin.identity else []
    if not sessions:
        return own_sessions.trusted(store, pin.session_id)
    return max(sessions, key=lambda one: (one.is_current, _asks_for(one, pin.name), one.record_at))


def _asks_for(one: Presence, name: str) -> bool:
    """Return whether a session shows under a name, or would if no other session claimed it."""
    return fold(one.name) == fold(name) or strip_numbers(fold(one.asked)) == strip_numbers(fold(name))


def _path(store: Store, name: str) -> str:
    return os.path.join(
        store.repo.state, FOLDER, sha256(fold(name).encode("utf-8", "replace")).hexdigest()[:32]
    )


def _content(path: str) -> bytes | None:
    return state_files.read(path, FILE_MAX_BYTES) or None


def _parse(content: bytes | None, folded: str | None) -> NamePin | None:
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
    state_files.make_dirs(folder)
    names = atomic_write.names_in(folder)
    if len(names) >= PINS_MAX:
        aged = sorted(names, key=lambda each: _modified(os.path.join(folder, each)))
        for each in aged[: len(names) - PINS_MAX + 1]:
            atomic_write.remove_quietly(os.path.join(folder, each))


def _modified(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0
