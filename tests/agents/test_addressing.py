"""Never misroute: a recipient is exactly who was named, or nothing is written."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gitmem import records
from gitmem.agents import addressing, caller, lifecycle, names, presence
from gitmem.agents.addressing import Resolved
from gitmem.agents.caller import Caller, CallerClaims
from gitmem.errors import UsageError
from gitmem.log.lines import CommitMessage, writer_of
from gitmem.outcome import quote
from gitmem.records.ids import new_id
from gitmem.signals import send
from gitmem.store import Store

from ..each import each as one_test_for
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
    open_store,
    person,
    say,
)
from ..signing import ANNA, MALLORY

IDENTITY = annas("codex:implementer:host42")


def only(store: Store, *to: str, **options: bool) -> Resolved:
    (found,) = addressing.resolve(store, to, **options)
    return found


def refused(store: Store, *to: str, **options: bool) -> UsageError:
    """The error, after making sure that nothing was written."""
    before = bodies(store)
    with pytest.raises(UsageError) as caught:
        addressing.resolve(store, to, **options)
    assert bodies(store) == before
    assert caught.value.status == 2
    assert caught.value.next
    return caught.value


def test_each_step_finds_whom_it_should(repo: Path) -> None:
    """Id, identity, person, name, folded name, prefix: and the way is told."""
    store = open_store(repo, Clock())
    one = lifecycle.start(store, CallerClaims(), agent_identity=IDENTITY, name="Big Dev")
    two = lifecycle.start(store, CallerClaims(), name="Curie")
    say(store, person(store))
    found = [
        only(store, text)
        for text in (one.session_id, two.session_id, IDENTITY, annas("human:person@example.org"), "Big Dev", "big_dev",
                     "CURIE", two.session_id[:11])
    ]  # fmt: skip

    assert [(each.address, each.resolved_by) for each in found] == [
        (IDENTITY, "exact"), (two.session_id, "exact"), (IDENTITY, "exact"), (annas("human:person@example.org"), "exact"),
        (IDENTITY, "exact"), (IDENTITY, "folded"), (two.session_id, "folded"), (two.session_id, "prefix"),
    ]  # fmt: skip
    assert found[5].query == "big_dev"
    assert not any(each.asleep or each.elsewhere or each.remark for each in found)


def test_lists_are_split_and_repeats_collapse(repo: Path) -> None:
    """A name and the identity behind it are one recipient; the first query stands."""
    store = open_store(repo, Clock())
    lifecycle.start(store, CallerClaims(), agent_identity=IDENTITY, name="Planck")
    two = lifecycle.start(store, CallerClaims(), name="Curie")
    found = addressing.resolve(store, [f"Planck, {IDENTITY}", "curie,Curie"])

    assert [(each.query, each.address) for each in found] == [("Planck", IDENTITY), ("curie", two.session_id)]
    assert addressing.resolve(store, []) == []


def test_an_empty_name_is_never_a_broadcast(repo: Path) -> None:
    """A script's empty variable."""
    store = open_store(repo, Clock())
    lifecycle.start(store, CallerClaims(), name="Planck")
    lifecycle.start(store, CallerClaims(), name="Curie")
    for to in ["", " ", ",", "Planck,", "Planck,,Curie"]:
        assert refused(store, to).code == "empty-recipient"


def test_one_unknown_name_refuses_all(repo: Path) -> None:
    """The error names it, and who could be meant."""
    store = open_store(repo, Clock())
    lifecycle.start(store, CallerClaims(), agent_identity=IDENTITY, name="Planck", wu="WU-1")
    error = refused(store, "Planck,Plnack")

    assert error.code == "unknown-recipient"
    assert "Plnack" in error.message
    assert error.suggestions == [f"Planck ({IDENTITY}, in repo, on WU-1, live, seen just now)"]


def test_a_prefix_of_several_ids_is_refused_with_them(repo: Path) -> None:
    """And one that is too short is nobody."""
    store = open_store(repo, Clock())
    store.writers.writer()  # its key takes random bytes, too
    given = iter((b"\1" * 6 + b"\x40", b"\1" * 6 + b"\x80"))
    store.random = lambda size: next(given)
    one, two = lifecycle.start(store, CallerClaims()), lifecycle.start(store, CallerClaims())
    error = refused(store, one.session_id[:11])

    assert error.code == "ambiguous-recipient"
    assert [each.split(" ")[0] for each in error.suggestions] == sorted([one.session_id, two.session_id])
    assert refused(store, one.session_id[:10]).code == "unknown-recipient"


