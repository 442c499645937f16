"""The records of tasks and claims: what may be written, and what a hostile line does to a reader."""

from __future__ import annotations

import json

import pytest

from gitmem import records
from gitmem.records import table

AT = 1_795_291_200_123_456
TASK = {"task_id": "task-0001", "thread_id": "thread-0001", "message": "Write the tests", "sender_identity": "a:b:c"}  # fmt: skip
EVENT = {"event_id": "tev-0001", "task_id": "task-0001", "event": "take", "sender_identity": "a:b:c"}
CLAIM = {"claim_id": "claim-0001", "event": "claim", "paths": ["src/**"], "sender_identity": "a:b:c"}
LEAST = {"task": TASK, "task_event": EVENT, "claim": CLAIM}
NEW = ("task", "task_event", "claim")


def test_a_million_character_brief_is_refused_with_its_size() -> None:
    """The error names the field and both sizes."""
    with pytest.raises(
        records.RecordError, match="task's message is 1000000 bytes, and at most 65536 are allowed"
    ):
        records.line("task", AT, {**TASK, "message": "x" * 1_000_000})


@pytest.mark.parametrize("field", ["context", "payload", "requested_role", "requested_ownership_scope"])
def test_an_object_is_limited_by_the_line(field: str) -> None:
    """Objects and lists have no limit of their own; the line has."""
    with pytest.raises(records.RecordError, match="at most 262144 are allowed"):
        records.line("task", AT, {**TASK, field: {"x": "y" * 300_000}})


def test_a_hostile_longer_message_is_ignored_on_read() -> None:
    """A line that no writer of ours makes is kept by the log, and read by nobody."""
    line = records.line("task", AT, TASK).replace(b"Write the tests", b"x" * 70_000)
    assert records.read(line) is None
    assert "at most 65536" in str(records.explain_unreadable(line))


@pytest.mark.parametrize("kind", NEW)
def test_an_integer_is_refused_in_every_field(kind: str) -> None:
    """Times and lists count instead: old and new readers agree on what is equal. Objects may have numbers."""
    for name, spec in table.FIELDS[kind].items():
        if name != "mac":
            with pytest.raises(records.RecordError, match=r"7|must|not right"):
                records.line(kind, AT, {**LEAST[kind], name: 7})
            assert spec[0] in {"line", "text", "word", "form", "list", "flag", "object", "choice"}


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("task", "purpose", "rumour"),
        ("task", "priority", "P7"),
        ("task_event", "event", "steal"),
        ("task_event", "state", "done"),
        ("claim", "event", "keep"),
        ("claim", "mode", "greedy"),
    ],
)
def test_an_unknown_word_is_refused_when_written_and_kept_when_read(
    kind: str, field: str, value: str
) -> None:
    """A later version may have more words; its lines stay readable and only their effect is unknown."""
    with pytest.raises(records.RecordError, match=f"{field} must be "):
        records.line(kind, AT, {**LEAST[kind], field: value})
    line = records.line(kind, AT, LEAST[kind])
    fields = json.loads(line)
    fields[field] = value
    read = records.read(json.dumps(fields, separators=(",", ":")).encode())
    assert read is not None
    assert read.get(field) == value
