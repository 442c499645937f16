"""The documents say what the code does: their examples are computed again, their names looked up."""

from __future__ import annotations

import datetime
import hashlib
import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from gitmem import commit_message, records
from gitmem.agents import broadcasts, caller
from gitmem.git import config
from gitmem.log import attestations, lines, ref, tree_checks, write_ahead
from gitmem.log.lines import LogEntry
from gitmem.log.local_log import AHEAD_MAX_MICROS
from gitmem.log.union import canonical, union
from gitmem.memory import decay
from gitmem.order import node as node_fold
from gitmem.order import thread as causality
from gitmem.order.session import HOLD_MICROS
from gitmem.order.task import FoldedTask, TaskEvent
from gitmem.order.thread import FoldedThread, ThreadSignal
from gitmem.records import ids, kinds
from gitmem.records import lines as record_lines
from gitmem.signals import message_frame, reply, threads
from gitmem.sync import read_remote
from gitmem.text import sanitize
from gitmem.trust import keys

ROOT = Path(__file__).resolve().parent.parent
FORMAT = (ROOT / "docs/format.md").read_text(encoding="utf-8")
RECORDS = (ROOT / "docs/records.md").read_text(encoding="utf-8")
LOCAL_STATE = (ROOT / "docs/local-state.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "docs/ARCHITECTURE.md").read_text(encoding="utf-8")
DECISIONS = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
PAGES = [
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs/decisions").glob("*.md")),
    *sorted((ROOT / "docs/reference").glob("*.md")),
    *sorted(ROOT.glob("*.md")),
]


def example(name: str, page: str = FORMAT + LOCAL_STATE) -> str:
    """The content of the code block that is headed by its language and this name."""
    (found,) = re.findall(rf"^```\w+ {name}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return str(found)


LINE = example("line").removesuffix("\n").encode()


def object_id(kind: str, content: bytes, algorithm: str = "sha1") -> str:
    whole = f"{kind} {len(content)}\0".encode() + content
    return hashlib.new(algorithm, whole, usedforsecurity=False).hexdigest()


def test_the_first_commit_has_the_bytes_and_the_id_that_are_written() -> None:
    """Another implementation that starts a log apart is related to ours."""
    assert object_id("commit", example("genesis-bytes").encode()) == ref.GENESIS
    assert f"`{ref.GENESIS}`" in FORMAT
    empty = object_id("tree", b"", "sha256")
    of_sha256 = example("genesis-bytes").replace(object_id("tree", b""), empty).encode()
    assert object_id("commit", of_sha256, "sha256") == ref.GENESES[64]
    assert f"`{empty}`" in FORMAT and f"`{ref.GENESES[64]}`" in FORMAT


@pytest.mark.parametrize(
    ("block", "name", "content"),
    [
        ("format", "format", ref.Format.make().content),
        ("readme", "README.md", ref.README),
        ("gitattributes", ".gitattributes", ref.ATTRIBUTES),
    ],
)
def test_fixed_files_are_byte_for_byte(block: str, name: str, content: bytes) -> None:
    """The block is the file, and the id beside it is its blob's."""
    assert example(block).encode() == content
    assert re.search(rf"`{re.escape(name)}`, blob\s+`{object_id('blob', content)}`", FORMAT)


def test_the_format_file_is_ordered_as_it_says() -> None:
    """Format, then epoch, turn and bytes."""
    least = ref.Format.make()
    order = [
        least,
        ref.Format(least.content.replace(b":0,", b": 0,", 1)),
        ref.Format.make(turn=1),
        ref.Format(least.content.replace(b'"format":1', b'"format":2')),
    ]
    order.sort(key=lambda form: form.rank)

    ranks = [(form.format, form.turn) for form in order]

    assert ranks == [(1, 0), (1, 0), (1, 1), (2, 0)]
    assert order[0].content < order[1].content


def test_the_line_is_one_and_is_written_just_so() -> None:
    """Read and written again it has the same bytes."""
    record = records.read(LINE)
    assert record is not None
    fields = {name: value for name, value in record.items() if name not in ("at", "kind")}
    salt = LINE.partition(lines.SALT)[2][: records.SALT_CHARACTERS].decode()

    again = records.line("signal", lines.parse_at(record["at"]), fields, salt=salt)

    assert lines.validation_error(LINE) is None
    assert again == LINE
    assert f"`{ref.segment_path('signals', LINE, '7d2kq0ze')}`" in FORMAT


def test_the_key_file_is_one_and_makes_the_writer_that_is_named(tmp_path: Path) -> None:
    """Somebody else's program can make the file."""
    path = tmp_path / "key"
    path.write_text(example("key"), encoding="utf-8")
    key = keys.read(str(path)).key()

    assert key is not None
    assert f"here `{key.writer}`" in LOCAL_STATE


def test_the_digest_is_that_of_the_line() -> None:
    """By the rule in words, and by the code."""
    said = example("digest").strip()

    before, _, after = LINE.partition(b',"salt":"')
    reduced = before + b',"texts":"' + hashlib.sha256(after).hexdigest().encode() + b'"}'

    assert hashlib.sha256(b"{" + reduced[36:]).hexdigest() == said
    assert lines.digest(LINE) == said == lines.digest(reduced)


def test_the_union_is_that_of_the_example() -> None:
    """CRs, an empty line, a conflict marker and a torn line at once."""
    values = {}
    for row in example("union").splitlines():
        name, _, value = row.partition("=")
        values[name.strip()] = json.loads(value).encode()

    assert union(values["a"], values["b"]) == values["union"]
    assert union(values["b"], values["a"]) == values["union"]
    assert canonical(values["union"]) == values["union"]


def test_keyed_ids_are_those_of_the_example() -> None:
    """The same writer, sender and key are the same signal on every clone."""
    rows = dict(row.split(maxsplit=1) for row in example("keyed").splitlines())
    parts = (rows["writer"], rows["sender_identity"], rows["idempotency_key"])

    assert ids.own_id("sig", *parts) == rows["signal_id"]
    assert ids.is_bound(rows["signal_id"], rows["writer"])


def test_the_thread_is_read_as_the_example_says() -> None:
    """A decision that was written knowing another one is the later, whatever the clocks say."""
    thread = {}
    for record in json.loads(example("thread", RECORDS)):
        line = json.dumps(record).encode()
        thread[record["signal_id"]] = ThreadSignal(record, [line])
    found = FoldedThread("thread-x", thread)
    standing = found.position("curie")

    assert causality.root("thread-x", thread).id == "sig-0001"
    assert standing is not None
    assert (standing.signal.id, standing.signal.intent) == ("sig-0004", "AGREE")
    assert [said.id for said in found.order.shown()] == sorted(thread)
    before = {name: said for name, said in thread.items() if name != "sig-0004"}
    after = causality.ids_for_after(["curie"], FoldedThread("thread-x", before), set(), "sig-0003")
    assert after == thread["sig-0004"].record["after"]


def test_the_agreement_is_what_the_example_says() -> None:
    """A recipient counters, the others accept it, one of them first agrees to what was replaced."""
    said = {}
    for place, record in enumerate(json.loads(example("agreement"))):
        said[record["signal_id"]] = ThreadSignal(record, [json.dumps({"at": place, **record}).encode()])
    found = FoldedThread("thread-x", said)
    assert found.agreed_on is said["sig-0002"]
    before = FoldedThread("thread-x", {id: each for id, each in said.items() if id != "sig-0005"})
    assert (before.agreed_on, list(before.in_force)) == (None, ["sig-0002"])
    assert {each: before.stands(each)[0] for each in before.asked} == {
        "planck": "agree", "curie": "counter", "bohr": "pending"
    }  # fmt: skip
    first: Any = {
        **said["sig-0001"].record,
        "need": "2",
        "veto": ["curie"],
        "recipients": ["curie", "bohr", "dora"],
    }
    some = FoldedThread("thread-x", {**said, "sig-0001": ThreadSignal(first, [said["sig-0001"].line])})
    assert some.agreed_on is said["sig-0002"]


def test_what_is_void_is_what_the_example_says() -> None:
    """A new session of who proposed decides for nobody, and another agent for whom it speaks."""
    given = json.loads(example("own"))
    called = {each.pop("session_id"): list(each.values()) for each in given["sessions"]}
    thread = {each["signal_id"]: ThreadSignal(each, [json.dumps(each).encode()]) for each in given["signals"]}
    found = threads.void_own_decisions("thread-x", thread, lambda ids: called)

    assert [id for id, said in found.items() if said.void] == given["void"]


def test_the_node_is_folded_as_the_example_says() -> None:
    """What two clones changed apart is kept from both; what knew another change counts, whatever the clocks say."""
    lines_of: dict[str, list[tuple[dict[str, object], bytes]]] = {"node": [], "patch": []}
    for record in json.loads(example("node", RECORDS)):
        at = f"2026-11-21T{record.pop('at')}:00.000000Z"
        fields = {"type": "note", "lifecycle": "wu", "sender_identity": "a:b:c", **record}
        if record["kind"] == "patch":
            del fields["type"], fields["lifecycle"]
        kind = str(fields.pop("kind"))
        line = records.line(kind, lines.parse_at(at), fields)
        read = records.read(line)
        assert read is not None
        lines_of[kind].append((read, line))

    node = node_fold.fold(lines_of["node"], lines_of["patch"])

    said = (
        f"The node says `{node.content}`, has priority `{node.priority}`, and both entries in its metadata."
    )
    assert said in RECORDS
    assert node.metadata == {"seen": 1, "by": "Curie"}
    assert node.updated_at == "2026-11-21T20:09:00.000000Z"


def test_the_task_is_folded_as_the_example_says() -> None:
    """Leases and what writers had seen decide who has it, and the seal how it ends."""
    given = json.loads(example("task"))
    events = []
    for record in given["events"]:
        record["at"] = f"2026-11-21T{record['at']}:00.000000Z"
        record["until"] = f"2026-11-21T{record['until']}:00.000000Z" if "until" in record else None
        events.append(TaskEvent({"task_id": "task-0001", **record}, json.dumps(record).encode()))
    task = {"message": "m", "purpose": "delegation", **given["task"]}
    sealed, unsealed = FoldedTask(task, events), FoldedTask(task, events[:-1])

    assert (sealed.holder, sealed.outcome, sealed.late) == (events[1], events[2], [events[3]])
    assert (unsealed.outcome, unsealed.decided_by) == (events[3], "status")


def test_the_rule_of_decay_is_that_of_the_code() -> None:
    """The numbers of the page."""
    assert decay.HALF_LIFE_MICROS == 30 * 24 * 3600 * 1_000_000
    assert decay.THRESHOLD == 0.1
    assert decay.IMPORTANCE == {"P0": 2, "P1": 1.5, "P2": 1, "P3": 0.5}
    assert decay.importance(None) == 1


def test_the_commit_reads_as_the_example() -> None:
    """Subject, body with a line that poses as a trailer, trailers."""
    record = records.read(LINE)
    assert record is not None
    message = "Approve this boundary?\n\nSignal: this line is the message's own"

    told = commit_message.of_signal("Planck <x@gitmem>", "Planck", ["Curie"], {**record, "message": message})

    trailers = "".join(f"{key}: {value}\n" for key, value in told.trailers)
    assert f"{told.subject}\n\n{told.body}\n\n{trailers}" == example("commit")
    assert f"{commit_message.BODY_MAX:,} characters" in FORMAT
    assert f"at most {commit_message.SUBJECT_MAX} characters" in FORMAT


def test_the_reply_lines_are_those_of_the_code() -> None:
    """What stands in angle brackets is filled in."""
    signal = {"signal_id": "sig-1111", "sender_identity": "a:b:c", "sender_session": "sess-1111", "intent": "INFO",
              "origin": "local"}  # fmt: skip
    made = [
        message_frame.reply_line({**signal, **more}, reader="x:y:z")
        for more in ({"sender_headline": "reads"}, {}, {"sender_headline": "reads", "owed": True})
    ]
    filled = {"headline": "reads", "session id": "sess-1111", "signal id": "sig-1111"}

    shown = example("reply-line")
    for name, value in filled.items():
        shown = shown.replace(f"<{name}>", value)
    assert shown.splitlines() == made
    assert f"at most {sanitize.TITLE_MAX} columns" in FORMAT


def test_an_attestation_holds_as_many_lines_as_it_says() -> None:
    """A clone that allowed more would sign what others refuse."""
    assert f"at most {attestations.DIGESTS_MAX} lines." in FORMAT


def test_the_loop_is_as_long_as_it_says() -> None:
    assert f"the {reply.TURNS_MAX + 1}th turn" in FORMAT
    assert f"within {reply.WINDOW_MICROS // 60_000_000} minutes" in FORMAT


def test_the_entry_of_the_write_ahead_log_reads_as_one() -> None:
    """Its bytes are what the next process will commit, and the record around it has the form that the page shows."""
    content = example("wal-entry").encode()

    entry = LogEntry.decode(content)

    assert entry.encode() == content
    assert (entry.token, entry.deferred) == ("7d2kq0ze", False)
    assert entry.message.subject == "Planck → all: hello"
    assert [stream for stream, _ in entry.lines] == ["signals"]
    assert records.read(entry.lines[0][1]) is not None
    head = write_ahead.encode_record(content).partition(b"\n")[0].decode()
    fields = {"NUL": "\0", "SP": " ", "<e or v>": "e", "<length, 10 digits>": f"{len(content):010d}"}
    shown = example("wal-record").partition(" LF")[0].replace(" ", "")
    for name, value in {**fields, "<checksum>": write_ahead.checksum(content).decode()}.items():
        shown = shown.replace(name.replace(" ", ""), value)
    assert head == shown


def test_the_name_of_a_remote_is_encoded_as_the_example() -> None:
    """Without what could be a password."""
    url, encoded = example("remote").splitlines()

    assert config.encode_remote(url) == encoded


def test_the_limits_are_those_of_the_code() -> None:
    """A number that is changed in one place only would split clones."""
    limits = dict(re.findall(r"^\| ([^|]+?) \| (\d+(?: \w)?) \|$", FORMAT + LOCAL_STATE, re.MULTILINE))

    assert limits == {
        "line, without LF": str(lines.LINE_MAX_BYTES),
        "message, in UTF-8": str(64 * 1024),
        "levels of lists and objects in a field": str(record_lines.DEPTH),
        "size at which a segment is closed": str(ref.SEGMENT_MAX_BYTES),
        "size at which appends to a segment end": str(ref.SEGMENT_BYTES_MAX),
        "segment made by a union": str(ref.UNION_BYTES_MAX),
        "new files in one sync": str(tree_checks.LIMITS.files),
        "new lines in one sync": str(tree_checks.LIMITS.lines),
        "bytes of new files in one sync": str(tree_checks.LIMITS.bytes),
        "bytes of new commits and folders in one sync": str(tree_checks.LIMITS.history_bytes),
        "bytes of commits and folders read to determine what is new": str(tree_checks.LIMITS.read_bytes),
        "bytes of files read to count lines in one sync": str(tree_checks.LIMITS.counted_bytes),
        "commits listed to check sizes in one sync": str(tree_checks.LIMITS.listed),
        "outboxes read by one sync": str(read_remote.OUTBOXES_MAX),
        "object in a log ref (file, folder, commit)": str(tree_checks.LIMITS.object_bytes),
        "nested folders in a tree": str(tree_checks.LIMITS.depth),
        "entries of a tree": str(tree_checks.LIMITS.rows),
        "stored last time ahead of the clock": "60 s",
        "age of broadcasts that are unread for a new reader": "24 h",
        "broadcasts unread for a reader without a first line, of any age": str(broadcasts.NEWEST),
        "hashes in `seen`; readers ignore further ones": str(broadcasts.SEEN_MAX),
        "hold of a name after a record": "48 h",
        "each of content, tags, paths, metadata in a patch of several nodes (size of section 11)": str(
            node_fold.SIZE_MAX
        ),
    }
    assert AHEAD_MAX_MICROS == 60 * 1_000_000
    assert broadcasts.BACKLOG_MICROS == 24 * 3600 * 1_000_000
    assert HOLD_MICROS == 48 * 3600 * 1_000_000
    assert caller.KEEPALIVE_MICROS == 24 * 3600 * 1_000_000


def limits_of_forms() -> dict[str, int]:
    """Form → greatest length, as section 7 defines it in the list above the tables."""
    section = FORMAT.partition("\n## 7. Records\n")[2].partition("\n*Invisible*")[0]
    parts = re.findall(r"\*\*([\w ]+)\*\*:\s((?:(?!\*\*).)*)", section, re.DOTALL)
    return {
        name: max(int(each.replace(",", "")) for each in re.findall(r"[\d,]*\d", text))
        for name, text in parts
        if name not in ("text", "flag")
    }


def test_the_forms_have_the_limits_of_the_models() -> None:
    """A length that is changed in one place only makes lines that readers of the page refuse."""
    types = (kinds.Address, kinds.Line, kinds.ShortLine, kinds.DisplayName, kinds.Tag, kinds.Path)
    forms = [each for of in types for each in get_args(of) if isinstance(each, kinds.Form)]
    limits = limits_of_forms()

    assert (limits.pop("commit id"), limits.pop("work unit")) == (64, 100)
    assert limits == {each.name: each.most for each in forms}


def test_the_picture_shows_folders_that_exist() -> None:
    """Every folder in it is on the disk, and every room of the code is in it, with a paragraph."""
    picture = example("packages", ARCHITECTURE)
    drawn = set(re.findall(r"\b(\w+)/(?=\s)", picture))
    inside = {path.name for path in (ROOT / "gitmem").iterdir() if (path / "__init__.py").exists()}

    assert drawn == {"cli", "merge_driver", "gitmem", *inside}
    assert set(re.findall(r"^### (\w+)/$", ARCHITECTURE, re.MULTILINE)) == drawn - {"gitmem"}


def test_the_way_of_a_signal_passes_at_most_25_files() -> None:
    """Somebody should be able to follow it in an hour; each file is named once or more."""
    way = ARCHITECTURE.partition("## The way of a signal")[2].partition("From one clone to another")[0]
    assert len(set(re.findall(r"`((?:cli|gitmem)/[\w/]+\.py)`", way))) <= 25


def test_the_architecture_page_stays_short() -> None:
    """Somebody should read it before the first line of code."""
    assert len(ARCHITECTURE.split()) <= 2_100


def test_the_paths_that_the_pages_name_exist() -> None:
    """A file that was renamed is renamed here too. Links of the pages as well."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for path in re.findall(r"`((?:gitmem|cli|merge_driver|tests|docs|tools|benchmarks)/[\w./]*)`", text):
            assert (ROOT / path).exists(), f"{page.name} names {path}"
        for link, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", text):
            target = page.parent / link if link else page
            assert target.exists(), f"{page.name} links to {link}"
            if anchor:
                headings = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
                anchors = [re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings]
                assert anchor in anchors, f"{page.name} links to {link}#{anchor}"


def test_the_modules_that_a_room_names_are_in_it() -> None:
    """`wal.py` in the paragraph of `log/` is `gitmem/log/write_ahead.py`."""
    rooms = re.findall(r"^### (\w+)/\n\n(.*?)(?=^##)", ARCHITECTURE, re.MULTILINE | re.DOTALL)
    assert len(rooms) == len(re.findall(r"^### \w+/$", ARCHITECTURE, re.MULTILINE)) >= 8
    for room, text in rooms:
        folder = ROOT / room if (ROOT / room).is_dir() else ROOT / "gitmem" / room
        for name in re.findall(r"`(\w+\.py)`", text):
            assert (folder / name).exists(), f"{room}/ has no {name}"


DECISION_MARKS = ["Question", "Choice", "Why", "Price", "Revisit"]
DECISION_HEAD = re.compile(
    r"# (?P<number>\d+)\. (?P<title>.+)\n\n"
    r"Status: accepted\n"
    r"Date: (?P<date>\d{4}-\d\d-\d\d)\n\n"
)


def decisions() -> dict[str, re.Match[str]]:
    """Return the head of each decision, by its number of four digits."""
    heads = {}
    for path in DECISIONS:
        head = DECISION_HEAD.match(path.read_text(encoding="utf-8"))
        assert head, f"{path.name} begins with another head than title, status and date"
        assert int(head["number"]) == int(path.name[:4]), path.name
        heads[path.name[:4]] = head
    return heads


def test_decisions_have_one_form() -> None:
    """Title, date, then question, choice, reason, price, and what would change our mind; half a page at most."""
    assert len(decisions()) == len(DECISIONS), "two decisions have one number"
    for path, head in zip(DECISIONS, decisions().values(), strict=True):
        text = path.read_text(encoding="utf-8")
        datetime.date.fromisoformat(head["date"])
        marks = re.findall(r"^\*\*(.+?)\.\*\*", text, re.MULTILINE)
        required = [mark for mark in DECISION_MARKS if mark in marks or mark not in ("Why", "Revisit")]
        assert marks == required, path.name
        assert len(text.split()) <= 300, f"{path.name} is longer than half a page"


def test_there_are_at_most_sixty_decisions() -> None:
    """Somebody should find what was decided on a subject on its page, not on ten."""
    assert len(DECISIONS) <= 60, "merge pages on one subject"


def test_the_index_of_decisions_has_a_row_for_each() -> None:
    """Number and title, in the order of numbers."""
    expected = [
        (str(int(number)), head["title"], path.name)
        for path, (number, head) in zip(DECISIONS, decisions().items(), strict=True)
    ]
    index = (ROOT / "docs/decisions/README.md").read_text(encoding="utf-8")

    assert re.findall(r"^\| (\d+) \| \[(.*)\]\((.*)\) \|$", index, re.MULTILINE) == expected


def test_the_decisions_that_are_named_have_a_page() -> None:
    """Code, tests and pages name them by number; one that was merged is named by the page that has it now."""
    folders = ("gitmem", "cli", "merge_driver", "tests", "tools", "benchmarks")
    code = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    named = {
        (number, path.name)
        for path in [*PAGES, ROOT / "benchmarks/README.md", *code]
        for number in re.findall(r"\bdecision(?: |s/0*)(\d+)\b", path.read_text(encoding="utf-8"))
    }

    assert {each for each in named if f"{int(each[0]):04d}" not in decisions()} == set()


def test_the_changelog_has_what_is_to_come() -> None:
    """Keep a Changelog: Unreleased first."""
    headings = re.findall(r"^## \[(.+?)\]", CHANGELOG, re.MULTILINE)

    assert headings[0] == "Unreleased"
