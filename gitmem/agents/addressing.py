"""Resolve names to recipients. A directed write goes to exactly these recipients, or nothing is written."""

from __future__ import annotations

from ..errors import UsageError
from ..outcome import Outcome
from ..text.name_matching import fold, is_client_id, is_identity, is_reserved, is_reserved_identity, is_word
from ..text.sanitize import is_unsafe
from ..trust import clone_key, sender_tables
from . import name_pins, own_recipients, own_sessions, presence
from .caller import is_own_person, own_person
from .presence import Presence, format_age

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..store import Store
    from .caller import Caller

PREFIX_MIN = len("sess-") + 6


class Resolved(Outcome):
    """A resolved recipient.

    Attributes:
        query: The text as typed.
        address: The address in the signal: the agent identity if there is one, else the session id, or a person.
        resolved_by: `exact`, `folded`, `alias`, `role`, `prefix` or `fuzzy`; `thread` if the thread names the recipient.
        remark: A sentence that the sender should know.
        asleep: Whether no session that reads this address has been seen lately.
        elsewhere: Whether it was last seen in another clone. It then gets the signal after a sync.
        session_id: The session, if the text names one.
        role: The role that it was resolved by, as the text names it: with a profile or without.
    """

    def __init__(self, query: str, address: str, resolved_by: str) -> None:
        self.query = query
        self.address = address
        self.resolved_by = resolved_by
        self.display_name: str | None = None
        self.remark: str | None = None
        self.asleep = False
        self.elsewhere = False
        self.session_id: str | None = None
        self.role: str | None = None

    @property
    def exact(self) -> bool:
        """Whether this is the text as typed, not a guess."""
        return self.resolved_by != "fuzzy"


def resolve(
    store: Store,
    to: Sequence[str],
    *,
    caller: Caller | None = None,
    allow_unseen: bool = False,
    fuzzy: bool = False,
) -> list[Resolved]:
    """Return the recipients that `--to` names: all of them, or raise an error.

    Args:
        to: The texts as typed; each may be a comma-separated list.
        allow_unseen: Accept an identity that the log has never seen.
        fuzzy: Accept a misspelt name if exactly one name is clearly nearest and no digit is involved.

    Raises:
        UsageError: `empty-recipient`, `unknown-recipient`, `ambiguous-recipient`, or those of `role_holders.find`.
    """
    found: dict[str, Resolved] = {}
    for part in [part.strip() for text in to for part in text.split(",")]:
        if not part:
            raise UsageError(
                "--to has an empty name. Nothing was written.", hint="Name a recipient, or use --broadcast.",
                code="empty-recipient", next=["gitmem roster"],
            )  # fmt: skip
        one = _exact(store, part, caller)
        if one is None and (holders := {each.address: each for each in _holders(store, part, caller)}):
            found.update((address, each) for address, each in holders.items() if address not in found)
            continue
        if one is None and fuzzy:
            one = _fuzzy(store, part)
        if one is None and allow_unseen and _may_be_unseen(part):
            one = Resolved(part, part, "exact")
            one.remark = f"{part} is not in this log yet: the signal is read when its first session starts."
            one.asleep = one.elsewhere = True
        if one is None:
            from . import unknown_recipients

            raise unknown_recipients.error(store, part, "--to")
        if caller is not None and one.address in (caller.reader, caller.session_id):
            one.remark = "You are one of the recipients: your own signals are never in your inbox."
        found.setdefault(one.address, one)
    return list(found.values())


def _holders(store: Store, text: str, caller: Caller | None) -> Iterator[Resolved]:
    """Yield the sessions that hold the role that a text names, by `role:` or an alias; none if it names none."""
    from . import role_holders

    for session, resolved_by, role in role_holders.named(store, text, caller):
        one = _of_session(store, session, text, resolved_by)
        one.role = role
        one.remark = one.remark or role_holders.remark(store, session)
        yield one


