"""Checkpoints: kept with what git says of the work tree, whatever state that is in."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from gitmem import records
from gitmem.agents import lifecycle
from gitmem.agents.delivery import delivery_lock
from gitmem.errors import UsageError
from gitmem.git.processes import GitTimeoutError
from gitmem.memory import checkpoints, context, edit, stored_nodes
from gitmem.memory.checkpoints import checkpoint
from gitmem.records import SecretError

from ..conftest import Git
from ..git_on_path import GitOnPath
from ..sandbox import SECOND, START, Clock, acting, open_store
from .desk import Desk, Lines, raw

TOKEN = "ghp_" + "a1B2" * 10


@pytest.mark.usefixtures("commits")
def test_a_checkpoint_says_how_far_the_work_is(desk: Desk, repo: Path) -> None:
    """What was said, and what git says, in numbers that are git's own."""
    (repo / "README").write_text("one\ntwo\n")
    (repo / "new.py").write_text("1\n")

    done = checkpoint(
        desk.store,
        desk.caller,
        "parser done",
        progress="3 of 5",
        next_steps="lexer; tests",
        trigger="pre-compact",
    )

    node = desk.node(done.node.id)
    assert (node.type, node.lifecycle, node.content) == ("checkpoint", "wu", "Checkpoint: parser done")
    assert (node.wu_id, node.session_id) == ("WU-7", desk.session.session_id)
    assert node.metadata == {
        "progress": "3 of 5",
        "nextSteps": "lexer; tests",
        "trigger": "pre-compact",
        "gitDiffStat": " README | 3 ++-\n 1 file changed, 2 insertions(+), 1 deletion(-)\n 1 untracked file",
    }
    assert done.commit
    assert done.warnings == []
    assert done.next == ["gitmem mem recover --wu WU-7", f"gitmem show {node.id}"]


def test_without_a_work_unit_it_is_the_session_s(repo: Path) -> None:
    """With one it outlives the session, so that the next one on that unit finds it."""
    desk = Desk(repo, name="Planck")

    mine = checkpoint(desk.store, desk.caller, "x", diff_stat=False)
    named = checkpoint(desk.store, desk.caller, "x", wu="WU-8", diff_stat=False)

    assert (mine.node.lifecycle, mine.node.wu_id) == ("session", None)
    assert mine.next[0] == "gitmem mem recover"
    assert (named.node.lifecycle, named.node.wu_id) == ("wu", "WU-8")
    assert mine.node.metadata == {}
    desk.store.close()


@pytest.mark.usefixtures("commits")
def test_progress_or_next_steps_stand_for_a_note(desk: Desk) -> None:
    """One of the three must say something."""
    assert checkpoint(desk.store, desk.caller, progress="half").node.content == "Checkpoint: half"
    assert (
        checkpoint(desk.store, desk.caller, " ", next_steps="the rest").node.content == "Checkpoint: the rest"
    )
    before = desk.tip()
    for given in ({}, {"progress": " "}, {"trigger": "x"}):
        with pytest.raises(UsageError, match="Nothing was written"):
            checkpoint(desk.store, desk.caller, "\n", **given)
    assert desk.tip() == before


def test_a_clean_work_tree_has_no_diff_stat(desk: Desk) -> None:
    """Nor has a checkpoint that asks for none."""
    assert "gitDiffStat" not in checkpoint(desk.store, desk.caller, "clean").node.metadata


def test_the_user_s_index_stays_as_it_is(desk: Desk, repo: Path) -> None:
    """A file that was only touched would make `git diff` write it."""
    os.utime(repo / "README", (1, 1))
    before = (repo / ".git" / "index").read_bytes()

    assert "gitDiffStat" not in checkpoint(desk.store, desk.caller, "touched").node.metadata
    assert (repo / ".git" / "index").read_bytes() == before


