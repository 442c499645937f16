"""Lanes of the page: one for each agent or person, whatever address of it a record has."""

from __future__ import annotations

from ..agents import presence
from ..records.ids import role_of
from .texts import millis, put, short

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from ..agents.presence import Presence
    from ..signals.many_threads import Selection
    from ..store import Store
    from .contract import AgentLane, SessionBar

LANES_MAX = 500
SESSIONS_MAX = 2_000
OTHERS = "others"  # the lane of those beyond `LANES_MAX`
_PERSON = "human:"
_SHOWN = (
    ("wu", "wu_id"),
    ("worktree", "worktree"),
    ("branch", "branch"),
    ("model", "model"),
    ("activity", "activity"),
)


class Lanes:
    """Lanes by address. An address that nobody asked for has none.

    Args:
        sessions: The sessions that the page has.
        most: How many lanes there are beside that of the others.
    """

    def __init__(self, db: sqlite3.Connection, sessions: Sequence[Presence], most: int = LANES_MAX) -> None:
        self._db = db
        self._most = most
        self._readers = {one.session_id: one.reader for one in sessions}
        self._latest: dict[str, Presence] = {}
        for one in sorted(sessions, key=lambda one: (one.ended is None, one.last_seen, one.session_id)):
            self._latest[one.reader] = one
        self._ids: dict[str, str] = {}  # by address
        self._lanes: dict[str, AgentLane] = {}  # by id
        self._by_reader: dict[str, str] = {}
        self.omitted = 0

    def of(self, address: str, at: int | None = None, name: str | None = None) -> str:
        """Return the id of the lane of an address.

        Args:
            address: An agent identity, a session id or a person.
            at: When it did something, milliseconds.
            name: What a record calls it, if no session is known.
        """
        id = self._ids.get(address)
        if id is None:
            id = self._ids[address] = self._of_reader(self._reader_of(address), name)
        if at is not None:
            lane = self._lanes[id]
            if not lane["last"]:
                lane["first"] = lane["last"] = at
            elif at < lane["first"]:
                lane["first"] = at
            elif at > lane["last"]:
                lane["last"] = at
        return id

    def all(self, addresses: Iterable[str]) -> list[str]:
        """Return the ids of the lanes of addresses, each once."""
        return list(dict.fromkeys(map(self.of, addresses)))

    def of_person(self, mail: str) -> str | None:
        """Return the id of the lane of the person with a mail address; None if nothing on the page is of that person."""
        return self._by_reader.get(_PERSON + mail)

    def lanes(self) -> list[AgentLane]:
        """Return all lanes: those at work first, the last at work before others."""
        return sorted(
            self._lanes.values(), key=lambda lane: (not lane["live"], -lane["last"], lane["identity"])
        )

    def _reader_of(self, address: str) -> str:
        if address in self._readers or address in self._latest:
            return self._readers.get(address, address)
        row = self._db.execute(
            "SELECT agent_identity FROM session WHERE session_id = ?", (address,)
        ).fetchone()
        return (row[0] if row else None) or address

    def _of_reader(self, reader: str, name: str | None) -> str:
        if reader in self._by_reader:
            return self._by_reader[reader]
        if len(self._lanes) >= self._most:
            self.omitted += 1
            self._lanes.setdefault(OTHERS, _lane(OTHERS, "others", ""))
            id = OTHERS
        else:
            id = f"a{len(self._lanes)}"
            one = self._latest.get(reader)
            shown = one.name if one is not None else presence.names_by_reader(self._db).get(reader)
            lane = self._lanes[id] = _lane(id, shown or name or reader, reader)
            if one is not None:
                lane["live"] = one.status == "live"
                put(lane, "client", one.record.get("client"))
                put(lane, "role", role_of(one.record))
        self._by_reader[reader] = id
        return id


class SessionBars:
    """The sessions of the page: those that match and were last at work.

    Attributes:
        found: The sessions, the last at work first.
        omitted: How many are left out.
        current: Those that are live or idle, on any work unit: what waits for them may be on another one.
    """

    def __init__(self, store: Store, only: Selection) -> None:
        (total,) = store.db().execute("SELECT count(*) FROM session").fetchone()
        every = presence.latest(store, SESSIONS_MAX)
        self.omitted = total - len(every)
        since = only.since or 0
        self.found = [
            one
            for one in every
            if max(one.last_seen, one.started) >= since
            and only.has_unit(one.wu_id)
            and only.has_any(one.reader, one.session_id)
        ]
        self.current = [one for one in every if one.is_current and only.has_any(one.reader, one.session_id)]

    def bars(self, lanes: Lanes) -> list[SessionBar]:
        """Return the sessions, the oldest first."""
        found = []
        for one in sorted(self.found, key=lambda one: (one.started, one.session_id)):
            start, last = millis(one.started), max(millis(one.started), millis(one.last_seen))
            bar: SessionBar = {
                "id": one.session_id,
                "agent": lanes.of(one.reader, start),
                "name": short(one.name),
                "start": start,
                "last": last,
                "live": one.status == "live",
                "status": one.status,
            }
            lanes.of(one.reader, last)
            if one.ended is not None:
                bar["end"] = millis(one.ended)
            put(bar, "role", role_of(one.record))
            for key, field in _SHOWN:
                put(bar, key, one.record.get(field))
            found.append(bar)
        return found


def _lane(id: str, name: str, identity: str) -> AgentLane:
    return {
        "id": id, "name": short(name), "identity": short(identity), "person": identity.startswith(_PERSON), "live": False,
        "first": 0, "last": 0,
    }  # fmt: skip
