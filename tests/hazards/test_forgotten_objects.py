"""After `gitmem forget` and a sync, no object that a ref or a reflog of a clone or the hub reaches has the text; all else stays."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.hazards.forging import LOG, Clone, Hub
from tests.sandbox import committed

SECRET = "hunter2-is-the-password"
Ring = tuple[Hub, Clone, Clone]


@pytest.fixture
def ring(tmp_path: Path) -> Ring:
    """A hub, and the clones of Planck and Curie, who are one user."""
    hub = Hub(tmp_path)
    return hub, *hub.acquainted()


def git(at: Path, *args: str, input: bytes = b"") -> bytes:
    done = subprocess.run(["git", *args], cwd=at, input=input, capture_output=True, timeout=60)
    assert done.returncode == 0, done
    return done.stdout


def objects_with(at: Path, text: str) -> list[str]:
    """The objects that refs and reflogs reach and whose content has a text."""
    listed = git(at, "rev-list", "--objects", "--all", "--reflog").split(b"\n")
    oids = sorted({row.split(b" ")[0] for row in listed if row})
    said, found = git(at, "cat-file", "--batch", input=b"".join(oid + b"\n" for oid in oids)), []
    for oid in oids:
        head, _, said = said.partition(b"\n")
        size = int(head.split()[2])
        found += [oid.decode()] if text.encode() in said[:size] else []
        said = said[size + 1 :]
    return found


def lines(at: Path, log: str = LOG) -> set[bytes]:
    return {*committed(at, log)}


def epoch(at: Path, log: str = LOG) -> int:
    return int(json.loads(git(at, "cat-file", "blob", f"{log}:format"))["epoch"])


def forget(at: Clone, id: str) -> None:
    assert at("forget", id, "A leaked key.").status == 0


def rewrite(at: Clone) -> Any:
    answer = at("sync", "--forget", "--yes", "--json")
    assert answer.status == 0, answer
    return answer.json


def answers(at: Clone, thread: str) -> list[Any]:
    """What folds say, without the commit that was read."""
    found = [
        at("converged", thread, "--json").json,
        at("roster", "--json").json,
        at("inbox", "--peek", "Curie", "--json").json,
    ]
    return [{name: value for name, value in each.items() if name != "commit"} for each in found]


def test_no_object_of_hub_and_clones_has_the_text_and_all_else_stays(ring: Ring) -> None:
    """One replaces the hub's log, the other follows."""
    hub, planck, curie = ring
    asked = planck.send(f"Use {SECRET}?", "--to", "Curie", "--intent", "PROPOSE", "--wu", "WU-7")
    for each in (planck, curie):
        each.sync()
    assert curie("reply", asked["signal_id"], "yes", "--agree").status == 0
    for each in (curie, planck):
        each.sync()
    forget(planck, asked["signal_id"])
    for each in (planck, curie):
        each.sync()
    before, said = lines(hub.path), [answers(each, asked["thread_id"]) for each in (planck, curie)]
    assert objects_with(hub.path, SECRET)

    refused = planck("sync", "--forget", "--json")
    assert (refused.status, refused.json["error"]["code"]) == (2, "forget-needs-yes"), refused
    rewrite(planck)
    curie.sync()

    for at in (hub.path, planck.path, curie.path):
        assert objects_with(at, SECRET) == []
    after = lines(hub.path)
    gone = [line for line in before - after if SECRET.encode() in line]
    assert len(gone) == 1 and before - after == set(gone) and len(after - before) == 1
    assert epoch(hub.path) == 1
    assert [answers(each, asked["thread_id"]) for each in (planck, curie)] == said
    for each in (planck, curie):
        assert lines(each.path, "refs/gitmem/log") == after
        assert each("doctor").status == 0, each("doctor")
        assert each("verify").status == 0
        each.send("later")
        each.sync()
    assert "has no forgotten texts" in str(rewrite(curie))
    assert objects_with(hub.path, SECRET) == []


