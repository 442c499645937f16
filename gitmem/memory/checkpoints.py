"""Checkpoints record the state of the work for the next agent, or for the same agent after compaction."""

from __future__ import annotations

from ..errors import GitmemError, StoreError, UsageError
from ..git.port import WORK_TREE_SECONDS
from ..records.secrets import find_secret
from ..text.sanitize import sanitize
from ..text.shell_quote import command
from . import edit
from .session_checkpoints import PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..agents.caller import Caller
    from ..store import Store


def checkpoint(
    store: Store,
    caller: Caller,
    note: str = "",
    *,
    progress: str | None = None,
    next_steps: str | None = None,
    trigger: str | None = None,
    wu: str | None = None,
    session: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    diff_stat: bool = True,
    allow_secret: bool = False,
    done: bool = False,
) -> edit.Created:
    """Write a checkpoint. Its lifecycle is `wu`, or `session` without a work unit.

    Args:
        note: The text; by default the progress, or else the next steps.
        progress: The work that is done.
        next_steps: The work that remains.
        trigger: The cause, such as `pre-compact`.
        wu: The work unit; None for that of the caller's session.
        session: The session; None for the caller's.
        metadata: Further entries, such as `milestone`.
        diff_stat: Add `git diff --stat` against HEAD and the number of untracked files. If git fails, the
            checkpoint is written without it, with a warning.
        allow_secret: Accept text that looks like a secret.
        done: Also broadcast that the work unit is done, see `signals.completion`.

    Raises:
        UsageError: A value is invalid (RecordError, SecretError). Nothing was written.
        StoreError: The store could not be read or written.
    """
    text = _first_text(note, progress, next_steps)
    if done:
        from ..signals import completion

        completion.unit_of(caller, wu)
    stat, remark = changes(store) if diff_stat else (None, None)
    own = {"progress": progress, "nextSteps": next_steps, "trigger": trigger, "gitDiffStat": stat}
    created = edit.create(
        store,
        caller,
        PREFIX + text,
        type="checkpoint",
        lifecycle="wu" if wu or caller.wu_id else "session",
        wu=wu,
        session=session,
        metadata={**(metadata or {}), **{key: text for key, text in own.items() if text and text.strip()}},
        allow_secret=allow_secret,
    )
    created.warnings += [remark] if remark else []
    if done:
        try:
            told = completion.announce(store, caller, completion.unit_of(caller, created.node.wu_id)).remark
        except GitmemError as error:
            told = (
                f"The checkpoint is recorded, but nobody is told that the work unit is done: {error.message}"
            )
        created.warnings.append(told)
    unit = created.node.wu_id
    created.next = [
        command("gitmem", "mem", "recover", *(["--wu", unit] if unit else [])),
        command("gitmem", "mem", "show", created.node.id),
    ]
    return created


def _first_text(*texts: str | None) -> str:
    for text in texts:
        if text and text.strip():
            return text.strip()
    raise UsageError(
        "The checkpoint is empty. Nothing was written.",
        hint="Give a note, --progress or --next-steps; check whether a shell variable in the command is unset.",
        code="empty-content",
        next=["gitmem mem checkpoint --help"],
    )


def changes(store: Store, seconds: float = WORK_TREE_SECONDS) -> tuple[str | None, str | None]:
    """Return git's summary of uncommitted changes, and a warning if git cannot give it.

    Args:
        seconds: The limit of each of the two git processes.
    """
    repo = store.repo
    if repo.worktree is None:
        return None, None
    try:
        found = store.git.work_tree(repo.git_dir, repo.worktree, seconds=seconds)
    except StoreError as error:
        return None, f"The diff stat is omitted: {error.message}"
    secret = find_secret(found.stat)
    if secret is not None:  # a secret here must not prevent the checkpoint
        return None, f"The diff stat is omitted: a file name looks like {secret}."
    lines = found.stat.split("\n") if found.stat else []
    if found.untracked:
        lines.append(f" {found.untracked} untracked file{'' if found.untracked == 1 else 's'}")
    return "\n".join(sanitize(line) for line in lines), None
