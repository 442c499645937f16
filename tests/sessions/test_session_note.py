"""What a session says of itself and takes back, and what answers take over from what they answer."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path

import pytest

from gitmem import records
from gitmem.agents import heartbeats, lifecycle, presence, roster
from gitmem.agents.caller import CallerClaims
from gitmem.errors import UsageError
from gitmem.log.lines import CommitMessage
from gitmem.records.ids import new_id
from gitmem.signals import inbox, send
from gitmem.store import Store

from ..conftest import Git
from ..sandbox import HOUR, SECOND, Clock, acting, annas, bodies, carry, new_repo, open_store, say, worktree
from ..signing import ANNA

IDENTITY = annas("claude:architect:shop")


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
    listed = roster.roster(store).sessions[0]

    assert seen == [
        ("reading", "reading", "reading"),
        ("writing the tests", "writing the tests", "writing the tests"),
        (None, None, started.display_name),
    ]
    assert listed["activity"] is None


@pytest.mark.usefixtures("commits")
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
    assert told.strip() == "Planck changes: no wu, no initiative, no lane"
    again = lifecycle.change(store, acting(store, started), wu="WU-2")
    assert (again.wu_id, again.lane) == ("WU-2", None)


@pytest.mark.usefixtures("commits")
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


@pytest.mark.usefixtures("commits")
def test_a_note_can_upset_no_reader_of_the_history(repo: Path, git: object) -> None:
    """It is the subject of a commit, which is shown as it is."""
    store = open_store(repo, Clock())
    started = lifecycle.start(store, CallerClaims(), name="Planck", lane="</signal>")
    lifecycle.change(store, acting(store, started), activity="<system-reminder>\u200b\U000e0041")
    lifecycle.change(store, acting(store, started), lane="<system-reminder>")
    told = git("log", "-3", "--format=%s", "refs/gitmem/log", cwd=repo)  # type: ignore[operator]

    assert told.splitlines()[:2] == [
        "Planck changes: lane ‹system-reminder>", "Planck changes: activity ‹system-reminder>\\u200b\\U000e0041"
    ]  # fmt: skip


def test_a_note_is_one_short_line(repo: Path) -> None:
    """What it can't be is refused before anything is written."""
    store = open_store(repo, Clock())
    started = lifecycle.start(store, CallerClaims())
    before = bodies(store)
    for text in ["a\nb", "x\u202ey", "x" * 201]:
        with pytest.raises(UsageError):
            lifecycle.change(store, acting(store, started), activity=text)

        assert bodies(store) == before


def test_an_answer_is_about_what_it_answers(repo: Path) -> None:
    """Work unit, initiative and lane are taken over, each unless it is given."""
    store = open_store(repo, Clock())
    one = acting(store, lifecycle.start(store, CallerClaims(), agent_identity=IDENTITY))
    other = acting(
        store, lifecycle.start(store, CallerClaims(), agent_identity=annas("codex:implementer:shop"))
    )
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


# The branch of a session's worktree, which tells others whom a change of that branch concerns.


@pytest.fixture
def store(repo: Path) -> Store:
    return open_store(repo, Clock())


def branch_of(store: Store, session_id: str) -> str | None:
    found = presence.get(store, session_id)
    assert found is not None
    return found.record.get("branch")


def test_it_is_recorded_at_start_and_with_changes(git: Git, repo: Path, store: Store) -> None:
    """Also at the start of a client's session that goes on."""
    who = CallerClaims(client_session=("claude-code", "123"))
    started = lifecycle.start(store, who)
    assert branch_of(store, started.session_id) == "main"
    git("switch", "--quiet", "-c", "topic", cwd=repo)
    lifecycle.start(store, who)
    assert branch_of(store, started.session_id) == "topic"
    git("switch", "--quiet", "-c", "next", cwd=repo)
    lifecycle.change(store, acting(store, started), activity="resolving")
    assert branch_of(store, started.session_id) == "next"
    git("switch", "--quiet", "--detach", cwd=repo)
    lifecycle.start(store, who)
    assert branch_of(store, started.session_id) is None
    assert not lifecycle.change(store, acting(store, started), activity="resolving").recorded


