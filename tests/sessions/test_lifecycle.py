"""Sessions start, change and end; their names are held, released and told apart across clones."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitmem.agents import caller, heartbeats, lifecycle, names, presence, roster
from gitmem.agents.caller import CallerClaims
from gitmem.errors import UsageError
from gitmem.signals import announcements, inbox, send

from ..sandbox import (
    DAY,
    HOUR,
    MINUTE,
    Clock,
    acting,
    annas,
    bodies,
    carry,
    new_repo,
    no_role,
    open_store,
    say,
    worktree,
)

pytestmark = pytest.mark.usefixtures("pool_in_order")
WORDS = "codex:implementer:host42"
IDENTITY, MAIN = annas(WORDS), annas("claude:main:x")


@pytest.mark.usefixtures("commits")
def test_a_session_gets_a_name_and_says_who_it_is(repo: Path) -> None:
    """The fields of the JSON shape, and the command that makes it the caller's."""
    store = open_store(repo, Clock())
    name = names.pick(store)
    started = lifecycle.start(store, CallerClaims(), agent_identity=IDENTITY, wu="WU-123", lane="docs")

    assert started.as_json() == {
        "session_id": started.session_id, "agent_identity": IDENTITY, "display_name": name,
        "reader_identity": IDENTITY, "worktree": "repo", "wu_id": "WU-123", "lane": "docs", "initiative_id": None,
        "activity": None, "summary": None, **no_role("implementer"), "role_resolved_by": None,
        "commit": store.git.tip("refs/gitmem/log"), "recorded": True, "remark": None,
        "next": [f"export GITMEM_SESSION={started.session_id}", "gitmem inbox", "gitmem roster"],
    }  # fmt: skip


@pytest.mark.usefixtures("commits")
def test_the_summary_of_an_ended_session_reaches_other_clones(
    repo: Path, tmp_path: Path, git: object
) -> None:
    """On one line, in its record, the subject of its commit, the answer and the roster of every clone."""
    clock = Clock()
    here, there = open_store(repo, clock), open_store(new_repo(tmp_path / "there"), clock)
    planck = acting(here, lifecycle.start(here, CallerClaims(), name="Planck"))
    lifecycle.change(here, planck, activity="reading")
    ended = lifecycle.end(here, planck, summary=" Reader done,\n\twriter half ")
    carry(here, there)
    (row,) = roster.roster(there, all=True).sessions

    assert ended.summary == row["summary"] == "Reader done, writer half"
    assert (row["status"], row["activity"]) == ("ended", "reading")
    subject = git("log", "-1", "--format=%s", "refs/gitmem/log", cwd=repo)  # type: ignore[operator]
    assert subject.strip() == "Planck ends: Reader done, writer half"
    assert [b'"summary"' in each for each in sorted(bodies(here))] == [False, False, True]


@pytest.mark.parametrize(
    ("summary", "reason"),
    [("token ghp_" + "a1B2" * 9, "GitHub token"), ("x" * 1_025, "at most"), ("a\u202eb", "bidi")],
)
def test_a_summary_that_is_refused_ends_nothing(repo: Path, summary: str, reason: str) -> None:
    """The session goes on, and nobody is told that the work is done."""
    store = open_store(repo, Clock())
    caller = acting(store, lifecycle.start(store, CallerClaims(), wu="WU-7"))
    before = bodies(store)
    for done in (False, True):
        with pytest.raises(UsageError, match=reason):
            announcements.end_session(store, caller, summary=summary, done=done)

    assert bodies(store) == before
    if "ghp_" in summary:
        store.allow_secret = True
        assert announcements.end_session(store, caller, summary=summary).summary == summary


@pytest.mark.usefixtures("commits")
def test_the_log_tells_the_story_of_a_session(repo: Path, git: object) -> None:
    """Author, subject and trailers of start, change and end."""
    store = open_store(repo, Clock())
    started = lifecycle.start(store, CallerClaims(), agent_identity=IDENTITY, name="Planck", wu="WU-123")
    me = acting(store, started)
    lifecycle.change(store, me, wu="WU-124")
    lifecycle.change(store, me, name="Curie")
    lifecycle.end(store, acting(store, started))
    told = git("log", "-4", "--format=%an <%ae> %s", "refs/gitmem/log", cwd=repo)  # type: ignore[operator]
    trailers = git("log", "-1", "--format=%(trailers)", "refs/gitmem/log~2", cwd=repo)  # type: ignore[operator]

    assert told.splitlines() == [
        f"Curie <{WORDS}@gitmem> Curie ends",
        f"Planck <{WORDS}@gitmem> Planck is now called Curie",
        f"Planck <{WORDS}@gitmem> Planck changes: wu WU-124",
        f"Planck <{WORDS}@gitmem> Planck starts ({WORDS}) in repo on WU-123",
    ]
    assert trailers.split("\n")[:3] == ["WU: WU-124", f"Agent: {WORDS}", f"Session: {started.session_id}"]


