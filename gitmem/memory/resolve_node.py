"""Resolve an id or a prefix of an id to a node."""

from __future__ import annotations

from ..errors import UsageError
from ..index.resolve_id import choose
from ..records.ids import is_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from ..store import Store

PREFIX = "mem-"


def find(db: sqlite3.Connection, text: str, *, writing: bool = False) -> str:
    """Return the node id for an id or a unique prefix; hidden nodes count, too.

    Raises:
        UsageError: None or several match; the error has the candidates.
    """
    text = validate_id(text)
    if db.execute("SELECT 1 FROM node WHERE id = ?", (text,)).fetchone():
        return text
    start = PREFIX + text.removeprefix(PREFIX)
    rows = db.execute("SELECT id FROM node WHERE id >= ? AND id < ? LIMIT 5", (start, start + "\U0010ffff"))
    found = [str(id) for (id,) in rows] if start != PREFIX else []
    lists = ("gitmem mem list", "gitmem mem list --include-archived")
    return choose(start if found else text, found, "node", "mem show", lists, writing=writing)


def validate_id(id: object) -> str:
    """Check that an id is a string: callers of the library may pass other objects.

    Raises:
        UsageError: The id is not a string.
    """
    if not isinstance(id, str):
        raise UsageError(
            f"Invalid id of type {type(id).__name__}; it must be text such as mem-0123456789ab. "
            "Nothing was written.",
            hint="Use `.id` of a node, or `.node.id` of the result that created it.",
            code="bad-id",
        )
    return id


def is_in(db: sqlite3.Connection, text: str) -> bool:
    """Return whether an id, or a prefix of six characters or more after the dash, names a node of an index."""
    try:
        find(db, text, writing=True)
    except UsageError as error:
        return error.code == "ambiguous-id"
    return True


def find_or_accept(store: Store, text: str) -> tuple[str, str | None]:
    """Return the node id for a relation. A whole id that is not in this log is accepted, with a warning.

    A private node may name nodes of the log, but no line of the log names a private node.

    Raises:
        UsageError: As in `find`, for a prefix; or the log would name a private node.
    """
    from . import private_store

    db = store.db()
    if isinstance(store, private_store.PrivateStore) and not is_in(db, text):
        store = store.shared
        return find(store.db(), text, writing=True), None
    try:
        return find(db, text, writing=True), None
    except UsageError as error:
        if error.code != "unknown-id" or not is_id("mem", text):
            raise
    if private_store.is_private(store, text):
        raise UsageError(
            f"Private node: {text}; only private nodes can name it. Nothing was written.",
            hint="Use --private for the new node, too.",
            code="private-nodes",
            next=[f"gitmem mem show {text}"],
        )
    return (
        text,
        f"{text} is not in this log yet: the relation takes effect when it arrives, perhaps with `gitmem sync`.",
    )
