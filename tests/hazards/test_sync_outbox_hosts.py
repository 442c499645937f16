"""Hosts that take no outboxes, or never let go of them: served another way, told once, and remembered."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitmem.git import network
from gitmem.log import ref
from gitmem.sync import sync_remotes
from gitmem.sync.remote import Remote
from tests.clones import Clone, Hub, git
from tests.hazards.test_sync_outbox import GOOD, boxes, clones, leave
from tests.recorded_network import BRANCHES, OUTBOX, RecordedNetwork, cut, once


def only(hub: Hub, pattern: str) -> None:
    """The remote takes refs of these names alone, as the sandbox of an agent does."""
    hook = hub.path / "hooks" / "pre-receive"
    hook.write_text(
        "#!/bin/sh\nwhile read old new ref; do\n"
        f'case "$ref" in {pattern}) ;; *) echo "only {pattern}" >&2; exit 1;; esac\ndone\n'
    )
    hook.chmod(0o755)


def raced(hub: Hub, a: Clone, b: Clone, said: str) -> tuple[list[str], str]:
    """`b` syncs, and `a` is faster: what was asked of the remote, and the message."""
    b.add(f"b {said}")
    wire = RecordedNetwork(b)

    def race() -> None:
        a.add(f"a {said}")
        assert a.exchange().state == "synced"

    wire.before = once(race, f"push {ref.BRANCH}")
    found = b.exchange()
    assert (found.state, found.has_our_lines) == ("synced", True)
    assert hub.texts()[-2:] in ([f"a {said}", f"b {said}"], [f"b {said}", f"a {said}"])
    return wire.calls, found.message


def test_where_only_branches_of_a_prefix_are_taken_it_is_a_branch(hub: Hub) -> None:
    """Tried, told and remembered, also by the next process; everybody reads both."""
    a, b = clones(hub, "ab")
    only(hub, "refs/heads/gitmem*")
    calls, message = raced(hub, a, b, "1")
    shared = f"push {ref.BRANCH}"
    assert calls == ["fetch", shared, f"push {OUTBOX}*", f"push {BRANCHES}*", "fetch", shared, "delete 1"]
    assert "origin rejects refs/gitmem/outbox/*" in message and "refs/heads/gitmem-outbox-*" in message
    calls, message = raced(hub, a, hub.open(b.path), "2")
    assert calls == ["fetch", shared, f"push {BRANCHES}*", "fetch", shared, "delete 1"]
    assert message == ""
    b.add("waits")
    wire = RecordedNetwork(b)

    def race() -> None:
        a.add("first")
        a.exchange()
        wire.before = cut("fetch")

    wire.before = once(race, f"push {ref.BRANCH}")
    assert b.exchange().outbox is not None
    assert [name.startswith(BRANCHES) for name in boxes(hub)] == [True]
    assert a.exchange().received == 1
    assert a.texts() == hub.texts() and {"first", "waits"} <= set(a.texts())
    assert boxes(hub) == []


def test_where_none_are_taken_the_shared_ref_is_tried_again(hub: Hub) -> None:
    """As often as four times in one sync, and nothing else is tried from then on."""
    a, b = clones(hub, "ab")
    only(hub, "refs/heads/gitmem")
    shared = f"push {ref.BRANCH}"
    calls, message = raced(hub, a, b, "1")
    assert calls == ["fetch", shared, f"push {OUTBOX}*", f"push {BRANCHES}*", "fetch", shared]
    assert "rejects refs/heads/gitmem-outbox-*" in message and "may have to be repeated" in message
    calls, message = raced(hub, a, hub.open(b.path), "2")
    assert calls == ["fetch", shared, "fetch", shared]
    assert message == ""


def test_every_race_that_was_lost_counts(hub: Hub) -> None:
    """Who loses all of them is told how many, and autosync waits the longer."""
    a, b = clones(hub, "ab")
    host = Remote(b.log, "origin").host
    host.refused_prefixes = [OUTBOX, BRANCHES]
    host.save()
    b.add("mine")
    wire = RecordedNetwork(b)

    def race(call: str) -> None:
        if call == f"push {ref.BRANCH}":
            a.add("theirs")
            a.exchange()

    wire.before = race
    found = b.exchange()
    assert (found.state, found.has_our_lines, found.attempts, found.rejections) == ("rejected", False, 4, 4)
    assert "4 times" in found.message


def test_where_none_are_taken_those_of_others_are_folded_with_ours(hub: Hub) -> None:
    """Two were left before, so that it is not our turn by itself: what is ours has no other way."""
    a, b, c = clones(hub, "abc")
    leave(a, "one")
    leave(c, "two")
    b.add("mine")
    host = Remote(b.log, "origin").host
    host.refused_prefixes = [OUTBOX, BRANCHES]
    host.save()
    b.log.random = lambda count: b"\xff" * count
    wire = RecordedNetwork(b)
    found = b.exchange()
    assert (found.state, found.has_our_lines) == ("synced", True)
    assert wire.calls == ["fetch", f"push {ref.BRANCH}", "delete 2"]
    assert sorted(hub.texts()) == ["mine", "one", "two"]


def test_hidden_refs_are_refused_too(hub: Hub) -> None:
    """A forge that keeps the namespace for itself."""
    a, b = clones(hub, "ab")
    git("config", "receive.hideRefs", "refs/gitmem", cwd=hub.path)
    calls, message = raced(hub, a, b, "1")
    assert f"push {BRANCHES}*" in calls and "rejects refs/gitmem/outbox/*" in message
    assert boxes(hub) == []


def test_where_no_branch_may_be_deleted_outboxes_are_no_branches(hub: Hub) -> None:
    """`receive.denyDeletes` guards branches alone."""
    a, b = clones(hub, "ab")
    git("config", "receive.denyDeletes", "true", cwd=hub.path)
    calls, message = raced(hub, a, b, "1")
    assert calls[-1] == "delete 1" and message == ""
    assert boxes(hub) == []


def test_where_nothing_may_be_deleted_there_is_one_outbox_and_no_more(hub: Hub) -> None:
    """Each clone learns it by the first that it can't delete; what is in the log is left in peace."""
    a, b = clones(hub, "ab")
    git("config", "receive.denyDeletes", "true", cwd=hub.path)
    git("config", "receive.hideRefs", "refs/gitmem", cwd=hub.path)
    shared = f"push {ref.BRANCH}"
    calls, message = raced(hub, a, b, "1")
    assert calls[-2:] == [shared, "delete 1"]
    assert "rejects deletion of refs" in message
    assert len(boxes(hub)) == 1
    b = hub.open(b.path)
    calls, message = raced(hub, a, b, "2")
    assert calls == ["fetch", shared, "fetch", shared]
    assert message == "" and len(boxes(hub)) == 1
    wire = RecordedNetwork(b)
    assert b.exchange().state in GOOD
    assert wire.calls == ["fetch"]


