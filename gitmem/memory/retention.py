"""Decide which nodes a cleanup removes or keeps, and why."""

from __future__ import annotations

from ..outcome import Outcome
from . import load
from .archive import format_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection

    Row = tuple[str, str, str, str | None, bool, int]


class Breakdown(Outcome):
    """The number of nodes by the rule that removed or kept them; each node counts once.

    Attributes:
        ephemeral: Removed because of this lifecycle.
        session, wu: Removed because of this lifecycle: the session was named, or a summary covers the node.
        ttl_expired: Removed because of their age.
        sensitive, urgent, active_session_protected: Kept, whatever the other rules are.
        decay_archived: Archived because of their decay score.
    """

    def __init__(self) -> None:
        self.ephemeral = self.session = self.wu = self.sensitive = self.urgent = 0
        self.ttl_expired = self.active_session_protected = self.decay_archived = 0


class RetentionRules:
    """The rules of a cleanup.

    Args:
        ttl: Microseconds; older nodes are removed.
        session: The session whose nodes of lifecycle session are removed.
        is_current: Returns whether the session of an id is live or idle now.
        sensitive: Nodes to keep.
        urgent: Open nodes of P0 and P1 to keep.
        now: Microseconds since the epoch.
    """

    def __init__(
        self,
        *,
        ttl: int | None,
        session: str | None,
        is_current: Callable[[str], bool],
        sensitive: set[str],
        urgent: Collection[str],
        now: int,
    ) -> None:
        self.ttl = ttl
        self.session = session
        self.is_current = is_current
        self.sensitive = sensitive
        self.urgent = urgent
        self.now = now

    def reason(self, row: Row, breakdown: Breakdown) -> str | None:
        """Return why a node is removed, or None if it is kept; the first matching rule decides."""
        id, type, lifecycle, session_id, summarised, created = row
        if type == "session" and session_id is not None and self.is_current(session_id):
            breakdown.active_session_protected += 1
            return None
        if id in self.sensitive:
            breakdown.sensitive += 1
            return None
        rule, reason = self._rule(lifecycle, session_id, summarised, created)
        if rule and id in self.urgent:
            breakdown.urgent += 1
        elif rule:
            setattr(breakdown, rule, getattr(breakdown, rule) + 1)
            return reason
        return None

    def _rule(
        self, lifecycle: str, session_id: str | None, summarised: bool, created: int
    ) -> tuple[str, str]:
        """Return the counter of the first rule that removes a node, and the reason; empty texts if none does."""
        if lifecycle == "project":
            return "", ""
        if self.ttl is not None and self.now - created > self.ttl:
            return "ttl_expired", f"cleanup: older than {format_duration(self.ttl)}"
        if lifecycle == "ephemeral":
            return "ephemeral", "cleanup: ephemeral"
        if lifecycle == "session" and self.session is not None and session_id == self.session:
            return "session", f"cleanup: session {self.session}"
        if summarised and lifecycle in ("session", "wu"):
            return lifecycle, "cleanup: summarised"
        return "", ""


def sensitive(db: sqlite3.Connection) -> set[str]:
    """Return the sensitive nodes: by their field or, if imported, by an entry of their metadata."""
    found = {id for (id,) in db.execute("SELECT id FROM node WHERE sensitive")}
    word = '"sensitive"'
    perhaps = {
        id
        for (id,) in db.execute(
            "SELECT n.id FROM node n JOIN line l ON l.id = n.line WHERE instr(l.body, ?)"
            " UNION SELECT n.id FROM node_again n JOIN line l ON l.id = n.line WHERE instr(l.body, ?)",
            (word, word),
        )
    }
    # Searches each patch once, however many nodes it names.
    perhaps |= {
        id
        for (id,) in db.execute(
            "SELECT DISTINCT id FROM patch_of"
            " WHERE line IN (SELECT id FROM line WHERE kind = 'patch' AND instr(body, ?))",
            (word,),
        )
    }
    for node in load.load(db, sorted(perhaps - found)):
        if node.metadata.get("sensitive") is True:
            found.add(node.id)
    return found