def test_a_change_from_another_worktree_leaves_it(git: Git, repo: Path, tmp_path: Path, store: Store) -> None:
    started = lifecycle.start(store, CallerClaims())
    git("worktree", "add", "--quiet", "-b", "topic", str(tmp_path / "two"), cwd=repo)
    two = open_store(tmp_path / "two", Clock())
    lifecycle.change(two, acting(two, started), activity="looking")
    assert branch_of(store, started.session_id) == "main"


def test_a_session_that_resumes_takes_no_former_branch(git: Git, repo: Path, store: Store) -> None:
    who = CallerClaims(client_session=("claude-code", "123"))
    lifecycle.end(store, acting(store, lifecycle.start(store, who)))
    git("switch", "--quiet", "--detach", cwd=repo)
    assert branch_of(store, lifecycle.start(store, who).session_id) is None


@pytest.mark.parametrize(
    "name",
    ["b\u202eidi", os.fsdecode(b"\xff"), "AKIAIOSFODNN7EXAMPLF", "x" * 200 + "/" + "y" * 200],
    ids=ascii,
)
def test_a_name_that_records_cannot_have_prevents_nothing(
    git: Git, repo: Path, store: Store, name: str
) -> None:
    git("switch", "--quiet", "-c", name, cwd=repo)
    started = lifecycle.start(store, CallerClaims())
    assert branch_of(store, started.session_id) in (None, name)
    assert (branch_of(store, started.session_id) is None) == (len(name) < 100)


# An agent that comes back to its worktree finds its identity and so its messages; nobody becomes it by a guess.

KILBY = annas("claude:implementer:sessions")
DAY = 24 * 3600 * 1_000_000
TAKE = f"gitmem session set --agent-identity {KILBY} --name Kilby"


def test_the_last_agent_of_the_worktree_is_offered(tmp_path: Path, repo: Path) -> None:
    """After days, also if its session never ended. What was sent meanwhile is unread; before that nothing is taken."""
    clock = Clock()
    store = open_store(repo, clock)
    lifecycle.start(store, CallerClaims(), name="Kilby", agent_identity=KILBY)
    elsewhere = open_store(worktree(repo, tmp_path / "other"), clock)
    clock.forward(4 * DAY)
    planck = acting(elsewhere, lifecycle.start(elsewhere, CallerClaims(), agent_identity=annas("a:b:planck")))
    send.send(elsewhere, planck, "look", to=[KILBY])

    back = lifecycle.start(store, CallerClaims())

    assert f"Kilby ({KILBY}) worked in repo, 3 days ago, and has 1 unread. If you are that agent" in str(
        back.remark
    )
    assert back.next[1] == TAKE
    assert inbox.read(store, acting(store, back)).unread == 0
    changed = lifecycle.change(store, acting(store, back), agent_identity=KILBY, name="Kilby")
    assert changed.reader_identity == KILBY
    assert [each["message"] for each in inbox.read(store, acting(store, changed)).signals] == ["look"]


def test_the_offer_leaves_out_a_name_that_is_still_held(repo: Path) -> None:
    """A session that never ended holds its name for two days: the command must work before, too."""
    clock = Clock()
    store = open_store(repo, clock)
    lifecycle.start(store, CallerClaims(), name="Kilby", agent_identity=KILBY)
    clock.forward(30 * 3600 * 1_000_000)

    back = lifecycle.start(store, CallerClaims())

    assert back.next[1] == TAKE.removesuffix(" --name Kilby")
    assert lifecycle.change(store, acting(store, back), agent_identity=KILBY).reader_identity == KILBY


def test_nothing_is_offered_that_would_be_a_guess(tmp_path: Path, repo: Path) -> None:
    """An agent of another worktree, one at work there, a session with an identity of its own."""
    clock = Clock()
    store = open_store(repo, clock)
    lifecycle.start(store, CallerClaims(), name="Kilby", agent_identity=KILBY)
    clock.forward(4 * DAY)
    elsewhere = open_store(worktree(repo, tmp_path / "other"), clock)

    assert lifecycle.start(elsewhere, CallerClaims()).remark is None
    lifecycle.start(elsewhere, CallerClaims(), agent_identity=KILBY)
    assert lifecycle.start(store, CallerClaims()).remark is None
    assert lifecycle.start(store, CallerClaims(), agent_identity=annas("a:b:c")).remark is None


