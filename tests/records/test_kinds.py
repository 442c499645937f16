"""What is declared of a kind or a field in one place is found wherever a record goes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import string
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from gitmem import records
from gitmem.records import ids, kinds
from gitmem.records.lines import is_certainly_valid
from gitmem.records.table import FIELDS, REQUIRED, TEXTS
from tools import compile_kinds

from ..profiles import up_to

ROOT = Path(__file__).resolve().parents[2]
FIELD = """    if_late: ShortLine | None = optional(
        "What happens if nobody answers.",
        head="else {}",
        option=Option("What happens if nobody answers.", metavar="TEXT"),
    )
"""
KIND = '''

class Lesson(Record):
    """What somebody has learnt."""

    KIND = "lesson"
    STREAM = "lessons"

    lesson_id: Annotated[str, id_form("lesson", "lesson")] = required("The id of this lesson.")
    text: Message = required("What was learnt.")
    wu_id: WorkUnit | None = optional("The work unit.")
'''
ENTITY = '''"""Lessons as entities of the index: what was learnt last counts."""

from gitmem import records
from gitmem.index import entities

LESSON = entities.EntityKind(
    "lesson", {"lesson": "lesson_id"}, "lesson_id", "text TEXT, wu_id TEXT, lines INTEGER", records.read,
    indexes={"wu": "(wu_id)"},
)


def _rows(db, lessons):
    for id, lines in lessons.items():
        last = lines.rows[-1].record
        yield id, last["text"], last.get("wu_id"), len(lines.rows)


VIEW = entities.view(LESSON, lambda: entities.Fold(_rows))
'''
RECORD = """
import json
from gitmem.api import log
from gitmem.index import entities
from gitmem.log.lines import CommitMessage
store = log.open(".").store
for text in ("Measure first.", "Measure twice."):
    line = store.line("lesson", {"lesson_id": "lesson-0001", "text": text, "wu_id": "WU-7"})
    store.record([line], CommitMessage("gitmem <gitmem@localhost>", "a lesson"))
