"""`doctor --fix` beside the log: what is derived or installed is put right, and what is not ours is left and said."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.clients.install import ClientStatus, HookStatus, ScopeStatus
from gitmem.doctor import doctor, wal_lines
from gitmem.doctor.doctor import Report
from gitmem.doctor.findings import Finding
from gitmem.index import index_file
from gitmem.log import ref
from gitmem.log.local_log import LocalLog
from tests.clones import Clone, Hub, git
from tests.doctor.test_doctor import Driver, Installed, signal


@pytest.fixture
def clone(hub: Hub) -> Clone:
    """A clone whose log has one signal."""
    found = hub.clone("a")
    signal(found, "sig-aaaaaaaaaaaa", "hello")
    found.store.db()
    return found


def only(found: Report) -> Finding:
    (finding,) = found.findings
    return finding


def hooks(*scopes: tuple[str, str, str], works: bool = True) -> HookStatus:
    """Hooks as `client`, `scope`, `state`."""
    status = HookStatus()
    status.program, status.program_works = "/bin/gitmem", works
    for client, scope, state in scopes:
        one = ClientStatus.__new__(ClientStatus)
        one.client = one.title = client
        one.found, one.pushed = None, True
        one.scopes = [ScopeStatus(scope, state)]
        one.scopes[0].files = [f"{client}.json"]
        status.clients.append(one)
    return status


def break_index(clone: Clone) -> None:
    where = Path(index_file.path(clone.store.repo, "test"))
    clone.store.close()
    clone.store.leave_index()
    where.write_bytes(b"no database" * 1000)


def folder_for_index(clone: Clone) -> None:
    where = Path(index_file.path(clone.store.repo, "test"))
    clone.store.close()
    clone.store.leave_index()
    for path in where.parent.glob("index-*"):
        path.unlink()
    where.mkdir()
    (where / "mine").touch()


def lines_gone(clone: Clone) -> None:
    clone.store.db().execute("DELETE FROM line")


@pytest.mark.parametrize("accident", [break_index, folder_for_index, lines_gone])
def test_the_index_is_built_anew(clone: Clone, accident: Callable[[Clone], None]) -> None:
    """Whatever became of it; a mere look does that for some."""
    accident(clone)
    found = doctor.fix(clone.store)
    assert found.healthy and all(finding.code == "index" for finding in found.findings)
    clone.store.leave_index()
    assert clone.store.db().execute("SELECT count(*) FROM line").fetchone() == (2,)
    assert not doctor.fix(clone.store).findings


def test_what_waits_is_committed(clone: Clone) -> None:
    """No committer has come."""
    clone.record("waits")
    (old,) = (file for file in (clone.path / ".git/gitmem/wal").iterdir() if file.stat().st_size)
    os.utime(old, (time.time() - 600, time.time() - 600))
    clone.store.commit_again = time.monotonic() + 60

    found = doctor.fix(clone.store)

    assert {each.code: each.state for each in found.findings}["wal-waits"] == "fixed"
    assert not old.exists() and "waits" in clone.texts()[-1] + clone.texts()[0]


@pytest.mark.parametrize(
    "driver",
    [
        Driver(driver=None, ours=False, program=None, runnable=False),
        Driver(runnable=False),
        Driver(attributes=False),
    ],
)
def test_a_merge_driver_that_is_there_in_half_is_installed(clone: Clone, driver: Driver) -> None:
    installed = Installed(driver)
    found = doctor.fix(clone.store, installed)
    assert only(found).state == "fixed" and ".git/config" in only(found).did
    assert installed.asked == ["driver"]


@pytest.mark.parametrize(
    "driver",
    [
        Driver(driver=None, ours=False, attributes=False, program=None, runnable=False),
        Driver(ours=False, program=None, runnable=False),
    ],
)
def test_a_merge_driver_that_nobody_installed_or_another_is_left(clone: Clone, driver: Driver) -> None:
    installed = Installed(driver)
    assert clone.git.swap(ref.BRANCH, None, clone.tip or "", "test")
    found = doctor.fix(clone.store, installed)
    assert {each.state for each in found.findings} == {"left"} and len(found.findings) == 2
    assert installed.asked == [] and found.status == 0


def test_what_could_not_be_mended_says_why(clone: Clone) -> None:
    """And stops nothing else."""
    installed = Installed(Driver(runnable=False), works=False)
    clone.store.db().execute("DELETE FROM line")
    found = doctor.fix(clone.store, installed)
    states = {finding.code: (finding.state, finding.did) for finding in found.findings}
    assert states["driver-program"] == ("needs-you", "It is locked. Nothing was changed.")
    assert states["index"][0] == "fixed" and found.status == 1
    assert found.next == ["gitmem doctor --fix"]


def test_hooks_are_installed_again_where_they_were(clone: Clone) -> None:
    """Old and incomplete ones; a file that can't be read is left to the user, and where there were none there are none."""
    status = hooks(
        ("claude-code", "user", "outdated"),
        ("cursor", "project", "incomplete"),
        ("gemini", "project", "installed"),
        ("codex", "project", "broken"),
    )
    status.pre_push = status.pre_commit = "outdated"
    installed = Installed(hooks=status)

    found = doctor.fix(clone.store, installed)

    assert installed.asked == ["claude-code user", "cursor project", "pre-push", "pre-commit"]
    states = {finding.where: finding.state for finding in found.findings}
    assert states == {
        "claude-code.json": "fixed",
        "cursor.json": "fixed",
        "pre-push": "fixed",
        "pre-commit": "fixed",
        "codex.json": "needs-you",
    }
    assert found.next == ["gitmem setup --client codex --scope project"]


