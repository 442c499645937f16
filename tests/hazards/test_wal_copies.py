"""Lines that wait while a clone is copied, restored or moved: each is there exactly once."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from gitmem.doctor import doctor
from gitmem.log import committer, lines
from gitmem.log.lines import CommitMessage, LogEntry
from tests.clones import Clone, Hub, git

from .faults import check_index


def wait(clone: Clone, text: str, *, deferred: bool = False) -> None:
    """Record a line that waits for its commit."""
    fields = {"at": lines.format_at(clone.log.clock.tick()), "kind": "note", "text": text}
    line = json.dumps(fields, separators=(",", ":")).encode()
    clone.log.append(LogEntry([("notes", line)], CommitMessage("a <a@agents>", text), deferred=deferred))


def counted(path: Path, tip: str) -> Counter[str]:
    """How often each line of a log is in its tree."""
    found: Counter[str] = Counter()
    for name in git("ls-tree", "-r", "--name-only", tip, cwd=path).split():
        if name.endswith(".jsonl"):
            for line in git("cat-file", "blob", f"{tip}:{name}", cwd=path).splitlines():
                found[json.loads(line)["text"]] += 1
    return found


def check_all(hub: Hub, expected: set[str], *clones: Clone) -> None:
    """Sync all until nothing is left: the same log everywhere, and each line in it once."""
    for clone in (*clones, *clones):
        assert clone.exchange().state in ("synced", "up-to-date")
    tip = hub.tip()
    assert tip is not None
    assert counted(hub.path, tip) == Counter(dict.fromkeys(expected, 1))
    for clone in clones:
        assert clone.tip == tip and not clone.log.waiting(deferred=True)
        clone.store.db()
        check_index(clone.store)


def reopen(hub: Hub, clone: Clone, path: Path | None = None) -> Clone:
    """The same clone, in another process, perhaps at another place."""
    clone.store.close()
    return hub.open(path or clone.path)


@pytest.mark.parametrize("first", ["original", "copy", "both at once"])
def test_a_copied_clone_with_waiting_lines(hub: Hub, first: str) -> None:
    """`cp -r`: both commit what waited, each adds its own, and after syncing both each line is there once."""
    original = hub.clone("a")
    original.add("committed")
    original.exchange()
    for number in range(3):
        wait(original, f"waits {number}")
    wait(original, "deferred", deferred=True)
    shutil.copytree(original.path, hub.root / "copy", symlinks=True)
    copy = hub.open(hub.root / "copy")
    order = {"original": (original, copy), "copy": (copy, original), "both at once": ()}[first]
    for clone in order:
        clone.add(f"{clone.path.name} says more")
        clone.exchange()
    if not order:
        for clone in (original, copy):
            wait(clone, f"{clone.path.name} says more")
        committer.commit_waiting(original.log)
        original.log.new_token()
        committer.commit_waiting(copy.log)

    expected = {"committed", "waits 0", "waits 1", "waits 2", "deferred", "a says more", "copy says more"}
    check_all(hub, expected, original, copy)


@pytest.mark.parametrize("what", ["git folder", "write-ahead log", "generations that were committed"])
def test_a_restored_backup_brings_back_lines_that_are_committed_by_now(hub: Hub, what: str) -> None:
    """They waited when the backup was made, and were committed and sent since."""
    clone = hub.clone("a")
    clone.add("committed")
    for number in range(3):
        wait(clone, f"waits {number}")
    wait(clone, "deferred", deferred=True)
    clone.store.db()
    shutil.copytree(clone.path / ".git", hub.root / "backup", symlinks=True)
    clone.add("after the backup")
    clone.log.new_token()
    clone.add("in another segment")
    clone.exchange()
    clone = reopen(hub, clone)
    if what == "git folder":
        shutil.rmtree(clone.path / ".git")
        shutil.copytree(hub.root / "backup", clone.path / ".git", symlinks=True)
    else:
        wal = Path(clone.store.repo.state, "wal")
        kept = {each.name for each in wal.iterdir()}
        if what == "write-ahead log":
            shutil.rmtree(wal)
            wal.mkdir()
        for path in (hub.root / "backup" / "gitmem" / "wal").iterdir():
            if path.name not in kept:
                shutil.copy2(path, wal)
    clone = reopen(hub, clone)
    wait(clone, "after the restoration")

    expected = {"committed", "waits 0", "waits 1", "waits 2", "deferred", "after the backup", "in another segment",
                "after the restoration"}  # fmt: skip
    check_all(hub, expected, clone, hub.clone("b"))


def test_a_repository_that_is_moved_takes_its_waiting_lines_along(hub: Hub) -> None:
    """Also into another folder of another name, with an index that knows them by their old place."""
    clone = hub.clone("a")
    clone.add("committed")
    wait(clone, "waits")
    wait(clone, "deferred", deferred=True)
    clone.store.db()
    clone.store.close()
    (hub.root / "elsewhere").mkdir()
    clone.path.rename(hub.root / "elsewhere" / "b")
    clone = hub.open(hub.root / "elsewhere" / "b")
    clone.store.commit_after = 60.0
    shown = [
        json.loads(body)["text"] for (body,) in clone.store.db().execute("SELECT body FROM line ORDER BY at")
    ]
    assert shown == ["committed", "waits", "deferred"]
    assert doctor.fix(clone.store).status == 0
    wait(clone, "after the move")

    check_all(hub, {"committed", "waits", "deferred", "after the move"}, clone)