def test_a_name_is_taken_before_a_clients_id(tmp_path: Path, repo: Path) -> None:
    """A local process chooses its id, so it gets no mail of somebody who is called like it."""
    name = "ses_3f9d2c1b7ffeQ4mZx0LkT8vWya"
    clock = Clock()
    store, there = open_store(repo, clock), open_store(new_repo(tmp_path / "other"), clock)
    raw = caller.find(store, CallerClaims(client_session=("OPENCODE_SESSION_ID", name)))
    assert raw
    say(store, raw)
    assert only(store, name).address == raw.reader
    one = lifecycle.start(there, CallerClaims(), name=name)
    carry(store, there)

    assert only(store, name).address == one.session_id
    assert only(there, name).address == one.session_id


def test_mail_for_a_harness_id_goes_to_the_session_that_it_started(repo: Path) -> None:
    """Answers to what it said before it had a session find it."""
    store = open_store(repo, Clock())
    thread = "0f8fad5b-d9cb-469f-a165-70867728950e"
    one = lifecycle.start(store, CallerClaims(client_session=("CODEX_THREAD_ID", thread)))

    assert only(store, thread).address == one.session_id


def test_a_released_name_goes_to_nobody_but_its_new_holder(repo: Path) -> None:
    """Until then it is unknown, and the suggestion says who it was."""
    clock = Clock()
    store = open_store(repo, clock)
    one = lifecycle.start(store, CallerClaims(), agent_identity=IDENTITY, name="Planck")
    clock.forward(HOUR)
    lifecycle.end(store, acting(store, one))
    clock.forward(HOUR)
    error = refused(store, "Planck")
    assert error.suggestions == [f"{IDENTITY} (Planck, in repo, ended, seen 60 minutes ago)"]
    assert (
        f"the session of that name, {one.session_id}, ended 60 minutes ago. Nothing was written"
        in error.message
    )
    assert f"--to {IDENTITY}." in error.hint
    two = lifecycle.start(store, CallerClaims(), name="Planck")

    assert only(store, "Planck").address == two.session_id


def test_ids_and_identities_stay_addressable_with_a_remark(repo: Path) -> None:
    """After the end: the identity may come back, an id without one will not."""
    clock = Clock()
    store = open_store(repo, clock)
    one = lifecycle.start(store, CallerClaims(), agent_identity=IDENTITY, name="Planck")
    two = lifecycle.start(store, CallerClaims(), name="Curie")
    for each in (one, two):
        lifecycle.end(store, acting(store, each))
    found = [only(store, text) for text in (IDENTITY, one.session_id, two.session_id)]

    assert [each.address for each in found] == [IDENTITY, IDENTITY, two.session_id]
    assert all(each.asleep and each.remark and "ended" in each.remark for each in found)
    three = lifecycle.start(store, CallerClaims(), agent_identity=IDENTITY)
    again = only(store, one.session_id)
    assert not again.asleep and again.remark and f"its identity {IDENTITY}" in again.remark
    assert only(store, IDENTITY).display_name == three.display_name


def test_the_error_for_a_former_name_says_who_had_it_and_where_to_send(repo: Path) -> None:
    """A session without an identity that has ended, one that was renamed, and one that was not seen for days."""
    clock = Clock()
    store = open_store(repo, clock)
    ended, renamed, gone = (
        lifecycle.start(store, CallerClaims(), name=each) for each in ("Curie", "Planck", "Bohr")
    )
    lifecycle.end(store, acting(store, ended))
    lifecycle.change(store, acting(store, renamed), name="Hahn")
    error = refused(store, "curie")
    assert f"{ended.session_id}, ended just now" in error.message
    assert "no later session reads its signals" in error.hint and error.next == ["gitmem roster"]
    error = refused(store, "Planck")
    assert f"{renamed.session_id}, is now called Hahn" in error.message
    assert error.hint == f"To reach it anyway, send to {renamed.session_id}."
    clock.forward(80 * HOUR)
    error = refused(store, "Bohr")
    assert f"{gone.session_id}, was last seen 3 days ago" in error.message and gone.session_id in error.hint
    found = only(store, ended.session_id)
    assert found.remark and f"Curie ({ended.session_id}) ended 3 days ago" in found.remark
    assert "no later session reads this" in found.remark


