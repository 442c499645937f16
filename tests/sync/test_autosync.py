"""Autosync: when a sync that nobody asked for is due, who makes it, and what is kept of one that failed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gitmem import commit_process
from gitmem.commit_process import IF_DUE, LATER, NOW
from gitmem.errors import RemoteError, UsageError
from gitmem.log import ref
from gitmem.repo import Repo
from gitmem.sync import autosync, consent, init, sync_remotes
from gitmem.sync.sync_remotes import SyncResult

from ..clones import Hub, git

START = 1_795_000_000.0


class Clone:
    """The folder of a clone that syncs by itself, a clock that only waiting moves, and a remote that answers at will."""

    def __init__(self, folder: Path) -> None:
        self.repo = Repo(str(folder), str(folder), None)
        self.state = folder / "gitmem"
        self.state.mkdir(parents=True)
        self.now = START
        self.step = 0.0  # seconds that a pause takes at least
        self.syncs: list[float] = []
        self.answer: Callable[[], None] = lambda: None
        self.while_waiting: Callable[[], None] = lambda: None
        self.every("30s")

    def every(self, value: str | None) -> None:
        text = f'[gitmem]\n\tautosync = "{value}"\n' if value is not None else ""
        (self.state.parent / "config").write_text(f"[core]\n\tbare = true\n{text}")

    def wants(self, how: int) -> bool:
        return autosync.wants(self.repo, how, self.now)

    def run(self) -> bool:
        """The process that a command has started."""
        return sync_remotes.run_autosync(
            self.repo, self._sync, now=lambda: self.now, pause=self._pause, jitter=lambda: 1.0
        )

    def _pause(self, seconds: float) -> None:
        self.while_waiting()
        self.now += max(seconds, self.step)

    def _sync(self) -> SyncResult:
        self.syncs.append(self.now)
        self.answer()
        autosync.record_success(self.repo, self.now, 0, 1.0)
        return SyncResult(remotes=[], next=[])

    @property
    def due_in(self) -> float:
        return round(autosync.due(self.repo, 30.0, self.now) - self.now, 3)


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path / "clone")


def offline() -> None:
    raise RemoteError("The remote could not be reached.", code="offline")


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("30s", 30), ("5m", 300), ("1h", 3600), ("45", 45), (" 2M ", 120)]
    + [
        (each, None) for each in ("off", "true", "", "s", "0", "0.5s", "-3s", "2d", "nan", "inf", "30 apples")
    ],
)
def test_the_setting_is_an_interval_between_a_second_and_a_day(
    clone: Clone, value: str, seconds: float | None
) -> None:
    clone.every(value)

    assert autosync.interval(clone.repo) == seconds


def test_the_last_of_several_settings_counts_and_none_is_off(clone: Clone) -> None:
    with (clone.state.parent / "config").open("a") as file:
        file.write("[GitMem]\n\tAutoSync = 7s ; mine\n")
    assert autosync.interval(clone.repo) == 7

    clone.every(None)
    assert autosync.interval(clone.repo) is None
    assert autosync.normalize_interval("90") == "90s"
    assert autosync.normalize_interval("Off") is None
    with pytest.raises(UsageError):
        autosync.normalize_interval("often")


def test_where_it_is_off_nothing_is_written_and_nothing_started(clone: Clone) -> None:
    clone.every(None)

    assert [clone.wants(how) for how in (IF_DUE, LATER, NOW)] == [False, False, False]
    assert [*clone.state.iterdir()] == []


@pytest.mark.parametrize(
    "field",
    [
        '"intent":"PROPOSE"',
        '"intent":"AGREE"',
        '"intent":"REJECT"',
        '"intent":"COUNTER"',
        '"requires_ack":true',
    ],
)
def test_what_others_wait_for_does_not_wait(field: str) -> None:
    """A text that only quotes one does, and so does anything that is no signal."""
    head = b'{"at":"2026-11-21T20:00:00.123456Z",'
    signal = head + b'"kind":"signal",' + field.encode() + b"}"
    quoted = head + b'"kind":"signal","message":"' + field.replace('"', '\\"').encode() + b'"}'
    node = head + b'"kind":"node",' + field.encode() + b"}"

    assert commit_process.urgency([("memory", node), ("signals", signal)]) == NOW
    assert commit_process.urgency([("memory", node), ("signals", quoted)]) == LATER


def test_one_process_is_started_however_many_write(clone: Clone) -> None:
    """Nobody else is while it may still be on its way, and nobody while it waits or syncs."""
    assert clone.wants(LATER)
    assert not clone.wants(LATER)
    assert not clone.wants(IF_DUE)

    held = autosync.lock(clone.repo)
    assert held.take()
    clone.now += 60
    assert not clone.wants(LATER)
    held.release()
    clone.now += 60
    assert clone.wants(LATER)  # the one that was started has died


def test_a_look_starts_one_only_when_it_is_due(clone: Clone) -> None:
    assert clone.wants(IF_DUE)
    clone.run()

    assert not clone.wants(IF_DUE)
    clone.now += 30
    assert clone.wants(IF_DUE)


def test_a_write_is_sent_when_the_interval_is_over_without_another_command(clone: Clone) -> None:
    clone.wants(LATER)
    clone.run()
    clone.now += 1
    assert clone.wants(LATER)

    assert not clone.run()
    assert [at - START for at in clone.syncs] == [0, pytest.approx(30, abs=0.2)]


def test_a_proposal_ends_the_wait_of_the_process_that_is_there(clone: Clone) -> None:
    """Or starts one, whenever the next sync is due."""
    clone.wants(LATER)
    clone.run()
    clone.wants(LATER)

    def propose() -> None:
        if clone.now - START >= 9:
            assert not clone.wants(NOW)

    clone.while_waiting = propose
    clone.run()
    assert clone.syncs[-1] - START == pytest.approx(9, abs=0.2)
    assert clone.wants(NOW)


def test_what_is_written_while_a_sync_runs_has_one_more_started(clone: Clone) -> None:
    """It may have come after what was sent had been gathered. The mark of before does not count."""
    clone.wants(LATER)
    clone.answer = lambda: (clone.wants(LATER), None)[1]
    assert clone.run()

    clone.answer = lambda: None
    assert not clone.run()


def test_a_second_process_leaves_it_to_the_first(clone: Clone) -> None:
    clone.wants(NOW)
    held = autosync.lock(clone.repo)
    assert held.take()

    assert not clone.run()
    assert clone.syncs == []


@pytest.mark.parametrize("what", ["off", "gone"])
def test_a_process_that_waits_ends_where_it_is_switched_off_or_the_repository_is_gone(
    clone: Clone, what: str
) -> None:
    clone.wants(LATER)
    clone.run()
    clone.wants(LATER)
    stop = {"off": lambda: clone.every(None), "gone": lambda: shutil.rmtree(clone.state.parent)}[what]
    clone.while_waiting = lambda: stop() if clone.now - START > 5 and clone.state.parent.exists() else None

    assert not clone.run()
    assert len(clone.syncs) == 1
    assert clone.state.parent.exists() == (what == "off")


def test_a_repository_that_goes_while_a_sync_runs_is_not_made_again(clone: Clone) -> None:
    def remove() -> None:
        shutil.rmtree(clone.state.parent)
        offline()

    clone.answer = remove
    clone.wants(NOW)

    assert not clone.run()
    assert not clone.state.parent.exists()


def test_where_nothing_can_be_noted_nothing_is_started(clone: Clone) -> None:
    """A sandbox, another user's repository: no sync there, and no noise."""
    (clone.state / "autosync").write_text("in the way of the folder")

    assert [clone.wants(how) for how in (IF_DUE, LATER, NOW)] == [False, False, False]
    assert not clone.run()
    assert clone.syncs == []


