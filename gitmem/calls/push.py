"""Notify clients of what happens to their tasks, by POST requests to URLs that they name.

The URLs come with credentials, so they are kept in a file of this clone that only this user reads, and never enter the log. Each
notification is sent at least once: what was sent is noted in the same file, so a restarted gateway goes on.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import socket
from collections import defaultdict
from urllib.parse import urlsplit

import httpcore
from a2a.types import TaskPushNotificationConfig
from a2a.utils.errors import InvalidParamsError, TaskNotFoundError
from a2a.utils.proto_utils import to_stream_response
from google.protobuf.json_format import MessageToJson, ParseDict, ParseError

from ..errors import StoreError
from . import a2a_files, a2a_tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
    from ipaddress import IPv4Address, IPv6Address
    from typing import Any

    from ..order.task import FoldedTask

    # Yields a task of a caller now and after each change, and whether its state is the last word.
    Changes = Callable[[str, str], AsyncIterator[tuple[FoldedTask, bool]]]


URL_MAX, CONNECTIONS_MAX = 2_000, 100
SECONDS = 10.0  # for connecting, and for the answer
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")  # all of IPv6 that is assigned to the public internet
_RELAYS = ipaddress.ip_network("192.88.99.0/24")  # of 6to4, which are gone (RFC 7526)
_NAT64 = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))


class UrlError(ValueError):
    """A URL that no request is sent to; its text says why."""


def split_url(url: str) -> tuple[str, int]:
    """Return host and port of a URL.

    Raises:
        UrlError: It has no host, another scheme than http or https, or a password.
    """
    try:
        found = urlsplit(url)
        host, port = found.hostname, found.port
    except ValueError as error:
        raise UrlError("it is not a URL") from error
    if len(url) > URL_MAX or not url.isascii() or any(character <= " " for character in url):
        raise UrlError(f"a URL has at most {URL_MAX} printable ASCII characters")
    if found.scheme not in ("http", "https") or not host:
        raise UrlError("https://HOST/… and http://HOST/… are valid")
    if found.username is not None or found.password is not None:
        raise UrlError("it must not have a user or password")
    return host, port or (443 if found.scheme == "https" else 80)


def is_public_address(text: str) -> bool:
    """Return whether an address is one of the public internet, also where IPv6 carries an IPv4 address."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return all(map(_is_public, [address, *_carried(address)]))


async def addresses(host: str, port: int, *, allow_private: bool = False) -> list[str]:
    """Return the addresses of a host.

    Raises:
        UrlError: It has none, or one of them is not public.
    """
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UrlError("its host can't be resolved") from error
    every = list(dict.fromkeys(str(address[0]) for *_, address in found))
    if not every or not (allow_private or all(map(is_public_address, every))):
        raise UrlError("its host is not on the public internet")
    return every


class Poster:
    """Sends POST requests.

    Args:
        allow_private: Also into private networks, which the user allowed.
        seconds: Time limit of each step.
    """

    def __init__(self, *, allow_private: bool = False, seconds: float = SECONDS) -> None:
        self.allow_private = allow_private
        self._pool = httpcore.AsyncConnectionPool(
            network_backend=_Checked(allow_private),
            max_connections=CONNECTIONS_MAX,
            max_keepalive_connections=0,
        )
        self._timeout = dict.fromkeys(("connect", "read", "write", "pool"), seconds)
        self._seconds = seconds

    async def check(self, url: str) -> None:
        """Raise UrlError if no request may be sent to a URL."""
        host, port = split_url(url)
        if not self.allow_private:
            await addresses(host, port)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> int:
        """Return the status of the answer, whose body is not read.

        Raises:
            UrlError: No request may be sent there.
            OSError: It can't be reached in time.
        """
        split_url(url)
        try:
            async with (
                asyncio.timeout(3 * self._seconds),
                self._pool.stream(
                    "POST",
                    url,
                    headers=list(headers.items()),
                    content=body,
                    extensions={"timeout": self._timeout},
                ) as answer,
            ):
                return int(answer.status)
        except UrlError:
            raise
        except Exception as error:  # httpcore's own errors, and those of TLS
            raise OSError(f"{type(error).__name__}: {error}") from error

    async def close(self) -> None:
        """Close its connections."""
        await self._pool.aclose()


class _Checked(httpcore.AnyIOBackend):
    """Connects to checked addresses only."""

    def __init__(self, allow_private: bool) -> None:
        self._allow_private = allow_private

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        found = await addresses(host, port, allow_private=self._allow_private)
        return await super().connect_tcp(found[0], port, timeout, local_address, socket_options)


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and address not in _GLOBAL_UNICAST:
        return address in _NAT64[0]  # which is judged by the address that it carries
    return address.is_global and not (address.is_multicast or address.is_reserved or address in _RELAYS)


def _carried(address: IPv4Address | IPv6Address) -> list[IPv4Address]:
    """Return the IPv4 addresses that an IPv6 address stands for: mapped, compatible, 6to4, Teredo and NAT64."""
    if not isinstance(address, ipaddress.IPv6Address):
        return []
    found = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if any(address in network for network in _NAT64) or address.packed[:12] == bytes(12):
        found.append(ipaddress.IPv4Address(address.packed[12:]))
    return [each for each in found if each is not None]


