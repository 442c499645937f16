"""Checkpoints: how far the work is, for whoever goes on with it, perhaps the same agent with nothing left in its head."""

from __future__ import annotations

from ..commit_message import sanitize
from ..errors import StoreError, UsageError
from ..records.secrets import find_secret
from ..text.shell_quote import command
from . import edit
from .last_checkpoint import PREFIX as PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
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
    diff_stat: bool = True,
    allow_secret: bool = False,
) -> edit.Created:
    """Write down how far the work is. With a work unit it lasts as long as that, else as long as the session.

    Args:
        note: What there is to say; without one the progress, or the next steps, stand for it.
        progress: What is done.
        next_steps: What is to be done.
        trigger: What led to it, such as `pre-compact`.
        wu: The work unit; None for that of the caller's session.
        session: The session; None for the caller's.
        diff_stat: Add what git says of the work tree: `git diff --stat` against HEAD, and how many files are
            untracked. Where git can't say, a warning tells so and the rest is written.
        allow_secret: Accept text that looks like a secret.

    Raises: UsageError (RecordError, SecretError) and then nothing was written; StoreError.
    """
    said = [text for text in (note, progress, next_steps) if text and text.strip()]
    if not said:
        raise UsageError(
            "Nothing says how far the work is; nothing was written.",
            hint="Give a note, --progress or --next-steps; a variable that is not set may be the cause.",
            code="empty-content",
            next=["gitmem mem checkpoint --help"],
        )
    changes, remark = _changes(store) if diff_stat else (None, None)
    metadata = {"progress": progress, "nextSteps": next_steps, "trigger": trigger, "gitDiffStat": changes}
    created = edit.create(
        store,
        caller,
        PREFIX + said[0].strip(),
        type="checkpoint",
        lifecycle="wu" if wu or caller.wu_id else "session",
        wu=wu,
        session=session,
        metadata={key: text for key, text in metadata.items() if text and text.strip()},
        allow_secret=allow_secret,
    )
    created.warnings += [remark] if remark else []
    unit = created.node.wu_id
    created.next = [
        command("gitmem", "mem", "recover", *(["--wu", unit] if unit else [])),
        command("gitmem", "mem", "show", created.node.id),
    ]
    return created


def _changes(store: Store) -> tuple[str | None, str | None]:
    """What the work tree has and HEAD has not, in git's words; or why that is not known."""
    place = store.place
    if place.worktree is None:
        return None, None
    try:
        found = store.git.work_tree(place.git_dir, place.worktree)
    except StoreError as error:
        return None, f"The diff stat is left out: {error.message}"
    secret = find_secret(found.stat)
    if secret is not None:  # it must not keep the checkpoint itself from being written
        return None, f"The diff stat is left out: a file's name looks like {secret}."
    lines = found.stat.split("\n") if found.stat else []
    if found.untracked:
        lines.append(f" {found.untracked} untracked file{'' if found.untracked == 1 else 's'}")
    return "\n".join(sanitize(line) for line in lines), None
