"""Which commits of a worktree get a record, and for whom: by evidence, never by guess."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from gitmem import records
from gitmem.agents import heartbeats, lifecycle
from gitmem.agents.caller import Caller
from gitmem.git import files, history
from gitmem.git.history import CommitFacts
from gitmem.history import commits
from gitmem.history.commits import Clues
from gitmem.log.lines import CommitMessage, format_at
from gitmem.records import ids
from gitmem.records.record_types import CommitFields
from gitmem.store import Store
from gitmem.work import new_task, task_work

from ..sandbox import SECOND, START, Agent, Clock, acting, new_repo, open_store
from .people import History, Somebody, git, install_hook, store_at


@pytest.fixture
def bohr(repo: Path) -> Iterator[Somebody]:
    """An agent in a worktree whose post-commit hook is installed."""
    git(repo, "commit", "--quiet", "--amend", "--no-edit", GIT_COMMITTER_DATE="@1790000000 +0000")
    install_hook(repo)
    one = Somebody("a", repo, store_at(repo))
    yield one
    assert one.store is not None
    one.store.close()


def recorded(one: Somebody) -> list[tuple[str, str]]:
    assert one.store is not None
    return one.store.db().execute("SELECT commit_id, session FROM made_commit").fetchall()


def test_a_commit_is_recorded_once_however_often_it_is_found(bohr: Somebody) -> None:
    """A look without new commits starts no git; a lost mark, or a shortened reflog, makes no second line."""
    commit = bohr.commit()
    assert (bohr.look(), bohr.look()) == (1, 0)
    assert bohr.store is not None
    for content in (b"", b"{", b'{"end": 5, "last": "x"}', b"[" * 4_000):
        where = Path(heartbeats.commits_read(bohr.store.repo))
        where.write_bytes(content)
        os.utime(where, ns=(0, 0))
        assert bohr.look() == 0
    assert recorded(bohr) == [(commit, bohr.session)]
    assert bohr.makers(commit) == {bohr.session}


def test_what_moves_head_without_making_a_commit_is_nobodys(bohr: Somebody, tmp_path: Path) -> None:
    """Commits of people that an agent fetches, checks out, resets to or merges by fast-forward."""
    git(tmp_path, "clone", "--quiet", str(bohr.folder), "far")
    theirs = Somebody("p", tmp_path / "far")
    made = [theirs.commit() for _ in range(3)]
    bohr.git("fetch", "--quiet", str(theirs.folder), "main:theirs")
    bohr.git("merge", "--quiet", "theirs~2")
    bohr.git("reset", "--quiet", "--hard", "theirs~1")
    bohr.git("checkout", "--quiet", "theirs")
    bohr.git("pull", "--quiet", "--rebase", str(theirs.folder), "main")
    assert bohr.look() == 0
    assert [bohr.makers(each) for each in made] == [set()] * 3


def branches(one: Somebody) -> tuple[str, str]:
    """A commit of a person on a branch `side`, and one on main; main is checked out."""
    person = Somebody("p", one.folder)
    one.git("checkout", "--quiet", "-b", "side")
    theirs = person.commit()
    one.git("checkout", "--quiet", "main")
    return theirs, person.commit()


@pytest.mark.parametrize(
    "command",
    [("merge", "--no-edit"), ("merge", "--no-ff", "-m", "joined"), ("pull", "--no-rebase", "--no-edit", ".")],
)
def test_a_merge_is_of_who_made_it_and_what_it_merges_is_not(
    bohr: Somebody, command: tuple[str, ...]
) -> None:
    """Git runs post-merge for it, not post-commit; a person's merge and the person's commits stay the person's."""
    person = Somebody("r", bohr.folder)
    theirs = branches(bohr)
    bohr.git(*command, "--quiet", "side")
    own = bohr.head()
    bohr.git("checkout", "--quiet", "side")
    person.commit()
    person.git(*command, "--quiet", "main")
    merged = person.head()
    bohr.look()
    assert bohr.makers(own) == {bohr.session}
    assert [bohr.makers(each) for each in (*theirs, merged)] == [set()] * 3


