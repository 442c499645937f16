"""Where clients are notified: within what is read again, written once for many changes, and reported when it is damaged."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from a2a.types import TaskPushNotificationConfig
from a2a.utils.errors import InvalidParamsError

import gitmem
from gitmem.calls import a2a_files
from gitmem.calls.a2a_files import Tokens
from gitmem.calls.push import OF_CALLER_MAX, TEXT_MAX, Poster, Push
from gitmem.doctor import doctor
from gitmem.errors import StoreError
from gitmem.work import task_rules
from tests import file_faults
from tests.a2a.talking import talk
from tests.sandbox import Clock, open_store

if TYPE_CHECKING:
    from gitmem.order.task import FoldedTask

AGENT = "gitmem:worker:prices"


async def nothing(caller: str, task_id: str) -> AsyncIterator[tuple[FoldedTask, bool]]:
    """No change ever."""
    for each in ():
        yield each


def begun(folder: Path, told: list[str] | None = None) -> Push:
    found = Push(str(folder), Poster(allow_private=True), report=(told if told is not None else []).append)
    found.begin({AGENT: nothing})
    return found


def test_what_is_accepted_is_read_again_after_a_restart(tmp_path: Path) -> None:
    """The largest texts, written as JSON, in as many configurations as are allowed: nothing of them is lost."""
    texts = {"id": '"' * TEXT_MAX, "token": "\\" * TEXT_MAX, "url": "https://example.org/" + "x" * 1_900}

    async def job() -> None:
        push = begun(tmp_path)
        config = TaskPushNotificationConfig(**texts)
        config.authentication.scheme = config.authentication.credentials = '"' * TEXT_MAX
        added = await asyncio.gather(
            *(push.add("planner", AGENT, f"task-{n}", config, ["tev-1"] * 100) for n in range(500)),
            return_exceptions=True,
        )
        kept = sum(not isinstance(each, BaseException) for each in added)
        assert {type(each) for each in added[kept:]} == {InvalidParamsError}
        await push.end()
        told: list[str] = []
        again = begun(tmp_path, told)
        assert (len(again._entries), told) == (kept, []) and kept > 400
        assert again.get("planner", AGENT, "task-7", texts["id"]).token == texts["token"]
        await again.end()

    talk(job)
    assert stat.S_IMODE(os.stat(a2a_files.push_file_of(str(tmp_path))).st_mode) == 0o600


def test_many_changes_are_written_once_and_not_by_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each sent step is one: a file of megabytes would keep all clients waiting."""
    threads: list[int] = []
    overlaps: list[bool] = []
    alone = threading.Lock()

    def noted() -> None:
        threads.append(threading.get_ident())
        overlaps.append(not alone.acquire(blocking=False))  # then an older content could come last
        time.sleep(0.02)
        if not overlaps[-1]:
            alone.release()

    file_faults.at(monkeypatch, "replace", "*push.json", noted)

    async def job() -> None:
        push = begun(tmp_path)
        config = TaskPushNotificationConfig(url="https://example.org/")
        await push.add("planner", AGENT, "task-1", config, [])
        for number in range(500):
            push._entries[0].sent.append(f"tev-{number}")
            push._changed()
            if number % 100 == 0:
                await asyncio.sleep(0)
        await push.end()

    talk(job)
    assert not any(overlaps)
    assert 2 <= len(threads) <= 8 and threading.get_ident() not in threads
    assert len(a2a_files.read_push_file(str(tmp_path))[0]["sent"]) == 500


@pytest.mark.parametrize("content", [b"{", b"[" * 100_000, b'[{"caller": 1}]', b'{"callers": {"x": {"digest": "\xc3\xa9", "created_at": ""}}}'])  # fmt: skip
def test_damaged_files_are_reported_once_and_by_doctor(repo: Path, content: bytes) -> None:
    """Clients are told nothing but that it does not work."""
    store = open_store(repo, Clock())
    told: list[str] = []
    tokens = Tokens(store.repo.state, told.append)
    tokens.add("planner", store.now())
    for path in (tokens.path, a2a_files.push_file_of(store.repo.state)):
        Path(path).write_bytes(content)

    for _ in range(3):
        with pytest.raises(StoreError):
            tokens.caller_of("gm_x")
    assert len(told) == 1 and tokens.path in told[0]
    asyncio.run(_begin(Path(store.repo.state), told))
    assert len(told) == 2 and "push" in told[1]
    found = {each.code: each for each in doctor.examine(store).findings}
    assert found["bad-tokens"].where == tokens.path
    assert found["bad-push"].severity == "problem"
    for path in (tokens.path, a2a_files.push_file_of(store.repo.state)):
        os.unlink(path)
    assert tokens.caller_of("gm_x") is None
    assert not {"bad-tokens", "bad-push"} & {each.code for each in doctor.examine(store).findings}


async def _begin(folder: Path, told: list[str]) -> None:
    await begun(folder, told).end()


def test_slow_receivers_of_one_caller_do_not_keep_notifications_from_others(repo: Path) -> None:
    """Of one caller some are sent at the same time, and its others wait; each has time of its own."""
    released = asyncio.Event()
    sent: list[str] = []

    class Slow(Poster):
        async def post(self, url: str, headers: object, body: bytes) -> int:
            sent.append(url)
            if "slow" in url:
                await released.wait()
            return 200

    async def job() -> None:
        with gitmem.open(str(repo), identity="codex:planner:one") as log:
            log.sessions.start(name="Planck")
            made = log.tasks.delegate("x", to="prices", role="implementer/test", wu="WU-1")
            task = task_rules.require(log.store, made.task["task_id"])
            push = Push(str(repo), Slow(allow_private=True))

            async def over(caller: str, task_id: str) -> AsyncIterator[tuple[FoldedTask, bool]]:
                yield task, True

            task.decided_by = "seal"  # so there is one step to send
            push.begin({AGENT: over})
            for caller, count in (("slow", 30), ("fast", 1)):
                for number in range(count):
                    config = TaskPushNotificationConfig(url=f"https://example.org/{caller}")
                    await push.add(caller, AGENT, f"task-{number}", config, [])
            await asyncio.sleep(0.05)
            assert sorted(map(os.path.basename, sent)) == ["fast", *["slow"] * OF_CALLER_MAX]
            released.set()
            await asyncio.sleep(0.05)
            assert len(sent) == 31
            await push.end()

    with gitmem.open(str(repo), identity="claude:prices:shop") as away:
        away.sessions.start(name="prices")
    asyncio.run(job())
