"""Whose words a node shows: who wrote its content, and who else changed it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection

    from .node import Node, Winners

NAMED_MAX = 2  # names of others in one line
# What `node.hidden_by_other` counts: who archived or deleted a node, and who put it under a summary.
STATUS, SUMMARY = 1, 2
UNVERIFIED = "UNVERIFIED"  # a line that names a session of this clone was not written here
CONFLICT = "CONFLICT"  # several lines of its id say different things
_NO_BRACKETS = str.maketrans("()[]", "    ")  # no name ends what we say of it, or adds an identity
_SHOWN = (
    "SELECT s.session_id, coalesce(s.agent_identity, s.session_id), t.shown FROM json_each(?) i"
    " JOIN session s ON s.session_id = i.value JOIN tenure t INDEXED BY tenure_last"
    " ON t.session_id = s.session_id AND t.last"
)


def note(node: Node, winners: Winners, *, whole: bool) -> None:
    """Fill in which of the changes that count are by others than the node's author.

    Somebody who only verified a node (`head`) has changed nothing of what it says.

    Args:
        whole: Whether to count who changed the metadata.
    """
    changes: dict[str, tuple[str | None, set[str]]] = {}
    entries = {each.id: each for each in winners.by_key.values()} if whole else {}
    last = [*winners.by_field.items(), *(("metadata", each) for each in entries.values())]
    for field, change in last:
        sender = str(change.record["sender_identity"])
        name = change.record.get("sender_name")
        if field == "content":
            node.content_by, node.content_by_name = sender, str(name) if name else None
        if whole:
            _sign(node, sender, name, change.record.get("sender_session"))
        if sender != node.sender_identity:
            changes.setdefault(sender, (str(name) if name else None, set()))[1].add(field)
    if node.content_by == node.sender_identity:
        node.content_by = node.content_by_name = None
    node.changed_by = [
        {"sender_identity": sender, **({"sender_name": name} if name else {}), "fields": sorted(fields)}
        for sender, (name, fields) in sorted(changes.items())
        if fields != {"head"}
    ]
    status = winners.by_field.get("deleted" if node.deleted else "archived" if node.archived else "")
    summary = winners.by_field.get("summarized_into") if node.summarized_into else None
    node.hidden_by_other = sum(
        bit
        for bit, change in ((STATUS, status), (SUMMARY, summary))
        if change is not None and change.record["sender_identity"] != node.sender_identity
    )


def _sign(node: Node, sender: str, name: object, session: object) -> None:
    """Note a name that somebody gave for an identity, and the session that it was given in."""
    if name and session:
        node.signed.add((sender, str(name), str(session)))


def note_own_names(db: sqlite3.Connection, nodes: Collection[Node]) -> None:
    """Fill in which names in these nodes are those under which sessions of their identities show, or did at their end."""
    from ..records.ids import is_id

    for node in nodes:
        _sign(node, node.sender_identity, node.sender_name, node.sender_session)
    sessions = {session for node in nodes for *_, session in node.signed if is_id("sess", session)}
    if not sessions:
        return
    listed = "[" + ",".join(f'"{session}"' for session in sorted(sessions)) + "]"  # ids need no escapes
    shown = {session: (sender, name) for session, sender, name in db.execute(_SHOWN, (listed,))}
    for node in nodes:
        node.own_names = {
            (sender, name) for sender, name, session in node.signed if shown.get(session) == (sender, name)
        }


def who(node: Node, name: object, identity: object) -> str:
    """Return a name where it is its session's own; else the name with the identity, or the identity alone."""
    plain, exact = (str(each or "").translate(_NO_BRACKETS) for each in (name, identity))
    if not plain or plain == exact:
        return exact
    return plain if (identity, name) in node.own_names else f"{plain} ({exact})"


def byline(node: Node) -> str:
    """Return the names of who wrote a node and changed it, and whether that can't be: `Curie, UNVERIFIED`."""
    return ", ".join([names(node), *marks(node)])


def marks(node: Node) -> list[str]:
    """Return what makes the words of a node doubtful: who wrote which of several different lines is in `mem show`."""
    found = [UNVERIFIED] if node.unverified else []
    if node.conflicting:
        others = f" and {len(node.conflicting) - NAMED_MAX} more" if len(node.conflicting) > NAMED_MAX else ""
        found.append(f"{CONFLICT}: different lines by {' and '.join(node.conflicting[:NAMED_MAX])}{others}")
    return found


def names(node: Node) -> str:
    """Return who wrote the content, and who else changed the node: `Curie in a node of Planck, changed by Meitner`."""
    author = who(node, node.sender_name, node.sender_identity)
    if node.content_by:
        author = f"{who(node, node.content_by_name, node.content_by)} in a node of {author}"
    others = [
        who(node, each.get("sender_name"), each["sender_identity"])
        for each in node.changed_by
        if each["sender_identity"] != node.content_by
    ]
    if not others:
        return author
    more = f" and {len(others) - NAMED_MAX} more" if len(others) > NAMED_MAX else ""
    return f"{author}, changed by {', '.join(others[:NAMED_MAX])}{more}"


def is_changed(node: Node) -> bool:
    """Whether others than its author changed it, or lines that only say that they are the author's."""
    return bool(node.content_by or node.changed_by or node.unverified or node.conflicting)
