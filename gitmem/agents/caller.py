"""Identify the caller by the command line and the environment, never by a process id or host name."""

from __future__ import annotations

from ..errors import UsageError
from ..records.ids import is_id
from ..text.name_matching import fold, is_client_id, is_reserved, is_word
from ..text.sanitize import sanitize
from ..trust import clone_key
from . import own_recipients, own_sessions, presence
from .caller_identity import Caller as Caller
from .caller_identity import CallerClaims as CallerClaims
from .caller_identity import default_workspace
from .caller_identity import is_own_person as is_own_person
from .caller_identity import of_session as of_session
from .caller_identity import own_person as own_person
from .caller_identity import person as person

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..store import Store
    from .presence import Presence


def find(store: Store, who: CallerClaims, *, must: bool = True) -> Caller | None:
    """Return the caller.

    Args:
        must: Whether the command needs a caller. If not, return None if the caller is unclear. A `--as` without
            a match is an error in either case.

    Raises:
        UsageError: `unknown-session`, `ended-session`, `which-session` or `no-person`.
    """
    try:
        if who.as_ is not None:
            caller = _named(store, who.as_)
            caller.who = who
            return caller
        if who.session is not None:
            found = _session(store, who.session, "GITMEM_SESSION names")
            client = _client(store, who, found)
            return of_session(found, "session") if client is None else _harness(store, client)
        if who.client_session is not None:
            return _harness(store, _client(store, who) or who.client_session)
        if who.terminal and who.client is None:
            return person(store, "terminal")
        from . import unnamed_caller

        return unnamed_caller.choose(store, who)
    except UsageError:
        if must or who.as_ is not None:
            raise
        return None


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
        here = [of_session(each, "worktree") for each in own_sessions.of_worktree(store)]
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
    if named is not None and not own_sessions.has_client(store, named):
        return None
    others = [
        each for each in clients if named is None or not own_sessions.is_client_of(store, named, each[1])
    ]
    if len(clients) < 2 or not others:
        return others[0] if others else None
    known = [one for each in clients if (one := own_sessions.of_client(store, each[1])) is not None]
    if len(known) < len(clients):
        from . import unnamed_caller

        raise unnamed_caller.which_session_error(
            known,
            f"Cannot tell who you are: {' and '.join(name for name, _ in clients)} are set",
            ["gitmem session start"],
        )
    last = max(known, key=lambda one: (one.started, one.session_id))
    return next((each for each in others if own_sessions.is_client_of(store, last, each[1])), None)


def starting_client(store: Store, who: CallerClaims) -> tuple[str, str] | None:
    """Return the client's session that a session starts for: of several the one that has none yet, else as a caller."""
    clients = [each for each in (who.client_session, *who.other_clients) if each is not None]
    new = [each for each in clients if own_sessions.of_client(store, each[1]) is None]
    return new[0] if len(new) == 1 else _client(store, who) or who.client_session


def _named(store: Store, text: str) -> Caller:
    if presence.get(store, text) is not None:
        return of_session(_session(store, text, "--as names"), "as")
    if is_own_person(store, text):
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
    of_client = own_sessions.of_client(store, text) if clients and not named else None
    if of_client is not None:
        caller = of_session(of_client, "as")
        caller.remark = own_recipients.warning(store, caller.session_id)
        return caller
    for name in (text, *clients):
        if not named and not is_word(text) and presence.is_known_reader(store, name):
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

        raise unnamed_caller.which_session_error(
            holders, f"--as {text} is ambiguous: {len(holders)} sessions have this name", ["gitmem roster"]
        )
    from . import unknown_recipients

    raise unknown_recipients.caller_error(store, text)


def _identity(store: Store, identity: str) -> Caller:
    """Return an identity that the log has seen, in its open session of this clone if there is exactly one."""
    known = own_recipients.of_identity(store, identity)
    open_here = [one for one in known if one.ended is None and one.here]
    if len(open_here) == 1:
        caller = of_session(open_here[0], "as")
        caller.remark = own_recipients.warning(store, caller.session_id)
        return caller
    caller = Caller(identity, f"{identity} <{identity.removeprefix('human:')}@gitmem>", "as")
    caller.workspace = default_workspace(store)
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
            f"{where} an unknown session: {sanitize(session_id)}. Nothing was written.",
            hint=missing or "Start a session and export its id.",
            code="unknown-session",
            next=moved_back.repair_first(next) if missing else next,
        )
    if found.ended is not None:
        when = presence.format_age(store.now() - found.ended)
        raise UsageError(
            f"{where} an ended session: {session_id} ({found.name}), {when}. Nothing was written.",
            hint="Start a session and export its id.",
            code="ended-session",
            next=["gitmem session start", "unset GITMEM_SESSION"],
        )
    return found


def _harness(store: Store, client_session: tuple[str, str]) -> Caller:
    variable, value = client_session
    found = own_sessions.of_client(store, value)
    if found is not None:
        return of_session(found, "harness")
    name = store.keys.hashed(value)
    caller = Caller(name, f"{name} <{name}@gitmem>", "raw")
    caller.session_id = name
    caller.client_id = value
    caller.raw = True
    caller.workspace = default_workspace(store)
    caller.remark = f"You have no session: you act as {name}, derived from the value of {variable}."
    caller.next = ["gitmem session start"]
    return caller