def test_doctor_says_what_git_still_has_and_until_when(ring: Ring) -> None:
    """A gc removes it from the disk; a branch of the user's own is the user's."""
    _, planck, curie = ring
    id = planck.send(f"Use {SECRET}?")["signal_id"]
    for each in (planck, curie):
        each.sync()
    git(curie.path, "branch", "gitmem", "refs/gitmem/log")
    forget(planck, id)
    rewrite(planck)
    curie.sync()
    for each in (planck, curie):
        assert "gc.pruneExpire" in each("doctor", "--json").out
    assert "refs/heads/gitmem is at a log that still has forgotten texts" in curie("doctor", "--json").out
    git(curie.path, "branch", "-D", "gitmem")
    for each in (planck, curie):
        git(each.path, "gc", "--quiet", "--prune=now")
        assert SECRET.encode() not in git(each.path, "cat-file", "--batch-all-objects", "--batch")
        assert "gc.pruneExpire" not in each("doctor", "--json").out
        found = subprocess.run(["grep", "-rl", SECRET, ".git"], cwd=each.path, capture_output=True).stdout
        assert found == b""


def test_a_clone_that_was_away_loses_no_line_and_brings_no_text_back(ring: Ring) -> None:
    """It has the old history, lines that it never sent, and what an ordinary `git fetch` brought."""
    hub, planck, curie = ring
    id = planck.send(f"Use {SECRET}?", "--to", "Curie")["signal_id"]
    for each in (planck, curie):
        each.sync()
    git(curie.path, "fetch", "--quiet")
    assert git(curie.path, "rev-parse", "refs/remotes/origin/gitmem")
    mine = [curie.send(f"written offline {number}")["signal_id"] for number in range(3)]
    assert curie("reply", id, "read offline").status == 0
    forget(planck, id)
    rewrite(planck)
    theirs = planck.send("written meanwhile")["signal_id"]
    planck.sync()
    expected = {
        line for line in lines(hub.path) | lines(curie.path, "refs/gitmem/log") if SECRET.encode() not in line
    }

    curie.sync()
    planck.sync()

    for at in (hub.path, planck.path, curie.path):
        assert objects_with(at, SECRET) == []
        assert lines(at, LOG if at == hub.path else "refs/gitmem/log") >= expected
    for each in (planck, curie):
        for signal in (*mine, theirs):
            assert each("show", signal).status == 0
        assert each("doctor").status == 0, each("doctor")


def test_an_outbox_on_the_old_log_is_read_and_deleted(ring: Ring) -> None:
    """It was pushed before its writer saw the new one, and reaches the old history."""
    hub, planck, curie = ring
    id = planck.send(f"Use {SECRET}?", "--to", "Curie")["signal_id"]
    for each in (planck, curie):
        each.sync()
    kept = curie.send("in the outbox")["signal_id"]
    assert curie("log").status == 0
    old = git(curie.path, "rev-parse", "refs/gitmem/log").decode().strip()
    forget(planck, id)
    rewrite(planck)
    git(curie.path, "push", "--quiet", "origin", f"{old}:refs/gitmem/outbox/{old}")
    assert objects_with(hub.path, SECRET)

    for each in (planck, planck):
        each.sync()

    assert objects_with(hub.path, SECRET) == [] and objects_with(planck.path, SECRET) == []
    assert planck("show", kept).status == 0


def test_a_text_that_was_never_sent_never_leaves(ring: Ring) -> None:
    """Nor do the messages of the commits that quote it."""
    hub, planck, curie = ring
    id = planck.send(f"Use {SECRET}?", "--to", "Curie")["signal_id"]
    other = planck.send("something else", "--to", "Curie")["signal_id"]
    assert planck("log").status == 0
    forget(planck, id)
    reflog = planck.path / ".git/logs/refs/gitmem/log"
    past = reflog.read_bytes()
    for each in (planck, curie):
        each.sync()
    assert objects_with(hub.path, SECRET) == [] and objects_with(curie.path, SECRET) == []
    assert curie("show", other).status == 0
    assert "(forgotten)" in curie("show", id).out
    assert objects_with(planck.path, SECRET) == []
    reflog.write_bytes(past + reflog.read_bytes())  # as if the sync had been killed in between
    assert planck("doctor", "--fix").status == 0, planck("doctor")
    assert not any(SECRET.encode() in line for line in lines(planck.path, "refs/gitmem/log"))


