"""What worktrees of a clone have changed without a claim: who is told, who is shown, and limits against large repositories."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from gitmem.agents import delivery, edited_paths, lifecycle, roster
from gitmem.store import Store
from gitmem.work import claim_work, claims, edit_guard
from tests.git_on_path import GitOnPath
from tests.sandbox import MINUTE, Agent, Clock, carry, open_store, worktree

from .conftest import BOHR, CURIE, PLANCK


def write(where: Path, *names: str) -> None:
    for name in names:
        path = where / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("changed")


@pytest.fixture
def other(repo: Path, tmp_path: Path, clock: Clock, store: Store) -> Store:
    """The store in a second worktree of the clone."""
    return open_store(worktree(repo, tmp_path / "linked"), clock)


def test_two_sessions_that_edit_the_same_path_are_told_once(
    store: Store, other: Store, repo: Path, clock: Clock
) -> None:
    """Each with the other's name and worktree; not about other paths, ignored ones, or those that somebody has claimed."""
    bohr, curie = Agent(store, BOHR).caller, Agent(other, CURIE).caller
    linked = Path(other.repo.worktree or "")
    (repo / ".git" / "info").mkdir(exist_ok=True)
    (repo / ".git" / "info" / "exclude").write_text("*.log\n")
    write(repo, "src/a.py", "src/only.py", "x.log", "src/claimed.py")
    write(linked, "src/a.py", "docs/only.md", "x.log", "src/claimed.py")
    claim_work.claim_paths(store, bohr, ["src/claimed.py"])

    assert edit_guard.note_overlaps(store) == 0
    assert edit_guard.note_overlaps(other) == 2
    (ours, theirs) = (
        next(
            each for each in claim_work.at_command(place, who) if each.startswith("also edited, unclaimed: ")
        )
        for place, who in ((store, bohr), (other, curie))
    )
    assert ours.startswith("also edited, unclaimed: src/a.py, by ") and "in the worktree linked" in ours
    assert f"--to {CURIE}" in ours and f"--to {BOHR}" in theirs
    assert [edit_guard.note_overlaps(each) for each in (store, other, store)] == [0, 0, 0]
    assert os.path.lexists(os.path.join(store.repo.state, "flags", bohr.session_id or ""))
    write(linked, "src/only.py")
    assert edit_guard.note_overlaps(other) == 2


@pytest.mark.parametrize("noticed", [True, False])
def test_who_has_changed_a_path_is_told_of_a_claim_made_later_and_so_is_who_claims_it(
    store: Store, other: Store, clock: Clock, noticed: bool
) -> None:
    """Each once, whether or not a hook has noticed the change. Nobody is told of other paths, shared claims, and claims of its own agent."""
    bohr, curie, again = Agent(store, BOHR).caller, Agent(other, CURIE).caller, Agent(store, CURIE).caller
    write(Path(other.repo.worktree or ""), "src/a.py", "src/shared.py", "src/mine.py", "docs/b.md")
    if noticed:
        edit_guard.note_overlaps(other)
    clock.forward(MINUTE)

    answers = [
        claim_work.claim_paths(store, bohr, ["src/shared.py"], shared=True),
        claim_work.claim_paths(store, again, ["src/mine.py"]),
        claim_work.claim_paths(store, bohr, ["tests"]),
    ]
    made = claim_work.claim_paths(store, bohr, ["src/a*"], reason="rounding")
    claims.standing(other)

    name = curie.name
    mine = f"edited before your claim {made.claim_id} and not committed: src/a.py by {name} in the worktree linked. Agree before you change them."
    assert not any("edited before" in text for each in answers for text in each.warnings)
    assert mine in made.warnings
    (theirs,) = claim_work.at_command(other, curie)
    since = claim_work.list_claims(store).claims[-1].since
    assert theirs.startswith(
        f"claimed: {bohr.name} claims src/a.py since {since[:10]} {since[11:16]} UTC; you have changed it since your last commit. "
    )
    assert f"--to {BOHR}" in theirs
    clock.forward(2 * MINUTE)
    for place, who in ((store, bohr), (other, curie), (store, again)):
        claims.standing(place)
        assert claim_work.at_command(place, who) == []


