"""What a node's line means: two clones that made one node apart have said the same, or `doctor` asks what was meant."""

from __future__ import annotations

from typing import Any

from gitmem.order.node import content_digest_text
from tests.each import each

NODE: dict[str, Any] = {
    "type": "discovery", "lifecycle": "wu", "content": "a text", "priority": "P1", "wu_id": "WU-1", "lane": "x",
    "tags": ["b", "a"], "paths": ["src/b", "src/a"], "created_by": "one", "at": "2026-11-22T10:00:00.000000Z",
}  # fmt: skip


def test_who_said_it_and_when_and_in_which_order_is_no_difference() -> None:
    other = {**NODE, "created_by": "two", "at": "2026-11-22T11:00:00.000000Z"}
    other["tags"], other["paths"] = ["a", "b"], ["src/a", "src/b"]

    assert content_digest_text(other) == content_digest_text(NODE)


@each([
        ("type", "note"), ("lifecycle", "project"), ("content", "another"), ("priority", "P2"), ("wu_id", "WU-2"),
        ("lane", None), ("tags", ["a"]), ("paths", ["src/a"]),
    ],
)  # fmt: skip
def test_what_is_said_is_one(field: str, value: object) -> None:
    assert content_digest_text({**NODE, field: value}) != content_digest_text(NODE)


def test_an_indexed_file_is_one_source_whatever_it_says_now() -> None:
    """Two clones that index a file at two of its states have made one node."""
    indexed = {**NODE, "metadata": {"source_path": "docs/a.md"}}

    assert content_digest_text({**indexed, "content": "changed"}) == content_digest_text(indexed)
    assert content_digest_text({**indexed, "metadata": {"source_path": "docs/b.md"}}) != content_digest_text(
        indexed
    )
