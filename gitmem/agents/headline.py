"""The headline of a session: the name that it chose, else its current activity, if known.

There is one rule for all places that show who a session is and what it does. A signal records it, to show the sender as
of that time; the roster and whoami compute it now. It must never prevent a signal from being sent: text that can't be
read, or that looks like a secret, is ignored.
"""

from __future__ import annotations

import os

from .. import state_files
from ..records.ids import role_of
from ..records.secrets import find_secret
from ..text.sanitize import SEPARATOR, title
from . import heartbeats
from .heartbeats import PROMPTS

try:
    from _json import scanstring
except ImportError:  # not CPython
    from json.decoder import scanstring  # type: ignore[attr-defined,no-redef]  # it is there, and typeshed lacks it

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping

    from ..index.engine import StepLimit
    from ..store import Store
    from .caller_identity import Caller
    from .presence import Presence

SETTING = "gitmem.headline"
NAME_ONLY = "name"  # setting: nothing about the work itself
WITH_PROMPT = "prompt"  # setting: also the beginning of the user's last prompt
READ_MAX = 256 * 1024  # bytes of a prompt file
LOOKED_AT = 1_000  # characters of a text that are searched for secrets
_KEY = '"prompt"'


def of_caller(store: Store, db: sqlite3.Connection, caller: Caller) -> str | None:
    """Return the caller's headline, one line of at most 60 columns.

    Returns:
        None for a person, for a caller without a session, and if no usable text is known.
    """
    if caller.is_person or caller.session_id is None:
        return None
    return _first_usable(
        _texts(store, db, caller.record or {}, caller.session_id, caller.client_id, here=True)
    )


def of_session(store: Store, db: sqlite3.Connection, found: Presence, steps: StepLimit) -> str:
    """Return the headline that `of_caller` gives to this session; its name if the steps are used up.

    This clone's settings and prompts only concern sessions that were started in it.
    """
    texts = _texts(store, db, found.record, found.session_id, None, here=found.here)
    return steps.ask(_first_usable, texts) or title(found.name)


def description(store: Store, db: sqlite3.Connection, one: Presence, steps: StepLimit) -> str:
    """Return a session as one line: who, where, on what, and its headline without the name."""
    parts = [one.name]
    if one.agent_identity:
        parts.append(f"({one.agent_identity})")
    if one.role:
        parts.append(f"as {one.role}")
    if one.worktree:
        parts.append(f"in {one.worktree}")
    if one.wu_id:
        parts.append(f"on {one.wu_id}")
    if one.record.get("lane"):
        parts.append(f"in lane {one.record['lane']}")
    does = beside_name(of_session(store, db, one, steps), one.name, one.record.get("activity"))
    return " ".join(parts) + (f": {does}" if does else "")


def beside_name(headline: str | None, name: str, activity: str | None) -> str:
    """Return what to show of a headline beside the session's name: without the name that it begins with."""
    if headline and not headline.startswith(title(name)):
        return headline
    return activity or ""


def shows_prompts(store: Store) -> bool:
    """Return whether the user allows text of prompts in headlines: `git config gitmem.headline prompt`."""
    return store.settings().get(SETTING) == WITH_PROMPT


def _first_usable(texts: Iterator[str]) -> str | None:
    for text in texts:
        text = " ".join(text[:READ_MAX].split())[:LOOKED_AT]  # white space must not hide a secret
        found = title(text)
        if found and not find_secret(text) and (found == text or not find_secret(found)):
            return found
    return None


def _texts(
    store: Store,
    db: sqlite3.Connection,
    record: Mapping[str, str],
    session_id: str,
    client_id: str | None,
    *,
    here: bool,
) -> Iterator[str]:
    """Yield candidates for the headline, the best first; each is computed only when it is needed."""
    name = record.get("display_name", "")
    if record.get("name_chosen"):
        yield name
    setting = store.settings().get(SETTING) if here else None
    if setting != NAME_ONLY:
        yield record.get("activity", "")
        yield store.domain.last_checkpoint(db, session_id)
        if setting == WITH_PROMPT:
            yield _prompt(store, session_id, client_id)
    role = role_of(record)
    yield SEPARATOR.join(filter(None, (name, role, record.get("wu_id"))))


def _prompt(store: Store, session_id: str, client_id: str | None) -> str:
    """Return the user's last prompt, if a hook has kept it, else ""."""
    for name in (session_id, client_id or heartbeats.client_of(store, session_id)):
        if not name or name.startswith(".") or os.sep in name or "\0" in name:
            continue
        content = state_files.read(os.path.join(store.repo.state, PROMPTS, name), READ_MAX)
        found = _prompt_in(content.decode("utf-8", "replace"))
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