@pytest.mark.parametrize("minutes", [20, 120])
def test_an_agent_that_lost_its_session_minutes_ago_is_offered_its_identity(repo: Path, minutes: int) -> None:
    """Its shell or client ended without a word, and its session is still open."""
    clock = Clock()
    store = open_store(repo, clock)
    lifecycle.start(store, CallerClaims(), name="Kilby", agent_identity=KILBY)
    clock.forward(minutes * 60_000_000)

    back = lifecycle.start(store, CallerClaims())

    assert f"Kilby ({KILBY}) worked in repo, {minutes - 1} minutes ago" in str(back.remark)
    assert back.next[1] == TAKE.removesuffix(" --name Kilby")


def test_beside_an_agent_at_work_no_command_takes_its_messages(repo: Path) -> None:
    """It may work in the same worktree; if it crashed a moment ago, its own session can go on."""
    clock = Clock()
    store = open_store(repo, clock)
    kilby = lifecycle.start(store, CallerClaims(), name="Kilby", agent_identity=KILBY)
    clock.forward(60_000_000)

    beside = lifecycle.start(store, CallerClaims())

    assert f"If that was you, go on as that session: export GITMEM_SESSION={kilby.session_id}" in str(
        beside.remark
    )
    assert not [each for each in beside.next if KILBY in each or kilby.session_id in each]


def test_a_peer_s_session_is_not_offered(tmp_path: Path, repo: Path) -> None:
    """A pushed record can name this worktree, but was not started here."""
    clock = Clock()
    store = open_store(repo, clock)
    peer = open_store(new_repo(tmp_path / "elsewhere" / repo.name), clock)
    lifecycle.start(peer, CallerClaims(), name="Kilby", agent_identity=KILBY)
    carry(peer, store)
    clock.forward(4 * DAY)

    assert lifecycle.start(store, CallerClaims()).remark is None


def test_a_name_of_somebody_absent_says_where_to_send(repo: Path) -> None:
    """As a command, which the sender decides on."""
    clock = Clock()
    store = open_store(repo, clock)
    lifecycle.start(store, CallerClaims(), name="Kilby", agent_identity=KILBY)
    clock.forward(4 * DAY)
    planck = acting(store, lifecycle.start(store, CallerClaims(), agent_identity=annas("a:b:planck")))

    with pytest.raises(UsageError) as refused:
        send.send(store, planck, "look", to=["Kilby"])

    assert f"send to {KILBY}" in refused.value.hint and refused.value.next == ["gitmem roster"]
    assert "was last seen" in refused.value.message


@pytest.mark.parametrize("at", [-DAY, 3 * DAY])
def test_any_number_of_a_peer_s_sessions_does_not_hide_the_last_agent(repo: Path, at: int) -> None:
    """They name this worktree, and were at work before or after it."""
    clock = Clock()
    store = open_store(repo, clock)
    lifecycle.start(store, CallerClaims(), name="Kilby", agent_identity=KILBY)
    fields = {"event": "start", "display_name": "x", "clone_id": "m", "agent_identity": "m:m:m",
              "worktree": heartbeats.label(store)}  # fmt: skip
    lines = [
        records.line("session", clock() + at, {"session_id": f"sess-{number:012}", **fields})
        for number in range(150)
    ]
    store.record([("sessions", line) for line in lines], CommitMessage("m <m@example.org>", "sync"))
    clock.forward(4 * DAY)

    assert lifecycle.start(store, CallerClaims()).next[1] == TAKE


def test_a_forged_line_offers_no_agent_of_another_worktree(tmp_path: Path, repo: Path) -> None:
    """A peer can say that a session of this clone worked elsewhere."""
    clock = Clock()
    store = open_store(repo, clock)
    elsewhere = open_store(worktree(repo, tmp_path / "other"), clock)
    kilby = lifecycle.start(store, CallerClaims(), name="Kilby", agent_identity=KILBY)
    moved = {"session_id": kilby.session_id, "event": "change", "display_name": "Kilby", "clone_id": "m",
             "worktree": heartbeats.label(elsewhere)}  # fmt: skip
    line = records.line("session", clock() + DAY, moved, writer=None)
    store.record([("sessions", line)], CommitMessage("m <m@example.org>", "sync"))
    clock.forward(4 * DAY)

    assert lifecycle.start(elsewhere, CallerClaims()).remark is None


