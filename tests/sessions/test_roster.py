"""Who is here, as everybody sees it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.agents import caller, lifecycle, roster
from gitmem.agents.caller import CallerClaims
from gitmem.log.lines import format_at
from gitmem.memory import context
from gitmem.signals import send
from gitmem.store import Store

from ..sandbox import HOUR, START, Clock, acting, annas, carry, new_repo, no_role, open_store, say
from ..signing import ANNA

IDENTITY = annas("codex:implementer:host42")


def test_the_roster_has_every_field_of_its_shape(repo: Path) -> None:
    """Also the empty ones."""
    clock = Clock()
    store = open_store(repo, clock)
    one = lifecycle.start(
        store, CallerClaims(), agent_identity=IDENTITY, name="Planck", wu="WU-1", lane="docs"
    )
    say(store, acting(store, lifecycle.start(store, CallerClaims(), name="Curie")))
    clock.forward(HOUR)
    found = roster.roster(store, "Planck")

    assert found.as_json() == {
        "waits": None,
        "sessions": [
            {
                "session_id": one.session_id, "display_name": "Planck", "agent_identity": IDENTITY,
                "reader_identity": IDENTITY, **no_role("implementer"), "wu_id": "WU-1", "initiative_id": None,
                "lane": "docs", "activity": None, "summary": None, "worktree": "repo", "client": None,
                "workspace_id": None, "here": True,
                "status": "idle", "last_seen": format_at(START + 1),
                "headline": "Planck", "writer": store.writers.writer(), "unread": 1,
            }
        ],
        "more": 0, "work": None, "remark": None, "autosync": None, "writer": ANNA.writer,
        "next": [],
    }  # fmt: skip


@pytest.mark.parametrize(
    "answer", [roster.roster, lambda store: context.live_pieces(store, None, 4_096, roster=True)]
)  # fmt: skip
def test_no_row_looks_for_new_lines(repo: Path, answer: Callable[[Store], object]) -> None:
    """All rows are of one snapshot, and thousands of sessions, which a peer can write, cost no look at the log each."""
    store = open_store(repo, Clock())
    statements: list[str] = []

    def looks() -> int:
        store.db().set_trace_callback(statements.append)
        statements.clear()
        answer(store)
        return sum("own writers" in each for each in statements)

    lifecycle.start(store, CallerClaims(), name="Planck")
    few = looks()
    for name in ("Curie", "Noether", "Meitner", "Hopper"):
        lifecycle.start(store, CallerClaims(), name=name)

    assert looks() == few > 0


def test_gone_and_ended_are_listed_with_all(repo: Path) -> None:
    """And the last seen stands first."""
    clock = Clock()
    store = open_store(repo, clock)
    ended = lifecycle.start(store, CallerClaims(), name="Ended")
    lifecycle.start(store, CallerClaims(), name="Gone")
    lifecycle.end(store, acting(store, ended))
    clock.forward(30 * HOUR)
    lifecycle.start(store, CallerClaims(), name="Live")

    assert [each["display_name"] for each in roster.roster(store).sessions] == ["Live"]
    assert [each["display_name"] for each in roster.roster(store, all=True).sessions] == [
        "Live",
        "Ended",
        "Gone",
    ]


def test_a_query_is_a_fuzzy_look(repo: Path) -> None:
    """Names, identities, roles, work units and worktrees, misspelt or in part; best first."""
    clock = Clock()
    store = open_store(repo, clock)
    lifecycle.start(store, CallerClaims(), agent_identity=IDENTITY, name="Planck", wu="WU-123")
    clock.forward(HOUR)
    lifecycle.start(
        store, CallerClaims(), agent_identity=annas("claude:reviewer:desk"), name="Noether", lane="docs"
    )

    def names(query: str) -> list[object]:
        return [each["display_name"] for each in roster.roster(store, query).sessions]

    assert [names(each) for each in ("plank", "PLANCK", "implementer", "WU-123", "host42")] == [
        ["Planck"]
    ] * 5
    assert [names(each) for each in ("reviewer", "docs", "Nöther")] == [["Noether"]] * 3
    assert names("repo") == ["Noether", "Planck"]
    assert names("zzzz") == []
    nobody = roster.roster(store, "zz'zz")
    assert nobody.next == ["gitmem roster", "gitmem roster 'zz'\"'\"'zz' --all"]
    assert nobody.remark == "No sessions match zz'zz; active sessions: 1."


def test_a_roster_leads_to_an_inbox_with_something_in_it(repo: Path) -> None:
    """The caller's own inbox: of others' mail it can read nothing."""
    store = open_store(repo, Clock())
    one, two = (
        acting(store, lifecycle.start(store, CallerClaims(), name=name)) for name in ("Planck", "Curie")
    )
    assert roster.roster(store, caller=one).next == []
    send.send(store, two, "hello", to=["Planck"])
    assert roster.roster(store, caller=one).next == ["gitmem inbox"]
    assert roster.roster(store, caller=two).next == []


def test_other_clones_see_the_time_of_the_last_record(tmp_path: Path, repo: Path) -> None:
    """A heartbeat is local."""
    clock = Clock()
    here, there = open_store(repo, clock), open_store(new_repo(tmp_path / "other"), clock)
    one = lifecycle.start(here, CallerClaims())
    carry(here, there)
    clock.forward(HOUR)
    acting(here, one).touch(here)
    rows = [roster.roster(store).sessions[0] for store in (here, there)]

    assert [(row["here"], row["status"]) for row in rows] == [(True, "live"), (False, "idle")]


def test_an_empty_roster_says_what_to_do(repo: Path) -> None:
    """A new clone."""
    assert roster.roster(open_store(repo, Clock())).as_json() == {
        "waits": None, "sessions": [], "more": 0, "work": None, "remark": None, "autosync": None, "writer": ANNA.writer, "next": ["gitmem session start", "gitmem roster --all"],
    }  # fmt: skip


def test_whoami_says_what_others_see(repo: Path) -> None:
    """Ids, name, headline and unread."""
    store = open_store(repo, Clock())
    one = lifecycle.start(
        store, CallerClaims(), agent_identity=IDENTITY, name="Planck", wu="WU-1", lane="docs"
    )
    say(store, acting(store, lifecycle.start(store, CallerClaims())))

    assert roster.whoami(store, acting(store, one)).as_json() == {
        "reader_identity": IDENTITY, "session_id": one.session_id, "agent_identity": IDENTITY,
        "display_name": "Planck", "wu_id": "WU-1", "initiative_id": None, "lane": "docs", "activity": None,
        "workspace_id": None, **no_role("implementer"), "worktree": "repo",
        "status": "live", "headline": "Planck", "writer": store.writers.writer(), "known": False, "unread": 1, "work": None,
        "remark": None, "next": ["gitmem inbox"],
    }  # fmt: skip


def test_whoami_of_those_without_a_session(repo: Path) -> None:
    """A person, and a harness that started none."""
    store = open_store(repo, Clock())
    person = caller.find(store, CallerClaims(terminal=True))
    raw = caller.find(store, CallerClaims(client_session=("CODEX_THREAD_ID", "t-1")))
    assert person and raw
    found = [roster.whoami(store, each) for each in (person, raw)]

    assert [each.reader_identity for each in found] == [
        annas("human:person@example.org"),
        annas(store.keys.hashed("t-1")),
    ]
    assert [each.headline for each in found] == ["Test Person", annas(store.keys.hashed("t-1"))]
    assert found[1].next[0] == "gitmem session start"


def test_a_limit_leaves_out_sessions_of_others(repo: Path, tmp_path: Path) -> None:
    """A peer's many sessions, last seen after ours and in roles that come first, do not hide ours."""
    clock = Clock()
    store, theirs = open_store(repo, clock), open_store(new_repo(tmp_path / "theirs"), clock)
    own = lifecycle.start(store, CallerClaims(), agent_identity=IDENTITY, name="Planck")
    clock.forward(HOUR)
    for number in range(8):
        lifecycle.start(theirs, CallerClaims(), agent_identity=annas(f"x:y:p{number}"), role="implementer/a")
    carry(store, theirs)
    theirs.close()
    found = roster.roster(store, caller=acting(store, own), limit=3)
    assert own.session_id in [each["session_id"] for each in found.sessions]
    assert (len(found.sessions), found.more) == (3, 6)
    for all in False, True:  # fewer than there are: the index gives our own, and counts the rest
        found = roster.roster(store, all=all, caller=acting(store, own), limit=3, read_most=3)
        assert own.session_id in [each["session_id"] for each in found.sessions]
        assert (len(found.sessions), found.more) == (3, 6)
        found = roster.roster(store, all=all, read_most=3)  # also without a limit
        assert own.session_id in [each["session_id"] for each in found.sessions]
        assert (len(found.sessions), found.more) == (3, 6)
        searched = roster.roster(store, "Planck", all=all, read_most=1)
        assert [each["session_id"] for each in searched.sessions] == [own.session_id]
        assert searched.remark == "8 sessions were not searched."
