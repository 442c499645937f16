"""The user's own history: where HEAD is. It is read, never written."""

from __future__ import annotations

import os

from . import run
from .tip import loose_tip, packed_tip

_BRANCHES = "refs/heads/"


def head(common: str, git_dir: str) -> tuple[str | None, str | None]:
    """The commit that a worktree's HEAD is at, and its branch such as `main`; None for what there is not.

    Args:
        git_dir: The worktree's own git folder.
    """
    try:
        with open(os.path.join(git_dir, "HEAD"), "rb") as file:
            text = file.read(4096).decode("utf-8", "surrogateescape").strip()
    except OSError:
        return None, None
    if not text.startswith("ref: "):
        return loose_tip(git_dir, "HEAD"), None
    ref = text.removeprefix("ref: ")
    branch = ref.removeprefix(_BRANCHES) if ref.startswith(_BRANCHES) else None
    oid = loose_tip(common, ref) or packed_tip(common, ref)
    if oid is None:  # of no commit yet, or in a reftable
        args = [f"--git-dir={git_dir}", "rev-parse", "--verify", "--quiet", "HEAD^{commit}"]
        oid = run.run(common, args, check=False).out.decode("ascii", "replace").strip() or None
    return oid, branch
