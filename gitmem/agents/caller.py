"""Identify the caller by the command line and the environment, never by a process id or host name.

`recorded_by` and `peek_reason` concern a session that acts under another identity than its own, with `--as`.
"""

from __future__ import annotations

from ..errors import UsageError
from ..outcome import Struct, command
from ..records.ids import is_id, role_of
from ..settings import WORKSPACE
from ..text.addresses import PERSON, words_of
from ..text.name_matching import fold, is_client_id, is_reserved, is_word
from ..text.sanitize import first_of, sanitize
from . import heartbeats, names, presence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..store import Store
    from .presence import Presence


SET_MAIL = "git config user.email you@example.org"
NOBODY = "human:nobody"  # who makes a dry run
KEEPALIVE_MICROS = 24 * 3600 * 1_000_000
NAMED_MAX = 3  # workspaces in a sentence


class CallerClaims(Struct):
    """The caller by the command line and the environment.

    Attributes:
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

    as_: str | None = None
    session: str | None = None
    client_session: tuple[str, str] | None = None
    terminal: bool = False
    identity: str | None = None
    client: str | None = None
    is_program: bool = False
    other_clients: Sequence[tuple[str, str]] = ()


class Caller(Struct):
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

    reader: str
    author: str
    source: str
    session_id: str | None = None
    client_id: str | None = None
    identity: str | None = None
    name: str | None = None
    asked: str | None = None
    workspace: str | None = None
    wu_id: str | None = None
    is_person: bool = False
    raw: bool = False
    remark: str | None = None
    next: list[str] = []
    record: dict[str, str] | None = None
    record_at: int = 0
    who: CallerClaims | None = None

    @property
    def ids(self) -> list[str]:
        """The addresses of its signals: its reader identity and its session."""
        return [each for each in dict.fromkeys((self.reader, self.session_id)) if each]

    @property
    def role(self) -> str | None:
        """The role that its session states."""
        return role_of(self.record or {})

    def addresses(self, store: Store, address: str | None) -> list[str]:
        """Return its addresses, and this one if it is an ended session of its agent."""
        own = presence.get(store, address) if address else None
        if own is None or own.ended is None or not self.identity or own.agent_identity != self.identity:
            return self.ids
        return [*self.ids, own.session_id]

    def touch(self, store: Store) -> None:
        """Record that the caller is here: touch a file, without a commit."""
        if self.session_id is not None:
            heartbeats.touch(store, self.session_id)

    def keepalive(self, store: Store) -> list[tuple[str, bytes]]:
        """Return the line that keeps a name held, for an acting session whose last record is a day old; else none."""
        if self.record is None or self.session_id is None or store.now() - self.record_at < KEEPALIVE_MICROS:
            return []
        found = presence.get(store, self.session_id)
        if found is None or found.ended is not None:
            return []
        line = presence.record_fields(found, "change")
        return [store.line("session", line, allow_secret=True)]  # it has no new text

    def trailers(self) -> list[tuple[str, str]]:
        """Return the trailers that identify the caller in a commit message."""
        found = [("WU", self.wu_id), ("Agent", words_of(self.reader)), ("Session", self.session_id)]
        return [(key, value) for key, value in found if value]


def of_session(found: Presence, source: str) -> Caller:
    """Return a session as caller."""
    name = f"{found.name} <{words_of(found.reader)}@gitmem>"
    workspace = found.record.get("workspace_id")
    return Caller.taken_from(
        found, author=name, source=source, identity=found.agent_identity, workspace=workspace
    )


def default_workspace(store: Store) -> str | None:
    """Return the workspace that the user has configured for this clone, or None."""
    return WORKSPACE.value(store.settings()) or None


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
    shown = first_of(every, NAMED_MAX, shown=lambda name: sanitize(name)[:80])
    are = "1 of these is" if len(others) == 1 else f"{len(others)} of these are"
    are = "This is" if len(every_name) == 1 else are
    return f"{are} of another workspace: {shown}; yours is {sanitize(caller.workspace)}."


def own_person(store: Store) -> str | None:
    """Return the reader identity of this clone's user, or None without `user.email`."""
    mail = store.person()[1]
    return store.own_address(f"{PERSON}{mail}") if mail else None


def is_own_person(store: Store, text: str) -> bool:
    """Return whether a text is the reader identity of this clone's user."""
    return text.startswith(PERSON) and store.own_address(text) == own_person(store)


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
    caller = Caller(str(own_person(store)), f"{name or mail.partition('@')[0]} <{mail}>", source)
    caller.name = name or mail.partition("@")[0]
    caller.is_person = True
    caller.workspace = default_workspace(store)
    return caller


CANDIDATES_MAX = 10


