"""The work units that what is checked out here is about."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .store import Store


def of_checkout(store: Store, setting: str | None) -> list[str]:
    """Of the branch's name those that the log knows, whatever their case; else the one that is set; else none.

    Args:
        setting: The value of `gitmem.wu`.
    """
    import re

    # `lane/wu-12-retry-3` may be about WU-12 and about RETRY-3: only the log can tell.
    form = r"(?<![A-Za-z0-9])([A-Za-z][A-Za-z0-9]*-[0-9]+)(?![A-Za-z0-9])"
    named = [each.upper() for each in re.findall(form, store.branch() or "")]
    known = [wu for wu in dict.fromkeys(named) if is_known(store, wu)]
    return known or ([setting.strip().upper()] if setting and setting.strip() else [])


def is_known(store: Store, wu: str) -> bool:
    """Whether a session or a signal of the log names this work unit."""
    queries = (
        "SELECT 1 FROM session WHERE wu_id = ? LIMIT 1",
        "SELECT 1 FROM signal WHERE wu_id = ? LIMIT 1",
    )
    return any(store.db().execute(query, (wu,)).fetchone() for query in queries)
