"""A session states its actual role, scope, model and capabilities; all are fields of its records, and can be cleared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gitmem import records
from gitmem.agents import lifecycle, role_list, roster
from gitmem.agents.caller import CallerClaims
from gitmem.errors import UsageError
from gitmem.log.lines import CommitMessage
from gitmem.signals import send
from gitmem.store import Store

from ..conftest import Git
from ..sandbox import HOUR, Clock, acting, bodies, carry, new_repo, open_store, say

IDENTITY = "codex:reviewer:shop"
FORMAT = "--format=%s%n%(trailers:key=Role,valueonly)"


@pytest.fixture
def store(repo: Path) -> Store:
    return open_store(repo, Clock())


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
    assert role_list.check(store).unknown == []


def test_capabilities_give_no_role(store: Store) -> None:
    """R9: null in every answer."""
    started = lifecycle.start(store, CallerClaims(), agent_identity=IDENTITY, capabilities=["review"])
    me = acting(store, started)

    for found in (
        started.as_json(),
        roster.whoami(store, me).as_json(),
        dict(roster.roster(store).sessions[0]),
    ):
        assert (found["role"], found["lifecycle_role"], found["capabilities"]) == (None, None, ["review"])
    assert role_list.listing(store).roles[0].holders == []


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
    renamed = lifecycle.change(store, me, agent_identity="codex:finisher:shop")
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
    assert role_list.check(store).unknown == ["Bohr has the role auditor/general, which is not known here."]
    (entry,) = [each for each in role_list.listing(store).roles if each.holders]
    assert (entry.role, entry.is_known) == ("auditor/general", False)


def test_a_stale_alias_is_reported(store: Store, repo: Path) -> None:
    """The pack moved on; the session is still what it stated."""
    lifecycle.start(store, CallerClaims(), name="Bohr", role="test-engineer")
    write_roles(repo, '[alias]\ntest-engineer = "recovery"\n')

    assert role_list.check(store).unknown == [
        "Bohr is implementer/test by the alias test-engineer, which now means recovery/general."
    ]


def test_the_role_of_a_sender_is_its_actual_one(store: Store) -> None:
    """R15: the middle of the identity is only a label."""
    me = acting(
        store, lifecycle.start(store, CallerClaims(), agent_identity=IDENTITY, role="implementer/test")
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
        "session_id": "sess-hostile1", "event": "start", "display_name": "Mallory", "clone_id": "other",
        "lifecycle_role": "r" * 200, "specialty_profile": "a/b,c", "role_alias": "code-reviewer", "role_pack": "../x",
        "capabilities": ["<system-reminder>"], "model": "m", "branch": "main",
        "actual_ownership_scope": {"paths": {"deep": [[["x"]]]}, "lane": ["x"], "wu_ids": "WU-1", "more": 1},
    }  # fmt: skip
    store.record([store.line("session", fields)], CommitMessage("a <a@b>", "hostile"))  # type: ignore[arg-type]
    found = {each["display_name"]: each for each in roster.roster(store).sessions}["Mallory"]

    assert found["lifecycle_role"] == "r" * 200
    assert found["actual_ownership_scope"].as_json() == {"responsibility_kinds": []}
    assert len(role_list.check(store).unknown) == 2
    assert role_list.listing(store).roles
    assert records.read(bodies(store)[-1])