def test_a_merge_with_a_conflict_and_one_of_three_branches(bohr: Somebody) -> None:
    """`git commit` ends the first, so that post-commit runs."""
    branches(bohr)
    bohr.git("checkout", "--quiet", "-b", "third", "HEAD~1")
    bohr.commit()
    bohr.git("checkout", "--quiet", "main")
    bohr.git("merge", "--quiet", "-m", "octopus", "side", "third")
    octopus = bohr.head()
    for branch, text in (("left", "l"), ("main", "m")):
        bohr.git("checkout", "--quiet", *(["-b"] if branch == "left" else []), branch)
        (bohr.folder / "both").write_text(text)
        bohr.git("add", "-A")
        bohr.git("commit", "--quiet", "-m", branch)
    bohr.git("merge", "--quiet", "left", check=False)
    (bohr.folder / "both").write_text("lm")
    bohr.git("add", "-A")
    bohr.git("merge", "--continue")
    bohr.look()
    assert (bohr.makers(octopus), bohr.makers()) == ({bohr.session}, {bohr.session})


def test_a_fast_forward_and_a_squashing_merge_attribute_no_commit_of_others(bohr: Somebody) -> None:
    """Git runs post-merge after both: HEAD is then a merge that a person made with a tool that runs no hooks."""
    assert bohr.store is not None
    person = Somebody("r", bohr.folder)
    theirs, _ = branches(bohr)
    person.git("-c", "core.hooksPath=/dev/null", "merge", "--quiet", "--no-edit", "side")
    merged = person.head()
    person.git("branch", "later", "side")
    person.git("checkout", "--quiet", "later")
    late = person.commit()
    bohr.git("checkout", "--quiet", "main")
    bohr.git("merge", "--quiet", "--squash", "later")
    bohr.git("reset", "--quiet", "--hard")
    bohr.git("checkout", "--quiet", "side")
    bohr.git("merge", "--quiet", "--ff-only", "main")
    assert bohr.head() == merged
    bohr.git("pull", "--quiet", "--ff-only", ".", "main")
    bohr.git("reset", "--quiet", "--hard", "HEAD~1")
    bohr.git("merge", "--quiet", "main")
    bohr.look()
    assert not any(commits.of_hook(each, "post-merge") for each in commits.read(bohr.store.repo).values())
    assert [bohr.makers(each) for each in (theirs, merged, late)] == [set()] * 3
    bohr.git("merge", "--quiet", "--squash", "later")
    bohr.git("commit", "--quiet", "-m", "squashed")
    bohr.look()
    found = bohr.found()  # the agent has only squashed what a person made
    assert (set(found.made), set(found.rewrote), found.is_whole) == (set(), {bohr.session}, False)


def test_notes_of_the_other_hook_about_a_merge_make_it_nobodys(bohr: Somebody) -> None:
    """A person's commit ran post-commit while the agent's merge was at HEAD already, or the other way round."""
    assert bohr.store is not None
    branches(bohr)
    person = Somebody("r", bohr.folder)
    person.git("-c", "core.hooksPath=/dev/null", "merge", "--quiet", "--no-edit", "side")
    merged = person.head()
    plain = person.commit()
    noted = Path(heartbeats.commit_notes(bohr.store.repo))
    kept = [line for line in noted.read_text().splitlines() if not line.startswith(plain)]
    noted.write_text(
        "\n".join(
            [
                *kept,
                f"{merged} GITMEM_SESSION={bohr.session}",
                f"{plain} hook=post-merge GITMEM_SESSION={bohr.session}",
                "",
            ]
        )
    )
    bohr.look()
    assert (bohr.makers(merged), bohr.makers(plain)) == (set(), set())


