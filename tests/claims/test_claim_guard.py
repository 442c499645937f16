"""The guard, its files for hooks, renewals, and what sessions are told."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem import records, settings
from gitmem.agents import audits, delivery
from gitmem.errors import UsageError
from gitmem.log.lines import CommitMessage
from gitmem.store import Store
from gitmem.text.addresses import words_of
from gitmem.work import claim_work, claims, edit_guard
from tests.sandbox import HOUR, MINUTE, Agent, Clock, annas, carry, open_store, told, worktree
from tests.signing import MALLORY

from .conftest import BOHR, CURIE


def changed(repo: Path, name: str, at: int) -> None:
    """A file that was changed at a time."""
    where = repo / name
    where.parent.mkdir(exist_ok=True)
    where.touch()
    os.utime(where, ns=(at * 1000, at * 1000))


def test_a_change_after_a_claim_was_seen_is_blocked_and_a_reason_passes_it(
    store: Store, repo: Path, clock: Clock
) -> None:
    """The owner is not blocked; others are until they give a reason, which an audit keeps."""
    bohr, curie = Agent(store, BOHR).caller, Agent(store, CURIE).caller
    claim_work.claim_paths(store, bohr, ["src"])
    store.db()
    changed(repo, "src/a.py", clock.value + MINUTE)
    assert edit_guard.check_guard(store, [bohr], ["src/a.py"]).open
    assert edit_guard.check_guard(store, [curie], ["docs/a.md"]).open
    closed = edit_guard.check_guard(store, [curie], ["src/a.py"])
    assert (closed.open, len(closed.blocks)) == (False, 1)
    assert edit_guard.check_guard(store, [curie], ["src/gone.py"]).open is False
    assert edit_guard.check_guard(store, [curie], ["src/a.py"], mode="warn").open
    passed = edit_guard.check_guard(store, [curie], ["src/a.py"], anyway="agreed")
    assert (passed.open, passed.audit_id is not None) == (True, True)
    again = edit_guard.check_guard(store, [curie], ["src/a.py"])
    assert (again.open, again.warns) == (True, [])
    assert again.warnings == [
        f"guard open: you have passed the claims on these paths: {closed.blocks[0].name}'s {closed.blocks[0].claim_id}"
    ]
    assert edit_guard.check_guard(store, [Agent(store, annas("a:b:c")).caller], ["src/a.py"]).open is False


@pytest.mark.parametrize("reason", ["", " \n", "\u200b"])
def test_no_claim_is_passed_without_a_reason(store: Store, repo: Path, clock: Clock, reason: str) -> None:
    """An audit without one would tell the owner nothing."""
    bohr, curie = Agent(store, BOHR).caller, Agent(store, CURIE).caller
    claim_work.claim_paths(store, bohr, ["src"])
    store.db()
    changed(repo, "src/a.py", clock.value + MINUTE)
    with pytest.raises(UsageError) as error:
        edit_guard.check_guard(store, [curie], ["src/a.py"], anyway=reason)
    assert (error.value.code, "Nothing was written" in error.value.message) == ("no-reason", True)
    assert not edit_guard.check_guard(store, [curie], ["src/a.py"]).open


def test_no_number_of_a_peer_s_audits_hides_a_reason_that_passed_the_guard(
    store: Store, repo: Path, clock: Clock
) -> None:
    """They are in the words of whoever passed it, and arrived before."""
    bohr, curie = Agent(store, BOHR).caller, Agent(store, CURIE).caller
    other = annas(words_of(curie.reader), MALLORY)
    fields = {"action": audits.CLAIM, "reason": "x (claim-00000000000)", "reader_identity": other,
              "sender_identity": other, "signal_ids": []}  # fmt: skip
    forged = [
        records.line("audit", clock(), {"audit_id": f"audit-{number:012}", **fields}, writer=MALLORY.writer)
        for number in range(1_050)
    ]
    store.record([("audits", line) for line in forged], CommitMessage("m <m@example.org>", "sync"))
    claim_work.claim_paths(store, bohr, ["src"])
    store.db()
    changed(repo, "src/a.py", clock.value + MINUTE)
    assert not edit_guard.check_guard(store, [curie], ["src/a.py"]).open

    edit_guard.check_guard(store, [curie], ["src/a.py"], anyway="agreed")

    assert edit_guard.check_guard(store, [curie], ["src/a.py"]).open


def test_what_was_changed_before_the_claim_was_seen_and_what_is_contested_only_warns(
    store: Store, far: Store, repo: Path, clock: Clock
) -> None:
    """M6: nobody who began without knowing is stopped."""
    bohr, curie = Agent(far, BOHR).caller, Agent(store, CURIE).caller
    changed(repo, "src/a.py", clock.value)
    clock.forward(MINUTE)
    claim_work.claim_paths(far, bohr, ["src"])
    carry(store, far)
    store.db()
    early = edit_guard.check_guard(store, [curie], ["src/a.py"])
    assert (early.open, len(early.warns)) == (True, 1)
    for name in ("src/a.py", "src/b.py"):
        changed(repo, name, clock.value + MINUTE)
    assert edit_guard.check_guard(
        store, [curie], ["src/a.py"]
    ).open  # its first change was before, and it goes on
    assert not edit_guard.check_guard(store, [curie], ["src/b.py"]).open
    (seen,) = Path(edit_guard.state_path(store.repo.state, edit_guard.SEEN)).iterdir()
    seen.write_bytes(b"")  # git could not list the files in time: then the last change decides
    os.utime(seen, ns=(clock.value * 1000, clock.value * 1000))
    assert not edit_guard.check_guard(store, [curie], ["src/a.py"]).open
    claim_work.release(far, bohr)
    carry(store, far)
    claim_work.claim_paths(far, bohr, ["src"])
    claim_work.claim_paths(store, curie, ["src"])
    carry(store, far)
    contested = edit_guard.check_guard(store, [curie], ["src/a.py"])
    assert (contested.open, [each.status for each in contested.warns]) == (True, ["contested"])


def test_both_owners_are_told_once_at_their_next_command(store: Store, far: Store) -> None:
    """One line each; their flags are raised for hooks."""
    bohr, curie = Agent(store, BOHR).caller, Agent(far, CURIE).caller
    claim_work.claim_paths(store, bohr, ["src"])
    claim_work.claim_paths(far, curie, ["src/a.py"])
    carry(store, far)
    for one, caller in ((store, bohr), (far, curie)):
        one.db()
        (line,) = claim_work.at_command(one, caller)
        assert line.startswith("contested: your claim claim-")
        assert claim_work.at_command(one, caller) == []
        assert os.path.lexists(os.path.join(one.repo.state, "flags", caller.session_id or ""))


def test_what_sessions_were_told_is_noted_within_limits_and_for_those_of_this_clone_alone(
    store: Store, clock: Clock
) -> None:
    """The latest words stay, so that what was said last is not said again."""
    bohr = Agent(store, BOHR).caller
    session = bohr.session_id or ""
    claim_work.claim_paths(store, bohr, ["src"])
    told = Path(store.repo.state, delivery.TOLD)
    words = [f"about/{number}" for number in range(delivery.TOLD_MAX + 3)]
    delivery.tell_once(store, lambda: [(session, word, "news") for word in words[:3]])
    (told / session).write_text(" ".join(words[:-1]))
    (told / "sess-of-nobody").write_text("x")
    delivery.tell_once(store, lambda: [(session, words[-1], "news")])
    assert (told / session).read_text().split() == words[3:]
    clock.forward(2 * MINUTE)
    store.db()
    assert [each.name for each in told.iterdir()] == [session]


def test_a_claim_is_renewed_when_half_its_time_is_over_and_its_session_acts(
    store: Store, clock: Clock
) -> None:
    """Not before, and not by others; a silent session's claim ends."""
    bohr, curie = Agent(store, BOHR).caller, Agent(store, CURIE).caller
    claim_work.claim_paths(store, bohr, ["src"], lease=HOUR)
    claim_work.claim_paths(store, curie, ["docs"], lease=HOUR)
    store.db()
    clock.forward(20 * MINUTE)
    assert claim_work.renew_due(store, bohr) == 0
    clock.forward(20 * MINUTE)
    store.db()
    claim_work.at_command(store, bohr)
    clock.forward(30 * MINUTE)
    assert [each.claim.owner[0] for each in claims.standing(store)] == [BOHR]
    assert claim_work.renew_due(store, bohr) == 1
    assert claim_work.renew_due(store, bohr) == 0


