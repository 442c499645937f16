"""The fields of a session that a caller can set and clear."""

from __future__ import annotations

from .. import strict_json
from ..agents import display_names, heartbeats, own_sessions, presence
from ..commit_message import SUBJECT_MAX, cut
from ..errors import UsageError
from ..log.entry import CommitMessage
from ..mailbox import mailbox_view
from ..records.ids import role_id
from ..text.sanitize import sanitize
from ..text.shell_quote import command
from . import unread_left

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..agents.caller import Caller
    from ..agents.presence import Presence
    from ..records.record_types import SessionFields
    from ..store import Store
    from .stated_role import RoleOptions

_OPTIONS = {"agent_identity": "--agent-identity", "wu_id": "--wu", "initiative_id": "--initiative",
            "lane": "--lane", "client": "--client", "workspace_id": "--workspace"}  # fmt: skip
_PREPOSITIONS = {"wu_id": "on ", "initiative_id": "on initiative ", "lane": "in lane ", "client": "run by ",
         "workspace_id": "in workspace ", "activity": "doing: ", "lifecycle_role": "in the role ", "model": "running ",
         "branch": "on branch ", "worktree": "in "}  # fmt: skip
# Fields that the sentence about another one says, or that say too much for a sentence.
_UNSAID = (
    "harness_session",
    "specialty_profile",
    "role_alias",
    "role_pack",
    "capabilities",
    "actual_ownership_scope",
)
CLEARABLE = {
    "wu_id": "on no work unit", "initiative_id": "on no initiative", "lane": "in no lane",
    "activity": "without an activity note", "lifecycle_role": "in no role", "specialty_profile": "", "role_alias": "",
    "role_pack": "", "capabilities": "without capabilities", "actual_ownership_scope": "without a scope",
    "model": "running no known model", "branch": "on no branch", "task_id": "on no task",
}  # fmt: skip


def fields(
    identity: str | None,
    wu: str | None,
    initiative: str | None,
    lane: str | None,
    client: str | None,
    workspace: str | None,
) -> dict[str, str | None]:
    """Return the values by the contract's names.

    Raises:
        UsageError: `bad-identity` for an identity that looks like another one.
    """
    display_names.check_identity(identity)
    return {
        "agent_identity": identity,
        "wu_id": wu,
        "initiative_id": initiative,
        "lane": lane,
        "client": client,
        "workspace_id": workspace,
    }


def put(record: SessionFields, values: Mapping[str, str | None]) -> None:
    """Set the values in a record."""
    record["agent_identity"] = values.get("agent_identity")
    record["wu_id"] = values.get("wu_id")
    record["initiative_id"] = values.get("initiative_id")
    record["lane"] = values.get("lane")
    record["client"] = values.get("client")
    record["workspace_id"] = values.get("workspace_id")
    record["harness_session"] = values.get("harness_session")
    record["activity"] = values.get("activity")
    record["lifecycle_role"] = values.get("lifecycle_role")
    record["specialty_profile"] = values.get("specialty_profile")
    record["role_alias"] = values.get("role_alias")
    record["role_pack"] = values.get("role_pack")
    record["model"] = values.get("model")
    record["branch"] = values.get("branch") or None
    if values.get("worktree"):
        record["worktree"] = values["worktree"]
    for name in ("capabilities", "actual_ownership_scope"):
        text = values.get(name)
        if text:
            record[name] = strict_json.read(text)  # their values are JSON here


def inherit(given: Mapping[str, str | None], former: Mapping[str, str]) -> dict[str, str | None]:
    """Return the fields of a session that resumes an ended one: values that are not given (None) are kept.

    The activity of the ended session is not kept, because it is out of date.
    """
    return {name: former.get(name) if value is None else value for name, value in given.items()}


def cleared(given: Mapping[str, str | None], known: Mapping[str, str]) -> list[str]:
    """Return the fields that are given as empty and have a value."""
    return [name for name in CLEARABLE if given.get(name) == "" and known.get(name)]


def describe_changes(differs: Mapping[str, str | None], gone: Sequence[str]) -> list[str]:
    """Return the description of a change for a commit subject, after "is now"."""
    changed = {name: value for name, value in differs.items() if name not in _UNSAID}
    if "lifecycle_role" in changed:
        changed["lifecycle_role"] = role_id(differs["lifecycle_role"], differs.get("specialty_profile"))
    return [f"{_PREPOSITIONS.get(name, '')}{value}" for name, value in changed.items()] + [
        CLEARABLE[name] for name in gone if CLEARABLE[name]
    ]