def test_a_repeated_commit_of_a_person_stays_the_persons(bohr: Somebody) -> None:
    """An agent cherry-picks, rebases and commits again with `-C`: it has only rewritten the change."""
    person = Somebody("p", bohr.folder)
    bohr.git("checkout", "--quiet", "-b", "topic")
    theirs = person.commit()
    time.sleep(1.1)  # else the repeated commits are made in the second of the first
    bohr.git("checkout", "--quiet", "main")
    bohr.commit()
    bohr.git("cherry-pick", theirs)
    picked = bohr.head()
    time.sleep(1.1)  # else it would be the same commit again
    bohr.git("reset", "--quiet", "--soft", "HEAD~1")
    bohr.git("commit", "--quiet", "-C", theirs)
    again = bohr.head()
    bohr.git("checkout", "--quiet", "topic")
    bohr.git("rebase", "--quiet", "main~1")
    rebased = bohr.head()
    bohr.look()
    assert [bohr.makers(each) for each in (theirs, picked, again, rebased)] == [set()] * 4


def test_what_a_person_adds_to_an_agents_commit_is_not_the_agents(bohr: Somebody) -> None:
    """By an amend: the commit is only partly the agent's. A person who only words it anew adds nothing."""
    person = Somebody("p", bohr.folder)
    bohr.commit()
    person.git("commit", "--quiet", "--amend", "-m", "better words")
    reworded = bohr.head()
    bohr.look()
    person.write()
    person.git("commit", "--quiet", "--amend", "--no-edit")
    added = bohr.head()
    bohr.look()
    person.git("commit", "--quiet", "--amend", "-m", "other words")
    twice = bohr.head()
    bohr.look()
    found = [bohr.found(each) for each in (reworded, added, twice)]
    assert [set(each.made) for each in found] == [{bohr.session}] * 3
    assert [each.is_whole for each in found] == [True, False, False]


def test_the_same_change_made_again_is_not_the_same_commit(bohr: Somebody) -> None:
    """A person who repeats an agent's commit keeps its author's time; one who types the same change does not."""
    person = Somebody("p", bohr.folder)
    base = bohr.head()
    own = bohr.commit()
    bohr.look()
    time.sleep(1.1)
    person.git("checkout", "--quiet", "-b", "typed", base)
    (bohr.folder / "a-1").write_text("a 1\n" * 3)
    person.git("add", "-A")
    person.git("commit", "--quiet", "-m", "typed")
    typed = person.head()
    person.git("reset", "--quiet", "--hard", base)
    person.git("cherry-pick", own)
    assert (bohr.makers(typed), bohr.makers(person.head())) == (set(), {bohr.session})


@pytest.mark.parametrize(
    ("variables", "is_named"),
    [
        ({}, True),
        ({"CODEX_THREAD_ID": "thread-1"}, True),  # a client within a session that was started for it
        ({"CODEX_THREAD_ID": "thread-1", "CLAUDE_CODE_SESSION_ID": "c-2"}, False),
        ({"CURSOR_AGENT": "1", "CLAUDECODE": "1"}, False),
        ({"CLAUDE_CODE_SESSION_ID": "ö"}, False),
        ({"GITMEM_SESSION": "sess-elsewhere"}, False),
        ({"GITMEM_SESSION": "$(x)"}, False),
        ({"GITMEM_SESSION": ""}, False),
    ],
)
def test_variables_name_one_session_or_nobody(
    bohr: Somebody, variables: dict[str, str], is_named: bool
) -> None:
    """Of two clients one has started the other: nobody knows which of them commits."""
    bohr.env = {**bohr.env, **variables}
    commit = bohr.commit()
    bohr.look()
    assert bohr.makers(commit) == ({bohr.session} if is_named else set())


