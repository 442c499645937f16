"""Waking: the clients of sessions that wait for their user are told that a directed signal waits for them. No process waits for that.

The committer does so as it starts, when the signal is durable, and so does a sync, for what it brings. The client is told one line that names
the signal and never has its text: a hook of the turn that follows shows that. A session is woken once for a signal, at most once
a minute, and at most `WAKES_MAX` times until somebody types something to it; only by writers who are this user or known to it. A
failed attempt counts only if the client may have received it. Which sessions were woken is recorded in this clone alone, not in receipts. Below the state folder

- `wakes/<session id>`: a row for each wake: its time, that of the user's last prompt before, and the signals. Two locks are beside them;
- `turns/<process>`: written by hooks of the client that is this process: empty while a turn goes on, whose tool calls touch the session's
  heartbeat. `turns/<process>.word` is touched when somebody gives it a prompt.
"""

from __future__ import annotations

import os
import time

from .. import local_files
from ..errors import StoreError
from ..log.lines import writer_of
from ..log.lock import Lock
from ..outcome import Struct
from ..records.ids import is_id
from . import delivery, doors, heartbeats, mailbox, presence
from .heartbeats import TURNS, WAKES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..store import Store
    from .delivery import WaitingSession
    from .doors import Door
    from .presence import Presence

SECOND = 1_000_000
MINUTE = 60 * SECOND
WAKES_MAX = 5
ROWS_KEPT = 20
IDS_KEPT = 500  # of a row
FILE_MAX = 256 * 1024
QUIET_MICROS = 10 * MINUTE  # a turn that was interrupted has no end; without a sign for so long it is over
BEGIN_SECONDS = 1.0  # for all doors before the commit, which does not wait for more of them
STEP_SECONDS = 5.0
OVER = b"over\n"
LINE = "A gitmem message waits for you: "
_LINE = LINE + "{id}{more}. A hook shows it with this turn; if none does, run `gitmem inbox`."
SPENT = f"no, woken {WAKES_MAX} times since somebody typed something to it"


class Wake(Struct):
    """A wake: its time and that of the user's last prompt before, in microseconds, and the signals that waited, the one that was named first."""

    at: int
    word: int
    ids: list[str]


class Waker:
    """One look at the sessions that have doors."""

    def __init__(self, store: Store, ask: Callable[..., str] = doors.ask) -> None:
        self.store = store
        self._ask = ask
        self.state = store.repo.state
        self._writers: dict[str, bool] = {}

    def run(self, seconds: float) -> int | None:
        """Wake whom a signal waits for; return the microseconds until another look is due, None if none is.

        Args:
            seconds: After so much time nobody else is woken by this look.
        """
        store = self.store
        here = heartbeats.all_last_seen(store)
        doored = [each for each in doors.sessions(store.doors_folder) if each in here]
        if not doored:
            return None
        store.db()  # raises the flags of hooks, too
        until = time.monotonic() + seconds
        waiting = [each for each in delivery.waiting_sessions(store) if each.session_id in doored]
        due: list[int] = []
        for session in sorted(waiting, key=lambda each: -here[each.session_id]):
            unread = session.unread(store, directed=True)
            same = [each.session_id for each in waiting if each.reader == session.reader]
            told = {id for each in same for row in wakes_of(self.state, each) for id in row.ids}
            if not (new := sorted(filter(self._may_wake, unread - told))):
                continue
            if time.monotonic() >= until:
                due.append(0)
                break
            found = self._wake(session, new)
            due += [found] if found is not None else []
        return min(due, default=None)

    def _wake(self, session: WaitingSession, new: list[str]) -> int | None:
        store = self.store
        door = doors.read(store.doors_folder, session.session_id)
        lock = Lock(os.path.join(self.state, WAKES, f"{session.session_id}.lock"))
        if door is None or not _make_folder(self.state) or not lock.take():
            return None
        with lock:
            rows, now = wakes_of(self.state, session.session_id), store.now()
            word = last_word(self.state, door)
            if is_spent(rows, word):
                return None
            since = now - rows[-1].at if rows else MINUTE
            if 0 <= since < MINUTE:
                return MINUTE - since
            turn = Turn(self.state, door.pid, heartbeats.last_seen(store, session.session_id))
            more = f" (and {len(new) - 1} more)" if new[1:] else ""
            answer = self._ask(door, _LINE.format(id=new[0], more=more), is_idle=turn.is_over(now))
            if answer == doors.WOKEN or answer.endswith(doors.LATE):
                ids = new if answer == doors.WOKEN else []  # else another try names them
                _write(self.state, session.session_id, [*rows, Wake(now, word, ids)])
            # The client has run its last hook, and does not say yet that the turn is over.
            return (
                SECOND if answer == doors.BUSY and turn.is_over(now) and turn.age(now) < 5 * SECOND else None
            )

    def _may_wake(self, signal_id: str) -> bool:
        """Return whether all who wrote lines of a signal may wake somebody."""
        found = mailbox.contents_of(self.store.db(), signal_id)
        return bool(found) and all(self._is_known(writer_of(line)) for line, _ in found)

    def _is_known(self, writer: str) -> bool:
        """Return whether a writer is this user, one of the two goes on as the other, or `.gitmem/signers` knows it."""
        if writer not in self._writers:
            from ..index import grants
            from . import other_keys, signers

            store = self.store
            of = grants.relations(store.db(), own).get(writer) if (own := store.own_writer()) else None
            self._writers[writer] = bool(writer) and (
                writer in store.own().writers
                or (of is not None and bool((of.is_accepted and of.gives) or (of.accepts and of.takes)))
                or bool(other_keys.known_for(store, signers.read(store), writer))
            )
        return self._writers[writer]


