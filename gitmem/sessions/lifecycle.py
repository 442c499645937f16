"""The life of a session, one run of an agent in one worktree: start, change and end."""

from __future__ import annotations

from .. import commit_process
from ..agents import caller as callers
from ..agents import commit_stamps, display_names, heartbeats, name_pins, own_sessions, presence
from ..agents.caller_identity import CallerClaims, default_workspace
from ..commit_message import SUBJECT_MAX, cut
from ..errors import UsageError
from ..log.entry import CommitMessage
from ..mailbox import imported, session_queue
from ..records.ids import new_id
from ..text.sanitize import sanitize
from ..text.shell_quote import command
from . import session_fields, stated_role, unread_left, work_units
from .session_result import SessionChanged, SessionEnded, SessionStarted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack

    from ..agents.caller import Caller
    from ..agents.presence import Presence
    from ..records.record_types import SessionFields
    from ..store import Store
    from .stated_role import RoleOptions

START_SECONDS = 5.0


def start(
    store: Store,
    who: CallerClaims,
    *,
    agent_identity: str | None = None,
    name: str | None = None,
    wu: str | None = None,
    initiative: str | None = None,
    lane: str | None = None,
    client: str | None = None,
    workspace: str | None = None,
    allow_secret: bool = False,
    former: Presence | None = None,
    **role: Unpack[RoleOptions],
) -> SessionStarted:
    """Start a session of an agent in this worktree.

    If the client's session id has an open session, return that one, now in this worktree, with the given fields changed. If it has an ended
    one, the new session takes over its name and fields, except those given.

    Args:
        agent_identity: `owner:role:purpose`; the default is `who.identity`.
        name: A chosen display name; the default is one from the pool.
        former: The open session that goes on under the client's session id, which is new to it.
        role: Its actual role, scope, model and capabilities; see `RoleOptions`.

    Raises:
        UsageError: `name-in-use`, `bad-name`, those of `stated_role.fields`, or a field that breaks the contract.
    """
    fields = session_fields.fields(agent_identity or who.identity, wu, initiative, lane, client, workspace)
    fields["branch"] = work_units.recordable_branch(store.branch()) or ""
    who.client_session = callers.starting_client(store, who)
    if who.client_session is None:
        return _start_new(store, who, name, fields, allow_secret, role)
    from ..mailbox import delivery_lock

    # A client may run the hooks of several scopes at once: the second one must find the session of the first.
    with delivery_lock.delivery_lock(store, f"start {who.client_session[1]}", wait_seconds=START_SECONDS):
        known = own_sessions.of_client(store, who.client_session[1]) or former
        if known is None:
            return _start_new(store, who, name, fields, allow_secret, role)
        stated = stated_role.fields(store, known.record, role)
        fields.update(stated.fields)
        given = {key: value or None for key, value in fields.items()}  # a new start clears nothing
        given["branch"] = fields["branch"]  # but HEAD may be on none
        given["worktree"] = heartbeats.label(store)
        was = unread_left.at_new_identity(store, known, given["agent_identity"])
        given["harness_session"] = store.keys.hashed(who.client_session[1])
        changed = _change(
            store, known, name, given, session_fields.retry_command("start", given, role), allow_secret
        )
        _register(store, known.session_id, who)
        started = SessionStarted(changed[0], *changed[1:], _first_steps(store, changed[0]))
        started.add_remark(was)
        return stated.told(started)