def test_what_was_remembered_is_forgotten_with_the_url(hub: Hub, tmp_path: Path) -> None:
    """Another host may do what this one did not."""
    a, b = clones(hub, "ab")
    only(hub, "refs/heads/gitmem")
    raced(hub, a, b, "1")
    other = tmp_path / "other.git"
    git("clone", "--quiet", "--bare", str(hub.path), str(other), cwd=tmp_path)
    git("remote", "set-url", "origin", str(other), cwd=b.path)
    b.exchange()
    leave(b, "there")
    assert OUTBOX in git("for-each-ref", cwd=other)


def test_a_refusal_of_one_day_is_tried_again_by_a_sync_that_names_the_remote(hub: Hub) -> None:
    """It counts for all others."""
    (b,) = clones(hub, "b")
    remote = Remote(b.log, "origin")
    remote.host.refused_prefixes.append(OUTBOX)
    remote.host.keeps_refs = True
    remote.host.save()
    assert sync_remotes.sync(b.store).remotes[0].state in GOOD
    assert Remote(b.log, "origin").host.prefixes == []
    assert sync_remotes.sync(b.store, ["origin"]).remotes[0].state in GOOD
    assert Remote(b.log, "origin").host.prefixes == [OUTBOX, BRANCHES]


def test_an_outbox_that_somebody_else_deletes_first_is_no_refusal(hub: Hub) -> None:
    """In between the remote's answer and our wish; its git says it in its own words."""
    a, b = clones(hub, "ab")
    leave(b, "one")
    hook = hub.path / "hooks" / "pre-receive"
    hook.write_text(
        '#!/bin/sh\nwhile read old new ref; do case "$new" in *[!0]*) ;; *)\nrm -f "$ref";; esac; done\n'
    )
    hook.chmod(0o755)
    found = a.exchange()
    assert (found.state, found.host.keeps_refs, boxes(hub)) == ("synced", False, [])
    assert network._is_race("[remote rejected] (reference does not exist)")


def test_a_remote_that_takes_nothing_teaches_nothing(hub: Hub) -> None:
    """It is refused as a whole: which outboxes it would take is not known."""
    a, b = clones(hub, "ab")
    leave(a, "theirs")
    only(hub, "nothing")
    b.add("mine")
    found = b.exchange()
    assert (found.state, found.has_our_lines) == ("refused", False)
    assert b.texts() == ["theirs", "mine"]
    (hub.path / "hooks" / "pre-receive").unlink()
    leave(b, "more")
    assert all(name.startswith(OUTBOX) for name in boxes(hub))


@pytest.mark.parametrize("fault", ["too large", "damaged"])
def test_a_fault_of_the_host_is_no_refusal_of_names(hub: Hub, fault: str) -> None:
    """A limit of size, a full disk or a missing object is about no ref: outboxes are tried again when it is repaired."""
    a, b = clones(hub, "ab")
    shared = hub.path / "refs" / "heads" / "gitmem"
    before = git("rev-parse", ref.BRANCH, cwd=hub.path).strip()
    if fault == "damaged":
        shared.write_text("1" * 40 + "\n")
    else:
        shared.write_text(git("rev-parse", f"{before}^{{tree}}", cwd=hub.path))
        git("config", "receive.maxInputSize", "1", cwd=hub.path)
    b.add("mine")
    found = b.exchange()
    assert (found.state, found.has_our_lines) == ("refused", False)
    assert "rejected the push" in found.message and "rejects refs/" not in found.message
    shared.write_text(before + "\n")
    git("config", "receive.maxInputSize", "0", cwd=hub.path)
    assert Remote(b.log, "origin").host.prefixes == [OUTBOX, BRANCHES]
    assert b.exchange().state in GOOD
    assert a.exchange().state in GOOD and "mine" in a.texts()


@pytest.mark.deep
def test_a_state_file_that_is_damaged_is_as_good_as_none(hub: Hub) -> None:
    """It is learned again, and written anew."""
    a, b = clones(hub, "ab")
    only(hub, "refs/heads/gitmem*")
    raced(hub, a, b, "1")
    (path,) = (Path(b.log.repo.state) / "remotes").iterdir()
    for content in (
        b"",
        b"\xff",
        b"[1]",
        b'{"url": 1}',
        path.read_bytes().replace(b"[", b"{").replace(b"]", b"}"),
    ):
        path.write_bytes(content)
        _, message = raced(hub, a, hub.open(b.path), content.hex()[:4] + str(len(content)))
        assert "rejects refs/gitmem/outbox/*" in message
    assert OUTBOX in path.read_text()
