"""Outboxes: clones that push at the same time lose nothing, wait for nobody, and leave nothing behind."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gitmem.git.objects import Draft, Signature
from gitmem.log import ref
from gitmem.sync.remote import Remote
from tests.clones import Clone, Hub, git, texts
from tests.recorded_network import BRANCHES, OUTBOX, RecordedNetwork, cut, once

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
