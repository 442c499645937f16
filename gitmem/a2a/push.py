"""Notify clients of what happens to their tasks, by POST requests to URLs that they name.

The URLs come with credentials, so they are kept in a file of this clone that only this user reads, and never enter the log. Each
notification is sent at least once: what was sent is noted in the same file, so a restarted gateway goes on.
"""

from __future__ import annotations

import asyncio
import json
import os

from a2a.types import TaskPushNotificationConfig
from a2a.utils.errors import InvalidParamsError, TaskNotFoundError
from a2a.utils.proto_utils import to_stream_response
from google.protobuf.json_format import MessageToDict, MessageToJson, ParseDict

from .. import atomic_write, shared_mode
from . import wire
from .push_url import Poster, UrlError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from typing import Any

    from ..tasks.fold import FoldedTask

    # Yields a task of a caller now and after each change, and whether its state is the last word.
    Changes = Callable[[str, str], AsyncIterator[tuple[FoldedTask, bool]]]

OF_TASK_MAX, CONFIGS_MAX, FILE_MAX_BYTES, TEXT_MAX = 5, 500, 8 * 1024 * 1024, 4_000
PAUSES = (
    0.5,
    5.0,
    30.0,
)  # seconds between the tries of a notification; then nothing more is sent before a restart
_FILE = ("a2a", "push.json")


class Entry:
    """A configuration.

    Attributes:
        caller: The name of its owner.
        sent: The ids of the steps that its URL has got.
    """

    __slots__ = ("agent", "caller", "config", "sent")

    def __init__(
        self, caller: str, agent: str, config: TaskPushNotificationConfig, sent: Sequence[str]
    ) -> None:
        self.caller = caller
        self.agent = agent
        self.config = config
        self.sent = list(sent)