def test_hooks_whose_program_is_gone_are_all_installed_again(clone: Clone) -> None:
    installed = Installed(
        hooks=hooks(("claude-code", "user", "installed"), ("gemini", "project", "installed"), works=False)
    )
    found = doctor.fix(clone.store, installed)
    assert only(found).state == "fixed" and installed.asked == ["claude-code user", "gemini project"]
    assert doctor.fix(clone.store, Installed(hooks=hooks(works=False))).findings == []


def test_without_anything_to_mend_nothing_is_touched(clone: Clone) -> None:
    """No file, no ref, and one look."""
    before = {path: path.stat().st_mtime_ns for path in (clone.path / ".git").rglob("*") if path.is_file()}
    found = doctor.fix(clone.store)
    assert not found.findings and found.next == []
    after = {path: path.stat().st_mtime_ns for path in (clone.path / ".git").rglob("*") if path.is_file()}
    assert before.items() <= after.items()


def test_what_is_someone_elses_to_mend_is_said_with_the_command(clone: Clone) -> None:
    """An answer to a signal that is not here."""
    clone.exchange()
    signal(clone, "sig-cccccccccccc", "to what?", reply_to="sig-zzzzzzzzzzzz", answers_digest="0" * 64)
    finding = only(doctor.fix(clone.store))
    assert (finding.code, finding.state, finding.command) == ("unknown-id", "left", "gitmem sync")


def test_a_clone_without_a_log_gets_none(hub: Hub) -> None:
    """To mend is not to start."""
    clone = hub.clone("b")
    found = doctor.fix(clone.store)
    assert (only(found).code, only(found).state, found.status) == ("no-log", "left", 0)
    assert not clone.git.refs("refs/gitmem/")


def test_a_damaged_branch_of_the_users_does_not_end_the_look(clone: Clone) -> None:
    """It is said what could not be looked at, and the rest is mended."""
    (clone.path / ".git/refs/heads/gitmem").write_bytes(b"")
    clone.store.db().execute("DELETE FROM line")
    found = doctor.fix(clone.store)
    states = {finding.code: finding.state for finding in found.findings}
    assert states["not-checked"] == "needs-you" and states["index"] == "fixed" and found.status == 1


def test_what_stops_several_checks_is_said_once(clone: Clone) -> None:
    (clone.path / ".git/refs/gitmem/log").write_bytes(b"garbage")
    assert [each.code for each in doctor.examine(clone.store).findings].count("not-checked") == 1


def test_what_could_not_be_read_is_said_in_words(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """An object that is missing where no check expects it is named, without the name of an exception."""

    def missing(*_: object) -> None:
        raise KeyError("a" * 40)

    monkeypatch.setattr(doctor.clone_files.Settings, "check", missing)
    (said,) = [each.what for each in doctor.examine(clone.store).findings if each.code == "not-checked"]
    assert said == f"Some checks could not run: cannot read object {'a' * 40}."


def test_a_shallow_history_of_lines_is_no_reason_to_lose_any(clone: Clone) -> None:
    """A log that was replaced by one without history, and with its lines, is as it should be."""
    tree = clone.tree
    made = git("commit-tree", tree, "-p", git("rev-list", "--max-parents=0", clone.tip, cwd=clone.path).strip(), "-m", "x",
               cwd=clone.path).strip()  # fmt: skip
    git("update-ref", "refs/gitmem/log", made, cwd=clone.path)
    assert doctor.fix(clone.store).findings == [] and clone.tip == made


def test_a_finding_tells_whether_it_is_mended(clone: Clone) -> None:
    """Before anybody asks for it: with the command."""
    clone.store.db().execute("DELETE FROM line")
    finding = only(doctor.examine(clone.store))
    assert finding.fixable and finding.state == "found" and finding.command == "gitmem doctor --fix"
    fields = ["code", "severity", "what", "where", "fix", "command", "fixable", "state", "did"]
    assert list(finding.as_json()) == fields


def test_what_is_acknowledged_meanwhile_is_not_missing(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer commits, and another spools, between two of the looks."""
    real = wal_lines.ledger.acknowledged

    def meanwhile(log: LocalLog) -> object:
        monkeypatch.setattr(wal_lines.ledger, "acknowledged", real)
        clone.add("spooled", deferred=True)
        found = real(log)
        clone.add("committed")
        return found

    monkeypatch.setattr(wal_lines.ledger, "acknowledged", meanwhile)
    found = doctor.examine(clone.store)
    assert {"lost-lines", "gone-lines"}.isdisjoint(finding.code for finding in found.findings)
