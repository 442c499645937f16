"""Exchange: clones of one remote end with the same log, whatever happened in between."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gitmem.git.port import Git as PlumbingGit
from gitmem.log import ref
from tests.clones import Hub, git, hub_at
from tests.git_on_path import GitOnPath


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    """A bare remote, through the port of commands: `tests/contracts/test_git_port.py` shows that both are alike."""
    yield from hub_at(tmp_path, PlumbingGit)


def test_two_clones_in_both_orders_end_with_the_same_log(hub: Hub) -> None:
    """Logs that were started apart become one, with the same tip, and the story is linear."""
    a, b = hub.clone("a"), hub.clone("b")
    a.add("one")
    b.add("two")
    first = a.exchange()
    second = b.exchange()
    third = a.exchange()
    assert (first.state, first.received, first.sent) == ("synced", 0, 1)
    assert "branch gitmem" in first.message and "can read" in first.message
    assert (second.state, second.received, second.sent) == ("synced", 1, 1)
    assert not second.message
    assert (third.state, third.received, third.sent) == ("synced", 1, 0)
    assert a.tip == b.tip == hub.tip() == second.tip == third.tip
    assert a.texts() == ["one", "two"]
    assert a.subjects() == ["two", "one", "Start the log of this repository", "gitmem log"]
    assert a.exchange().state == "up-to-date"


def test_one_commit_that_moves_keeps_who_when_and_what(hub: Hub) -> None:
    """Author, committer, dates and message are those of the commit that was made offline."""
    a, b = hub.clone("a"), hub.clone("b")
    a.add("one")
    b.add("two")
    shape = "--format=%an %ae %ad %cn %ce %cd%n%B"
    before = git("log", "-1", "--date=raw", shape, b.tip, cwd=b.path)
    a.exchange()
    b.exchange()
    assert git("log", "-1", "--date=raw", shape, b.tip, cwd=b.path) == before
    assert git("log", "-1", "--format=%(trailers:key=Note,valueonly)", b.tip, cwd=b.path).strip() == "two"


def test_progress_shows_no_password_of_a_url(hub: Hub) -> None:
    """A terminal may be recorded or shared; the name of the remote may be a URL."""
    a = hub.clone("a")
    a.add("one")
    shown: list[str] = []
    a.log.progress = lambda what, done, total: shown.append(what)
    a.exchange("http://planck:horse@127.0.0.1:1/hub.git")
    assert [each for each in shown if "127.0.0.1" in each], shown
    assert "horse" not in "".join(shown)


def test_riding_receipts_go_with_a_sync(hub: Hub) -> None:
    """What waits in the spool for the next commit is committed and sent."""
    a = hub.clone("a")
    a.add("one")
    assert a.add("rides", deferred=True) is None
    a.exchange()
    assert hub.texts() == ["one", "rides"]


def test_what_was_not_published_yet_becomes_one_commit_where_it_has_to_move(hub: Hub) -> None:
    """It lists all records. Commits that can be pushed as they are stay."""
    a, b = hub.clone("a"), hub.clone("b")
    for clone in (a, b, a):
        clone.exchange()
    a.add("one")
    a.add("two")
    kept = a.tip
    assert a.exchange().sent == 2 and a.tip == kept == hub.tip()
    b.add("three")
    assert b.add("rides", deferred=True) is None
    b.add("four")
    b.exchange()
    assert b.tip == hub.tip() and b.subjects()[:3] == ["three +2", "two", "one"]
    body = git("log", "-1", "--format=%b", b.tip, cwd=b.path)
    assert body.split("\n\n") == ["three\nfour", "Note: three\nNote: rides\nNote: four\n\n"] or (
        body.startswith("three\nfour\n\nNote: three\n") and "Note: rides" in body
    )
    b.add("five")
    b.exchange()
    assert b.subjects()[:2] == ["five", "three +2"]


def test_who_always_loses_is_told_so_and_keeps_everything(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most four attempts with growing pauses; then the state says so."""
    a = hub.clone("a")
    a.add("one")
    pauses: list[float] = []
    program = GitOnPath(tmp_path, monkeypatch)
    program.says(1, f"To x\n!\tHERE:{ref.BRANCH}\t[rejected] (fetch first)\nDone\n", to="push")
    found = a.exchange(pause=pauses.append)
    assert (found.state, found.attempts) == ("rejected", 4)
    assert len(pauses) == 3 and all(0 <= pause <= 0.2 * 2**at for at, pause in enumerate(pauses))
    program.does('exec "$git" "$@"')
    assert a.exchange().state == "synced"
    assert hub.texts() == ["one"]