def choose_unnamed(store: Store, who: CallerClaims) -> Caller:
    """Choose the caller by the sessions of this clone.

    The only session of this worktree in 24 hours is chosen, if all of them are known: one that started while the git
    folder was read-only, as in a sandbox, left no file there. If sessions are known and none can be chosen, this is an
    error: a silent agent must not act as the person. Without any session it is the person, unless a client's marker
    shows that an agent calls.

    Raises:
        UsageError: `which-session`, or `no-person` without a session and `user.email`.
    """
    here = [one for one in presence.of_worktree(store) if _may_be(one, who.client)]
    unregistered = [one for one in presence.unregistered_here(store) if _may_be(one, who.client)]
    found, next = here + unregistered, ["gitmem roster", "gitmem session start"]
    if unregistered:
        what = f"GITMEM_SESSION is not set, and {unregistered[0].session_id} of this worktree started while the git folder was read-only"
    elif len(here) == 1:
        caller = of_session(here[0], "worktree")
        caller.remark = f"You act as {caller.name}, the only session of this worktree in the last 24 hours."
        caller.next = [command("export", f"GITMEM_SESSION={caller.session_id}")]
        return caller
    elif here:
        what = f"{len(here)} sessions are active in this worktree, and GITMEM_SESSION is not set"
    else:
        found, next = presence.possible_callers(store), next[::-1]
        if not found and who.client is None:
            return person(store, "nobody")
        what = "standard input is not a terminal, and this worktree has no active session"
        if who.client is not None:
            what = f"{who.client or 'an agent'} has no active session in this worktree"
    raise which_session_error(found, f"Cannot tell who you are: {what}", next, own_person(store))


def only_session(store: Store, who: CallerClaims) -> Caller | None:
    """Return the only session of this worktree that the caller may be, or None if there is none or it is unclear."""
    here = [one for one in presence.of_worktree(store) if _may_be(one, who.client)]
    if len(here) != 1 or any(_may_be(one, who.client) for one in presence.unregistered_here(store)):
        return None
    return of_session(here[0], "worktree")


def _may_be(one: Presence, client: str | None) -> bool:
    """Return whether a session may belong to a client: its client is this one or unknown."""
    return not client or one.record.get("client") in (None, client)


def which_session_error(
    found: Sequence[Presence], what: str, next: list[str], person: str | None = None
) -> UsageError:
    """Return the error with the candidates. The commands in `next`, run unchanged, act as none of them."""
    latest = sorted(found, key=lambda one: (one.age, one.session_id))
    hints = ["Start one with `gitmem session start`."]
    if latest:
        hints = [
            "Select your session with `export GITMEM_SESSION=ID` or --as ID.",
            "If none is yours, run `gitmem session start`.",
            "End a finished session of yours with `gitmem session end --as ID`.",
        ]
    if person:
        hints.append(f"As a person in a script, use `{command('--as', person)}`.")
    return UsageError(
        f"{what}. Nothing was written.",
        hint=" ".join(hints),
        code="which-session",
        suggestions=[presence.describe(one, one.session_id) for one in latest[:CANDIDATES_MAX]],
        next=next,
    )


def find(store: Store, who: CallerClaims, *, must: bool = True) -> Caller | None:
    """Return the caller.

    Args:
        must: Whether the command needs a caller. If not, return None if the caller is unclear. A `--as` without
            a match is an error in either case.

    Raises:
        UsageError: `unknown-session`, `ended-session`, `another-key`, `which-session` or `no-person`.
    """
    try:
        if who.as_ is not None:
            caller = _named(store, who.as_)
            caller.who = who
            return caller
        if who.session is not None:
            found = _session(store, who.session, "GITMEM_SESSION names")
            if store.is_of_another_key(found.session_id):
                raise _another_key_error(
                    "GITMEM_SESSION names", found.session_id, found.name, ["unset GITMEM_SESSION"]
                )
            client = _client(store, who, found)
            return of_session(found, "session") if client is None else _harness(store, client)
        if who.client_session is not None:
            return _harness(store, _client(store, who) or who.client_session)
        if who.terminal and who.client is None:
            return person(store, "terminal")

        return choose_unnamed(store, who)
    except UsageError:
        if must or who.as_ is not None:
            raise
        return None


def _another_key_error(where: str, session_id: str, name: str | None, next: Sequence[str] = ()) -> UsageError:
    return UsageError(
        f"{where} a session that was made under another key: {session_id} ({sanitize(name or '')}). Nothing was written.",
        hint="Start a session and export its id; `gitmem doctor` names the key that writes here.",
        code="another-key",
        next=["gitmem session start", *next],
    )


