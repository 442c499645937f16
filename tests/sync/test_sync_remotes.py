"""The operation sync: which remotes, what it answers, and that the index has what came."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from gitmem.agents.caller import CallerClaims
from gitmem.api.log import Log
from gitmem.doctor import doctor
from gitmem.errors import UsageError
from gitmem.log import write_ahead
from gitmem.log.write_ahead import encode_record
from gitmem.sync import autosync, sync_remotes
from gitmem.sync.remote import choose
from tests.clones import Clone, Hub, git
from tests.recorded_network import RecordedNetwork
from tests.sandbox import Agent

KNOWN = "SELECT count(*) FROM line WHERE kind <> 'attestation'"


def known_lines(clone: Clone) -> int:
    (count,) = clone.store.db().execute(KNOWN).fetchone()
    return int(count)


def test_the_answer_has_the_fields_of_its_shape(hub: Hub) -> None:
    """Also in the JSON form, and `next` is last."""
    a = hub.clone("a")
    a.add("one")
    found = sync_remotes.sync(a.store)
    (remote,) = found.remotes
    assert list(found.as_json()) == ["remotes", "autosync", "message", "next"]
    assert list(remote.as_json()) == [
        "name",
        "state",
        "received",
        "sent",
        "safe",
        "outbox",
        "attempts",
        "rejections",
        "tip",
        "left_out",
        "message",
        "url",
        "unpublished",
        "kinds",
        "records",
    ]
    assert (remote.name, remote.state, remote.sent, remote.attempts, remote.tip) == (
        "origin",
        "synced",
        1,
        1,
        hub.tip(),
    )
    assert found.status == 0


def test_the_index_has_what_came(hub: Hub) -> None:
    """Without another command."""
    a, b = hub.clone("a"), hub.clone("b")
    a.add("one")
    sync_remotes.sync(a.store)
    b.add("two")
    found = sync_remotes.sync(b.store)
    assert found.next == []  # whose mail came, the notice of each command tells
    assert b.store.index.tip == b.tip
    assert known_lines(b) == 2


def test_of_a_sync_that_brings_much_another_process_fills_the_index(hub: Hub) -> None:
    """One that is started for it, once; nothing else is put off. Where nobody can start one, or a sync brings more, it waits."""
    a, b = hub.clone("a"), hub.clone("b")
    a.add("one")
    sync_remotes.sync(a.store)
    before = known_lines(b)
    started: list[int] = []
    b.store.starts_upkeep = lambda: started.append(int(b.store.index.db.execute(KNOWN).fetchone()[0]))
    b.store.left_bytes = range(1, 10**7)
    b.add("two")
    (remote,) = sync_remotes.sync(b.store).remotes
    assert (remote.received, remote.sent, remote.state) == (1, 1, "synced")
    assert started == [before + 1], "what this clone wrote itself is there"
    assert known_lines(b) == before + 2, "the next look catches up, if that process has not"

    for least, most, starts in ((1, 2, b.store.starts_upkeep), (1, 10**9, None)):
        b.store.left_bytes = range(least, most)
        b.store.starts_upkeep = starts
        a.add("more")
        sync_remotes.sync(a.store)
        sync_remotes.sync(b.store)
        assert b.store.index.tip == b.tip
    assert len(started) == 1


def test_without_a_remote_it_is_a_usage_error(repo: Path, hub: Hub) -> None:
    """It says how to add one; nothing is touched."""
    clone = hub.open(repo)
    for all_remotes in (False, True):
        with pytest.raises(UsageError) as refused:
            sync_remotes.sync(clone.store, all=all_remotes)
        assert refused.value.code == "no-remote"
        assert "git remote add" in refused.value.hint
    assert not clone.git.refs("refs/gitmem/")


def test_the_usual_remote_is_the_upstream_then_origin_then_the_only_one(hub: Hub, repo: Path) -> None:
    """History follows it, wherever it stands in the command."""
    a = hub.clone("a")
    assert choose(a.store, (), all=False) == (["origin"], True)
    git("remote", "add", "fork", str(hub.path), cwd=a.path)
    assert choose(a.store, (), all=False) == (["origin"], True)
    assert choose(a.store, ("fork", "origin"), all=False) == (["origin", "fork"], True)
    assert choose(a.store, ("fork",), all=False) == (["fork"], False)
    assert choose(a.store, (), all=True) == (["origin", "fork"], True)
    git("config", "branch.main.remote", "fork", cwd=a.path)
    assert choose(a.store, (), all=True) == (["fork", "origin"], True)
    lone = hub.open(repo)
    git("remote", "add", "elsewhere", str(hub.path), cwd=repo)
    assert choose(lone.store, (), all=False) == (["elsewhere"], True)
    git("remote", "add", "other", str(hub.path), cwd=repo)
    with pytest.raises(UsageError) as refused:
        choose(lone.store, (), all=False)
    assert refused.value.code == "which-remote"
    assert choose(lone.store, ("other",), all=False) == (["other"], True)


def test_a_remote_that_fails_makes_the_status_5_and_says_what_to_run(hub: Hub) -> None:
    """The others are synced all the same."""
    a = hub.clone("a")
    git("remote", "add", "away", "/nowhere.git", cwd=a.path)
    a.add("one")
    found = sync_remotes.sync(a.store, all=True)
    assert [remote.state for remote in found.remotes] == ["synced", "offline"]
    assert found.status == 5
    assert found.next == ["gitmem sync away"]
    assert hub.texts() == ["one"]


def test_an_empty_remote_gets_nothing_and_the_answer_says_what_to_push(hub: Hub, tmp_path: Path) -> None:
    """The next command is git's own."""
    git("init", "--quiet", "--bare", "empty.git", cwd=tmp_path)
    a = hub.clone("a")
    git("remote", "set-url", "origin", str(tmp_path / "empty.git"), cwd=a.path)
    found = sync_remotes.sync(a.store, publish=True)
    assert (found.status, found.next) == (2, ["git push origin HEAD"])
    kept = autosync.last_failure(a.store.repo)
    assert kept is not None
    assert (kept.code, kept.message) == ("empty", found.remotes[0].message)


