"""Doctor: each thing that can be wrong is found, with the place and what to do, and nothing is changed."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import pkgutil
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

import gitmem.doctor
from gitmem import commit_process, records, views
from gitmem.agents import lifecycle
from gitmem.agents.caller import CallerClaims
from gitmem.clients.install import HookStatus
from gitmem.doctor import doctor, log_lines, log_ref
from gitmem.doctor.doctor import Report
from gitmem.doctor.findings import Check, Finding
from gitmem.errors import StoreError
from gitmem.git.objects import Draft, Signature, TreeEntry
from gitmem.index.entities import LineRow
from gitmem.log import ref
from gitmem.log.lines import CommitMessage, digest, format_at
from gitmem.sync import autosync, fences

from .. import file_faults
from ..clones import BEGINNING, Clone, Hub, git
from ..loose_objects import loosen, path_of
from ..memory.desk import Desk, blocks, raw
from ..sandbox import START, Clock, open_store
from ..signing import history

WHO = Signature("somebody", "somebody@example.org", 1)
FOLDER = "signals/2026-11/21/"


class Driver:
    """What the merge driver's installer says."""

    def __init__(self, **values: object) -> None:
        self.driver: str | None = "gitmem-merge %O %A %B"
        self.ours = self.attributes = self.runnable = True
        self.program: str | None = "/bin/gitmem-merge"
        for name, value in values.items():
            setattr(self, name, value)


class Installed:
    """What is installed outside the log, and what was asked to be installed again."""

    def __init__(
        self, driver: Driver | None = None, hooks: HookStatus | None = None, *, works: bool = True
    ) -> None:
        self.found = driver or Driver()
        self.status = hooks or HookStatus()
        self.works = works
        self.asked: list[str] = []

    def driver(self) -> Driver:
        return self.found

    def hooks(self) -> HookStatus:
        return self.status

    def install_driver(self) -> list[str]:
        self.asked.append("driver")
        if not self.works:
            raise StoreError("It is locked. Nothing was changed.")
        self.found = Driver()
        return [".git/config"]

    def install_hooks(self, client: str, scope: str) -> list[str]:
        self.asked.append(f"{client} {scope}")
        for each, found in self.status.installed:
            if (each.client, found.scope) == (client, scope):
                found.state = "installed"
        self.status.program_works = True
        return [f"{client}.json"]

    def install_git_hook(self, name: str) -> None:
        self.asked.append(name)
        setattr(self.status, name.replace("-", "_"), "installed")


@pytest.fixture
def clone(hub: Hub) -> Clone:
    """A clone whose log has one signal."""
    found = hub.clone("a")
    signal(found, "sig-aaaaaaaaaaaa", "hello")
    return found


def signal(clone: Clone, id: str, message: str, kind: str = "signal", **fields: object) -> bytes:
    given: dict[str, object] = {"signal_id": id, "sender_identity": "a:b:c", "message": message, **fields}
    if kind == "receipt":
        given = {"signal_id": id, "reader_identity": "d:e:f", "answers_digest": message, **fields}
    stream, line = clone.store.line(kind, given)
    clone.store.record([(stream, line)], CommitMessage("A <a@b>", message))
    return line


def by_hand(clone: Clone, **files: bytes | None) -> str:
    """A commit that puts segments as somebody's editor left them; others have attested their lines."""
    changes: dict[str, bytes | TreeEntry | None] = {
        f"{FOLDER}gm-{name}.jsonl": data for name, data in files.items()
    }
    lines = b"\n".join(data for data in files.values() if data).replace(b"\r", b"").split(b"\n")
    sealed = history((line for line in lines if line), BEGINNING)
    changes[f"seals/gm-{digest(b''.join(sealed))[:8]}.jsonl"] = b"".join(line + b"\n" for line in sealed)
    commit = clone.git.advance(ref.LOG_REF, clone.tip, Draft(changes, WHO, WHO, "By hand\n"), "test")
    assert commit is not None
    return commit


