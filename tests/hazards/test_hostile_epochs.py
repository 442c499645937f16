"""Who can push replaces the log as it likes, with and without records that forget: nobody loses a line, and all end with one log."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests import templates
from tests.hazards.forging import LOG, Clone, Hub, line
from tests.hazards.test_forgotten_objects import SECRET, epoch, forget, git, lines, objects_with, rewrite

LOCAL = "refs/gitmem/log"
GENESIS = "45788d4cd5abb587813b901f8cf28b8f29c15c6f"


def _settle(root: Path) -> tuple[str, list[Clone]]:
    """Make the hub and the clones of a town; return the thread that was agreed on, and the clones."""
    hub = Hub(root)
    planck, curie = hub.acquainted()
    key = root / "other.key"
    key.write_text(f"gitmem-key ed25519 {(bytes([7]) * 32).hex()}\n")
    key.chmod(0o600)
    other = hub.clone("Bohr")
    planck.send("kept for ever")
    asked = planck.send("Agreed?", "--to", "Curie", "--intent", "PROPOSE", "--wu", "WU-7")
    for each in (planck, curie):
        each.sync()
    assert curie("reply", asked["signal_id"], "yes", "--agree").status == 0
    for each in (planck, curie):
        each.sync()
    env = {"GITMEM_KEY_FILE": str(key), "GITMEM_SESSION": ""}
    words = ("session", "start", "--name", "Mallory", "--agent-identity", "test:worker:mallory", "--json")
    env["GITMEM_SESSION"] = other(*words, env=env).json["session_id"]
    said = other("signal", "mine", "--json", env=env)
    assert said.status == 0, said
    assert other("sync", "--publish", env=env).status == 0
    done = other("forget", said.json["signal"]["signal_id"], "x", env=env)
    assert done.status == 0, done
    assert other("sync", "--publish", env=env).status == 0
    for each in (planck, curie):
        each.sync()
    return str(asked["thread_id"]), [planck, curie, other]


class Town:
    """Planck and Curie, and a third one with a key of its own, who has forgotten a line of its own."""

    def __init__(self, root: Path) -> None:
        self.hub = Hub(root)
        self.thread, clones = templates.copy("hub-of-epochs", root, _settle)
        for each in clones:
            each.path = root / each.path.name
        self.planck, self.curie, self.other = clones

    def sync(self) -> None:
        for each in (self.planck, self.curie):
            each.sync()

    def push(self, form: bytes, *, keep: Callable[[str], bool], parent: str = GENESIS) -> str:
        """Replace the shared log by a commit with a `format` and some segments of it."""
        at = self.other.path
        git(at, "fetch", "--quiet", "origin", f"+{LOG}:refs/taken")
        index = {**os.environ, "GIT_INDEX_FILE": str(at / ".git" / "forging")}
        self._git("read-tree", "refs/taken", env=index)
        for name in git(at, "ls-tree", "-r", "--name-only", "refs/taken").decode().split():
            if name.endswith(".jsonl") and not keep(name):
                self._git("update-index", "--force-remove", name, env=index)
        blob = git(at, "hash-object", "-w", "--stdin", input=form).decode().strip()
        self._git("update-index", "--cacheinfo", f"100644,{blob},format", env=index)
        tree = self._git("write-tree", env=index)
        commit = self._git("commit-tree", tree, "-p", parent, "-m", "Mallory was here", env=index)
        git(at, "push", "--quiet", "--force", "origin", f"{commit}:{LOG}")
        return commit

    def _git(self, *args: str, env: Mapping[str, str]) -> str:
        import subprocess

        done = subprocess.run(["git", *args], cwd=self.other.path, env=env, capture_output=True, timeout=60)
        assert done.returncode == 0, done
        return done.stdout.decode().strip()

    def mine(self, name: str) -> bool:
        """Whether a segment has lines of the third one."""
        return b"test:worker:mallory" in git(self.other.path, "cat-file", "blob", f"refs/taken:{name}")


@pytest.fixture
def town(tmp_path: Path) -> Town:
    return Town(tmp_path)


def settled(town: Town) -> str:
    """Sync until nothing is pushed any more; return the hub's tip."""
    for each in (town.planck, town.curie):
        each.sync()
    before = git(town.hub.path, "rev-parse", LOG)
    for each in (town.planck, town.curie, town.planck):
        each.sync()
    assert git(town.hub.path, "rev-parse", LOG) == before
    return before.decode().strip()