def test_a_session_of_a_client_is_not_that_of_the_client_it_starts(bohr: Somebody) -> None:
    """The variable of the first client is passed on to the second, which no session knows."""
    from gitmem.agents.caller import CallerClaims

    assert bohr.store is not None
    claims = CallerClaims(client_session=("CLAUDE_CODE_SESSION_ID", "c-1"))
    theirs = lifecycle.start(bohr.store, claims, client="claude-code").session_id
    bohr.env = {"CLAUDE_CODE_SESSION_ID": "c-1", "CLAUDECODE": "1", "GITMEM_SESSION": theirs}
    own = bohr.commit()
    bohr.env["CODEX_THREAD_ID"] = "t-1"
    nested = bohr.commit()
    del bohr.env["CODEX_THREAD_ID"]
    bohr.env = {"CLAUDE_CODE_SESSION_ID": "c-1", "CODEX_CI": "1"}
    marked = bohr.commit()
    bohr.look()
    assert [bohr.makers(each) for each in (own, nested, marked)] == [{theirs}, set(), set()]


def test_two_notes_about_one_commit_make_it_nobodys(bohr: Somebody) -> None:
    """Two processes that commit at once see each other's HEAD; a commit with one note is its writer's, whatever came before."""
    assert bohr.store is not None
    commit = bohr.commit()
    with open(heartbeats.commit_notes(bohr.store.repo), "a") as file:
        file.write(f"{commit}\n")
    bohr.look()
    assert bohr.makers(commit) == set()
    bohr.write()
    bohr.git("-c", "core.hooksPath=/dev/null", "commit", "--quiet", "-m", "a tool without hooks")
    after = bohr.commit()
    bohr.look()
    assert bohr.makers(after) == {bohr.session}


def test_a_session_makes_no_commit_before_its_start_or_after_its_end(bohr: Somebody) -> None:
    """A shell keeps the variable of a session that has ended."""
    early = bohr.git("rev-parse", "HEAD").strip()
    assert bohr.store is not None
    lifecycle.end(bohr.store, acting(bohr.store, bohr.session))
    time.sleep(1.1)
    late = bohr.commit()
    other = Somebody("b", bohr.folder, bohr.store)
    other.look()
    assert (other.makers(early), other.makers(late)) == (set(), set())


class Hookless:
    """An agent whose client reports prompts, in a worktree without the post-commit hook."""

    def __init__(self, repo: Path) -> None:
        self.one = Somebody("a", repo, store_at(repo))
        assert self.one.store is not None
        self.store = self.one.store
        self.one.env = {}

    def look(self, *printed: str, in_turn: bool = True) -> int:
        who = acting(self.store, self.one.session)
        return commits.note(self.store, Clues(who, printed, in_turn=in_turn))

    def prompt(self) -> None:
        where = Path(self.store.repo.state, heartbeats.PROMPTS, self.one.session)
        where.parent.mkdir(exist_ok=True)
        where.touch()


@pytest.fixture
def hookless(repo: Path) -> Iterator[Hookless]:
    found = Hookless(repo)
    yield found
    found.store.close()


def test_without_the_hook_only_what_the_agents_command_printed_is_exact(hookless: Hookless) -> None:
    """Another commit at the same time is a person's."""
    theirs, own = hookless.one.commit(), hookless.one.commit()
    assert hookless.look(own[:7], in_turn=False) == 1
    assert (hookless.one.makers(own), hookless.one.makers(theirs)) == ({hookless.one.session}, set())


def test_alone_in_its_turn_is_inferred(hookless: Hookless, repo: Path) -> None:
    """Not outside of a turn, not beside another session, and never with the hook."""
    one = hookless.one
    before = one.commit()
    hookless.look()
    time.sleep(1.1)
    hookless.prompt()
    commit = one.commit()
    assert hookless.look() == 1
    assert one.makers(commit) == {one.session}
    idle = one.commit()
    hookless.look(in_turn=False)
    other = store_at(repo)
    Somebody("b", repo, other)
    beside = one.commit()
    hookless.look()
    assert [one.makers(each) for each in (before, idle, beside)] == [set()] * 3
    other.close()


