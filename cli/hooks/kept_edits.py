"""The inputs of edits that the hook script has kept, in a worktree with several sessions: which session edits what.

Their names are `<client>+<GITMEM_SESSION or nothing>+<process>`.
"""

from __future__ import annotations

import os

from gitmem import atomic_write, state_files
from gitmem.agents import edited_paths, presence
from gitmem.clients.hooks import events

from . import edit_input, hook_caller, hook_input

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitmem.store import Store

CUT_MAX = 5  # characters of what may be cut: an escape such as `\u00e9`, or a word
_VALUES = ("", ":null", "null")  # the text may be cut before the value of a key
_BRACKETS = {"{": "}", "[": "]"}


def read(store: Store) -> None:
    """Note the edits of all kept inputs of this worktree, and remove them. Never raises an OSError.

    Raises:
        StoreError: The log can't be read.
    """
    if not edited_paths.is_shared(store.repo):
        return
    folder = edited_paths.inputs(store.repo)
    for name in sorted(atomic_write.names_in(folder))[: edited_paths.INPUTS_MAX]:
        path = os.path.join(folder, name)
        data = state_files.read(path, edited_paths.INPUT_MAX_BYTES)
        atomic_write.remove_quietly(path)
        client, _, rest = name.partition("+")
        if data and client in events.EVENTS:
            _note(store, client, rest.partition("+")[0], data)


def _note(store: Store, client: str, named: str, data: bytes) -> None:
    call = hook_input.HookInput(client, "", events.EDIT, beginning(data))
    found = presence.of_client(store, call.session) if call.session else None
    session = found or hook_caller.named(store, named, client, call.session)
    if session is not None:
        paths = edit_input.within(store.repo, call.cwd, call.edited)
        edited_paths.note_edit(store, session.session_id, paths)


def beginning(data: bytes) -> Mapping[str, object]:
    """Return the object that a JSON text begins, although its end is missing; empty if it begins something else."""
    found = hook_input.object_of(data)
    text = data.decode("utf-8", "ignore")
    for cut in range(0 if found else CUT_MAX + 1):
        quote, brackets = _open_ends(text[: len(text) - cut])
        for value in _VALUES:
            found = found or hook_input.object_of(
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
