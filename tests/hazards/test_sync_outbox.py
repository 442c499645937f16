"""Outboxes: clones that push at the same time lose nothing, wait for nobody, and leave nothing behind."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gitmem.git import network
from gitmem.git.objects import Draft, Signature
from gitmem.log import ref
from gitmem.sync import sync_remotes
from gitmem.sync.remote import Remote

from ..clones import Clone, Hub, git, texts
from ..recorded_network import BRANCHES, OUTBOX, RecordedNetwork, cut, once
from .test_sync_killed import exchange_killed_at

WHO = Signature("somebody", "somebody@example.org", 1)
GOOD = ("synced", "up-to-date")


def boxes(hub: Hub) -> list[str]:
    """The outboxes on the remote."""
    names = git("for-each-ref", "--format=%(refname)", cwd=hub.path).split()
    return [name for name in names if "outbox" in name]


def clones(hub: Hub, names: str) -> list[Clone]:
    """Clones that know the log."""
    found = [hub.clone(name) for name in names]
    for clone in [*found, *found]:
        clone.exchange()
    return found


def crowd(clone: Clone) -> None:
    """As if others had left outboxes when the clone last looked."""
    remote = Remote(clone.log, "origin")
    remote.host.concurrent = 2
    remote.host.seen.add("0" * 40)
    remote.host.save()


def exchange_unmerged(clone: Clone) -> Remote:
    """Exchange while it is not this clone's turn to merge outboxes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Remote, "may_merge_outboxes", lambda self: False)
        return clone.exchange()


def leave(clone: Clone, *said: str) -> Remote:
    """Say something that stays in an outbox: others were there, and it is not this clone's turn."""
    for text in said:
        clone.add(text)
    crowd(clone)
    found = exchange_unmerged(clone)
    assert (found.state, found.has_our_lines) == ("synced", True) and found.outbox is not None
    return found


def test_who_loses_the_race_has_its_lines_there_at_once(hub: Hub) -> None:
    """The shared ref is tried once; then the lines go to an outbox, and when nobody else is left, into the log."""
    a, b = clones(hub, "ab")
    b.add("mine")
    wire = RecordedNetwork(b)

    def race() -> None:
        a.add("theirs")
        a.exchange()

    wire.before = once(race, f"push {ref.BRANCH}")
    found = b.exchange()
    assert wire.calls == [
        "fetch",
        f"push {ref.BRANCH}",
        f"push {OUTBOX}*",
        "fetch",
        f"push {ref.BRANCH}",
        "delete 1",
    ]
    assert (found.state, found.has_our_lines, found.sent, found.rejections) == ("synced", True, 1, 1)
    assert hub.texts() == ["mine", "theirs"] and boxes(hub) == []
    assert b.subjects()[:2] == ["mine", "theirs"] and b.merges() == 0


def test_where_others_push_at_this_time_the_outbox_comes_first(hub: Hub) -> None:
    """One round trip until the lines are safe, before anything is fetched; and every sync reads them."""
    a, b = clones(hub, "ab")
    b.add("mine")
    crowd(b)
    wire = RecordedNetwork(b)
    seen: list[str] = []
    wire.after = once(lambda: seen.extend(boxes(hub)), "push")
    found = exchange_unmerged(b)
    assert wire.calls == [f"push {OUTBOX}*", "fetch"]
    assert seen == boxes(hub) == [found.outbox] and hub.texts() == []
    assert (found.state, found.has_our_lines, found.sent) == ("synced", True, 1)
    assert "pushed to an outbox on origin" in found.message
    read = exchange_unmerged(a)
    assert (read.state, read.received) == ("synced", 1)
    assert a.texts() == ["mine"]
    assert boxes(hub) == seen


def test_whoever_comes_next_folds_and_deletes(hub: Hub) -> None:
    """One outbox of somebody who is away: its commit stands on the log as it was made."""
    a, b = clones(hub, "ab")
    leave(b, "one", "two")
    shape = "--format=%an %ae %ad %cn %ce %cd%n%B"
    made = git("log", "-1", "--date=raw", shape, boxes(hub)[0], cwd=hub.path)
    assert made.splitlines()[1:4] == ["one +1", "", "one"]
    a.add("mine")
    found = a.exchange()
    assert (found.state, found.received, found.sent, found.outbox) == ("synced", 2, 1, None)
    assert hub.texts() == ["one", "two", "mine"] and boxes(hub) == []
    assert a.subjects()[:3] == ["one +1", "mine", "Start the log of this repository"]
    assert git("log", "-1", "--date=raw", shape, ref.BRANCH, cwd=hub.path) == made
    assert b.exchange().state in GOOD
    assert b.tip == a.tip == hub.tip()


