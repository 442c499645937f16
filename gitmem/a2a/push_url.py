"""Send requests to URLs that clients name, and never into a private network: each connection goes to an address that was checked.

A name is resolved here and its address used, so a second look-up can't give another one. Redirects are not followed and proxies not used.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from urllib.parse import urlsplit

import httpcore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from ipaddress import IPv4Address, IPv6Address

URL_MAX, CONNECTIONS_MAX = 2_000, 100
SECONDS = 10.0  # for connecting, and for the answer
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")  # all of IPv6 that is assigned to the public internet
_RELAYS = ipaddress.ip_network("192.88.99.0/24")  # of 6to4, which are gone (RFC 7526)
_NAT64 = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))


class UrlError(ValueError):
    """A URL that no request is sent to; its text says why."""


def split(url: str) -> tuple[str, int]:
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


def is_public(text: str) -> bool:
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
    if not every or not (allow_private or all(map(is_public, every))):
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
        host, port = split(url)
        if not self.allow_private:
            await addresses(host, port)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> int:
        """Return the status of the answer, whose body is not read.

        Raises:
            UrlError: No request may be sent there.
            OSError: It can't be reached in time.
        """
        split(url)
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
