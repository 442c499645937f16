"""After `gitmem forget` and a sync, no object that a ref or a reflog of a clone or the hub reaches has the text; all else stays."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.hazards.forging import LOG, Clone, Hub

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
    return [oid.decode() for oid in oids if text.encode() in git(at, "cat-file", "-p", oid.decode())]


def lines(at: Path, log: str = LOG) -> set[bytes]:
    names = git(at, "ls-tree", "-r", "--name-only", log).decode().split()
    contents = [git(at, "cat-file", "blob", f"{log}:{name}") for name in names if name.endswith(".jsonl")]
    return {line for content in contents for line in content.splitlines()}


def epoch(at: Path, log: str = LOG) -> int:
    return int(json.loads(git(at, "cat-file", "blob", f"{log}:format"))["epoch"])


def forget(at: Clone, id: str) -> None:
    assert at("forget", id, "--reason", "A leaked key.").status == 0


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
    assert "Nothing was forgotten" in str(rewrite(curie))
    assert objects_with(hub.path, SECRET) == []
