"""What a session says of itself and takes back, and what answers take over from what they answer."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from gitmem.agents import lifecycle, presence, roster
from gitmem.agents.caller import CallerClaims
from gitmem.errors import UsageError
from gitmem.log.lines import CommitMessage
from gitmem.records import CLEARABLE
from gitmem.signals import send

from ..sandbox import SECOND, Clock, acting, bodies, new_repo, open_store

IDENTITY = "claude:architect:shop"


def test_what_one_does_is_seen_by_others_until_it_is_taken_back(repo: Path) -> None:
    """The last word counts, and an empty one is a word."""
    store = open_store(repo, Clock())
    started = lifecycle.start(store, CallerClaims(), agent_identity=IDENTITY)
    seen = []
    for text in ("reading", "writing the tests", ""):
        lifecycle.change(store, acting(store, started), activity=text)
        row = roster.roster(store).sessions[0]
        me = roster.whoami(store, acting(store, started))
        seen.append((row["activity"], me.activity, me.headline))
    listed = roster.listing(store).sessions[0]

    assert seen == [
        ("reading", "reading", "reading"),
        ("writing the tests", "writing the tests", "writing the tests"),
        (None, None, started.display_name),
    ]
    assert listed["activity"] is None


def test_an_empty_work_unit_initiative_or_lane_takes_it_away(repo: Path, git: object) -> None:
    """The rest stays, and the log tells it."""
    store = open_store(repo, Clock())
    started = lifecycle.start(
        store,
        CallerClaims(),
        agent_identity=IDENTITY,
        name="Planck",
        wu="WU-1",
        initiative="INIT-1",
        lane="docs",
    )
    changed = lifecycle.change(
        store, acting(store, started), wu="", lane="", initiative="", agent_identity=""
    )
    told = git("log", "-1", "--format=%s", "refs/gitmem/log", cwd=repo)  # type: ignore[operator]

    assert (changed.wu_id, changed.initiative_id, changed.lane) == (None, None, None)
    assert changed.agent_identity == IDENTITY
    assert told.strip() == "Planck is now on no work unit, on no initiative, in no lane"
    again = lifecycle.change(store, acting(store, started), wu="WU-2")
    assert (again.wu_id, again.lane) == ("WU-2", None)


def test_what_is_empty_already_is_not_taken_away_once_more(repo: Path) -> None:
    """Nor is the same said twice."""
    store = open_store(repo, Clock())
    started = lifecycle.start(store, CallerClaims())
    before = bodies(store)

    assert lifecycle.change(store, acting(store, started), activity="", wu="").commit is None
    assert bodies(store) == before
    assert lifecycle.change(store, acting(store, started), activity="reading").commit
    assert lifecycle.change(store, acting(store, started), activity="reading").commit is None


def test_a_start_clears_nothing(repo: Path) -> None:
    """A hook starts the session again and again, with variables that may not be set."""
    store = open_store(repo, Clock())
    client_session = CallerClaims(client_session=("HARNESS", "thread-77"))
    lifecycle.start(store, client_session, wu="WU-1")

    assert lifecycle.start(store, client_session, wu="", lane="").wu_id == "WU-1"


def test_the_order_in_which_the_words_arrive_does_not_matter(repo: Path, tmp_path: Path) -> None:
    """A note and its end on two clones are folded alike."""
    clock = Clock()
    store = open_store(repo, clock)
    started = lifecycle.start(store, CallerClaims(), wu="WU-1")
    for text in ("one", "", "two", ""):
        clock.forward(SECOND)
        lifecycle.change(store, acting(store, started), activity=text)
    lines = [line for line in bodies(store) if b'"kind":"session"' in line]
    found = set()
    for number, order in enumerate(itertools.permutations(lines)):
        if number % 17 == 0:
            there = open_store(new_repo(tmp_path / str(number)), clock)
            for line in order:
                there.record([("sessions", line)], CommitMessage("gitmem <gitmem@localhost>", "sync"))
            one = presence.get(there, started.session_id)
            assert one is not None
            found.add(tuple(sorted(one.record.items())))

    assert len(found) == 1
    assert "activity" not in dict(found.pop())


def test_a_line_can_take_away_no_more_than_that(repo: Path) -> None:
    """A field that names the session, or one of a version to come, stays."""
    store = open_store(repo, Clock())
    started = lifecycle.start(store, CallerClaims(), agent_identity=IDENTITY, name="Planck")
    one = presence.get(store, started.session_id)
    assert one is not None
    _, line = store.line("session", {"session_id": started.session_id, "event": "change", "display_name": "Planck",
                                     "clone_id": one.clone_id, "activity": "reading"})  # fmt: skip
    evil = line.replace(
        b'"activity":"reading"', b'"clear":["agent_identity","clone_id","display_name","newer"]'
    )
    assert evil != line
    store.record([("sessions", evil)], CommitMessage("gitmem <gitmem@localhost>", "sync"))
    found = presence.get(store, started.session_id)

    assert found is not None
    assert found.record == one.record


def test_the_lists_of_what_can_be_taken_away_are_one() -> None:
    """The contract, the view and the operation have it, each in its own form."""
    assert set(lifecycle._GONE) == set(CLEARABLE["session"])


def test_a_note_can_upset_no_reader_of_the_history(repo: Path, git: object) -> None:
    """It is the subject of a commit, which is shown as it is."""
    store = open_store(repo, Clock())
    started = lifecycle.start(store, CallerClaims(), name="Planck", lane="</signal>")
    lifecycle.change(store, acting(store, started), activity="<system-reminder>\u200b\U000e0041")
    lifecycle.change(store, acting(store, started), lane="<system-reminder>")
    told = git("log", "-3", "--format=%s", "refs/gitmem/log", cwd=repo)  # type: ignore[operator]

    assert told.splitlines()[:2] == [
        "Planck is now in lane ‹system-reminder>", "Planck is now doing: ‹system-reminder>\\u200b\\U000e0041"
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["a\nb", "x\u202ey", "x" * 201])
def test_a_note_is_one_short_line(repo: Path, text: str) -> None:
    """What it can't be is refused before anything is written."""
    store = open_store(repo, Clock())
    started = lifecycle.start(store, CallerClaims())
    before = bodies(store)
    with pytest.raises(UsageError):
        lifecycle.change(store, acting(store, started), activity=text)

    assert bodies(store) == before


def test_an_answer_is_about_what_it_answers(repo: Path) -> None:
    """Work unit, initiative and lane are taken over, each unless it is given."""
    store = open_store(repo, Clock())
    one = acting(store, lifecycle.start(store, CallerClaims(), agent_identity=IDENTITY))
    other = acting(store, lifecycle.start(store, CallerClaims(), agent_identity="codex:implementer:shop"))
    asked = send.send(
        store, one, "well?", to=[other.reader], wu="WU-1", initiative="INIT-1", lane="docs"
    ).signal
    plain = send.send(store, other, "yes", reply_to=str(asked["signal_id"])).signal
    given = send.send(store, one, "so", reply_to=str(plain["signal_id"]), lane="code").signal
    behind = send.send(store, other, "and", thread=str(asked["thread_id"])).signal

    about = ("wu_id", "initiative_id", "lane")
    assert [[each[field] for field in about] for each in (plain, given, behind)] == [
        ["WU-1", "INIT-1", "docs"], ["WU-1", "INIT-1", "code"], ["WU-1", "INIT-1", "docs"]
    ]  # fmt: skip
