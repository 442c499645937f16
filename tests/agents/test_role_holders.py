"""`--to role:…` reaches everybody who holds the role now, or nothing is written. It is never fuzzy."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gitmem.agents import addressing, lifecycle
from gitmem.agents.caller import Caller, CallerClaims
from gitmem.errors import UsageError
from gitmem.log.lines import CommitMessage
from gitmem.signals import send
from gitmem.store import Store

from ..sandbox import DAY, HOUR, MINUTE, Clock, acting, bodies, carry, new_repo, open_store, say


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(repo: Path, clock: Clock) -> Store:
    return open_store(repo, clock)


def start(store: Store, name: str, role: str | None, identity: bool = True) -> str:
    known = f"test:worker:{name.lower()}" if identity else None
    return lifecycle.start(store, CallerClaims(), name=name, agent_identity=known, role=role).session_id


def reached(store: Store, to: str, caller: Caller | None = None) -> list[tuple[str, str]]:
    return [(each.address, each.resolved_by) for each in addressing.resolve(store, [to], caller=caller)]


def refused(store: Store, to: str, caller: Caller | None = None, **options: bool) -> UsageError:
    before = bodies(store)
    with pytest.raises(UsageError) as caught:
        addressing.resolve(store, [to], caller=caller, **options)
    assert bodies(store) == before and caught.value.status == 2 and caught.value.next
    return caught.value


def test_a_role_is_all_who_hold_it_by_their_identities(store: Store) -> None:
    """R35; without a profile it is every profile. By its id where a session has no identity."""
    start(store, "Planck", "reviewer/docs")
    start(store, "Curie", "reviewer/docs")
    bohr = start(store, "Bohr", "reviewer/test", identity=False)
    start(store, "Mach", "implementer")
    start(store, "Hertz", None)

    docs = [("test:worker:planck", "role"), ("test:worker:curie", "role")]
    assert sorted(reached(store, "role:reviewer/docs")) == sorted(docs)
    assert sorted(reached(store, "Role:Reviewer")) == sorted([*docs, (bohr, "role")])
    found = addressing.resolve(store, ["role:reviewer/test, Planck,role:reviewer/docs"])
    assert [(each.query, each.address, each.resolved_by) for each in found] == [
        ("role:reviewer/test", bohr, "role"), ("Planck", "test:worker:planck", "exact"),
        ("role:reviewer/docs", "test:worker:curie", "role"),
    ]  # fmt: skip


def test_an_alias_names_its_role(store: Store) -> None:
    """R14, R12: with and without `role:`, also a legacy one; the step is told."""
    start(store, "Planck", "reviewer/general")
    start(store, "Curie", "reviewer/docs")

    for typed in ("role:code-reviewer", "code-reviewer", "Code_Reviewer"):
        assert reached(store, typed) == [("test:worker:planck", "alias")]
    assert reached(store, "lumenflow-doc-sync") == [("test:worker:curie", "alias")]


def test_two_sessions_of_one_agent_are_one_recipient(store: Store) -> None:
    """Its mail is shared."""
    for name in ("Planck", "Curie"):
        lifecycle.start(store, CallerClaims(), name=name, agent_identity="test:worker:one", role="reviewer")

    assert reached(store, "role:reviewer") == [("test:worker:one", "role")]


def test_a_role_that_nobody_holds_is_refused(store: Store) -> None:
    """R35: and nothing is written; prefixes, typing errors and groups hold nothing either."""
    me = acting(store, start(store, "Planck", "reviewer/docs"))

    for typed in ("role:finisher", "role:rev", "role:reviewr/docs", "role:reviewer/doc", "role:", "role:*", "role:all",
                  "bug-triage", "role:docs"):  # fmt: skip
        assert refused(store, typed, fuzzy=True, allow_unseen=True).code == "no-role-holder"
    assert refused(store, "role:reviewr/docs").suggestions[0] == "role:reviewer/docs"
    assert "nobody but you" in refused(store, "role:reviewer", me).message


def test_the_sender_is_no_recipient(store: Store) -> None:
    """Whoever asks the reviewers is asked by nobody."""
    me = acting(store, start(store, "Planck", "reviewer"))
    start(store, "Curie", "reviewer")

    assert reached(store, "role:reviewer", me) == [("test:worker:curie", "role")]


def test_a_holder_has_a_line_of_the_last_day_and_is_told_with_its_age(store: Store, clock: Clock) -> None:
    """M5: which is the same on every clone; heartbeats are local."""
    start(store, "Gone", "reviewer")
    clock.forward(DAY - HOUR)
    ended = acting(store, start(store, "Ended", "reviewer"))
    lifecycle.end(store, ended)
    quiet = acting(store, start(store, "Quiet", "reviewer"))
    clock.forward(2 * HOUR)

    (found,) = addressing.resolve(store, ["role:reviewer"])
    assert (found.address, found.role) == (quiet.reader, "reviewer")
    assert found.remark is not None and "119 minutes ago" in found.remark
    clock.forward(DAY)
    refused(store, "role:reviewer")


def test_a_name_of_a_session_comes_before_an_alias(store: Store, repo: Path, clock: Clock) -> None:
    """I3: a file of the repository must not redirect what is meant for an agent, not even when it is gone."""
    start(store, "Planck", None)
    start(store, "Curie", "reviewer")
    (repo / ".gitmem").mkdir()
    (repo / ".gitmem" / "roles.toml").write_text('[alias]\nplanck = "reviewer"\n"curie" = "reviewer"\n')
    assert reached(store, "planck") == [("test:worker:planck", "folded")]

    lifecycle.end(store, acting(store, "sess-" + store.db().execute(
        "SELECT substr(session_id, 6) FROM session WHERE display_name = 'Planck'").fetchone()[0]))  # fmt: skip
    assert refused(store, "planck").code == "unknown-recipient"


def test_an_identity_that_begins_with_role_is_an_identity(store: Store) -> None:
    """It has another colon."""
    lifecycle.start(store, CallerClaims(), agent_identity="role:reviewer:shop", name="Planck")

    assert reached(store, "role:reviewer:shop") == [("role:reviewer:shop", "exact")]


def test_a_role_that_only_others_know_reaches_those_who_state_it(store: Store, tmp_path: Path) -> None:
    """R10: an older pack does not cut anybody off."""
    other = open_store(new_repo(tmp_path / "other"), Clock())
    lifecycle.start(other, CallerClaims(), name="Bohr", agent_identity="a:b:c", role="auditor/tax")
    carry(store, other)

    assert reached(store, "role:Auditor/tax") == [("a:b:c", "role")]


def forge(store: Store, session_id: str, name: str, **fields: object) -> None:
    """Record a change of a session of this clone as a peer would: without a code."""
    record = {"session_id": session_id, "event": "change", "display_name": name, "clone_id": "x", **fields}
    _, line = store.line("session", record)  # type: ignore[arg-type]
    store.record([("sessions", line[: line.rindex(b',"mac"')] + b"}")], CommitMessage("a <a@b>", "forged"))


def test_a_forged_role_of_a_session_of_this_clone_reaches_nobody(store: Store) -> None:
    """Lines that were not written here do not say what a session here is; they take no role from it either."""
    planck, curie = start(store, "Planck", None), start(store, "Curie", "finisher/docs")
    bohr = start(store, "Bohr", "recovery/docs")
    forge(store, planck, "Planck", lifecycle_role="reviewer", specialty_profile="docs")
    forge(store, curie, "Curie", clear=["lifecycle_role", "specialty_profile"])
    forge(store, bohr, "Bohr", specialty_profile="test")

    refused(store, "role:reviewer")
    refused(store, "role:recovery/test")
    assert reached(store, "role:finisher") == [("test:worker:curie", "role")]
    assert reached(store, "role:recovery/docs") == [("test:worker:bohr", "role")]


def test_more_holders_than_a_signal_should_have_are_refused(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Peers can write any number of sessions."""
    lines = []
    for number in range(addressing.HOLDERS_MAX + 1):
        record = {"session_id": f"sess-many{number:04}", "event": "start", "display_name": f"N{number}", "clone_id": "x",
                  "lifecycle_role": "reviewer", "specialty_profile": "docs"}  # fmt: skip
        lines.append(store.line("session", record))  # type: ignore[arg-type]
    store.record(lines, CommitMessage("a <a@b>", "many"))

    assert refused(store, "role:reviewer").code == "too-many-recipients"


