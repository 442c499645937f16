"""Sync with nothing new: what a good sync leaves behind answers for the next one, and only while all is as it was."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gitmem import commit_process
from gitmem.errors import StoreError
from gitmem.git import plumbing
from gitmem.git.network import GitNetwork
from gitmem.git.objects import Draft, Signature
from gitmem.log import ref, ref_checks
from gitmem.log.committer import start_log
from gitmem.log.local_log import LocalLog
from gitmem.log.ref_checks import RefCheck
from gitmem.log.tree_checks import Limits
from gitmem.sync import autosync, read_remote, sync_remotes

from ..clones import Clone, Hub, git
from ..log.logs import open_log


@pytest.fixture
def a(hub: Hub) -> Clone:
    """A clone that has nothing to do."""
    clone = hub.clone("a")
    clone.add("one")
    sync_remotes.sync(clone.store)
    sync_remotes.sync(clone.store)
    return clone


@pytest.fixture
def fetches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The urls that were fetched from."""
    found: list[str] = []
    real = GitNetwork._fetch_into

    def fetch(self: GitNetwork, into: Any, url: str, *rest: Any) -> dict[str, tuple[str, str]]:
        found.append(url)
        return real(self, into, url, *rest)

    monkeypatch.setattr(GitNetwork, "_fetch_into", fetch)
    return found


def look(clone: Clone) -> sync_remotes.LastSync | None:
    return sync_remotes.check_noop(clone.store.repo, list, time.time())


def test_the_answer_is_the_one_of_the_whole_sync(a: Clone, fetches: list[str]) -> None:
    looked = look(a)
    assert looked is not None
    assert looked.unchanged
    quick = sync_remotes.noop_result(a.store.repo, looked, 0.0, 0.0)
    assert fetches == []

    assert quick.as_json() == sync_remotes.sync(a.store).as_json()


def test_packed_refs_and_a_branch_that_the_user_fetched_change_nothing(a: Clone) -> None:
    git("fetch", "--quiet", "origin", cwd=a.path)
    sync_remotes.sync(a.store)
    git("pack-refs", "--all", cwd=a.path)

    looked = look(a)
    assert looked is not None
    assert looked.unchanged


def test_a_packed_branch_of_the_user_whose_name_ends_in_ours_changes_nothing(a: Clone) -> None:
    """Only what a fetch has put below `refs/remotes/` is a copy of the log."""
    for name in ("team/gitmem", "gitmem-notes"):
        git("update-ref", f"refs/heads/{name}", "refs/heads/main", cwd=a.path)
    git("pack-refs", "--all", cwd=a.path)

    looked = look(a)
    assert looked is not None
    assert looked.unchanged


def elsewhere(hub: Hub, a: Clone) -> None:
    b = hub.clone("b")
    b.add("two")
    sync_remotes.sync(b.store)


def outbox(hub: Hub, a: Clone) -> None:
    git("update-ref", f"refs/gitmem/outbox/{hub.tip()}", str(hub.tip()), cwd=hub.path)


def plain_outbox(hub: Hub, a: Clone) -> None:
    git("update-ref", f"refs/heads/gitmem-outbox-{hub.tip()}", str(hub.tip()), cwd=hub.path)


def removed(hub: Hub, a: Clone) -> None:
    git("update-ref", "-d", "refs/heads/gitmem", cwd=hub.path)


def hidden(hub: Hub, a: Clone) -> None:
    git("update-ref", "refs/gitmem/log", str(hub.tip()), cwd=hub.path)


@pytest.mark.parametrize("change", [elsewhere, outbox, plain_outbox, removed, hidden])
def test_what_changes_on_the_remote_is_seen(hub: Hub, a: Clone, change: Callable[[Hub, Clone], None]) -> None:
    change(hub, a)

    looked = look(a)
    assert looked is not None
    assert not looked.unchanged


def written(hub: Hub, a: Clone) -> None:
    a.add("two")


def riding(hub: Hub, a: Clone) -> None:
    a.add("two", deferred=True)


def configured(hub: Hub, a: Clone) -> None:
    git("remote", "add", "other", str(hub.path), cwd=a.path)


def switched(hub: Hub, a: Clone) -> None:
    git("checkout", "--quiet", "-b", "feature", cwd=a.path)


def old(hub: Hub, a: Clone) -> None:
    at = time.time() - sync_remotes.AGE_SECONDS_MAX - 60
    os.utime(a.path / ".git" / "gitmem" / "settled", (at, at))