def test_commits_that_arrive_meanwhile_come_along(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Appends don't wait for a sync, and it does not lose them."""
    a, b = hub.clone("a"), hub.clone("b")
    a.add("theirs")
    a.exchange()
    b.add("mine")
    write = b.log.git.write
    late = iter(["late 1", "late 2"])

    def written(*args: Any) -> list[str]:
        done = write(*args)
        with monkeypatch.context() as patch:
            patch.setattr(b.log.git, "write", write)
            for text in late:
                b.add(text)
        return done

    monkeypatch.setattr(b.log.git, "write", written)
    b.exchange()
    assert b.texts() == hub.texts() == ["theirs", "mine", "late 1", "late 2"]
    assert b.subjects()[:3] == ["late 1 +1", "mine", "theirs"]


def test_a_new_clone_adopts_the_log_without_a_commit(hub: Hub) -> None:
    """It has the remote's tip, not a start of its own."""
    a = hub.clone("a")
    a.add("one")
    a.exchange()
    b = hub.clone("b")
    assert b.exchange().received == 1
    assert b.tip == hub.tip()


def test_nothing_is_pushed_to_a_remote_without_branches(hub: Hub, tmp_path: Path) -> None:
    """A forge would make the log its default branch."""
    git("init", "--quiet", "--bare", "empty.git", cwd=tmp_path)
    a = hub.clone("a")
    git("remote", "set-url", "origin", str(tmp_path / "empty.git"), cwd=a.path)
    a.add("one")
    found = a.exchange()
    assert (found.state, found.sent, found.tip) == ("empty", 0, None)
    assert "git push origin HEAD" in found.message
    assert not git("for-each-ref", cwd=tmp_path / "empty.git")
    git("push", "--quiet", "origin", "main", cwd=a.path)
    assert a.exchange().state == "synced"


def test_a_hidden_log_is_published_where_its_format_says(hub: Hub) -> None:
    """The other clone finds it there, and both places are read from then on."""
    a, b = hub.clone("a"), hub.clone("b")
    a.add("one")
    a.exchange()
    b.exchange()
    form = ref.Format.make(turn=1, publish=ref.LOG_REF)
    from gitmem.git.objects import Draft, Signature

    who = Signature("a", "a@b", 1)
    assert a.git.advance(ref.LOG_REF, a.tip, Draft({"format": form.content}, who, who, "hide\n"), "test")
    assert a.exchange().state == "synced"
    assert hub.tip(ref.LOG_REF) == a.tip != hub.tip(ref.BRANCH)
    b.add("two")
    assert b.exchange().sent == 1
    assert hub.texts(ref.LOG_REF) == ["one", "two"]
    a.exchange()
    assert a.tip == b.tip


def test_several_remotes_each_get_everything_and_history_follows_the_first(hub: Hub, tmp_path: Path) -> None:
    """A second remote with a history of its own gets the union on its own tip."""
    git("clone", "--quiet", "--bare", str(hub.path), "backup.git", cwd=tmp_path)
    backup = tmp_path / "backup.git"
    a, b = hub.clone("a"), hub.clone("b")
    git("remote", "set-url", "origin", str(backup), cwd=b.path)
    b.add("in backup")
    b.exchange()
    a.add("in hub")
    a.exchange()
    git("remote", "add", "backup", str(backup), cwd=a.path)
    first, second = a.exchange_all("origin", "backup")
    assert (first.state, second.state) == ("synced", "synced")
    assert second.received == 1 and second.sent == 1
    from tests.clones import texts

    assert hub.texts() == texts(backup, "refs/heads/gitmem") == ["in backup", "in hub"]
    assert a.merges() == 0
    assert [remote.state for remote in a.exchange_all("origin", "backup")] == ["up-to-date"] * 2
    b.exchange()
    assert b.texts() == a.texts()
