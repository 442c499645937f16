"""Resolve names and roles to recipients. A directed write goes to exactly these recipients, or nothing is written.

A session holds a role if it states it and has a line of the last 24 hours. Which sessions these are is decided when a
signal is sent; who takes the role later does not receive it. Roles are never matched by similarity.
"""

from __future__ import annotations

from ..commit_message import sanitize
from ..errors import UsageError
from ..outcome import Outcome, command
from ..text.addresses import PERSON, words_of, writer_of
from ..text.name_matching import fold, is_client_id, is_identity, is_reserved, is_reserved_identity, is_word
from ..text.sanitize import is_unsafe
from . import names, presence
from .caller import is_own_person, own_person
from .presence import Presence, format_age

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..store import Store
    from .caller import Caller
    from .vocabulary import Role


PREFIX_MIN = len("sess-") + 6


class Resolved(Outcome):
    """A resolved recipient.

    Attributes:
        query: The text as typed.
        address: The address in the signal: the agent identity if there is one, else the session id, or a person.
        resolved_by: `exact`, `folded`, `alias`, `role` or `prefix`; `thread` if the thread names the recipient.
        remark: A sentence that the sender should know.
        asleep: Whether no session that reads this address has been seen lately.
        elsewhere: Whether it was last seen in another clone. It then gets the signal after a sync.
        session_id: The session, if the text names one.
        role: The role that it was resolved by, as the text names it: with a profile or without.
    """

    query: str
    address: str
    resolved_by: str
    display_name: str | None = None
    remark: str | None = None
    asleep: bool = False
    elsewhere: bool = False
    session_id: str | None = None
    role: str | None = None


def resolve(
    store: Store,
    to: Sequence[str],
    *,
    caller: Caller | None = None,
    allow_unseen: bool = False,
    option: str = "--to",
) -> list[Resolved]:
    """Return the recipients that `--to` names: all of them, or raise an error.

    Args:
        to: The texts as typed; each may be a comma-separated list.
        allow_unseen: Accept an identity that the log has never seen.
        option: What has the texts, for error messages.

    Raises:
        UsageError: `empty-recipient`, `unknown-recipient`, `ambiguous-recipient`, or those of `named_role`.
    """
    found: dict[str, Resolved] = {}
    for part in [part.strip() for text in to for part in text.split(",")]:
        if not part:
            raise UsageError(
                f"{option} has an empty name. Nothing was written.", hint="Name a recipient, or use --broadcast.",
                code="empty-recipient", next=["gitmem roster"],
            )  # fmt: skip
        one = _exact(store, part)
        if one is None and (holders := {each.address: each for each in _holders(store, part, caller)}):
            found.update((address, each) for address, each in holders.items() if address not in found)
            continue
        is_unseen = is_identity(part) and not is_reserved_identity(part) and not any(map(is_unsafe, part))
        if one is None and allow_unseen and is_unseen:
            one = Resolved(part, store.own_address(part), "exact")
            one.remark = f"{part} is not in this log yet: an agent of yours with this identity reads it when its first session starts."
            one.asleep = one.elsewhere = True
        if one is None:
            raise names.recipient_error(store, part, option)
        if caller is not None and one.address in (caller.reader, caller.session_id):
            one.remark = "You are one of the recipients: your own signals are never in your inbox."
        found.setdefault(one.address, one)
    return list(found.values())


def _holders(store: Store, text: str, caller: Caller | None) -> Iterator[Resolved]:
    """Yield the sessions that hold the role that a text names, by `role:` or an alias; none if it names none."""
    for session, resolved_by, role in named_role(store, text, caller):
        one = _of_session(store, session, text, resolved_by)
        one.role = role
        age = format_age(store.now() - session.record_at)
        one.remark = one.remark or f"{session.name} holds {session.role}; its last record: {age}."
        yield one


