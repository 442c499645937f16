"""Who calls: from what the command line and the surroundings say, never from a process id or host name."""

from __future__ import annotations

from ..errors import UsageError
from ..records.ids import is_id
from ..text.name_matching import fold, is_client_id, is_reserved, is_word
from ..text.sanitize import sanitize
from ..trust import clone_key
from . import own_recipients, own_sessions, presence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..store import Store
    from .presence import Presence

SET_MAIL = "git config user.email you@example.org"


class Who:
    """What the surroundings say of the caller.

    Args:
        as_: The value of `--as`: exact session id, identity or live name.
        session: GITMEM_SESSION.
        harness: The variable of the harness that runs us, and the session id in it.
        terminal: Whether standard input is a terminal.
        identity: GITMEM_AGENT_IDENTITY: stands for `--agent-identity` when a session starts.
        client: The client whose marker variable is set, "" for one of unknown name: then no person is typing,
            whatever the terminal.
    """

    __slots__ = ("as_", "client", "harness", "identity", "session", "terminal")

    def __init__(
        self,
        as_: str | None = None,
        session: str | None = None,
        harness: tuple[str, str] | None = None,
        terminal: bool = False,
        identity: str | None = None,
        client: str | None = None,
    ) -> None:
        self.as_ = as_
        self.session = session
        self.harness = harness
        self.terminal = terminal
        self.identity = identity
        self.client = client

    @property
    def is_silent(self) -> bool:
        """Whether nothing says who calls."""
        return not (self.as_ or self.session or self.harness or self.client is not None or self.terminal)


class Caller:
    """Somebody who acts.

    Attributes:
        reader: The identity that signals come from and receipts are for.
        session_id: The session; None for people, and for an identity with no session or several here.
        identity: The agent identity.
        is_person: Whether it is a person, `human:<mail>`.
        raw: Whether `reader` stands for a client's own session id, with which no session was started.
        client_id: That id, which is never published.
        source: `as`, `session`, `harness`, `raw`, `terminal`, `worktree` (the only session of this worktree in
            24 hours), or `nobody`: nothing said who calls, and the clone has no session.
        remark: What the caller should know about how it was found.
        next: Commands that would make it plainer.
        record: The folded session, by the contract's field names.
        record_at: Its last record, in microseconds since the epoch.
        who: What the surroundings say, where `--as` named somebody else perhaps.
    """

    __slots__ = (
        "asked", "author", "client_id", "identity", "is_person", "name", "next", "raw", "reader", "record", "record_at",
        "remark", "session_id", "source", "who", "workspace", "wu_id",
    )  # fmt: skip

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
        self.who: Who | None = None

    @property
    def ids(self) -> list[str]:
        """What it may have been addressed as: its reader identity, and its session."""
        return [each for each in dict.fromkeys((self.reader, self.session_id)) if each]

    @property
    def role(self) -> str | None:
        """The second part of the agent identity."""
        return presence.role_of(self.identity)

    def trailers(self) -> list[tuple[str, str]]:
        """Who it is, for the end of a commit message."""
        found = [("WU", self.wu_id), ("Agent", self.reader), ("Session", self.session_id)]
        return [(key, value) for key, value in found if value]


def find(store: Store, who: Who, *, must: bool = True) -> Caller | None:
    """Who calls.

    Args:
        must: Whether the command acts as somebody. Otherwise None where that is not clear; a `--as` that
            names nobody is an error all the same.

    Raises: UsageError `unknown-session`, `ended-session`, `which-session` or `no-person`.
    """
    try:
        if who.as_ is not None:
            caller = _named(store, who.as_)
            caller.who = who
            return caller
        if who.session is not None:
            return of_session(_session(store, who.session, "GITMEM_SESSION names"), "session")
        if who.harness is not None:
            return _harness(store, who.harness)
        if who.terminal and who.client is None:
            return person(store, "terminal")
        from . import unnamed_caller

        return unnamed_caller.choose(store, who)
    except UsageError:
        if must or who.as_ is not None:
            raise
        return None


def says_nobody(store: Store, who: Who) -> bool:
    """Return whether nothing says who calls, in a clone without a session that it could be."""
    from . import local_sessions

    return who.is_silent and not local_sessions.candidates(store)


def of_session(found: Presence, source: str) -> Caller:
    """A session as caller."""
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


def own_mail(store: Store) -> str | None:
    """The reader identity of this clone's user, or None without `user.email`."""
    mail = store.person()[1]
    return f"human:{mail}" if mail else None


def is_own_mail(store: Store, text: str) -> bool:
    """Return whether a text is the reader identity of this clone's user."""
    return text.startswith("human:") and text == own_mail(store)