def test_an_entry_that_moves_head_to_a_commit_of_another_time_makes_none(
    hookless: Hookless, tmp_path: Path
) -> None:
    """Whatever the message of the entry says: the committer's time differs from that of the entry."""
    hookless.prompt()
    git(tmp_path, "clone", "--quiet", str(hookless.one.folder), "far")
    person = Somebody("p", tmp_path / "far")
    person.env = {"GIT_COMMITTER_DATE": f"@{int(time.time())} +0000"}
    theirs = person.commit()
    hookless.one.git("fetch", "--quiet", str(tmp_path / "far"))
    time.sleep(1.1)
    hookless.one.git("update-ref", "-m", "commit: looks like one", "HEAD", theirs)
    hookless.look(theirs[:7])  # may record the first commit, if the session began in the same second
    assert hookless.one.makers(theirs) == set()


def test_the_setting_off_records_nothing_and_stops_hooks_from_looking(bohr: Somebody) -> None:
    """The file goes that hooks compare with the reflog."""
    bohr.git("config", "gitmem.commits", "off")
    store = store_at(bohr.folder)
    bohr.commit()
    assert commits.note(store, Clues()) == 0
    assert not os.path.exists(heartbeats.commits_read(store.repo)) and not heartbeats.has_new_commits(
        store.repo
    )
    store.close()
    assert recorded(bohr) == []


def test_hostile_notes_and_reflogs_are_read_within_limits(bohr: Somebody) -> None:
    """Others of a shared repository can write there. Lines that are none are left out."""
    assert bohr.store is not None
    commit = bohr.commit()
    repo = bohr.store.repo
    with open(heartbeats.commit_notes(repo), "ab") as file:
        file.write(
            b"\xff\0 = \n" * 50_000
            + b"x" * 300_000
            + b"\n"
            + b"0" * 40
            + b" A=1 A=2\n"
            + f"{commit} {'Z=' * 9_000}\n".encode()
        )
    with open(files.reflog(repo.git_dir), "ab") as file:
        file.write(
            b"\n\t\n" * 1_000
            + b"a" * 40
            + b" "
            + b"b" * 40
            + b" x <y> 99999999999999999999 +0000\tcommit: z\n"
            + b"c" * 2_000_000
        )
    assert len(commits.read(repo)) <= 3
    assert commits.try_note(bohr.store, Clues()) is None
    assert recorded(bohr) == []


# The table of lines about commits: found by commit and patch id in any order of arrival.

COMMIT, OTHER, PATCH = "a" * 40, "b" * 40, "c" * 40
MALLORY = CommitMessage("Mallory <m@example.org>", "commits")


def line(session: str, *, commit: str = COMMIT, at: int = START, **fields: object) -> bytes:
    link = ids.keyed_id("link", commit, session)
    return records.line("commit", at, {
        "link_id": link, "commit": commit, "patch_id": PATCH, "action": "commit", "evidence": "environment",
        "sender_identity": session, "sender_session": session, **fields,
    }, writer=None)  # fmt: skip


def put(store: Store, *lines: bytes) -> None:
    store.record([("commits", each) for each in lines], MALLORY)


def put_own(store: Store, session: str) -> None:
    fields: CommitFields = {
        "link_id": store.own_id("link", COMMIT, session), "commit": COMMIT, "action": "commit", "evidence": "environment",
        "sender_identity": session, "sender_session": session,
    }  # fmt: skip
    store.record([store.line("commit", fields)], MALLORY)


def sessions(found: list[commits.CommitLine]) -> list[str | None]:
    return [each.record.get("sender_session") for each in found]


def test_commits_are_found_by_commit_and_patch_in_any_order(tmp_path: Path) -> None:
    """One record twice is one; the lowest line counts."""
    lines = [line("sess-0001", at=START + 5), line("sess-0001", wu_id="WU-1"), line("sess-0002", commit=OTHER, action="amend", sources=[COMMIT])]  # fmt: skip
    answers = []
    for seed in range(3):
        Random(seed).shuffle(lines)
        store = open_store(new_repo(tmp_path / str(seed)), Clock())
        put(store, *lines)
        db = store.db()
        answers.append(
            [
                commits.lines_about(db, "commit_id", COMMIT),
                commits.lines_about(db, "patch_id", PATCH),
            ]
        )
        store.close()
    one, two, three = (
        [[(each.record, each.is_own) for each in found] for found in answer] for answer in answers
    )
    assert one == two == three
    (first,), both = answers[0]
    assert first.record["wu_id"] == "WU-1" and not first.is_own
    assert sorted(map(str, sessions(both))) == ["sess-0001", "sess-0002"]


