"""What sessions of this clone have to be told at their next command or hook: about claims, and about tasks that collide.

Local files in the state folder. `claims/notices/<session id>` has the sentences that wait; `claims/told/<session id>` has words for what the
session was told once, the latest last. The time of `claims/due/<session id>` is when its claims are to be renewed.
"""

from __future__ import annotations

import os

from .. import atomic_write, state_files
from . import heartbeats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..store import Store

NOTICES, TOLD, DUE = (
    os.path.join("claims", name) for name in ("notices", "told", "due")
)  # below the state folder
NOTICES_MAX = 4_000  # bytes for a session
TOLD_MAX = 5_000  # words for a session
_MORE = "There is more about claims: gitmem claim list"


def has_news(state: str, session: str, now: int) -> bool:
    """Return whether a session has to be told something, or has a claim to renew."""
    if not heartbeats.is_safe(session):
        return False
    return renews(state, session, now) or os.path.exists(os.path.join(state, NOTICES, session))


def renews(state: str, session: str, now: int) -> bool:
    """Return whether a session has a claim to renew."""
    if not heartbeats.is_safe(session):
        return False
    try:
        return os.stat(os.path.join(state, DUE, session)).st_mtime_ns // 1000 <= now
    except OSError:
        return False


def told(state: str, session: str) -> dict[str, None]:
    """Return the words for what a session was told once, the latest last."""
    return dict.fromkeys(os.fsdecode(state_files.read(os.path.join(state, TOLD, session))).split())


def note_told(state: str, session: str, words: Iterable[str]) -> None:
    """Note what a session was told, beside what it was told before; of more than `TOLD_MAX` words the latest are kept.

    Raises:
        OSError: It can't be written.
    """
    where = os.path.join(state, TOLD, session)
    state_files.make_dirs(os.path.dirname(where))
    latest = [*told(state, session) | dict.fromkeys(words)][-TOLD_MAX:]
    atomic_write.replace(where, os.fsencode(" ".join(latest)))


def tell_once(store: Store, news: Callable[[], Iterable[tuple[str, str, str]]]) -> bool:
    """Have sessions told each of these sentences that they were not told before. Never raises: the next call repeats the work.

    Args:
        news: Returns the session, a word for what the sentence is about, and the sentence.

    Returns:
        Whether that was done for all of them.
    """
    state = store.repo.state
    try:
        for session, about, text in news():
            if heartbeats.is_safe(session) and about not in told(state, session):
                tell(store, session, text)
                note_told(state, session, [about])
    except Exception:
        return False
    return True


def tell(store: Store, session: str, text: str) -> None:
    """Have a session of this clone told something at its next command or hook.

    Raises:
        OSError: It can't be written.
    """
    if not heartbeats.is_safe(session):
        return
    where = os.path.join(store.repo.state, NOTICES, session)
    before = state_files.read(where)
    if len(before) + len(text.encode("utf-8", "replace")) > NOTICES_MAX:
        text = _MORE
        if text.encode() in before:
            return
    state_files.make_dirs(os.path.dirname(where))
    atomic_write.replace(where, before + text.encode("utf-8", "replace") + b"\n")
    names = heartbeats.flag_names(session, heartbeats.client_of(store, session))
    heartbeats.raise_flags(store.repo.state, names, urgent=True)


def forget_others(store: Store) -> None:
    """Remove the files of sessions that this clone has forgotten, or does not have."""
    for folder in (os.path.join(store.repo.state, name) for name in (NOTICES, TOLD)):
        for name in atomic_write.names_in(folder):
            if not heartbeats.is_here(store, name):
                atomic_write.remove_quietly(os.path.join(folder, name))


def take(state: str, session: str) -> list[str]:
    """Return what a session has to be told, once."""
    if not heartbeats.is_safe(session):
        return []
    where = os.path.join(state, NOTICES, session)
    lines = state_files.read(where).decode("utf-8", "replace").splitlines()
    if lines:
        atomic_write.remove_quietly(where)
    return lines


def drop(state: str, session: str, beginning: str) -> list[str]:
    """Drop and return the sentences with this beginning, which an answer to the session has. Never raises: it is told twice then."""
    if not heartbeats.is_safe(session):
        return []
    where = os.path.join(state, NOTICES, session)
    lines = state_files.read(where).splitlines(keepends=True)
    left = [each for each in lines if not each.startswith(beginning.encode())]
    try:
        if left and len(left) < len(lines):
            atomic_write.replace(where, b"".join(left))
        elif lines and not left:
            atomic_write.remove_quietly(where)
    except OSError:
        pass
    return [each.decode("utf-8", "replace").rstrip("\n") for each in lines if each not in left]