@pytest.mark.usefixtures("commits")
def test_each_start_is_a_new_session(repo: Path) -> None:
    """But under one harness session id there is one, which takes up what is new."""
    store = open_store(repo, Clock())
    first, second = lifecycle.start(store, CallerClaims()), lifecycle.start(store, CallerClaims())
    client_session = CallerClaims(client_session=("CODEX_THREAD_ID", "thread-77"))
    third = lifecycle.start(store, client_session, wu="WU-1")
    again = lifecycle.start(store, client_session)
    changed = lifecycle.start(store, client_session, wu="WU-2")

    assert len({first.session_id, second.session_id, third.session_id}) == 3
    assert (again.session_id, again.commit, again.wu_id) == (third.session_id, None, "WU-1")
    assert (changed.session_id, changed.wu_id) == (third.session_id, "WU-2")


def test_after_its_end_a_harness_session_starts_anew(repo: Path) -> None:
    """An ended session is not taken up again; but the new one has its name, where nobody took that meanwhile."""
    store = open_store(repo, Clock())
    client_session = CallerClaims(client_session=("CODEX_THREAD_ID", "thread-77"))
    first = lifecycle.start(store, client_session)
    lifecycle.end(store, acting(store, first))
    second = lifecycle.start(store, client_session)
    lifecycle.end(store, acting(store, second))
    lifecycle.start(store, CallerClaims(), name=first.display_name)
    third = lifecycle.start(store, client_session)

    assert len({first.session_id, second.session_id, third.session_id}) == 3
    assert second.display_name == first.display_name != third.display_name


def test_hooks_of_two_scopes_that_start_at_once_make_one_session(repo: Path) -> None:
    """A client runs those of the project and of the user side by side, under one id of its own."""
    from concurrent.futures import ThreadPoolExecutor

    client_session = CallerClaims(client_session=("CLAUDE_CODE_SESSION_ID", "two-scopes"))
    stores = [open_store(repo, Clock()) for _ in range(8)]
    lifecycle.start(stores[0], CallerClaims())  # the log is there

    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda store: lifecycle.start(store, client_session).session_id, stores))

    assert len(found) == 1


def test_the_identity_of_the_surroundings_stands_for_the_option(repo: Path) -> None:
    """And the option wins."""
    store = open_store(repo, Clock())
    who = CallerClaims(identity=annas("a:b:env"))

    assert lifecycle.start(store, who).reader_identity == annas("a:b:env")
    assert lifecycle.start(store, who, agent_identity=IDENTITY).reader_identity == IDENTITY


def test_a_name_in_use_is_refused_with_three_that_are_free(repo: Path) -> None:
    """Also when it is only spelt differently; nothing is written."""
    store = open_store(repo, Clock())
    lifecycle.start(store, CallerClaims(), name="big dev")
    before = bodies(store)
    for name in ("big dev", "Big_Dev"):
        with pytest.raises(UsageError) as caught:
            lifecycle.start(store, CallerClaims(), name=name)
        assert (caught.value.code, len(caught.value.suggestions)) == ("name-in-use", 3)
        for free in caught.value.suggestions:
            lifecycle.names.claim(store, free)
    assert bodies(store) == before


@pytest.mark.usefixtures("commits")
@pytest.mark.parametrize(
    "name",
    [
        "",
        " x",
        "a,b",
        "a:b",
        "-x",
        "sess-123456",
        "x" * 65,
        "a\nb",
        "a\u202eb",
        "a\u200bb",
        "Pl\u0430nck",
        "--",
        "\x1b[1m",
    ],
)
def test_a_name_that_could_deceive_is_refused(repo: Path, name: str) -> None:
    """Nothing is written, and the sentence has no control character in it."""
    store = open_store(repo, Clock())
    with pytest.raises(UsageError) as caught:
        lifecycle.start(store, CallerClaims(), name=name)

    assert caught.value.code == "bad-name"
    assert caught.value.message.isprintable()
    assert store.git.tip("refs/gitmem/log") is None


@pytest.mark.usefixtures("commits")
def test_a_bad_field_writes_nothing(repo: Path) -> None:
    """The contract is checked before anything is recorded."""
    store = open_store(repo, Clock())
    for fields in ({"wu": "non sense"}, {"agent_identity": annas("human:me:x")}, {"lane": "a\nb"}):
        with pytest.raises(UsageError):
            lifecycle.start(store, CallerClaims(), **fields)
    assert store.git.tip("refs/gitmem/log") is None
    assert heartbeats.all_last_seen(store) == {}


