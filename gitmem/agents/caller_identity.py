"""The identification of callers, by the command line and the environment."""

from __future__ import annotations

from ..errors import UsageError
from ..records.ids import role_of
from ..text.sanitize import sanitize
from ..trust import sender_tables
from . import heartbeats, own_sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..store import Store
    from .presence import Presence

SET_MAIL = "git config user.email you@example.org"
WORKSPACE = "gitmem.workspace"  # setting: the workspace of new sessions, and of callers without a session
NOBODY = "human:nobody"  # who makes a dry run
KEEPALIVE_MICROS = 24 * 3600 * 1_000_000
NAMED_MAX = 3  # workspaces in a sentence


class CallerClaims:
    """The caller by the command line and the environment.

    Args:
        as_: The value of `--as`: an exact session id, an identity or a live name.
        session: GITMEM_SESSION.
        client_session: The client's variable with its session id, and that id.
        other_clients: The same of further variables: one of these clients has started the other.
        terminal: Whether standard input is a terminal.
        identity: GITMEM_AGENT_IDENTITY, the default of `--agent-identity` when a session starts.
        client: The client whose marker variable is set, "" for an unnamed one. The caller is then not a person,
            even at a terminal.
        is_program: Whether a program chose `as_` through the library.
    """

    def __init__(
        self,
        as_: str | None = None,
        session: str | None = None,
        client_session: tuple[str, str] | None = None,
        terminal: bool = False,
        identity: str | None = None,
        client: str | None = None,
        is_program: bool = False,
        other_clients: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.as_ = as_
        self.session = session
        self.client_session = client_session
        self.terminal = terminal
        self.identity = identity
        self.client = client
        self.is_program = is_program
        self.other_clients = other_clients


class Caller:
    """The session, agent or person that runs a command.

    Attributes:
        reader: The identity that signals come from and receipts are for.
        session_id: The session; None for people, and for an identity with no session or several in this clone.
        identity: The agent identity.
        is_person: Whether it is a person, `human:<mail>`.
        raw: Whether `reader` represents a client's own session id under which no session was started.
        client_id: That id, which is never published.
        source: `as`, `session`, `client_session`, `raw`, `terminal`, `worktree` (the only session of this worktree in
            24 hours), or `nobody`: nothing identified the caller, and the clone has no session.
        remark: What the caller should know about its identification.
        next: Commands that would identify it more clearly.
        record: The folded session, by the contract's field names.
        record_at: The time of its last record, in microseconds since the epoch.
        who: The caller by its environment; `--as` may have named another.
    """

    def __init__(self, reader: str, author: str, source: str) -> None:
        self.reader = reader
        self.author = author
        self.source = source
        self.session_id: str | None = None
        self.client_id: str | None = None
        self.identity: str | None = None
        self.name: str | None = None
        self.asked: str | None = None
        self.workspace: str | None = None
        self.wu_id: str | None = None
        self.is_person = False
        self.raw = False
        self.remark: str | None = None
        self.next: list[str] = []
        self.record: dict[str, str] | None = None
        self.record_at = 0
        self.who: CallerClaims | None = None

    @property
    def ids(self) -> list[str]:
        """The addresses of its signals: its reader identity and its session."""
        return [each for each in dict.fromkeys((self.reader, self.session_id)) if each]

    @property
    def role(self) -> str | None:
        """The role that its session states."""
        return role_of(self.record or {})

    def addresses(self, store: Store, address: str | None) -> list[str]:
        """Return its addresses, and this one if it is an ended session of its agent in this clone."""
        if not address or not sender_tables.is_own(store.db(), address):
            return self.ids
        own = own_sessions.trusted(store, address)
        is_same = own and own.ended is not None and self.identity and own.agent_identity == self.identity
        return [*self.ids, address] if is_same else self.ids

    def touch(self, store: Store) -> None:
        """Record that the caller is here: touch a file, without a commit."""
        if self.session_id is not None:
            heartbeats.touch(store, self.session_id)

    def keepalive(self, store: Store) -> list[tuple[str, bytes]]:
        """Return the line that keeps a name held, for an acting session whose last record is a day old; else none."""
        if self.record is None or self.session_id is None or store.now() - self.record_at < KEEPALIVE_MICROS:
            return []
        found = own_sessions.trusted(store, self.session_id)
        if found is None or found.ended is not None:
            return []
        line = own_sessions.record(found, "change")
        return [store.line("session", line, allow_secret=True)]  # it has no new text

    def trailers(self) -> list[tuple[str, str]]:
        """Return the trailers that identify the caller in a commit message."""
        found = [("WU", self.wu_id), ("Agent", self.reader), ("Session", self.session_id)]
        return [(key, value) for key, value in found if value]


def of_session(found: Presence, source: str) -> Caller:
    """Return a session as caller."""
    name = f"{found.name} <{found.reader}@gitmem>"
    caller = Caller(found.reader, name, source)
    caller.session_id = found.session_id
    caller.identity = found.agent_identity
    caller.name = found.name
    caller.asked = found.asked
    caller.workspace = found.record.get("workspace_id")
    caller.wu_id = found.wu_id
    caller.record = found.record
    caller.record_at = found.record_at
    return caller


def default_workspace(store: Store) -> str | None:
    """Return the workspace that the user has configured for this clone, or None."""
    return store.settings().get(WORKSPACE, "").strip() or None


def other_workspaces(caller: Caller | None, names: Iterable[object]) -> str | None:
    """Return a sentence about items of other workspaces than the caller's; None if there are none.

    Args:
        caller: The caller. To one without a workspace, no item is of another one.
        names: The workspace of each displayed item; anything but a text for an item of all workspaces.
    """
    if caller is None or caller.workspace is None:
        return None
    every_name = list(names)
    others = [name for name in every_name if isinstance(name, str) and name and name != caller.workspace]
    if not others:
        return None
    every = sorted(set(others))
    shown = ", ".join(sanitize(name)[:80] for name in every[:NAMED_MAX])
    more = f" and {len(every) - NAMED_MAX} more" if len(every) > NAMED_MAX else ""
    are = "1 of these is" if len(others) == 1 else f"{len(others)} of these are"
    are = "This is" if len(every_name) == 1 else are
    return f"{are} of another workspace: {shown}{more}; yours is {sanitize(caller.workspace)}."


def own_person(store: Store) -> str | None:
    """Return the reader identity of this clone's user, or None without `user.email`."""
    mail = store.person()[1]
    return f"human:{mail}" if mail else None


def is_own_person(store: Store, text: str) -> bool:
    """Return whether a text is the reader identity of this clone's user."""
    return text.startswith("human:") and text == own_person(store)


def person(store: Store, source: str) -> Caller:
    """Return the user of this clone as caller.

    Raises:
        UsageError: `no-person` without a `user.email`.
    """
    name, mail = store.person()
    if not mail:
        raise UsageError(
            "Cannot tell who you are: no session, and git's user.email is not set. Nothing was written.",
            hint=f"As a person, run `{SET_MAIL}`; as an agent, `gitmem session start`.",
            code="no-person",
            next=[SET_MAIL, "gitmem session start"],
        )
    caller = Caller(f"human:{mail}", f"{name or mail.partition('@')[0]} <{mail}>", source)
    caller.name = name or mail.partition("@")[0]
    caller.is_person = True
    caller.workspace = default_workspace(store)
    return caller
