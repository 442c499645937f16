"""`gitmem receipts`."""

from __future__ import annotations

from ..environment import Environment
from ..render import output, signals
from ..values import number, parse_moment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .options import Reader, ReceiptsLimit, ReceiptsSignal, ReceiptsSince


def receipts(
    at: Environment,
    id: ReceiptsSignal = None,
    reader: Reader = None,
    since: ReceiptsSince = None,
    limit: ReceiptsLimit = None,
) -> None:
    """Show who has received which signal, when, and what became of it, newest last."""
    from gitmem.signals import receipt_list

    oldest = parse_moment(since) if since is not None else None
    most = number("--limit", limit, receipt_list.LIMIT)
    found = receipt_list.receipt_list(at.store(), id, reader=reader, since=oldest, limit=most)
    output.answer(at.json, found, signals.receipts)
