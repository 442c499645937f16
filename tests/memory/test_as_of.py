"""As of an earlier time: what could have been known then, and nothing of it can be changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitmem import records
from gitmem.errors import UsageError
from gitmem.log.lines import CommitMessage, format_at
from gitmem.memory import as_of, context, edit, stored_nodes
from gitmem.store import Store

from ..conftest import Git
from ..sandbox import DAY, HOUR, MINUTE, SECOND, START, Clock, acting, open_store
from .desk import Desk

pytestmark = pytest.mark.usefixtures("commits")

LOG = "refs/gitmem/log"


@pytest.fixture
def desk(repo: Path) -> Iterator[Desk]:
    found = Desk(repo, name="Planck", wu="WU-7")
    found.store.close()  # the first one in a repository has its index in memory
    found.store = open_store(repo, found.clock)
    found.caller = acting(found.store, found.session)
    yield found
    found.store.close()


def contents(store: Store) -> list[str]:
    ids = [id for (id,) in store.db().execute("SELECT id FROM node ORDER BY created")]
    return [node.content for node in stored_nodes.load(store.db(), ids)]


def known(desk: Desk, text: str | int) -> list[str]:
    past = as_of.at(desk.store, text)
    try:
        return contents(past)
    finally:
        past.close()


def iso(micros: int) -> str:
    return format_at(micros)[:19] + "Z"


def refused(desk: Desk, text: str | int) -> UsageError:
    with pytest.raises(UsageError) as caught:
        as_of.at(desk.store, text)
    assert caught.value.message.endswith(".")
    assert caught.value.hint
    return caught.value


def three(desk: Desk) -> None:
    """Nodes of three days."""
    for word in ("one", "two", "three"):
        desk.write(word)
        desk.clock.forward(DAY)


def test_a_time_shows_what_was_recorded_by_then(desk: Desk) -> None:
    """In full, with an offset, as a day, as microseconds, and as so long ago by the store's own clock."""
    three(desk)

    assert known(desk, iso(START + HOUR)) == ["one"]
    assert known(desk, format_at(START + DAY + HOUR)[:19] + "+00:00") == ["one", "two"]
    assert known(desk, "2026-10-27") == ["one", "two"]  # a day is over at its end
    assert known(desk, "2026-10-27T00:00") == ["one"]
    assert known(desk, START + 2 * DAY + 1) == ["one", "two", "three"]
    assert known(desk, "36h") == ["one", "two"]
    assert known(desk, "2d") == ["one", "two"]
    assert known(desk, "2.5d") == ["one"]
    assert known(desk, "0s") == ["one", "two", "three"]


def test_a_commit_of_the_log_shows_what_stood_in_it(desk: Desk, git: Git, repo: Path) -> None:
    """By its id, or as git names it; `now` is when it was made."""
    three(desk)
    commits = git("log", "--format=%H", "--grep=discovery", LOG, "--", cwd=repo).split()

    assert [known(desk, oid) for oid in commits] == [["one", "two", "three"], ["one", "two"], ["one"]]
    assert known(desk, commits[1][:9]) == ["one", "two"]
    assert known(desk, "gitmem/log~1") == ["one", "two"]
    past = as_of.at(desk.store, commits[1])
    assert START + DAY <= past.now() < START + DAY + SECOND
    past.close()