def test_the_flag_is_there_only_where_another_session_claims(
    store: Store, repo: Path, tmp_path: Path, clock: Clock
) -> None:
    """In the owner's worktree not, unless a second session works there; not after the end; and again in a new index."""
    bohr = Agent(store, BOHR).caller
    other = open_store(worktree(repo, tmp_path / "linked"), clock)
    Agent(other, CURIE)
    state = store.repo.state
    claim_work.claim_paths(store, bohr, ["src"], lease=HOUR)
    store.db()
    assert os.path.exists(edit_guard.state_path(state, "claimed"))
    assert os.listdir(os.path.join(state, edit_guard.ONLY_OWN)) == ["in-.git"]
    Agent(store, annas("a:b:third"))
    assert os.listdir(os.path.join(state, edit_guard.ONLY_OWN)) == []
    os.unlink(edit_guard.state_path(state, "claimed"))
    clock.forward(2 * MINUTE)
    store.db()
    assert os.path.exists(edit_guard.state_path(state, "claimed"))
    clock.forward(2 * HOUR)
    store.db()
    assert not os.path.exists(edit_guard.state_path(state, "claimed"))
    claim_work.claim_paths(store, bohr, ["src"], shared=True)
    store.db()
    assert not os.path.exists(
        edit_guard.state_path(state, "claimed")
    )  # the guard lets everybody pass a shared one
    other.close()