def test_a_refusal_is_kept_until_a_sync_is_good_also_without_autosync(hub: Hub) -> None:
    """Once a sync, whoever made it. A good one says no more of it, and one with another remote leaves it."""
    a = hub.clone("a")
    a.add("one")
    hook = hub.path / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    git("remote", "add", "away", "/nowhere.git", cwd=a.path)
    for times in (1, 2):
        found = sync_remotes.sync(a.store)
        kept = autosync.last_failure(a.store.repo)
        assert kept is not None
        assert (found.remotes[0].state, kept.code, kept.times) == ("refused", "refused", times)
    assert found.autosync is not None
    sync_remotes.sync(a.store, ["away"])
    assert autosync.last_failure(a.store.repo) is not None
    assert autosync.last_read(a.store.repo) is None

    hook.unlink()
    assert sync_remotes.sync(a.store).autosync is None
    assert autosync.last_failure(a.store.repo) is None
    assert autosync.last_read(a.store.repo) is not None


def test_a_sync_records_when_it_began_to_read(hub: Hub) -> None:
    """One that finds nothing new, too: what ended since then may have been renewed elsewhere."""
    a = hub.clone("a")
    a.add("one")
    before = a.store.now() / 1e6
    sync_remotes.sync(a.store)
    first = autosync.last_read(a.store.repo)
    assert first is not None
    assert before <= first <= a.store.now() / 1e6
    looked = sync_remotes.LastSync("origin", "", "", "", "", {})
    sync_remotes.noop_result(a.store.repo, looked, first + 60, 0.0)
    assert autosync.last_read(a.store.repo) == first + 60


def test_a_remote_with_another_hash_is_not_tried_again(hub: Hub, tmp_path: Path) -> None:
    """It would be told as offline for ever."""
    git("init", "--quiet", "--object-format=sha256", "other", cwd=tmp_path)
    other = tmp_path / "other"
    git(
        "-c", "user.name=o", "-c", "user.email=o@example.org", "commit", "--allow-empty", "-m", "x", cwd=other
    )
    git("branch", "gitmem", cwd=other)
    a = hub.clone("a")
    git("remote", "set-url", "origin", str(other), cwd=a.path)
    found = sync_remotes.sync(a.store)
    assert (found.remotes[0].state, found.next) == ("refused", ["gitmem doctor"])

    git("remote", "remove", "origin", cwd=a.path)  # and then there is nobody to tell of
    with pytest.raises(UsageError):
        sync_remotes.sync(a.store)
    assert autosync.last_failure(a.store.repo) is None


