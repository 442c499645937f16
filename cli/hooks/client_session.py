"""Start and end a session of ours with a client's session, also one that goes on under a new id when its context is cleared."""

from __future__ import annotations

import os
import sys

from gitmem import local_files
from gitmem.agents import caller as callers
from gitmem.agents import doors, edited_paths, heartbeats, lifecycle, presence, waking
from gitmem.agents.heartbeats import BEATS, PROMPTS, TURNS
from gitmem.clients import clients, events, hook_state
from gitmem.errors import GitmemError, UsageError
from gitmem.sync import sync_remotes

from ..environment import user_state, variable, wal_folders
from . import hook_call
from .show_signals import deliver, limit_retries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitmem.agents.caller import Caller
    from gitmem.agents.presence import Presence
    from gitmem.store import Store

    from ..environment import Environment
    from .hook_call import HookInput, HookTimer


CLEARED_FOLDER = "cleared"
# A client says that a session goes on right after it has said that it was cleared.
CLEARED_MICROS = 60 * 1_000_000


def leave_cleared(store: Store, session_id: str, client: str, window: str | None) -> bool:
    """Note that a session goes on under an id that is not known yet; return whether that could be written."""
    content = "\0".join((str(store.now()), client, store.repo.tree, window or ""))
    path = os.path.join(store.repo.state, CLEARED_FOLDER, session_id)
    return local_files.try_replace(path, os.fsencode(content), folders=True)


def take_cleared(store: Store, client: str, window: str | None) -> tuple[Presence | None, list[Presence]]:
    """Return the session that goes on now, once, and those that nobody will go on as.

    If it could be one of several, it is none: nobody gets another agent's messages. Their offers say what waits.
    """
    folder = os.path.join(store.repo.state, CLEARED_FOLDER)
    found: list[tuple[bool, str]] = []
    over: list[str] = []
    for name in filter(heartbeats.is_safe, local_files.names_in(folder)):
        at, *rest = os.fsdecode(local_files.read(os.path.join(folder, name), 4096)).split("\0")
        if not at.isdecimal() or int(at) < store.now() - CLEARED_MICROS:
            over.append(name)
        elif rest[:2] == [client, store.repo.tree] and not (window and rest[2:] not in ([""], [window])):
            found.append((rest[2:] == [window], name))
    exact = [name for is_exact, name in found if is_exact] or [name for _, name in found]
    over += exact if len(exact) > 1 else []
    own = {name: presence.get(store, name) for name in (*over, *exact) if _remove(folder, name)}
    still = {name: one for name, one in own.items() if one is not None and one.ended is None}
    return still.get(exact[0]) if len(exact) == 1 else None, [still[name] for name in over if name in still]


def _remove(folder: str, name: str) -> bool:
    """Remove the file of a session; whoever does has the session."""
    try:
        local_files.refuse_link(folder)
        os.unlink(os.path.join(folder, name))
    except OSError:
        return False
    return True


BUSY_MILLISECONDS = 3000
ENV_FILES = ("CLAUDE_ENV_FILE", "CODEX_ENV_FILE")
MEMORY_BYTES = 1536  # bytes
CLEARED = "clear"
# The variables by which clients name the process that has a window.
WINDOWS = {"claude-code": "CLAUDE_PID"}
_GOES_ON = ("compact", "resume")  # the same agent, which had the offer when it began
_CONTEXT_LOST = ("compact", "resume", "clear")  # the agent has worked here before, but has lost its context


def start(at: Environment, call: HookInput, clock: HookTimer) -> None:
    """Register the session, and give the agent its name, its memory and its unread signals."""
    store = at.store()
    if not hook_state.update_index(store, BUSY_MILLISECONDS):
        return
    _prepare(at, store)
    before = heartbeats.known_sessions(store)
    found = _register(at, call)
    if found is None:
        return
    is_new = found.session_id not in before
    hook_state.add_session(store, call.client, found.session_id)
    edited_paths.update_flags(store)
    _create_heartbeat_files(store, call.session, found.session_id)
    _note_door(store, call, found.session_id)
    variables = {"GITMEM_SESSION": found.session_id}
    exported = _export(variables) or call.client == "cursor"
    caller = callers.of_session(found, "harness")
    texts = [
        hook_call.introduction(at, call, caller, exported=exported),
        lifecycle.offer(store, caller) if is_new and call.source not in _GOES_ON else "",
        sync_remotes.consent_remark(store),
        _memory(store, caller, call.source),
    ]
    deliver(
        store, caller, call, clock, via=hook_call.reply_program(at, call, caller, exported=exported),
        before="\n\n".join(filter(None, texts)), variables=variables,
    )  # fmt: skip
    limit_retries(store, call)