def _may_be_unseen(text: str) -> bool:
    return is_identity(text) and not is_reserved_identity(text) and not any(map(is_unsafe, text))


def reader_of(store: Store, text: str) -> Resolved:
    """Return the reader that `--for` names, exactly: looking at somebody else's mail by a guess would misinform.

    Raises:
        UsageError: `unknown-recipient` or `ambiguous-recipient`.
    """
    found = _exact(store, text, None) if text else None
    if found is None:
        from . import unknown_recipients

        raise unknown_recipients.error(store, text, "--for")
    return found


def not_sent(store: Store, id: str, to: Iterable[Resolved]) -> list[str]:
    """Return that a record that this command has written is only in this clone, if it is for somebody in another one.

    That needs no look at git: recording never sends.
    """
    if not any(each.elsewhere for each in to) or not store.has_remote():
        return []
    from ..sync import whereabouts

    return [whereabouts.unsent(store, id)]


def from_addresses(store: Store, addresses: Iterable[str]) -> list[Resolved]:
    """Return recipients that a thread names. They are addresses already; only their remarks are looked up."""
    found = []
    for address in addresses:
        session = presence.get(store, address)
        if session is not None and session.agent_identity is None:
            found.append(_of_session(store, session, address, "thread"))
        else:
            found.append(_of_identity(store, address, "thread"))
    return found


def _exact(store: Store, text: str, caller: Caller | None) -> Resolved | None:  # noqa: C901  (the order of these steps is the rule)
    """Return the recipient that a text names. The first match decides.

    The order is: a session id; a pinned name; a client's published id; a client's own id that is not also a name; an
    identity; a name in any spelling; the beginning of a session id. A name that a session has takes precedence over
    client ids and identities, which peers or local processes choose. Words for groups never match.
    """
    session = presence.get(store, text)
    holders: list[Presence] = []
    if session is None:
        pinned = _pinned(store, text)
        if pinned is not None:
            return pinned
        if is_word(text):
            return None
        holders = [] if is_reserved(text) else presence.of_name(store, fold(text))
        session = own_recipients.of_published_client(store, text)
        if session is None and not holders and not is_identity(text):
            session = presence.of_published_client(store, text)
    if session is not None:
        return _by_id(store, session, text)
    if not holders:
        found = _by_client_id(store, text)
        if found is not None:
            return found
    if (not holders and presence.is_known_reader(store, text)) or is_own_person(store, text):
        return _of_identity(store, text, "exact")
    own_recipients.refuse_mixed(text)
    own_recipients.refuse_redirected(store, text, holders)
    own = [] if holders or is_reserved(text) else own_recipients.named(store, text)
    if own:
        one = _only_one(text, own)
        shown = presence.get(store, one.session_id) or one
        return _by_id(store, shown, text, "exact" if one.name == text else "folded")
    same = [one for one in holders if one.name == text]
    if holders:
        return _of_session(store, _only_one(text, same or holders), text, "exact" if same else "folded")
    if text.startswith("sess-") and len(text) >= PREFIX_MIN:
        begun = presence.with_prefix(store, text)
        if begun:
            return _by_id(store, _only_one(text, begun), text, "prefix")
    return None


def _by_id(store: Store, session: Presence, text: str, resolved_by: str = "exact") -> Resolved:
    session, warning = own_recipients.corrected(store, session)
    found = _of_session(store, session, text, resolved_by)
    found.remark = warning or found.remark  # a remark about a forged end would contradict the warning
    return found


def _by_client_id(store: Store, text: str) -> Resolved | None:
    """Return the recipient that a client's own session id names. The id is not published, not even as `query`."""
    if not is_client_id(text):
        return None
    session = own_sessions.of_client(store, text)
    if session is not None:
        return _of_session(store, session, session.session_id, "exact")
    client = clone_key.hashed(store.keys.now(), text)
    return _of_identity(store, client, "exact") if presence.is_known_reader(store, client) else None


