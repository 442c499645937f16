"""Notify clients of what happens to their tasks, by POST requests to URLs that they name.

The URLs come with credentials, so they are kept in a file of this clone that only this user reads, and never enter the log. Each
notification is sent at least once: what was sent is noted in the same file, so a restarted gateway goes on.
"""

from __future__ import annotations

import asyncio
import socket
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ipaddress import ip_address, ip_network

import httpx
from a2a.server.tasks.push_notification_config_store import normalize_push_notification_config
from a2a.types import TaskPushNotificationConfig
from a2a.utils.errors import InvalidParamsError, TaskNotFoundError
from a2a.utils.proto_utils import to_stream_response
from a2a.utils.push_url_validator import validate_push_notification_url
from google.protobuf.json_format import MessageToDict, MessageToJson, ParseDict, ParseError

from ..errors import StoreError
from ..outcome import Struct
from . import a2a_files, a2a_tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from ..order.task import FoldedTask

    # Yields a task of a caller now and after each change, and whether its state is the last word.
    Changes = Callable[[str, str], AsyncIterator[tuple[FoldedTask, bool]]]


SECONDS = 10.0  # for connecting, and for the answer
OF_TASK_MAX, CONFIGS_MAX, TEXT_MAX, URL_MAX, PORT_MAX = 5, 500, 4_000, 2_000, 65_535
PAUSES = (
    0.5,
    5.0,
    30.0,
)  # seconds between the tries of a notification; then nothing more is sent before a restart


_NOT_PUBLIC = [
    ip_network(each) for each in ("fec0::/10", "2002::/16", "192.88.99.0/24")
]  # site-local, and 6to4 with its relays


class UrlError(ValueError):
    """A URL that no request is sent to; its text says why."""


