"""Doctor's look at lines that speak for sessions of this clone and were not written here."""

from __future__ import annotations

from ..agents import forgeries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .findings import Findings
    from .store import Store


def check(store: Store, found: Findings) -> None:
    """Forged lines: what they say, and the file of the log that has them."""
    for each in forgeries.every(store.db()):
        what = f"{each.kind} {each.record.get('event') or each.record.get('intent') or ''}".strip()
        found.problem(
            "forged-line",
            f"A line ({what}, {each.at}) says that it is from {each.name}, which belongs to this clone, and was not written "
            "here. It changes nothing for that session here; other clones count it.",
            each.where,
            "Somebody who may push to the remote wrote it: find out who with the commit that added the file, and tell the "
            "others. Nothing is taken out of a log.",
            "gitmem log",
        )