def ahead(hub: Hub, a: Clone) -> None:
    at = time.time() + 60
    os.utime(a.path / ".git" / "gitmem" / "settled", (at, at))


def torn(hub: Hub, a: Clone) -> None:
    path = a.path / ".git" / "gitmem" / "settled"
    path.write_bytes(path.read_bytes()[:-10])


def by_hand(hub: Hub, a: Clone) -> None:
    git("update-ref", "refs/heads/gitmem", "refs/heads/main", cwd=a.path)


def by_hand_and_packed(hub: Hub, a: Clone) -> None:
    by_hand(hub, a)
    git("pack-refs", "--all", cwd=a.path)


def unpublished(hub: Hub, a: Clone) -> None:
    git("update-ref", "-d", "refs/gitmem/published", cwd=a.path)


def locked(hub: Hub, a: Clone) -> None:
    (a.path / ".git" / "refs" / "gitmem" / "log.lock").touch()


@pytest.mark.parametrize(
    "change",
    [
        written,
        riding,
        configured,
        switched,
        old,
        ahead,
        torn,
        by_hand,
        by_hand_and_packed,
        unpublished,
        locked,
    ],
)
def test_what_changes_here_is_for_the_whole_sync(
    hub: Hub, a: Clone, change: Callable[[Hub, Clone], None]
) -> None:
    """The remote is not even asked twice."""
    change(hub, a)

    assert look(a) is None


def test_a_note_that_ends_anywhere_is_none(a: Clone) -> None:
    """A full disk, or a power loss: it is for the whole sync."""
    path = a.path / ".git" / "gitmem" / "settled"
    content = path.read_bytes()
    for size in range(len(content)):
        path.write_bytes(content[:size])
        assert look(a) is None, size
    path.write_bytes(content)
    assert look(a) is not None


def test_a_repository_of_somebody_else_names_no_remote_to_ask(
    a: Clone, fetches: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A url may name a program that git would run."""
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setattr(os, "geteuid", lambda: a.path.stat().st_uid + 1)
    note = a.path / ".git" / "gitmem" / "settled"
    note.write_bytes(note.read_bytes().replace(b"hub.git", b"no.git"))

    with pytest.raises(StoreError) as refused:
        look(a)
    assert refused.value.code == "dubious-ownership"
    assert fetches == []


def test_where_git_would_go_to_another_machine_it_is_left_to_a_fetch(
    a: Clone, hub: Hub, fetches: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No question that needs no fetch goes over the network."""
    variables = {
        "COUNT": "1",
        "KEY_0": "url.ssh://nowhere.invalid/.insteadOf",
        "VALUE_0": f"{hub.path.parent}/",
    }
    for name, value in variables.items():
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)

    looked = look(a)
    assert looked is not None
    assert not looked.unchanged
    assert len(fetches) == 1


