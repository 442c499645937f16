"""Whose words a node shows: who wrote its content, and who else changed it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

    from .fold import Node, Winners

NAMED_MAX = 2  # names of others in one line
# What `node.hidden_by_other` counts: who archived or deleted a node, and who put it under a summary.
STATUS, SUMMARY = 1, 2
UNVERIFIED = "UNVERIFIED"  # a line that names a session of this clone was not written here
CONFLICT = "CONFLICT"  # several lines of its id say different things
_HIDDEN = ("archived", "deleted", "summarized_into")


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
    author = str(node.sender_name or node.sender_identity)
    text = f"{node.content_by_name or node.content_by} in a node of {author}" if node.content_by else author
    others = [
        str(each.get("sender_name") or each["sender_identity"])
        for each in node.changed_by
        if each["sender_identity"] != node.content_by
    ]
    if not others:
        return text
    more = f" and {len(others) - NAMED_MAX} more" if len(others) > NAMED_MAX else ""
    return f"{text}, changed by {', '.join(others[:NAMED_MAX])}{more}"


def is_changed(node: Node) -> bool:
    """Whether others than its author changed it, or lines that only say that they are the author's."""
    return bool(node.content_by or node.changed_by or node.unverified or node.conflicting)


def hidden(db: sqlite3.Connection, wu: str | None) -> int:
    """Count the nodes of a work unit, and of the project, that others than their authors have hidden."""
    from . import stored
    from .view import HIDDEN, covered

    (count,) = db.execute(
        "SELECT count(*) FROM node n WHERE n.hidden_by_other AND (n.wu_id IS ? OR n.lifecycle = 'project')"
        f" AND ((n.state >= {HIDDEN} AND n.hidden_by_other & {STATUS}) OR (n.hidden_by_other & {SUMMARY}"
        f" AND {covered('n')}))",
        (wu,),
    ).fetchone()
    # What only says that it is the author's was hidden by others too.
    rows = db.execute(
        "SELECT DISTINCT n.id FROM forged f JOIN patch_of p ON p.line = f.line JOIN node n ON n.id = p.id"
        " WHERE NOT n.hidden_by_other AND (n.wu_id IS ? OR n.lifecycle = 'project')"
        f" AND (n.state >= {HIDDEN} OR {covered('n')})",
        (wu,),
    ).fetchall()
    forged = [node for node in stored.load(db, [id for (id,) in rows]) if set(node.unverified) & set(_HIDDEN)]
    return int(count) + len(forged)


def told(count: int) -> str:
    """Return what the head of a block says of nodes that others have hidden; "" where there are none."""
    return f"; others have hidden {count} node{'' if count == 1 else 's'} of it" if count else ""