def test_signals_to_an_ended_conversation_say_that_it_may_be_resumed(repo: Path) -> None:
    """Its former name is refused as every one, with the command that sends; the resumed session reads it."""
    store = open_store(repo, Clock())
    claims = CallerClaims(client_session=("CODEX_THREAD_ID", "0199-thread"))
    ended = lifecycle.start(store, claims, name="Thorne")
    lifecycle.end(store, acting(store, ended))

    error = refused(store, "Thorne")
    remark = only(store, ended.session_id).remark

    assert "if it is resumed" in error.hint and "no later session" not in error.hint
    assert f"--to {ended.session_id}" in error.hint and error.next == ["gitmem roster"]
    assert remark and "if it is resumed" in remark and "no later session" not in remark


def test_who_looks_asleep_is_said(repo: Path) -> None:
    """Not seen for 15 minutes; a second session of the identity that is awake is enough."""
    clock = Clock()
    store = open_store(repo, clock)
    lifecycle.start(store, CallerClaims(), agent_identity=IDENTITY, name="Planck")
    clock.forward(3 * HOUR + MINUTE)
    found = only(store, "Planck")

    assert (found.asleep, found.remark) == (True, "Planck appears inactive: last seen 3 hours ago.")
    lifecycle.start(store, CallerClaims(), agent_identity=IDENTITY)
    assert not only(store, "Planck").asleep


def test_a_name_resolves_while_it_is_held(repo: Path) -> None:
    """For two days without a record; later only for who is at work in this clone all the same."""
    clock = Clock()
    store = open_store(repo, clock)
    one = lifecycle.start(store, CallerClaims(), name="Planck")
    clock.forward(47 * HOUR)
    assert only(store, "Planck").asleep
    clock.forward(2 * HOUR)
    assert refused(store, "Planck").suggestions[0].startswith(one.session_id)
    acting(store, one).touch(store)
    assert only(store, "Planck").address == one.session_id


def test_who_is_elsewhere_gets_it_after_a_sync(tmp_path: Path, repo: Path) -> None:
    """A name that the fold gave a number on both clones means one session on both; one's own stays that of its clone."""
    clock = Clock()
    here, there = open_store(repo, clock), open_store(new_repo(tmp_path / "other"), clock)
    one = lifecycle.start(here, CallerClaims(), name="Planck")
    clock.forward(MINUTE)
    two = lifecycle.start(there, CallerClaims(), name="Planck")
    carry(here, there)

    for store in (here, there):
        assert only(store, "planck-2").address == two.session_id
    assert only(here, "Planck").address == one.session_id
    mine = only(there, "Planck")
    assert mine.address == two.session_id
    assert one.session_id in str(mine.remark) and "also claims the name" in str(mine.remark)
    assert (only(here, "planck-2").elsewhere, only(there, "planck-2").elsewhere) == (True, False)


def test_a_host_number_is_never_guessed(repo: Path) -> None:
    """`host8` is another machine than `host7`, however alike they look."""
    store = open_store(repo, Clock())
    lifecycle.start(store, CallerClaims(), agent_identity=annas("codex:implementer:host7"), name="dev-7")
    for text in (annas("codex:implementer:host8"), "dev-8", "dev7", "Dev 8"):
        error = refused(store, text)
        assert error.code == "unknown-recipient"
    assert annas("codex:implementer:host7") in refused(store, annas("codex:implementer:host8")).suggestions[0]


def test_an_identity_that_was_never_seen_needs_a_word(repo: Path) -> None:
    """And the form of one."""
    store = open_store(repo, Clock())
    assert "--allow-unseen" in refused(store, annas("new:agent:desk")).hint
    found = only(store, annas("new:agent:desk"), allow_unseen=True)

    assert (found.address, found.resolved_by, found.asleep) == (annas("new:agent:desk"), "exact", True)
    assert only(store, annas("human:new@example.org"), allow_unseen=True).remark
    for text in ("Planck", "a:b", "a::c", "human:", "human:x", "a:b:c d", "sess-000000000000"):
        assert refused(store, text, allow_unseen=True).code == "unknown-recipient"


def test_mixed_scripts_are_refused_with_a_sentence(repo: Path) -> None:
    """Also where it is allowed to be unseen."""
    store = open_store(repo, Clock())
    lifecycle.start(store, CallerClaims(), agent_identity=IDENTITY, name="Planck")
    for text in ["Pl\u0430nck", "codex:impl\u0435menter:host42"]:
        error = refused(store, text, allow_unseen=True)

        assert "scripts" in error.message
        assert error.message.isascii()