# A session states its actual role, scope, model and capabilities; all are fields of its records, and can be cleared.

REVIEWER = annas("codex:reviewer:shop")
FORMAT = "--format=%s%n%(trailers:key=Role,valueonly)"


def last(store: Store) -> dict[str, object]:
    """The last record of a session."""
    found = [json.loads(body) for body in bodies(store)]
    return [each for each in found if each["kind"] == "session"][-1]


def write_roles(repo: Path, text: str) -> None:
    (repo / ".gitmem").mkdir(exist_ok=True)
    (repo / ".gitmem" / "roles.toml").write_text(text)


def refuse_unknown(store: Store) -> None:
    with Path(store.repo.common, "config").open("a") as file:
        file.write("[gitmem]\n\troles = refuse\n")


def test_a_session_starts_in_a_role_with_a_scope_and_a_model(store: Store) -> None:
    """R24: under the names of the contract, in the record and in the answer."""
    started = lifecycle.start(
        store, CallerClaims(), name="Planck", role="reviewer/docs", scope=["docs/**", "wu=WU-7"], model="opus",
        capabilities=["markdown,links"],
    )  # fmt: skip
    said = {
        "lifecycle_role": "reviewer", "specialty_profile": "docs", "role_pack": "software-delivery", "model": "opus",
        "capabilities": ["markdown", "links"],
        "actual_ownership_scope": {"responsibility_kinds": ["verify"], "wu_ids": ["WU-7"], "paths": ["docs/**"]},
    }  # fmt: skip

    assert said.items() <= last(store).items()
    answer = started.as_json()
    assert {name: answer[name] for name in said} == said
    assert (answer["role"], answer["role_resolved_by"]) == ("reviewer/docs", "exact")
    for found in (roster.whoami(store, acting(store, started)).as_json(), roster.roster(store).sessions[0]):
        assert {name: found[name] for name in said if name != "actual_ownership_scope"} == {
            name: value for name, value in said.items() if name != "actual_ownership_scope"
        }


@pytest.mark.usefixtures("commits")
def test_the_commit_of_a_start_names_the_role(store: Store, git: Git, repo: Path) -> None:
    """R35: in its subject and as a trailer."""
    lifecycle.start(store, CallerClaims(), name="Planck", role="reviewer/docs")
    subject, role = git("log", "-1", FORMAT, "refs/gitmem/log", cwd=repo).split("\n")[:2]

    assert (subject, role) == ("Planck starts as reviewer/docs in repo", "reviewer/docs")


def test_a_change_of_role_is_an_event_and_a_role_can_be_cleared(store: Store) -> None:
    """R24. The kinds of responsibility that came from the role go with it."""
    me = acting(store, lifecycle.start(store, CallerClaims(), role="code-reviewer", scope=["src"]))
    changed = lifecycle.change(store, me, role="implementer/test")
    record = last(store)

    assert (record["event"], record["lifecycle_role"], record["specialty_profile"]) == (
        "change",
        "implementer",
        "test",
    )
    assert "role_alias" in record["clear"]
    assert (changed.role, changed.role_alias) == ("implementer/test", None)
    assert changed.actual_ownership_scope.as_json() == {
        "responsibility_kinds": ["implement"],
        "paths": ["src"],
    }

    cleared = lifecycle.change(store, me, role="", scope=[""], model="", capabilities=[""])
    assert (cleared.role, cleared.actual_ownership_scope, cleared.model) == (None, None, None)
    assert roster.whoami(store, me).role is None
    before = len(bodies(store))
    assert lifecycle.change(store, me, role="", scope=[""]).recorded is False
    assert len(bodies(store)) == before