def test_a_failure_is_kept_until_a_sync_is_good(clone: Clone) -> None:
    clone.answer = offline
    clone.wants(NOW)
    clone.run()
    clone.wants(NOW)
    clone.run()
    found = autosync.last_failure(clone.repo)
    assert found is not None
    assert (found.times, found.code, found.message) == (2, "offline", "The remote could not be reached.")
    assert found.at.startswith("2026-11-18T")

    clone.answer = lambda: None
    clone.wants(NOW)
    clone.run()
    assert autosync.last_failure(clone.repo) is None


def test_a_bug_or_a_remote_that_hangs_is_seen_too(clone: Clone) -> None:
    """Nobody sees what the process would print."""
    for error, code in ((ZeroDivisionError("division"), "unexpected"), (TimeoutError(), "timeout")):

        def fail(error: Exception = error) -> None:
            raise error

        clone.answer = fail
        clone.wants(NOW)
        clone.run()
        found = autosync.last_failure(clone.repo)
        assert found is not None
        assert found.code == code


def test_a_failure_where_it_is_off_leaves_nothing_that_is_due(clone: Clone) -> None:
    clone.every(None)
    autosync.record_failure(clone.repo, clone.now, "2026-11-18T00:00:00.000000Z", "refused", "No", 1.0)

    assert autosync.last_failure(clone.repo) is not None
    assert [path.name for path in (clone.state / "autosync").iterdir()] == ["failed"]
    autosync.record_success(clone.repo, clone.now, 0, 1.0)
    assert autosync.last_failure(clone.repo) is None