def _named(store: Store, text: str) -> Caller:
    if presence.one(store, text) is not None:
        return of_session(_session(store, text, "--as names"), "as")
    if is_own_mail(store, text):
        return person(store, "as")
    from . import name_pins

    pin = name_pins.read(store, text)
    pinned = (
        name_pins.find(store, text, code="which-session") if pin is not None and pin.name == text else None
    )
    if pinned is not None:
        caller = of_session(pinned[0], "as")
        caller.remark = pinned[1] or own_recipients.warning(store, caller.session_id)
        return caller
    named = [] if is_reserved(text) else own_recipients.named(store, text)
    if not named and not is_reserved(text):
        named = presence.of_name(store, fold(text))
    clients = [clone_key.hashed(store.keys.now(), text)] if is_client_id(text) else []
    for name in (text, *clients):
        if not named and not is_word(text) and presence.is_seen(store, name):
            return _identity(store, name)
    named = own_recipients.trusted_only(store, named)
    holders = [one for one in named if one.name == text and one.is_current]
    if len(holders) == 1:
        name_pins.note(store, text, holders[0].session_id, holders[0].agent_identity)
        caller = of_session(holders[0], "as")
        caller.remark = own_recipients.warning(store, caller.session_id)
        return caller
    if holders:
        from . import unnamed_caller

        raise unnamed_caller.which(holders, f"--as {text} names {len(holders)} sessions", ["gitmem roster"])
    raise UsageError(
        f"--as names {sanitize(text)}, which is no session, identity or live name here; nothing was written.",
        hint="It takes an exact session id, agent identity or the name of a live session; "
        "an identity becomes known when its first session starts.",
        code="unknown-session",
        next=["gitmem roster --all", "gitmem session start"],
    )


def _identity(store: Store, identity: str) -> Caller:
    """An identity that the log has seen: in its one session of this clone that has not ended, if that is clear."""
    known = own_recipients.of_identity(store, identity)
    open_here = [one for one in known if one.ended is None and one.here]
    if len(open_here) == 1:
        caller = of_session(open_here[0], "as")
        caller.remark = own_recipients.warning(store, caller.session_id)
        return caller
    caller = Caller(identity, f"{identity} <{identity.removeprefix('human:')}@gitmem>", "as")
    if identity.startswith("human:"):
        caller.author = f"{identity[6:]} <{identity[6:]}>"
        caller.is_person = True
    elif identity.count(":") == 2:
        caller.identity = identity
    else:
        caller.session_id = identity
        caller.raw = True
    return caller


def _session(store: Store, session_id: str, where: str) -> Presence:
    found = own_sessions.trusted(store, session_id) if is_id("sess", session_id) else None
    if found is None:
        from .. import moved_back

        missing = moved_back.warning(store)
        next = ["gitmem session start", "gitmem roster"]
        raise UsageError(
            f"{where} {sanitize(session_id)}, a session that this log does not have; nothing was written.",
            hint=missing or "Start a session, and export the id that it gets.",
            code="unknown-session",
            next=moved_back.repair_first(next) if missing else next,
        )
    if found.ended is not None:
        when = presence.ago(store.now() - found.ended)
        raise UsageError(
            f"{where} {session_id} ({found.name}), which ended {when}; nothing was written.",
            hint="Start a session, and export the id that it gets.",
            code="ended-session",
            next=["gitmem session start", "unset GITMEM_SESSION"],
        )
    return found


def _harness(store: Store, harness: tuple[str, str]) -> Caller:
    variable, value = harness
    found = own_sessions.of_client(store, value)
    if found is not None:
        return of_session(found, "harness")
    name = store.keys.hashed(value)
    caller = Caller(name, f"{name} <{name}@gitmem>", "raw")
    caller.session_id = name
    caller.client_id = value
    caller.raw = True
    caller.remark = f"You have no session: you act as {name}, which stands for the value of {variable}."
    caller.next = ["gitmem session start"]
    return caller


def person(store: Store, source: str) -> Caller:
    """Return the user of this clone as caller. Raises: UsageError `no-person` without a `user.email`."""
    name, mail = store.person()
    if not mail:
        raise UsageError(
            "Nothing says who you are: no session, and git has no user.email; nothing was written.",
            hint=f"A person says `{SET_MAIL}`, an agent `gitmem session start`.",
            code="no-person",
            next=[SET_MAIL, "gitmem session start"],
        )
    caller = Caller(f"human:{mail}", f"{name or mail.partition('@')[0]} <{mail}>", source)
    caller.name = name or mail.partition("@")[0]
    caller.is_person = True
    return caller
