"""The life of a session, one run of an agent in one worktree: start, change and end, with the fields that it states and what it leaves unread."""

from __future__ import annotations

from ..commit_message import SUBJECT_MAX, cut
from ..errors import UsageError
from ..log.lines import CommitMessage
from ..outcome import Struct, command
from ..records import CLEARABLE
from ..records.ids import role_id
from ..records.lines import as_json
from ..settings import REFUSE, ROLES
from ..text import strict_json
from ..text.addresses import words_of
from ..text.sanitize import sanitize, sanitize_for_model
from . import caller as callers
from . import (
    delivery,
    descriptions,
    heartbeats,
    mailbox,
    names,
    other_keys,
    presence,
)
from .caller import CallerClaims, default_workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, NotRequired, Self, TypedDict, Unpack

    from ..records.record_types import SessionFields
    from ..store import Store
    from .caller import Caller
    from .presence import Presence
    from .vocabulary import Roles

    class SessionOptions(TypedDict):
        """What a session says of itself. One that is missing or None stays as it is; an empty one is removed.

        Attributes:
            agent_identity: `owner:role:purpose`.
            role: `LIFECYCLE/PROFILE`, an alias, or the beginning of one.
            scope: Paths, or `KEY=VALUE`; see `descriptors.parse_scope`.
            model: The model that runs it.
            capabilities: What it can do; they give no role.
        """

        agent_identity: NotRequired[str | None]
        wu: NotRequired[str | None]
        initiative: NotRequired[str | None]
        lane: NotRequired[str | None]
        client: NotRequired[str | None]
        workspace: NotRequired[str | None]
        role: NotRequired[str | None]
        scope: NotRequired[Sequence[str] | None]
        model: NotRequired[str | None]
        capabilities: NotRequired[Sequence[str] | None]


class SessionResult(descriptions.Stated, kw_only=True):
    """The present state of a session: one that started, or the existing one of the same client session; one after a change, or at its end.

    `summary` is what an ended one did; `commit` is None if nothing was committed.
    `role_resolved_by` is the step that found the role that was just given.
    """

    session_id: str
    display_name: str
    summary: str | None
    role_resolved_by: str | None = None
    commit: str | None
    recorded: bool
    remark: str | None = None
    next: list[str]

    @classmethod
    def after(cls, found: Presence, commit: str | None, recorded: bool, next: Sequence[str]) -> Self:
        """Return the answer about a session."""
        made = cls.taken_from(descriptions.row(found, ""), commit=commit, recorded=recorded, next=[*next])
        if found.asked != found.name:
            made.add_remark(
                f"The name {found.asked} belongs to an earlier session; your display name is {found.name}."
            )
        return made

    def add_remark(self, sentence: str | None) -> None:
        """Add a sentence to the remark."""
        self.remark = " ".join(filter(None, (self.remark, sentence))) or None


def unread_at_end(store: Store, found: Presence) -> str | None:
    """Return a sentence about what a session has not read as it ends, and who reads it; None if all is read."""
    unread, asked = _counts(store, found)
    if not unread:
        return None
    if found.agent_identity is not None:
        later = f"The next session of {sanitize(found.agent_identity)} reads {_them(unread)}."
    elif found.harness_session is not None:
        later = f"Its client's conversation reads {_them(unread)} if it is resumed."
    else:
        later = (
            f"No later session reads {_them(unread)}: {command('gitmem', 'inbox', '--for', found.session_id)}"
        )
    return f"{_number(unread, asked)}. {later}"


def unread_in_words(store: Store, found: Presence) -> str:
    """Return how much a session has not read, for the end of a clause; "" if it has read all."""
    unread, asked = _counts(store, found)
    return f", and has {_number(unread, asked)}" if unread else ""


