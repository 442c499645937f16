"""Who calls: from what the command line and the surroundings say, never from a process id or host name."""

from __future__ import annotations

from ..errors import UsageError
from ..records.ids import is_id
from ..text.sanitize import sanitize
from . import presence
from .quoting import command
from .spelling import fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .presence import Presence
    from .store import Store

SET_MAIL = "git config user.email you@example.org"


class Who:
    """What the surroundings say of the caller.

    Args:
        as_: The value of `--as`: exact session id, identity or live name.
        session: GITMEM_SESSION.
        harness: The variable of the harness that runs us, and the session id in it.
        terminal: Whether a person sits at it.
        identity: GITMEM_AGENT_IDENTITY: stands for `--agent-identity` when a session starts.
    """

    __slots__ = ("as_", "harness", "identity", "session", "terminal")

    def __init__(
        self,
        as_: str | None = None,
        session: str | None = None,
        harness: tuple[str, str] | None = None,
        terminal: bool = False,
        identity: str | None = None,
    ) -> None:
        self.as_ = as_
        self.session = session
        self.harness = harness
        self.terminal = terminal
        self.identity = identity

    @property
    def is_silent(self) -> bool:
        """Whether nothing says who calls."""
        return not (self.as_ or self.session or self.harness or self.terminal)


class Caller:
    """Somebody who acts.

    Attributes:
        reader: The identity that signals come from and receipts are for.
        session_id: The session; None for people, and for an identity with no session or several here.
        identity: The agent identity.
        is_person: Whether it is a person, `human:<mail>`.
        raw: Whether `reader` is a harness's own session id, with which no session was started.
        source: `as`, `session`, `harness`, `raw`, `terminal`, `worktree` (the one live session here), or
            `nobody` where nothing said who calls.
        remark: What the caller should know about how it was found.
        next: Commands that would make it plainer.
        record: The folded session, by the contract's field names.
        record_at: Its last record, in microseconds since the epoch.
    """

    __slots__ = (
        "asked", "author", "identity", "is_person", "name", "next", "raw", "reader", "record", "record_at",
        "remark", "session_id", "source", "workspace", "wu_id",
    )  # fmt: skip

    def __init__(self, reader: str, author: str, source: str) -> None:
        self.reader = reader
        self.author = author
        self.source = source
        self.session_id: str | None = None
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
            return _named(store, who.as_)
        if who.session is not None:
            return of_session(_session(store, who.session, "GITMEM_SESSION names"), "session")
        if who.harness is not None:
            return _harness(store, who.harness)
        if not who.terminal:
            here = presence.live_here(store)
            if here:
                return _only(here)
        return _person(store, "terminal" if who.terminal else "nobody")
    except UsageError:
        if must or who.as_ is not None:
            raise
        return None


def says_nobody(store: Store, who: Who) -> bool:
    """Whether nothing says who calls: no `--as`, no variable, no terminal, not exactly one live session here."""
    return who.is_silent and len(presence.live_here(store)) != 1


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


def _named(store: Store, text: str) -> Caller:
    if presence.one(store, text) is not None:
        return of_session(_session(store, text, "--as names"), "as")
    if text == own_mail(store):
        return _person(store, "as")
    if presence.is_seen(store, text):
        return _identity(store, text)
    holders = [one for one in presence.of_name(store, fold(text)) if one.name == text and one.is_current]
    if len(holders) == 1:
        return of_session(holders[0], "as")
    if holders:
        raise _several(holders, f"--as {text} names {len(holders)} sessions", ["gitmem roster"])
    raise UsageError(
        f"--as names {sanitize(text)}, which is no session, identity or live name here; nothing was written.",
        hint="It takes an exact session id, agent identity or the name of a live session; "
        "an identity becomes known when its first session starts.",
        code="unknown-session",
        next=["gitmem roster --all", "gitmem session start"],
    )


def _identity(store: Store, identity: str) -> Caller:
    """An identity that the log has seen: in its one session of this clone that has not ended, if that is clear."""
    open_here = [one for one in presence.of_identity(store, identity) if one.ended is None and one.here]
    if len(open_here) == 1:
        return of_session(open_here[0], "as")
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
    found = presence.one(store, session_id) if is_id("sess", session_id) else None
    if found is None:
        raise UsageError(
            f"{where} {sanitize(session_id)}, a session that this log does not have; nothing was written.",
            hint="Start a session, and export the id that it gets.",
            code="unknown-session",
            next=["gitmem session start", "gitmem roster"],
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
    found = presence.of_harness(store, value)
    if found is not None:
        return of_session(found, "harness")
    caller = Caller(value, f"{value} <{value}@gitmem>", "raw")
    caller.session_id = value
    caller.raw = True
    caller.remark = f"You have no session: you act as {value}, the value of {variable}."
    caller.next = ["gitmem session start"]
    return caller


def _only(here: Sequence[Presence]) -> Caller:
    if len(here) > 1:
        raise _several(
            here,
            f"{len(here)} sessions are live in this worktree, and nothing says which of them calls",
            ["gitmem roster", "gitmem session start"],
        )
    caller = of_session(here[0], "worktree")
    caller.remark = f"You are {caller.name}, the one live session here."
    caller.next = [command("export", f"GITMEM_SESSION={caller.session_id}")]
    return caller


def _several(found: Sequence[Presence], what: str, next: list[str]) -> UsageError:
    """Who runs the commands in `next` as they stand must not act as a colleague."""
    from . import near

    latest = sorted(found, key=lambda one: (one.age, one.session_id))
    return UsageError(
        f"{what}; nothing was written.",
        hint="The one that is you: `export GITMEM_SESSION=ID`, or say --as ID. None of them: `gitmem session start`. "
        "One of your own whose work is over ends with `gitmem session end --as ID`.",
        code="which-session",
        suggestions=[near.describe(one, one.session_id) for one in latest],
        next=next,
    )


def _person(store: Store, source: str) -> Caller:
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
