"""The commit record: a commit of the user's history, which session made it, and of which commits it was made."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from .base import (
    Address,
    At,
    CommitId,
    Line,
    LinkId,
    Record,
    ShortLine,
    TaskId,
    TextRule,
    WorkUnit,
)

ACTIONS = ("commit", "amend", "merge", "revert", "cherry-pick", "rebase", "squash", "apply", "rewrite")
EVIDENCE = ("environment", "output", "alone", "none")


class Commit(Record):
    """A commit was made in a worktree with a session. Nothing of its content is in the record."""

    KIND: ClassVar[str] = "commit"
    STREAM: ClassVar[str] = "commits"

    kind: Literal["commit"] = Field(default="commit", description="Always `commit`.")
    link_id: LinkId = Field(description="The id of this record: the same for one commit and one session.")
    commit: CommitId = Field(description="The commit.")
    patch_id: CommitId | None = Field(
        default=None, description="What `git patch-id --stable` says of its changes; missing of a merge."
    )
    authored_at: At | None = Field(
        default=None, description="The author's time, to the second: it stays when a commit is repeated."
    )
    action: Annotated[ShortLine, AfterValidator(TextRule(written=ACTIONS))] = Field(
        description="What made it: commit, amend, merge, revert, cherry-pick, rebase, squash, apply or rewrite;"
        " other values are accepted on read."
    )
    evidence: Annotated[ShortLine, AfterValidator(TextRule(written=EVIDENCE))] = Field(
        description="Why the session is named: `environment` of git's hook, `output` of the agent's command, `alone` in the worktree"
        " (inferred), `none`: nobody knows who made it; other values are accepted on read."
    )
    sources: Annotated[tuple[CommitId, ...], Field(strict=False)] = Field(
        default=(), description="The commits that it replaces or repeats."
    )
    parts: Annotated[tuple[CommitId, ...], Field(strict=False)] = Field(
        default=(), description="The patch ids of the changes that it combines."
    )
    branch: Line | None = Field(default=None, description="The branch of its worktree when it was found.")
    task_id: TaskId | None = Field(
        default=None, description="The task that its session had when it was made."
    )
    wu_id: WorkUnit | None = Field(
        default=None, description="The work unit that its session had when it was made."
    )
    workspace_id: ShortLine | None = Field(default=None, description="Routing key of a hosted transport.")
    sender_identity: Address = Field(description="Who made it; with the evidence `none` only who found it.")
    sender_session: Address | None = Field(
        default=None, description="The session that made it, or that found it."
    )
    sender_name: Line | None = Field(default=None, description="The display name of that session.")