def line_of(id: str = "sig-bbbbbbbbbbbb", at: int = BEGINNING, **fields: str) -> bytes:
    extra = "".join(f',"{name}":"{value}"' for name, value in fields.items())
    return (
        f'{{"at":"{format_at(at)}","kind":"signal","signal_id":"{id}","sender_identity":"a:b:c",'
        f'"intent":"INFO","message":"m"{extra}}}'
    ).encode()


def codes(found: Report) -> dict[str, str]:
    return {finding.code: finding.where for finding in found.findings}


def test_a_sound_clone_has_no_findings(clone: Clone) -> None:
    """And doctor says what it has looked at."""
    before = clone.git.refs("refs/")
    found = doctor.examine(clone.store, Installed())
    assert not found.findings and found.healthy and found.status == 0
    assert found.checked["lines"] == 2 and found.checked["commits"] == 3
    assert list(found.as_json()) == ["findings", "healthy", "checked", "fixed", "writer", "hooks", "next"]
    assert clone.git.refs("refs/") == before


def test_a_clone_without_a_log_is_healthy(hub: Hub) -> None:
    """Looking does not start one."""
    clone = hub.clone("a")
    found = doctor.examine(clone.store)
    assert list(codes(found)) == ["no-log"] and found.healthy
    assert not clone.git.refs("refs/gitmem/")


@pytest.mark.parametrize(
    ("content", "code", "number"),
    [
        (b'{"at":"2026-11-21T20:00:00.123456Z","kind":"sig', "unreadable-line", 1),
        (b"<<<<<<< HEAD\n" + line_of() + b"\n=======\n>>>>>>> theirs\n", "conflict-marker", 4),
        (line_of() + b"\r\n", "crlf", None),
        (line_of() + b"\n" + line_of() + b"\n", "not-canonical", None),
        (line_of() + b"\n" + line_of()[:60] + b"\n", "unreadable-line", 2),
        (line_of() + b"\nnul \0 here\n", "unreadable-line", 2),
        (b"\xff\xfe\n" + line_of() + b"\n", "unreadable-line", 1),
        (b"x" * 10_000_000 + b"\n", "unreadable-line", 1),
        (line_of().replace(b'"signal"', b'"dream"') + b"\n", "unknown-kind", 1),
        (line_of().replace(b'"m"', b'""') + b"\n", "invalid-record", 1),
        (line_of(at=BEGINNING + 40_000_000_000_000) + b"\n", "future-line", 1),
        (line_of(reply_to="sig-zzzzzzzzzzzz") + b"\n", "unknown-id", 1),
        (line_of() + b"\n" + line_of(lane="x") + b"\n", "two-contents", 2),
    ],
)
def test_every_line_is_looked_at(clone: Clone, content: bytes, code: str, number: int | None) -> None:
    """The place names the line. None is of this clone's user, who could repair nothing: each is a note."""
    by_hand(clone, x=content)
    found = doctor.examine(clone.store)
    place = f"{ref.LOG_REF}:{FOLDER}gm-x.jsonl" + (f":{number}" if number else "")
    assert codes(found)[code] == place
    assert found.healthy
    assert all(finding.what and finding.fix for finding in found.findings)


def test_an_answer_to_another_content_is_a_problem(clone: Clone) -> None:
    """Text that was agreed to can't be swapped unseen."""
    line = signal(clone, "sig-bbbbbbbbbbbb", "shall we?")
    signal(clone, "sig-bbbbbbbbbbbb", digest(line), kind="receipt")
    assert doctor.examine(clone.store).healthy
    signal(clone, "sig-bbbbbbbbbbbb", "0" * 64, kind="receipt", reader_identity="g:h:i")
    found = doctor.examine(clone.store)
    assert list(codes(found)) == ["swapped-content"] and found.status == 1


def test_an_answer_without_a_digest_is_noted(clone: Clone) -> None:
    """It decides nothing: gitmem always writes which line it answers."""
    by_hand(clone, x=line_of("sig-bbbbbbbbbbbb", reply_to="sig-aaaaaaaaaaaa") + b"\n")
    found = doctor.examine(clone.store)
    assert list(codes(found)) == ["no-digest"] and found.healthy