def test_the_name_that_the_log_had_before_lets_go_of_the_text(ring: Ring) -> None:
    """The log was moved to another ref of the hub, which still has the old one."""
    hub, planck, curie = ring
    id = planck.send(f"Use {SECRET}?", "--to", "Curie")["signal_id"]
    for each in (planck, curie):
        each.sync()
    assert planck("setup", "--ref", "hidden").status == 0
    for each in (planck, curie):
        each.sync()
    assert git(hub.path, "rev-parse", LOG) and git(hub.path, "rev-parse", "refs/gitmem/log")
    forget(planck, id)
    rewrite(planck)
    curie.sync()
    for at in (hub.path, planck.path, curie.path):
        assert objects_with(at, SECRET) == []


def test_a_hub_that_refuses_is_named_with_what_to_do(ring: Ring) -> None:
    """Nothing changes here either, until it allows the push once."""
    hub, planck, curie = ring
    id = planck.send(f"Use {SECRET}?", "--to", "Curie")["signal_id"]
    planck.sync()
    forget(planck, id)
    git(hub.path, "config", "receive.denyNonFastForwards", "true")
    answer = planck("sync", "--forget", "--yes", "--json")
    assert answer.status == 5
    assert "receive.denyNonFastForwards" in answer.json["remotes"][0]["message"]
    assert "gitmem sync --forget --yes origin" in answer.json["next"]
    assert epoch(planck.path, "refs/gitmem/log") == epoch(hub.path) == 0
    planck.sync()
    git(hub.path, "config", "receive.denyNonFastForwards", "false")
    rewrite(planck)
    curie.sync()
    for at in (hub.path, planck.path, curie.path):
        assert objects_with(at, SECRET) == []


def test_a_clone_without_a_remote_rewrites_its_own_log(tmp_path: Path) -> None:
    """Its refs and reflogs let go of the text."""
    path = tmp_path / "alone"
    path.mkdir()
    git(path, "init", "--quiet")
    alone = Clone(path, "Planck")
    id = alone.send(f"Use {SECRET}?")["signal_id"]
    other = alone.send("something else")["signal_id"]
    assert alone("log").status == 0
    forget(alone, id)
    assert objects_with(path, SECRET)
    assert alone("sync", "--forget").status == 2
    rewrite(alone)
    assert objects_with(path, SECRET) == []
    assert alone("show", other).status == 0
    assert "(forgotten)" in alone("show", id).out
    assert alone("doctor").status == 0, alone("doctor")
    assert "has no forgotten texts" in rewrite(alone)["message"]
    third = alone.send(f"again {SECRET}")["signal_id"]
    assert alone("log").status == 0
    forget(alone, third)
    rewrite(alone)
    assert objects_with(path, SECRET) == []
    assert epoch(path, "refs/gitmem/log") == 2


def test_two_clones_that_rewrite_at_once_end_with_one_log(ring: Ring) -> None:
    """The second starts again on the log of the first; neither text is left."""
    hub, planck, curie = ring
    one = planck.send(f"Use {SECRET} one")["signal_id"]
    two = curie.send(f"Use {SECRET} two")["signal_id"]
    for each in (planck, curie, planck):
        each.sync()
    forget(curie, two)  # not sent
    forget(planck, one)
    rewrite(planck)
    assert [SECRET.encode() in line for line in lines(hub.path)].count(True) == 1
    rewrite(curie)
    planck.sync()
    assert epoch(hub.path) == 2
    for at in (hub.path, planck.path, curie.path):
        assert objects_with(at, SECRET) == []
    tips = {
        git(at, "rev-parse", name)
        for at, name in ((hub.path, LOG), (planck.path, "refs/gitmem/log"), (curie.path, "refs/gitmem/log"))
    }
    assert len(tips) == 1


def test_a_shallow_clone_follows_and_rewrites(ring: Ring, tmp_path: Path) -> None:
    """It does not know the old history's beginning."""
    hub, planck, _ = ring
    id = planck.send(f"Use {SECRET}?")["signal_id"]
    planck.sync()
    path = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth=1", "--no-single-branch", f"file://{hub.path}", str(path))
    shallow = Clone(path, "Bohr")
    mine = shallow.send("from a shallow clone")["signal_id"]
    forget(planck, id)
    rewrite(planck)
    shallow.sync()
    assert objects_with(path, SECRET) == []
    planck.sync()
    assert planck("show", mine).status == 0
    other = shallow.send(f"mine, {SECRET}")["signal_id"]
    shallow.sync()
    forget(shallow, other)
    rewrite(shallow)
    planck.sync()
    for at in (hub.path, planck.path, path):
        assert objects_with(at, SECRET) == []
    assert epoch(hub.path) == 2
