"""The table of lines about commits: found by commit and patch id in any order of arrival, and never by a forged line."""

from __future__ import annotations

from pathlib import Path
from random import Random

from gitmem import records
from gitmem.history import commit_view
from gitmem.log.lines import CommitMessage
from gitmem.records import ids
from gitmem.records.record_types import CommitFields
from gitmem.store import Store
from tests.sandbox import START, Agent, Clock, new_repo, open_store

COMMIT, OTHER, PATCH = "a" * 40, "b" * 40, "c" * 40
MALLORY = CommitMessage("Mallory <m@example.org>", "commits")


def line(session: str, *, commit: str = COMMIT, at: int = START, **fields: object) -> bytes:
    link = ids.keyed_id("link", commit, session)
    return records.line("commit", at, {
        "link_id": link, "commit": commit, "patch_id": PATCH, "action": "commit", "evidence": "environment",
        "sender_identity": session, "sender_session": session, **fields,
    })  # fmt: skip


def put(store: Store, *lines: bytes) -> None:
    store.record([("commits", each) for each in lines], MALLORY)


def put_own(store: Store, session: str) -> None:
    fields: CommitFields = {
        "link_id": ids.keyed_id("link", COMMIT, session), "commit": COMMIT, "action": "commit", "evidence": "environment",
        "sender_identity": session, "sender_session": session,
    }  # fmt: skip
    store.record([store.line("commit", fields)], MALLORY)


def sessions(found: list[commit_view.CommitLine]) -> list[str | None]:
    return [each.record.get("sender_session") for each in found]


def test_commits_are_found_by_commit_and_patch_in_any_order(tmp_path: Path) -> None:
    """One record twice is one; the lowest line counts."""
    lines = [line("sess-0001", at=START + 5), line("sess-0001", wu_id="WU-1"), line("sess-0002", commit=OTHER, action="amend", sources=[COMMIT])]  # fmt: skip
    answers = []
    for seed in range(3):
        Random(seed).shuffle(lines)
        store = open_store(new_repo(tmp_path / str(seed)), Clock())
        put(store, *lines)
        db = store.db()
        answers.append(
            [
                commit_view.of_commit(db, COMMIT),
                commit_view.of_patch(db, PATCH),
            ]
        )
        store.close()
    one, two, three = (
        [[(each.record, each.is_own) for each in found] for found in answer] for answer in answers
    )
    assert one == two == three
    (first,), both = answers[0]
    assert first.record["wu_id"] == "WU-1" and not first.is_own
    assert sorted(map(str, sessions(both))) == ["sess-0001", "sess-0002"]


def test_a_line_that_claims_a_session_of_this_clone_without_its_code_has_no_effect(tmp_path: Path) -> None:
    """A peer can name any commit, but only its own sessions are shown as its writers."""
    store = open_store(new_repo(tmp_path / "here"), Clock())
    own = Agent(store, "claude:worker:bohr").session.session_id
    put(store, line(own), line("sess-far1"))
    assert sessions(commit_view.of_commit(store.db(), COMMIT)) == ["sess-far1"]
    assert commit_view.known(store.db(), [COMMIT]) == {(COMMIT, "sess-far1")}
    put_own(store, own)
    found = commit_view.of_commit(store.db(), COMMIT)
    assert [(each.record.get("sender_session"), each.is_own) for each in found] == [
        (own, True),
        ("sess-far1", False),
    ]
    store.close()


def test_many_lines_of_peers_do_not_hide_our_own(tmp_path: Path) -> None:
    """Of any number of lines about one commit a few are read, this clone's first."""
    store = open_store(new_repo(tmp_path / "here"), Clock())
    own = Agent(store, "claude:worker:bohr").session.session_id
    put(store, *(line(f"sess-{number:04d}", at=START - 9) for number in range(200)))
    put_own(store, own)
    found = commit_view.of_commit(store.db(), COMMIT)
    assert found[0].is_own and len(found) == commit_view.LINES_MAX
    store.close()