def pushing(store: Store, who: CallerClaims) -> list[Caller]:
    """Return who may be pushing, for git's pre-push hook.

    It is the caller that `who` names, else every session of this worktree in 24 hours: git gives its hook no terminal.
    If this worktree has no session, the person pushes. Return nobody if no caller of this clone can be addressed.
    """
    try:
        try:
            found = find(store, who)
            return [found] if found else []
        except UsageError as error:
            if error.code != "which-session":
                raise
        here = [of_session(each, "worktree") for each in presence.of_worktree(store)]
        return here or [person(store, "nobody")]
    except UsageError as error:
        if error.code != "no-person":
            raise
        return []


def _client(store: Store, who: CallerClaims, named: Presence | None = None) -> tuple[str, str] | None:
    """Return the client's session that runs this command, if it is not the one that GITMEM_SESSION belongs to.

    An agent that starts another one passes its variables on. Of several clients the one whose session began last runs this.

    Args:
        named: The session in GITMEM_SESSION.

    Raises:
        UsageError: `which-session`: one of the clients has no session, and so nobody knows which of them runs this.
    """
    clients = [each for each in (who.client_session, *who.other_clients) if each is not None]
    if named is not None and not presence.has_client(store, named):
        return None
    others = [each for each in clients if named is None or not presence.is_client_of(store, named, each[1])]
    if len(clients) < 2 or not others:
        return others[0] if others else None
    known = [one for each in clients if (one := presence.of_client(store, each[1])) is not None]
    if len(known) < len(clients):
        raise which_session_error(
            known,
            f"Cannot tell who you are: {' and '.join(name for name, _ in clients)} are set",
            ["gitmem session start"],
        )
    last = max(known, key=lambda one: (one.started, one.session_id))
    return next((each for each in others if presence.is_client_of(store, last, each[1])), None)


def starting_client(store: Store, who: CallerClaims) -> tuple[str, str] | None:
    """Return the client's session that a session starts for: of several the one that has none yet, else as a caller."""
    clients = [each for each in (who.client_session, *who.other_clients) if each is not None]
    new = [each for each in clients if presence.of_client(store, each[1]) is None]
    return new[0] if len(new) == 1 else _client(store, who) or who.client_session


def _named(store: Store, text: str) -> Caller:
    if presence.get(store, text) is not None:
        return of_session(_session(store, text, "--as names"), "as")
    if is_own_person(store, text):
        return person(store, "as")

    pin = names.pin_of(store, text)
    is_pinned = pin is not None and pin.name == text
    pinned = names.pinned(store, text, code="which-session") if is_pinned else None
    if pinned is not None:
        caller = of_session(pinned[0], "as")
        caller.remark = pinned[1]
        return caller
    named = [] if is_reserved(text) else presence.of_name(store, fold(text))
    clients = [presence.client_address(store, text)] if is_client_id(text) else []
    of_client = presence.of_client(store, text) if clients and not named else None
    if of_client is not None:
        return of_session(of_client, "as")
    for name in (presence.address_of(store, text), *clients):
        if not named and not is_word(text) and presence.is_known_reader(store, name):
            return _identity(store, name)
    holders = [one for one in named if one.name == text and one.is_current]
    if len(holders) == 1:
        names.note_pin(store, text, holders[0].session_id, holders[0].agent_identity)
        return of_session(holders[0], "as")
    if holders:
        raise which_session_error(
            holders, f"--as {text} is ambiguous: {len(holders)} sessions have this name", ["gitmem roster"]
        )
    raise names.caller_error(store, text)


def _identity(store: Store, identity: str) -> Caller:
    """Return an identity that the log has seen, in its open session of this clone if there is exactly one."""
    known = presence.of_identity(store, identity)
    open_here = [one for one in known if one.ended is None and one.here]
    if len(open_here) == 1:
        return of_session(open_here[0], "as")
    words = words_of(identity)
    caller = Caller(identity, f"{words} <{words.removeprefix(PERSON)}@gitmem>", "as")
    caller.workspace = default_workspace(store)
    if words.startswith(PERSON):
        caller.author = f"{words[6:]} <{words[6:]}>"
        caller.is_person = True
    elif words.count(":") == 2:
        caller.identity = identity
    else:
        caller.session_id = identity
        caller.raw = True
    return caller


def _session(store: Store, session_id: str, where: str) -> Presence:
    found = presence.get(store, session_id) if is_id("sess", session_id) else None
    leave = ["unset GITMEM_SESSION"] if where.startswith("GITMEM_SESSION") else []
    if found is None:
        from ..store import lost_records, repair_first

        missing = lost_records(store)
        next = ["gitmem session start", "gitmem roster", *leave]
        raise UsageError(
            f"{where} an unknown session: {sanitize(session_id)}. Nothing was written.",
            hint=missing or "Start a session and export its id.",
            code="unknown-session",
            next=repair_first(next) if missing else next,
        )
    if found.ended is not None:
        when = presence.format_age(store.now() - found.ended)
        raise UsageError(
            f"{where} an ended session: {session_id} ({found.name}), {when}. Nothing was written.",
            hint="Start a session and export its id.",
            code="ended-session",
            next=["gitmem session start", *leave],
        )
    return found