def test_no_remote_is_nothing_to_tell_and_not_looked_for_all_the_time(clone: Clone) -> None:
    def none() -> None:
        raise UsageError("This repository has no remote.", code="no-remote")

    clone.answer = none
    clone.wants(NOW)
    clone.run()

    assert autosync.last_failure(clone.repo) is None
    assert clone.due_in == autosync.BACKOFF_SECONDS_MAX


def test_offline_for_hours_there_is_no_pile_of_processes_and_no_flood_of_tries(clone: Clone) -> None:
    """A write every ten seconds for three hours: at most one process at a time, and a try every four minutes or so."""
    clone.step = 5.0
    clone.answer = offline
    end = START + 3 * 3600
    started = 0
    while clone.now < end:
        if clone.wants(LATER):
            started += 1
            while clone.run():
                started += 1
        clone.now += 10
    pauses = [after - before for before, after in zip(clone.syncs, clone.syncs[1:], strict=False)]

    assert 3 * 3600 / 320 < len(clone.syncs) < 3 * 3600 / 220
    assert started <= len(clone.syncs) + 5
    assert max(pauses) <= autosync.BACKOFF_SECONDS_MAX + autosync.WAIT_MAX_FAILED_SECONDS


def test_lost_races_stretch_the_interval_and_quiet_shrinks_it_again(clone: Clone) -> None:
    clone.wants(LATER)
    seen = []
    for rejections in (0, 1, 3, 1, 1, 1, 0, 0, 0, 0, 0):
        autosync.record_success(clone.repo, clone.now, rejections, 1.0)
        seen.append(clone.due_in)

    assert seen == [30, 60, 120, 240, 480, 480, 240, 120, 60, 30, 30]


def test_a_clock_that_was_ahead_holds_nothing_up(clone: Clone) -> None:
    """The file of the next sync is dated next year."""
    clone.wants(LATER)
    clone.run()
    clone.now -= 365 * 86400

    assert clone.wants(IF_DUE)
    clone.run()
    assert len(clone.syncs) == 2


def test_a_sync_by_hand_counts_as_one(clone: Clone) -> None:
    """What was to be sent has been: the process that waits has nothing to do."""
    clone.wants(LATER)
    clone.run()
    clone.wants(LATER)

    def by_hand() -> None:
        if clone.now - START > 5:
            clone.while_waiting = lambda: None
            autosync.record_start(clone.repo, clone.now)
            autosync.record_success(clone.repo, clone.now, 0, 1.0)

    clone.while_waiting = by_hand
    clone.run()
    assert len(clone.syncs) == 1
    assert clone.due_in > 29


def test_switched_anew_it_begins_at_once_and_off_it_leaves_nothing(clone: Clone) -> None:
    clone.answer = offline
    clone.wants(NOW)
    clone.run()

    autosync.switch(clone.repo, True)
    assert autosync.last_failure(clone.repo) is None
    assert clone.wants(IF_DUE)
    clone.run()
    autosync.switch(clone.repo, False)
    assert [path.name for path in (clone.state / "autosync").iterdir()] == ["lock"]


# Init: a clone gets its log, once, and says where the log is published.


def test_a_repository_without_a_remote_gets_a_log_of_its_own(repo: Path, hub: Hub) -> None:
    """The second call changes nothing."""
    clone = hub.open(repo)
    first = init.init(clone.store)
    assert (first.state, first.publish, first.remote) == ("started", "branch", None)
    refs = clone.git.refs("refs/")
    second = init.init(clone.store)
    assert (second.state, second.tip) == ("present", first.tip)
    assert clone.git.refs("refs/") == refs


def test_the_remotes_log_is_brought_and_nothing_is_pushed(hub: Hub) -> None:
    """A new clone adopts it; own lines stay here until a sync."""
    a, b, c = hub.clone("a"), hub.clone("b"), hub.clone("c")
    a.add("one")
    a.exchange()
    found = init.init(b.store)
    assert (found.state, found.tip) == ("adopted", hub.tip())
    assert found.remote is not None and found.remote.received == 1
    c.add("two")
    before = hub.tip()
    found = init.init(c.store)
    assert found.state == "present"
    assert c.texts() == ["one", "two"] and hub.tip() == before
    refs = c.git.refs("refs/")
    init.init(c.store)
    assert c.git.refs("refs/") == refs


