"""Segments that somebody or something has spoiled: a bad line costs that line, is reported, and is kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gitmem.git.objects import Draft, Signature
from gitmem.log import ref
from gitmem.log.lines import writer_of
from gitmem.log.union import canonical
from gitmem.store import Store
from tests.clones import Hub, git
from tests.loose_objects import remove
from tests.sandbox import annas
from tests.signing import MALLORY, addressed, attest, own_key

from .conftest import Desk
from .faults import check_index, open_store, speak

WHO = Signature("Somebody", "somebody@example.org", 1_790_000_000)
AT = "2026-11-20T10:00:00.000001Z"
TORN = b'{"at":"2026-11-20T10:00:00.000002Z","kind":"signal","schema_version":"A2A.V1","signal_id":"sig-0000'
MARKERS = b"<<<<<<< ours\n=======\n>>>>>>> theirs"


def record(**fields: object) -> bytes:
    return json.dumps({"at": AT, "kind": "signal", **fields}, separators=(",", ":")).encode()


SAID = {"schema_version": "A2A.V1", "signal_id": "sig-000000000001", "sender_identity": "test:worker:other",
        "recipients": [annas("test:worker:curie")], "intent": "INFO", "message": "from elsewhere"}  # fmt: skip
SIGNAL = json.loads(addressed(record(**SAID), MALLORY))
# What is wrong, the bytes of it, and what doctor calls it.
BAD = {
    "a torn last line": (TORN, "unreadable-line"),
    "conflict markers": (MARKERS, "conflict-marker"),
    "NUL": (b'{"at":"2026-11-20T10:00:00.000003Z","kind":"note","x":"\0"}', "unreadable-line"),
    "NULs for a page, as a power loss leaves them": (b"\0" * 4096, "unreadable-line"),
    "invalid UTF-8": (
        b'{"at":"2026-11-20T10:00:00.000004Z","kind":"note","x":"\xff\xfe"}',
        "unreadable-line",
    ),
    "a line of 10 MB": (record(**SIGNAL)[:-1] + b',"x":"' + b"x" * 10_000_000 + b'"}', "unreadable-line"),
    "an unknown kind": (record(kind="telepathy", thought="hm"), "unknown-kind"),
    "a higher schema version": (record(**{**SIGNAL, "schema_version": "A2A.V2"}), "unknown-kind"),
    "no JSON": (b"hello", "unreadable-line"),
    "JSON that is no record": (b"[1,2,3]", "unreadable-line"),
    "a record without its fields": (record(message="whose?"), "invalid-record"),
    "a lone CR in the middle": (
        b'{"at":"2026-11-20T10:00:00.000005Z","kind":"note"\r,"x":1}',
        "unreadable-line",
    ),
    "deep nesting": (record(x=0)[:-2] + b"[" * 60_000 + b"]" * 60_000 + b"}", "unreadable-line"),
}


def open_segment(store: Store) -> str:
    """The path of the segment that this clone's signals are in."""
    tip = store.git.tip(ref.LOG_REF) or ""
    (path,) = git("ls-tree", "-r", "--name-only", tip, "signals", cwd=Path(store.repo.common)).split()
    return path


def rewrite(store: Store, path: str, content: bytes | None) -> str:
    """A commit by hand that gives a file of the log this content; Mallory has attested those lines that are no others'."""
    tip = store.git.tip(ref.LOG_REF)
    assert tip
    changes = {path: content}
    lines = [line for line in (content or b"").split(b"\n") if writer_of(line) in ("", MALLORY.writer)]
    if path.endswith(".jsonl") and any(lines):
        changes[f"seals/{path}"] = attest(lines, MALLORY) + b"\n"
    new = store.git.advance(ref.LOG_REF, tip, Draft(changes, WHO, WHO, "By hand\n"), "by hand")
    assert new
    return new


def content(store: Store, path: str) -> bytes:
    tip = store.git.tip(ref.LOG_REF)
    entry = ref.lookup(store.git, store.git.commit(tip or "").tree, path)
    assert entry, path
    return store.git.blob(entry.oid)


