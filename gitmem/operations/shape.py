"""How records appear in answers."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def shown(record: Mapping[str, object]) -> dict[str, object]:
    """A record with the contract's field names and `created_at`; empty fields are left out."""
    fields: dict[str, object] = {"created_at": record["at"]}
    fields.update(
        (key, value)
        for key, value in record.items()
        if key not in ("at", "kind") and value is not None and value != "" and value != []
    )
    return fields
