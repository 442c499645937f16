"""Which commits of a worktree get a record, and for whom: by evidence, never by guess."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitmem.agents import commit_stamps, heartbeats, lifecycle
from gitmem.git import files
from gitmem.history import commits
from gitmem.history.commits import Clues
from tests.sandbox import acting

from .people import Somebody, git, install_hook, store_at


@pytest.fixture
def bohr(repo: Path) -> Iterator[Somebody]:
    """An agent in a worktree whose post-commit hook is installed."""
    git(repo, "commit", "--quiet", "--amend", "--no-edit", GIT_COMMITTER_DATE="@1790000000 +0000")
    install_hook(repo)
    one = Somebody("a", repo, store_at(repo))
    yield one
    assert one.store is not None
    one.store.close()


def records(one: Somebody) -> list[tuple[str, str]]:
    assert one.store is not None
    return one.store.db().execute("SELECT commit_id, session FROM made_commit").fetchall()


def test_a_commit_is_recorded_once_however_often_it_is_found(bohr: Somebody) -> None:
    """A look without new commits starts no git; a lost mark, or a shortened reflog, makes no second line."""
    commit = bohr.commit()
    assert (bohr.look(), bohr.look()) == (1, 0)
    assert bohr.store is not None
    for content in (b"", b"{", b'{"end": 5, "last": "x"}', b"[" * 4_000):
        where = Path(commit_stamps.read_to(bohr.store.repo))
        where.write_bytes(content)
        os.utime(where, ns=(0, 0))
        assert bohr.look() == 0
    assert records(bohr) == [(commit, bohr.session)]
    assert bohr.makers(commit) == {bohr.session}


@pytest.mark.parametrize("how", ["off", "expired", "truncated"])
def test_commits_are_found_without_the_reflog(bohr: Somebody, how: str) -> None:
    """The hook's note is enough; what the reflog would tell is read from the commit itself."""
    if how == "off":
        bohr.git("config", "core.logAllRefUpdates", "false")
        Path(bohr.folder, ".git", "logs", "HEAD").unlink()
    first, second = bohr.commit(), bohr.commit()
    if how == "expired":
        bohr.git("reflog", "expire", "--expire=now", "--all")
    elif how == "truncated":
        Path(bohr.folder, ".git", "logs", "HEAD").write_bytes(b"\0\xff\n" * 9 + b"x" * 300)
    assert bohr.look() == 2
    assert (bohr.makers(first), bohr.makers(second)) == ({bohr.session}, {bohr.session})


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
    assert bohr.makers() == {bohr.session}  # the commit after `--squash` is one like others


def test_notes_of_the_other_hook_about_a_merge_make_it_nobodys(bohr: Somebody) -> None:
    """A person's commit ran post-commit while the agent's merge was at HEAD already, or the other way round."""
    assert bohr.store is not None
    branches(bohr)
    person = Somebody("r", bohr.folder)
    person.git("-c", "core.hooksPath=/dev/null", "merge", "--quiet", "--no-edit", "side")
    merged = person.head()
    plain = person.commit()
    noted = Path(commit_stamps.noted(bohr.store.repo))
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
    """Two processes that commit at once see each other's HEAD; so does a commit whose tool runs no hooks."""
    assert bohr.store is not None
    commit = bohr.commit()
    with open(commit_stamps.noted(bohr.store.repo), "a") as file:
        file.write(f"{commit}\n")
    bohr.look()
    assert bohr.makers(commit) == set()
    bohr.write()
    bohr.git("-c", "core.hooksPath=/dev/null", "commit", "--quiet", "-m", "a tool without hooks")
    after = bohr.commit()
    bohr.look()
    assert bohr.makers(after) == set()


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


def test_alone_in_its_turn_is_inferred_and_can_be_switched_off(hookless: Hookless, repo: Path) -> None:
    """Not outside of a turn, not beside another session, not with `exact`, and never with the hook."""
    one = hookless.one
    before = one.commit()
    hookless.look()
    time.sleep(1.1)
    hookless.prompt()
    commit = one.commit()
    assert hookless.look() == 1
    assert (one.makers(commit), one.makers(commit, inferred=False)) == ({one.session}, set())
    idle = one.commit()
    hookless.look(in_turn=False)
    git(repo, "config", "gitmem.commits", "exact")
    exact = one.commit()
    other = store_at(repo)
    commits.note(other, Clues(acting(other, one.session), in_turn=True))
    git(repo, "config", "--unset", "gitmem.commits")
    Somebody("b", repo, other)
    beside = one.commit()
    hookless.look()
    assert [one.makers(each) for each in (before, idle, exact, beside)] == [set()] * 4
    other.close()


def test_an_entry_that_moves_head_to_a_commit_made_before_makes_none(
    hookless: Hookless, tmp_path: Path
) -> None:
    """Whatever the message of the entry says: the committer's time differs from that of the entry."""
    hookless.prompt()
    git(tmp_path, "clone", "--quiet", str(hookless.one.folder), "far")
    theirs = Somebody("p", tmp_path / "far").commit()
    time.sleep(1.1)
    hookless.one.git("fetch", "--quiet", str(tmp_path / "far"))
    hookless.one.git("update-ref", "-m", "commit: looks like one", "HEAD", theirs)
    assert hookless.look() == 0 and hookless.one.makers(theirs) == set()


def test_the_setting_off_records_nothing_and_stops_hooks_from_looking(bohr: Somebody) -> None:
    """The file goes that hooks compare with the reflog."""
    bohr.git("config", "gitmem.commits", "off")
    store = store_at(bohr.folder)
    bohr.commit()
    assert commits.note(store, Clues()) == 0
    assert not os.path.exists(commit_stamps.read_to(store.repo)) and not commit_stamps.has_news(store.repo)
    store.close()
    assert records(bohr) == []


def test_hostile_notes_and_reflogs_are_read_within_limits(bohr: Somebody) -> None:
    """Others of a shared repository can write there. Lines that are none are left out."""
    assert bohr.store is not None
    commit = bohr.commit()
    repo = bohr.store.repo
    with open(commit_stamps.noted(repo), "ab") as file:
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
    assert records(bohr) == []