def note_new_identity(store: Store, found: Presence, identity: str | None) -> str | None:
    """Return a sentence about the agent that a session was before a change; None if it stays the same agent.

    Args:
        store: The open store.
        found: The session before the change.
        identity: Its new agent identity; None for the present one.

    Raises:
        UsageError: `unread-mail`: only this session would have shown signals to its present identity.
    """
    own = found.agent_identity
    if not identity or own is None or identity == own:
        return None
    was = f"{sanitize(found.name)} ({sanitize(own)})"
    others = [one for one in presence.of_identity(store, own) if one.session_id != found.session_id]
    waiting = mailbox.unread_ids(
        store.db(), own, found.session_id, found.record.get("workspace_id"), store.now(), directed=True
    )
    unread = len({signal_id for address, signal_id in waiting if address == own})
    if unread and all(one.ended is not None for one in others):
        raise UsageError(
            f"This session is {was} and has {_number(unread, 0)}: as {sanitize(identity)} it would not show {_them(unread)}. "
            "Nothing was written.",
            hint=f"Read {_them(unread)} first. A subagent works in the session as it is, under its identity.",
            code="unread-mail",
            next=["gitmem inbox"],
        )
    back = command("gitmem", "session", "set", "--agent-identity", own, "--name", found.asked)
    return f"This session was {was}. If that is a mistake: {back}"


def _counts(store: Store, found: Presence) -> tuple[int, int]:
    who = (found.reader, found.session_id, found.record.get("workspace_id"))
    # Broadcasts since its end are not its own.
    return store.domain.unread_counts(store, *who, directed=found.ended is not None)


def _number(unread: int, asked: int) -> str:
    wants = f" ({asked} {'wants' if asked == 1 else 'want'} an answer)" if asked else ""
    return f"{unread} unread{wants}"


def _them(unread: int) -> str:
    return "it" if unread == 1 else "them"


# The field of a record that an option sets; options of the command line have the same names.
_FIELDS = {
    "agent_identity": "agent_identity", "wu": "wu_id", "initiative": "initiative_id", "lane": "lane",
    "client": "client", "workspace": "workspace_id",
}  # fmt: skip
_OPTIONS = ("agent_identity", "wu", "lane", "client", "role", "scope", "model", "capabilities")
ROLE = ("lifecycle_role", "specialty_profile", "role_alias", "role_pack")
_JSON = ("capabilities", "actual_ownership_scope")  # their values are JSON here
# What the subject of a commit does not say: the role is named by its two parts, and the rest says too much for a sentence.
_UNSAID = ("harness_session", *ROLE, *_JSON)


def _own_address(store: Store, identity: str | None) -> str | None:
    """Return the address of an agent identity here.

    Raises:
        UsageError: `bad-identity` for one that looks like another one, or of another writer that has not allowed it.
    """
    names.check_identity(identity)
    if not identity:
        return identity
    writer = store.writers.writer()
    if not store.may_write_as(identity):
        raise UsageError(
            f"{sanitize(identity)[:300]} is an agent of another writer; here only agents of {writer} work. Nothing was recorded.",
            hint=f"Give the identity without its writer: {sanitize(words_of(identity))[:256]}.",
            code="bad-identity",
            next=["gitmem roster --all"],
        )
    return store.own_address(identity)


