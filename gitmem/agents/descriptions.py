"""How sessions and senders are described: the headline of a session, and its form in answers.

The headline is the name that a session chose, else its current activity, if known. There is one rule for all places that
show who a session is and what it does. A signal records it, to show the sender as of that time; the roster and whoami
compute it now. It must never prevent a signal from being sent: text that can't be read, or that looks like a secret, is
ignored.
"""

from __future__ import annotations

import os

from .. import local_files
from ..log.lines import format_at
from ..outcome import Outcome
from ..records.ids import implied_role, role_id, role_of
from ..settings import HEADLINE, PROMPT
from ..text import strict_json
from ..text.sanitize import SEPARATOR, title
from ..text.secrets import find_secret
from . import heartbeats, presence
from .heartbeats import PROMPTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from ..index.index_file import StepLimit
    from ..records.record_types import AuditRecord, NodeRecord, PatchRecord, SignalRecord
    from ..store import Store
    from .caller import Caller
    from .descriptors import OwnershipScope
    from .presence import Presence, ShownNames

    SentRecord = SignalRecord | NodeRecord | PatchRecord | AuditRecord

    # A session in an answer, see `row`.
    SessionRow = dict[str, Any]


class Stated(Outcome, kw_only=True):
    """What answers say of a session. `role` only shows its two parts; `implied_role` is from the identity, `worktree` a folder's name."""

    session_id: str | None
    agent_identity: str | None
    display_name: str | None
    reader_identity: str
    worktree: str | None
    wu_id: str | None
    lane: str | None
    initiative_id: str | None
    activity: str | None
    role: str | None
    implied_role: str | None
    actual_role: Mapping[str, Any] | None
    lifecycle_role: str | None
    specialty_profile: str | None
    role_alias: str | None
    role_pack: str | None
    capabilities: list[str]
    actual_ownership_scope: OwnershipScope | None
    model: str | None
    branch: str | None
    task_id: str | None


try:
    from _json import scanstring
except ImportError:  # not CPython
    from json.decoder import scanstring  # type: ignore[attr-defined,no-redef]  # it is there, and typeshed lacks it

READ_MAX = 256 * 1024  # bytes of a prompt file
LOOKED_AT = 1_000  # characters of a text that are searched for secrets
_KEY = '"prompt"'


def headline_of_caller(store: Store, db: sqlite3.Connection, caller: Caller) -> str | None:
    """Return the caller's headline, one line of at most 60 columns.

    Returns:
        None for a person, for a caller without a session, and if no usable text is known.
    """
    if caller.is_person or caller.session_id is None:
        return None
    return _first_usable(
        _texts(store, db, caller.record or {}, caller.session_id, caller.client_id, here=True)
    )


def headline_of(store: Store, db: sqlite3.Connection, found: Presence, steps: StepLimit) -> str:
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
    does = beside_name(headline_of(store, db, one, steps), one.name, one.record.get("activity"))
    return " ".join(parts) + (f": {does}" if does else "")


def beside_name(headline: str | None, name: str, activity: str | None) -> str:
    """Return what to show of a headline beside the session's name: without the name that it begins with."""
    if headline and not headline.startswith(title(name)):
        return headline
    return activity or ""


def shows_prompts(store: Store) -> bool:
    """Return whether the user allows text of prompts in headlines: `git config gitmem.headline prompt`."""
    return HEADLINE.value(store.settings()) == PROMPT


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
    yield record.get("activity", "")
    yield store.domain.last_checkpoint(db, session_id)
    if here and shows_prompts(store):
        yield _prompt(store, session_id, client_id)
    role = role_of(record)
    yield SEPARATOR.join(filter(None, (name, role, record.get("wu_id"))))


def _prompt(store: Store, session_id: str, client_id: str | None) -> str:
    """Return the user's last prompt, if a hook has kept it, else ""."""
    for name in (session_id, client_id or heartbeats.client_of(store, session_id)):
        if not name or name.startswith(".") or os.sep in name or "\0" in name:
            continue
        content = local_files.read(os.path.join(store.repo.state, PROMPTS, name), READ_MAX)
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


_DESCRIPTOR = ("lifecycle_role", "specialty_profile", "role_alias")


def sender_name(store: Store, record: SentRecord) -> str | None:
    """Return the present name of a record's sender, else its name when it wrote."""
    return sender_name_from(presence.names_by_session(store.db()), record)


def sender_name_from(names: ShownNames, record: SentRecord) -> str | None:
    """Return the same as `sender_name`, for callers with many lookups."""
    session, name = record.get("sender_session"), record.get("sender_name")
    return (names.get(session) if session else None) or name


_AS_SAID = ("lifecycle_role", "specialty_profile", "role_alias", "role_pack", "model", "branch", "task_id")


def role_row(record: Mapping[str, str], identity: str | None) -> dict[str, Any]:
    """Return the role of a folded session, under the names of the role contract."""
    capabilities = record.get("capabilities")
    return {
        "role": role_id(record.get("lifecycle_role"), record.get("specialty_profile")),
        "implied_role": implied_role(identity),
        "actual_role": actual_role(record) or None,
        "capabilities": [str(each) for each in strict_json.read(capabilities)] if capabilities else [],
        "actual_ownership_scope": scope_of(record.get("actual_ownership_scope")),
        **{name: record.get(name) for name in _AS_SAID},
    }


def actual_role(record: Mapping[str, str]) -> dict[str, Any]:
    """Return the role that a folded session states, as a descriptor in the role contract's form; empty if it states none."""
    if not record.get("lifecycle_role"):
        return {}
    found: dict[str, Any] = {name: record[name] for name in _DESCRIPTOR if record.get(name)}
    return {**found, "capabilities": strict_json.read(record.get("capabilities") or "[]")}


def scope_of(text: str | None) -> OwnershipScope | None:
    """Return the scope that a folded session has as JSON, without what has another form; None without one."""
    from . import descriptors

    return descriptors.read_scope(strict_json.read(text)) if text else None


_OF_RECORD = (
    "wu_id", "initiative_id", "lane", "activity", "summary", "worktree", "client", "workspace_id",
)  # fmt: skip


def row(found: Presence, headline: str) -> SessionRow:
    """Return a session as answers show it.

    Only lists add `writer`, the one that attested its start, and only the roster adds `unread`, which is None if counting takes too
    long, `handoffs`, `edits`, `wakes` (`waking.says`) for those that a client began in this clone, and `known` if `.gitmem/signers` knows its address.
    """
    return {
        "session_id": found.session_id,
        "display_name": found.name,
        "agent_identity": found.agent_identity,
        "reader_identity": found.reader,
        **role_row(found.record, found.agent_identity),
        **{name: found.record.get(name) for name in _OF_RECORD},
        "here": found.here,
        "status": found.status,
        "last_seen": format_at(found.last_seen),
        "headline": headline,
    }


def by_role(found: Iterable[Presence]) -> list[Presence]:
    """Return sessions grouped by their roles, those without one last; in each group last seen first."""
    return sorted(
        found, key=lambda one: (one.role is None, one.role or "", -one.last_seen, one.name, one.session_id)
    )
