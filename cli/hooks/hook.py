"""`gitmem hook CLIENT EVENT`: handle one event of a coding agent.

Its exit status is always 0. It prints only what the client understands, and notes errors in
`<state>/hook-error`.
"""

from __future__ import annotations

import os
import sys

from gitmem.clients import events
from gitmem.errors import GitmemError
from gitmem.repo import find

from ..render import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..environment import Environment
    from .hook_call import HookInput, HookTimer

# Seconds until a hook gives up, well before its client does: signals in an output that the client drops must stay
# unread.
LIMIT = 6.0
LIMIT_EDITS = 20.0  # nobody waits for it
LIMITS = {events.START: 15.0, events.END: 2.5}
USAGE = "gitmem hook is an internal command for the hooks of coding agents. `gitmem setup` installs them."


def main(args: Sequence[str]) -> int:
    """Run the hook; return the exit status, 0."""
    try:
        _main(args)
    except BaseException:
        pass  # KeyboardInterrupt and SystemExit, too: no failure here may affect the agent
    return 0


def _main(args: Sequence[str]) -> None:
    client, event, also = (*args, "", "", "")[:3]
    kind = events.kind(client, event)
    if kind is None:
        if sys.stdin is not None and sys.stdin.isatty():
            output.write_error(USAGE)
        return
    from . import hook_call
    from .hook_call import HookTimer

    notices = also == events.EDITED
    seconds = LIMIT_EDITS if notices else LIMITS.get(kind, LIMIT)
    clock = HookTimer(f"{client} {event}", seconds, is_background=notices)
    clock.begin()
    try:
        call = hook_call.read_call(client, event, kind)
        call.notices_edits = notices
        call.saves = call.saves or (kind == events.TOOL and also == events.CHECKPOINT)
        if call.in_subagent and not call.saves and kind not in (events.EDIT, events.TOOL):
            return
        _try(call, clock)
    finally:
        clock.end()


def _try(call: HookInput, clock: HookTimer) -> None:
    """Handle a call; after a failure note the error."""
    from ..environment import Environment, run_in

    try:
        run_in(lambda: Environment(_top_of(call.folder)), lambda at: _begin(at, call, clock))
    except Exception as error:
        reason = getattr(error, "message", None) or f"{type(error).__name__} {error}"
        clock.note(str(reason))


def _begin(at: Environment, call: HookInput, clock: HookTimer) -> None:
    at.is_hook = True
    clock.state = at.repo.state
    if os.path.isdir(clock.state):  # a hook in user scope must not start a log in every repository
        _answer(at, call, clock)


def _top_of(folder: str | None) -> str | None:
    """Return the top of the work tree that a client's folder is in.

    The client has named that folder, not the user: as the value of `-C` it could be a bare repository inside the
    project.
    """
    if folder is None:
        return None
    try:
        return find(folder).worktree or folder
    except GitmemError:
        return folder  # opening it raises the same error


def _answer(at: Environment, call: HookInput, clock: HookTimer) -> None:
    if call.notices_edits:
        from . import tool_use

        tool_use.notice_edits(at)
        return
    if call.kind not in (events.START, events.END, events.EDIT):
        _follow(at, call)
    if call.kind == events.EDIT:
        from . import tool_use

        tool_use.before_edit(at, call, clock)
        return
    if call.saves or call.kind in (events.START, events.END):
        from . import client_session

        bodies = {events.START: client_session.start, events.END: client_session.end}
        if call.kind == events.END:
            _note_commits(at, call)
        bodies.get(call.kind, client_session.checkpoint)(at, call, clock)
        if call.kind != events.TOOL or call.in_subagent:
            return
    _note_commits(at, call)
    if call.in_subagent:
        return
    from . import show_signals

    if show_signals.show_unread(at, call, clock):
        from . import client_session

        client_session.start(at, call, clock)
        show_signals.limit_retries(at.store(), call)


def _follow(at: Environment, call: HookInput) -> None:
    """Have the session come to this worktree, if nothing says that it is here already."""
    from gitmem.agents import heartbeats

    if not call.session or heartbeats.has_met(at.store(), call.session):
        return
    from gitmem.clients import hook_state

    from . import client_session

    if hook_state.update_index(at.store()):
        client_session.follow(at, call)


def _note_commits(at: Environment, call: HookInput) -> None:
    """Record the commits that were made in this worktree since the last look."""
    from gitmem.agents import heartbeats

    if not heartbeats.has_new_commits(at.repo):
        return
    from gitmem.clients import hook_state

    from . import hook_call, tool_use

    if hook_state.update_index(at.store()):
        caller = hook_call.caller(at, call)
        tool_use.note_commits(at, caller, call.fields, in_turn=call.kind in (events.TOOL, events.STOP))