def _start_new(
    store: Store,
    who: CallerClaims,
    name: str | None,
    fields: dict[str, str | None],
    allow_secret: bool,
    role: RoleOptions,
) -> SessionStarted:
    former = own_sessions.of_client(store, who.client_session[1], ended=True) if who.client_session else None
    stated = stated_role.fields(store, former.record if former is not None else {}, role)
    fields.update(stated.fields)
    again = session_fields.retry_command("start", fields, role)
    if former is not None:
        fields = session_fields.inherit(fields, former.record)
    if fields["workspace_id"] is None:
        fields["workspace_id"] = default_workspace(store)
    if name is None:
        name, chosen = (former and _former_name(store, former)) or (display_names.pick(store), False)
    else:
        display_names.claim(store, name, again=again)
        chosen = True
    session_id = new_id("sess", store.random)
    store.log.make_state()
    record: SessionFields = {
        "session_id": session_id,
        "event": "start",
        "display_name": name,
        "name_chosen": chosen,
        "clone_id": store.log.clone_id(),
        "worktree": heartbeats.label(store),
    }
    session_fields.put(
        record,
        {
            **fields,
            "harness_session": store.keys.hashed(who.client_session[1]) if who.client_session else None,
        },
    )
    message = session_fields.start_commit_message(record)
    appended = store.record([store.line("session", record, allow_secret=allow_secret)], message)
    _register(store, session_id, who)
    found = presence.get(store, session_id)
    if found is None:
        raise UsageError(
            f"{session_id} is recorded, but the index does not have it yet.",
            hint="`gitmem doctor` compares the index with the log.",
            code="index",
            next=[command("export", f"GITMEM_SESSION={session_id}"), "gitmem doctor"],
        )
    name_pins.replace(store, found)
    started = SessionStarted(found, appended.commit, True, _first_steps(store, found))
    if chosen and imported.signal_ids(store.db(), name):
        notice = f"Signals to {found.asked} were imported; no session gets them."
        started.remark = " ".join(filter(None, (started.remark, notice)))
        started.next.insert(1, imported.inbox_command(name))
    if found.agent_identity is None and who.client_session is None:
        former = own_sessions.last_agent_here(store) or session_fields.former_agent(
            store, callers.of_session(found, "session")
        )
        started.remark = session_fields.offer_identity(store, former, started.remark, started.next)
    return stated.told(started)


def _former_name(store: Store, former: Presence) -> tuple[str, bool] | None:
    """Return the name of a resumed session, if it is free, and whether the session had chosen it."""
    try:
        display_names.claim(store, former.asked)
    except UsageError:
        return None
    return former.asked, bool(former.record.get("name_chosen"))


def change(
    store: Store,
    caller: Caller,
    *,
    agent_identity: str | None = None,
    name: str | None = None,
    wu: str | None = None,
    initiative: str | None = None,
    lane: str | None = None,
    client: str | None = None,
    workspace: str | None = None,
    activity: str | None = None,
    allow_secret: bool = False,
    **role: Unpack[RoleOptions],
) -> SessionChanged:
    """Change the public fields of the caller's session. If nothing differs, nothing is recorded.

    An empty work unit, initiative, lane, activity, role, scope, model or list of capabilities clears the present one.

    Raises:
        UsageError: As in `start`, and `no-session` for a caller without a session.
    """
    found = _own_session(store, caller)
    fields = session_fields.fields(agent_identity, wu, initiative, lane, client, workspace)
    fields["activity"] = activity
    if heartbeats.works_here(store, found.session_id):
        fields["branch"] = work_units.recordable_branch(store.branch()) or ""
    stated = stated_role.fields(store, found.record, role)
    fields.update(stated.fields)
    was = unread_left.at_new_identity(store, found, agent_identity)
    again = session_fields.retry_command("set", fields, role)
    changed = _change(store, found, name, fields, again, allow_secret)
    _register(store, found.session_id)  # with a new identity it has that identity's messages
    steps = _first_steps(store, changed[0])[2:] if agent_identity else ["gitmem roster"]
    after = SessionChanged(*changed, steps)
    after.add_remark(was)
    return stated.told(after)


def come_here(store: Store, found: Presence, client_id: str) -> None:
    """Record that a session goes on in this worktree, under a client's own id."""
    branch = work_units.recordable_branch(store.branch()) or ""
    _change(store, found, None, {"worktree": heartbeats.label(store), "branch": branch}, (), False)
    _register(store, found.session_id, CallerClaims(client_session=("", client_id)))


