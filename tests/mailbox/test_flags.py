"""The flags of the sessions of this clone, derived from the log."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gitmem import local_files
from gitmem.agents import delivery, heartbeats, lifecycle, mailbox, presence
from gitmem.agents.caller import Caller, CallerClaims
from gitmem.clients import clients
from gitmem.errors import UsageError
from gitmem.open_store import DOMAIN
from gitmem.signals import send as signals
from gitmem.store import Store

from ..file_faults import at, denied, full
from ..hazards import faults
from ..hook_agents import user_state
from ..sandbox import DAY, HOUR, MINUTE, Clock, acting, annas, carry, new_repo, open_store, worktree

HARNESS = "7d0c2f5e-5f0a-4f4e-9d3c-0a1b2c3d4e5f"
IDENTITY = annas("test:worker:curie")


class Desk:
    """A clone with two sessions, Planck and Curie; Curie has a harness."""

    def __init__(self, repo: Path, clock: Clock) -> None:
        self.clock = clock
        self.store = open_store(repo, clock)
        self.state = Path(self.store.repo.state)
        self.planck = self.start("Planck")
        self.curie = self.start(
            "Curie", CallerClaims(client_session=("CLAUDE_CODE_SESSION_ID", HARNESS)), agent_identity=IDENTITY
        )

    def start(self, name: str, who: CallerClaims | None = None, **more: str) -> Caller:
        started = lifecycle.start(self.store, who or CallerClaims(), name=name, **more)  # type: ignore[arg-type]
        return acting(self.store, started)

    def send(self, message: str = "hello", **options: object) -> str:
        sent = signals.send(self.store, self.planck, message, **options)  # type: ignore[arg-type]
        return str(sent.signal["signal_id"])

    def again(self) -> Store:
        """The store as another process has it."""
        return Store(self.store.repo, self.store.git, DOMAIN, machine="test", now=self.clock)

    def events(self, of: Caller) -> set[str]:
        """What is unread by a session whose flag is raised."""
        assert of.session_id
        if not heartbeats.is_flagged(str(self.state), of.session_id):
            return set()
        rows = mailbox.unread_ids(self.store.db(), of.reader, of.session_id, of.workspace, self.clock())
        return {id for _, id in rows}

    def flags(self) -> dict[str, bool]:
        """Each flag, and whether it says that something may interrupt."""
        folder = self.state / "flags"
        return {path.name: path.stat().st_size > 0 for path in folder.iterdir()} if folder.is_dir() else {}


@pytest.fixture
def desk(repo: Path) -> Desk:
    return Desk(repo, Clock())


def names_of(caller: Caller, client_session: str | None = None) -> set[str]:
    assert caller.session_id
    return set(heartbeats.flag_names(caller.session_id, client_session))


def test_a_signal_raises_a_flag_under_both_names(desk: Desk) -> None:
    """The flag says that it may interrupt; its writer gets none."""
    assert desk.flags() == {}
    desk.send(to=["Curie"])
    assert desk.flags() == dict.fromkeys(names_of(desk.curie, HARNESS), True)
    assert desk.events(desk.planck) == set()


def test_a_broadcast_waits_for_all_but_its_writer_and_interrupts_nobody(desk: Desk) -> None:
    """The flag is empty; what is directed fills it, and a later broadcast does not empty it again."""
    third = desk.start("Bohr")
    first = desk.send(broadcast=True)
    assert desk.events(desk.curie) == desk.events(third) == {first}
    assert desk.events(desk.planck) == set()
    assert desk.flags() == dict.fromkeys(names_of(desk.curie, HARNESS) | names_of(third), False)

    second = desk.send(to=["Curie"])
    assert desk.flags() == dict.fromkeys(names_of(desk.curie, HARNESS), True) | dict.fromkeys(
        names_of(third), False
    )
    desk.send(broadcast=True)
    assert desk.flags()[HARNESS]
    assert second in desk.events(desk.curie) and len(desk.events(desk.curie)) == 3


def test_what_is_advisory_interrupts_nobody(desk: Desk) -> None:
    """Also where it is for one reader in particular."""
    desk.send(to=["Curie"], interrupt="advisory")
    assert desk.flags() == dict.fromkeys(names_of(desk.curie, HARNESS), False)


def test_a_session_that_nobody_saw_for_a_day_gets_what_is_directed_alone(desk: Desk) -> None:
    """A broadcast for every session that was left open would never end."""
    desk.clock.forward(DAY + HOUR)
    desk.send(broadcast=True)
    assert desk.events(desk.curie) == set()
    desk.send(to=[IDENTITY])
    assert desk.flags() == dict.fromkeys(names_of(desk.curie, HARNESS), True)


def test_what_is_advisory_waits_for_a_session_that_nobody_saw_for_a_day(desk: Desk) -> None:
    """Its computer slept, and no hook tells it that it starts again."""
    desk.clock.forward(DAY + HOUR)
    sent = desk.send(to=["Curie"], interrupt="advisory")
    assert desk.events(desk.curie) == {sent}
    assert desk.flags() == dict.fromkeys(names_of(desk.curie, HARNESS), False)


def test_a_heartbeat_of_a_hook_counts_for_broadcasts(desk: Desk) -> None:
    """A session that only its hooks have touched is at work."""
    desk.clock.forward(DAY + HOUR)
    beat(desk, HARNESS)
    broadcast = desk.send(broadcast=True)
    assert desk.events(desk.curie) == {broadcast}


def beat(desk: Desk, name: str) -> None:
    (desk.state / "beats").mkdir(exist_ok=True)
    path = desk.state / "beats" / name
    path.touch()
    os.utime(path, ns=(desk.clock.value * 1000, desk.clock.value * 1000))


@pytest.mark.parametrize("name", ["session", "harness"])
def test_a_beat_is_a_heartbeat(desk: Desk, name: str) -> None:
    """The later of what a command touched and what a hook did, under either name."""
    curie = str(desk.curie.session_id)
    before = heartbeats.last_seen(desk.store, curie)
    desk.clock.forward(20 * MINUTE)
    beat(desk, HARNESS if name == "harness" else curie)

    assert heartbeats.last_seen(desk.store, curie) == before + 20 * MINUTE
    assert heartbeats.all_last_seen(desk.store)[curie] == before + 20 * MINUTE
    found = presence.get(desk.store, curie)
    assert found and found.status == "live"
    assert heartbeats.all_last_seen(desk.store)[str(desk.planck.session_id)] == before


def test_an_old_beat_takes_nothing_back(desk: Desk) -> None:
    """A command that came after the hook counts."""
    beat(desk, HARNESS)
    desk.clock.forward(HOUR)
    heartbeats.touch(desk.store, str(desk.curie.session_id))
    assert heartbeats.last_seen(desk.store, str(desk.curie.session_id)) == desk.clock.value


@pytest.mark.parametrize("client_session", ["../../escape", ".hidden", "a/b", "ü", "x" * 129])
def test_a_name_that_is_none_for_a_file_gets_no_flag(desk: Desk, client_session: str) -> None:
    """What a harness calls its session can be anything; the session's own id always serves."""
    bohr = desk.start("Bohr", CallerClaims(client_session=("CODEX_THREAD_ID", client_session)))
    desk.send(to=["Bohr"])
    assert set(desk.flags()) == {bohr.session_id}
    delivery.remove_flags(str(desk.state), heartbeats.flag_names(client_session, None))
    lifecycle.end(desk.store, bohr)
    assert desk.flags() == {}


