"""Choose the remotes to sync with."""

from __future__ import annotations

from ..errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..store import Store


def choose(store: Store, remotes: Sequence[str], *, all: bool) -> tuple[list[str], bool]:
    """Return the remotes to sync with, and whether history follows the first of them."""
    from .remote import configured, default_remote

    repo = store.repo
    try:
        primary: str | None = default_remote(repo)
    except UsageError:
        if not remotes and not all:
            raise
        primary = None
    names = list(dict.fromkeys([*remotes, *(configured(repo) if all else ())]))
    if not names and primary is None:
        raise UsageError(
            "This repository has no remote. Nothing was sent; local records are kept.",
            hint="`git remote add origin URL` adds one.",
            code="no-remote",
        )
    if primary is not None and (primary in names or not names):
        return [primary, *(name for name in names if name != primary)], True
    return names, primary is None