class Push:
    """The configurations of one repository, and the tasks that send.

    Args:
        state: Its state folder.
        pauses: Seconds before each further try.
    """

    def __init__(self, state: str, poster: Poster, *, pauses: Sequence[float] = PAUSES) -> None:
        self._path = os.path.join(state, *_FILE)
        self._poster = poster
        self._pauses = pauses
        self._entries: list[Entry] = []
        self._running: dict[Entry, asyncio.Task[None]] = {}
        self._changes: dict[str, Changes] = {}

    def begin(self, changes: dict[str, Changes]) -> None:
        """Go on with what the file has, in the running event loop.

        Args:
            changes: For each agent.
        """
        self._changes = changes
        self._entries = [each for each in self._read() if each.agent in changes]
        for each in self._entries:
            self._start(each)

    async def end(self) -> None:
        """Stop sending; what is left goes on at the next start."""
        for each in self._running.values():
            each.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)
        await self._poster.close()

    async def check(self, config: TaskPushNotificationConfig) -> None:
        """Raise InvalidParamsError for a configuration that can't be kept."""
        texts = (config.id, config.token, config.authentication.scheme, config.authentication.credentials)
        if any(len(text) > TEXT_MAX or not (text.isascii() and text.isprintable()) for text in texts):
            raise InvalidParamsError(
                message=f"Id, token and credentials have at most {TEXT_MAX} printable ASCII characters."
            )
        try:
            await self._poster.check(config.url)
        except UrlError as error:
            raise InvalidParamsError(message=f"The push URL is refused: {error}.") from error

    async def add(
        self, caller: str, agent: str, task_id: str, config: TaskPushNotificationConfig, sent: Sequence[str]
    ) -> TaskPushNotificationConfig:
        """Keep a configuration, in the place of the one with its id.

        Args:
            sent: The ids of the steps that are not sent.

        Raises:
            InvalidParamsError: It is refused.
        """
        await self.check(config)
        kept = TaskPushNotificationConfig()
        kept.CopyFrom(config)
        kept.task_id, kept.id = task_id, config.id or task_id
        before = self._find(caller, agent, task_id, kept.id)
        of_task = len(self.of_task(caller, agent, task_id))
        if before is None and len(self._entries) >= CONFIGS_MAX:
            self._forget_ended()
        if before is None and (of_task >= OF_TASK_MAX or len(self._entries) >= CONFIGS_MAX):
            raise InvalidParamsError(
                message=f"Too many push configurations; a task has at most {OF_TASK_MAX}."
            )
        if before is not None:
            self._remove(before)
        entry = Entry(caller, agent, kept, sent)
        self._entries.append(entry)
        self._write()
        self._start(entry)
        return kept

    def get(self, caller: str, agent: str, task_id: str, id: str) -> TaskPushNotificationConfig:
        """Return a configuration.

        Raises:
            TaskNotFoundError: There is none.
        """
        found = self._find(caller, agent, task_id, id)
        if found is None:
            raise TaskNotFoundError
        return found.config

    def of_task(self, caller: str, agent: str, task_id: str) -> list[TaskPushNotificationConfig]:
        """Return the configurations of a task."""
        wanted = (caller, agent, task_id)
        return [
            each.config for each in self._entries if (each.caller, each.agent, each.config.task_id) == wanted
        ]

    def delete(self, caller: str, agent: str, task_id: str, id: str) -> None:
        """Forget a configuration, if there is one."""
        found = self._find(caller, agent, task_id, id)
        if found is not None:
            self._remove(found)
            self._write()

    def _find(self, caller: str, agent: str, task_id: str, id: str) -> Entry | None:
        wanted = (caller, agent, task_id, id)
        return next(
            (e for e in self._entries if (e.caller, e.agent, e.config.task_id, e.config.id) == wanted), None
        )

    def _remove(self, entry: Entry) -> None:
        self._entries.remove(entry)
        running = self._running.pop(entry, None)
        if running is not None:
            running.cancel()

    def _forget_ended(self) -> None:
        """Forget the first configuration that has nothing more to send: clients may ask for it until there are many."""
        ended = next((each for each in self._entries if self._running[each].done()), None)
        if ended is not None:
            self._remove(ended)

    def _start(self, entry: Entry) -> None:
        self._running[entry] = asyncio.create_task(self._send_all(entry))

    async def _send_all(self, entry: Entry) -> None:
        """Send what happens to a task until it ends, or its URL does not answer."""
        try:
            async for task, is_over in self._changes[entry.agent](entry.caller, entry.config.task_id):
                for id, event in wire.steps(task, is_over=is_over):
                    if id in entry.sent:
                        continue
                    if not await self._send(
                        entry.config, MessageToJson(to_stream_response(event), indent=None)
                    ):
                        return
                    entry.sent.append(id)
                    self._write()
                if is_over:
                    return
        except TaskNotFoundError:
            pass  # another clone has not sent it, or the log was moved back

    async def _send(self, config: TaskPushNotificationConfig, body: str) -> bool:
        """Send a notification, with further tries; return whether it has arrived."""
        headers = {"Content-Type": "application/a2a+json"}
        if config.token:
            headers["X-A2A-Notification-Token"] = config.token
        if config.authentication.scheme and config.authentication.credentials:
            headers["Authorization"] = f"{config.authentication.scheme} {config.authentication.credentials}"
        for pause in (*self._pauses, None):
            try:
                if 200 <= await self._poster.post(config.url, headers, body.encode()) < 300:
                    return True
            except UrlError:
                return False
            except OSError:
                pass  # it is tried again
            if pause is not None:
                await asyncio.sleep(pause)
        return False

    def _read(self) -> list[Entry]:
        """Return what the file has; nothing of a damaged one."""
        try:
            with open(self._path, "rb") as file:
                values = json.loads(file.read(FILE_MAX_BYTES))
            return [_entry(**each) for each in values]
        except (OSError, ValueError, RecursionError, LookupError, TypeError):
            return []

    def _write(self) -> None:
        values: list[dict[str, Any]] = [
            {
                "caller": each.caller,
                "agent": each.agent,
                "config": MessageToDict(each.config),
                "sent": each.sent,
            }
            for each in self._entries
        ]
        try:
            shared_mode.make_dirs(os.path.dirname(self._path))
            atomic_write.replace(self._path, json.dumps(values).encode(), private=True)
        except OSError:
            return  # it is kept until the gateway ends


def _entry(caller: str, agent: str, config: dict[str, Any], sent: list[str]) -> Entry:
    return Entry(caller, agent, ParseDict(config, TaskPushNotificationConfig()), sent)