def test_a_password_in_a_url_is_never_shown(hub: Hub) -> None:
    """Neither in the answer nor in a ref."""
    a = hub.clone("a")
    found = sync_remotes.sync(a.store, ["http://user:hunter2@127.0.0.1:9/x.git"])
    assert found.remotes[0].state == "offline"
    assert "hunter2" not in repr(found.as_json()) + repr(a.git.refs("refs/"))


def test_a_linked_worktree_syncs_the_same_log(hub: Hub) -> None:
    """All worktrees of a clone share the ref."""
    a = hub.clone("a")
    a.add("one")
    git("worktree", "add", "--quiet", "-b", "topic", "../tree", cwd=a.path)
    linked = hub.open(hub.root / "tree")
    assert sync_remotes.sync(linked.store).remotes[0].sent == 1
    assert linked.tip == a.tip == hub.tip()


def test_a_sync_without_lines_that_wait_is_no_success(hub: Hub) -> None:
    """Another process has the log's lock: what waits was not sent, and the next sync sends it."""
    a = hub.clone("a")
    a.log.lock_seconds = 0.05
    a.add("one")
    sync_remotes.sync(a.store, publish=True)
    a.record("two")
    lock = a.log.lock()
    with lock:
        assert lock.take()
        found = sync_remotes.sync(a.store)
    (remote,) = found.remotes
    assert (found.status, remote.state, remote.safe) == (4, "incomplete", False)
    assert "not sent" in remote.message and found.next[0] == "gitmem doctor"
    assert autosync.last_failure(a.store.repo) is not None
    assert sync_remotes.sync(a.store).status == 0


def test_a_sync_names_damaged_lines(hub: Hub) -> None:
    """What the disk damaged is in no commit: no sync may say that all is up to date, also if nothing else is new."""
    a = hub.clone("a")
    a.add("one")
    sync_remotes.sync(a.store, publish=True)
    assert sync_remotes.sync(a.store).status == 0
    wal = a.log.wal.folder
    looked = sync_remotes.check_noop(a.store.repo, list, a.store.now() / 1e6)
    assert looked is not None and looked.unchanged
    name = write_ahead.name_of(1, deferred=False)
    Path(wal, name + write_ahead.DAMAGED).write_bytes(encode_record(b"no entry\n"))
    assert sync_remotes.check_noop(a.store.repo, list, a.store.now() / 1e6) is None
    Path(wal, name + write_ahead.DAMAGED).rename(Path(wal, name))
    for _ in range(2):
        found = sync_remotes.sync(a.store)
        (remote,) = found.remotes
        assert (found.status, remote.state, remote.safe) == (4, "incomplete", False)
        assert name + write_ahead.DAMAGED in remote.message and found.next[0] == "gitmem doctor --fix"
        assert "Run: gitmem doctor --fix" in remote.message
    doctor.fix(a.store)
    assert sync_remotes.sync(a.store).status == 0


def test_other_threads_record_while_a_sync_of_the_library_waits_for_the_network(hub: Hub) -> None:
    """Invariant 8: at each step on the network; what they recorded is seen afterwards, and what came, too."""
    here, there = hub.clone("here"), hub.clone("there")
    there.add("one")
    sync_remotes.sync(there.store)
    network, told = RecordedNetwork(here), list[str]()
    log = Log(here.store, CallerClaims(as_=Agent(here.store, "claude:worker:bohr").session.session_id))

    def record() -> None:
        if here.store.lock.acquire(timeout=5):
            here.store.lock.release()
            told.append(log.signals.send(f"note {len(told)}", broadcast=True).signal["signal_id"])

    def before(call: str) -> None:
        thread = threading.Thread(target=record)
        thread.start()
        thread.join()

    network.before = before
    (remote,) = log.sync(publish=True).remotes
    assert (remote.state, remote.received > 0) == ("synced", True)
    assert len(told) == len(network.calls) >= 2
    assert [log.thread(each).signals[0]["signal_id"] for each in told] == told
    bodies = here.store.db().execute("SELECT body FROM line").fetchall()
    assert any('"text":"one"' in body for (body,) in bodies)