def test_a_held_answer_to_no_line_is_no_problem(clone: Clone) -> None:
    """Anybody can push one, and it decides nothing."""
    fields = {"signal_id": "sig-gone00000000", "reader_identity": "a:b:c", "answers_digest": "0" * 64}
    receipt = records.line("receipt", BEGINNING, fields)
    changes: dict[str, bytes | TreeEntry | None] = {f"{FOLDER}gm-x.jsonl": receipt + b"\n"}
    assert clone.git.advance(ref.LOG_REF, clone.tip, Draft(changes, WHO, WHO, "By hand\n"), "test")
    found = doctor.examine(clone.store)
    assert found.healthy and [each.code for each in found.findings] == ["unattested"]


def test_lines_that_a_later_commit_dropped_are_found_where_they_were(clone: Clone) -> None:
    """In a changed file and in a deleted one; each once."""
    before = by_hand(
        clone,
        x=line_of() + b"\n" + line_of("sig-cccccccccccc") + b"\n",
        y=line_of("sig-dddddddddddd") + b"\n",
    )
    by_hand(clone, x=line_of() + b"\n", y=None)
    found = doctor.examine(clone.store)
    assert not found.healthy
    dropped = sorted(finding.where for finding in found.findings if finding.code == "dropped-lines")
    assert dropped == [f"{before[:12]}:{FOLDER}gm-x.jsonl:2", f"{before[:12]}:{FOLDER}gm-y.jsonl:1"]
    assert git("show", dropped[0].rpartition(":")[0], cwd=clone.path)
    assert all(f"git show {finding.where.rpartition(':')[0]}" in finding.fix for finding in found.findings)


def test_what_is_no_line_may_be_taken_out_by_hand(clone: Clone) -> None:
    """A conflict marker that somebody deleted is not missed."""
    by_hand(clone, x=b"<<<<<<< HEAD\n" + line_of() + b"\n")
    by_hand(clone, x=line_of() + b"\n")
    assert doctor.examine(clone.store).findings == []


@pytest.mark.parametrize("older", [False, True])
def test_a_missing_object_is_found(clone: Clone, older: bool) -> None:
    """Below the tip, and in history."""
    signal(clone, "sig-bbbbbbbbbbbb", "more")
    commit = clone.tip + ("~1" if older else "")
    names = git("ls-tree", "-r", commit, cwd=clone.path).splitlines()
    oid = next(row.split()[2] for row in names if row.endswith(".jsonl"))
    loosen(clone.path / ".git")
    path = path_of(clone.path / ".git", oid)
    clone.store.db()
    path.chmod(0o644)
    path.write_bytes(b"damaged")
    clone.git.close()
    found = doctor.examine(clone.store)
    assert "missing-object" in codes(found) and found.status == 1
    said = {finding.code: finding.what for finding in found.findings}
    assert older or "Cannot read or build the index" in said["index"], (
        "an index is not built anew from what is left"
    )
    assert ".." not in said.get("index", "")


def test_a_ref_that_is_no_log_is_a_problem(clone: Clone) -> None:
    """Somebody moved the log's ref to a branch."""
    git("update-ref", ref.LOG_REF, "main", cwd=clone.path)
    found = doctor.examine(clone.store)
    assert found.findings[0].code == "not-a-log" and found.status == 1
    assert found.next == ["gitmem doctor --fix"]