def end(at: Environment, call: HookInput, clock: HookTimer) -> None:
    """End the session that this client's start has begun; one that the user has named, or whose context is cleared, continues."""
    store = at.store()
    found = presence.of_client(store, call.session) if call.session else None
    if found is None:
        adopted = hook_call.named(store, at.session, call.client, call.session)
        if adopted is not None:
            heartbeats.bind(store, adopted.session_id, "")
        return
    if not clock.is_waited_for():
        return
    if call.fields.get("reason") == CLEARED and leave_cleared(
        store, found.session_id, call.client, variable(WINDOWS.get(call.client, ""))
    ):
        return
    hook_state.remove_session(store, call.client, found.session_id)
    for name in (call.session or "", found.session_id):
        local_files.remove_quietly(os.path.join(store.repo.state, PROMPTS, os.path.basename(name) or "-"))
    hook_state.forget_tool_calls(store, call.client, call.session)
    doors.forget(store.doors_folder, found.session_id)
    lifecycle.end(store, callers.of_session(found, "harness"))
    edited_paths.update_flags(store)


def follow(at: Environment, call: HookInput) -> None:
    """Have the session of a client come to this worktree, if it works in another one. Its subagents come without it."""
    store = at.store()
    found = hook_call.session(at, call)
    heartbeats.begin_commits(store, from_beginning=True)
    if found is not None and not call.in_subagent and not heartbeats.works_here(store, found.session_id):
        lifecycle.come_here(store, found, call.session or "")
        hook_state.add_session(store, call.client, found.session_id)
        edited_paths.update_flags(store)
    heartbeats.meet(store, call.session or "")


def checkpoint(at: Environment, call: HookInput, clock: HookTimer) -> None:
    """Save what is known of the session; print nothing. What subagents do concerns the session that started them."""
    store = at.store()
    if not hook_state.update_index(store, BUSY_MILLISECONDS):
        return
    caller = hook_call.caller(at, call)
    if caller is None or not clock.is_waited_for():
        return
    from gitmem.memory import checkpoints

    try:
        checkpoints.write_automatic(store, caller, events.TRIGGERS.get(call.event, events.COUNTED))
    except GitmemError as error:  # signals must still be shown
        hook_state.note_error(store.repo.state, store.now(), f"{call.client} {call.event}", error.message)


def _prepare(at: Environment, store: Store) -> None:
    """Write the files that the script needs. An unwritable folder must not stop the hook."""
    state = store.repo.state
    for name, mode in ((BEATS, 0o777), (PROMPTS, 0o700), (TURNS, 0o777)):
        try:
            local_files.refuse_link(state)
            if os.path.islink(os.path.join(state, name)):
                os.unlink(os.path.join(state, name))
            os.mkdir(os.path.join(state, name), mode)
            local_files.adjust(os.path.join(state, name))
        except OSError:
            continue
    clients.share_copies(state)
    hook_state.mark(state, hook_state.STUCK, False)
    hook_state.cache_settings(store)
    clients.write_paths(state, user=user_state(), program=_program(), wal_folders=wal_folders(at.repo))


def _create_heartbeat_files(store: Store, *names: str | None) -> None:
    """Create the files that the script touches, with the repository's file mode: a shell has only its umask."""
    for name in names:
        if name and heartbeats.is_safe(name):
            local_files.try_mark(os.path.join(store.repo.state, BEATS, name))


