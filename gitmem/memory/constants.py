"""The parts of `log.memory` that need no log: constants, and validation of data that programs supply."""

from __future__ import annotations

from .. import records
from ..argument_types import checked_methods
from . import decay, node_fields, profile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .versioned_node import VersionedNode

_OTHER_FIELDS = {"schema_version": "A2A.V1", "sender_identity": "nobody:in:particular"}


@checked_methods
class Constants:
    """Constants and checks of the memory; times are in microseconds."""

    DEFAULT_HALF_LIFE = decay.HALF_LIFE_MICROS
    DEFAULT_DECAY_THRESHOLD = decay.THRESHOLD
    DEFAULT_PROFILE_LIMIT = profile.LIMIT
    IMPORTANCE_BY_PRIORITY = decay.IMPORTANCE
    NODE_TYPES = node_fields.TYPES
    LIFECYCLES = node_fields.LIFECYCLES
    RELATION_TYPES = node_fields.RELATIONS
    PROMOTION_TAGS = node_fields.TAXONOMY

    @staticmethod
    def access_score(node: VersionedNode) -> float:
        """Return the access part of a node's decay score: 0 if it was never read."""
        return decay.access(node.accesses)

    @staticmethod
    def importance_score(node: VersionedNode) -> float:
        """Return the priority part of a node's decay score: 1 without a priority."""
        return decay.importance(node.priority)

    @staticmethod
    def is_archived(node: VersionedNode) -> bool:
        """Return whether a node is archived and not deleted."""
        return node.archived and not node.deleted

    @staticmethod
    def validate_node(data: object) -> str | None:
        """Return what is invalid in the fields of a node, as a sentence, or None. Unknown fields are ignored."""
        return _fault("node", data)

    @staticmethod
    def validate_relation(data: object) -> str | None:
        """Return what is invalid in the fields of a relation, as a sentence, or None. The id is optional."""
        return _fault("relation", {"id": "rel-0000", **data} if isinstance(data, dict) else data)


def _fault(kind: str, data: object) -> str | None:
    if not isinstance(data, dict):
        return f"The {kind} must be an object, not {ascii(data)[:60]}"
    for name in ("created_at", "updated_at"):
        if data.get(name) is not None and not _is_time(data[name]):
            return f"The {kind}'s {name} must be a time such as 2026-11-21T20:00:00Z"
    fields = {name: value for name, value in data.items() if name not in ("created_at", "updated_at")}
    try:
        records.line(kind, 0, {**_OTHER_FIELDS, **fields}, allow_secret=True)
    except records.RecordError as error:
        return error.message.removesuffix(". Nothing was written.")
    return None


def _is_time(text: object) -> bool:
    from datetime import datetime

    try:
        return isinstance(text, str) and datetime.fromisoformat(text).year > 0
    except ValueError:
        return False
