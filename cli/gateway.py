"""The parts of `gitmem a2a serve`: what its options name, checked, and opened."""

from __future__ import annotations

import os

from gitmem.errors import UsageError

from .environment import Environment
from .missing_extra import needs_extra
from .render import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from gitmem.a2a.card import ServedAgent
    from gitmem.a2a.served_log import ServedLog

ADDED = "'a2a-sdk[http-server]>=1.3,<2' uvicorn"
PORT = 4810
LOOPBACK = ("127.0.0.1", "::1", "localhost")
AGENT_MAX, NAME_MAX = 100, 64
_PATHS = ("agents", "rest", "message:send", "message:stream", "tasks", "extendedAgentCard")
LOCAL = "local"  # the caller of requests without a token
_THEIRS = ("a2a", "uvicorn", "starlette", "sse_starlette", "google", "httpx")


def run(
    at: Environment,
    agents: Sequence[str],
    listen: str,
    port: int,
    *,
    tenants: Sequence[str],
    url: str | None,
    no_token: bool,
    push: bool,
    allow_private: bool,
) -> None:
    """Serve until a signal ends it.

    Raises:
        UsageError: An option is invalid, or the extra is not installed.
    """
    with needs_sdk("gitmem a2a serve"):
        from gitmem.a2a import server
    from gitmem import __version__

    if no_token and listen not in LOOPBACK:
        raise UsageError(
            f"--no-token is refused with --host {output.sanitize(listen)}: other machines could give tasks to your agents.",
            hint="Make a token for each caller.",
            code="no-token",
            next=["gitmem a2a token --help"],
        )
    served = [agent(at, each) for each in agents]
    places = {"": at, **open_tenants(at, tenants)}
    logs = {name: log(each, push=push, allow_private=allow_private) for name, each in places.items()}
    by_token = {name: callers(each, name, listen, no_token=no_token) for name, each in places.items()}
    bound = bind(listen, port)
    number = bound.getsockname()[1]
    shown = f"[{listen}]" if ":" in listen else listen
    where = (url or f"http://{shown}:{number}").rstrip("/")
    app = server.application(
        server.Served(served, logs, by_token, url=where, hosts=hosts(shown, number, url), version=__version__,
                     anonymous=LOCAL if no_token else None)
    )  # fmt: skip
    try:
        server.server_of(app, lambda: note(f"serving {', '.join(agents)} at {where}/")).run(sockets=[bound])
    finally:
        bound.close()
        for each in places.values():
            each.close()


def log(at: Environment, *, push: bool, allow_private: bool) -> ServedLog:
    """Return the log of a repository; what is recorded in it is committed and synced meanwhile."""
    from gitmem.a2a.served_log import ServedLog

    from . import autosync, background

    store = at.store(long_lived=True)
    store.after_record = lambda: background.start_committer(at)
    found = ServedLog(store, lambda: autosync.start_if_due(at), report=note)
    if push:
        from gitmem.a2a.push import Push
        from gitmem.a2a.push_url import Poster

        found.push = Push(store.repo.state, Poster(allow_private=allow_private), report=note)
    return found


def needs_sdk(what: str) -> AbstractContextManager[None]:
    """Import a module of `gitmem.a2a` that imports the SDK.

    Args:
        what: What needs it.

    Raises:
        UsageError: The extra is not installed.
    """
    return needs_extra(
        "a2a",
        _THEIRS,
        ADDED,
        "no-a2a",
        f"The A2A SDK is not installed; {what} needs it. Nothing was written.",
    )


def open_tenants(at: Environment, typed: Sequence[str]) -> dict[str, Environment]:
    """Return the repositories of tenants.

    Raises:
        UsageError: A text is not NAME=DIR, or two have one name.
    """
    found: dict[str, Environment] = {}
    for text in typed:
        name, _, folder = text.partition("=")
        if (
            not 1 <= len(name) <= NAME_MAX
            or not is_word(name)
            or not folder
            or name in found
            or name in _PATHS
        ):
            raise UsageError(
                f"--tenant: invalid or repeated: {output.sanitize(text)[:80]!r}; NAME=DIR is valid, NAME of letters, digits, - and _.",
                code="bad-tenant",
            )
        found[name] = Environment(os.path.join(at.folder, folder))
    output.set_options(at.directory, at.as_)
    return found


def agent(at: Environment, name: str) -> ServedAgent:
    """Return the agent of a name: the one that `gitmem serve-agent NAME` serves, or that of an identity."""
    from gitmem.a2a.card import ServedAgent
    from gitmem.a2a.described import describe
    from gitmem.invocation import agent_lookup

    if not 1 <= len(name) <= AGENT_MAX or not is_word(name.replace(":", "")):
        raise UsageError(
            f"--agent: invalid name {output.sanitize(name)[:80]!r}; letters, digits, -, _ and : are valid.",
            code="bad-agent-name",
        )
    address = agent_lookup.identity_of(name)
    return ServedAgent(name, address, *describe(at.store(), name, address))


def callers(at: Environment, tenant: str, listen: str, *, no_token: bool) -> Callable[[str], str | None]:
    """Return what finds the caller of a token. Without any token, make one for as long as this runs."""
    import hmac

    from gitmem.a2a.tokens import Tokens, new_token

    known = Tokens(at.store().repo.state, report=note)
    if no_token or tenant or known.list():
        return known.caller_of
    if listen not in LOOPBACK:
        raise UsageError(
            f"--host {listen} needs tokens: other machines could give tasks to your agents.",
            code="no-token",
            next=["gitmem a2a token --help"],
        )
    made = new_token()
    note(f"no caller has a token; until this ends, this one is valid: {made}")
    return lambda given: LOCAL if hmac.compare_digest(given.encode(), made.encode()) else None


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Raises:
        UsageError: The address is invalid or in use.
    """
    import socket

    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise UsageError(
            f"Cannot listen on {output.sanitize(host)}, port {port}: {error.strerror or error}.",
            hint="Choose another one with --port, or 0 for a free one.",
            code="cannot-listen",
        ) from error


def port_of(text: str | None) -> int:
    """Return the port that a text is; the default without one."""
    if text is None:
        return PORT
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= 65535):
        raise UsageError(
            f"Invalid port: {output.sanitize(text)[:20]}; 0 to 65535 are valid.", code="bad-port"
        )
    return int(text)


def hosts(shown: str, port: int, url: str | None) -> list[str]:
    """Return the values of the Host header that name this gateway."""
    from urllib.parse import urlsplit

    names = {shown, *(("localhost", "127.0.0.1", "[::1]") if shown.strip("[]") in LOOPBACK else ())}
    found = [f"{name}:{port}" for name in sorted(names)]
    return [*found, urlsplit(url).netloc.lower()] if url else found


def is_word(text: str) -> bool:
    """Return whether a text has only ASCII letters, digits, dashes and underscores."""
    return text.isascii() and text.replace("-", "").replace("_", "").isalnum()


def note(text: str) -> None:
    """Tell whoever runs this."""
    output.write_error(f"gitmem: {output.sanitize(text)}")