def test_an_escape_sequence_stays_out_of_the_answer(repo: Path) -> None:
    """What was typed is shown harmless, and not offered to a shell."""
    error = refused(open_store(repo, Clock()), "\x1b[2J")

    assert error.message.isprintable()
    assert error.next == ["gitmem roster"]


def test_a_clone_that_never_synced_is_told_to(repo: Path, git: object) -> None:
    """The name may be known elsewhere."""
    store = open_store(repo, Clock())
    assert "sync" not in refused(store, "Planck").hint
    git("remote", "add", "origin", "/nowhere", cwd=repo)  # type: ignore[operator]

    error = refused(open_store(repo, Clock()), "Planck")
    assert ("gitmem sync" in error.hint, error.next[0]) == (True, "gitmem sync")


def test_a_look_does_not_guess_either(repo: Path) -> None:
    """`inbox --for plank` is refused, with Planck as a suggestion: it would show somebody's mail."""
    store = open_store(repo, Clock())
    one = lifecycle.start(store, CallerClaims(), agent_identity=IDENTITY, name="Planck")
    lifecycle.start(store, CallerClaims(), name="Noether")
    found = [addressing.reader_of(store, text) for text in ("Planck", "planck", IDENTITY, one.session_id)]

    assert [each.address for each in found] == [IDENTITY] * 4
    assert addressing.reader_of(store, annas("human:person@example.org")).resolved_by == "exact"
    for text in ("", "zzz", "plank", "implementer", annas("human:stranger@example.org")):
        with pytest.raises(UsageError) as refused:
            addressing.reader_of(store, text)
        assert refused.value.code == "unknown-recipient"
        assert text != "plank" or refused.value.suggestions[0].startswith("Planck (")


def test_a_thread_is_answered_at_the_addresses_that_it_has(repo: Path) -> None:
    """They are not resolved again: a name like one of them does not matter."""
    store = open_store(repo, Clock())
    one = lifecycle.start(store, CallerClaims(), agent_identity=IDENTITY, name="Planck")
    two = lifecycle.start(store, CallerClaims(), name="Curie")
    found = addressing.from_addresses(
        store, [IDENTITY, two.session_id, annas("human:person@example.org"), "thread-99"]
    )

    assert [(each.address, each.display_name, each.resolved_by) for each in found] == [
        (IDENTITY, one.display_name, "thread"), (two.session_id, "Curie", "thread"),
        (annas("human:person@example.org"), "person@example.org", "thread"), ("thread-99", None, "thread"),
    ]  # fmt: skip


def test_oneself_is_remarked(repo: Path) -> None:
    """One's own signals are never in one's inbox."""
    store = open_store(repo, Clock())
    one = lifecycle.start(store, CallerClaims(), name="Planck")
    (found,) = addressing.resolve(store, ["Planck"], caller=acting(store, one))

    assert found.remark and "You are" in found.remark


@one_test_for(["", "a b", "it's", "$HOME", "a\nb", "-x", "Żaneta", "a=b:c/d"])
def test_commands_are_quoted_as_the_shell_takes_them(text: str) -> None:
    """What `shlex` reads is what was said."""
    import shlex

    assert shlex.split(quote(text)) == [text]


def test_the_name_of_a_person_suggests_the_address(repo: Path) -> None:
    """It never is one: anybody may write under it."""
    store = open_store(repo, Clock())
    me = person(store)
    send.send(store, me, "hello", broadcast=True)
    assert any(
        each.startswith(f"{annas('human:person@example.org')} (")
        for each in refused(store, str(me.name)).suggestions
    )
    assert not any("human:" in each for each in refused(store, "Lovelace").suggestions)