def test_a_proposal_that_is_written_while_the_remote_answers_stays_urgent(
    a: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark of before is done with; and where the line is there already, it is for the whole sync."""
    git("config", "gitmem.autosync", "30s", cwd=a.path)
    sync_remotes.sync(a.store)
    place, now = a.store.repo, time.time()
    assert autosync.wants(place, commit_process.NOW, now - 60)
    real = plumbing.refs_of_folder

    def answer(*args: Any) -> dict[str, str] | None:
        found = real(*args)
        assert not autosync.is_urgent(place)
        a.add("two")
        assert autosync.wants(place, commit_process.NOW, now)
        return found

    monkeypatch.setattr(plumbing, "refs_of_folder", answer)
    assert look(a) is None
    autosync.record_success(place, now, 0, 0.0)
    assert autosync.is_urgent(place)


def gone(hub: Hub, a: Clone) -> None:
    git("remote", "set-url", "origin", str(hub.path) + "-gone", cwd=a.path)


def kept_outbox(hub: Hub, a: Clone) -> None:
    git("config", "receive.denyDeletes", "true", cwd=hub.path)
    plain_outbox(hub, a)
    elsewhere(hub, a)


def including(hub: Hub, a: Clone) -> None:
    """Another file may say at any time that the remote is elsewhere."""
    git("config", "include.path", "../more", cwd=a.path)


@pytest.mark.parametrize("change", [gone, kept_outbox, including])
def test_a_sync_that_has_something_to_tell_or_to_do_leaves_no_note(
    hub: Hub, a: Clone, change: Callable[[Hub, Clone], None]
) -> None:
    note = a.path / ".git" / "gitmem" / "settled"
    assert note.exists()
    change(hub, a)

    for _ in range(2):  # what there is to tell of it is told once
        sync_remotes.sync(a.store)
        assert not note.exists()


@pytest.mark.parametrize("change", [written, by_hand])
def test_what_moves_while_a_sync_runs_is_not_taken_for_synced(
    hub: Hub, a: Clone, monkeypatch: pytest.MonkeyPatch, change: Callable[[Hub, Clone], None]
) -> None:
    """A signal of another process, and a branch that the user fetches in that moment."""
    from gitmem.sync import exchange

    real = exchange.exchange

    def meanwhile(*args: object, **options: object) -> object:
        done = real(*args, **options)  # type: ignore[arg-type]
        change(hub, a)
        return done

    monkeypatch.setattr(exchange, "exchange", meanwhile)
    sync_remotes.sync(a.store)
    assert look(a) is None


def test_a_url_with_a_secret_is_written_nowhere(hub: Hub, a: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.{hub.path}.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "https://me:token9z@example.org/hub.git")
    git("remote", "set-url", "origin", "https://me:token9z@example.org/hub.git", cwd=a.path)
    assert sync_remotes.sync(a.store).remotes[0].state == "up-to-date"

    assert look(a) is None
    assert not [
        each
        for each in (a.path / ".git" / "gitmem").rglob("*")
        if each.is_file() and b"token9z" in each.read_bytes()
    ]


@pytest.mark.parametrize("new", [False, True])
def test_a_remote_that_must_be_fetched_from_is_fetched_from_once(
    hub: Hub, a: Clone, fetches: list[str], new: bool
) -> None:
    """Whether there is anything new or not: over a network every connection counts."""
    url = f"file://{hub.path}"
    git("remote", "set-url", "origin", url, cwd=a.path)
    sync_remotes.sync(a.store)
    if new:
        elsewhere(hub, a)
    fetches.clear()

    looked = look(a)
    assert looked is not None
    assert looked.unchanged is not new
    if new:
        assert sync_remotes.sync(a.store, looked=looked).remotes[0].received == 1
        assert "two" in a.texts()
    assert fetches == [url]


def test_a_remote_that_is_away_is_tried_once(hub: Hub, a: Clone, fetches: list[str]) -> None:
    url = f"file://{hub.path}"
    git("remote", "set-url", "origin", url, cwd=a.path)
    sync_remotes.sync(a.store)
    hub.path.rename(hub.path.with_name("moved.git"))
    fetches.clear()

    looked = look(a)
    assert looked is not None
    assert sync_remotes.sync(a.store, looked=looked).remotes[0].state == "offline"
    assert fetches == [url]


# What a new clone finds below a shared ref whose tip is invalid, whatever the commits between cost.

WHO = Signature("Mallory", "m@m", 1)
NAME = "refs/heads/gitmem"
EPOCH = b'{"format":1,"epoch":1}\n'


@pytest.fixture
def log(repo: Path) -> LocalLog:
    found = open_log(repo, seed=1)
    start_log(found)
    return found


def put(log: LocalLog, onto: str, *commits: dict[str, bytes | None]) -> str:
    return log.git.write([Draft(files, WHO, WHO, "x\n") for files in commits], onto)[-1]


def good(log: LocalLog) -> str:
    local = log.git.tip(ref.LOG_REF)
    assert local is not None
    return put(log, local, {"signals/x/gm-a.jsonl": b"1\n"})


def found(log: LocalLog, oid: str) -> str | None:
    log.passed_trees.clear()
    tip = read_remote.valid_ancestor(RefCheck(log, None, []), NAME, oid)
    return tip.oid if tip is not None else None


def large(number: int) -> dict[str, bytes | None]:
    """A folder of up to 20,000 bytes with a name that no log has; the later the smaller."""
    files: dict[str, bytes | None] = {
        f"signals/{number}/gm-{at}{number}": b"1\n" for at in range(500 // 2**number)
    }
    return {**files, f"signals/{number}/Z": b"1\n", f"signals/{number - 1}": None}


def test_commits_with_large_folders_hide_no_good_log_below(log: LocalLog) -> None:
    log.limits = Limits(read_bytes=30_000)
    oid = put(log, good(log), {f"signals/x/gm-{at}.jsonl": b"1\n" for at in range(100)})
    tip = put(log, oid, *map(large, [*range(9, 0, -1), 0]), {"format": EPOCH})

    assert found(log, tip) == oid
    log.limits = Limits(read_bytes=30_000, share=0)
    assert found(log, tip) is None


def test_commits_with_many_lines_hide_no_good_log_below(log: LocalLog) -> None:
    log.limits = Limits(lines=400, counted_bytes=1_000)
    oid = put(log, good(log), {"signals/y/gm-a.jsonl": b"x" * 500 + b"\n"})
    many: list[dict[str, bytes | None]] = [
        {"signals/x/gm-b.jsonl": b"%d\n" % number * 401} for number in range(5)
    ]
    tip = put(log, oid, *many, {"format": EPOCH})

    assert found(log, tip) == oid
    log.limits = Limits(lines=400, counted_bytes=1_000, share=0)
    assert found(log, tip) != oid


def test_a_long_history_is_listed_once_and_not_for_each_bad_commit_above(
    log: LocalLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 10 * read_remote.ANCESTORS_MAX
    oid = put(log, good(log), *({"signals/x/gm-b.jsonl": b"%d\n" % number} for number in range(count)))
    tip = put(log, oid, *({"format": EPOCH, "signals/x/gm-c": b"%d\n" % number} for number in range(4)))
    listed = []
    real = log.git.unread_history

    def listing(*args: object, **options: int) -> list[str]:
        listed.append(real(*args, **options))  # type: ignore[arg-type]
        return listed[-1]

    monkeypatch.setattr(log.git, "unread_history", listing)

    assert found(log, tip) == oid
    assert sum(map(len, listed)) < 2 * (count + 10)
    log.limits = Limits(listed=10)
    assert found(log, tip) == oid


def test_a_history_that_is_no_logs_has_no_valid_ancestor(log: LocalLog) -> None:
    root = log.git.write([Draft({"format": EPOCH}, WHO, WHO, "x\n")], None)[0]

    assert found(log, put(log, root, {"signals/x/gm-a.jsonl": b"1\n"})) is None
    assert found(log, root) is None
    assert found(log, "ab" * 20) is None


def test_commits_that_are_too_large_are_read_up_to_a_limit_to_find_a_smaller_one(
    log: LocalLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of 17 steps of a bisection could cost as much as a sync takes in."""
    log.limits = Limits(files=30, read_bytes=30_000, share=2_000)
    oid = put(log, good(log), {f"signals/x/gm-{at}.jsonl": b"1\n" for at in range(20)})

    def many(n: int) -> dict[str, bytes | None]:
        return {f"signals/{n - 1}": None, **{f"signals/{n}/gm-{n}{at}": b"1\n" for at in range(500)}}

    tip = put(log, oid, *(many(n) for n in range(40)))
    read = 0
    real = log.git.raw_tree

    def reading(at: str) -> bytes:
        nonlocal read
        read += len(real(at))
        return real(at)

    monkeypatch.setattr(log.git, "raw_tree", reading)
    log.passed_trees.clear()

    found = read_remote.largest_readable_ancestor(RefCheck(log, None, []), NAME, tip)

    assert found is not None and found.oid == oid
    assert read < 30_000 + 6 * 2_000


def test_what_one_step_of_the_search_reads_does_not_count_in_the_next(log: LocalLog) -> None:
    """Each commit is checked as if it were the only one: else an older one would be taken."""
    log.limits = Limits(files=30)
    oid = put(
        log, good(log), *({f"signals/x/gm-{at}.jsonl": b"%d\n" % n for at in range(20)} for n in range(8))
    )
    tip = put(log, oid, {f"signals/y/gm-{at}.jsonl": b"1\n" for at in range(20)})
    log.passed_trees.clear()

    found = read_remote.largest_readable_ancestor(RefCheck(log, None, []), NAME, tip)

    assert found is not None and found.oid == oid


def test_folders_of_ancestors_are_not_read_for_project_ids_if_they_are_large(
    log: LocalLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing has checked them: 256 roots of gigabytes below a tip without ids would be read."""
    count = ref_checks.FOLDER_BYTES_MAX // 20  # an entry has an id of 20 bytes, and its name
    ids: dict[str, bytes | None] = {f"projects/{number:040x}": b"" for number in range(count)}
    many: dict[str, bytes | None] = {f"z{number}": b"1\n" for number in range(count)}
    tree = log.git.commit(good(log)).tree
    wide = log.git.commit(put(log, good(log), many)).tree
    assert ref_checks.projects_of(log.git, good(log)) == ref.project_ids(log.git, log.git.tree(tree))
    read: list[str] = []
    real = log.git.tree
    monkeypatch.setattr(log.git, "tree", lambda oid: read.append(oid) or real(oid))

    assert ref_checks.projects_of(log.git, put(log, good(log), ids)) == set()
    read.clear()
    assert ref_checks.projects_of(log.git, put(log, good(log), many)) == set()
    assert wide not in read
