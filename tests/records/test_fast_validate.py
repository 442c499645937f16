"""The compiled table is the models', and the plain check never accepts what they refuse."""

from __future__ import annotations

import json
import string
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gitmem import records
from gitmem.records import kinds
from gitmem.records.lines import is_certainly_valid
from gitmem.records.table import FIELDS, REQUIRED
from tests.profiles import up_to
from tools import compile_kinds

AT = "2026-11-21T20:00:00.123456Z"
GOOD = {
    "sig-3f9k2m7q1x0z", "sess-3f9k2m7q1x0z", "thread-3f9k2m7q1x0z", "WU-123", "0" * 64, "a:b:c", "human:a@b.c",
    "Planck", "INFO", "priority", "exact", "local", "start", "delivered", "add", "A2A.V1", "acked", "lane one",
}  # fmt: skip
EDGES = '\0\x1f \x7f\x85\xa0\xad\u061c\u1680\u200b\u200f\u2028\u202e\u2066\u3000\ufeff\ud800\udfff,:-._\n\t"\\\u0661\U0001f600'
ODD = st.text(st.sampled_from(EDGES + string.ascii_letters + string.digits), max_size=5)


@st.composite
def near_the_edge(draw: st.DrawFn) -> str:
    """A good text, spoiled in one place, or of about the greatest length."""
    base = draw(st.sampled_from(sorted(GOOD)))
    match draw(st.integers(0, 4)):
        case 0:
            return base
        case 1:
            at = draw(st.integers(0, len(base)))
            return base[:at] + draw(ODD) + base[at:]
        case 2:
            return draw(ODD)
        case 3:
            size = draw(st.sampled_from([63, 64, 65, 128, 129, 200, 201, 256, 257, 1024, 1025, 4097]))
            return base[:1] * size
        case _:
            return draw(st.text(max_size=20))


VALUES = (
    near_the_edge()
    | st.none()
    | st.booleans()
    | st.integers(0, 1)
    | st.lists(near_the_edge(), max_size=3)
    | st.lists(near_the_edge(), max_size=2).map(tuple)
    | st.dictionaries(st.sampled_from(["a", "b"]), near_the_edge() | st.lists(st.none()), max_size=2)
)