def test_no_number_of_sessions_is_compared_with_a_name_without_a_limit(repo: Path) -> None:
    """A peer's, at work after ours: ours is found by commands that read."""
    clock = Clock()
    store = open_store(repo, clock)
    lifecycle.start(store, CallerClaims(), name="Planck")
    clock.forward(1_000_000)
    lines = [
        records.line("session", clock(), {
            "session_id": f"sess-flood{number:05}", "event": "start", "display_name": f"Flood{number:05}", "clone_id": "clone-far",
        })
        for number in range(presence.READ_MAX)
    ]  # fmt: skip
    store.record([("sessions", each) for each in lines], CommitMessage("x <x@example.org>", "flood"))
    asked: list[str] = []
    store.db().set_trace_callback(asked.append)
    assert refused(store, "plank").suggestions[0].startswith("Planck")
    assert names.suggested(store, annas("x:y:z")) == []
    assert len(presence.shown(store, most=presence.READ_MAX)) == presence.READ_MAX
    rows = [
        each
        for each in asked
        if "FROM session s JOIN tenure" in each and "WHERE s.ended IS NULL AND t.until" in each
    ]
    rows += [each for each in asked if each.startswith("SELECT reader FROM reader")]
    assert len(rows) > 2 and all("LIMIT" in each for each in rows)


# `--to role:…` reaches everybody who holds the role now, or nothing is written. Never by a guess.


def start(store: Store, name: str, role: str | None, identity: bool = True) -> str:
    known = f"test:worker:{name.lower()}" if identity else None
    return lifecycle.start(store, CallerClaims(), name=name, agent_identity=known, role=role).session_id


def reached(store: Store, to: str, caller: Caller | None = None) -> list[tuple[str, str]]:
    return [(each.address, each.resolved_by) for each in addressing.resolve(store, [to], caller=caller)]


def role_refused(store: Store, to: str, caller: Caller | None = None, **options: bool) -> UsageError:
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

    docs = [(annas("test:worker:planck"), "role"), (annas("test:worker:curie"), "role")]
    assert sorted(reached(store, "role:reviewer/docs")) == sorted(docs)
    assert sorted(reached(store, "Role:Reviewer")) == sorted([*docs, (bohr, "role")])
    found = addressing.resolve(store, ["role:reviewer/test, Planck,role:reviewer/docs"])
    assert [(each.query, each.address, each.resolved_by) for each in found] == [
        ("role:reviewer/test", bohr, "role"), ("Planck", annas("test:worker:planck"), "exact"),
        ("role:reviewer/docs", annas("test:worker:curie"), "role"),
    ]  # fmt: skip


def test_an_alias_names_its_role(store: Store) -> None:
    """R14, R12: with and without `role:`, also a legacy one; the step is told."""
    start(store, "Planck", "reviewer/general")
    start(store, "Curie", "reviewer/docs")

    for typed in ("role:code-reviewer", "code-reviewer", "Code_Reviewer"):
        assert reached(store, typed) == [(annas("test:worker:planck"), "alias")]
    assert reached(store, "lumenflow-doc-sync") == [(annas("test:worker:curie"), "alias")]


def test_two_sessions_of_one_agent_are_one_recipient(store: Store) -> None:
    """Its mail is shared."""
    for name in ("Planck", "Curie"):
        lifecycle.start(
            store, CallerClaims(), name=name, agent_identity=annas("test:worker:one"), role="reviewer"
        )

    assert reached(store, "role:reviewer") == [(annas("test:worker:one"), "role")]


def test_a_role_that_nobody_holds_is_refused(store: Store) -> None:
    """R35: and nothing is written; prefixes, typing errors and groups hold nothing either."""
    me = acting(store, start(store, "Planck", "reviewer/docs"))

    for typed in ("role:finisher", "role:rev", "role:reviewr/docs", "role:reviewer/doc", "role:", "role:*", "role:all",
                  "bug-triage", "role:docs"):  # fmt: skip
        assert role_refused(store, typed, allow_unseen=True).code == "no-role-holder"
    assert role_refused(store, "role:reviewr/docs").suggestions[0] == "role:reviewer/docs"
    assert "nobody but you" in role_refused(store, "role:reviewer", me).message


def test_the_sender_is_no_recipient(store: Store) -> None:
    """Whoever asks the reviewers is asked by nobody."""
    me = acting(store, start(store, "Planck", "reviewer"))
    start(store, "Curie", "reviewer")

    assert reached(store, "role:reviewer", me) == [(annas("test:worker:curie"), "role")]


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
    role_refused(store, "role:reviewer")


