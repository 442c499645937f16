"""`gitmem task launch` and `relaunch`: record that a worker is started for a task."""

from __future__ import annotations

from ..environment import Environment
from ..render import output
from ..render import tasks as render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .options import (
        Lane,
        LaunchAttempt,
        LaunchBranch,
        LaunchClient,
        LaunchHandoff,
        LaunchMode,
        LaunchModel,
        LaunchRole,
        LaunchScope,
        LaunchWave,
        LaunchWorktree,
        Quiet,
        Reason,
        TaskId,
    )


def launch(
    at: Environment,
    id: TaskId,
    attempt: LaunchAttempt = None,
    wave: LaunchWave = None,
    lane: Lane = None,
    claimed_mode: LaunchMode = None,
    branch: LaunchBranch = None,
    worktree: LaunchWorktree = None,
    handoff: LaunchHandoff = None,
    client: LaunchClient = None,
    model: LaunchModel = None,
    role: LaunchRole = None,
    scope: LaunchScope = None,
    quiet: Quiet = False,
) -> None:
    """Record that you start a worker for a task; exit 1 if somebody has it. No program is started."""
    from gitmem.tasks import launch as launches

    found = launches.launch(
        at.store(), at.caller(), id, attempt=attempt, wave=wave, lane=lane, claimed_mode=claimed_mode, branch=branch,
        worktree=_folder(worktree), handoff_path=_path(at, handoff), client=client, requested_model=model, role=role,
        scopes=scope,
    )  # fmt: skip
    output.answer(at.json, found, render.launched, only=[found.launch] if quiet else None)


def relaunch(
    at: Environment,
    id: TaskId,
    reason: Reason = None,
    attempt: LaunchAttempt = None,
    wave: LaunchWave = None,
    lane: Lane = None,
    claimed_mode: LaunchMode = None,
    branch: LaunchBranch = None,
    worktree: LaunchWorktree = None,
    handoff: LaunchHandoff = None,
    client: LaunchClient = None,
    model: LaunchModel = None,
    role: LaunchRole = None,
    scope: LaunchScope = None,
    quiet: Quiet = False,
) -> None:
    """Record that you start another worker for a task; exit 1 if its worker is live; needs --reason. No program is started."""
    from gitmem.tasks import launch as launches

    found = launches.relaunch(
        at.store(), at.caller(), id, reason or "", attempt=attempt, wave=wave, lane=lane, claimed_mode=claimed_mode, branch=branch,
        worktree=_folder(worktree), handoff_path=_path(at, handoff), client=client, requested_model=model, role=role,
        scopes=scope,
    )  # fmt: skip
    output.answer(at.json, found, render.launched, only=[found.launch] if quiet else None)


def _folder(typed: str | None) -> str | None:
    """Return the name of a worktree's folder: its path is of interest to this machine only."""
    import os

    return os.path.basename(os.path.abspath(typed)) if typed else None


def _path(at: Environment, typed: str | None) -> str | None:
    return at.paths([typed])[0] if typed else None