def test_the_changes_of_worktrees_are_listed_once_for_a_claim(
    store: Store, other: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is told asks the index while it notes the claim: that look does not begin to note it again."""
    bohr, curie = Agent(store, BOHR).caller, Agent(other, CURIE).caller
    write(Path(other.repo.worktree or ""), "src/a.py")
    git = GitOnPath(tmp_path, monkeypatch)
    claim_work.claim_paths(store, bohr, ["src/a.py"])
    assert 0 < sum(" status " in args for _, args in git.started) <= 4
    assert len(claim_work.at_command(other, curie)) == 1


def test_what_a_claimer_has_perhaps_changed_itself_is_nobody_elses_edit(store: Store, repo: Path) -> None:
    """Two sessions work in one worktree, and no hook has noted which of them edited the file. Once one has, its session is told."""
    bohr, curie = Agent(store, BOHR).caller, Agent(store, CURIE).caller
    write(repo, "src/a.py", "src/b.py")
    assert claim_work.claim_paths(store, bohr, ["src/a.py"]).warnings == []
    edited_paths.update_flags(store)
    edited_paths.note_edit(store, curie.session_id or "", ["src/b.py"])
    assert len(claim_work.claim_paths(store, bohr, ["src/b.py"]).warnings) == 1
    (told,) = claim_work.at_command(store, curie)
    assert "src/b.py" in told and "src/a.py" not in told


def test_who_has_changed_a_path_is_told_of_a_claim_that_arrives(store: Store, far: Store, repo: Path) -> None:
    """From another clone; in a worktree of two sessions only who edited the path, if a hook noted that. Its text is data."""
    bohr, planck, curie = (
        Agent(store, BOHR).caller,
        Agent(store, PLANCK).caller,
        Agent(far, CURIE, name="Ada").caller,
    )
    write(repo, "src/a.py", "src/\x1b[31mb.py")
    edited_paths.update_flags(store)
    edited_paths.note_edit(store, bohr.session_id or "", ["src/a.py", "src/\x1b[31mb.py"])
    claim_work.claim_paths(far, curie, ["src"])
    carry(store, far)
    claims.standing(store)
    assert claim_work.at_command(store, planck) == []
    (told,) = claim_work.at_command(store, bohr)
    assert "src/a.py" in told and "you have changed them" in told
    assert told.isprintable()


def test_what_sessions_edit_is_listed_until_it_is_committed(
    store: Store, other: Store, repo: Path, clock: Clock
) -> None:
    """In `claim list --edited`, `claim list PATH` of somebody else, and the roster; without what the session has claimed."""
    bohr, curie = Agent(store, BOHR).caller, Agent(other, CURIE).caller
    write(repo, "src/a.py", "docs/b.md")
    edit_guard.note_overlaps(store)

    (row,) = claim_work.list_claims(store, edited=True).edits
    assert (row.session_id, row.paths, row.worktree) == (bohr.session_id, ["docs/b.md", "src/a.py"], "repo")
    assert claim_work.list_claims(store).edits == []
    answer = claim_work.check_paths(other, curie, ["src"])
    assert (answer.free, [each.paths for each in answer.edits]) == (True, [["src/a.py"]])
    assert claim_work.check_paths(store, bohr, ["src"]).edits == []
    edits = {each["session_id"]: each.get("edits") for each in roster.roster(store).sessions}
    assert edits == {bohr.session_id: ["docs/b.md", "src/a.py"], curie.session_id: None}
    claim_work.claim_paths(store, bohr, ["src"])
    assert [each.paths for each in claim_work.list_claims(store, edited=True).edits] == [["docs/b.md"]]

    for name in ("src/a.py", "docs/b.md"):
        (repo / name).unlink()
    edit_guard.note_overlaps(store)
    assert claim_work.list_claims(store, edited=True).edits == []


def test_in_a_shared_worktree_only_who_edited_a_path_is_named(store: Store, other: Store, repo: Path) -> None:
    bohr, second = Agent(store, BOHR).caller, Agent(store, "a:b:second").caller
    Agent(other, CURIE)
    edited_paths.update_flags(store)
    assert edited_paths.is_shared(store.repo) and not edited_paths.is_shared(other.repo)
    write(repo, "src/a.py", "src/b.py")
    write(Path(other.repo.worktree or ""), "src/a.py")
    edited_paths.note_edit(store, second.session_id or "", ["src/a.py"])
    edit_guard.note_overlaps(store)

    assert edited_paths.by_session(store) == {second.session_id: ["src/a.py"]}
    edit_guard.note_overlaps(other)
    assert claim_work.at_command(store, bohr) == []
    assert len(claim_work.at_command(store, second)) == 1


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'{"worktree": 1}', b'{"worktree":"/","at":"x","paths":{},"more":0}',
                                     b'{"worktree":"/","at":1,"paths":[1],"more":0}', b"[" * 100_000])  # fmt: skip
def test_a_damaged_file_is_written_again(store: Store, other: Store, repo: Path, content: bytes) -> None:
    Agent(store, BOHR), Agent(other, CURIE)
    write(repo, "a.py")
    edit_guard.note_overlaps(store)
    for name in ("in-.git", "in-linked", "in-unknown"):
        Path(store.repo.state, "edits", name).write_bytes(content)
    assert edited_paths.by_session(store) == {}
    edit_guard.note_overlaps(store)
    assert [*edited_paths.by_session(store).values()] == [["a.py"]]


def test_names_of_files_act_on_no_terminal_and_no_model(store: Store, other: Store, repo: Path) -> None:
    """Line ends, control characters, imitation tags and bytes that are no text."""
    bohr = Agent(store, BOHR).caller
    Agent(other, CURIE)
    names = ["a\nb\x1b[2J<system-reminder>.py", os.fsdecode(b"\xff\xfe.py"), "c'; rm -rf $(x) `y`"]
    write(repo, *names)
    write(Path(other.repo.worktree or ""), *names)
    edit_guard.note_overlaps(store)
    assert edit_guard.note_overlaps(other) == 2
    (line,) = claim_work.at_command(store, bohr)
    assert "\x1b" not in line and "<system-reminder>" not in line
    assert sorted(edited_paths.by_session(store)[bohr.session_id or ""]) == sorted(names)


def test_more_changes_than_are_kept_cost_little_and_stop_nothing(
    store: Store, other: Store, repo: Path, clock: Clock
) -> None:
    """Beyond a limit paths are counted; git that does not answer in time is not asked again for a while."""
    Agent(store, BOHR)
    (repo / "many").mkdir()
    for number in range(2_500):
        (repo / "many" / f"{number}.txt").touch()
    begin = time.process_time()
    edit_guard.note_overlaps(store)
    (found,) = edited_paths.worktrees(store)
    assert (len(found.paths), found.more) == (edited_paths.PATHS_MAX, 500)
    assert time.process_time() - begin < 5

    assert edited_paths.note(store, seconds=0.000_001) is not None
    (found,) = edited_paths.worktrees(store)
    assert (len(found.paths), found.more) == (edited_paths.PATHS_MAX, -1)
    assert edited_paths.note(store) is None
    clock.forward(edited_paths.SLOW_MICROS + 1)
    found_again = edited_paths.note(store)
    assert found_again is not None and found_again.more == 500


def test_the_flags_say_who_wants_to_know(store: Store, other: Store) -> None:
    """Nobody, with one session; sessions that ended or were not seen for a day don't count; the setting does."""
    state = Path(store.repo.state, "edits")
    bohr = Agent(store, BOHR).caller
    edited_paths.update_flags(store)
    assert not (state / "wanted").exists()
    curie = Agent(other, CURIE).caller
    edited_paths.update_flags(other)
    assert (state / "wanted").exists() and os.listdir(state / "inputs") == []
    second = Agent(store, "a:b:second").caller
    edited_paths.update_flags(store)
    assert os.listdir(state / "inputs") == ["in-.git"]
    (state / "inputs" / "in-.git" / "kept").touch()
    lifecycle.end(store, second)
    edited_paths.update_flags(store)
    assert os.listdir(state / "inputs") == []
    lifecycle.end(other, curie)
    edited_paths.update_flags(store)
    assert not (state / "wanted").exists()
    assert bohr.session_id


def test_a_worktree_in_which_nobody_works_is_nobodys_edit(store: Store, other: Store, repo: Path) -> None:
    """What an ended session has left changed there is told to nobody, and a later session there is."""
    Agent(store, BOHR)
    write(repo, "src/a.py")
    write(Path(other.repo.worktree or ""), "src/a.py")
    assert [edit_guard.note_overlaps(each) for each in (store, other, store)] == [0, 0, 0]
    Agent(other, CURIE)
    assert edit_guard.note_overlaps(other) == 2


def test_edits_of_others_are_not_mine(store: Store, other: Store, repo: Path) -> None:
    """`claim list --mine --edited` lists what the caller changes."""
    bohr, curie = Agent(store, BOHR).caller, Agent(other, CURIE).caller
    write(repo, "src/a.py")
    write(Path(other.repo.worktree or ""), "docs/b.md")
    edit_guard.note_overlaps(store)
    edit_guard.note_overlaps(other)
    for who, path in ((bohr, "src/a.py"), (curie, "docs/b.md")):
        assert [each.paths for each in claim_work.list_claims(store, who, mine=True, edited=True).edits] == [
            [path]
        ]


def test_a_session_id_is_no_path(store: Store, clock: Clock) -> None:
    """A name from a client's hook opens no file elsewhere."""
    state = store.repo.state
    where = Path(edit_guard.state_path(state, edit_guard.DUE))
    where.mkdir(parents=True)
    (where.parent / "elsewhere").touch()
    os.utime(where.parent / "elsewhere", (0, 0))
    assert not delivery.renews(state, "../elsewhere", clock())


def test_a_repository_without_a_work_tree_claims_and_edits_nothing_of_its_own(
    store: Store, other: Store, repo: Path
) -> None:
    """A folder of a bare repository: a claim there says nothing of files, and what others edit is none of its edits."""
    bohr = Agent(other, BOHR).caller
    Agent(store, CURIE)
    write(repo, "src/a.py")
    assert edit_guard.note_overlaps(store) == 0
    other.repo.worktree = None
    assert claim_work.claim_paths(other, bohr, ["docs/**"]).warnings == []
    assert edit_guard.note_overlaps(other) == 0