def test_what_was_uncommitted_when_the_claim_arrived_only_warns_in_its_worktree(
    store: Store, far: Store, repo: Path, tmp_path: Path, clock: Clock
) -> None:
    """M6: the first change of the file counts. Another worktree that begins afterwards is blocked."""
    linked = worktree(repo, tmp_path / "linked")
    other = open_store(linked, clock)
    curie, planck = Agent(store, CURIE).caller, Agent(other, annas("codex:worker:planck")).caller
    changed(repo, "src/odd \n name.py", clock.value)
    changed(repo, "docs/a.md", clock.value)
    clock.forward(MINUTE)
    claim_work.claim_paths(far, Agent(far, BOHR).caller, ["src"])
    carry(store, far)
    store.db()
    names = ["src/odd \n name.py", "src/b.py"]
    for where in (repo, linked):
        for name in names:
            changed(where, name, clock.value + MINUTE)
    verdicts = [
        edit_guard.check_guard(one, [caller], [name]).open
        for one, caller in ((store, curie), (other, planck))
        for name in names
    ]
    assert verdicts == [True, False, False, False]
    other.close()


def test_owners_are_told_once_who_passed_or_released_their_claim_and_why(
    store: Store, far: Store, repo: Path, clock: Clock
) -> None:
    """In the same clone, and in another one after a sync; what the owner does is no news to it."""
    bohr, gauss, curie = Agent(store, BOHR), Agent(far, annas("a:b:gauss")), Agent(store, CURIE)
    near = claim_work.claim_paths(store, bohr.caller, ["src"]).claim_id
    there = claim_work.claim_paths(far, gauss.caller, ["docs/**"]).claim_id
    carry(store, far)
    store.db()
    clock.forward(2 * MINUTE)
    for path, reason in (("src/a.py", "urgent fix"), ("docs/a.md", "a\ntypo")):
        assert edit_guard.check_guard(store, [curie.caller], [path], anyway=reason).audit_id
    assert told(bohr) == [f"passed: {curie.caller.name} passed your claim {near} on src: urgent fix"]
    carry(far, store)
    clock.forward(2 * MINUTE)
    assert told(gauss) == [f"passed: {curie.caller.name} passed your claim {there} on docs/**: a typo"]
    claim_work.release(store, curie.caller, [near], reason="gone")[0]
    claim_work.release(store, curie.caller, [there], reason="merged")[0]
    assert told(bohr) == [f"released: {curie.caller.name} released your claim {near} on src: gone"]
    carry(far, store)
    assert told(gauss) == [f"released: {curie.caller.name} released your claim {there} on docs/**: merged"]
    own = claim_work.claim_paths(store, bohr.caller, ["src"]).claim_id
    claim_work.release(store, bohr.caller, [own])
    assert told(bohr) == told(gauss) == told(curie) == []