def _harness(store: Store, client_session: tuple[str, str]) -> Caller:
    variable, value = client_session
    found = presence.of_client(store, value)
    if found is not None:
        return of_session(found, "harness")
    name = presence.client_address(store, value, recorded=True)
    words = words_of(name)
    caller = Caller(name, f"{words} <{words}@gitmem>", "raw")
    caller.session_id = name
    caller.client_id = value
    caller.raw = True
    caller.workspace = default_workspace(store)
    caller.remark = f"You have no session: you act as {name}, derived from the value of {variable}."
    caller.next = ["gitmem session start"]
    return caller


def recorded_by(store: Store, caller: Caller, intent: str, *, may: bool) -> str | None:
    """Return the session that records a signal in the caller's name, or None if the caller records it itself.

    Args:
        may: Whether the caller may record it: always if it is not a decision, else only if a person insists.

    Raises:
        UsageError: `another-identity` if it may not; `another-key` if nobody here may, as the caller is a session of another key.
    """
    if caller.session_id is not None and store.is_of_another_key(caller.session_id):
        raise _another_key_error("--as names", caller.session_id, caller.name)
    if caller.who is None:
        return None
    found = _without_as(store, caller, caller.who)
    known = found is not None and found.session_id  # a session that has ended is known by the variable alone
    own = known or caller.who.session
    if own is None or own in _ids(store, caller):
        return None
    if may:
        return own
    you = sanitize(own)
    if found is not None and found.name:
        where = ", the only session of this worktree," if found.source == "worktree" else ""
        you = f"{found.name} ({own}){where}"
    raise UsageError(
        f"--as {sanitize(str(caller.who.as_))}: you are {you} and cannot record another agent's {intent}. "
        "Nothing was written.",
        hint=f"{_way_out(found, caller)}Each recipient records its own decision. If a person wants this one recorded, "
        "--insist records it with your session in `via`; it has no effect in threads where you have proposed, in this session "
        "or an earlier one.",
        code="another-identity",
        next=["gitmem roster"],
    )


def peek_reason(store: Store, caller: Caller) -> str | None:
    """Return why reading another's mailbox marks nothing, or None if the caller reads its own."""
    if not store.may_write_as(caller.reader) or store.is_of_another_key(caller.session_id or ""):
        name = sanitize(caller.name or caller.reader)
        return f"Inbox of {name}, which has another key. Nothing is marked as delivered."
    if caller.who is None:
        return None
    own = _without_as(store, caller, caller.who)
    if own is None or own.raw or not own.session_id or own.session_id in _ids(store, caller):
        return None
    return (
        f"Inbox of {sanitize(caller.name or caller.reader)}; you are "
        f"{sanitize(own.name or own.session_id)}. Nothing is marked as delivered. {_way_out(own, caller)}".rstrip()
    )


def _without_as(store: Store, caller: Caller, who: CallerClaims) -> Caller | None:
    """Return whom the command would act as without `--as`; None for a person, and if that is unclear.

    Without a variable it is the only session of this worktree. Where several are at work, `--as` alone determines the
    caller, and so it does if it names the user, or if a program chose it: a script may act for several agents in turn.
    """
    if who.session is not None or who.client_session is not None:
        claims = CallerClaims(
            session=who.session, client_session=who.client_session, other_clients=who.other_clients
        )
        return find(store, claims, must=False)
    if who.is_program or caller.is_person or (who.terminal and who.client is None):
        return None
    return only_session(store, who)


def _way_out(found: Caller | None, caller: Caller) -> str:
    """Return a sentence for a caller that is not the only session of its worktree, or nothing."""
    if found is None or found.source != "worktree":
        return ""
    if caller.session_id is None:
        return "If you are not that session, start your own: gitmem session start. "
    return f"If you are {sanitize(caller.name or caller.reader)}: {command('export', f'GITMEM_SESSION={caller.session_id}')}. "


def _ids(store: Store, caller: Caller) -> list[str]:
    """Return the names of the caller and the ids of the sessions with its identity."""
    found = [one.session_id for one in presence.of_identity(store, caller.reader)]
    by_client = presence.of_published_client(store, caller.reader)
    return [*caller.ids, *found, *([by_client.session_id] if by_client is not None else [])]