def reader_of(store: Store, text: str) -> Resolved:
    """Return the reader that `--for` names, exactly: looking at somebody else's mail by a guess would misinform.

    Raises:
        UsageError: `unknown-recipient` or `ambiguous-recipient`.
    """
    found = _exact(store, text) if text else None
    if found is None:
        raise names.recipient_error(store, text, "--for")
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


def _exact(store: Store, text: str) -> Resolved | None:  # noqa: C901  (the order of these steps is the rule)
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
        if not holders and not is_identity(text):
            session = presence.of_published_client(store, text)
    if session is not None:
        return _of_session(store, session, text, "exact")
    if not holders:
        found = _by_client_id(store, text)
        if found is not None:
            return found
    address = presence.address_of(store, text, asks_file=True)
    if (not holders and presence.is_known_reader(store, address)) or is_own_person(store, text):
        return _of_identity(store, address, "exact", text)
    names.refuse_mixed(text)
    same = [one for one in holders if one.name == text]
    if holders:
        return _of_session(store, _only_one(text, same or holders), text, "exact" if same else "folded")
    if text.startswith("sess-") and len(text) >= PREFIX_MIN:
        begun = presence.with_prefix(store, text)
        if begun:
            return _of_session(store, _only_one(text, begun), text, "prefix")
    return None


def _by_client_id(store: Store, text: str) -> Resolved | None:
    """Return the recipient that a client's own session id names. The id is not published, not even as `query`."""
    if not is_client_id(text):
        return None
    session = presence.of_client(store, text)
    if session is not None:
        return _of_session(store, session, session.session_id, "exact")
    client = presence.client_address(store, text)
    return _of_identity(store, client, "exact") if presence.is_known_reader(store, client) else None


def _pinned(store: Store, text: str) -> Resolved | None:
    pinned = names.pinned(store, text)
    if pinned is None:
        return None
    session, warning = pinned
    found = _of_session(store, session, text, "exact" if text in (session.name, session.asked) else "folded")
    found.remark = " ".join(filter(None, (warning, found.remark))) or None
    return found


def pin_names(store: Store, resolved: Sequence[Resolved]) -> None:
    """Pin the names by which recipients were just resolved. Ids, identities and guesses need no pin."""
    for each in resolved:
        name = each.display_name or ""
        if each.session_id and each.resolved_by in ("exact", "folded") and fold(each.query) == fold(name):
            names.note_pin(store, name, each.session_id, each.address if ":" in each.address else None)


def _only_one(text: str, found: Sequence[Presence]) -> Presence:
    if len(found) == 1:
        return found[0]
    raise names.ambiguous_id(text, found)


def _of_session(store: Store, session: Presence, query: str, resolved_by: str) -> Resolved:
    if session.agent_identity is not None and writer_of(session.agent_identity):
        found = _of_identity(store, session.agent_identity, resolved_by)
        found.query = query
        if session.ended is not None and not found.asleep:
            found.remark = names.ended_session(session, store.now())
    else:
        found = Resolved(query, session.session_id, resolved_by)
        _describe(store, found, session)
        if session.ended is not None:
            found.remark = names.ended_session(session, store.now())
    found.display_name = session.name
    found.session_id = session.session_id
    return found


def _of_identity(store: Store, identity: str, resolved_by: str, query: str = "") -> Resolved:
    found = Resolved(query or identity, identity, resolved_by)
    sessions = presence.of_identity(store, identity)
    if sessions:
        found.display_name = sessions[0].name
        _describe(store, found, sessions[0])
        if sessions[0].ended is not None:
            found.remark = names.ended_identity(identity, sessions[0], store.now())
    elif identity.startswith(PERSON):
        found.display_name = words_of(identity).removeprefix(PERSON)
        found.elsewhere = identity != own_person(store)
    elif is_identity(identity):
        found.asleep, found.remark = True, names.unheld_identity(identity)
    return found


def _describe(store: Store, found: Resolved, session: Presence) -> None:
    """Set the status of a recipient from `session`, the last seen of the sessions that read its address."""
    found.asleep = session.status != "live"
    found.elsewhere = not session.here
    if found.asleep:
        found.remark = (
            f"{session.name} appears inactive: last seen {format_age(store.now() - session.last_seen)}."
        )