def test_a_name_of_a_session_comes_before_an_alias(store: Store, repo: Path, clock: Clock) -> None:
    """I3: a file of the repository must not redirect what is meant for an agent, not even when it is gone."""
    start(store, "Planck", None)
    start(store, "Curie", "reviewer")
    (repo / ".gitmem").mkdir()
    (repo / ".gitmem" / "roles.toml").write_text('[alias]\nplanck = "reviewer"\n"curie" = "reviewer"\n')
    assert reached(store, "planck") == [(annas("test:worker:planck"), "folded")]

    lifecycle.end(store, acting(store, "sess-" + store.db().execute(
        "SELECT substr(session_id, 6) FROM session WHERE display_name = 'Planck'").fetchone()[0]))  # fmt: skip
    assert role_refused(store, "planck").code == "unknown-recipient"


def test_an_identity_that_begins_with_role_is_an_identity(store: Store) -> None:
    """It has another colon."""
    lifecycle.start(store, CallerClaims(), agent_identity=annas("role:reviewer:shop"), name="Planck")

    assert reached(store, annas("role:reviewer:shop")) == [(annas("role:reviewer:shop"), "exact")]


def test_a_role_that_only_others_know_reaches_those_who_state_it(store: Store, tmp_path: Path) -> None:
    """R10: an older pack does not cut anybody off."""
    other = open_store(new_repo(tmp_path / "other"), Clock())
    lifecycle.start(other, CallerClaims(), name="Bohr", agent_identity=annas("a:b:c"), role="auditor/tax")
    carry(store, other)

    assert reached(store, "role:Auditor/tax") == [(annas("a:b:c"), "role")]


def forge(store: Store, session_id: str, name: str, **fields: object) -> None:
    """Record a change of a session of this clone as a peer would: as another writer."""
    record = {"session_id": session_id, "event": "change", "display_name": name, "clone_id": "x", **fields}
    _, line = store.line("session", record)  # type: ignore[arg-type]
    forged = line.replace(writer_of(line).encode(), MALLORY.writer.encode())
    store.record([("sessions", forged)], CommitMessage("a <a@b>", "forged"))


def test_a_forged_role_of_a_session_of_this_clone_reaches_nobody(store: Store) -> None:
    """Lines that were not written here do not say what a session here is; they take no role from it either."""
    planck, curie = start(store, "Planck", None), start(store, "Curie", "finisher/docs")
    bohr = start(store, "Bohr", "recovery/docs")
    forge(store, planck, "Planck", lifecycle_role="reviewer", specialty_profile="docs")
    forge(store, curie, "Curie", clear=["lifecycle_role", "specialty_profile"])
    forge(store, bohr, "Bohr", specialty_profile="test")

    role_refused(store, "role:reviewer")
    role_refused(store, "role:recovery/test")
    assert reached(store, "role:finisher") == [(annas("test:worker:curie"), "role")]
    assert reached(store, "role:recovery/docs") == [(annas("test:worker:bohr"), "role")]


def test_more_holders_than_a_signal_should_have_are_refused(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Peers can write any number of sessions."""
    lines = []
    for number in range(addressing.HOLDERS_MAX + 1):
        record = {"session_id": new_id("sess", ANNA.writer), "event": "start", "display_name": f"N{number}", "clone_id": "x",
                  "lifecycle_role": "reviewer", "specialty_profile": "docs"}  # fmt: skip
        lines.append(store.line("session", record))  # type: ignore[arg-type]
    store.record(lines, CommitMessage("a <a@b>", "many"))

    assert role_refused(store, "role:reviewer").code == "too-many-recipients"


@pytest.mark.usefixtures("commits")
def test_a_signal_to_a_role_names_it(store: Store) -> None:
    """What was typed, how it was resolved, and the role; also in the commit."""
    start(store, "Curie", "reviewer/docs")
    start(store, "Bohr", "reviewer/docs")
    me = acting(store, start(store, "Planck", "implementer"))
    signal = send.send(store, me, "Please review.", to=["role:reviewer/docs"]).signal

    assert sorted(signal["recipients"]) == [annas("test:worker:bohr"), annas("test:worker:curie")]
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
    assert again.signal["recipients"] == [annas("test:worker:curie")]
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
    elsewhere = Store(
        made.repo,
        made.git,
        made.domain,
        machine="other",
        now=clock,
        commit_after=60.0,
        keys_folder=made.key_places[0],
    )
    say(elsewhere, curie)
    clock.forward(2 * HOUR)
    sent = send.send_with_one_snapshot(made, lambda: me, "Review?", to=["role:reviewer"])

    assert sorted(sent.signal["recipients"]) == [annas("test:worker:bohr"), annas("test:worker:curie")]