def test_refs_around_the_log_are_looked_at(clone: Clone, hub: Hub, tmp_path: Path) -> None:
    """A local branch, a fetched branch that is no log, another project's log, a leftover."""
    git("branch", "gitmem", ref.LOG_REF, cwd=clone.path)
    git("update-ref", "refs/remotes/origin/gitmem", "main", cwd=clone.path)
    git("update-ref", "refs/gitmem/scratch-1", "main", cwd=clone.path)
    git("update-ref", f"{fences.LOCAL}task-1", "main", cwd=clone.path)  # it stops a second taker
    path = tmp_path / "foreign"
    git("init", "--quiet", str(path), cwd=tmp_path)
    git("commit", "--quiet", "--allow-empty", "-m", "Another first", cwd=path)
    foreign = hub.open(path)
    foreign.add("theirs")
    git("fetch", "--quiet", str(path), "refs/gitmem/log:refs/remotes/other/gitmem", cwd=clone.path)
    found = doctor.examine(clone.store)
    assert codes(found) == {
        "not-a-log": "refs/remotes/origin/gitmem",
        "foreign-log": "refs/remotes/other/gitmem",
        "local-branch": ref.BRANCH,
        "fetched-unread": "",
    }
    assert not any("fence" in str(each.where) for each in found.findings)
    assert found.healthy


@pytest.mark.parametrize("bare", [True, False])
def test_the_published_log_of_a_hub_is_no_leftover(
    clone: Clone, hub: Hub, tmp_path: Path, bare: bool
) -> None:
    """There the branch is the log of everybody: no advice to delete it, and none to sync with nobody."""
    path = tmp_path / "published"
    git("init", "--quiet", *(["--bare"] if bare else []), str(path), cwd=tmp_path)
    git("push", "--quiet", str(path), f"{ref.LOG_REF}:{ref.BRANCH}", "main:main", cwd=clone.path)

    found = doctor.examine(hub.open(path).store)

    assert "local-branch" not in codes(found)
    assert not any("sync" in each or "-D" in each for each in found.next)
    assert not any("git branch -D" in finding.fix for finding in found.findings)


def test_a_sync_is_advised_only_where_it_works(clone: Clone) -> None:
    """With a remote the command names one where it must; without any there is no such command."""
    by_hand(clone, x=line_of(reply_to="sig-zzzzzzzzzzzz") + b"\n")
    found = {}
    for remotes in ([], ["one"], ["one", "two"]):
        for name in git("remote", cwd=clone.path).split():
            git("remote", "remove", name, cwd=clone.path)
        for name in remotes:
            git("remote", "add", name, f"/nowhere/{name}", cwd=clone.path)
        report = doctor.examine(clone.store)
        (found[len(remotes)],) = [each.command for each in report.findings if each.code == "unknown-id"]

    assert found == {0: "", 1: "gitmem sync", 2: "gitmem sync one"}


def test_after_a_sync_that_needs_a_repair_the_repair_is_advised(clone: Clone) -> None:
    """Another sync would be refused again."""
    found = []
    for repair in ("", " until it is repaired: gitmem sync --repair origin"):
        message = f"Nothing can be pushed to refs/gitmem/log{repair}"
        autosync.record_failure(clone.store.repo, 0.0, "2026-11-21T20:00:00Z", "refused", message, 0.0)
        report = doctor.examine(clone.store)
        found += [each.command for each in report.findings if each.code == "sync-failed"]
    assert found == ["gitmem sync", "gitmem sync --repair origin"]


def test_write_ahead_logs_and_locks_are_looked_at(clone: Clone) -> None:
    """Deferred receipts are as they should be; what is old, torn or foreign is not."""
    clone.add("rides", deferred=True)
    assert "wal-file" not in codes(doctor.examine(clone.store))
    (clone.path / ".git/gitmem/wal/00000000000000001.wal1.damaged").write_bytes(b"torn")
    (clone.path / ".git/gitmem/wal/notes.txt").write_text("mine\n")
    (clone.path / ".git/gitmem/wal/00000000000000001.wal2").write_bytes(b"newer")
    lock = clone.path / ".git/refs/gitmem/log.lock"
    lock.touch()
    os.utime(lock, (time.time() - 60, time.time() - 60))
    found = doctor.examine(clone.store)
    where = {os.path.basename(finding.where) for finding in found.findings if finding.code == "wal-file"}
    assert where == {"00000000000000001.wal1.damaged", "notes.txt"}
    assert codes(found)["wal-newer"].endswith(".wal2")
    assert "stale-lock" in codes(found) and found.status == 1