def messages(desk: Desk) -> list[str]:
    said = desk("inbox", "--for", "Curie", "--no-mark", "--json", "--limit", "100")
    assert said.status == 0, said
    return [signal["message"] for signal in said.json["signals"]]


@pytest.mark.parametrize("what", BAD)
def test_a_bad_line_costs_that_line(desk: Desk, what: str) -> None:
    """The others are answered, doctor says where it is, and the next append keeps it in canonical form."""
    bad, code = BAD[what]
    planck, _ = desk.start("Planck"), desk.start("Curie")
    desk.send(planck, "first", "--to", "Curie")
    store = open_store(desk.repo)
    path = open_segment(store)
    before = content(store, path)
    rewrite(store, path, before + bad)
    assert messages(desk) == ["first"]
    said = desk("doctor", "--json")
    number = (before + bad).split(b"\n").index(bad.split(b"\n")[0]) + 1
    found = [each for each in said.json["findings"] if each["code"] == code]
    assert found, said
    assert found[0]["where"] == f"{ref.LOG_REF}:{path}:{number}"
    assert found[0]["fix"] and found[0]["what"].isprintable()
    desk.send(planck, "second", "--to", "Curie")
    after = content(store, path)
    assert after == canonical(after)
    assert set(canonical(before + bad).split(b"\n")) <= set(after.split(b"\n")), "nothing was dropped"
    assert messages(desk) == ["first", "second"]  # the second in another segment where this one is full
    check_index(store)
    store.close()


def test_crlf_is_taken_out_by_the_next_union(desk: Desk) -> None:
    """A work tree with CRLF conversion changes no line's identity: nothing is there twice."""
    planck, _ = desk.start("Planck"), desk.start("Curie")
    desk.send(planck, "first", "--to", "Curie")
    desk.send(planck, "second", "--to", "Curie")
    store = open_store(desk.repo)
    path = open_segment(store)
    before = content(store, path)
    rewrite(store, path, before.replace(b"\n", b"\r\n"))
    assert messages(desk) == ["first", "second"]
    assert [
        each["where"] for each in desk("doctor", "--json").json["findings"] if each["code"] == "crlf"
    ] == [f"{ref.LOG_REF}:{path}"]
    desk.send(planck, "third", "--to", "Curie")
    after = content(store, path)
    assert b"\r" not in after and set(before.split(b"\n")) < set(after.split(b"\n"))
    assert messages(desk) == ["first", "second", "third"]
    store.close()


def test_a_newer_format_is_read_and_not_written(desk: Desk) -> None:
    """Reads answer; writes end with status 4 and what to install, and leave the log as it was."""
    planck, curie = desk.start("Planck"), desk.start("Curie")
    desk.send(planck, "first", "--to", "Curie")
    store = open_store(desk.repo)
    tip = rewrite(
        store, "format", b'{"format":2,"epoch":0,"turn":0,"publish":"refs/heads/gitmem","new":[]}\n'
    )
    assert messages(desk) == ["first"]
    said = desk("signal", "--to", "Curie", "--json", "second", session=planck)
    assert said.status == 4
    assert said.error["code"] == "newer-format" and said.json["next"] == [
        "pip install --upgrade gitmem-coord"
    ]
    assert messages(desk) == ["first"]
    assert desk("reply", "--json", "sig-", "no", session=curie).status == 2
    assert "newer-format" in {each["code"] for each in desk("doctor", "--json").json["findings"]}
    assert store.git.tip(ref.LOG_REF) == tip
    assert not store.log.waiting(deferred=True)
    store.close()