def test_a_remote_that_is_away_is_only_a_remark(hub: Hub) -> None:
    """The log is started all the same."""
    a = hub.clone("a")
    git("remote", "set-url", "origin", "/nowhere.git", cwd=a.path)
    found = init.init(a.store)
    assert found.state == "started"
    assert any("Cannot reach the remote" in remark for remark in found.remarks)


def test_what_git_fetched_before_is_adopted_offline(hub: Hub) -> None:
    """`refs/remotes/origin/gitmem` of an ordinary clone is the log."""
    a = hub.clone("a")
    a.add("one")
    a.exchange()
    b = hub.clone("b")
    git("remote", "set-url", "--push", "origin", "/nowhere.git", cwd=b.path)
    found = init.init(b.store)
    assert (found.state, found.tip) == ("adopted", hub.tip())


def test_where_the_log_is_published_is_a_field_of_the_log(hub: Hub) -> None:
    """All clones follow, each choice is one commit, and the same choice again is none."""
    a, b = hub.clone("a"), hub.clone("b")
    assert init.init(a.store, publish="hidden").publish == "hidden"
    a.add("one")
    sync_remotes.sync(a.store)
    assert hub.tip(ref.BRANCH) is None and hub.tip(ref.LOG_REF) == a.tip
    tip = a.tip
    assert init.init(a.store, publish="hidden").tip == tip
    b.add("two")
    sync_remotes.sync(b.store)
    assert hub.tip(ref.BRANCH) is None
    found = init.init(b.store, publish="branch")
    assert found.publish == "branch" and "every clone follows" in found.remarks[-1]
    sync_remotes.sync(b.store)
    sync_remotes.sync(a.store)
    assert a.tip == b.tip == hub.tip(ref.BRANCH)
    assert init.init(a.store).publish == "branch"
    with pytest.raises(UsageError):
        init.init(a.store, publish="everywhere")


def test_a_foreign_log_is_refused(hub: Hub, tmp_path: Path) -> None:
    """Before anything is made of it."""
    a = hub.clone("a")
    a.add("one")
    a.exchange()
    path = tmp_path / "foreign"
    git("init", "--quiet", str(path), cwd=tmp_path)
    git("commit", "--quiet", "--allow-empty", "-m", "Another first", cwd=path)
    git("remote", "add", "origin", str(hub.path), cwd=path)
    other = hub.open(path)
    with pytest.raises(UsageError) as refused:
        init.init(other.store)
    assert refused.value.code == "foreign-log"


def test_uninstall_leaves_the_log_and_names_the_commands_that_delete_it(hub: Hub) -> None:
    """They are not in `next`, and they do what they say."""
    a = hub.clone("a")
    a.add("one")
    before = a.git.refs("refs/")
    found = init.uninstall(a.store)
    assert a.git.refs("refs/") == before
    assert "no remote is known to have" in found.remarks[0]
    assert len(found.remove) == 2
    a.exchange()
    assert not any("no remote is known" in each for each in init.uninstall(a.store).remarks)
    for line in found.remove:
        subprocess.run(line, shell=True, check=True, cwd="/")
    assert not a.git.refs("refs/gitmem/")
    assert not (a.path / ".git/gitmem").exists()


# What an answer says of the agreement to publish.

URL = "https://example.org/a.git"


@pytest.mark.parametrize("remote", ["origin", "backup"])
def test_an_agent_is_told_the_command_for_this_remote(remote: str) -> None:
    """Where the plain command would publish elsewhere the remote is named, and no next command publishes."""
    proposed = "gitmem sync --publish" if remote == "origin" else f"gitmem sync --publish {remote}"
    each = SimpleNamespace(state="consent-needed", name=remote, message="It lacks 3 records.")
    synced: Any = SimpleNamespace(remotes=[each], next=[proposed, "gitmem log"])
    sync_remotes.reword_for_agent(synced)
    assert each.message.endswith(f"after a yes: `{proposed}`.")
    assert synced.next == ["gitmem log"]


@pytest.mark.parametrize(
    ("state", "told"), [("offline", "when it is reachable"), ("rejected", "the next successful sync")]
)
def test_an_agreement_says_when_it_takes_effect(tmp_path: Path, state: str, told: str) -> None:
    """A remote that is away is sent to once it is reachable, one that refused at the next sync; without consent nothing is said."""
    each: Any = SimpleNamespace(state=state, url=URL, message="")
    store: Any = SimpleNamespace(repo=SimpleNamespace(state=str(tmp_path)))
    sync_remotes.report_consent(store, [each])
    assert each.message == ""
    consent.give_consent(store.repo, URL, consent.BY_SETUP, "2026-11-22T12:00:00.000000Z")
    sync_remotes.report_consent(store, [each])
    assert f"You have agreed to publish to {URL}" in each.message and told in each.message