OF_CALLER_MAX = (
    4  # notifications at the same time, so that slow receivers of one caller take nothing from others
)
OF_TASK_MAX, CONFIGS_MAX, TEXT_MAX = 5, 500, 4_000
PAUSES = (
    0.5,
    5.0,
    30.0,
)  # seconds between the tries of a notification; then nothing more is sent before a restart


class Entry:
    """A configuration.

    Attributes:
        caller: The name of its owner.
        sent: The ids of the steps that its URL has got.
        size: The bytes that the configuration takes in the file.
    """

    def __init__(
        self, caller: str, agent: str, config: TaskPushNotificationConfig, sent: Sequence[str]
    ) -> None:
        self.caller = caller
        self.agent = agent
        self.config = config
        self.sent = list(sent)
        self._json = MessageToJson(config, indent=None)
        self.size = len(self._json)  # it is ASCII

    def as_json(self) -> str:
        """Return the entry as the file has it."""
        rest = json.dumps({"caller": self.caller, "agent": self.agent, "sent": self.sent})
        return f'{rest[:-1]}, "config": {self._json}}}'


class Push:
    """The configurations of one repository, and the tasks that send.

    Args:
        state: Its state folder.
        pauses: Seconds before each further try.
        report: Called with a sentence about each error of the file.
    """

    def __init__(
        self,
        state: str,
        poster: Poster,
        *,
        pauses: Sequence[float] = PAUSES,
        report: Callable[[str], object] = lambda sentence: None,
    ) -> None:
        self._state = state
        self._report = report
        self._is_changed = False
        self._writing: asyncio.Task[None] | None = None
        self._poster = poster
        self._pauses = pauses
        self._entries: list[Entry] = []
        self._running: dict[Entry, asyncio.Task[None]] = {}
        self._changes: dict[str, Changes] = {}
        self._turns: defaultdict[str, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(OF_CALLER_MAX)
        )

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
        if self._writing is not None:
            await self._writing
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
        entry = Entry(caller, agent, kept, sent)
        size = entry.size + sum(each.size for each in self._entries if each is not before)
        if size > a2a_files.CONFIGS_MAX_BYTES or (
            before is None and (of_task >= OF_TASK_MAX or len(self._entries) >= CONFIGS_MAX)
        ):
            raise InvalidParamsError(
                message=f"Too many push configurations; a task has at most {OF_TASK_MAX}."
            )
        if before is not None:
            self._remove(before)
        self._entries.append(entry)
        self._start(entry)
        await self._changed()
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

    async def delete(self, caller: str, agent: str, task_id: str, id: str) -> None:
        """Forget a configuration, if there is one."""
        found = self._find(caller, agent, task_id, id)
        if found is not None:
            self._remove(found)
            await self._changed()

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
                for id, event in a2a_tasks.steps(task, is_over=is_over):
                    if id in entry.sent:
                        continue
                    body = MessageToJson(to_stream_response(event), indent=None)
                    if not await self._send(entry.config, body, self._turns[entry.caller]):
                        return
                    entry.sent.append(id)
                    self._changed()
                if is_over:
                    return
        except TaskNotFoundError:
            pass  # another clone has not sent it, or the log was moved back

    async def _send(self, config: TaskPushNotificationConfig, body: str, turns: asyncio.Semaphore) -> bool:
        """Send a notification, with further tries; return whether it has arrived."""
        headers = {"Content-Type": "application/a2a+json"}
        if config.token:
            headers["X-A2A-Notification-Token"] = config.token
        if config.authentication.scheme and config.authentication.credentials:
            headers["Authorization"] = f"{config.authentication.scheme} {config.authentication.credentials}"
        for pause in (*self._pauses, None):
            try:
                async with turns:
                    status = await self._poster.post(config.url, headers, body.encode())
                if 200 <= status < 300:
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
            return [_entry(**each) for each in a2a_files.read_push_file(self._state)]
        except StoreError as error:
            self._report(error.message)
        except (ParseError, TypeError):
            self._report(f"{a2a_files.push_file_of(self._state)} has configurations of an unknown form.")
        return []

    def _changed(self) -> asyncio.Task[None]:
        """Write the file soon, once for all changes until then; return what ends when it is written."""
        self._is_changed = True
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())
        return self._writing

    async def _write(self) -> None:
        while self._is_changed:
            self._is_changed = False
            entries = [each.as_json() for each in self._entries]
            try:
                await asyncio.to_thread(a2a_files.write_push_file, self._state, entries)
            except OSError as error:  # it is kept until the gateway ends
                self._report(f"Cannot write {a2a_files.push_file_of(self._state)} ({error.strerror}).")


def _entry(caller: str, agent: str, config: dict[str, Any], sent: list[str]) -> Entry:
    return Entry(caller, agent, ParseDict(config, TaskPushNotificationConfig()), sent)