def begin(store: Store, ask: Callable[..., str] = doors.ask) -> None:
    """Wake whom a signal waits for, before a commit. Never raises: what was not done is done after the commit."""
    _look(Waker(store, ask), BEGIN_SECONDS)


def stay(
    store: Store, sleep: Callable[[float], object] = time.sleep, ask: Callable[..., str] = doors.ask
) -> None:
    """Wake whom a signal waits for; stay while somebody may be woken only in a moment, unless another process does. Never raises."""
    while (due := _look(Waker(store, ask))) is not None:
        lock = Lock(os.path.join(store.repo.state, WAKES, "lock"))
        try:
            if not _make_folder(store.repo.state) or not lock.take():
                return
        except StoreError:
            return
        with lock:
            while due is not None:
                sleep(min(due / SECOND, STEP_SECONDS))
                due = _look(Waker(store, ask))


def _look(waker: Waker, seconds: float = 60.0) -> int | None:
    try:
        return waker.run(seconds)
    except Exception:  # what was recorded is recorded, and the next occasion looks again
        return None


def wakes_of(state: str, session_id: str) -> list[Wake]:
    """Return the last wakes of a session, in their order."""
    found = []
    content = local_files.read(os.path.join(state, WAKES, session_id), FILE_MAX).decode("utf-8", "replace")
    for row in content.split("\n"):
        at, _, rest = row.partition(" ")
        word, _, ids = rest.partition(" ")
        if at.isdecimal() and word.isdecimal() and len(at) < 18 and len(word) < 18:
            found.append(Wake(int(at), int(word), [each for each in ids.split(" ") if is_id("sig", each)]))
    return found


def _write(state: str, session_id: str, rows: list[Wake]) -> None:
    content = "".join(f"{row.at} {row.word} {' '.join(row.ids[:IDS_KEPT])}\n" for row in rows[-ROWS_KEPT:])
    local_files.try_replace(os.path.join(state, WAKES, session_id), content.encode())


def _make_folder(state: str) -> bool:
    try:
        local_files.make_dirs(os.path.join(state, WAKES))
    except OSError:
        return False
    return True


class Turn:
    """What hooks noted last of the client that is a process.

    Args:
        seen: The last heartbeat of its session, in microseconds since the epoch.
    """

    def __init__(self, state: str, pid: int, seen: int) -> None:
        path = os.path.join(state, TURNS, str(pid))
        self._goes_on = not local_files.read(path, 64)
        self._at = int(local_files.modified(path) * SECOND)
        self._seen = seen

    def age(self, now: int) -> int:
        """Return the microseconds since its begin or end."""
        return now - self._at

    def is_over(self, now: int) -> bool:
        """Return whether no turn goes on, as far as is known."""
        return not (self._at and self._goes_on) or now - max(self._at, self._seen) > QUIET_MICROS


def note_turn(state: str, pid: int, *, is_over: bool) -> None:
    """Note whether a client's turn is over, where its hook script can't know it. Never raises."""
    if pid:
        path = os.path.join(state, TURNS, str(pid))
        local_files.try_replace(path, OVER if is_over else b"", folders=True)


def forget_turn(state: str, pid: int) -> None:
    """Forget what a process with this id did before."""
    for name in (str(pid), f"{pid}.word"):
        local_files.remove_quietly(os.path.join(state, TURNS, name))


def last_word(state: str, door: Door) -> int:
    """Return when somebody gave a session its last prompt, or began it, in microseconds."""
    return max(door.noted, int(local_files.modified(os.path.join(state, TURNS, f"{door.pid}.word")) * SECOND))


def is_spent(rows: list[Wake], word: int) -> bool:
    """Return whether a session was woken so often since its user's last word that nobody wakes it any more."""
    return sum(row.at > word for row in rows) >= WAKES_MAX


def skip_word(store: Store, session_id: str | None, prompt: object) -> None:
    """Do not count the prompt that has just come as a word of the session's user if it is the line of a wake. Never raises."""
    if not session_id or not isinstance(prompt, str) or LINE not in prompt:
        return
    row = next(
        (row for row in wakes_of(store.repo.state, session_id)[::-1] if row.ids and row.ids[0] in prompt),
        None,
    )
    door = doors.read(store.doors_folder, session_id)
    if row is not None and door is not None:  # without the file nothing counts
        word = os.path.join(store.repo.state, TURNS, f"{door.pid}.word")
        local_files.try_utime(word, (row.word * 1000, row.word * 1000))


def says(store: Store, session_id: str) -> str:
    """Return whether a session of this clone is woken, and by what or why not, in words."""
    door = doors.read(store.doors_folder, session_id)
    if door is not None and is_spent(
        wakes_of(store.repo.state, session_id), last_word(store.repo.state, door)
    ):
        return SPENT
    return doors.says(door)


def woken(store: Store, signal_id: str | None = None) -> Iterator[tuple[Presence, str, int]]:
    """Yield which session was woken for which signal, and when, in microseconds; the last wake of a session first.

    Args:
        signal_id: Only wakes for this signal.
    """
    for name in sorted(local_files.names_in(os.path.join(store.repo.state, WAKES))):
        one = presence.get(store, name) if is_id("sess", name) else None
        for row in wakes_of(store.repo.state, name)[::-1] if one is not None else ():
            for id in row.ids:
                if one is not None and signal_id in (None, id):
                    yield one, id, row.at
