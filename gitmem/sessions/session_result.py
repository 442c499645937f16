"""The answers about a session that starts, changes or ends."""

from __future__ import annotations

from ..agents import serialize
from ..outcome import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..agents.presence import Presence
    from ..roles.scope import OwnershipScope


class SessionResult(Outcome):
    """The present state of a session.

    `worktree` is its folder's name, `summary` what an ended one did; `commit` is None if nothing was committed.
    `role_resolved_by` is the step that found the role that was just given.
    """

    role: str | None
    role_alias: str | None
    capabilities: list[str]
    actual_ownership_scope: OwnershipScope | None
    model: str | None

    def __init__(self, found: Presence, commit: str | None, recorded: bool, next: Sequence[str]) -> None:
        self.session_id = found.session_id
        self.agent_identity = found.agent_identity
        self.display_name = found.name
        self.reader_identity = found.reader
        self.worktree = found.worktree
        self.wu_id = found.wu_id
        self.lane = found.record.get("lane")
        self.initiative_id = found.record.get("initiative_id")
        self.activity = found.record.get("activity")
        self.summary = found.record.get("summary")
        serialize.set_role_fields(self, found.record, found.agent_identity)
        self.role_resolved_by: str | None = None
        self.commit = commit
        self.recorded = recorded
        self.remark: str | None = None
        if found.asked != found.name:
            self.remark = (
                f"The name {found.asked} belongs to an earlier session; your display name is {found.name}."
            )
        self.next = list(next)

    def add_remark(self, sentence: str | None) -> None:
        """Add a sentence to the remark."""
        self.remark = " ".join(filter(None, (self.remark, sentence))) or None


class SessionStarted(SessionResult):
    """A session that started, or the existing one of the same client session."""


class SessionChanged(SessionResult):
    """A session after a change."""


class SessionEnded(SessionResult):
    """A session that ended and released its name."""
