"""Peers can write any number of sessions: each question reads a limited number, this clone's first, and loses none of these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pytest

from gitmem import records
from gitmem.agents import addressing, lifecycle, presence, role_list
from gitmem.agents.caller import CallerClaims, of_session
from gitmem.errors import UsageError
from gitmem.log.lines import CommitMessage
from gitmem.memory import live_pieces, upkeep
from gitmem.memory.budgeted_text import Section
from gitmem.store import Store
from gitmem.work import branches

from ..sandbox import HOUR, Clock, new_repo, open_store

MOST, FORGED = presence.READ_MAX, presence.READ_MAX + 1
IDENTITY, CLIENT = "codex:dev:shop", "client-session-of-a-peer"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, str]]:
    """A store with a session of this clone, then many of a peer that claim to be everything it is."""
    clock = Clock()
    store = open_store(new_repo(tmp_path_factory.mktemp("many") / "repo"), clock)
    started = lifecycle.start(
        store, CallerClaims(), name="Planck", agent_identity=IDENTITY, role="reviewer/docs"
    )
    mine = presence.get(store, str(started.session_id))
    assert mine is not None
    clock.forward(HOUR)
    lines = [
        records.line("session", clock() - number, {
            "session_id": f"sess-flood{number:05}", "event": "start", "display_name": "Planck", "clone_id": "clone-far",
            "agent_identity": IDENTITY, "lifecycle_role": "reviewer", "specialty_profile": "docs", "branch": mine.record["branch"],
            "harness_session": CLIENT,
        })
        for number in range(FORGED)
    ]  # fmt: skip
    store.record([("sessions", each) for each in lines], CommitMessage("x <x@example.org>", "flood"))
    yield store, str(started.session_id)
    store.close()


def _ids(found: Iterable[presence.Presence]) -> list[str]:
    return [one.session_id for one in found]


def _listed(store: Store) -> list[str]:
    found = role_list.listing(store)
    assert found.remark == "More than 200 sessions hold roles: the others are not listed."
    (held,) = [each for each in found.roles if each.holders]
    return [one["session_id"] for one in held.holders]


def _pieces(store: Store) -> list[Section]:
    return live_pieces.live_pieces(store, None, 10_000, roster=True)


@pytest.mark.parametrize(
    ("ask", "most"),
    [
        pytest.param(lambda store: _ids(presence.shown(store).values()), MOST, id="shown"),
        pytest.param(lambda store: _ids(presence.shown(store, all=True).values()), MOST, id="all"),
        pytest.param(lambda store: _ids(presence.of_identity(store, IDENTITY)), MOST, id="identity"),
        pytest.param(_listed, role_list.HOLDERS_MAX, id="roles"),
        pytest.param(lambda store: _ids(*branches.sessions_by_branch(store).values()), MOST, id="branches"),
        pytest.param(lambda store: [each.id for each in _pieces(store)], MOST, id="context"),
    ],
)
def test_a_limited_number_is_read_with_those_of_this_clone(
    own: tuple[Store, str], ask: Callable[[Store], list[str]], most: int
) -> None:
    store, session_id = own
    found = ask(store)
    assert len(found) == most
    assert session_id in found


@pytest.mark.parametrize(
    ("ask", "most"),
    [
        pytest.param(lambda store: presence.of_role(store, "reviewer", "docs"), MOST, id="role"),
        pytest.param(lambda store: presence.with_prefix(store, "sess-flood"), 4, id="prefix"),
        pytest.param(lambda store: [presence.of_published_client(store, CLIENT)], 1, id="client"),
        pytest.param(lambda store: presence.latest(store, 2), 2, id="latest"),
    ],
)
def test_a_limited_number_of_a_peers_is_read(
    own: tuple[Store, str], ask: Callable[[Store], list[presence.Presence]], most: int
) -> None:
    store, _ = own
    asked: list[str] = []
    store.db().set_trace_callback(asked.append)
    found = ask(store)
    store.db().set_trace_callback(None)
    assert len(found) == most and len({*_ids(found)}) == most
    rows = [each for each in asked if "FROM session s JOIN tenure" in each]
    assert rows and all("LIMIT" in each for each in rows)


def test_a_signal_to_a_role_with_too_many_holders_reaches_nobody(own: tuple[Store, str]) -> None:
    store, _ = own
    with pytest.raises(UsageError) as refused:
        addressing.resolve(store, ["role:reviewer/docs"])
    assert refused.value.code == "too-many-recipients"


def test_cleanup_keeps_the_notes_of_each_session_at_work_however_many_there_are(
    own: tuple[Store, str],
) -> None:
    """Also of a peer that is not among those that a list reads."""
    store, session_id = own
    peer = _ids(presence.latest(store, FORGED + 1))[-2]
    assert peer not in presence.shown(store)
    note = {
        "id": "mem-note0",
        "type": "session",
        "lifecycle": "ephemeral",
        "content": "at work",
        "session_id": peer,
    }
    line = records.line(
        "node", store.log.clock.tick(), {**note, "sender_identity": IDENTITY, "sender_session": peer}
    )
    store.record([(records.STREAMS["node"], line)], CommitMessage("x <x@example.org>", "note"))
    me = presence.get(store, session_id)
    assert me is not None
    found = upkeep.cleanup(store, of_session(me, "as"), dry_run=True)
    assert found.removed_ids == [] and found.breakdown.active_session_protected == 1