def test_who_does_not_fold_has_outboxes_of_others_as_one_commit(hub: Hub) -> None:
    """So has whoever folds, once for all clones; the commit that stood for it here is gone then."""
    a, b, c = clones(hub, "abc")
    leave(a, "one", "two")
    leave(c, "three")
    before = b.subjects()
    exchange_unmerged(b)
    assert sorted(b.texts()) == ["one", "three", "two"]
    assert b.subjects()[1:] == before

    a.exchange()
    b.exchange()
    assert b.tip == a.tip == hub.tip()
    assert b.subjects() == ["one +2", *before]
    assert git("log", "-1", "--format=%b", b.tip, cwd=b.path).splitlines()[:3] == ["one", "two", "three"]


def test_an_outbox_holds_only_what_is_nowhere_else(hub: Hub) -> None:
    """Own commits alone, once each, on the log as it was known: nothing of what other outboxes have."""
    a, b, c = clones(hub, "abc")
    leave(a, "a1")
    leave(b, "b1")
    leave(c, "c1")
    leave(a, "a2")
    held = [git("log", "--format=%s", name, f"^{ref.BRANCH}", cwd=hub.path).split() for name in boxes(hub)]
    assert sorted(held) == [["a1"], ["a2"], ["b1"], ["c1"]]
    assert leave(a, "a3").outbox in boxes(hub)
    assert a.texts() == ["a1", "b1", "c1", "a2", "a3"]


def test_clones_that_see_the_same_make_the_same_commits(hub: Hub) -> None:
    """Who folds doesn't matter: the order is that of the dates."""
    a, b, c, d = clones(hub, "abcd")
    for number, clone in enumerate((c, a, b)):
        leave(clone, f"{number}")
    tip = hub.tip()
    kept = git("for-each-ref", "--format=%(objectname) %(refname)", "refs/gitmem", cwd=hub.path).splitlines()
    folded = []
    for clone in (d, c):
        clone.exchange()
        assert boxes(hub) == []
        folded.append(hub.tip())
        git("update-ref", ref.BRANCH, str(tip), cwd=hub.path)
        for row in kept:
            oid, name = row.split()
            git("update-ref", name, oid, cwd=hub.path)
    assert folded[0] == folded[1]
    assert d.subjects()[0] == "0 +2"
    assert git("log", "-1", "--format=%b", d.tip, cwd=d.path).splitlines()[:3] == ["0", "1", "2"]