def test_many_lines_of_peers_do_not_hide_our_own(tmp_path: Path) -> None:
    """Of any number of lines about one commit a few are read, this clone's first."""
    store = open_store(new_repo(tmp_path / "here"), Clock())
    own = Agent(store, "claude:worker:bohr").session.session_id
    put(store, *(line(f"sess-{number:04d}", at=START - 9) for number in range(200)))
    put_own(store, own)
    found = commits.lines_about(store.db(), "commit_id", COMMIT)
    assert found[0].is_own and len(found) == commits.LINES_MAX
    store.close()


# Whoever can push can write a record about any commit: none attributes a commit to somebody who has not made it, as far as this clone can know.

FAR = "sess-far1"


class Town:
    """An agent and a person in a worktree, a person in a clone that is fetched, and what a peer has pushed."""

    def __init__(self, repo: Path, far: Path) -> None:
        git(repo, "commit", "--quiet", "--amend", "--no-edit", GIT_COMMITTER_DATE="@1790000000 +0000")
        install_hook(repo)
        git(repo.parent, "clone", "--quiet", str(repo), str(far))
        self.agent = Somebody("a", repo, store_at(repo))
        assert self.agent.store is not None
        self.store = self.agent.store
        self.person, self.far = Somebody("p", repo), Somebody("f", far)

    def facts(self, commit: str) -> tuple[CommitFacts, str | None]:
        common = self.store.repo.common
        found = history.facts_of(common, [commit], 9.0)[commit]
        return found, history.patch_ids(common, [commit], 9.0).get(commit)

    def claim(self, about: str, session: str = FAR, **fields: object) -> None:
        """A line of a peer that says that a session made a commit, with all that is known of the commit."""
        facts, patch = self.facts(about)
        known = {
            "commit": about,
            "authored_at": format_at(facts.authored * SECOND),
            "patch_id": patch,
            **fields,
        }
        self.put(line(session, **known))

    def put(self, *lines: bytes) -> None:
        self.store.record([("commits", each) for each in lines], MALLORY)

    def session(self, started: int, ended: int | None = None) -> None:
        """The lines of a session of another clone, by the seconds of its start and end."""
        for event, at in (("start", started), ("end", ended)):
            if at is not None:
                fields = {"session_id": FAR, "event": event, "display_name": "Far", "clone_id": "farfarfar0"}
                self.store.record([("sessions", records.line("session", at * SECOND, fields))], MALLORY)


@pytest.fixture
def town(repo: Path, tmp_path: Path) -> Iterator[Town]:
    found = Town(repo, tmp_path / "far")
    yield found
    found.store.close()


def test_a_commit_that_was_made_here_is_nobodys_of_elsewhere(town: Town) -> None:
    """By the reflog of whichever worktree: as its maker, by its changes, as its source, or in the name of a session of this clone."""
    linked = town.agent.folder.parent / "linked"
    git(town.agent.folder, "worktree", "add", "--quiet", "-b", "side", str(linked))
    there = Somebody("q", linked)
    for commit in (town.person.commit(), there.commit()):
        town.claim(commit)
        town.claim(commit, "sess-far2", action="rebase", sources=["d" * 40])
        town.claim(commit, "sess-far3", commit="e" * 40)
        town.claim(commit, town.agent.session)
        assert commits.lines_about(town.store.db(), "commit_id", commit)
        assert town.agent.makers(commit) == set()


def test_a_commit_of_an_agent_here_is_no_other_agents(town: Town) -> None:
    """What this clone has recorded itself counts alone, however many others claim the same."""
    own = town.agent.commit()
    for number in range(40):
        town.claim(own, f"sess-{number:04d}", at=1)
    town.agent.look()
    assert town.agent.makers(own) == {town.agent.session}


