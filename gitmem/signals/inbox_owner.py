"""Find the owner of an inbox, and whether the caller marks it as read."""

from __future__ import annotations

from ..agents import mailbox, presence
from ..errors import UsageError
from ..text.sanitize import sanitize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..agents.addressing import Resolved
    from ..agents.caller import Caller
    from ..store import Store


class InboxOwner:
    """The owner of an inbox; `peek` is the reason why reading marks nothing, or None.

    `is_imported` selects the imported signals to `reader`, an address that no session here has.
    """

    def __init__(self, reader: str, session: str | None, workspace: str | None) -> None:
        self.reader = reader
        self.session = session
        self.workspace = workspace
        self.caller: Caller | None = None
        self.peek: str | None = None
        self.remark: str | None = None
        self.is_imported = False


def resolve_owner(store: Store, caller: Caller | None, for_: str | None) -> InboxOwner:
    """Return the owner of the inbox that is read.

    Args:
        caller: The caller, or None if unknown.
        for_: The reader; another reader than the caller's is a peek, which marks nothing.

    Raises:
        UsageError: Neither a caller nor a reader is given, or the reader is unknown.
    """
    if for_ is None:
        if caller is None:
            raise UsageError(
                "Missing reader: cannot tell whose inbox to show.",
                hint="Name a reader with --for.",
                code="who",
            )
        found = InboxOwner(caller.reader, caller.session_id, caller.workspace)
        found.remark = caller.remark
        if caller.who is not None:
            from . import decisions_for_others

            found.peek = decisions_for_others.peek_reason(store, caller)
        found.caller = caller if found.peek is None else None
        return found
    address = mailbox.imported_address(for_)
    if address is not None:
        return _imported_owner(store, address)
    resolved = _reader(store, for_)
    latest = presence.latest_of(store.db(), resolved.address) or {}
    found = InboxOwner(resolved.address, latest.get("session_id"), latest.get("workspace_id"))
    if caller is not None and resolved.address in (caller.reader, caller.session_id):
        found.caller = caller
    else:
        found.peek = f"Inbox of {resolved.display_name or resolved.address}. Nothing is marked as delivered."
    return found


def _imported_owner(store: Store, address: str) -> InboxOwner:
    if not mailbox.imported_ids(store.db(), address, all=True):
        raise UsageError(
            f"--for: no imported signals to {sanitize(address)[:80] or '(empty)'}. Nothing was written.",
            hint="`gitmem log` shows the recipients of imported signals.",
            code="unknown-recipient",
            next=["gitmem log"],
        )
    found = InboxOwner(address, None, None)
    found.peek = f"Imported signals to {address}. Nothing is marked as delivered."
    found.is_imported = True
    return found


def _reader(store: Store, for_: str) -> Resolved:
    """Return the reader that `--for` names; for an unknown one, the error names the imported signals to it."""
    from ..agents import addressing

    try:
        return addressing.reader_of(store, for_)
    except UsageError as error:
        if error.code == "unknown-recipient" and mailbox.imported_ids(store.db(), for_, all=True):
            error.hint = "Signals to this address were imported."
            error.next = [mailbox.imported_inbox(for_), *error.next]
        raise
