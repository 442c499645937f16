"""Warn an agent about the claims of others on the files that it is about to edit, or has just edited."""

from __future__ import annotations

from gitmem.agents import delivery, edited_paths
from gitmem.claims import edit_overlaps, edit_warnings
from gitmem.clients.hooks import hook_state
from gitmem.clients.hooks.events import READS, REFUSES

from ..render import output
from . import edit_input, hook_caller, kept_edits
from .client_output import answer, refuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitmem.agents.caller import Caller
    from gitmem.store import Store

    from ..environment import Environment
    from .hook_input import HookInput
    from .time_limit import HookTimer

BUSY_MILLISECONDS = 500


def before_edit(at: Environment, call: HookInput, clock: HookTimer) -> None:
    """Print the warnings about an edit, or refuse it.

    A client whose model reads nothing before a tool gets them with the tool's result, by the session's flag.
    """
    store = at.store()
    if not hook_state.update_index(store, BUSY_MILLISECONDS):
        return
    caller = hook_caller.caller(at, call)
    if caller is None:
        return
    paths = edit_input.within(at.repo, call.cwd, call.edited)
    if edited_paths.is_shared(at.repo) and caller.session_id is not None:
        edited_paths.note_edit(store, caller.session_id, paths)
        kept_edits.read(store)
    found = edit_warnings.of_edit(store, caller, paths, may_refuse=call.client in REFUSES)
    if not found.text or not clock.is_waited_for():
        return
    if found.is_refused:
        output.write(refuse(call, found.text))
    elif call.kind in READS[call.client]:
        output.write(answer(call, found.text, {}) or "")
    else:
        delivery.tell(store, caller.session_id or "", found.text)


def after_edit(at: Environment, call: HookInput, store: Store, caller: Caller) -> str:
    """Return the warnings about an edit in a client without an event before it; "" without one."""
    paths = edit_input.within(at.repo, call.cwd, call.edited) if call.edited else []
    return edit_warnings.of_edit(store, caller, paths, may_refuse=False).text


def notice(at: Environment) -> None:
    """Notice what this worktree has changed, in the background at the end of a turn."""
    store = at.store()
    if hook_state.update_index(store, BUSY_MILLISECONDS):
        kept_edits.read(store)
        edit_overlaps.note(store)
        for session_id in edited_paths.sessions_here(store):
            edit_overlaps.publish(store, session_id)