def test_the_end_of_a_session_takes_its_flags_away(desk: Desk) -> None:
    """Flags under both names and beats; those of others stay."""
    desk.send(to=["Curie", "Planck"])
    beat(desk, HARNESS)
    beat(desk, str(desk.curie.session_id))
    broadcast = signals.send(desk.store, desk.curie, "all", broadcast=True).signal["signal_id"]
    lifecycle.end(desk.store, desk.curie)

    assert set(desk.flags()) == names_of(desk.planck)
    assert os.listdir(desk.state / "beats") == []
    assert desk.events(desk.planck) == {broadcast}
    desk.send(to=[IDENTITY])
    assert set(desk.flags()) == names_of(desk.planck)


def test_a_session_begins_with_what_is_unread(desk: Desk) -> None:
    """Mail to its identity from before, and the broadcasts of the last day."""
    lifecycle.end(desk.store, desk.curie)
    directed, broadcast = desk.send(to=[IDENTITY], allow_unseen=True), desk.send(broadcast=True)
    again = desk.start(
        "Curie", CallerClaims(client_session=("CLAUDE_CODE_SESSION_ID", HARNESS)), agent_identity=IDENTITY
    )
    assert desk.events(again) == {directed, broadcast}
    assert desk.flags() == dict.fromkeys(names_of(again, HARNESS), True)