def test_a_commit_of_the_project_counts_by_its_time(
    desk: Desk, git: Git, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And HEAD was there then."""
    three(desk)
    monkeypatch.setenv("GIT_COMMITTER_DATE", iso(START + DAY + HOUR))
    git("commit", "--quiet", "--allow-empty", "-m", "then", cwd=repo)
    git("tag", "-a", "-m", "v1", "v1", cwd=repo)
    oid = git("rev-parse", "HEAD", cwd=repo).strip()

    for text in (oid, oid[:8], "HEAD", "v1", "main"):
        past = as_of.at(desk.store, text)
        assert contents(past) == ["one", "two"]
        assert past.head() == (oid, None)
        past.close()


def test_changes_count_as_of_then(desk: Desk) -> None:
    """What was archived since was not; what was said since was not said."""
    id = desk.write("before")
    desk.clock.forward(HOUR)
    noon = desk.clock()
    desk.clock.forward(HOUR)
    desk.change(id, content="after", archived=True)

    past = as_of.at(desk.store, noon)
    node = stored_nodes.load_one(past.db(), id)
    past.close()

    assert (node.content, node.status) == ("before", "active")
    assert desk.node(id).content == "after"


def test_lines_that_a_sync_put_under_earlier_ones_are_not_known_too_early(desk: Desk) -> None:
    """Whatever stands above or below it, a line counts by its own time."""
    desk.write("ours")
    desk.clock.forward(2 * HOUR)
    desk.write("ours, later")
    desk.clock.value -= HOUR
    line = records.line(
        "node", desk.clock(),
        {"id": "mem-else", "type": "note", "lifecycle": "wu", "content": "theirs", "sender_identity": "a:b:c"},
    )  # fmt: skip
    desk.store.record([("memory", line)], CommitMessage("They <they@gitmem>", "theirs"))

    at = desk.clock()
    desk.clock.forward(DAY)

    assert known(desk, at + MINUTE) == ["ours", "theirs"]
    assert known(desk, at - MINUTE) == ["ours"]


def test_lines_of_a_clone_that_was_offline_are_known_from_when_they_were_recorded(desk: Desk) -> None:
    """One commit brings them all, dated as the last of them."""
    fields = {"type": "note", "lifecycle": "wu", "sender_identity": "a:b:c"}
    began = desk.clock()
    rows = [
        (
            "memory",
            records.line(
                "node", began + days * DAY, {"id": f"mem-day{days}", "content": f"day {days}", **fields}
            ),
        )
        for days in range(3)
    ]
    desk.clock.forward(3 * DAY)
    desk.store.record(rows, CommitMessage("They <they@gitmem>", "theirs"))

    assert known(desk, began + HOUR) == ["day 0"]
    assert known(desk, began + DAY + HOUR) == ["day 0", "day 1"]


def test_a_commit_that_is_named_counts_whole(desk: Desk, git: Git, repo: Path) -> None:
    """Also a line of a clone whose clock was ahead, which a time would leave out."""
    fields = {
        "id": "mem-fast",
        "type": "note",
        "lifecycle": "wu",
        "content": "ahead",
        "sender_identity": "a:b:c",
    }
    desk.store.record(
        [("memory", records.line("node", desk.clock() + DAY, fields))], CommitMessage("F <f@gitmem>", "fast")
    )
    at = desk.clock()
    desk.clock.forward(2 * DAY)

    assert known(desk, git("rev-parse", LOG, "--", cwd=repo).split()[0]) == ["ahead"]
    assert known(desk, at + HOUR) == []


def test_what_only_waits_in_a_spool_is_not_known(desk: Desk, repo: Path) -> None:
    """The past is what was committed."""
    desk.write("committed")
    lock = desk.store.log.lock()
    assert lock.take()
    other = open_store(repo, desk.clock)
    line = other.line(
        "node",
        {"id": "mem-wait", "type": "note", "lifecycle": "wu", "content": "waits", "sender_identity": "a:b:c"},
    )
    other.record([line], CommitMessage("W <w@gitmem>", "w"), deferred=True)
    lock.release()
    desk.clock.forward(HOUR)

    assert "waits" in contents(desk.store)
    assert known(desk, "1s") == ["committed"]
    other.close()


def test_nothing_is_written_through_the_past(desk: Desk, repo: Path) -> None:
    """Neither to the log, nor to the index that is there, nor to any file of the store."""
    desk.write("one")
    contents(desk.store)

    def files() -> dict[str, bytes]:
        return {
            os.path.join(folder, name): Path(folder, name).read_bytes()
            for folder, _, names in os.walk(repo)
            for name in names
        }

    desk.clock.forward(HOUR)
    before = files()
    assert any("index-test" in name for name in before)
    past = as_of.at(desk.store, "0s")
    assert contents(past) == ["one"]
    assert context.context(past, desk.caller, wu="WU-7", as_of="0s").block
    assert files() == before
    for write in (
        lambda: edit.create(past, desk.caller, "too late"),
        lambda: edit.change(past, desk.caller, [str(past.db().execute("SELECT id FROM node").fetchone()[0])], closed=True),
        lambda: past.record([], CommitMessage("a", "b")),
        lambda: past.record_all([]),
        lambda: past.collect(None),
        lambda: past.line("node", {}),
    ):  # fmt: skip
        with pytest.raises(UsageError, match="is read-only"):
            write()
    past.close()
    assert files() == before
    assert contents(desk.store) == ["one"]  # the store that it came from stays open
    desk.write("two")


def test_the_past_does_not_depend_on_the_index(desk: Desk, repo: Path) -> None:
    """A damaged one is neither read nor mended."""
    three(desk)
    desk.store.close()
    index = next((repo / ".git" / "gitmem").glob("index-*.sqlite3"))
    index.write_bytes(b"damaged")
    store = open_store(repo, desk.clock)

    past = as_of.at(store, "2d")

    assert contents(past) == ["one", "two"]
    assert index.read_bytes() == b"damaged"
    past.close()
    store.close()


def test_a_clone_that_only_fetched_the_log_can_look_back(
    desk: Desk, repo: Path, tmp_path: Path, git: Git
) -> None:
    """The log is adopted, as by any look."""
    three(desk)
    git("push", "--quiet", str(repo), f"{LOG}:refs/heads/gitmem", cwd=repo)
    git("clone", "--quiet", str(repo), str(tmp_path / "clone"))
    store = open_store(tmp_path / "clone", desk.clock)

    past = as_of.at(store, "36h")

    assert contents(past) == ["one", "two"]
    past.close()
    store.close()


def test_before_the_log_nothing_was_known_and_that_is_said(desk: Desk, git: Git, repo: Path) -> None:
    """With the time at which it began."""
    three(desk)
    genesis = git("rev-list", "--max-parents=0", LOG, "--", cwd=repo).strip()

    for text in (iso(START - HOUR), "400.5d", "1970-01-01", genesis, 0, -5):
        error = refused(desk, text)
        assert error.code == "before-the-log", text
        assert iso(START) in error.message
        assert error.next


def test_what_is_neither_a_commit_nor_a_time_is_refused(desk: Desk) -> None:
    """Nothing of it becomes an option of git, and what it is shown as is harmless."""
    desk.write("one")
    for text in ("", "nope", "-h", "--all", "2026-13-45", "12345678d", "9" * 400 + "d", "٣d", "\x1b[31m", "HEAD:README",
                 "²d", "1e+5d", "nand", "infd", "-1d", "2026-10-26T25:00"):  # fmt: skip
        error = refused(desk, text)
        assert error.code == "bad-as-of", text
        assert "\x1b" not in error.message
        assert error.next


def test_a_time_to_come_is_refused(desk: Desk) -> None:
    """The clock is the store's own."""
    desk.write("one")

    assert refused(desk, iso(START + DAY)).code == "bad-as-of"
    assert refused(desk, START + DAY).code == "bad-as-of"


def test_a_short_number_is_a_time_and_a_long_one_may_be_a_commit(desk: Desk, git: Git, repo: Path) -> None:
    """`2d` is two days also where a tag has that name; what git can't find is then read as a time."""
    three(desk)
    git("tag", "2d", LOG, cwd=repo)
    git("tag", "00002d", f"{LOG}~2", cwd=repo)

    assert known(desk, "2d") == ["one", "two"]
    assert known(desk, "00002d") == ["one"]
    assert known(desk, "00048h") == ["one", "two"]


def test_without_a_log_there_is_no_past(repo: Path) -> None:
    """A sentence with the commands that bring one; none is started."""
    store = open_store(repo, Clock())

    with pytest.raises(UsageError, match="has no log yet") as caught:
        as_of.at(store, "2d")

    assert caught.value.next
    assert store.git.tip(LOG) is None
    store.close()


def test_a_long_log_shows_how_far_it_is(desk: Desk) -> None:
    """With the progress that a build of the index shows."""
    lines = [
        ("memory", records.line("node", START + number, {
            "id": f"mem-{number:06}", "type": "note", "lifecycle": "wu", "content": "one of many",
            "sender_identity": "a:b:c"}))
        for number in range(11_000)
    ]  # fmt: skip
    desk.store.record(lines[:6_000], CommitMessage("Many <many@gitmem>", "many"))
    desk.store.record(lines[6_000:], CommitMessage("Many <many@gitmem>", "many"))
    shown: list[tuple[str, int, int]] = []
    desk.store.progress = lambda *said: shown.append(said)
    desk.clock.forward(HOUR)

    past = as_of.at(desk.store, "1m")

    assert past.db().execute("SELECT count(*) FROM node").fetchone() == (11_000,)
    assert len(shown) > 1
    assert shown[-1][1] == shown[-1][2] >= 11_000
    past.close()
