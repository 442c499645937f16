"""What a tool of the agent changes: warn about the claims of others on the files that it edits, and note who edits what.

In a worktree with several sessions the hook script keeps the inputs of edits, named `<client>+<GITMEM_SESSION or nothing>+<process>`.
"""

from __future__ import annotations

import os

from gitmem import local_files
from gitmem.agents import delivery, edited_paths, presence
from gitmem.clients import events, hook_state
from gitmem.clients.events import READS, REFUSES
from gitmem.work import edit_guard

from ..render import output
from . import hook_call
from .hook_call import answer, refuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gitmem.agents.caller import Caller
    from gitmem.store import Store

    from ..environment import Environment
    from .hook_call import HookInput, HookTimer


CUT_MAX = 5  # characters of what may be cut: an escape such as `\u00e9`, or a word
_VALUES = ("", ":null", "null")  # the text may be cut before the value of a key
_BRACKETS = {"{": "}", "[": "]"}


def read_kept(store: Store) -> None:
    """Note the edits of all kept inputs of this worktree, and remove them. Never raises an OSError.

    Raises:
        StoreError: The log can't be read.
    """
    if not edited_paths.is_shared(store.repo):
        return
    folder = edited_paths.inputs(store.repo)
    for name in sorted(local_files.names_in(folder))[: edited_paths.INPUTS_MAX]:
        path = os.path.join(folder, name)
        data = local_files.read(path, edited_paths.INPUT_MAX_BYTES)
        local_files.remove_quietly(path)
        client, _, rest = name.partition("+")
        if data and client in events.EVENTS:
            _note(store, client, rest.partition("+")[0], data)


def _note(store: Store, client: str, named: str, data: bytes) -> None:
    call = hook_call.HookInput(client, "", events.EDIT, beginning(data))
    found = presence.of_client(store, call.session) if call.session else None
    session = found or hook_call.named(store, named, client, call.session)
    if session is not None:
        paths = hook_call.within_repo(store.repo, call.cwd, call.edited)
        edited_paths.note_edit(store, session.session_id, paths)


def beginning(data: bytes) -> Mapping[str, object]:
    """Return the object that a JSON text begins, although its end is missing; empty if it begins something else."""
    found = hook_call.object_of(data)
    text = data.decode("utf-8", "ignore")
    for cut in range(0 if found else CUT_MAX + 1):
        quote, brackets = _open_ends(text[: len(text) - cut])
        for value in _VALUES:
            found = found or hook_call.object_of(
                (text[: len(text) - cut] + quote + value + brackets).encode()
            )
    return found


def _open_ends(text: str) -> tuple[str, str]:
    """Return what ends the string in which a JSON text is cut, and what ends its objects and lists."""
    brackets: list[str] = []
    in_string = escaped = False
    for each in text:
        if in_string:
            in_string = each != '"' or escaped
            escaped = each == "\\" and not escaped
        elif each == '"':
            in_string = True
        elif each in _BRACKETS:
            brackets.append(_BRACKETS[each])
        elif brackets and each == brackets[-1]:
            brackets.pop()
    return '"' if in_string else "", "".join(reversed(brackets))


COMMIT_SECONDS = 2.0
OUTPUT_MAX, DEPTH_MAX, PRINTED_MAX = 256 * 1024, 4, 64
_ASKED = ("tool_input", "toolArgs", "args")
_PRINTED = ("tool_response", "tool_output", "toolResult", "toolOutput", "output", "result")
# A command that makes commits, and what git prints then: `[branch 1234567] subject`.
_MAKES = r"\bgit\b[^\n]{0,4096}\b(?:commit|cherry-pick|revert)\b"
_MADE = r"(?m)^\[[^\]\n]{1,300} ([0-9a-f]{7,64})\] "


def before_edit(at: Environment, call: HookInput, clock: HookTimer) -> None:
    """Print the warnings about an edit, or refuse it.

    A client whose model reads nothing before a tool gets them with the tool's result, by the session's flag.
    """
    store = at.store()
    if not hook_state.update_index(store):
        return
    caller = hook_call.caller(at, call)
    if caller is None:
        return
    paths = hook_call.within_repo(at.repo, call.cwd, call.edited)
    if edited_paths.is_shared(at.repo) and caller.session_id is not None:
        edited_paths.note_edit(store, caller.session_id, paths)
        read_kept(store)
    found = edit_guard.warnings_of_edit(store, caller, paths, may_refuse=call.client in REFUSES)
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
    paths = hook_call.within_repo(at.repo, call.cwd, call.edited) if call.edited else []
    return edit_guard.warnings_of_edit(store, caller, paths, may_refuse=False).text


def notice_edits(at: Environment) -> None:
    """Notice what this worktree has changed, in the background at the end of a turn."""
    store = at.store()
    if hook_state.update_index(store):
        read_kept(store)
        edit_guard.note_overlaps(store)


def note_commits(at: Environment, caller: Caller | None, fields: object, *, in_turn: bool) -> None:
    """Record the commits of a client's worktree.

    Args:
        fields: The input of the hook, which may have the output of a command.
        in_turn: Whether the agent is in its turn.
    """
    from gitmem.history import commits
    from gitmem.history.commits import Clues

    clues = Clues(caller, printed_commits(fields), in_turn=in_turn)
    commits.try_note(at.store(), clues, seconds=COMMIT_SECONDS)


def printed_commits(fields: object) -> list[str]:
    """Return the beginnings of the ids of the commits that a tool's command says it has made."""
    import re  # slow to import, and most hooks see no commit

    if not isinstance(fields, dict):
        return []
    asked = [text for key in _ASKED for text in _texts(fields.get(key))]
    if not any(re.search(_MAKES, text) for text in asked):
        return []
    texts = [text for key in _PRINTED for text in _texts(fields.get(key))]
    return [found for text in texts for found in re.findall(_MADE, text)][:PRINTED_MAX]


def _texts(value: object, depth: int = 0) -> Iterator[str]:
    """Yield the texts in a value, cut to a size that is searched quickly."""
    if isinstance(value, str):
        yield value[-OUTPUT_MAX:]
    elif depth < DEPTH_MAX and isinstance(value, (dict, list)):
        for each in list(value.values() if isinstance(value, dict) else value)[:100]:
            yield from _texts(each, depth + 1)