def test_a_rebased_commit_of_a_person_stays_the_persons(town: Town) -> None:
    town.person.git("checkout", "--quiet", "-b", "topic")
    theirs = town.person.commit()
    time.sleep(1.1)
    town.person.git("checkout", "--quiet", "main")
    town.person.commit()
    town.person.git("checkout", "--quiet", "topic")
    town.person.git("rebase", "--quiet", "main")
    rebased = town.person.head()
    town.claim(theirs)
    town.claim(rebased, "sess-far2")
    town.claim(theirs, "sess-far3", commit="e" * 40)
    assert (town.agent.makers(theirs), town.agent.makers(rebased)) == (set(), set())


@pytest.mark.parametrize(
    ("before", "after", "counts"), [(60, None, True), (60, 60, True), (-60, None, False), (90, -60, False)]
)
def test_another_clones_session_made_only_commits_while_it_was_open(
    town: Town, before: int, after: int | None, counts: bool
) -> None:
    """A commit that was made elsewhere is shown with what its clone says, if the session was at work then."""
    theirs = town.far.commit()
    town.agent.git("fetch", "--quiet", str(town.far.folder))
    committed = town.facts(theirs)[0].committed
    town.session(committed - before, None if after is None else committed + after)
    town.claim(theirs)
    assert town.agent.makers(theirs) == ({FAR} if counts else set())
    assert all(not each.is_own for each in commits.lines_about(town.store.db(), "commit_id", theirs))


def test_a_commit_from_elsewhere_that_is_picked_here_keeps_its_maker(town: Town) -> None:
    """The picked one was made here, and repeats one that was not."""
    time.sleep(1.1)  # in the second of a commit that was made here, it could be that one
    theirs = town.far.commit()
    town.agent.git("fetch", "--quiet", str(town.far.folder))
    town.claim(theirs)
    time.sleep(1.1)
    town.person.commit()
    town.person.git("cherry-pick", theirs)
    assert town.agent.makers() == {FAR}


def test_circles_of_sources_and_repetitions_end(town: Town) -> None:
    """Thousands of lines that each name the next commits as their sources, all with the same changes."""
    theirs = town.far.commit()
    town.agent.git("fetch", "--quiet", str(town.far.folder))
    facts, patch = town.facts(theirs)
    ids = [theirs, *(f"{number:040x}" for number in range(1, 3_000))]
    authored = format_at(facts.authored * SECOND)
    town.put(
        *(
            line(f"sess-{at % 50:04d}", commit=commit, action="rebase", patch_id=patch, authored_at=authored,
                 sources=[ids[(at * 7 + each) % len(ids)] for each in range(16)])
            for at, commit in enumerate(ids)
        )
    )  # fmt: skip
    town.store.db()
    began = time.process_time()
    found = commits.find_makers(
        town.store.db(), theirs, commits.MadeHere(town.store.repo),
        committed=facts.committed, authored=facts.authored, patch_id=patch,
    )  # fmt: skip
    assert (found.made, found.is_whole) == ({}, False) and time.process_time() - began < 2


# A commit belongs to the task and work unit that its session had when it was made, not to those it has when the commit is found.

STEP = 50_000  # microseconds between two acts