def end(
    store: Store, caller: Caller, *, summary: str | None = None, allow_secret: bool = False
) -> SessionEnded:
    """End the caller's session. Its name is free again; its id and identity stay addressable.

    Args:
        summary: What the session did, for others; put on one line.
        allow_secret: Accept a summary that looks like a secret.

    Raises:
        UsageError: As `end_line`.
    """
    found, line, summary = end_line(store, caller, summary, allow_secret=allow_secret)
    left = unread_left.at_end(store, found)
    subject = f"{found.name} ends: {summary}" if summary else f"{found.name} ends"
    appended = store.record([line], _commit_message(found, subject))
    if store.collecting is None:  # a batch may fail; the file of an ended session does no harm
        names_of_flags = heartbeats.flag_names(found.session_id, heartbeats.end(store, found.session_id))
        session_queue.remove(store.repo.state, found.session_id, names_of_flags)
        appended.commit = appended.commit or commit_process.try_commit_waiting(store, deferred=True)
    found = own_sessions.trusted(store, found.session_id) or found
    ended = SessionEnded(found, appended.commit, True, ["unset GITMEM_SESSION", "gitmem session start"])
    ended.add_remark(left)
    return ended


def end_line(
    store: Store, caller: Caller, summary: str | None, *, allow_secret: bool = False
) -> tuple[Presence, tuple[str, bytes], str]:
    """Return the caller's session, the line that ends it and its summary on one line. Record nothing.

    Raises:
        UsageError: `no-session` for a caller without a session; the summary is invalid (RecordError, SecretError).
    """
    found = _own_session(store, caller)
    record = own_sessions.record(found, "end")
    record["summary"] = said = " ".join((summary or "").split())
    return found, store.line("session", record, allow_secret=allow_secret or not said), said


def _register(store: Store, session_id: str, began: CallerClaims | None = None) -> None:
    """Record that a session is here (or begins, or comes to this worktree), and queue what it has not read, for later hooks."""
    if began is None:
        heartbeats.touch(store, session_id)
    else:
        names = heartbeats.flag_names(session_id, heartbeats.client_of(store, session_id))
        session_queue.begin(store, session_id, began.client_session)
        session_queue.forget_names(store, session_id, names)
        session_queue.remove_old_queues(store)
    commit_stamps.update(store)
    if store.collecting is None:
        session_queue.queue_all(store, session_id)


def _change(
    store: Store,
    found: Presence,
    name: str | None,
    fields: dict[str, str | None],
    again: Sequence[str],
    allow_secret: bool,
) -> tuple[Presence, str | None, bool]:
    """Record what differs; return the session after that, the commit, and whether it was recorded."""
    differs = {key: value for key, value in fields.items() if value and value != found.record.get(key)}
    if not differs.keys().isdisjoint(stated_role.ROLE):  # concurrent changes must not mix two roles
        differs.update({name: value for name in stated_role.ROLE if (value := fields.get(name))})
    cleared = session_fields.cleared(fields, found.record)
    record = own_sessions.record(found, "change")
    record["clear"] = cleared
    session_fields.put(record, differs)
    news = session_fields.describe_changes(differs, cleared)
    subject = f"{found.name} is now {', '.join(news)}" if news else f"{found.name} continues"
    if name is not None and name != found.name:
        display_names.claim(store, name, session_id=found.session_id, again=again)
        record["display_name"] = differs["display_name"] = name
        subject = f"{found.name} is now called {name}" + (f", {', '.join(news)}" if news else "")
    is_choice = name is not None and ("display_name" in differs or not found.record.get("name_chosen"))
    if is_choice:  # also of a name that the pool gave
        record["name_chosen"] = True
    if not differs and not cleared and not is_choice:
        return found, None, False
    message = _commit_message(found, subject, differs.get("wu_id"))
    appended = store.record([store.line("session", record, allow_secret=allow_secret)], message)
    after = own_sessions.trusted(store, found.session_id) or found
    if "display_name" in differs:
        name_pins.replace(store, after, found.name, found.asked)
    return after, appended.commit, True


def _own_session(store: Store, caller: Caller) -> Presence:
    found = own_sessions.trusted(store, caller.session_id) if caller.session_id else None
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