def test_a_valid_epoch_without_the_lines_of_others_takes_none(town: Town) -> None:
    """It has a record that forgets, by the writer of the line, and nothing else: all others put their lines on it."""
    before = lines(town.hub.path)
    agreed = town.planck("converged", town.thread, "--json").json["agreed_on"]
    town.push(b'{"format":1,"epoch":1,"turn":0,"publish":"refs/heads/gitmem"}\n', keep=town.mine)
    assert len(lines(town.hub.path)) < len(before)

    settled(town)

    assert epoch(town.hub.path) == epoch(town.planck.path, LOCAL) == 1
    lost = before - lines(town.hub.path)
    assert all(b'"salt"' in line and b"test:worker:mallory" in line for line in lost) and len(lost) <= 1
    assert town.curie("converged", town.thread, "--json").json["agreed_on"] == agreed
    for each in (town.planck, town.curie):
        assert each("doctor").status == 0, each("doctor")


@pytest.mark.parametrize("number", [2, 1_000_000_000, -1])
def test_an_epoch_without_its_records_is_left_out(town: Town, number: int) -> None:
    """As every invalid log is: all go on past it, and a repair brings the shared one back."""
    before = lines(town.hub.path)
    town.push(b'{"format":1,"epoch":%d,"turn":0,"publish":"refs/heads/gitmem"}\n' % number, keep=town.mine)
    for each in (town.planck, town.curie):
        answer = each("sync", "--json")
        assert (
            answer.status == 5 and f"its epoch is {number}; only 0 to 1 are valid" in answer.out
        ) or number < 0
        assert lines(each.path, LOCAL) >= before
    assert town.planck("sync", "--repair", "--yes").status == 0
    settled(town)
    assert epoch(town.hub.path) == 0 and lines(town.hub.path) >= before


def test_an_epoch_in_the_middle_of_a_history_is_left_out(town: Town) -> None:
    """Its history would still have the texts."""
    before = lines(town.hub.path)
    tip = git(town.hub.path, "rev-parse", LOG).decode().strip()
    town.push(b'{"format":1,"epoch":1}\n', keep=lambda name: True, parent=tip)
    for at in (town.planck, town.hub.clone("Newcomer")):
        answer = at("sync", "--json")
        assert answer.status == 5 and "its epoch is 1; only 0 is valid" in answer.out, answer
    assert town.planck("sync", "--repair", "--yes").status == 0
    settled(town)
    assert epoch(town.hub.path) == 0 and lines(town.hub.path) >= before


def rewritten(town: Town) -> str:
    """Forget a text and write the log anew, which all follow; return the old log, which the third one has kept as `refs/taken`."""
    id = town.planck.send(f"Use {SECRET}?")["signal_id"]
    town.sync()
    old = git(town.hub.path, "rev-parse", LOG).decode().strip()
    git(town.other.path, "fetch", "--quiet", "origin", f"+{LOG}:refs/taken")
    forget(town.planck, id)
    rewrite(town.planck)
    town.sync()
    return old


def test_an_old_log_that_is_pushed_again_is_read_and_not_followed(town: Town) -> None:
    """Its texts come back to no clone, its lines do, and who forgot them may replace it again."""
    old = rewritten(town)
    late = town.curie.send("written on the new log")["signal_id"]
    town.sync()
    before = lines(town.hub.path)
    git(town.other.path, "push", "--quiet", "--force", "origin", f"{old}:{LOG}")

    settled(town)

    for each in (town.planck, town.curie):
        assert objects_with(each.path, SECRET) == []
        assert lines(each.path, LOCAL) >= before
        assert each("show", late).status == 0
        assert each("doctor").status == 0, each("doctor")
    assert lines(town.hub.path) >= before
    rewrite(town.planck)
    settled(town)
    assert objects_with(town.hub.path, SECRET) == [] and lines(town.hub.path) >= before
    assert epoch(town.hub.path) == 1


def test_an_epoch_that_keeps_a_forgotten_text_can_be_followed_by_one_without(town: Town) -> None:
    """It is as high as the records that forget allow: its writer records it once more."""
    id = town.planck.send(f"Use {SECRET}?")["signal_id"]
    town.sync()
    forget(town.planck, id)
    town.sync()
    before = lines(town.hub.path)
    town.push(b'{"format":1,"epoch":2,"turn":0,"publish":"refs/heads/gitmem"}\n', keep=lambda name: True)
    town.sync()
    assert epoch(town.planck.path, LOCAL) == 2 and objects_with(town.planck.path, SECRET)
    assert "put back" in str(rewrite(town.planck))

    forget(town.planck, id)
    rewrite(town.planck)
    settled(town)

    for at in (town.hub.path, town.planck.path, town.curie.path):
        assert objects_with(at, SECRET) == []
    assert all(SECRET.encode() in line or b"mallory" in line for line in before - lines(town.hub.path))
    assert "forgotten before" in town.planck("forget", id, "x").out