def test_a_line_that_waits_too_long_is_a_note(clone: Clone) -> None:
    """No committer has come, and the finding says why the last one failed."""
    clone.record("waits")
    (old,) = (file for file in (clone.path / ".git/gitmem/wal").iterdir() if file.stat().st_size)
    clone.store.commit_again = time.monotonic() + 60  # as where the ref is locked
    assert "wal-waits" not in codes(doctor.examine(clone.store))
    os.utime(old, (time.time() - 600, time.time() - 600))
    commit_process.save_failure(clone.store.repo, OSError(28, "No space left on device"))

    found = doctor.examine(clone.store)

    assert codes(found)["wal-waits"] == str(old)
    assert any("600 seconds" in each.what and "No space left" in each.what for each in found.findings)


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_full_disk_is_a_problem_that_names_what_waits(
    clone: Clone, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """The records that wait for it at once, not after a minute; with space again there is nothing to report."""
    clone.record("waits")
    clone.store.commit_again = time.monotonic() + 60
    before = sorted((clone.path / ".git/gitmem").rglob("*"))
    with monkeypatch.context() as patch:
        file_faults.at(patch, call, f"{clone.path}/.git/*", file_faults.full)
        found = doctor.examine(clone.store)
    what = {finding.code: finding.what for finding in found.findings}
    assert list(what) == ["disk-write", "wal-waits"] and found.status == 1
    assert "(No space left on device)" in what["disk-write"]
    assert what["wal-waits"].startswith("1 recorded entry waits") and "No space left" in what["wal-waits"]
    assert codes(found)["disk-write"] == str(clone.path / ".git/gitmem")
    assert not any(finding.fixable for finding in found.findings), "--fix makes no space"
    assert found.next == [f"df -h {clone.path}/.git/gitmem"]
    assert not doctor.examine(clone.store).findings
    assert sorted((clone.path / ".git/gitmem").rglob("*")) == before


def test_a_disk_without_space_for_objects_is_a_problem(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """The objects may be on another disk than gitmem's own files."""
    file_faults.at(monkeypatch, "write", f"{clone.path}/.git/objects/*", file_faults.full)
    assert codes(doctor.examine(clone.store)) == {"disk-write": str(clone.path / ".git/objects")}


def test_a_mirror_clone_is_a_problem(clone: Clone) -> None:
    """Its next fetch would delete the log."""
    git("config", "remote.origin.fetch", "+refs/*:refs/*", cwd=clone.path)
    assert codes(doctor.examine(clone.store))["odd-repository"].endswith("config")


def test_an_index_that_lacks_lines_is_a_problem(clone: Clone) -> None:
    """To build it anew is what helps."""
    signal(clone, "sig-bbbbbbbbbbbb", "more")
    clone.store.db().execute("DELETE FROM line WHERE body LIKE '%bbbbbbbb%'")
    found = doctor.examine(clone.store)
    assert list(codes(found)) == ["index"] and found.status == 1
    fixed = doctor.fix(clone.store)
    assert (
        fixed.healthy
        and fixed.fixed == 1
        and not any(each.startswith("gitmem doctor") for each in fixed.next)
    )
    assert doctor.examine(clone.store).healthy


def test_an_index_that_answers_otherwise_is_a_problem(clone: Clone) -> None:
    """It has every line, and what follows from them is not what it should be: each such table is named."""
    lifecycle.start(clone.store, CallerClaims(identity="d:e:f"), name="Planck")
    line = signal(clone, "sig-bbbbbbbbbbbb", "more", recipients=["d:e:f", "g:h:i"])
    signal(clone, "sig-bbbbbbbbbbbb", digest(line), "receipt")
    assert doctor.examine(clone.store).healthy

    def tables_after(*changes: str) -> set[str]:
        for change in changes:
            clone.store.db().execute(f"UPDATE {change}")
        found = doctor.examine(clone.store)
        assert list(codes(found)) == ["index"] and found.status == 1
        return set(found.findings[0].what.rpartition(": ")[2].rstrip(".").split(", "))

    assert tables_after("reader SET cursor = 1000") == {"unread"}
    assert tables_after("receipt SET state = 'acked'", "session SET worktree = 'elsewhere'", "tenure SET shown = 'Planck-2'",
                        "signal SET broadcast = 0", "mail SET workspace = 'w'") >= {"mail", "receipt", "session", "signal", "tenure"}  # fmt: skip
    clone.store.db().execute("DELETE FROM mail")
    assert "mail" in doctor.examine(clone.store).findings[0].what


def test_without_room_for_an_index_the_lines_are_looked_at_all_the_same(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk for temporary files is full: what that leaves out is said."""
    by_hand(clone, x=line_of(at=BEGINNING + 40_000_000_000_000) + b"\n~ no line\n")

    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(log_lines.IndexFill, "add", full)
    found = doctor.examine(clone.store)

    assert set(codes(found)) == {"future-line", "unreadable-line", "not-checked", "index"}
    said = {finding.code: finding.what for finding in found.findings}
    assert said["not-checked"].endswith("Cannot check references between records: database or disk is full.")
    assert found.checked["lines"] == 5 and found.status == 1


@pytest.mark.parametrize("folder", ["a", "z"])
def test_lines_that_stand_in_two_files_count_once(clone: Clone, folder: str) -> None:
    """One of them lies where no index reads; the other is found, whichever is read first."""
    sealed = history([line_of(), line_of("sig-cccccccccccc")], BEGINNING)
    changes: dict[str, bytes | TreeEntry | None] = {
        "projects/gm-x.jsonl": line_of() + b"\n",
        f"{folder}/gm-x.jsonl": line_of() + b"\n",
        "top.jsonl": line_of("sig-cccccccccccc") + b"\n",
        "seals/gm-x.jsonl": b"\n".join([*sealed, b""]),
    }
    assert clone.git.advance(ref.LOG_REF, clone.tip, Draft(changes, WHO, WHO, "By hand\n"), "test")
    found = doctor.examine(clone.store)

    assert (found.findings, found.checked["lines"]) == ([], 5)


def test_the_order_of_arrival_is_no_difference(clone: Clone) -> None:
    """Broadcasts that came one by one, read by some, and an index that reads all of them at once."""
    for number in range(6):
        id = f"sig-cccccccccc{number:02}"
        line = signal(clone, id, f"to all {number}", sender_identity=f"a:b:c{number % 3}")
        if number % 2:
            signal(clone, id, digest(line), "receipt")
    assert doctor.examine(clone.store).healthy


def test_lines_that_a_view_cannot_take_are_counted(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """They cost nobody else an answer, and somebody should know."""
    real = views.MAIL.add

    def add(db: sqlite3.Connection, rows: Sequence[LineRow]) -> None:
        if any(row.record.get("message") == "odd one" for row in rows):
            raise KeyError("odd")
        real(db, rows)

    monkeypatch.setattr(views.MAIL, "add", add)
    signal(clone, "sig-bbbbbbbbbbbb", "odd one")
    found = doctor.examine(clone.store)

    assert list(codes(found)) == ["skipped-lines"] and found.status == 1
    assert found.findings[0].what.startswith("1 line of the log")


@pytest.mark.parametrize(
    ("status", "code", "healthy"),
    [
        (
            Driver(driver=None, ours=False, attributes=False, program=None, runnable=False),
            "driver-missing",
            True,
        ),
        (Driver(driver=None, ours=False, program=None, runnable=False), "driver-missing", False),
        (Driver(ours=False, program=None, runnable=False), "driver-other", True),
        (Driver(runnable=False), "driver-program", False),
        (Driver(attributes=False), "driver-unused", True),
    ],
)
def test_the_merge_driver_is_looked_at(clone: Clone, status: Driver, code: str, healthy: bool) -> None:
    """Not installed is a note where somebody has the log's branch; half installed, or without its program, is a problem."""
    assert clone.git.swap(ref.BRANCH, None, clone.tip or "", "test")
    found = doctor.examine(clone.store, Installed(status))
    assert codes(found).keys() == {code, "local-branch"} and found.healthy is healthy


def test_a_healthy_clone_without_the_merge_driver_is_not_told_of_it(clone: Clone) -> None:
    """Sync does not need it, and without a local branch nobody merges the log by hand."""
    status = Driver(driver=None, ours=False, attributes=False, program=None, runnable=False)
    assert doctor.examine(clone.store, Installed(status)).findings == []


def test_many_findings_of_one_kind_are_counted(clone: Clone) -> None:
    """Twenty are shown."""
    by_hand(clone, x=b"".join(b"no line %d\n" % number for number in range(50)))
    found = [finding for finding in doctor.examine(clone.store).findings if finding.code == "unreadable-line"]
    assert len(found) == 20 and "30 more" in found[-1].what


def test_a_log_of_another_format_is_reported(clone: Clone) -> None:
    """With the version to install."""
    draft = Draft({"format": b'{"format":7}\n'}, WHO, WHO, "Newer\n")
    assert clone.git.advance(ref.LOG_REF, clone.tip, draft, "test")
    found = doctor.examine(clone.store)
    assert codes(found)["newer-format"] == f"{ref.LOG_REF}:format" and found.status == 1


def _classes() -> list[type[Check]]:
    modules = [
        importlib.import_module(each.name)
        for each in pkgutil.iter_modules(gitmem.doctor.__path__, "gitmem.doctor.")
    ]
    found = (each for module in modules for each in vars(module).values() if isinstance(each, type))
    return list(dict.fromkeys(each for each in found if issubclass(each, Check) and each is not Check))


def test_every_check_is_run_and_every_fix_has_its_place_in_the_order() -> None:
    """A class that no table names would find or fix nothing."""
    with_fix = [each for each in _classes() if "fix" in vars(each)]
    assert with_fix and set(with_fix) == set(doctor.FIXES)
    assert all(each.fixes for each in with_fix) and not any(
        each.fixes for each in set(_classes()) - set(with_fix)
    )
    started = {*doctor.CHECKS, *doctor.LogContent.OF_LINES}
    within = {
        log_ref.LogTip,
        log_ref.Objects,
        log_lines.RecordIds,
        log_lines.MemoryNodes,
    }
    assert set(_classes()) == started | within


def test_every_check_declares_the_codes_of_its_findings() -> None:
    """And none that it never reports; a fix is only for codes that some check reports."""
    declared = {code for each in _classes() for code in each.codes}
    reported = set()
    for each in {inspect.getmodule(each) for each in _classes()}:
        assert each is not None
        for node in ast.walk(ast.parse(inspect.getsource(each))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("problem", "note", "finding"):
                code = node.args[0]
                reported.add(
                    code.value if isinstance(code, ast.Constant) else getattr(each, ast.unparse(code))
                )
    assert reported - {"not-checked"} == declared
    assert declared >= doctor.FIXED_CODES


# Doctor on the memory: what leads to nodes that are not here, ids that say two things, circles of blocks.

MEMORY = ("unknown-id", "two-contents", "circle")


@pytest.fixture
def desk(repo: Path, commits: None) -> Desk:
    return Desk(repo, wu="WU-7")


def findings(desk: Desk) -> list[Finding]:
    return [each for each in doctor.examine(desk.store).findings if each.code in MEMORY]


def test_a_memory_that_is_as_it_should_be_has_no_findings(desk: Desk) -> None:
    one, other = desk.write("one"), desk.write("other")
    blocks(desk, one, other)
    desk.change(one, other, priority="P1")
    raw(desk.store, "node", id="mem-same", at=START)
    raw(desk.store, "node", id="mem-same", at=START + 1)

    assert findings(desk) == []
    assert doctor.examine(desk.store).healthy


@pytest.mark.usefixtures("commits")
def test_a_relation_to_a_node_that_is_not_here_is_noted(desk: Desk) -> None:
    """Kept, reported, and no reason to stop: it may come with the next sync."""
    id = desk.write("one")
    blocks(desk, "mem-zzzzzzzzzzzz", id)

    (found,) = findings(desk)

    assert (found.code, found.severity) == ("unknown-id", "note")
    assert found.command == "", "there is no remote to sync with"
    assert "mem-zzzzzzzzzzzz" in found.what
    assert "memory/" in found.where
    blocks(desk, "mem-zzzzzzzzzzzz", id, remove=True)
    assert findings(desk) == []


@pytest.mark.usefixtures("commits")
def test_a_patch_of_a_node_that_is_not_here_is_noted(desk: Desk) -> None:
    names = [f"mem-none{number}" for number in range(5)]
    raw(desk.store, "node", id="mem-here")
    raw(desk.store, "patch", id="patch-aaaa", node_ids=["mem-here", *names], archived=True)

    (found,) = findings(desk)

    assert found.what == (
        "This patch names mem-none0, mem-none1, mem-none2 and 2 more, missing from this log."
    )


@pytest.mark.usefixtures("commits")
def test_two_contents_of_one_id_are_a_problem(desk: Desk) -> None:
    raw(desk.store, "node", id="mem-aaaa", content="one")
    raw(desk.store, "node", id="mem-aaaa", content="other")

    (found,) = findings(desk)

    assert (found.severity, found.command) == ("problem", "gitmem show mem-aaaa")
    assert doctor.examine(desk.store).status == 1


@pytest.mark.usefixtures("commits")
def test_a_circle_of_open_blocks_is_noted_once_with_the_way_out(desk: Desk) -> None:
    one, other = sorted([desk.write("one"), desk.write("other")])
    blocks(desk, one, other)
    blocks(desk, other, one)

    (found,) = findings(desk)

    assert found.command == f"gitmem mem relate {one} blocks {other} --remove"
    assert f"{one} → {other} → {one}" in found.what


@pytest.mark.parametrize("way_out", ["closed", "archived", "deleted", "removed"])
def test_a_circle_that_is_open_nowhere_is_none(desk: Desk, way_out: str) -> None:
    one, other = desk.write("one"), desk.write("other")
    blocks(desk, one, other)
    blocks(desk, other, one)
    if way_out == "removed":
        blocks(desk, one, other, remove=True)
    else:
        desk.change(one, **{way_out: True})

    assert findings(desk) == []


# Doctor reports each kind of problem with roles once, as a note: nothing is lost by it.


def test_files_and_sessions_with_unknown_roles_are_reported_once_each(repo: Path) -> None:
    """R5: with the line, and however many there are."""
    store = open_store(repo, Clock())
    (repo / ".gitmem").mkdir()
    (repo / ".gitmem" / "roles.toml").write_text("[alias]\nlint = 'linter'\nspell = 'speller'\n")
    for name in ("Planck", "Curie"):
        lifecycle.start(store, CallerClaims(), name=name, role="auditor")
    found = {each.code: each for each in doctor.examine(store).findings}

    assert {each.severity for each in found.values()} == {"note"}
    assert found["roles-file"].what.startswith(".gitmem/roles.toml:2: alias lint: unknown role linter")
    assert found["roles-file"].what.endswith(" 1 more.")
    assert found["unknown-role"].what.endswith(
        "has the role auditor/general, which is not known here. 1 more."
    )
    assert found["unknown-role"].command == "gitmem role --check"


def test_roles_without_a_fault_are_no_finding(repo: Path) -> None:
    """Nor is a work tree without any file."""
    store = open_store(repo, Clock())
    lifecycle.start(store, CallerClaims(), name="Planck", role="code-reviewer")

    assert not {"roles-file", "unknown-role"} & {each.code for each in doctor.examine(store).findings}
