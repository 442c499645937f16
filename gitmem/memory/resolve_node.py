"""Resolve an id or a prefix of an id to a node."""

from __future__ import annotations

from ..commit_message import sanitize
from ..errors import ELSEWHERE, UsageError
from ..index.resolve_id import PREFIX_MIN, READ_PREFIX_MIN, shown_by
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
    token = text.removeprefix(PREFIX)
    least = PREFIX_MIN if writing else READ_PREFIX_MIN
    start = PREFIX + token
    rows = db.execute("SELECT id FROM node WHERE id >= ? AND id < ? LIMIT 5", (start, start + "\U0010ffff"))
    found = [id for (id,) in rows] if token else []
    nothing = ". Nothing was written." if writing else "."
    if found and len(token) < least:
        raise UsageError(
            f"Id prefix too short: {sanitize(text)}; the minimum is {least} characters "
            f"after the dash{nothing}",
            hint="`gitmem mem list` shows full ids.",
            code="short-id",
            suggestions=found[:4],
            next=["gitmem mem list"],
        )
    if len(found) == 1:
        return str(found[0])
    if found:
        raise UsageError(
            f"Ambiguous id: {sanitize(text)} matches {', '.join(found[:4])}{nothing}",
            hint="Give a longer prefix.",
            code="ambiguous-id",
            suggestions=found[:4],
        )
    other = None if is_id("mem", text) else shown_by(text)
    raise UsageError(
        f"No such node in this log: {sanitize(text)[:80] or '(empty)'}{nothing}",
        hint=f"It is the id of another record: `{other}`."
        if other
        else f"{ELSEWHERE} `gitmem mem list` lists the local nodes.",
        code="unknown-id",
        next=[other] if other else ["gitmem sync", "gitmem mem list --include-archived"],
    )


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