def test_a_second_start_under_the_same_harness_raises_its_flags_again(desk: Desk) -> None:
    """Whatever became of it: a start is when hooks begin to look."""
    signal = desk.send(to=["Curie"])
    for name in names_of(desk.curie, HARNESS):
        (desk.state / "flags" / name).unlink()
    desk.start("Curie", CallerClaims(client_session=("CLAUDE_CODE_SESSION_ID", HARNESS)))
    assert desk.events(desk.curie) == {signal}
    assert desk.flags() == dict.fromkeys(names_of(desk.curie, HARNESS), True)


def test_a_session_that_gets_an_identity_gets_its_mail(desk: Desk) -> None:
    """What was sent to the identity before is news for the session."""
    desk.send(to=[annas("test:worker:bohr")], allow_unseen=True)
    bohr = desk.start("Bohr")
    assert desk.flags() == {}
    lifecycle.change(desk.store, bohr, agent_identity=annas("test:worker:bohr"))
    assert desk.flags() == dict.fromkeys(names_of(bohr), True)


def test_a_start_that_is_killed_at_any_step_leaves_no_session_without_its_flags(desk: Desk) -> None:
    """Its flags are there before the file that says that the session is here, so no hook misses one."""
    desk.send(to=[annas("test:worker:bohr")], allow_unseen=True)
    desk.send(to=["Curie"])  # flags are raised for all signals now: no look at the log raises them
    killed = 0
    for step in range(1, faults.STEPS_MAX):

        def start(client: str = f"of-bohr-{step}") -> object:
            who = CallerClaims(client_session=("CODEX_THREAD_ID", client))
            return lifecycle.start(desk.again(), who, agent_identity=annas("test:worker:bohr")).session_id

        end = faults.child(start, faults.SystemCall(step, ("replace", "link", "unlink", "utime"), kills=True))
        store = desk.again()
        store.caught_up()
        for each in delivery.waiting_sessions(store):
            assert not each.unread(store) or desk.flags().keys() >= {*each.names}, f"killed at step {step}"
        store.close()
        if not end.died:
            break
        killed += 1
    assert killed > 10
    assert {end.answer, f"of-bohr-{step}"} <= desk.flags().keys()