ROLE_PREFIX = "role:"
ROLE = "role"  # in `resolved_by`
HOLDERS_MAX = 100


def is_role(text: str) -> bool:
    """Return whether a recipient names a role: `role:` and no further colon, which an agent identity has."""
    return text[: len(ROLE_PREFIX)].lower() == ROLE_PREFIX and text.count(":") == 1


def named_role(store: Store, text: str, caller: Caller | None) -> list[tuple[Presence, str, str]]:
    """Return the holders of the role that a text names, without the caller, each with `role` or `alias`, and that role.

    Without `role:`, only an alias names a role, and none that was ever the name of a session: a file of the repository
    must not redirect what is meant for an agent.

    Returns:
        At least one, last seen first; none if the text names no role.

    Raises:
        UsageError: `no-role-holder` or `too-many-recipients`.
    """
    is_named = is_role(text)
    if not is_named and (is_reserved(text) or presence.last_holder(store, fold(text)) is not None):
        return []
    from . import vocabulary

    pack = vocabulary.read(store.repo.worktree).pack
    typed = text[len(ROLE_PREFIX) :].strip() if is_named else text
    role, similar = vocabulary.find(pack, typed), []
    if not is_named and (role is None or role.resolved_by != vocabulary.ALIAS):
        return []
    if role is None:  # sessions may have roles that this work tree does not know
        lifecycle, _, specialty = fold(typed).partition("/")
        role, similar = (
            vocabulary.Role(
                lifecycle_role=lifecycle, specialty_profile=specialty or None, resolved_by=vocabulary.UNKNOWN
            ),
            vocabulary.similar_roles(pack, typed),
        )
    way = vocabulary.ALIAS if role.resolved_by == vocabulary.ALIAS else ROLE
    return [(one, way, role.role_id) for one in _others(store, text, role, caller, similar)]


def role_holders(store: Store, lifecycle_role: str, specialty_profile: str | None) -> list[Presence]:
    """Return the sessions that hold a role."""
    found = presence.of_role(store, lifecycle_role, specialty_profile)
    return [one for one in found if one.holds_role(store.now())]


def _others(
    store: Store, text: str, role: Role, caller: Caller | None, similar: Sequence[str]
) -> list[Presence]:
    """Return the holders of a role without the caller; raise an error without any."""
    if store.snapshot is not None and not store.snapshot.is_complete:
        # Who has just spoken counts, too: `with_one_snapshot` repeats this on everything.
        raise UsageError("The index lacks the latest lines. Nothing was written.", code="behind")
    every = role_holders(store, role.lifecycle_role, role.specialty_profile)
    own = caller.ids if caller is not None else []
    found = [one for one in every if one.session_id not in own and one.reader not in own]
    shown = sanitize(text)[:80]
    if len(found) > HOLDERS_MAX:
        raise UsageError(
            f"--to: more than {HOLDERS_MAX} sessions hold {shown}, and no more can be addressed. Nothing was written.",
            hint="Name some of them, or use --broadcast.",
            code="too-many-recipients",
            next=["gitmem role"],
        )
    if not found:
        from . import vocabulary

        alone = " but you" if every else ""
        delegate = command(
            "gitmem", "delegate", "what to do", "--to", f"{ROLE_PREFIX}{role.role_id}", "--wu", "WU-7"
        )
        raise UsageError(
            f"--to: nobody{alone} holds {shown}: no open session with a record of the last 24 hours states this role. "
            "Nothing was written.",
            hint="`gitmem role` shows who holds which role; `gitmem session set --role` states one. "
            "A delegation waits for whoever takes the role.",
            code="no-role-holder",
            suggestions=[f"{ROLE_PREFIX}{each}" for each in similar],
            next=[*([delegate] if role.resolved_by != vocabulary.UNKNOWN else []), "gitmem role"],
        )
    return found