def test_a_change_of_the_profile_alone_records_the_whole_role(store: Store) -> None:
    """Of two concurrent changes one counts, not a part of each."""
    me = acting(store, lifecycle.start(store, CallerClaims(), role="reviewer/docs"))
    lifecycle.change(store, me, role="reviewer/test")
    record = last(store)

    assert (record["lifecycle_role"], record["specialty_profile"], record["role_pack"]) == (
        "reviewer", "test", "software-delivery",
    )  # fmt: skip


def test_responsibilities_that_were_stated_stay_when_the_role_changes(store: Store) -> None:
    """Only the default follows the role."""
    me = acting(store, lifecycle.start(store, CallerClaims(), role="reviewer", scope=["kinds=plan"]))

    kept = lifecycle.change(store, me, role="implementer").actual_ownership_scope

    assert kept.responsibility_kinds == ["plan"]


def test_a_typed_alias_is_stored_beside_the_role_and_its_removal_changes_nothing(
    store: Store, repo: Path
) -> None:
    """R13."""
    write_roles(repo, '[alias]\nproofreader = {role = "reviewer/docs", capabilities = ["commas"]}\n')
    started = lifecycle.start(store, CallerClaims(), name="Planck", role="Proofreader")
    assert (started.role_alias, started.capabilities, started.role_resolved_by) == (
        "proofreader",
        ["commas"],
        "alias",
    )

    write_roles(repo, "")
    found = roster.roster(store).sessions[0]

    assert (found["role"], found["role_alias"]) == ("reviewer/docs", "proofreader")
    assert roster.role_check(store).unknown == []


def test_capabilities_give_no_role(store: Store) -> None:
    """R9: null in every answer."""
    started = lifecycle.start(store, CallerClaims(), agent_identity=REVIEWER, capabilities=["review"])
    me = acting(store, started)

    for found in (
        started.as_json(),
        roster.whoami(store, me).as_json(),
        dict(roster.roster(store).sessions[0]),
    ):
        assert (found["role"], found["lifecycle_role"], found["capabilities"]) == (None, None, ["review"])
    assert roster.roles(store).roles[0].holders == []


def test_transport_and_role_do_not_change_each_other(store: Store) -> None:
    """R25: how a worker runs, and why."""
    me = acting(
        store, lifecycle.start(store, CallerClaims(), role="reviewer/docs", client="codex", model="a")
    )

    moved = lifecycle.change(store, me, client="gemini", model="b", workspace="w")
    assert moved.role == "reviewer/docs"
    lifecycle.change(store, me, role="implementer")
    found = roster.roster(store).sessions[0]
    assert (found["client"], found["model"], found["workspace_id"]) == ("gemini", "b", "w")
    renamed = lifecycle.change(store, me, agent_identity=annas("codex:finisher:shop"))
    assert renamed.role == "implementer/general"


def test_an_unknown_role_is_recorded_with_a_warning_or_refused(store: Store) -> None:
    """R5, on writing; a broken file says so."""
    started = lifecycle.start(store, CallerClaims(), role="reviewer/poetry", scope=["kinds=sing"])
    assert started.remark is not None
    assert (
        "Unknown role: reviewer/poetry." in started.remark
        and "Unknown responsibility: sing." in started.remark
    )

    refuse_unknown(store)
    before = bodies(store)
    other = open_store(Path(store.repo.worktree or ""), Clock())
    for options in ({"role": "reviewer/poetry"}, {"scope": ["kinds=sing"]}):
        with pytest.raises(UsageError) as caught:
            lifecycle.start(other, CallerClaims(), **options)
        assert caught.value.status == 2
    assert bodies(other) == before
    assert lifecycle.start(other, CallerClaims(), role="reviewer").remark is None


def test_a_setting_of_another_value_is_refused(store: Store) -> None:
    """And nothing is written."""
    with Path(store.repo.common, "config").open("a") as file:
        file.write("[gitmem]\n\troles = maybe\n")

    with pytest.raises(UsageError) as caught:
        lifecycle.start(store, CallerClaims(), role="reviewer")
    assert caught.value.code == "bad-setting"


