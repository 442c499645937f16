"""The headline of a sender: the name that it chose, else its current activity, if known.

It is recorded with the signal, to show the sender as of that time. It must never prevent a signal from being sent:
text that can't be read, or that looks like a secret, is ignored.
"""

from __future__ import annotations

import os

from ..agents import heartbeats
from ..agents.heartbeats import PROMPTS
from ..records.secrets import find_secret
from . import message_frame

try:
    from _json import scanstring
except ImportError:  # not CPython
    from json.decoder import scanstring  # type: ignore[attr-defined,no-redef]  # it is there, and typeshed lacks it

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

    from ..agents.caller import Caller
    from ..store import Store

SETTING = "gitmem.headline"
NAME_ONLY = "name"  # setting: nothing about the work itself
WITH_PROMPT = "prompt"  # setting: also the beginning of the user's last prompt
READ_MAX = 256 * 1024  # bytes of a prompt file
LOOKED_AT = 1_000  # characters of a text that are searched for secrets
_KEY = '"prompt"'


def of(store: Store, db: sqlite3.Connection, caller: Caller) -> str | None:
    """Return the sender's headline, one line of at most 60 columns.

    Returns:
        None for a person, for a caller without a session, and if no usable text is known.
    """
    if caller.is_person or caller.session_id is None:
        return None
    for text in _texts(store, db, caller):
        text = " ".join(text[:READ_MAX].split())[:LOOKED_AT]  # white space must not hide a secret
        found = message_frame.headline_title(text)
        if found and not find_secret(text) and not find_secret(found):
            return found
    return None


def shows_prompts(store: Store) -> bool:
    """Return whether the user allows text of prompts in headlines: `git config gitmem.headline prompt`."""
    return store.settings().get(SETTING) == WITH_PROMPT


def _texts(store: Store, db: sqlite3.Connection, caller: Caller) -> Iterator[str]:
    """Yield candidates for the headline, the best first; each is computed only when it is needed."""
    yield _chosen_name(caller)
    if store.settings().get(SETTING) != NAME_ONLY:
        yield (caller.record or {}).get("activity", "")
        yield store.domain.last_checkpoint(db, caller.session_id or "")
        if shows_prompts(store):
            yield _prompt(store, caller)
    yield message_frame.SEPARATOR.join(filter(None, (caller.role, caller.wu_id, store.branch())))


def _chosen_name(caller: Caller) -> str:
    """Return the name that the session chose; "" for a name from the pool."""
    return caller.name or "" if (caller.record or {}).get("name_chosen") else ""


def _prompt(store: Store, caller: Caller) -> str:
    """Return the user's last prompt, if a hook has kept it, else ""."""
    names = [caller.session_id, caller.client_id or heartbeats.client_of(store, caller.session_id or "")]
    for name in names:
        if not name or name.startswith(".") or os.sep in name or "\0" in name:
            continue
        try:
            with open(os.path.join(store.repo.state, PROMPTS, name), "rb") as file:
                content = file.read(READ_MAX).decode("utf-8", "replace")
        except (OSError, ValueError):
            continue
        found = _prompt_in(content)
        if found:
            return found
    return ""


def _prompt_in(content: str) -> str:
    """Return the text under the key `prompt` of a JSON object, without the json package, which imports `re`."""
    at = content.find(_KEY)
    while at >= 0:
        rest = content[at + len(_KEY) :].lstrip()
        if rest.startswith(":") and rest[1:].lstrip().startswith('"'):
            begin = rest.index('"') + 1
            try:
                return str(scanstring(rest, begin, False)[0]).strip()
            except ValueError:
                return ""
        at = content.find(_KEY, at + 1)
    return ""