found, more = entities.select(store.db(), "SELECT * FROM lesson WHERE wu_id = ?", ("WU-7",), order="lesson_id", limit=1)
print(json.dumps([found, more]))
"""
TOOL = """
import json
from cli.mcp import calls, server, tools
served = server.Server(calls.ToolCalls(None, None, None, tools.NAMES), fields=False)
print(json.dumps(served._ours["signal"].parameters["properties"]["if_late"]))
"""
Do = Callable[..., Any]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with one more field of signals and one more kind, each declared in `kinds.py` alone."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("gitmem", "cli", "merge_driver", "tools"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "docs").mkdir()
    shutil.copy(ROOT / "docs/records.md", folder / "docs")
    kinds = folder / "gitmem/records/kinds.py"
    before, heading, after = kinds.read_text(encoding="utf-8").partition("\n\nclass Receipt(Record):")
    others, rest, end = after.partition("\n\n# They contain no vocabulary")
    kinds.write_text(before + FIELD + heading + others + KIND + rest + end, encoding="utf-8")
    (folder / "gitmem/lessons.py").write_text(ENTITY, encoding="utf-8")
    views = folder / "gitmem/views.py"
    text = views.read_text(encoding="utf-8").replace(
        "from . import records", "from . import lessons, records"
    )
    views.write_text(text.replace("VIEWS = (", "VIEWS = (lessons.VIEW, "), encoding="utf-8")
    for tool in ("compile_kinds.py", "compile_shape.py", "compile_parser.py"):
        subprocess.run([sys.executable, folder / "tools" / tool], check=True, timeout=60)
    return folder


@pytest.fixture
def do(project: Path, repo: Path) -> Do:
    """`do("signal", "hello", as_="a:b:c")`: the JSON that the copy's command answers; `do(code=…)` runs Python in it."""

    def run(*args: str, code: str = "", as_: str = "", status: int = 0) -> Any:
        command = ["-c", code or "import sys; from cli.main import main; sys.exit(main())", *args]
        options = [*(["--json"] if args and "--text" not in args else []), *(["--as", as_] if as_ else [])]
        done = subprocess.run(
            [sys.executable, *[each for each in command if each != "--text"], *options],
            cwd=repo, env={**os.environ, "PYTHONPATH": str(project)}, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == status, done.stderr
        return json.loads(done.stdout or done.stderr or "null") if options[:1] == ["--json"] else done.stdout

    return run


def test_a_field_of_signals_is_declared_in_one_place(project: Path, do: Do) -> None:
    for identity in ("a:a:a", "b:b:b"):
        do("session", "start", "--agent-identity", identity)
    sent = ("signal", "Deploy?", "--to", "b:b:b", "--idempotency-key", "k")
    made = do(*sent, "--if-late", "we lose a day", as_="a:a:a")["signal"]
    assert made["if_late"] == "we lose a day"

    (read,) = do("inbox", "--no-mark", as_="b:b:b")["signals"]
    assert read["if_late"] == "we lose a day"
    assert "else we lose a day" in do("inbox", "--text", as_="b:b:b")

    again = do(*sent, "--if-late", "nothing happens", as_="a:a:a", status=2)
    assert again["error"]["code"] == "idempotency-conflict"
    assert do(*sent, "--if-late", "we lose a day", as_="a:a:a")["signal"] == made

    assert do("schema", "signal")["properties"]["if_late"]["description"] == "What happens if nobody answers."
    assert json.loads(do(code=TOOL)) == {"type": "string"}
    page = (project / "docs/records.md").read_text(encoding="utf-8")
    assert "\n| `if_late` | short line | What happens if nobody answers. |\n" in page


def test_a_kind_is_declared_in_one_place_and_folded_in_another(project: Path, do: Do) -> None:
    """Its model, and a file with its columns and its reducer, which the list of views names."""
    state = ["lesson-0001", "Measure twice.", "WU-7", 2]
    assert json.loads(do(code=RECORD)) == [[state], 0]

    first, entry = do("log")["entries"]
    assert (first["kind"], first["text"], entry["text"]) == ("lesson", "Measure first.", "Measure twice.")
    assert "records a lesson" in do("log", "--text")
    shown = do("show", "lesson-0001")
    assert (shown["kind"], shown["record"]["lesson_id"]) == ("lesson", "lesson-0001")
    assert do("schema", "lesson")["properties"]["kind"]["const"] == "lesson"
    done = do("doctor")
    assert (done["healthy"], done["checked"]["lines"]) == (True, 3)
    page = (project / "docs/records.md").read_text(encoding="utf-8")
    assert "### lesson (stream `lessons`)\n\nWhat somebody has learnt.\n" in page


# The models as others see them: frozen values and JSON Schemas.


@pytest.mark.parametrize("kind", records.KINDS)
def test_a_schema_describes_every_field(kind: str) -> None:
    """Each field of each kind says what it means, and unknown ones are allowed."""
    schema = records.schema(kind)

    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["additionalProperties"] is True
    assert schema["properties"]["kind"]["const"] == kind
    assert [name for name, field in schema["properties"].items() if not field.get("description")] == []


def test_a_schema_of_no_kind_is_refused() -> None:
    """An unknown kind is the asker's error."""
    with pytest.raises(records.RecordError, match="not a kind"):
        records.schema("rumour")


def test_models_are_frozen_and_keep_what_they_do_not_know() -> None:
    """A record is a value; a field of a newer contract stays with it."""
    fields = {"at": "2026-11-21T20:00:00.123456Z", "session_id": "sess-0000", "event": "end", "display_name": "Planck", "clone_id": "c", "later": 1}  # fmt: skip
    record = records.Session.model_validate(fields)

    assert record.model_extra == {"later": 1}
    with pytest.raises(ValidationError):
        record.display_name = "Curie"


def test_there_is_no_other_name() -> None:
    """The room gives its models by name and nothing else."""
    models = (records.Signal, records.Receipt, records.Session, records.Node, records.Patch,
              records.Relation, records.Access, records.Audit, records.Task, records.TaskEvent, records.Claim,
                  records.Commit, records.Attestation, records.Forget, records.Trust)  # fmt: skip
    assert {model.KIND for model in models} == set(records.KINDS)
    with pytest.raises(AttributeError):
        records.Rumour  # noqa: B018


# Ids: random ones, ones made from a key, and what counts as one.

CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"


WRITER = "zgpef53hd1cxcs7t"
PREFIXES = ("sig", "sess", "audit", "mem", "patch", "rel", "access", "task", "tev", "claim", "link")
WRITERS = st.text(CROCKFORD, min_size=16, max_size=16)


def first_bits(text: str, characters: int) -> str:
    """The first bits of the SHA-256 of a text, five for each character."""
    bits = bin(int(hashlib.sha256(text.encode()).hexdigest(), 16))[2:].zfill(256)
    return "".join(CROCKFORD[int(bits[at : at + 5], 2)] for at in range(0, characters * 5, 5))


def test_a_new_id_is_fifty_random_bits_and_sixty_of_its_writer() -> None:
    """All 50 bits of the source count, and the others are a hash of the writer and what stands before them."""
    for random, expected in (
        (lambda size: b"\xff" * size, "z" * 10),
        (bytes, "0" * 10),
        (lambda size: b"\x08" + bytes(size - 1), "1" + "0" * 9),
    ):
        bound = first_bits(f"{WRITER}\nsig-{expected}", 12)
        assert ids.new_id("sig", WRITER, random) == f"sig-{expected}{bound}"
    assert len({ids.new_id("mem", WRITER) for _ in range(1000)}) == 1000
    assert set("".join(ids.new_id("x", WRITER)[2:] for _ in range(200))) <= set(CROCKFORD)


@given(st.sampled_from(PREFIXES), WRITERS, WRITERS, st.binary(min_size=7, max_size=7))
def test_an_id_is_bound_to_its_writer_and_to_no_other(
    prefix: str, writer: str, other: str, random: bytes
) -> None:
    """Random or from a key; one with another prefix is of nobody."""
    assume(writer != other)
    for id in (ids.new_id(prefix, writer, lambda _: random), ids.own_id(prefix, writer, random.hex())):
        assert ids.is_id(prefix, id) and ids.is_of_somebody(prefix, id)
        assert ids.is_bound(id, writer) and not ids.is_bound(id, other)
        assert not ids.is_bound(id.replace(f"{prefix}-", "note-"), writer)
        assert not any(ids.is_bound(id[:-1] + each, writer) for each in CROCKFORD + "ilou" if each != id[-1])


def test_an_own_id_is_a_function_of_writer_and_parts() -> None:
    """Another writer with the same key has another id; without a writer it is the free one."""
    made = ids.own_id("sig", WRITER, "a:b:c", "key")

    assert made == ids.own_id("sig", WRITER, "a:b:c", "key") and ids.is_bound(made, WRITER)
    assert made[4:14] == first_bits("a:b:c\nkey", 10)
    assert ids.own_id("sig", "0" * 16, "a:b:c", "key")[:14] == made[:14]
    assert ids.own_id("sig", "0" * 16, "a:b:c", "key") != made
    assert ids.own_id("sig", "", "a:b:c", "key") == ids.keyed_id("sig", "a:b:c", "key")


def test_only_twenty_two_characters_are_of_somebody() -> None:
    """Ids of any other length are free."""
    for length in range(4, 33):
        assert ids.is_of_somebody("sig", "sig-" + "a" * length) is (length == 22)
    assert not ids.is_of_somebody("sig", "sig-" + "A" * 22)
    assert not ids.is_of_somebody("sig", "sess-" + "a" * 22)


def test_a_keyed_id_is_a_function_of_its_parts() -> None:
    """The first 12 base32 characters of the SHA-256 of the parts joined by LF."""
    expected = first_bits("a:b:c\nkey", 12)

    assert ids.keyed_id("sig", "a:b:c", "key") == f"sig-{expected}"
    assert ids.keyed_id("thread", "a:b:c", "key") == f"thread-{expected}"


def test_what_is_an_id() -> None:
    """The prefix, a dash and 4 to 32 lower-case letters or digits."""
    assert ids.is_id("sig", ids.new_id("sig", WRITER))
    assert ids.is_id("sig", "sig-iloU".lower())
    for text in (
        "sig-abc",
        "sig-" + "a" * 33,
        "sig-ABCD",
        "sess-abcd",
        "sig-ab!d",
        "sig-abcd\n",
        "sigabcd",
        "",
    ):
        assert not ids.is_id("sig", text), text


# The compiled table is the models', and the plain check never accepts what they refuse.

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
        "attestation": {"writer": "0" * 16, "key": "A" * 43, "clone": "0" * 8, "number": "1", "lines": "A" * 22, "signature": "A" * 86},
        "forget": {"forget_id": "forget-0000", "lines": ["0" * 32], "about": "sig-0000", "reason": "r", "sender_identity": "a:b:c"},
        "trust": {"trust_id": "trust-0000", "event": "grant", "other": "0" * 16},
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
    texts = TEXTS.get(kind, ())
    order = sorted(known + [name for name in dumped if name not in known], key=lambda name: name in texts)
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