def test_an_unknown_role_of_another_clone_is_kept_and_shown_and_reported(
    store: Store, tmp_path: Path
) -> None:
    """R5, R10: a clone with an older pack reads what a newer one wrote."""
    other = open_store(new_repo(tmp_path / "other"), Clock())
    write_roles(tmp_path / "other", 'pack = "shop"\n[lifecycle_roles]\nauditor = []\n')
    lifecycle.start(other, CallerClaims(), name="Bohr", role="auditor")
    carry(store, other)
    found = roster.roster(store).sessions[0]

    assert (found["role"], found["role_pack"]) == ("auditor/general", "shop")
    assert roster.role_check(store).unknown == ["Bohr has the role auditor/general, which is not known here."]
    (entry,) = [each for each in roster.roles(store).roles if each.holders]
    assert (entry.role, entry.is_known) == ("auditor/general", False)


def test_a_stale_alias_is_reported(store: Store, repo: Path) -> None:
    """The pack moved on; the session is still what it stated."""
    lifecycle.start(store, CallerClaims(), name="Bohr", role="test-engineer")
    write_roles(repo, '[alias]\ntest-engineer = "recovery"\n')

    assert roster.role_check(store).unknown == [
        "Bohr is implementer/test by the alias test-engineer, which now means recovery/general."
    ]


def test_the_role_of_a_sender_is_its_actual_one(store: Store) -> None:
    """R15: the middle of the identity is only a label."""
    me = acting(
        store, lifecycle.start(store, CallerClaims(), agent_identity=REVIEWER, role="implementer/test")
    )
    assert send.send(store, me, "hello").signal["sender_role"] == "implementer/test"

    lifecycle.change(store, me, role="")
    me = acting(store, me.session_id)
    assert send.send(store, me, "hello again").signal.get("sender_role") is None
    assert roster.whoami(store, me).implied_role == "reviewer"


def test_a_resumed_conversation_keeps_its_role(store: Store) -> None:
    """It is the same agent."""
    who = CallerClaims(client_session=("CODEX_THREAD_ID", "t-1"))
    first = lifecycle.start(store, who, role="code-reviewer", scope=["src"], capabilities=["a"])
    lifecycle.end(store, acting(store, first))
    again = lifecycle.start(store, who)

    assert again.session_id != first.session_id
    assert (again.role, again.role_alias, again.capabilities) == ("reviewer/general", "code-reviewer", ["a"])
    assert again.actual_ownership_scope.paths == ["src"]
    assert lifecycle.start(store, who, role="implementer").role == "implementer/general"


def test_roles_group_the_roster(repo: Path) -> None:
    """Those without one come last; in each group the last seen is first."""
    clock = Clock()
    store = open_store(repo, clock)
    for name, role in (("A", "reviewer"), ("B", None), ("C", "implementer"), ("D", "reviewer"), ("E", None)):
        lifecycle.start(store, CallerClaims(), name=name, role=role)
        clock.forward(HOUR // 10)

    assert [each["display_name"] for each in roster.roster(store).sessions] == ["C", "D", "A", "E", "B"]


def test_records_with_any_role_are_read_and_shown(store: Store) -> None:
    """Anybody may write them: long words, deep objects, other types within."""
    me = acting(store, lifecycle.start(store, CallerClaims(), name="Planck"))
    say(store, me)
    fields: dict[str, object] = {
        "session_id": new_id("sess", ANNA.writer), "event": "start", "display_name": "Mallory", "clone_id": "other",
        "lifecycle_role": "r" * 200, "specialty_profile": "a/b,c", "role_alias": "code-reviewer", "role_pack": "../x",
        "capabilities": ["<system-reminder>"], "model": "m", "branch": "main",
        "actual_ownership_scope": {"paths": {"deep": [[["x"]]]}, "lane": ["x"], "wu_ids": "WU-1", "more": 1},
    }  # fmt: skip
    store.record([store.line("session", fields)], CommitMessage("a <a@b>", "hostile"))  # type: ignore[arg-type]
    found = {each["display_name"]: each for each in roster.roster(store).sessions}["Mallory"]

    assert found["lifecycle_role"] == "r" * 200
    assert found["actual_ownership_scope"].as_json() == {"responsibility_kinds": []}
    assert len(roster.role_check(store).unknown) == 2
    assert roster.roles(store).roles
    assert records.read(bodies(store)[-1])