def test_a_forgotten_text_that_is_put_back_can_be_taken_out_again(town: Town) -> None:
    """By its writer, as it stands in no new line: whoever had a copy pushed the old one."""
    id = town.planck.send(f"Use {SECRET}?")["signal_id"]
    town.sync()
    leaked = town.hub.line_of(id)
    forget(town.planck, id)
    town.sync()
    rewrite(town.planck)
    settled(town)
    for has_records in (True, False):  # for one epoch more, which another one's record allows
        town.hub.push(leaked)
        town.sync()
        assert objects_with(town.curie.path, SECRET)
        if not has_records:
            assert "put back" in str(rewrite(town.planck))
            forget(town.planck, id)
        rewrite(town.planck)
        settled(town)

        for at in (town.hub.path, town.planck.path, town.curie.path):
            assert objects_with(at, SECRET) == []


def test_a_merge_with_the_old_log_is_left_out(town: Town) -> None:
    """It goes on with the new one, and all that the old history has would be reached again."""
    old = rewritten(town)
    before = lines(town.hub.path)
    at = town.other.path
    git(at, "fetch", "--quiet", "origin", f"+{LOG}:refs/taken")
    merged = git(
        at, "commit-tree", "refs/taken^{tree}", "-p", "refs/taken", "-p", old, "-m", "Mallory was here"
    )
    git(at, "push", "--quiet", "origin", f"{merged.decode().strip()}:{LOG}")
    for each in (town.planck, town.curie):
        answer = each("sync", "--json")
        assert answer.status == 5 and "its epoch is 1; only 0 is valid" in answer.out, answer
        assert objects_with(each.path, SECRET) == []
    assert town.planck("sync", "--repair", "--yes").status == 0
    settled(town)
    assert objects_with(town.hub.path, SECRET) == [] and lines(town.hub.path) >= before


@pytest.mark.parametrize("form", [b'{"format":2,"epoch":0,"turn":0}\n', b'{"format":1,"epoch":5,"turn":0}\n'])
def test_a_log_that_cannot_be_read_is_not_replaced(town: Town, form: bytes) -> None:
    """It has lines that nobody here has seen."""
    id = town.planck.send(f"Use {SECRET}?")["signal_id"]
    town.sync()
    forget(town.planck, id)
    late = town.curie.send("written meanwhile")["signal_id"]
    town.curie.sync()
    before = lines(town.hub.path)
    assert any(late.encode() in line for line in before)
    town.push(form, keep=lambda name: True, parent=git(town.hub.path, "rev-parse", LOG).decode().strip())

    answer = town.planck("sync", "--forget", "--yes", "--json")

    assert answer.status == 5 and "was not replaced" in answer.out, answer
    assert lines(town.hub.path) >= before


def test_a_log_at_the_other_name_that_cannot_be_read_is_not_replaced(town: Town) -> None:
    """The log was moved from there, and somebody has pushed something else since."""
    id = town.planck.send(f"Use {SECRET}?")["signal_id"]
    town.sync()
    assert town.planck("setup", "--ref", "hidden").status == 0
    town.sync()
    town.hub.forge(line("signal", signal_id="sig-abcdabcdabcd", message="only on the branch"))
    before = lines(town.hub.path)
    town.push(b'{"format":1,"epoch":0,"turn":0}\n', keep=lambda name: True, parent="HEAD")
    forget(town.planck, id)

    answer = town.planck("sync", "--forget", "--yes", "--json")

    assert f"{LOG} there was not replaced" in answer.out, answer
    assert epoch(town.hub.path, LOCAL) == 1 and lines(town.hub.path) == before


def test_an_earlier_commit_of_the_new_log_is_moved_forward_again(town: Town) -> None:
    """As one of any log."""
    id = town.planck.send(f"Use {SECRET}?")["signal_id"]
    town.sync()
    forget(town.planck, id)
    rewrite(town.planck)
    first = git(town.hub.path, "rev-parse", LOG).decode().strip()
    town.curie.send("written on the new log")
    town.sync()
    before = lines(town.hub.path)
    git(town.hub.path, "update-ref", LOG, first)
    town.sync()
    assert lines(town.hub.path) == before