def test_a_signal_to_a_role_names_it(store: Store) -> None:
    """What was typed, how it was resolved, and the role; also in the commit."""
    start(store, "Curie", "reviewer/docs")
    start(store, "Bohr", "reviewer/docs")
    me = acting(store, start(store, "Planck", "implementer"))
    signal = send.send(store, me, "Please review.", to=["role:reviewer/docs"]).signal

    assert sorted(signal["recipients"]) == ["test:worker:bohr", "test:worker:curie"]
    assert signal["requested_to"] == ["role:reviewer/docs"] * 2
    assert (signal["resolved_by"], signal["target_role"]) == (["role", "role"], "reviewer/docs")
    given = send.send(store, me, "Again.", to=["role:reviewer"], target_role="auditor").signal
    assert given["target_role"] == "auditor"
    show = ["git", "log", "-1", "--format=%(trailers:key=Role,valueonly)", "refs/gitmem/log"]
    trailer = subprocess.run(show, cwd=store.repo.worktree, capture_output=True, text=True, check=True).stdout
    assert trailer.split() == ["auditor"]


def test_a_retry_with_its_key_is_the_same_signal_although_others_hold_the_role(
    store: Store, clock: Clock
) -> None:
    """Whoever took the role in between was not meant."""
    start(store, "Curie", "reviewer")
    me = acting(store, start(store, "Planck", None))
    first = send.send(store, me, "Review?", to=["role:reviewer"], idempotency_key="k").signal
    clock.forward(MINUTE)
    start(store, "Bohr", "reviewer")
    again = send.send(store, me, "Review?", to=["role:reviewer"], idempotency_key="k")

    assert again.signal["signal_id"] == first["signal_id"]
    assert again.signal["recipients"] == ["test:worker:curie"]
    with pytest.raises(UsageError):
        send.send(store, me, "Other?", to=["role:reviewer"], idempotency_key="k")


def test_who_spoke_a_moment_ago_is_a_holder_although_the_index_lacks_it(repo: Path, clock: Clock) -> None:
    """A sender reads the index as it stands; beside another holder nobody would notice who is missing."""
    made = open_store(repo, clock)
    curie = acting(made, start(made, "Curie", "reviewer"))
    clock.forward(23 * HOUR)
    me = acting(made, start(made, "Planck", None))
    start(made, "Bohr", "reviewer")
    made.db()
    elsewhere = Store(made.repo, made.git, made.domain, machine="other", now=clock, commit_after=60.0)
    say(elsewhere, curie)
    clock.forward(2 * HOUR)
    sent = send.send_with_one_snapshot(made, lambda: me, "Review?", to=["role:reviewer"])

    assert sorted(sent.signal["recipients"]) == ["test:worker:bohr", "test:worker:curie"]