def test_a_start_keeps_its_flags_while_another_one_removes_old_flags(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a session whose file comes between the other's look and its removal."""
    client = ("CODEX_THREAD_ID", "of-bohr")
    signal = desk.send(to=[annas("test:worker:bohr")], allow_unseen=True)
    bohr = desk.start("Bohr", CallerClaims(client_session=client), agent_identity=annas("test:worker:bohr"))
    heartbeats.end(desk.store, str(bohr.session_id))  # as before its file was written
    with monkeypatch.context() as patch:
        removed = at(
            patch,
            "unlink",
            "*/flags/of-bohr",
            lambda: heartbeats.start(desk.store, str(bohr.session_id), client),
        )
        desk.start("Noether")
    assert removed
    assert desk.events(bohr) == {signal}
    assert set(desk.flags()) == names_of(bohr, "of-bohr")


def test_what_arrives_while_a_session_starts_waits_for_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its first flags and its file, when senders do not see it here."""
    sent: list[str] = []
    with monkeypatch.context() as patch:
        to = [annas("test:worker:bohr"), "Curie"]
        at(patch, "replace", "*/sessions/sess-*", lambda: sent.append(desk.send(to=to)))
        bohr = desk.start("Bohr", agent_identity=annas("test:worker:bohr"))
    assert desk.events(bohr) == set(sent) != set()
    assert names_of(bohr) <= desk.flags().keys()


def test_what_sessions_left_goes_with_the_next_start(desk: Desk, repo: Path) -> None:
    """Of one that has ended, and of one that nobody has seen for a month; others keep theirs."""
    bohr, gone = (
        desk.start("Bohr", CallerClaims(client_session=("CODEX_THREAD_ID", "of-bohr"))),
        desk.start("Marie"),
    )
    desk.send(to=["Curie", "Bohr", "Marie"])
    beat(desk, HARNESS)
    assert {bohr.session_id, "of-bohr"} <= desk.flags().keys()

    desk.start("Noether")
    kept = names_of(desk.curie, HARNESS) | names_of(gone)
    assert set(desk.flags()) == kept | {bohr.session_id, "of-bohr"}
    left = {path: path.read_bytes() for path in (desk.state / "flags").iterdir() if path.name not in kept}
    lifecycle.end(desk.store, acting(desk.store, str(bohr.session_id)))
    for path, content in left.items():
        path.write_bytes(content)  # as a process leaves them that is killed at its end
    desk.start("Hertz")
    assert set(desk.flags()) == kept
    said = desk.state / heartbeats.PROMPTS / "harness-of-one-that-died"
    said.parent.mkdir()
    said.touch()
    at = desk.clock() * 1000
    os.utime(said, ns=(at, at))
    desk.start("Emmy")
    assert said.exists()
    desk.clock.forward(31 * DAY)
    heartbeats.touch(desk.store, str(desk.curie.session_id))
    desk.start("Ada")
    assert not said.exists()
    assert set(desk.flags()) == names_of(desk.curie, HARNESS)
    assert os.listdir(desk.state / "beats") == []


def test_two_sessions_of_one_identity_both_have_it_waiting(desk: Desk) -> None:
    """Whichever comes first shows it."""
    other = desk.start("Marie", agent_identity=IDENTITY)
    signal = desk.send(to=[IDENTITY])
    assert desk.events(desk.curie) == desk.events(other) == {signal}


def test_what_arrives_from_another_clone_waits_too(desk: Desk, tmp_path: Path) -> None:
    """Whoever looks first after a sync raises flags; sessions of the other clone have none here."""
    there = open_store(new_repo(tmp_path / "there"), desk.clock)
    away = acting(there, lifecycle.start(there, CallerClaims(), name="Noether"))
    carry(desk.store, there)
    signal = signals.send(there, away, "from afar", to=["Curie"]).signal["signal_id"]
    carry(desk.store, there)

    assert desk.events(desk.curie) == {signal}
    assert set(desk.flags()) == names_of(desk.curie, HARNESS)
    assert not (Path(there.repo.state) / "flags").is_dir() or not os.listdir(Path(there.repo.state) / "flags")


def test_a_signal_from_another_worktree_waits(desk: Desk, repo: Path, tmp_path: Path) -> None:
    """Worktrees share the state folder, and so the flags."""
    other = open_store(worktree(repo, tmp_path / "other"), desk.clock)
    bohr = acting(other, lifecycle.start(other, CallerClaims(), name="Bohr"))
    signal = signals.send(other, bohr, "next door", to=["Curie"]).signal["signal_id"]
    assert desk.events(desk.curie) == {signal}


def test_a_signal_of_another_workspace_does_not_wait(desk: Desk) -> None:
    """It can't be shown, so nobody is told of it."""
    lifecycle.change(desk.store, desk.curie, workspace="here")
    lifecycle.change(desk.store, desk.planck, workspace="elsewhere")
    desk.planck = acting(desk.store, str(desk.planck.session_id))
    with pytest.raises(UsageError):
        desk.send(to=["Curie"])
    desk.send(broadcast=True)
    assert desk.events(desk.curie) == set()
    assert desk.flags() == {}


def test_what_is_nobodys_here_costs_a_look_and_seldom_a_write(desk: Desk) -> None:
    """The mark moves when somebody was fed, and else only now and then."""
    mark = "SELECT value FROM meta WHERE key = 'fed'"
    desk.send(to=["Curie"])
    (before,) = desk.store.db().execute(mark).fetchone()
    desk.send(to=[annas("human:person@example.org")], allow_unseen=True)
    assert desk.store.db().execute(mark).fetchone() == (before,)
    for _ in range(delivery.LAG_MAX + 1):
        desk.send(to=[annas("human:person@example.org")], allow_unseen=True)
    (after,) = desk.store.db().execute(mark).fetchone()
    assert int(after) > int(before)


def test_what_was_looked_at_is_not_looked_at_again(desk: Desk) -> None:
    """Where the mark stays behind a signal that is nobody's here, a process asks once whose it is."""
    desk.send(to=["Curie"])
    desk.send(to=[annas("human:person@example.org")], allow_unseen=True)
    desk.store.caught_up()
    asked: list[str] = []
    desk.store.index.db.set_trace_callback(asked.append)
    desk.store.caught_up()
    assert not any("FROM session" in statement for statement in asked)
    other = desk.again()
    other.index.db.set_trace_callback(asked.append)
    other.caught_up()  # another process has to ask
    assert any("FROM session" in statement for statement in asked)


def test_only_what_is_new_is_asked_for(desk: Desk) -> None:
    """A reader with much unread mail costs a send no more than one with none."""
    first, third = desk.send(to=["Curie"]), desk.send(broadcast=True)
    db = desk.store.db()
    (line,) = db.execute("SELECT max(line) FROM signal").fetchone()
    second, fourth = desk.send(to=["Curie"]), desk.send(broadcast=True)
    for after, expected in ((0, {first, second, third, fourth}), (line, {second, fourth})):
        found = mailbox.unread_ids(db, IDENTITY, desk.curie.session_id, None, desk.clock(), after=after)
        assert {signal for _, signal in found} == expected


def test_nothing_is_done_twice_where_nothing_is_new(desk: Desk) -> None:
    """A look at an index that was fed asks one question, in this process and in the next."""
    desk.send(to=["Curie"])
    asked: list[str] = []
    for store in (desk.store, desk.again()):
        store.caught_up()
        store.index.db.set_trace_callback(asked.append)
        store.caught_up()
        store.caught_up()
        assert store.feed_after == 0.0
    assert asked and not any("FROM session" in statement for statement in asked)


def test_a_folder_that_cannot_be_written_fails_nothing(desk: Desk) -> None:
    """Without flags signals are sent and read all the same; once they can be made, they are."""
    (desk.state / "flags").write_text("A file where the folder should be.\n")
    signal = desk.send(to=["Curie"])
    (desk.state / "flags").unlink()
    desk.again().caught_up()
    assert desk.events(desk.curie) == {signal}
    assert desk.flags() == dict.fromkeys(names_of(desk.curie, HARNESS), True)


def test_an_error_as_a_flag_is_raised_is_tried_again_after_a_while(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One answer looks many times; a full disk is not asked each time."""
    with monkeypatch.context() as patch:
        tried = at(patch, "replace", "*/flags/*", full)
        desk.send(to=["Curie"])
        for _ in range(5):
            desk.store.db()
    assert len(tried) == 1
    desk.store.feed_after = 0.0
    desk.store.db()
    assert len(desk.events(desk.curie)) == 1


def test_no_part_of_a_file_is_ever_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is there whole, or not at all; what could not be finished leaves nothing."""
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "event"
    seen: list[list[str]] = []
    replace = os.replace

    def spy(source: str, target: str) -> None:
        seen.append(sorted(os.listdir(folder)))
        replace(source, target)

    monkeypatch.setattr(os, "replace", spy)
    local_files.replace(str(path), b"whole")
    assert path.read_bytes() == b"whole" and "event" not in seen[0] and seen[0][0].startswith(".")

    def fail(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        local_files.replace(str(folder / "other"), b"never")
    assert os.listdir(folder) == ["event"]


class TestPointers:
    """The program and the write-ahead logs outside, as a shell reads them."""

    def test_they_are_lines(self, tmp_path: Path) -> None:
        """One path a line; a path with a line break could be taken for two, and is left out."""
        state = str(tmp_path)
        assert clients.write_paths(
            state,
            user=user_state(),
            program="/opt/a b/gitmem",
            wal_folders=["/tmp/one", "/tmp/t\nwo", "/tmp/one"],
        )
        assert (tmp_path / "program").read_text() == "/opt/a b/gitmem\n"
        assert (tmp_path / "wal-folders").read_text() == "/tmp/one\n"
        assert clients.noted_program(state) == "/opt/a b/gitmem"
        assert clients.write_paths(state, wal_folders=[])
        assert (
            not Path(state, clients.WAL_FOLDERS).read_text()
            and clients.noted_program(state) == "/opt/a b/gitmem"
        )

    def test_only_what_differs_is_written(self, tmp_path: Path) -> None:
        """Each start of a session says the same again."""
        clients.write_paths(str(tmp_path), user=user_state(), program="/opt/gitmem", wal_folders=["/tmp/one"])
        before = {path.name: path.stat().st_ino for path in tmp_path.iterdir()}
        assert clients.write_paths(
            str(tmp_path), user=user_state(), program="/opt/gitmem", wal_folders=["/tmp/one"]
        )
        assert {path.name: path.stat().st_ino for path in tmp_path.iterdir()} == before

    def test_a_folder_that_is_not_there_is_no_error(self, tmp_path: Path) -> None:
        """Before the first line there is no state folder."""
        assert not clients.write_paths(str(tmp_path / "none"), user=user_state(), program="/opt/gitmem")
        assert clients.noted_program(str(tmp_path / "none")) is None


def test_a_signal_that_waits_for_its_commit_has_its_flag(desk: Desk) -> None:
    """Hooks look at flags alone."""
    other = desk.store.log.lock()
    assert other.take()
    desk.store.commit_after = 1.0
    with other:
        signal = desk.send(to=["Curie"])

    assert desk.events(desk.curie) == {signal}
    assert desk.flags() == dict.fromkeys(names_of(desk.curie, HARNESS), True)


def test_what_a_session_has_to_be_told_outlives_a_moment_in_which_it_can_not_be_read(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written over it, nor is it removed."""
    session, state = desk.curie.session_id or "", str(desk.state)
    delivery.tell(desk.store, session, "contested: a claim")
    delivery.note_told(state, session, ["a"])
    with monkeypatch.context() as patch:
        for folder in (delivery.NOTICES, delivery.TOLD):
            at(patch, "open", os.path.join(state, folder, session), denied)
        with pytest.raises(PermissionError):
            delivery.tell(desk.store, session, "contested: another claim")
        with pytest.raises(PermissionError):
            delivery.note_told(state, session, ["b"])
        assert delivery.drop_notices(state, session, "contested: a") == []
        assert delivery.take_notices(state, session) == []

    assert [*delivery.told(state, session)] == ["a"]
    assert delivery.take_notices(state, session) == ["contested: a claim"]