def test_names_of_files_upset_no_terminal(desk: Desk, repo: Path, git: Git) -> None:
    """Control characters and directions of writing are escaped, by git or by us."""
    (repo / "README").unlink()
    (repo / "a\x1b[31m\n\u202eb").write_text("1\n")
    git("add", "--all", cwd=repo)

    stat = str(checkpoint(desk.store, desk.caller, "x").node.metadata["gitDiffStat"])

    assert len(stat.split("\n")) == 3
    assert "\x1b" not in stat
    assert "\u202e" not in stat


def test_what_git_can_t_say_is_left_out_and_said(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checkpoint is worth more than its diff stat: a hanging disk must not cost it."""

    def hangs(git_dir: str, folder: str, *, seconds: float) -> None:
        raise GitTimeoutError("git status did not end within 30 seconds and was stopped.")

    monkeypatch.setattr(desk.store.git, "work_tree", hangs)

    done = checkpoint(desk.store, desk.caller, "x")

    assert done.warnings == [
        "The diff stat is omitted: git status did not end within 30 seconds and was stopped."
    ]
    assert desk.node(done.node.id).metadata == {}


@pytest.mark.usefixtures("commits")
def test_a_secret_is_refused_but_a_file_s_name_only_costs_the_stat(desk: Desk, repo: Path, git: Git) -> None:
    """In each of the texts; what git says was not chosen by who writes."""
    before = desk.tip()
    for given in ({"note": TOKEN}, {"note": "x", "progress": TOKEN}, {"note": "x", "next_steps": TOKEN}):
        with pytest.raises(SecretError):
            checkpoint(desk.store, desk.caller, **given)
    assert desk.tip() == before
    (repo / TOKEN).write_text("1\n")
    git("add", TOKEN, cwd=repo)

    done = checkpoint(desk.store, desk.caller, "x")

    assert done.node.metadata == {}
    assert "GitHub token" in done.warnings[0]


def test_a_bare_repository_has_no_work_tree(repo: Path, tmp_path: Path, git: Git) -> None:
    """A checkpoint can be written there too."""
    git("clone", "--quiet", "--bare", str(repo), str(tmp_path / "bare"))
    desk = Desk(tmp_path / "bare", name="Planck")

    done = checkpoint(desk.store, desk.caller, "x")

    assert done.node.metadata == {}
    assert done.warnings == []
    desk.store.close()


def test_before_the_first_commit_the_index_counts(tmp_path: Path, git: Git) -> None:
    """Everything that was added is on top of nothing."""
    git("init", "--quiet", "-b", "main", str(tmp_path / "new"))
    (tmp_path / "new" / "a").write_text("1\n")
    git("add", "a", cwd=tmp_path / "new")
    desk = Desk(tmp_path / "new", Clock(), name="Planck")

    done = checkpoint(desk.store, desk.caller, "x")

    assert str(done.node.metadata["gitDiffStat"]).endswith(" 1 file changed, 1 insertion(+)")
    assert done.node.head is None
    desk.store.close()
    open_store(tmp_path / "new", desk.clock).close()


def test_it_has_what_else_its_writer_gives(desk: Desk) -> None:
    """As there; the entries of its own options and of git win."""
    done = checkpoint(
        desk.store,
        desk.caller,
        "ports done",
        progress="3 of 5",
        metadata={"milestone": "ports-complete", "progress": "of another"},
        diff_stat=False,
    )

    assert desk.node(done.node.id).metadata == {"milestone": "ports-complete", "progress": "3 of 5"}


def test_a_peer_s_automatic_checkpoints_of_a_work_unit_are_not_all_read() -> None:
    """Peers choose their number; the last ones are read."""
    most = stored_nodes.AUTOMATIC_MAX
    fields = {
        "type": "checkpoint", "lifecycle": "wu", "content": "x", "wu_id": "WU-7",
        "sender_identity": "test:worker:raw", "metadata": {"trigger": "auto-pre-compact"},
    }  # fmt: skip
    lines = Lines(
        records.line("node", START + number, {**fields, "id": f"mem-{number:04}"})
        for number in range(most + 3)
    )

    found = stored_nodes.automatic_ids(lines, None, "wu-7")  # type: ignore[arg-type]

    assert found == [f"mem-{number:04}" for number in range(most + 2, 2, -1)]


def test_a_work_tree_that_git_is_slow_in_does_not_prevent_an_automatic_checkpoint(
    desk: Desk, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook has few seconds: what is known without git is saved."""
    (repo / "new.py").write_text("1\n")
    GitOnPath(tmp_path, monkeypatch).does("exec sleep 20", to="status")
    lifecycle.change(desk.store, desk.caller, activity="rounding")

    began = time.monotonic()
    own = checkpoints.write_automatic(
        desk.store, acting(desk.store, desk.session), "pre-compact", seconds=0.1
    )
    assert time.monotonic() - began < 10

    assert own is not None and own.content == "Checkpoint: rounding"
    assert "gitDiffStat" not in own.metadata


def test_one_hook_at_a_time_saves_the_state_of_a_session(desk: Desk) -> None:
    """Two would both supersede the same checkpoint, and leave two."""
    lifecycle.change(desk.store, desk.caller, activity="rounding")
    caller = acting(desk.store, desk.session)
    with delivery_lock(desk.store, f"checkpoint {caller.session_id}"):
        assert checkpoints.write_automatic(desk.store, caller, "subagent-stop") is None

    assert checkpoints.write_automatic(desk.store, caller, "subagent-stop") is not None


def saved_line(desk: Desk) -> str:
    """The line of a recovered context about the saved state."""
    text = context.recover(desk.store, desk.caller, roster=False).block
    (line,) = (line for line in text.splitlines() if "(saved " in line)
    return line


def test_a_peer_s_automatic_checkpoint_of_the_future_is_not_the_saved_state(desk: Desk) -> None:
    """Whoever writes a time far ahead would stay the last one for as long."""
    lifecycle.change(desk.store, desk.caller, activity="rounding")
    own = checkpoints.write_automatic(desk.store, acting(desk.store, desk.session), "pre-compact")
    assert own is not None
    at = desk.store.now()
    year = 365 * 24 * 3600 * 1_000_000
    raw(desk.store, "node", at=at + year, type="checkpoint", content="Checkpoint: stop working", wu_id="WU-7",
        metadata={"trigger": "auto-pre-compact"})  # fmt: skip

    assert own.id in saved_line(desk)


def test_a_superseded_automatic_checkpoint_is_not_the_saved_state(desk: Desk) -> None:
    """Also if it was changed later than the one that supersedes it."""
    lifecycle.change(desk.store, desk.caller, activity="rounding")
    old = checkpoints.write_automatic(desk.store, acting(desk.store, desk.session), "pre-compact")
    lifecycle.change(desk.store, acting(desk.store, desk.session), activity="naming")
    new = checkpoints.write_automatic(desk.store, acting(desk.store, desk.session), "pre-compact")
    assert old is not None and new is not None
    desk.clock.forward(SECOND)
    desk.change(old.id, tags=["later"])

    assert new.id in saved_line(desk)
    assert stored_nodes.automatic_ids(desk.store, desk.session.session_id, None) == [new.id]


def test_a_peer_s_note_of_the_future_hides_no_change(desk: Desk) -> None:
    """A node about the session that others wrote, with any time, does not stand for the session's own notes."""
    desk.write("one")
    assert checkpoints.write_automatic(desk.store, desk.caller, "pre-compact") is None  # nothing to save yet
    lifecycle.change(desk.store, desk.caller, activity="rounding")
    caller = acting(desk.store, desk.session)
    assert checkpoints.write_automatic(desk.store, caller, "pre-compact") is not None
    own = desk.session.session_id
    for number, (hours, sender) in enumerate(((12, None), (24 * 365, None), (24 * 365, own))):
        raw(desk.store, "node", at=desk.store.now() + hours * 3600 * 1_000_000, id=f"mem-raw{number}",
            session_id=own, sender_session=sender)  # fmt: skip
    assert checkpoints.write_automatic(desk.store, caller, "pre-compact") is None

    desk.clock.forward(SECOND)
    edit.create(desk.store, caller, "two")
    assert checkpoints.write_automatic(desk.store, caller, "pre-compact") is not None