async def public_address(url: httpx.URL) -> str:
    """Return an address of the host of a URL.

    Raises:
        UrlError: It has none, or one of them is not public.
    """
    try:
        found = await asyncio.get_running_loop().getaddrinfo(url.host, url.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UrlError("its host can't be resolved") from error
    every = [str(address[0]) for *_, address in found]
    for each in every:
        is_public = await validate_push_notification_url(str(httpx.URL("http://x/").copy_with(host=each)))
        if not is_public or any(ip_address(each) in network for network in _NOT_PUBLIC):
            raise UrlError("its host is not on the public internet")
    return every[0]


class PublicTransport(httpx.AsyncHTTPTransport):
    """Connects to public addresses only, and to the one that was checked: a name may have another one the next time."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request.

        Raises:
            UrlError: Its host is not on the public internet.
        """
        request.extensions["sni_hostname"] = request.url.host
        request.url = request.url.copy_with(host=await public_address(request.url))
        return await super().handle_async_request(request)  # the Host header has the name


class Entry(Struct):
    """A configuration.

    Attributes:
        caller: The name of its owner.
        sent: The ids of the steps that its URL has got.
    """

    caller: str
    agent: str
    config: TaskPushNotificationConfig
    sent: list[str]

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What differs from that of every other one."""
        return self.caller, self.agent, self.config.task_id, self.config.id


class Push:
    """The configurations of one repository, and the tasks that send.

    Args:
        state: Its state folder.
        allow_private: Send into private networks too, which the user allowed.
        seconds: Time limit of each step of a request.
        pauses: Seconds before each further try.
        report: Called with a sentence about each error of the file.
    """

    def __init__(
        self,
        state: str,
        *,
        allow_private: bool = False,
        seconds: float = SECONDS,
        pauses: Sequence[float] = PAUSES,
        report: Callable[[str], object] = lambda sentence: None,
    ) -> None:
        self._state = state
        self._allow_private = allow_private
        self._seconds = seconds
        self._pauses = pauses
        self._report = report
        limits = httpx.Limits(
            max_connections=None, max_keepalive_connections=0
        )  # slow receivers keep no others waiting
        transport = (httpx.AsyncHTTPTransport if allow_private else PublicTransport)(limits=limits)
        # No receiver sets a cookie: the next request there may be another caller's.
        cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))
        self._client = httpx.AsyncClient(
            transport=transport, timeout=seconds, trust_env=False, cookies=cookies
        )
        self._entries: dict[tuple[str, str, str, str], Entry] = {}
        self._running: dict[tuple[str, str, str, str], asyncio.Task[None]] = {}
        self._changes: dict[str, Changes] = {}
        self._is_changed = False
        self._writing = asyncio.Lock()

    def begin(self, changes: dict[str, Changes]) -> None:
        """Go on with what the file has, in the running event loop.

        Args:
            changes: For each agent.
        """
        self._changes = changes
        for each in self._read():
            if each.agent in changes:
                self._start(each)

    async def end(self) -> None:
        """Stop sending; what is left goes on at the next start."""
        for each in self._running.values():
            each.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)
        await self._write()
        await self._client.aclose()

    async def check(self, config: TaskPushNotificationConfig) -> None:
        """Raise InvalidParamsError for a configuration that can't be kept."""
        texts = (config.id, config.token, config.authentication.scheme, config.authentication.credentials)
        if any(len(text) > TEXT_MAX or not (text.isascii() and text.isprintable()) for text in texts):
            raise InvalidParamsError(
                message=f"Id, token and credentials have at most {TEXT_MAX} printable ASCII characters."
            )
        try:
            url = checked_url(config.url)
            if not self._allow_private:
                await public_address(url)
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
        entry = Entry(caller, agent, normalize_push_notification_config(task_id, config), list(sent))
        if entry.key not in self._entries:
            if (
                len(self._entries) >= CONFIGS_MAX
            ):  # clients may ask for those of ended tasks until there are many
                ended = next((key for key, each in self._running.items() if each.done()), None)
                self._remove(ended)
            if len(self._entries) >= CONFIGS_MAX or len(self.of_task(caller, agent, task_id)) >= OF_TASK_MAX:
                raise InvalidParamsError(
                    message=f"Too many push configurations; a task has at most {OF_TASK_MAX}."
                )
        self._remove(entry.key)
        self._start(entry)
        self._is_changed = True
        await self._write()
        return entry.config

    def get(self, caller: str, agent: str, task_id: str, id: str) -> TaskPushNotificationConfig:
        """Return a configuration.

        Raises:
            TaskNotFoundError: There is none.
        """
        found = self._entries.get((caller, agent, task_id, id))
        if found is None:
            raise TaskNotFoundError
        return found.config

    def of_task(self, caller: str, agent: str, task_id: str) -> list[TaskPushNotificationConfig]:
        """Return the configurations of a task."""
        return [each.config for key, each in self._entries.items() if key[:3] == (caller, agent, task_id)]

    async def delete(self, caller: str, agent: str, task_id: str, id: str) -> None:
        """Forget a configuration, if there is one."""
        self._remove((caller, agent, task_id, id))
        await self._write()

    def _start(self, entry: Entry) -> None:
        self._entries[entry.key] = entry
        self._running[entry.key] = asyncio.create_task(self._send_all(entry))

    def _remove(self, key: tuple[str, str, str, str] | None) -> None:
        if key is not None and self._entries.pop(key, None) is not None:
            self._running.pop(key).cancel()
            self._is_changed = True

    async def _send_all(self, entry: Entry) -> None:
        """Send what happens to a task until it ends, or its URL does not answer."""
        try:
            async for task, is_over in self._changes[entry.agent](entry.caller, entry.config.task_id):
                for id, event in a2a_tasks.steps(task, is_over=is_over):
                    if id not in entry.sent:
                        if not await self._send(
                            entry.config, MessageToJson(to_stream_response(event), indent=None)
                        ):
                            return
                        entry.sent.append(id)
                        self._is_changed = True
                        await self._write()
                if is_over:
                    return
        except TaskNotFoundError:
            pass  # another clone has not sent it, or the log was moved back

    async def _send(self, config: TaskPushNotificationConfig, body: str) -> bool:
        """Send a notification, with further tries; return whether it has arrived. The body of the answer is not read."""
        headers = {"Content-Type": "application/a2a+json"}
        if config.token:
            headers["X-A2A-Notification-Token"] = config.token
        if config.authentication.scheme and config.authentication.credentials:
            headers["Authorization"] = f"{config.authentication.scheme} {config.authentication.credentials}"
        for pause in (*self._pauses, None):
            try:
                async with (
                    asyncio.timeout(3 * self._seconds),
                    self._client.stream("POST", config.url, content=body, headers=headers) as answer,
                ):
                    if answer.is_success:
                        return True
            except UrlError:
                return False
            except (httpx.HTTPError, httpx.InvalidURL, OSError):
                pass  # it is tried again
            if pause is not None:
                await asyncio.sleep(pause)
        return False

    def _read(self) -> list[Entry]:
        """Return what the file has; nothing of a damaged one."""
        try:
            return [
                Entry(**{**each, "config": ParseDict(each["config"], TaskPushNotificationConfig())})
                for each in a2a_files.read_push_file(self._state)
            ]
        except StoreError as error:
            self._report(error.message)
        except ParseError:
            self._report(f"{a2a_files.push_file_of(self._state)} has configurations of an unknown form.")
        return []

    async def _write(self) -> None:
        """Write the file if it has not what is known now: once for all changes while it was written.

        A cancelled caller, such as what sends to a URL that is deleted, leaves it to end: a later state must not be written first.
        """
        await asyncio.shield(self._write_in_turn())

    async def _write_in_turn(self) -> None:
        async with self._writing:
            if not self._is_changed:
                return
            self._is_changed = False
            entries = [
                {**vars(each), "config": MessageToDict(each.config)} for each in self._entries.values()
            ]
            try:
                await asyncio.to_thread(a2a_files.write_push_file, self._state, entries)
            except StoreError as error:  # it is kept until the gateway ends
                self._report(error.message)


def checked_url(text: str) -> httpx.URL:
    """Return a URL that requests can be sent to.

    Raises:
        UrlError: It is none.
    """
    try:
        found = httpx.URL(text)
    except httpx.InvalidURL as error:
        raise UrlError("it is not a URL") from error
    if len(text) > URL_MAX or not text.isascii():
        raise UrlError(f"a URL has at most {URL_MAX} ASCII characters")
    is_valid = found.scheme in ("http", "https") and found.host and (found.port or 0) <= PORT_MAX
    if not is_valid or found.userinfo:
        raise UrlError("https://HOST/… and http://HOST/… are valid, without a user")
    return found