@st.composite
def some_fields(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A good record of some kind with up to three fields put or taken."""
    kind = draw(st.sampled_from(records.KINDS))
    least: dict[str, dict[str, Any]] = {
        "signal": {"signal_id": "sig-0000", "sender_identity": "a:b:c", "message": "m"},
        "receipt": {"signal_id": "sig-0000", "reader_identity": "a:b:c", "answers_digest": "0" * 64},
        "session": {"session_id": "sess-0000", "event": "end", "display_name": "Ada", "clone_id": "c"},
        "name": {"name": "Ada", "event": "add"},
        "node": {"id": "mem-0000", "type": "note", "lifecycle": "wu", "content": "c", "sender_identity": "a:b:c"},
        "patch": {"id": "patch-0000", "node_ids": ["mem-0000"], "sender_identity": "a:b:c"},
        "relation": {"id": "rel-0000", "from_id": "mem-0000", "to_id": "mem-0001", "type": "blocks",
                     "sender_identity": "a:b:c"},
        "access": {"id": "access-0000", "node_ids": ["mem-0000"], "reader_identity": "a:b:c"},
        "audit": {"audit_id": "audit-0000", "action": "gate", "reason": "r", "reader_identity": "a:b:c",
                  "sender_identity": "a:b:c"},
        "task": {"task_id": "task-0000", "thread_id": "thread-0000", "message": "m", "sender_identity": "a:b:c"},
        "task_event": {"event_id": "tev-0000", "task_id": "task-0000", "event": "take", "sender_identity": "a:b:c"},
        "claim": {"claim_id": "claim-0000", "event": "claim", "paths": ["src"], "sender_identity": "a:b:c"},
        "commit": {"link_id": "link-0000", "commit": "0" * 40, "action": "commit", "evidence": "none", "sender_identity": "a:b:c"},
    }  # fmt: skip
    fields = dict(least[kind])
    names = st.sampled_from([*FIELDS[kind], "unknown"])
    fields.update(draw(st.dictionaries(names, VALUES, max_size=3)))
    if draw(st.integers(0, 9)) == 0:
        fields.pop(draw(st.sampled_from(sorted(fields))))
    return kind, fields


@settings(max_examples=up_to(400), deadline=None)
@given(some_fields(), st.booleans())
def test_plainly_right_is_right(case: tuple[str, dict[str, Any]], writing: bool) -> None:
    """What the table accepts, the models accept."""
    kind, fields = case

    if is_certainly_valid(kind, fields, writing=writing):
        assert kinds.first_error({"at": AT, "kind": kind, **fields}, writing=writing) is None


@settings(max_examples=up_to(400), deadline=None)
@example(("signal", {"signal_id": "sig-0000", "sender_identity": "a:b:c", "message": "m", "seen": []}))
@example(("patch", {"id": "patch-0000", "node_ids": [], "sender_identity": "a:b:c"}))
@given(some_fields())
def test_the_bytes_are_those_of_the_model(case: tuple[str, dict[str, Any]]) -> None:
    """A line written by way of the table is what the model's own fields would be, dumped."""
    kind, fields = case
    try:
        line = records.line(kind, 1_795_291_200_123_456, fields, allow_secret=True)
    except records.RecordError:
        return
    record = records.read(line)
    assert record is not None

    dumped = kinds.model(kind).model_validate(record).model_dump(mode="json")
    known = [name for name in dumped if name in FIELDS[kind] or name in ("at", "kind")]
    order = known + [name for name in dumped if name not in known]
    kept = {
        n: dumped[n]
        for n in order
        if dumped[n] not in (None, "", [], {}, False)
        or n in ("recipients", "unknown", *REQUIRED[kind])
        or (n == "seen" and dumped[n] is not None)  # written even when empty
    }
    assert line == json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode()


def test_the_everyday_records_need_no_models() -> None:
    """The table knows enough: these are plainly right to write and to read."""
    signal = {
        "schema_version": "A2A.V1", "signal_id": "sig-3f9k2m7q1x0z", "sender_identity": "codex:dev:host42@gitmem",
        "sender_headline": "Planck \u00b7 WU-1 \u2014 caf\u00e9", "recipients": ["human:a@b.c"], "after": ["sig-0000"],
        "thread_id": "sig-3f9k2m7q1x0z", "answers_digest": "0" * 64, "intent": "AGREE", "interrupt_class": "priority",
        "requires_ack": True, "message": "Gr\u00fc\u00dfe\n\U0001f600", "wu_id": "WU-123", "artifact_path": "docs/a b.md",
    }  # fmt: skip
    session = {
        "session_id": "sess-0000", "event": "start", "agent_identity": "codex:dev:host42@gitmem",
        "display_name": "Planck-2", "clone_id": "c", "worktree": "/home/ada/r\u00e9po", "harness_session": "0198c6f0-2f7e",
    }  # fmt: skip

    node = {
        "id": "mem-3f9k2m7q1x0z", "type": "discovery", "lifecycle": "wu", "content": "Gr\u00fc\u00dfe\n\u2014", "priority": "P1",
        "tags": ["bug", "index:architecture"], "wu_id": "WU-123", "session_id": "sess-0000", "paths": ["docs/a b.md"],
        "head": "0" * 40, "branch": "main", "closed": True, "metadata": {"progress": "half", "n": [1, {"a": None}]},
        "sender_identity": "codex:dev:host42@gitmem",
    }  # fmt: skip
    patch = {
        "id": "patch-3f9k2m7q1x0z", "node_ids": ["mem-0000", "mem-0001"], "after": ["patch-0000"], "clear": ["tags"],
        "archived": True, "sender_identity": "human:a@b.c",
    }  # fmt: skip

    for writing in (True, False):
        assert is_certainly_valid("signal", signal, writing=writing)
        assert is_certainly_valid("session", session, writing=writing)
        assert is_certainly_valid("name", {"name": "Curie", "event": "add"}, writing=writing)
        assert is_certainly_valid("node", node, writing=writing)
        assert is_certainly_valid("patch", patch, writing=writing)
    assert is_certainly_valid(
        "signal", {**signal, "later": {"a": [1]}, "interrupt_class": "loud"}, writing=False
    )


def test_the_derived_files_are_fresh() -> None:
    """After a change of a model: python tools/compile_all.py."""
    page = compile_kinds.PAGE.read_text(encoding="utf-8")
    assert compile_kinds.TABLE.read_text(encoding="utf-8") == compile_kinds.compile_table()
    assert compile_kinds.TYPES.read_text(encoding="utf-8") == compile_kinds.compile_types()
    assert compile_kinds.OPTIONS.read_text(encoding="utf-8") == compile_kinds.compile_options()
    assert page == compile_kinds.compile_page(page)


@pytest.mark.parametrize(
    "pattern",
    ["abc", "^a|b$", "^(a)$", "^a.b$", r"^\w+$", "^a$b$", "^a++$", "^[[:alpha:]]$", "^*$", "^[\u00e9]b$"],
)
def test_the_compiler_raises_on_patterns_that_it_cannot_express(pattern: str) -> None:
    """A rule that the table has no form for stops the compiler instead of being dropped."""
    with pytest.raises(compile_kinds.CannotExpressError):
        compile_kinds.form({"type": "str", "pattern": pattern})


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "int"},
        {"type": "str", "strip_whitespace": True},
        {"type": "list", "items_schema": {"type": "str"}},
        {
            "type": "function-after",
            "function": {"type": "with-info", "function": print},
            "schema": {"type": "str"},
        },
        {"type": "literal", "expected": [1]},
    ],
)
def test_the_compiler_raises_on_schemas_that_it_cannot_express(schema: dict[str, Any]) -> None:
    """The same for types, options and validators."""
    with pytest.raises(compile_kinds.CannotExpressError):
        compile_kinds.form(schema)