def test_claims_on_other_paths_and_none_with_the_guard_off_are_no_news(store: Store, clock: Clock) -> None:
    """A valid setting needs no remark, either."""
    bohr, curie = Agent(store, BOHR).caller, Agent(store, CURIE).caller
    claim_work.claim_paths(store, bohr, ["src"])
    beside = edit_guard.check_guard(store, [curie], ["docs/a.md"])
    assert (beside.open, beside.warns, beside.warnings) == (True, [], [])
    off = edit_guard.check_guard(store, [curie], ["src/a.py"], mode=settings.OFF)
    assert (off.open, off.warns) == (True, [])
    assert off.warnings == ["`git config gitmem.guard` is off: claims are not checked."]


@pytest.mark.parametrize("may_refuse", [True, False])
def test_an_edit_is_refused_warned_of_or_let_alone_as_the_setting_says(
    store: Store, repo: Path, git: Callable[..., str], may_refuse: bool
) -> None:
    """A client that can't keep the edit from happening shows a warning; with the guard off nothing. Each warning is given once."""
    bohr, curie = Agent(store, BOHR).caller, Agent(store, CURIE).caller
    claim_work.claim_paths(store, bohr, ["src"])
    git("config", settings.GUARD.key, settings.BLOCK, cwd=repo)
    found = edit_guard.warnings_of_edit(store, curie, ["src/a.py"], may_refuse=may_refuse)
    assert (found.is_refused, "Nothing was changed" in found.text) == (may_refuse, may_refuse)
    assert found.text.startswith("src/a.py: ")
    git("config", settings.GUARD.key, settings.OFF, cwd=repo)
    assert edit_guard.warnings_of_edit(store, curie, ["src/b.py"], may_refuse=may_refuse).text == ""
    git("config", settings.GUARD.key, settings.WARN, cwd=repo)
    assert edit_guard.warnings_of_edit(store, curie, ["src/b.py"]).text
    assert not edit_guard.warnings_of_edit(store, curie, ["src/b.py"]).text


def test_a_tool_that_edits_nothing_costs_no_look_at_claims(store: Store) -> None:
    """Hooks run after each tool."""
    curie = Agent(store, CURIE).caller
    asked: list[str] = []
    store.db().set_trace_callback(asked.append)
    assert edit_guard.warnings_of_edit(store, curie, []).text == ""
    assert asked == []


def test_no_number_of_edited_paths_fills_the_disk_with_notes_of_warnings(store: Store) -> None:
    """With too many of them all are forgotten."""
    bohr, curie = Agent(store, BOHR).caller, Agent(store, CURIE).caller
    made = claim_work.claim_paths(store, bohr, ["src"]).claim_id
    store.db()
    folder = Path(edit_guard.state_path(store.repo.state, edit_guard.WARNED))
    folder.mkdir(exist_ok=True)
    for number in range(edit_guard.TOLD_MAX):
        (folder / f"{made}.{number}").touch()
    assert edit_guard.warnings_of_edit(store, curie, ["src/a.py"]).text
    assert len(list(folder.iterdir())) == 1