def _put(record: SessionFields, values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value:
            record[name] = strict_json.read(value) if name in _JSON else value  # type: ignore[literal-required]


def _described(differs: Mapping[str, str | None], gone: Sequence[str]) -> str:
    """Return what a change sets and clears, for the subject of its commit."""
    said = {name: value for name, value in differs.items() if name not in _UNSAID}
    if "lifecycle_role" in differs:
        said["role"] = role_id(differs["lifecycle_role"], differs.get("specialty_profile"))
    words = [f"{name.removesuffix('_id').replace('_', ' ')} {value}" for name, value in said.items()]
    words += [f"no {name.removesuffix('_id').replace('_', ' ')}" for name in gone if name not in ROLE[1:]]
    return ", ".join(words)


def _command(event: str, options: SessionOptions) -> list[str]:
    """Return the command that states this; an empty value clears what it names."""
    typed = ["gitmem", "session", event]
    given: Mapping[str, Any] = options
    for name in _OPTIONS:
        value = given.get(name)
        for each in [value] if isinstance(value, str) else value or ():
            typed += [f"--{name.replace('_', '-')}", each]
    return typed


def take_identity(store: Store, former: Presence) -> str:
    """Return the command by which a session becomes the agent of an earlier one; of one without an identity, which shows its signals."""
    if former.agent_identity is None:
        return command("gitmem", "inbox", "--for", former.session_id)
    taken = ["--agent-identity", former.agent_identity]
    try:
        names.claim(store, former.name)
        taken += ["--name", former.name]
    except UsageError:
        pass  # a session that has not ended holds its name for two days
    return command("gitmem", "session", "set", *taken)


def offer(store: Store, caller: Caller) -> str:
    """Return the line that offers an agent without an identity that of the last agent of this worktree, or ""."""
    former = former_agent(store, caller)
    if former is None:
        return ""
    name, where, take = (
        sanitize_for_model(each)
        for each in (former.name, former.worktree or "", take_identity(store, former))
    )
    worked = f"{name} worked in {where}, {presence.format_age(former.age)}{unread_in_words(store, former)}"
    gives = "gives you" if former.agent_identity else "shows"
    return f"{worked}. If you are {name}, `{take}` {gives} its messages."


def former_agent(store: Store, caller: Caller) -> Presence | None:
    """Return the last agent of this worktree, to offer its identity to a caller that has none; else one that has left signals unread.

    An agent that is at work may be another one beside the caller: None.
    """
    if caller.identity is not None:
        return None
    former = presence.last_agent_here(store)
    if former is not None and former.status != "live":
        return former
    here = heartbeats.label(store)
    return next((one for one in mailbox.left_behind(store) if one.worktree == here), None)


def offer_identity(store: Store, former: Presence | None, remark: str | None, next: list[str]) -> str | None:
    """Return the remark on a new session without an identity, with how it becomes the agent that worked here before.

    Nothing is taken over by itself: another agent may have come to the worktree.

    Args:
        store: The open store.
        former: The last session of that agent.
        remark: What else there is to say.
        next: The next commands; gets the one that takes the identity.
    """
    if former is None:
        return remark
    who, ago = (
        f"{sanitize(former.name)} ({sanitize(str(former.agent_identity))})",
        presence.format_age(former.age),
    )
    waits, where = unread_in_words(store, former), sanitize(former.worktree or "")
    if former.status == "live":  # perhaps beside the caller: no command that would take its messages
        session = command("export", f"GITMEM_SESSION={former.session_id}")
        offer = (
            f"{who} was at work in {where}, {ago}{waits}. If that was you, go on as that session: {session}"
        )
    else:
        next.insert(1, take_identity(store, former))
        how = (
            "take its identity: then its messages are yours"
            if former.agent_identity
            else "its messages are shown by that"
        )
        offer = f"{who} worked in {where}, {ago}{waits}. If you are that agent, {how}."
    return " ".join(filter(None, (remark, offer)))


def start_commit_message(record: SessionFields) -> CommitMessage:
    """Return the commit message of a new session."""
    identity, unit = record.get("agent_identity"), record.get("wu_id")
    role = role_id(record.get("lifecycle_role"), record.get("specialty_profile"))
    subject = f"{record['display_name']} starts"
    if identity:
        subject += f" ({identity})"
    subject += f" as {role}" if role else ""
    subject += f" in {record['worktree']}"
    if unit:
        subject += f" on {unit}"
    reader = identity or record["session_id"]
    trailers = [("WU", unit), ("Role", role), ("Agent", reader), ("Session", record["session_id"])]
    author = f"{record['display_name']} <{reader}@gitmem>"
    subject = cut(sanitize(subject), SUBJECT_MAX)
    return CommitMessage(author, subject, "", [(key, value) for key, value in trailers if value])


class Stated(Struct):
    """What options change: fields, None for those that stay and "" for those that are removed; and what to say."""

    fields: dict[str, str | None]
    resolved_by: str | None = None
    remarks: list[str | None] = []

    def told(self, result: SessionResult) -> SessionResult:
        """Add what there is to say to an answer, and return it."""
        result.role_resolved_by = self.resolved_by
        result.remark = " ".join(filter(None, (result.remark, *self.remarks))) or None
        return result


def stated_fields(store: Store, known: Mapping[str, str], options: SessionOptions) -> Stated:
    """Return what options say of a session.

    Args:
        known: The fields of the session so far.

    Raises:
        TypeError: An option is not one of `SessionOptions`.
        UsageError: `bad-identity`, `unknown-role`, `ambiguous-role`, `bad-role`, `bad-scope`, `bad-capability` or `bad-setting`.
    """
    unknown = options.keys() - {*_FIELDS, *_OPTIONS}
    if unknown:
        raise TypeError(f"A session has no option {', '.join(sorted(unknown))}.")
    given: Mapping[str, Any] = options
    found = Stated({field: given.get(name) for name, field in _FIELDS.items()})
    found.fields |= dict.fromkeys((*ROLE, *_JSON))
    found.fields["agent_identity"] = _own_address(store, options.get("agent_identity"))
    found.fields["model"] = options.get("model")
    role, scope, capabilities = options.get("role"), options.get("scope"), options.get("capabilities")
    if capabilities is not None:
        found.fields["capabilities"] = _capabilities(capabilities)
    if role is None and scope is None:
        return found
    if role == "":
        found.fields.update(dict.fromkeys(ROLE, ""))
    if scope is not None and not any(scope):
        found.fields["actual_ownership_scope"] = ""
    if role or (scope is not None and any(scope)) or (role == "" and known.get("actual_ownership_scope")):
        from . import vocabulary

        roles = vocabulary.read(store.repo.worktree)
        found.remarks.append(roles.warning)
        policy = ROLES.checked(store.settings())
        if role:
            _set_role(found, roles, role, policy)
        _set_scope(found, roles, known, [each for each in scope or () if each], policy)
    return found


def _set_role(found: Stated, roles: Roles, text: str, policy: str) -> None:
    from . import vocabulary

    role = vocabulary.resolve(roles, text, policy=policy)
    found.resolved_by = role.resolved_by
    found.remarks.append(vocabulary.warning(roles, role, text))
    found.fields["lifecycle_role"] = role.lifecycle_role
    found.fields["specialty_profile"] = role.specialty_profile or ""
    found.fields["role_alias"] = role.role_alias or ""
    found.fields["role_pack"] = roles.pack.name
    if role.capabilities:
        found.fields["capabilities"] = found.fields["capabilities"] or as_json(role.capabilities)


def _set_scope(
    found: Stated, roles: Roles, known: Mapping[str, str], texts: Sequence[str], policy: str
) -> None:
    """Set the scope that the texts name; without any, adapt the known one to a new role.

    Raises:
        UsageError: `unknown-responsibility`, if the setting refuses unknown ones.
    """
    from . import descriptors

    before = known.get("lifecycle_role")
    role = before if found.fields["lifecycle_role"] is None else found.fields["lifecycle_role"]
    if texts:
        given = descriptors.parse_scope(texts)
    else:
        stored = known.get("actual_ownership_scope")
        kept = descriptors.read_scope(strict_json.read(stored)) if stored else None
        usual = list(roles.pack.lifecycle_roles.get(before or "", ()))
        if kept is None or found.fields["actual_ownership_scope"] == "" or kept.responsibility_kinds != usual:
            return
        given, given.responsibility_kinds = kept, []
    descriptors.with_default_kinds(given, role, roles.pack)
    unknown = descriptors.unknown_kinds(given, roles.pack) if texts else []
    if unknown and policy == REFUSE:
        raise UsageError(
            f"Unknown responsibility: {unknown[0]}. Nothing was written.",
            hint=f"Known are {', '.join(roles.pack.responsibility_kinds)}.",
            code="unknown-responsibility",
            next=["gitmem role"],
        )
    if unknown:
        found.remarks.append(f"Unknown responsibility: {', '.join(unknown)}. It is recorded as it is.")
    found.fields["actual_ownership_scope"] = as_json(given.as_json())


def _capabilities(given: Sequence[str]) -> str:
    """Return capabilities as they are folded; "" for none.

    Raises:
        UsageError: `bad-capability`.
    """
    from . import vocabulary

    words = [word.strip() for text in given for word in text.split(",")]
    if words in ([], [""]):
        return ""
    wrong = next((word for word in words if not vocabulary.is_capability(word)), None)
    if wrong is not None or len(words) > vocabulary.VALUES_MAX:
        raise UsageError(
            f"Invalid capabilities: each is one line of up to 200 characters, and there are at most {vocabulary.VALUES_MAX}. "
            "Nothing was written.",
            code="bad-capability",
        )
    return as_json(list(dict.fromkeys(words)))


START_SECONDS = 5.0


def start(
    store: Store,
    who: CallerClaims,
    *,
    name: str | None = None,
    former: Presence | None = None,
    **options: Unpack[SessionOptions],
) -> SessionResult:
    """Start a session of an agent in this worktree.

    If the client's session id has an open session, return that one, now in this worktree, with the given fields changed. If it has an ended
    one, the new session takes over its name and fields, except those given.

    Args:
        name: A chosen display name; the default is one from the pool.
        former: The open session that goes on under the client's session id, which is new to it.
        options: What it says of itself; `agent_identity` is `who.identity` by default.

    Raises:
        UsageError: `name-in-use`, `bad-name`, those of `stated_fields`, or a field that breaks the contract.
    """
    options["agent_identity"] = options.get("agent_identity") or who.identity
    who.client_session = callers.starting_client(store, who)
    if who.client_session is None:
        return _start_new(store, who, name, options)
    # A client may run the hooks of several scopes at once: the second one must find the session of the first.
    with delivery.delivery_lock(store, f"start {who.client_session[1]}", wait_seconds=START_SECONDS):
        known = presence.of_client(store, who.client_session[1]) or former
        if known is None:
            return _start_new(store, who, name, options)
        stated = stated_fields(store, known.record, options)
        given = {key: value or None for key, value in stated.fields.items()}  # a new start clears nothing
        given["branch"] = _branch(store)  # but HEAD may be on none
        given["worktree"] = heartbeats.label(store)
        was = note_new_identity(store, known, given["agent_identity"])
        given["harness_session"] = presence.client_address(store, who.client_session[1], recorded=True)
        changed = _change(store, known, name, given, _command("start", options))
        _register(store, known.session_id, who)
        started = SessionResult.after(changed[0], *changed[1:], _first_steps(store, changed[0]))
        started.add_remark(was)
        return stated.told(started)


def _branch(store: Store) -> str:
    return presence.recordable_branch(store.branch()) or ""


def _start_new(store: Store, who: CallerClaims, name: str | None, options: SessionOptions) -> SessionResult:
    client = who.client_session
    former = presence.of_client(store, client[1], ended=True) if client else None
    stated = stated_fields(store, former.record if former is not None else {}, options)
    # The activity of an ended session is out of date, and so not among these.
    fields = {
        each: former.record.get(each) if value is None and former is not None else value
        for each, value in stated.fields.items()
    }
    if fields["workspace_id"] is None:
        fields["workspace_id"] = default_workspace(store)
    if name is None:
        name, chosen = (former and _former_name(store, former)) or (names.pick(store), False)
    else:
        names.claim(store, name, again=_command("start", options))
        chosen = True
    session_id = store.new_id("sess")
    store.log.make_state()
    record: SessionFields = {
        "session_id": session_id,
        "event": "start",
        "display_name": name,
        "name_chosen": chosen,
        "clone_id": store.log.clone_id(),
        "worktree": heartbeats.label(store),
    }
    fields["harness_session"] = presence.client_address(store, client[1], recorded=True) if client else None
    fields["branch"] = _branch(store)
    _put(record, fields)
    message = start_commit_message(record)
    identity = record.get("agent_identity")
    is_new = bool(identity) and not presence.is_known_reader(store, str(identity))
    appended = store.record([store.line("session", record)], message)
    _register(store, session_id, who)
    found = presence.get(store, session_id)
    assert found is not None
    names.repin(store, found)
    started = SessionResult.after(found, appended.commit, True, _first_steps(store, found))
    if chosen and mailbox.imported_ids(store.db(), name):
        started.add_remark(f"Signals to {found.asked} were imported; no session gets them.")
        started.next.insert(1, mailbox.imported_inbox(name))
    if is_new:
        started.add_remark(other_keys.of_same_words(store, found.reader))
    if found.agent_identity is None and client is None:
        former = presence.last_agent_here(store) or former_agent(store, callers.of_session(found, "session"))
        started.remark = offer_identity(store, former, started.remark, started.next)
    return stated.told(started)


def _former_name(store: Store, former: Presence) -> tuple[str, bool] | None:
    """Return the name of a resumed session, if it is free, and whether the session had chosen it."""
    try:
        names.claim(store, former.asked)
    except UsageError:
        return None
    return former.asked, bool(former.record.get("name_chosen"))


def change(
    store: Store,
    caller: Caller,
    *,
    name: str | None = None,
    activity: str | None = None,
    **options: Unpack[SessionOptions],
) -> SessionResult:
    """Change the public fields of the caller's session. If nothing differs, nothing is recorded.

    An empty work unit, initiative, lane, activity, role, scope, model or list of capabilities clears the present one.

    Raises:
        UsageError: As in `start`, and `no-session` for a caller without a session.
    """
    found = _own_session(store, caller)
    stated = stated_fields(store, found.record, options)
    fields, identity = stated.fields, stated.fields["agent_identity"]
    fields["activity"] = activity
    if heartbeats.works_here(store, found.session_id):
        fields["branch"] = _branch(store)
    was = note_new_identity(store, found, identity)
    changed = _change(store, found, name, fields, _command("set", options))
    _register(store, found.session_id)  # with a new identity it has that identity's messages
    steps = _first_steps(store, changed[0])[2:] if identity else ["gitmem roster"]
    after = SessionResult.after(*changed, steps)
    after.add_remark(was)
    return stated.told(after)


def come_here(store: Store, found: Presence, client_id: str) -> None:
    """Record that a session goes on in this worktree, under a client's own id."""
    _change(store, found, None, {"worktree": heartbeats.label(store), "branch": _branch(store)}, ())
    _register(store, found.session_id, CallerClaims(client_session=("", client_id)))


def end(store: Store, caller: Caller, *, summary: str | None = None) -> SessionResult:
    """End the caller's session. Its name is free again; its id and identity stay addressable.

    Args:
        summary: What the session did, for others; put on one line.

    Raises:
        UsageError: As `end_line`.
    """
    found, line, summary = end_line(store, caller, summary)
    left = unread_at_end(store, found)
    subject = f"{found.name} ends: {summary}" if summary else f"{found.name} ends"
    appended = store.record([line], _commit_message(found, subject))
    if store.collecting is None:  # a batch may fail; the file of an ended session does no harm
        names_of_flags = heartbeats.flag_names(found.session_id, heartbeats.end(store, found.session_id))
        delivery.remove_flags(store.repo.state, names_of_flags)
        appended.commit = appended.commit or store.try_commit_waiting(deferred=True)
    found = presence.get(store, found.session_id) or found
    ended = SessionResult.after(
        found, appended.commit, True, ["unset GITMEM_SESSION", "gitmem session start"]
    )
    ended.add_remark(left)
    return ended


def end_line(store: Store, caller: Caller, summary: str | None) -> tuple[Presence, tuple[str, bytes], str]:
    """Return the caller's session, the line that ends it and its summary on one line. Record nothing.

    Raises:
        UsageError: `no-session` for a caller without a session; the summary is invalid (RecordError, SecretError).
    """
    found = _own_session(store, caller)
    record = presence.record_fields(found, "end")
    record["summary"] = said = " ".join((summary or "").split())
    return found, store.line("session", record, allow_secret=not said), said


def _register(store: Store, session_id: str, began: CallerClaims | None = None) -> None:
    """Record that a session is here (or begins, or comes to this worktree), and raise its flags for hooks if it has not read something."""
    if began is None:
        heartbeats.touch(store, session_id)
    else:
        names = heartbeats.flag_names(session_id, heartbeats.client_of(store, session_id))
        delivery.begin(store, session_id, began.client_session)
        delivery.forget_names(store, session_id, names)
        delivery.remove_old_flags(store)
    heartbeats.begin_commits(store)
    if store.collecting is None:
        delivery.raise_all(store, session_id)


def _change(
    store: Store,
    found: Presence,
    name: str | None,
    fields: dict[str, str | None],
    again: Sequence[str],
) -> tuple[Presence, str | None, bool]:
    """Record what differs; return the session after that, the commit, and whether it was recorded."""
    differs = {key: value for key, value in fields.items() if value and value != found.record.get(key)}
    if not differs.keys().isdisjoint(ROLE):  # concurrent changes must not mix two roles
        differs |= {each: value for each in ROLE if (value := fields.get(each))}
    cleared = [each for each in CLEARABLE["session"] if fields.get(each) == "" and found.record.get(each)]
    record = presence.record_fields(found, "change")
    record["clear"] = cleared
    _put(record, differs)
    news = _described(differs, cleared)
    subject = f"{found.name} changes: {news}" if news else f"{found.name} continues"
    if name is not None and name != found.name:
        names.claim(store, name, session_id=found.session_id, again=again)
        record["display_name"] = differs["display_name"] = name
        subject = f"{found.name} is now called {name}" + (f": {news}" if news else "")
    is_choice = name is not None and ("display_name" in differs or not found.record.get("name_chosen"))
    if is_choice:  # also of a name that the pool gave
        record["name_chosen"] = True
    if not differs and not cleared and not is_choice:
        return found, None, False
    message = _commit_message(found, subject, differs.get("wu_id"))
    appended = store.record([store.line("session", record)], message)
    after = presence.get(store, found.session_id) or found
    if "display_name" in differs:
        names.repin(store, after, found.name, found.asked)
    return after, appended.commit, True


def _own_session(store: Store, caller: Caller) -> Presence:
    found = presence.get(store, caller.session_id) if caller.session_id else None
    if found is None:
        raise UsageError(
            f"{caller.name or caller.reader} has no session. Nothing was recorded.",
            hint="Start a session first.",
            code="no-session",
            next=["gitmem session start", "gitmem roster"],
        )
    return found


def _commit_message(found: Presence, subject: str, wu: str | None = None) -> CommitMessage:
    caller = callers.of_session(found, "session")
    caller.wu_id = wu or caller.wu_id
    return CommitMessage(caller.author, cut(sanitize(subject), SUBJECT_MAX), "", caller.trailers())


def _first_steps(store: Store, found: Presence) -> list[str]:
    """Return the commands to begin with; who goes on as an agent that has had other sessions also sees what those left."""
    goes_on = found.agent_identity and len(presence.of_identity(store, found.agent_identity)) > 1
    own = command("export", f"GITMEM_SESSION={found.session_id}")
    return [own, "gitmem inbox", *(["gitmem mem recover"] if goes_on else []), "gitmem roster"]
