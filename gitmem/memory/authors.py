"""The writers of a node: of its content, and of other changes to it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection

    from .versioned_node import VersionedNode, WinningPatches

NAMED_MAX = 2  # names of other writers in one line
# Bits of `node.hidden_by_other`: another writer archived or deleted the node; another writer summarized it.
STATUS, SUMMARY = 1, 2
UNVERIFIED = "UNVERIFIED"  # a line in the name of a session of this clone was not written here (forged)
CONFLICT = "CONFLICT"  # several lines with this node's id have different content
_NO_BRACKETS = str.maketrans("()[]", "    ")  # a name must not close gitmem's brackets or fake an identity
_SHOWN = (
    "SELECT s.session_id, coalesce(s.agent_identity, s.session_id), t.shown FROM json_each(?) i"
    " JOIN session s ON s.session_id = i.value JOIN tenure t INDEXED BY tenure_last"
    " ON t.session_id = s.session_id AND t.last"
)


def set_changed_by(node: VersionedNode, winners: WinningPatches, *, whole: bool) -> None:
    """Set the fields of a node that name changes by writers other than its author.

    A writer that only verified a node (field `head`) has not changed its content and is not named.

    Args:
        whole: Whether to include writers of metadata.
    """
    changes: dict[str, tuple[str | None, set[str]]] = {}
    entries = {each.id: each for each in winners.by_key.values()} if whole else {}
    last = [*winners.by_field.items(), *(("metadata", each) for each in entries.values())]
    for field, change in last:
        sender = change.record["sender_identity"]
        name = change.record.get("sender_name")
        if field == "content":
            node.content_by, node.content_by_name = sender, name
        if whole:
            _add_signature(node, sender, name, change.record.get("sender_session"))
        if sender != node.sender_identity:
            changes.setdefault(sender, (name, set()))[1].add(field)
    if node.content_by == node.sender_identity:
        node.content_by = node.content_by_name = None
    node.changed_by = [
        {"sender_identity": sender, "sender_name": name, "fields": sorted(fields)}
        if name
        else {"sender_identity": sender, "fields": sorted(fields)}
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


def _add_signature(node: VersionedNode, sender: str, name: str | None, session: str | None) -> None:
    """Record a name that a writer gave for an identity, and the session of that line."""
    if name and session:
        node.signed.add((sender, name, session))


def set_own_names(db: sqlite3.Connection, nodes: Collection[VersionedNode]) -> None:
    """Set which names in nodes are the display names of sessions of the same identity, now or at their end."""
    from ..records.ids import is_id

    for node in nodes:
        _add_signature(node, node.sender_identity, node.sender_name, node.sender_session)
    sessions = {session for node in nodes for *_, session in node.signed if is_id("sess", session)}
    if not sessions:
        return
    listed = "[" + ",".join(f'"{session}"' for session in sorted(sessions)) + "]"  # ids need no escaping
    shown = {session: (sender, name) for session, sender, name in db.execute(_SHOWN, (listed,))}
    for node in nodes:
        node.own_names = {
            (sender, name) for sender, name, session in node.signed if shown.get(session) == (sender, name)
        }


def format_writer(node: VersionedNode, name: object, identity: object) -> str:
    """Return the name if it is its session's own, else the name with the identity, or the identity alone."""
    plain, exact = (str(each or "").translate(_NO_BRACKETS) for each in (name, identity))
    if not plain or plain == exact:
        return exact
    return plain if (identity, name) in node.own_names else f"{plain} ({exact})"


def byline(node: VersionedNode) -> str:
    """Return the writers of a node and the marks of doubt: `Curie, UNVERIFIED`."""
    return ", ".join([names(node), *doubts(node)])


def doubts(node: VersionedNode) -> list[str]:
    """Return the reasons to doubt the content of a node. `mem show` lists who wrote which conflicting line."""
    found = [UNVERIFIED] if node.unverified else []
    if node.conflicting:
        others = f" and {len(node.conflicting) - NAMED_MAX} more" if len(node.conflicting) > NAMED_MAX else ""
        found.append(f"{CONFLICT}: different lines by {' and '.join(node.conflicting[:NAMED_MAX])}{others}")
    return found


def names(node: VersionedNode) -> str:
    """Return the writer of the content and other writers: `Curie in a node of Planck, changed by Meitner`."""
    author = format_writer(node, node.sender_name, node.sender_identity)
    if node.content_by:
        author = f"{format_writer(node, node.content_by_name, node.content_by)} in a node of {author}"
    others = [
        format_writer(node, each.get("sender_name"), each["sender_identity"])
        for each in node.changed_by
        if each["sender_identity"] != node.content_by
    ]
    if not others:
        return author
    more = f" and {len(others) - NAMED_MAX} more" if len(others) > NAMED_MAX else ""
    return f"{author}, changed by {', '.join(others[:NAMED_MAX])}{more}"


def is_changed(node: VersionedNode) -> bool:
    """Return whether writers other than the author changed it, or lines that cannot be verified as the author's."""
    return bool(node.content_by or node.changed_by or node.unverified or node.conflicting)