def test_a_format_that_cannot_be_read_stops_writes_and_not_reads(desk: Desk) -> None:
    """Somebody spoiled the file by hand."""
    planck, _ = desk.start("Planck"), desk.start("Curie")
    desk.send(planck, "first", "--to", "Curie")
    store = open_store(desk.repo)
    rewrite(store, "format", b"format two\n")
    assert messages(desk) == ["first"]
    said = desk("signal", "--to", "Curie", "--json", "second", session=planck)
    assert said.status == 4 and said.error["code"] == "bad-format"
    assert desk("doctor", "--json").status == 1
    assert messages(desk) == ["first"]
    store.close()


def test_a_segment_that_was_deleted_by_hand_is_reported(desk: Desk) -> None:
    """Doctor names the lines that a later commit dropped; appending and reading go on."""
    planck, _ = desk.start("Planck"), desk.start("Curie")
    desk.send(planck, "first", "--to", "Curie")
    store = open_store(desk.repo)
    path = open_segment(store)
    rewrite(store, path, None)
    assert messages(desk) == []
    report = desk("doctor", "--json").json
    dropped = [each for each in report["findings"] if path in each["where"]]
    assert dropped and dropped[0]["severity"] == "problem", report
    desk.send(planck, "second", "--to", "Curie")
    assert messages(desk) == ["second"]
    check_index(store)
    store.close()


def test_a_segment_that_was_deleted_here_comes_back_from_the_remote(tmp_path: Path) -> None:
    """The union of all places has it, so nobody can delete for the others."""
    hub = Hub(tmp_path)
    a, b = hub.clone("a"), hub.clone("b")
    a.add("first")
    a.exchange()
    b.exchange()
    (path,) = git("ls-tree", "-r", "--name-only", a.tip, "notes", cwd=a.path).split()
    rewrite(a.store, path, None)
    assert a.texts() == []
    a.add("second")
    a.exchange()
    b.exchange()
    assert a.texts() == b.texts() == hub.texts() == ["first", "second"]
    assert a.merges() == 0
    hub.close()


def test_readers_take_any_layout(desk: Desk) -> None:
    """Segments elsewhere, with other names, one line twice in two of them: each line counts once."""
    own_key(desk.repo)
    planck, _ = desk.start("Planck"), desk.start("Curie")
    desk.send(planck, "first", "--to", "Curie")
    store = open_store(desk.repo)
    line = record(**SIGNAL)
    for path in ("signals/all.jsonl", "other/deep/er/still/x.jsonl", "signals/2026-11/20/copy.jsonl"):
        rewrite(store, path, line + b"\n")
    rewrite(store, "signals/notes.txt", b"not ours\n")
    rewrite(store, "strange.jsonl.d/README", b"not ours\n")
    assert sorted(messages(desk)) == ["first", "from elsewhere"]
    speak(store, "second")
    assert sorted(messages(desk)) == ["first", "from elsewhere", "second"]
    check_index(store)
    store.close()


def test_an_object_that_is_gone_is_named(desk: Desk) -> None:
    """What needs it ends with status 4 and its name; what does not goes on; doctor says where it is from."""
    planck, _ = desk.start("Planck"), desk.start("Curie")
    desk.send(planck, "first", "--to", "Curie")
    store = open_store(desk.repo)
    path = open_segment(store)
    entry = ref.lookup(store.git, store.git.commit(store.git.tip(ref.LOG_REF) or "").tree, path)
    assert entry
    store.close()
    remove(desk.repo / ".git", entry.oid)
    assert messages(desk) == ["first"], "the index has it"
    for index in (desk.repo / ".git" / "gitmem").glob("index-*"):
        index.unlink()
    for args in (("inbox", "--for", "Curie"), ("signal", "--to", "Curie", "second")):
        said = desk(*args, "--json", session=planck)
        assert said.status == 4 and said.error["code"] == "missing-object", said
        assert entry.oid in said.error["message"] and said.json["next"] == ["gitmem doctor"]
    report = desk("doctor", "--json").json
    assert f"{ref.LOG_REF}:{path}" in {
        each["where"] for each in report["findings"] if each["code"] == "missing-object"
    }
    assert not open_store(desk.repo).log.waiting(deferred=True)
