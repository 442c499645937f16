"""The writers of a node: of its content, and of other changes to it."""

from __future__ import annotations

from ..order.node import add_signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection

    from ..order.node import VersionedNode

NAMED_MAX = 2  # names of other writers in one line
UNVERIFIED = "UNVERIFIED"  # a line in the name of a session of this clone was not written here (forged)
CONFLICT = "CONFLICT"  # several lines with this node's id have different content
_NO_BRACKETS = str.maketrans("()[]", "    ")  # a name must not close gitmem's brackets or fake an identity
_SHOWN = (
    "SELECT s.session_id, coalesce(s.agent_identity, s.session_id), t.shown FROM json_each(?) i"
    " JOIN session s ON s.session_id = i.value JOIN tenure t INDEXED BY tenure_last"
    " ON t.session_id = s.session_id AND t.last"
)


def set_own_names(db: sqlite3.Connection, nodes: Collection[VersionedNode]) -> None:
    """Set which names in nodes are the display names of sessions of the same identity, now or at their end."""
    from ..records.ids import is_id

    for node in nodes:
        add_signature(node, node.sender_identity, node.sender_name, node.sender_session)
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
