"""Broadcasts from clocks that are days behind, to readers who were away, and with `seen` lists that were made up."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from gitmem import records, views
from gitmem.agents import broadcasts, mailbox
from gitmem.index import index_file, insert
from gitmem.index import rows as rows_of

from .forging import Hub, changed, line

START = 1_793_000_000_000_000
DAY = broadcasts.BACKLOG_MICROS
CPU_SECONDS = 4  # of processor time for what a peer pushed


def broadcast(id: str, at: str, seen: list[str] | None, message: str) -> bytes:
    whole = line(
        "signal",
        at,
        signal_id=id,
        sender_identity="test:worker:slow",
        recipients=[],
        message=message,
        seen=seen,
    )
    return changed(whole)


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    """A hub whose clones run the installed program."""
    return Hub(tmp_path)


def test_a_broadcast_from_a_clock_that_is_days_behind_reaches_who_was_there(hub: Hub) -> None:
    """The reader's own first line did not know it; one that comes later knows it, and is spared."""
    planck = hub.clone("Planck")
    known = planck.send("first")["signal_id"]
    planck.sync()
    hub.forge(broadcast("sig-slow00000001", "2020-01-01T00:00:00.000000Z", [known], "from a slow clock"))
    planck.sync()
    assert [each["message"] for each in planck.inbox()] == ["from a slow clock"]
    assert planck.inbox() == []

    curie = hub.clone("Curie")
    first = next(
        json.loads(each) for each in _lines(curie) if b'"kind":"session"' in each and b"curie" in each
    )
    assert first["seen"] == ["sig-slow00000001"]
    assert [each["message"] for each in curie.inbox()] == ["first"]


def _lines(clone: object) -> list[bytes]:
    import subprocess

    path = clone.path  # type: ignore[attr-defined]  # a Clone
    found = subprocess.run(
        ["git", "grep", "-h", "", "refs/gitmem/log", "--", "*.jsonl"],
        cwd=path,
        capture_output=True,
        check=True,
    )
    return found.stdout.splitlines()


def test_broadcasts_to_who_was_away_wait(hub: Hub) -> None:
    """Whoever has a first line gets every later broadcast, whatever `seen` says; without the field the clock decides."""
    planck = hub.clone("Planck")
    planck.sync()
    own = json.loads(next(each for each in hub.lines() if b'"kind":"session"' in each))
    old = [
        broadcast(f"sig-old{number:09}", f"2026-01-0{number}T00:00:00.000000Z", [], str(number))
        for number in (1, 2)
    ]
    hub.forge(*old, broadcast("sig-plain0000001", "2026-01-01T00:00:00.000000Z", None, "without seen"), broadcast("sig-loop00000001", "2026-01-03T00:00:00.000000Z", ["sig-loop00000002"], "3"),
              broadcast("sig-loop00000002", "2026-01-04T00:00:00.000000Z", ["sig-loop00000001", "sig-gone"], "4"))  # fmt: skip
    planck.sync()
    assert own["seen"] == []
    assert [each["message"] for each in planck.inbox()] == ["1", "2", "3", "4"]


@pytest.mark.deep
@pytest.mark.parametrize("shape", ["chain", "ring", "wide", "one id"])
def test_no_list_of_names_makes_the_index_slow(shape: str) -> None:
    """Megabytes of broadcasts that name each other, thousands of readers: seconds at most, and each inbox is quick."""
    count, readers = 6_000, 4_000
    lines = []
    for number in range(count):
        id = "sig-one0" if shape == "one id" else f"sig-{number:04}"
        named = [
            f"sig-{(number + step) % count:04}" for step in range(1, 2 if shape in ("chain", "ring") else 17)
        ]
        if shape == "chain":
            named = [f"sig-{number - 1:04}"] if number else []
        lines.append(records.line("signal", START - 9 * DAY + number, {
            "schema_version": "A2A.V1", "signal_id": id, "sender_identity": "a:b:c", "recipients": [],
            "message": str(number), "seen": named,
        }))  # fmt: skip
    lines += [
        records.line("session", START + number, {
            "schema_version": "A2A.V1", "session_id": f"sess-{number:04}", "event": "start", "clone_id": "clone",
            "display_name": f"N{number}", "seen": [f"sig-{count - 1:04}"] if number % 2 else [],
        })
        for number in range(readers)
    ]  # fmt: skip
    index = index_file.in_memory([mailbox.VIEW, *views.VIEWS[1:]], records.read)
    index.reshape()
    rows = [rows_of.LineRow(number, each, records.read(each) or {}) for number, each in enumerate(lines, 1)]
    index.db.executemany(
        "INSERT INTO line VALUES (?, 1, ?, ?, ?, ?)",
        [(row.id, str(row.id), row.at, row.record["kind"], row.line.decode()) for row in rows],
    )
    begun = time.process_time()
    mailbox.add(index.db, rows_of.Rows(rows))
    for number in (0, 1, readers - 1):
        mailbox.unread_ids(index.db, f"sess-{number:04}", None, None, START)
    assert time.process_time() - begun < CPU_SECONDS


def test_an_inbox_with_nothing_new_looks_at_nothing_old() -> None:
    """The cursor of a reader that comes to a long log stands behind all that it knows."""
    lines = [
        records.line("signal", START - 9 * DAY + number, {
            "schema_version": "A2A.V1", "signal_id": f"sig-{number:04}", "sender_identity": "a:b:c", "recipients": [],
            "message": "old", "seen": [f"sig-{number - 1:04}"] if number else [],
        })
        for number in range(500)
    ]  # fmt: skip
    index = index_file.in_memory(views.VIEWS, records.read)
    index.reshape()
    insert.lines(index, 1, lines)
    assert broadcasts.latest_broadcasts(index.db) == ["sig-0499"]
    first = records.line("session", START, {
        "schema_version": "A2A.V1", "session_id": "sess-0001", "event": "start", "clone_id": "clone",
        "display_name": "Planck", "seen": broadcasts.latest_broadcasts(index.db),
    })  # fmt: skip
    insert.lines(index, 1, [first])
    assert broadcasts.BroadcastStart(index.db, "sess-0001", None).cursor == 500
    assert mailbox.unread_ids(index.db, "sess-0001", None, None, START) == []