class Bench:
    """An agent that works on tasks, in a worktree whose post-commit hook is installed.

    Git's commits and their files have the times of the test's clock.
    """

    def __init__(self, repo: Path) -> None:
        git(repo, "commit", "--quiet", "--amend", "--no-edit", GIT_COMMITTER_DATE="@1790000000 +0000")
        install_hook(repo)
        self.clock = Clock()
        self.clock.value = int(time.time()) * SECOND
        self.store: Store = store_at(repo, self.clock)
        self.one = Somebody("a", repo, self.store)

    @property
    def caller(self) -> Caller:
        return acting(self.store, self.one.session)

    def ask(self) -> str:
        made = new_task.create(self.store, self.caller, "Go on", target_role="implementer/test")
        return str(made.task["task_id"])

    def take(self, task: str) -> str:
        task_work.take(self.store, self.caller, task)
        self.clock.forward(STEP)
        return task

    def commit(self) -> str:
        self.one.env["GIT_COMMITTER_DATE"] = f"@{self.clock.value // SECOND} +0000"
        made = self.one.commit()
        at = self.clock.value * 1000
        os.utime(self.file(made), ns=(at, at))
        self.clock.forward(STEP)
        return made

    def file(self, commit: str) -> Path:
        """The file of a loose commit."""
        return Path(self.one.folder, ".git", "objects", commit[:2], commit[2:])

    def next_second(self) -> None:
        self.clock.forward(SECOND - self.clock.value % SECOND + STEP)

    def done(self, task: str) -> None:
        task_work.report(self.store, self.caller, task, "completed", "It is done.")

    def found(self, field: str) -> list[str | None]:
        """A field of the records about the commits, in their order."""
        self.one.look()
        rows = self.store.db().execute("SELECT body FROM line WHERE kind = 'commit'").fetchall()
        records = {found["commit"]: found.get(field) for found in (json.loads(body) for (body,) in rows)}
        return [records[oid] for oid in git(self.one.folder, "log", "--reverse", "--format=%H").split()[1:]]


@pytest.fixture
def bench(repo: Path) -> Iterator[Bench]:
    found = Bench(repo)
    yield found
    found.store.close()


def test_a_task_that_was_finished_before_the_commit_was_found_is_kept(bench: Bench) -> None:
    """And one that was taken meanwhile, or finished before the commit, is not the commit's."""
    first, second, third = (bench.ask() for _ in range(3))
    bench.commit()
    bench.take(first)
    bench.commit()
    bench.done(first)
    bench.clock.forward(STEP)
    bench.commit()
    bench.take(second)
    bench.commit()
    task_work.release(bench.store, bench.caller, second)
    bench.take(third)
    assert bench.found("task_id") == [None, first, None, second]


def test_the_work_unit_is_that_of_the_commit(bench: Bench) -> None:
    for unit in ("WU-1", "WU-2", None):
        bench.commit()
        if unit is not None:
            lifecycle.change(bench.store, bench.caller, wu=unit)
            bench.clock.forward(STEP)
    assert bench.found("wu_id") == [None, "WU-1", "WU-2"]


@pytest.mark.parametrize("hidden", ["packed", "touched"])
def test_without_the_time_of_its_file_a_commit_has_only_what_was_held_all_the_second(
    bench: Bench, hidden: str
) -> None:
    """Git tells the second. A take of the same second may have come after it."""

    def hide() -> None:
        if hidden == "packed":
            bench.one.git("repack", "-adq")
        else:
            os.utime(bench.file(bench.one.head()), (1, 1))

    first = bench.ask()
    bench.next_second()
    bench.take(first)
    bench.commit()
    hide()
    bench.next_second()
    bench.commit()
    hide()
    bench.next_second()
    bench.commit()
    hide()
    bench.done(first)
    assert bench.found("task_id") == [None, first, None]


# A history of agents and people who rewrite each other's commits: nobody's commit is attributed to somebody else.


@pytest.mark.parametrize(
    ("commits", "seed"),
    [(40, 1), pytest.param(250, 2, marks=pytest.mark.deep), pytest.param(250, 3, marks=pytest.mark.deep)],
)
def test_commits_of_sessions_are_attributed_and_those_of_people_are_not(
    commits: int, seed: int, repo: Path, tmp_path: Path
) -> None:
    """At least 95 of 100 commits with something of a session name it; none names another, and none of people names a session."""
    history = History(repo, tmp_path / "linked", tmp_path / "far", seed)
    history.run(commits)
    wanted, found, wrong, people, missed = history.score()
    assert (wrong, people) == (0, 0), missed
    assert wanted > commits / 4 and found >= 0.95 * wanted, (wanted, found, missed)
    for store in history.stores:
        store.close()
