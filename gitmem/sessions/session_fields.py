"""What one may say of a session, and take back."""

from __future__ import annotations

from ..agents import display_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_OPTIONS = {"agent_identity": "--agent-identity", "wu_id": "--wu", "initiative_id": "--initiative",
            "lane": "--lane", "client": "--client", "workspace_id": "--workspace"}  # fmt: skip
_NEWS = {"wu_id": "on ", "initiative_id": "on initiative ", "lane": "in lane ", "client": "run by ",
         "workspace_id": "in workspace ", "activity": "doing: "}  # fmt: skip
CLEARABLE = {"wu_id": "on no work unit", "initiative_id": "on no initiative", "lane": "in no lane",
             "activity": "saying nothing of what it does"}  # fmt: skip


def fields(
    identity: str | None,
    wu: str | None,
    initiative: str | None,
    lane: str | None,
    client: str | None,
    workspace: str | None,
) -> dict[str, str | None]:
    """The values by the contract's names. Raises: UsageError for an identity that reads like another one."""
    display_names.check_identity(identity)
    return {
        "agent_identity": identity,
        "wu_id": wu,
        "initiative_id": initiative,
        "lane": lane,
        "client": client,
        "workspace_id": workspace,
    }


def taken_over(given: Mapping[str, str | None], former: Mapping[str, str]) -> dict[str, str | None]:
    """Return the values of a session that goes on as one that has ended: what is not given (None) is as it was.

    What the session did last is not taken over: that was then.
    """
    return {name: former.get(name) if value is None else value for name, value in given.items()}


def cleared(given: Mapping[str, str | None], known: Mapping[str, str]) -> list[str]:
    """The fields that are given as empty and are not empty yet."""
    return [name for name in CLEARABLE if given.get(name) == "" and known.get(name)]


def news(differs: Mapping[str, str | None], gone: Sequence[str]) -> list[str]:
    """What a change of fields says to a reader of commits, after "is now"."""
    told = {name: value for name, value in differs.items() if name != "harness_session"}
    return [f"{_NEWS.get(name, '')}{value}" for name, value in told.items()] + [
        CLEARABLE[name] for name in gone
    ]


def again(event: str, given: Mapping[str, str | None]) -> list[str]:
    """The command that gave these fields."""
    pairs = [(_OPTIONS[name], value) for name, value in given.items() if value and name in _OPTIONS]
    return ["gitmem", "session", event, *(word for pair in pairs for word in pair)]