def test_the_worktree_in_the_record_is_no_path(tmp_path: Path, repo: Path) -> None:
    """A home folder is nobody else's business; the local file has what tells the worktree from others."""
    side = worktree(repo, tmp_path / "api-7")
    store = open_store(side, Clock())
    started = lifecycle.start(store, CallerClaims())

    assert started.worktree == "api-7"
    assert heartbeats.known_sessions(store)[started.session_id][0] == store.repo.tree
    assert not any(str(tmp_path).encode() in line for line in bodies(store))


@pytest.mark.usefixtures("commits")
def test_a_change_that_changes_nothing_is_not_recorded(repo: Path) -> None:
    """And one that does has only what differs."""
    store = open_store(repo, Clock())
    started = lifecycle.start(store, CallerClaims(), name="One", wu="WU-1", lane="docs")
    me = acting(store, started)

    assert lifecycle.change(store, me, wu="WU-1", lane="docs", name="One").commit is None
    changed = lifecycle.change(store, me, wu="WU-2", lane="docs")
    assert (changed.wu_id, changed.lane) == ("WU-2", "docs")
    assert b"docs" not in bodies(store)[-1]


def test_a_name_can_be_changed_to_a_free_one_only(repo: Path) -> None:
    """The old one is free again at once."""
    store = open_store(repo, Clock())
    one, other = (
        lifecycle.start(store, CallerClaims(), name="One"),
        lifecycle.start(store, CallerClaims(), name="Other"),
    )
    with pytest.raises(UsageError, match="in use by"):
        lifecycle.change(store, acting(store, one), name="other")
    assert lifecycle.change(store, acting(store, one), name="Third").display_name == "Third"
    assert lifecycle.change(store, acting(store, other), name="One").display_name == "One"


def test_two_clones_that_chose_one_name_apart_agree_after_a_sync(tmp_path: Path, repo: Path) -> None:
    """The later one gets a number on both, and is told so."""
    clock = Clock()
    here, there = open_store(repo, clock), open_store(new_repo(tmp_path / "other"), clock)
    first = lifecycle.start(here, CallerClaims(), name="Planck")
    clock.forward(MINUTE)
    second = lifecycle.start(there, CallerClaims(), name="Planck")
    assert (first.display_name, second.display_name) == ("Planck", "Planck")
    carry(here, there)

    for store in (here, there):
        names = {one.session_id: one.name for one in presence.shown(store).values()}
        assert names == {first.session_id: "Planck", second.session_id: "Planck-2"}
    changed = lifecycle.change(there, acting(there, second), wu="WU-1")
    assert (changed.display_name, changed.remark) == (
        "Planck-2", "The name Planck belongs to an earlier session; your display name is Planck-2.",
    )  # fmt: skip


def test_a_name_is_held_for_two_days_after_the_last_record(repo: Path) -> None:
    """Then it can be had again, and the first holder gets it back only if it is free."""
    clock = Clock()
    store = open_store(repo, clock)
    first = lifecycle.start(store, CallerClaims(), name="Planck")
    clock.forward(47 * HOUR)
    with pytest.raises(UsageError):
        lifecycle.start(store, CallerClaims(), name="Planck")
    clock.forward(2 * HOUR)
    second = lifecycle.start(store, CallerClaims(), name="Planck")
    say(store, acting(store, first))

    assert second.display_name == "Planck"
    found = presence.shown(store)
    assert [found[each.session_id].name for each in (first, second)] == ["Planck-2", "Planck"]


def test_a_session_at_work_keeps_its_name_with_one_record_a_day(repo: Path) -> None:
    """A change without news, only when the last record is a day old."""
    clock = Clock()
    store = open_store(repo, clock)
    started = lifecycle.start(store, CallerClaims(), name="Planck")
    clock.forward(DAY - 1)
    assert acting(store, started).keepalive(store) == []
    clock.forward(DAY)
    ((stream, line),) = acting(store, started).keepalive(store)

    assert (stream, b'"event":"change"' in line, b'"display_name":"Planck"' in line) == (
        "sessions",
        True,
        True,
    )


def test_the_status_follows_the_heartbeat_here_and_the_records_elsewhere(tmp_path: Path, repo: Path) -> None:
    """Live for 15 minutes, idle for a day, then gone; ended when it says so."""
    clock = Clock()
    here, there = open_store(repo, clock), open_store(new_repo(tmp_path / "other"), clock)
    started = lifecycle.start(here, CallerClaims())
    carry(here, there)

    def states() -> tuple[str, str]:
        found = [presence.get(store, started.session_id) for store in (here, there)]
        return tuple(one.status for one in found if one)  # type: ignore[return-value]

    assert states() == ("live", "live")
    clock.forward(16 * MINUTE)
    assert states() == ("idle", "idle")
    acting(here, started).touch(here)
    assert states() == ("live", "idle")
    clock.forward(25 * HOUR)
    assert states() == ("gone", "gone")
    lifecycle.end(here, acting(here, started))
    carry(here, there)
    assert states() == ("ended", "ended")


