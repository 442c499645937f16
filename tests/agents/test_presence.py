"""Names and sessions are a fold of lines: the same on every clone, in whatever order the lines arrived."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitmem import records, views
from gitmem.agents import addressing, caller, lifecycle, presence, roster
from gitmem.agents.caller import CallerClaims, of_session
from gitmem.errors import UsageError
from gitmem.history import overlap
from gitmem.index import catch_up
from gitmem.index.index_file import Index
from gitmem.log.lines import CommitMessage
from gitmem.memory import context, upkeep
from gitmem.memory.candidates import Section
from gitmem.records.ids import own_id
from gitmem.store import Store
from gitmem.text.addresses import words_of
from gitmem.text.name_matching import fold, mixes_scripts, strip_numbers

from ..empty_index import empty_index, index_of
from ..sandbox import HOUR, MINUTE, Clock, acting, annas, new_repo, open_store, say, worktree
from ..signing import ANNA

START = 1_793_000_000_000_000
IDS = tuple(f"sess-00000{letter}" for letter in "abcdef")
NAMES = ("dev", "Dev", "dev-2", "dev_2", "dev-2-2", "Planck")


def session(id: str, at: int, event: str, name: str, **fields: str) -> bytes:
    values = {"session_id": id, "event": event, "display_name": name, "clone_id": "c", **fields}
    return records.line("session", START + at, values)


def signal(id: str, at: int, number: int) -> bytes:
    fields: dict[str, object] = {
        "schema_version": "A2A.V1", "signal_id": f"sig-{number:04}", "sender_identity": id, "sender_session": id,
        "recipients": [], "message": "hello",
    }  # fmt: skip
    return records.line("signal", START + at, fields)


def tables(index: Index) -> list[list[tuple[object, ...]]]:
    """What the view says, without the row ids that tell the order of arrival."""
    return [
        index.db.execute(query).fetchall()
        for query in (
            "SELECT * FROM session ORDER BY session_id",
            "SELECT * FROM alive ORDER BY session_id, begin",
            "SELECT t.session_id, l.body, t.claimed, t.until, t.name, t.fold, t.root, t.shown, t.shown_fold, t.last"
            " FROM tenure t JOIN line l ON l.id = t.line ORDER BY t.session_id, t.claimed, l.body",
        )
    ]


def shown(index: Index) -> dict[str, str]:
    rows = index.db.execute("SELECT session_id, shown FROM tenure WHERE last")
    return dict(rows.fetchall())


def plainly_shown(index: Index) -> list[tuple[object, ...]]:
    """The rule, over all tenures at once: in the order of claims each takes the first name that is free."""
    tenures = index.db.execute(
        "SELECT t.claimed, l.body, t.until, t.name, t.session_id FROM tenure t JOIN line l ON l.id = t.line"
        " ORDER BY t.claimed, l.body"
    ).fetchall()
    done: list[tuple[int, str]] = []
    found = []
    for claimed, _, until, name, session_id in tenures:
        taken = {folded for end, folded in done if end > claimed}
        options = [name, *(f"{name}-{number}" for number in range(2, 99))]
        free = next(option for option in options if fold(option) not in taken)
        done.append((until, fold(free)))
        found.append((session_id, claimed, free))
    return sorted(found)


moments = st.integers(0, 12).map(lambda step: step * 20 * HOUR)
lines = st.lists(
    st.one_of(
        st.builds(
            session,
            st.sampled_from(IDS),
            moments,
            st.sampled_from(("start", "change", "end")),
            st.sampled_from(NAMES),
        ),
        st.builds(signal, st.sampled_from(IDS), moments, st.integers(0, 30)),
    ),
    unique=True,
    max_size=25,
)


@given(lines, st.randoms(use_true_random=False), st.integers(1, 8))
def test_the_order_of_arrival_changes_nothing(found: list[bytes], random: object, size: int) -> None:
    """Shuffled and cut into batches, the same lines give the same tables."""
    at_once = index_of(found)
    mixed = list(found)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    later = index_of(*(mixed[at : at + size] for at in range(0, len(mixed), size)))

    assert tables(at_once) == tables(later)


@given(lines)
def test_names_that_show_are_those_of_the_plain_rule(found: list[bytes]) -> None:
    """Settling only what can have changed gives what settling everything would."""
    index = index_of(*([line] for line in found))
    rows = index.db.execute("SELECT session_id, claimed, shown FROM tenure").fetchall()

    assert sorted(rows) == plainly_shown(index)


def test_names_that_only_look_different_are_one_name() -> None:
    """Case, `-`, `_`, space and compatibility forms do not count."""
    found = [session(IDS[0], 0, "start", "Big Dev"), session(IDS[1], 1, "start", "\uff42ig_dev")]

    assert shown(index_of(found)) == {IDS[0]: "Big Dev", IDS[1]: "\uff42ig_dev-2"}


def test_of_each_field_the_latest_value_counts() -> None:
    """A change that says nothing of a field leaves it."""
    index = index_of(
        [session(IDS[0], 9, "change", "Planck", wu_id="WU-2")],
        [session(IDS[0], 0, "start", "Planck", wu_id="WU-1", lane="docs")],
    )

    assert index.db.execute("SELECT wu_id, lane, started FROM session").fetchall() == [
        ("WU-2", "docs", START)
    ]


def test_a_time_that_is_none_costs_only_that_line() -> None:
    """The thirtieth of February passes for a time by its form."""
    line = session(IDS[0], 0, "start", "Planck")
    odd = line.replace(line[7:17], b"2026-02-30").replace(IDS[0].encode(), IDS[1].encode())
    index = empty_index(*views.VIEWS)
    catch_up.insert_lines(index, catch_up.OWN_FILE, [odd, line])

    assert shown(index) == {IDS[0]: "Planck"}


def test_scripts_mixed_in_a_word_are_found() -> None:
    """Japanese, which mixes by nature, and accents are not meant."""
    mixed = ("Pl\u0430nck", "\u0420lanck", "\u03b1lpha", "dev\u6771")
    plain = (
        "Planck",
        "\u041f\u043b\u0430\u043d\u043a",
        "M\u00fcller",
        "\u6771\u4eac\u30bf\u30ef\u30fc",
        "dev-2",
        "\uff24\uff25v",
    )

    assert [text for text in (*mixed, *plain) if mixes_scripts(text)] == list(mixed)


def test_the_root_of_a_name_is_without_its_numbers() -> None:
    """And never empty."""
    assert [strip_numbers(name) for name in ("dev-2-3", "dev", "dev2", "-2", "7-2", "dev-")] == [
        "dev", "dev", "dev2", "-2", "7", "dev-",
    ]  # fmt: skip


def test_how_long_ago_reads_as_words() -> None:
    """In the largest unit that has two."""
    hours = (0, 30 / 3600, 1 / 60, 0.1, 1.5, 3, 50)
    assert [presence.format_age(int(each * HOUR)) for each in hours] == [
        "just now", "just now", "a minute ago", "6 minutes ago", "90 minutes ago", "3 hours ago", "2 days ago",
    ]  # fmt: skip


# Who calls: each source in its turn, and a refusal wherever two could be meant.

IDENTITY = annas("codex:implementer:host42")
HARNESS = ("CLAUDE_CODE_SESSION_ID", "0190-abcd")


def found(store: Store, **who: Any) -> caller.Caller:
    one = caller.find(store, CallerClaims(**who))
    assert one
    return one


def refused(store: Store, **who: Any) -> str:
    """The code of the refusal to say who calls."""
    with pytest.raises(UsageError) as caught:
        caller.find(store, CallerClaims(**who))
    assert caller.find(store, CallerClaims(**who), must=False) is None
    return str(caught.value.code)


def test_the_sources_in_their_order(repo: Path) -> None:
    """`--as`, then GITMEM_SESSION, then the harness, then a person."""
    store = open_store(repo, Clock())
    one, two = lifecycle.start(store, CallerClaims(), name="One"), lifecycle.start(store, CallerClaims())
    three = lifecycle.start(store, CallerClaims(client_session=HARNESS))
    everything: dict[str, object] = {
        "as_": "One", "session": two.session_id, "client_session": HARNESS, "terminal": True,
    }  # fmt: skip
    seen = []
    for name in ("as_", "session", "client_session", "terminal"):
        seen.append(found(store, **everything).reader)
        del everything[name]

    assert seen == [one.session_id, two.session_id, three.session_id, annas("human:person@example.org")]


def test_as_takes_an_exact_id_identity_or_live_name(repo: Path) -> None:
    """And is the session then, where it is one session."""
    store = open_store(repo, Clock())
    one = lifecycle.start(store, CallerClaims(), agent_identity=IDENTITY, name="Planck")
    for how in ["id", "identity", "name"]:
        text = {"id": one.session_id, "identity": IDENTITY, "name": "Planck"}[how]
        me = found(store, as_=text)

        assert (me.reader, me.session_id, me.author) == (
            IDENTITY,
            one.session_id,
            f"Planck <{words_of(IDENTITY)}@gitmem>",
        )
        assert (me.role, me.workspace, me.raw, me.is_person) == (None, None, False, False)


def test_as_is_never_a_guess(repo: Path) -> None:
    """Not folded, not a prefix, not fuzzy; also where the command needs nobody."""
    store = open_store(repo, Clock())
    lifecycle.start(store, CallerClaims(), agent_identity=IDENTITY, name="Planck")
    for text in ["planck", "Planc", "sess-000000", annas("codex:implementer:host43"), "", "nobody"]:
        with pytest.raises(UsageError) as caught:
            caller.find(store, CallerClaims(as_=text), must=False)

        assert caught.value.code == "unknown-session"


def test_an_identity_with_two_sessions_here_is_no_session(repo: Path) -> None:
    """It reads and writes as the identity alone."""
    store = open_store(repo, Clock())
    lifecycle.start(store, CallerClaims(), agent_identity=IDENTITY)
    lifecycle.start(store, CallerClaims(), agent_identity=IDENTITY)
    me = found(store, as_=IDENTITY)

    assert (me.reader, me.session_id, me.identity) == (IDENTITY, None, IDENTITY)


def test_an_unknown_session_is_an_error(repo: Path) -> None:
    """The sentence passes no escape on; where nobody is needed it does not matter."""
    store = open_store(repo, Clock())
    for session in ["sess-unknown00", "nonsense", "../../x", "\x1b[2J"]:
        with pytest.raises(UsageError) as caught:
            caller.find(store, CallerClaims(session=session))

        assert (caught.value.status, caught.value.code) == (2, "unknown-session")
        assert caught.value.message.isprintable()
        assert caller.find(store, CallerClaims(session=session), must=False) is None


def test_an_ended_session_is_an_error(repo: Path) -> None:
    """By GITMEM_SESSION and by `--as`."""
    store = open_store(repo, Clock())
    one = lifecycle.start(store, CallerClaims())
    lifecycle.end(store, acting(store, one))
    for who in (CallerClaims(session=one.session_id), CallerClaims(as_=one.session_id)):
        with pytest.raises(UsageError) as caught:
            caller.find(store, who)
        assert caught.value.code == "ended-session"


def test_a_raw_harness_id_is_the_reader(repo: Path) -> None:
    """Without a session started with it, or when that one has ended; the next step is to start one."""
    store = open_store(repo, Clock())
    me = found(store, client_session=HARNESS)
    assert (me.reader, me.session_id, me.raw, me.next) == (
        annas(store.keys.hashed(HARNESS[1])),
        annas(store.keys.hashed(HARNESS[1])),
        True,
        ["gitmem session start"],
    )
    say(store, me)

    one = lifecycle.start(store, CallerClaims(client_session=HARNESS))
    assert found(store, client_session=HARNESS).reader == one.session_id
    lifecycle.end(store, acting(store, one))
    assert found(store, client_session=HARNESS).raw


def test_without_a_word_the_only_session_of_this_worktree_calls(tmp_path: Path, repo: Path) -> None:
    """Known from the local file, idle or not; a session of another worktree is not meant, nor is the person."""
    side = worktree(repo, tmp_path / "side")
    clock = Clock()
    here, there = open_store(repo, clock), open_store(side, clock)
    assert found(here).is_person
    one = lifecycle.start(here, CallerClaims())
    for _ in range(3):
        me = found(here)
        assert (me.session_id, me.source) == (one.session_id, "worktree")
        assert me.remark and one.display_name in me.remark
        assert refused(there) == "which-session"
        clock.forward(7 * HOUR + 59 * MINUTE)
    clock.forward(HOUR)
    assert refused(here) == "which-session"
    assert (found(there).is_person, found(there).source) == (True, "nobody")
    lifecycle.end(here, acting(here, one))
    assert found(here).is_person


def test_a_terminal_is_a_person_whoever_is_live(repo: Path) -> None:
    """An agent's session in this worktree is not the person's."""
    store = open_store(repo, Clock())
    lifecycle.start(store, CallerClaims())
    me = found(store, terminal=True)

    assert (me.reader, me.author, me.session_id) == (
        annas("human:person@example.org"), "Test Person <person@example.org>", None,
    )  # fmt: skip


def test_two_live_sessions_and_no_word_is_an_error(repo: Path) -> None:
    """With both to choose from; no command that is offered acts as one of them."""
    clock = Clock()
    store = open_store(repo, clock)
    ids = []
    for _ in range(2):
        ids.insert(0, lifecycle.start(store, CallerClaims()).session_id)
        clock.forward(MINUTE)
    with pytest.raises(UsageError) as caught:
        caller.find(store, CallerClaims())

    assert (caught.value.status, caught.value.code) == (2, "which-session")
    assert caught.value.next == ["gitmem roster", "gitmem session start"]
    assert all(one in each for one, each in zip(ids, caught.value.suggestions, strict=True))
    assert "export GITMEM_SESSION=ID" in caught.value.hint
    assert caller.find(store, CallerClaims(), must=False) is None


def test_a_person_without_mail_may_look_and_not_act(repo: Path) -> None:
    """Acting says which command to run."""
    store = open_store(repo, Clock(), mail=None)
    assert caller.find(store, CallerClaims(terminal=True), must=False) is None
    with pytest.raises(UsageError) as caught:
        caller.find(store, CallerClaims(terminal=True))

    assert (caught.value.status, caught.value.next[0]) == (2, "git config user.email you@example.org")


def test_a_session_that_has_been_silent_for_long_can_still_act(repo: Path) -> None:
    """Gone is not ended."""
    clock = Clock()
    store = open_store(repo, clock)
    one = lifecycle.start(store, CallerClaims())
    clock.forward(100 * HOUR)

    assert acting(store, one).session_id == one.session_id


# Peers can write any number of sessions: each question reads a limited number, this clone's first, and loses none of these.

MOST, FORGED = presence.READ_MAX, presence.READ_MAX + 1
DEVELOPER, CLIENT = annas("codex:dev:shop"), "client-session-of-a-peer"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, str]]:
    """A store with a session of this clone, then many of a peer that claim to be everything it is."""
    clock = Clock()
    store = open_store(new_repo(tmp_path_factory.mktemp("many") / "repo"), clock)
    started = lifecycle.start(
        store, CallerClaims(), name="Planck", agent_identity=DEVELOPER, role="reviewer/docs"
    )
    mine = presence.get(store, str(started.session_id))
    assert mine is not None
    clock.forward(HOUR)
    lines = [
        records.line("session", clock() - number, {
            "session_id": own_id("sess", ANNA.writer, str(number)), "event": "start", "display_name": "Planck", "clone_id": "clone-far",
            "agent_identity": DEVELOPER, "lifecycle_role": "reviewer", "specialty_profile": "docs", "branch": mine.record["branch"],
            "harness_session": CLIENT,
        }, writer=ANNA.writer)
        for number in range(FORGED)
    ]  # fmt: skip
    store.record([("sessions", each) for each in lines], CommitMessage("x <x@example.org>", "flood"))
    yield store, str(started.session_id)
    store.close()


def _ids(found: Iterable[presence.Presence]) -> list[str]:
    return [one.session_id for one in found]


def _listed(store: Store) -> list[str]:
    found = roster.roles(store)
    assert found.remark == "More than 200 sessions hold roles: the others are not listed."
    (held,) = [each for each in found.roles if each.holders]
    return [one["session_id"] for one in held.holders]


def _pieces(store: Store) -> list[Section]:
    return context.live_pieces(store, None, 10_000, roster=True)


@pytest.mark.parametrize(
    ("ask", "most"),
    [
        pytest.param(lambda store: _ids(presence.shown(store).values()), MOST, id="shown"),
        pytest.param(lambda store: _ids(presence.shown(store, all=True).values()), MOST, id="all"),
        pytest.param(lambda store: _ids(presence.of_identity(store, DEVELOPER)), MOST, id="identity"),
        pytest.param(_listed, roster.HOLDERS_MAX, id="roles"),
        pytest.param(lambda store: _ids(*overlap.sessions_by_branch(store).values()), MOST, id="branches"),
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
        pytest.param(lambda store: presence.with_prefix(store, "sess-"), 4, id="prefix"),
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
        "node",
        store.log.clock.tick(),
        {**note, "sender_identity": DEVELOPER, "sender_session": peer},
        writer=ANNA.writer,
    )
    store.record([(records.STREAMS["node"], line)], CommitMessage("x <x@example.org>", "note"))
    me = presence.get(store, session_id)
    assert me is not None
    found = upkeep.cleanup(store, of_session(me, "as"), dry_run=True)
    assert found.removed_ids == [] and found.breakdown.active_session_protected == 1