@pytest.mark.deep
def test_whose_turn_it_is_is_drawn(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """One in as many as are new; nobody new: for sure. Who has nothing to send looks again before it leaves."""
    a, b, c, d = clones(hub, "abcd")
    for clone in (a, b, c):
        leave(clone, clone.path.name)
    d.log.random = lambda count: b"\x55" * (count - 1) + b"\x56"  # just above a third
    d.add("mine")
    wire = RecordedNetwork(d)
    found = d.exchange()
    assert wire.calls == ["fetch", f"push {OUTBOX}*"] and found.outbox is not None
    assert len(boxes(hub)) == 4

    e = hub.clone("e")
    wire = RecordedNetwork(e)
    e.log.random = lambda count: b"\xff" * count
    assert e.exchange().received == 4
    assert wire.calls == ["fetch", "fetch", f"push {ref.BRANCH}", "delete 4"]
    assert boxes(hub) == [] and hub.texts() == ["a", "b", "c", "mine"]

    for clone in (a, b, c):
        clone.exchange()
        leave(clone, clone.path.name * 2)
    d.log.random = lambda count: b"\x55" * count  # just below
    d.add("more")
    wire = RecordedNetwork(d)
    wire.before = lambda call: None
    d.exchange()
    assert boxes(hub) == [] and d.tip == hub.tip()


@pytest.mark.deep
def test_after_each_has_synced_again_none_is_left(hub: Hub) -> None:
    """However it was drawn: who comes and finds nobody at it, folds."""
    many = clones(hub, "abcdef")
    for round_ in range(3):
        for clone in many:
            clone.add(f"{clone.path.name}{round_}")
            crowd(clone)
            assert clone.exchange().state == "synced"
    for clone in many:
        assert clone.exchange().state in GOOD
    assert boxes(hub) == []
    for clone in many:
        clone.exchange()
    assert len({clone.tip for clone in many} | {hub.tip()}) == 1
    assert len(hub.texts()) == 18 and many[0].merges() == 0
    assert not any(subject.startswith("Repair") for subject in many[0].subjects())
    story = git("log", "--format=%s%n%b", many[0].tip, cwd=many[0].path).splitlines()
    assert [story.count(text) for text in hub.texts()] == [1] * 18


def test_what_a_crash_left_is_deleted_by_the_next_that_looks(hub: Hub) -> None:
    """Folded, and killed before the outbox was deleted."""
    a, b, c = clones(hub, "abc")
    leave(b, "one")
    wire = RecordedNetwork(a)
    wire.before = cut("delete")
    assert a.exchange().state == "synced"
    assert hub.texts() == ["one"] and len(boxes(hub)) == 1
    tip = hub.tip()
    wire = RecordedNetwork(c)
    assert c.exchange().state == "synced"
    assert wire.calls == ["fetch", "delete 1"]
    assert boxes(hub) == [] and hub.tip() == tip


@pytest.mark.parametrize("at", [f"push {OUTBOX}", f"push {ref.BRANCH}", "delete"])
def test_a_reply_that_is_lost_is_no_loss(hub: Hub, at: str) -> None:
    """The remote has done it and we don't know: the next sync finds it done."""
    a, b = clones(hub, "ab")
    leave(a, "theirs")
    b.add("mine")
    if "outbox" in at:
        crowd(b)
    wire = RecordedNetwork(b)
    wire.after = cut(at)
    b.exchange()
    b.add("later")
    for clone in (b, a, b):
        assert clone.exchange().state in GOOD
    assert hub.texts() == ["theirs", "mine", "later"]
    assert boxes(hub) == [] and a.tip == b.tip == hub.tip()
    story = git("log", "--format=%s%n%b", b.tip, cwd=b.path).splitlines()
    assert {"later", "mine", "theirs"} <= set(story)


@pytest.mark.parametrize("at", [f"push {OUTBOX}", "fetch", f"push {ref.BRANCH}", "delete"])
def test_a_link_that_breaks_at_any_point_is_made_good(hub: Hub, at: str) -> None:
    """Nothing was done there; offline is told, and what was safe before is said to be."""
    a, b = clones(hub, "ab")
    leave(a, "theirs")
    b.add("mine")
    crowd(b)
    wire = RecordedNetwork(b)
    wire.before = cut(at)
    found = b.exchange()
    assert found.state == ("synced" if at == "delete" else "offline")
    assert found.has_our_lines is (at != f"push {OUTBOX}")
    for clone in (b, a, b):
        assert clone.exchange().state in GOOD
    assert hub.texts() == ["theirs", "mine"] and boxes(hub) == []
    assert a.tip == b.tip == hub.tip()


def test_a_remote_that_is_away_is_asked_once(hub: Hub) -> None:
    """Where the outbox could not be put, no fetch waits for its time limit, too."""
    (a,) = clones(hub, "a")
    a.add("mine")
    crowd(a)
    hub.path.rename(hub.path.with_name("away"))
    wire = RecordedNetwork(a)
    found = a.exchange()
    assert (found.state, found.sent, a.texts()) == ("offline", 0, ["mine"])
    assert wire.calls == [f"push {OUTBOX}*"]


def test_a_clone_that_was_copied_needs_no_care(hub: Hub, tmp_path: Path) -> None:
    """Both have the same lines unsent, and make the same outbox."""
    a, b = clones(hub, "ab")
    leave(a, "theirs")
    b.exchange()
    b.add("both")
    shutil.copytree(b.path, tmp_path / "copy")
    copy = hub.open(tmp_path / "copy")
    first, second = (leave(clone).outbox for clone in (b, copy))
    assert first == second
    b.add("mine")
    copy.add("its")
    for clone in (b, copy, a, b, copy, a):
        assert clone.exchange().state in GOOD
    assert sorted(hub.texts()) == ["both", "its", "mine", "theirs"]
    assert boxes(hub) == [] and a.tip == b.tip == copy.tip == hub.tip()


def test_an_outbox_that_is_not_in_the_log_is_never_deleted(hub: Hub) -> None:
    """Also not by who believes that it has folded everything: the lease and a look at the lines are before it."""
    a, b = clones(hub, "ab")
    leave(b, "one")
    (name,) = boxes(hub)
    moved = b.git.write(
        [Draft({"notes/2026-11/21/gm-x.jsonl": b'{"text":"by hand"}\n'}, WHO, WHO, "By hand\n")], b.tip
    )
    wire = RecordedNetwork(a)

    def move() -> None:
        git("push", "--quiet", "--force", "origin", f"{moved[0]}:{name}", cwd=b.path)

    wire.before = once(move, "delete")
    assert a.exchange().state == "synced"
    assert boxes(hub) == [name]
    a.exchange()
    assert sorted(hub.texts()) == ["by hand", "one"] and boxes(hub) == [name]


@pytest.mark.parametrize("name", ["gitmem-outbox-backup", "gitmem-outbox-" + "a0" * 20])
def test_a_branch_that_is_named_like_an_outbox_is_left_alone(hub: Hub, name: str) -> None:
    """Only what is named after the commit that it is at is one of ours to delete."""
    a, b = clones(hub, "ab")
    a.add("one")
    a.exchange()
    git("push", "--quiet", "origin", f"{ref.LOG_REF}:refs/heads/{name}", cwd=a.path)
    a.add("two")
    for clone in (a, b, a):
        assert clone.exchange().state in GOOD
    assert boxes(hub) == [f"refs/heads/{name}"] and hub.texts() == b.texts() == ["one", "two"]


def test_an_outbox_that_is_seen_under_two_remotes_is_deleted(hub: Hub) -> None:
    """Two remotes of one repository: whatever the second look has found, the first one's ref goes."""
    a, b = clones(hub, "ab")
    leave(b, "one")
    git("remote", "add", "other", str(hub.path), cwd=a.path)
    assert {each.state for each in a.exchange_all("origin", "other")} <= set(GOOD)
    assert boxes(hub) == [] and hub.texts() == ["one"]


def test_a_fold_that_loses_the_race_folds_what_is_left(hub: Hub) -> None:
    """Two at once: the second finds its work done, and takes what came meanwhile."""
    a, b, c, d = clones(hub, "abcd")
    leave(c, "one")
    b.add("mine")

    def race() -> None:
        a.exchange()
        leave(d, "two")

    wire = RecordedNetwork(b)
    wire.before = once(race, f"push {ref.BRANCH}")
    found = b.exchange()
    assert (found.state, found.rejections) == ("synced", 1)
    assert hub.texts() == ["one", "mine", "two"] and boxes(hub) == []
    assert b.tip == hub.tip() and b.subjects()[:2] == ["mine +1", "one"]


def test_a_remote_without_a_branch_gets_no_outbox(hub: Hub) -> None:
    """A forge would make it the default one."""
    (a,) = clones(hub, "a")
    crowd(a)
    empty = hub.root / "empty.git"
    git("init", "--quiet", "--bare", str(empty), cwd=hub.root)
    git("remote", "set-url", "origin", str(empty), cwd=a.path)
    a.add("one")
    assert a.exchange().state == "empty"
    assert git("for-each-ref", cwd=empty) == ""


def test_a_remote_that_was_emptied_gets_no_branch(hub: Hub) -> None:
    """What is remembered of it says that outboxes are branches there; a log's own branches make no repository."""
    (a,) = clones(hub, "a")
    for name in git("for-each-ref", "--format=%(refname)", cwd=hub.path).split():
        git("update-ref", "-d", name, cwd=hub.path)
    a.add("one")
    crowd(a)
    remote = Remote(a.log, "origin")
    remote.host.refused_prefixes.append(OUTBOX)
    remote.host.save()
    assert a.exchange().state == "empty"
    assert git("for-each-ref", cwd=hub.path) == ""
    git("push", "--quiet", "origin", f"{ref.LOG_REF}:{BRANCHES}{a.tip}", cwd=a.path)
    assert not a.log.network.has_branches(str(hub.path), 20.0)


def test_a_remote_that_history_does_not_follow_gets_none_but_its_own_are_read(
    hub: Hub, tmp_path: Path
) -> None:
    """There the union goes on its tip, as ever."""
    (a,) = clones(hub, "a")
    other = tmp_path / "other.git"
    git("clone", "--quiet", "--bare", str(hub.path), str(other), cwd=tmp_path)
    c = hub.clone("c", of=other)
    c.exchange()
    leave(c, "there")
    git("remote", "add", "other", str(other), cwd=a.path)
    a.add("here")
    first, second = a.exchange_all("origin", "other")
    assert (first.state, second.state, second.received) == ("synced", "synced", 1)
    assert hub.texts() == ["there", "here"] == texts(other, ref.BRANCH)
    assert c.exchange().state in GOOD
    assert "outbox" not in git("for-each-ref", cwd=other)


def test_a_hidden_log_has_outboxes_too(hub: Hub) -> None:
    """Wherever it is published."""
    a, b = clones(hub, "ab")
    form = ref.Format.make(turn=1, publish=ref.LOG_REF)
    assert a.git.advance(ref.LOG_REF, a.tip, Draft({"format": form.content}, WHO, WHO, "Hide it\n"), "test")
    git("update-ref", "-d", ref.BRANCH, cwd=hub.path)
    for clone in (a, b):
        assert clone.exchange().state in GOOD
    leave(b, "one")
    assert hub.tip(ref.BRANCH) is None
    assert a.exchange().received == 1
    assert hub.texts(ref.LOG_REF) == ["one"] and boxes(hub) == []


def test_the_log_was_rewound_while_an_outbox_waited(hub: Hub) -> None:
    """It stands on what is gone there: that comes back with it, also by a clone that had not seen it."""
    a, b, c = clones(hub, "abc")
    b.add("one")
    b.exchange()
    leave(b, "two")
    git("update-ref", ref.BRANCH, f"{ref.BRANCH}~1", cwd=hub.path)
    assert c.exchange().state == "synced"
    assert hub.texts() == c.texts() == ["one", "two"] and boxes(hub) == []
    for clone in (a, b):
        clone.exchange()
    assert a.tip == b.tip == c.tip == hub.tip()


def test_the_log_was_deleted_while_an_outbox_waited(hub: Hub) -> None:
    """It is made anew with what the outbox has."""
    a, b = clones(hub, "ab")
    leave(b, "one")
    git("update-ref", "-d", ref.BRANCH, cwd=hub.path)
    assert a.exchange().state == "synced"
    a.exchange()
    assert hub.texts() == a.texts() == ["one"] and boxes(hub) == []


@pytest.mark.deep
def test_a_few_thousand_lines_go_through_an_outbox_too(hub: Hub) -> None:
    """Who was offline for weeks and comes back in a crowd."""
    a, b = clones(hub, "ab")
    drafts, who = [], Signature("Agent", "agent@x", 1_790_000_000)
    for number in range(1_200):
        line = b'{"at":"2026-11-21T20:00:00.%06dZ","kind":"note","text":"%d"}\n' % (number, number)
        drafts.append(Draft({f"notes/2026-11/21/gm-{number:04d}.jsonl": line}, who, who, f"Say {number}\n"))
    assert b.git.swap(ref.LOG_REF, b.tip, b.git.write(drafts, b.tip)[-1], "many")
    assert leave(b).sent == 1_200
    found = a.exchange()
    assert (found.state, found.received) == ("synced", 1_200)
    assert len(hub.texts()) == 1_200 and boxes(hub) == []


# Hosts that take no outboxes, or never let go of them: served another way, told once, and remembered.


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


# A sync among others that is killed at any step: the next one of anybody makes it good.


@pytest.mark.deep
def test_a_sync_that_is_killed_while_outboxes_wait_leaves_nothing_to_mend_by_hand(hub: Hub) -> None:
    """Before, between and after its own outbox, the fold and the deletion: each line is there once, no outbox stays."""
    a, b, c = clones(hub, "abc")
    said: list[str] = []
    there: set[str] = set()  # what has left its clone
    for step in range(60):
        said += [f"a{step:02d}", f"b{step:02d}"]
        leave(b, said[-1])
        a.add(said[-2])
        crowd(a)
        if not exchange_killed_at(a, step):
            break
        there.update(text for name in [ref.BRANCH, *boxes(hub)] for text in hub.texts(name))
        if step % 4 == 0:
            assert c.exchange().state in GOOD
            assert boxes(hub) == []
            assert there <= set(hub.texts()), "only what never left its clone may be missing"
    else:
        pytest.fail("the sync never came to its end")
    assert {"a00", "b00"} < there, "some died after their lines had left"
    assert step > 16, "it had too few steps to die at"
    for clone in (a, c, b, a):
        assert clone.exchange().state in GOOD
    assert boxes(hub) == []
    assert sorted(hub.texts()) == sorted(said)
    assert a.tip == b.tip == c.tip == hub.tip() and a.merges() == 0
    git("fsck", "--strict", cwd=hub.path)