def test_a_record_from_the_future_is_no_older_than_now(tmp_path: Path, repo: Path) -> None:
    """A clock that was an hour ahead makes nobody seen later than now."""
    ahead, clock = Clock(), Clock()
    ahead.forward(HOUR)
    there, here = open_store(new_repo(tmp_path / "other"), ahead), open_store(repo, clock)
    started = lifecycle.start(there, CallerClaims())
    carry(there, here)
    found = presence.get(here, started.session_id)

    assert found and (found.status, found.last_seen) == ("live", clock())


def test_a_folder_that_cannot_be_written_is_no_obstacle(repo: Path) -> None:
    """The heartbeat is lost, the session is not."""
    store = open_store(repo, Clock())
    store.log.make_state()
    (Path(store.repo.state) / "sessions").write_text("a file where the folder should be")
    started = lifecycle.start(store, CallerClaims())

    assert acting(store, started).session_id == started.session_id
    assert heartbeats.known_sessions(store) == {}


def test_old_local_files_are_forgotten(repo: Path) -> None:
    """A month after a session was last seen here; its records stay."""
    clock = Clock()
    store = open_store(repo, clock)
    first = lifecycle.start(store, CallerClaims())
    clock.forward(31 * DAY)
    second = lifecycle.start(store, CallerClaims())

    assert set(heartbeats.known_sessions(store)) == {second.session_id}
    assert presence.get(store, first.session_id) is not None


def test_a_person_has_no_session_to_change(repo: Path) -> None:
    """The error says how to get one."""
    store = open_store(repo, Clock())
    me = caller.find(store, CallerClaims(terminal=True))
    assert me
    with pytest.raises(UsageError) as caught:
        lifecycle.end(store, me)

    assert (caught.value.code, caught.value.next[0]) == ("no-session", "gitmem session start")


def test_the_list_leaves_out_who_is_gone(repo: Path) -> None:
    """Unless all are asked for."""
    clock = Clock()
    store = open_store(repo, clock)
    ended, gone = lifecycle.start(store, CallerClaims()), lifecycle.start(store, CallerClaims())
    lifecycle.end(store, acting(store, ended))
    clock.forward(25 * HOUR)
    live = lifecycle.start(store, CallerClaims())

    assert [each["session_id"] for each in roster.roster(store).sessions] == [live.session_id]
    every = {each["session_id"]: each["status"] for each in roster.roster(store, all=True).sessions}
    assert every == {ended.session_id: "ended", gone.session_id: "gone", live.session_id: "live"}


def test_a_session_that_becomes_another_agent_leaves_no_mail_behind(repo: Path) -> None:
    """A second start in one conversation is refused while mail waits; otherwise it says who the session was."""
    store = open_store(repo, Clock())
    conversation = CallerClaims(client_session=("CLAUDE_CODE_SESSION_ID", "cc-1"))
    main = lifecycle.start(store, conversation, name="Main", agent_identity=annas("claude:main:x"))
    other = acting(store, lifecycle.start(store, CallerClaims(), name="Curie"))
    send.send(store, other, "For Main", to=[annas("claude:main:x")])
    before = bodies(store)
    for act in (
        lambda: lifecycle.start(store, conversation, name="Sub", agent_identity=annas("claude:sub:x")),
        lambda: lifecycle.change(store, acting(store, main), agent_identity=annas("claude:sub:x")),
    ):
        with pytest.raises(UsageError) as caught:
            act()
        assert (caught.value.status, caught.value.code) == (2, "unread-mail")
        assert "1 unread" in caught.value.message and "gitmem inbox" in caught.value.next
    assert bodies(store) == before
    assert lifecycle.start(store, conversation, agent_identity=annas("claude:main:x")).remark is None

    inbox.mark(store, inbox.read(store, acting(store, main)))
    sub = lifecycle.start(store, conversation, name="Sub", agent_identity=annas("claude:sub:x"))
    assert sub.session_id == main.session_id
    assert f"was Main ({MAIN})" in str(sub.remark)
    assert f"gitmem session set --agent-identity {MAIN} --name Main" in str(sub.remark)
    sent = send.send(store, other, "Still there?", to=[annas("claude:main:x")])
    assert f"No session has the identity {MAIN} now" in " ".join(sent.warnings)

    send.send(store, other, "For Sub", to=["Sub"])
    lifecycle.start(store, CallerClaims(), name="Twin", agent_identity=annas("claude:sub:x"))  # it reads that
    assert "was Sub" in str(
        lifecycle.change(store, acting(store, sub), agent_identity=annas("claude:x:x")).remark
    )