def retry_command(event: str, given: Mapping[str, str | None], role: RoleOptions) -> list[str]:
    """Return the command that gave these fields and this role; an empty value clears what it names."""
    typed: list[tuple[str, str | None]] = [
        (_OPTIONS[name], value) for name, value in given.items() if name in _OPTIONS
    ]
    typed += [("--role", role.get("role"))]
    typed += [("--scope", each) for each in role.get("scope") or ()]
    typed += [("--model", role.get("model"))]
    typed += [("--capabilities", each) for each in role.get("capabilities") or ()]
    words = [word for option, value in typed if value is not None for word in (option, value)]
    return ["gitmem", "session", event, *words]


def take_identity(store: Store, former: Presence) -> str:
    """Return the command by which a session becomes the agent of an earlier one; of one without an identity, which shows its signals."""
    if former.agent_identity is None:
        return command("gitmem", "inbox", "--for", former.session_id)
    taken = former_fields(store, former)
    name = ["--name", taken["name"]] if "name" in taken else []
    return command("gitmem", "session", "set", "--agent-identity", taken["agent_identity"], *name)


def former_fields(store: Store, former: Presence) -> dict[str, str]:
    """Return the fields by which a session becomes the agent of an earlier one: its identity, and its name if that is free."""
    taken = {"agent_identity": str(former.agent_identity)}
    try:
        display_names.claim(store, former.name)
    except UsageError:  # a session that has not ended holds its name for two days
        return taken
    return {**taken, "name": former.name}


def former_agent(store: Store, caller: Caller) -> Presence | None:
    """Return the last agent of this worktree, to offer its identity to a caller that has none; else one that has left signals unread.

    An agent that is at work may be another one beside the caller: None.
    """
    if caller.identity is not None:
        return None
    former = own_sessions.last_agent_here(store)
    if former is not None and former.status != "live":
        return former
    here = heartbeats.label(store)
    return next((one for one in mailbox_view.left_behind(store) if one.worktree == here), None)


def offer_identity(store: Store, former: Presence | None, remark: str | None, next: list[str]) -> str | None:
    """Return the remark on a new session without an identity, with how it becomes the agent that worked here before.

    Nothing is taken over by itself: another agent may have come to the worktree.

    Args:
        store: The open store.
        former: The last session of that agent.
        remark: What else there is to say.
        next: The next commands; gets the one that takes the identity.
    """
    if former is None:
        return remark
    who, ago = (
        f"{sanitize(former.name)} ({sanitize(str(former.agent_identity))})",
        presence.format_age(former.age),
    )
    waits, where = unread_left.in_words(store, former), sanitize(former.worktree or "")
    if former.status == "live":  # perhaps beside the caller: no command that would take its messages
        session = command("export", f"GITMEM_SESSION={former.session_id}")
        offer = (
            f"{who} was at work in {where}, {ago}{waits}. If that was you, go on as that session: {session}"
        )
    else:
        next.insert(1, take_identity(store, former))
        how = (
            "take its identity: then its messages are yours"
            if former.agent_identity
            else "its messages are shown by that"
        )
        offer = f"{who} worked in {where}, {ago}{waits}. If you are that agent, {how}."
    return " ".join(filter(None, (remark, offer)))


def start_commit_message(record: SessionFields) -> CommitMessage:
    """Return the commit message of a new session."""
    identity, unit = record.get("agent_identity"), record.get("wu_id")
    role = role_id(record.get("lifecycle_role"), record.get("specialty_profile"))
    subject = f"{record['display_name']} starts"
    if identity:
        subject += f" ({identity})"
    subject += f" as {role}" if role else ""
    subject += f" in {record['worktree']}"
    if unit:
        subject += f" on {unit}"
    reader = identity or record["session_id"]
    trailers = [("WU", unit), ("Role", role), ("Agent", reader), ("Session", record["session_id"])]
    author = f"{record['display_name']} <{reader}@gitmem>"
    subject = cut(sanitize(subject), SUBJECT_MAX)
    return CommitMessage(author, subject, "", [(key, value) for key, value in trailers if value])