def _pinned(store: Store, text: str) -> Resolved | None:
    pinned = name_pins.find(store, text)
    if pinned is None:
        return None
    session, warning = pinned
    found = _of_session(store, session, text, "exact" if text in (session.name, session.asked) else "folded")
    forged = own_recipients.warning(store, session.session_id)
    found.remark = " ".join(filter(None, (warning, forged or found.remark))) or None
    return found


def pin_names(store: Store, resolved: Sequence[Resolved]) -> None:
    """Pin the names by which recipients were just resolved. Ids, identities and guesses need no pin."""
    for each in resolved:
        name = each.display_name or ""
        if each.session_id and each.resolved_by in ("exact", "folded") and fold(each.query) == fold(name):
            name_pins.note(store, name, each.session_id, each.address if ":" in each.address else None)


def _only_one(text: str, found: Sequence[Presence]) -> Presence:
    if len(found) == 1:
        return found[0]
    from . import unknown_recipients

    raise unknown_recipients.ambiguous_id(text, found)


def _fuzzy(store: Store, text: str) -> Resolved | None:
    from . import suggestions

    guess = suggestions.clearly_nearest(store, text)
    if guess is None or is_reserved(text) or is_reserved(guess.name):
        return None
    own_recipients.refuse_redirected(store, guess.name, [guess])
    pinned = name_pins.find(store, guess.name)
    found = _of_session(store, pinned[0] if pinned is not None else guess, text, "fuzzy")
    found.remark = " ".join(filter(None, (f"{text} was resolved to {guess.name}.", found.remark)))
    return found


def _of_session(store: Store, session: Presence, query: str, resolved_by: str) -> Resolved:
    changed = own_recipients.changed_identity(store, session)
    if session.agent_identity is not None and changed is None:
        found = _of_identity(store, session.agent_identity, resolved_by)
        found.query = query
        if session.ended is not None and not found.asleep:
            found.remark = _ended_session(store, session)
    else:
        found = Resolved(query, session.session_id, resolved_by)
        _describe(store, found, session)
        if changed is not None and (
            _is_pinned(store, session) or not own_recipients.took_first_identity(store, session)
        ):
            found.remark = changed
        elif session.ended is not None:
            found.remark = _ended_session(store, session)
    found.display_name = session.name
    found.session_id = session.session_id
    return found


def _is_pinned(store: Store, session: Presence) -> bool:
    """Return whether somebody here has written to a session by its name."""
    pin = name_pins.read(store, session.asked)
    return pin is not None and pin.session_id == session.session_id


def _ended_session(store: Store, session: Presence) -> str:
    from . import unknown_recipients

    return unknown_recipients.ended_session(session, store.now())


def _of_identity(store: Store, identity: str, resolved_by: str) -> Resolved:
    found = Resolved(identity, identity, resolved_by)
    sessions = presence.of_identity(store, identity)
    if sessions:
        found.display_name = sessions[0].name
        _describe(store, found, sessions[0])
        if sessions[0].ended is not None:
            from . import unknown_recipients

            found.remark = unknown_recipients.ended_identity(identity, sessions[0], store.now())
    elif identity.startswith("human:"):
        found.display_name = identity.removeprefix("human:")
        found.elsewhere = identity != own_person(store)
    elif is_identity(identity):
        from .unknown_recipients import unheld_identity

        found.asleep, found.remark = True, unheld_identity(identity)
    return found


def _describe(store: Store, found: Resolved, session: Presence) -> None:
    """Set the status of a recipient from `session`, the last seen of the sessions that read its address."""
    found.asleep = session.status != "live"
    # A peer's line may name another clone for a session that was started here.
    found.elsewhere = not session.here and not sender_tables.is_own(store.db(), session.session_id)
    if found.asleep:
        found.remark = (
            f"{session.name} appears inactive: last seen {format_age(store.now() - session.last_seen)}."
        )