def _note_door(store: Store, call: HookInput, session_id: str) -> None:
    """Note by which door the session can be woken. A program that the project itself may have brought is none."""
    client = clients.CLIENTS.get(call.client)
    if client is None or call.client not in doors.DOORS:
        return
    moved = variable(clients.FOLDER_VARIABLES.get(call.client, "")) or ""
    folder = moved if os.path.isabs(moved) else os.path.join(os.path.expanduser("~"), client.base)
    if client.form == clients.PLUGIN:
        folder = store.doors_folder
    import shutil  # slow

    found = doors.program_of(call.process, client.programs[0]) or shutil.which(client.programs[0]) or ""
    is_inside = found.startswith(os.path.join(store.repo.worktree or os.sep, ""))
    program = found if os.path.isabs(found) and not is_inside else ""
    waking.forget_turn(store.repo.state, call.process)
    door = doors.Door(call.client, call.session or "", call.process, folder, program)
    doors.note(store.doors_folder, session_id, door, store.now() / 1e6)


def _program() -> str | None:
    """Return the running program, for later hooks; None if it has another name."""
    path = os.path.abspath(sys.argv[0])
    name = os.path.basename(path).removesuffix(".exe")
    return path if name == "gitmem" and os.access(path, os.X_OK) else None


def _register(at: Environment, call: HookInput) -> Presence | None:
    """Return our session: the client's own, otherwise the one that the user has named, otherwise a new one."""
    store = at.store()
    known = presence.of_client(store, call.session) if call.session else None
    if known is None and call.source == CLEARED:
        known, over = take_cleared(store, call.client, variable(WINDOWS.get(call.client, "")))
        for each in over:
            lifecycle.end(store, callers.of_session(each, "harness"))
    if known is None:
        adopted = hook_call.named(store, at.session, call.client, call.session)
        if adopted is not None and call.session:  # another client within this one has a session of its own
            heartbeats.bind(store, adopted.session_id, call.session)
        if adopted is not None or not call.session:
            return adopted
    named = events.SESSION_VARIABLES.get(call.client, call.client)
    identity = at.identity if call.client not in events.SHARED_ENVIRONMENT else None
    given = callers.CallerClaims(client_session=(named, call.session or ""), identity=identity)
    before = known or (presence.of_client(store, call.session, ended=True) if call.session else None)
    wu = _work_unit(store) if before is None or not before.wu_id else None
    try:
        started = lifecycle.start(store, given, wu=wu, client=call.client, former=known)
    except UsageError as error:
        if given.identity is None and wu is None:
            raise
        # An invalid identity or branch name must not keep signals from the agent.
        hook_state.note_error(store.repo.state, store.now(), f"{call.client} {call.event}", error.message)
        given.identity = None
        started = lifecycle.start(store, given, client=call.client, former=known)
    return presence.get(store, started.session_id)


def _work_unit(store: Store) -> str | None:
    """Return the work unit that the branch, or `gitmem.wu`, names."""
    import re

    from gitmem.agents import session_view

    try:
        found = session_view.units_of_checkout(store)
        branch = store.head()[1] or ""
    except GitmemError:
        return None
    new = re.search(r"(?i)(?<![a-z0-9])wu-[0-9]{1,9}(?![a-z0-9])", branch)
    return found[0] if found else new[0].upper() if new else None


def _export(variables: dict[str, str]) -> bool:
    """Export the session to the agent's commands, if the client has a file for that."""
    from gitmem.outcome import quote

    lines = "".join(f"export {name}={quote(value)}\n" for name, value in variables.items())
    done = False
    for name in ENV_FILES:
        path = variable(name)
        if not path or not os.path.isabs(path):
            continue
        try:
            with open(path, "a+", encoding="utf-8") as file:
                file.seek(0)
                known = file.read()
                if lines not in known:
                    file.write(("\n" if known and not known.endswith("\n") else "") + lines)
            done = True
        except (OSError, ValueError):
            continue
    return done


def _memory(store: Store, caller: Caller, source: str) -> str:
    """Return the short text of `mem recover`; "" if there is none.

    Args:
        source: How the session starts: a new one gets the text only after a checkpoint.
    """
    from gitmem.memory import context, stored_nodes

    try:
        if source not in _CONTEXT_LOST and not stored_nodes.last_checkpoint(
            store, caller.session_id, caller.wu_id, None, caller.reader
        ):
            return ""
        found = context.recover(store, caller, max_size=MEMORY_BYTES, roster=False)
    except GitmemError:
        return ""
    return found.block.rstrip("\n") if any(found.included.values()) else ""
