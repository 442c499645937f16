"""The sessions that hold a role, for signals to `role:…` and to the alias of a role. Never fuzzy.

A session holds a role if it states it and has a line of the last 24 hours. Which sessions these are is decided when a
signal is sent; who takes the role later does not receive it.
"""

from __future__ import annotations

from ..commit_message import sanitize
from ..errors import UsageError
from ..roles import lookup, roles_file
from ..text.name_matching import fold, is_reserved
from ..text.shell_quote import command
from . import own_recipients, presence
from .presence import IDLE_MICROS, format_age

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..roles.lookup import Role
    from ..store import Store
    from .caller import Caller
    from .presence import Presence

PREFIX = "role:"
ROLE = "role"  # in `resolved_by`
HOLDERS_MAX = 100


def is_role(text: str) -> bool:
    """Return whether a recipient names a role: `role:` and no further colon, which an agent identity has."""
    return text[: len(PREFIX)].lower() == PREFIX and text.count(":") == 1


def named(store: Store, text: str, caller: Caller | None) -> list[tuple[Presence, str, str]]:
    """Return the holders of the role that a text names, without the caller, each with `role` or `alias`, and that role.

    Without `role:`, only an alias names a role, and none that was ever the name of a session: a file of the repository
    must not redirect what is meant for an agent.

    Returns:
        At least one, last seen first; none if the text names no role.

    Raises:
        UsageError: `no-role-holder` or `too-many-recipients`.
    """
    is_named = is_role(text)
    if not is_named and (is_reserved(text) or presence.last_holder(store, fold(text)) is not None):
        return []
    pack = roles_file.read(store.repo.worktree).pack
    typed = text[len(PREFIX) :].strip() if is_named else text
    role, similar = lookup.find(pack, typed), []
    if not is_named and (role is None or role.resolved_by != lookup.ALIAS):
        return []
    if role is None:  # sessions may have roles that this work tree does not know
        lifecycle, _, specialty = fold(typed).partition("/")
        role, similar = (
            lookup.Role(lifecycle, specialty or None, lookup.UNKNOWN),
            lookup.suggestions(pack, typed),
        )
    way = lookup.ALIAS if role.resolved_by == lookup.ALIAS else ROLE
    return [(one, way, role.role_id) for one in _others(store, text, role, caller, similar)]


def remark(store: Store, holder: Presence) -> str:
    """Return what the sender should know of a holder."""
    age = format_age(store.now() - holder.record_at)
    return f"{holder.name} holds {holder.role}; its last record: {age}."


def of_role(store: Store, lifecycle_role: str, specialty_profile: str | None) -> list[Presence]:
    """Return the sessions that hold a role; those of this clone by their own lines."""
    found = own_recipients.of_role(store, lifecycle_role, specialty_profile)
    return [one for one in found if is_held(one, store.now())]


def is_held(one: Presence, now: int) -> bool:
    """Return whether an open session has a line of the last 24 hours and states a role."""
    return one.role is not None and one.ended is None and now - one.record_at < IDLE_MICROS


def _others(
    store: Store, text: str, role: Role, caller: Caller | None, similar: Sequence[str]
) -> list[Presence]:
    """Return the holders of a role without the caller; raise an error without any."""
    if store.snapshot is not None and not store.snapshot.is_complete:
        # Who has just spoken counts, too: `with_one_snapshot` repeats this on everything.
        raise UsageError("The index lacks the latest lines. Nothing was written.", code="behind")
    every = of_role(store, role.lifecycle_role, role.specialty_profile)
    own = caller.ids if caller is not None else []
    found = [one for one in every if one.session_id not in own and one.reader not in own]
    shown = sanitize(text)[:80]
    if len(found) > HOLDERS_MAX:
        raise UsageError(
            f"--to: more than {HOLDERS_MAX} sessions hold {shown}, and no more can be addressed. Nothing was written.",
            hint="Name some of them, or use --broadcast.",
            code="too-many-recipients",
            next=["gitmem role list"],
        )
    if not found:
        alone = " but you" if every else ""
        delegate = command(
            "gitmem", "delegate", "what to do", "--to", f"{PREFIX}{role.role_id}", "--wu", "WU-7"
        )
        raise UsageError(
            f"--to: nobody{alone} holds {shown}: no open session with a record of the last 24 hours states this role. "
            "Nothing was written.",
            hint="`gitmem role list` shows who holds which role; `gitmem session set --role` states one. "
            "A delegation waits for whoever takes the role.",
            code="no-role-holder",
            suggestions=[f"{PREFIX}{each}" for each in similar],
            next=[*([delegate] if role.resolved_by != lookup.UNKNOWN else []), "gitmem role list"],
        )
    return found
