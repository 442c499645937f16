"""`gitmem a2a`: serve agents of this repository to clients of the A2A protocol, and the tokens of these."""

from __future__ import annotations

from gitmem.errors import UsageError

from ..environment import Environment
from ..render import output
from ..render.text import SEPARATOR

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Annotated

    import typer

    from gitmem.a2a.card import ServedAgent
    from gitmem.a2a.served_log import ServedLog
    from gitmem.a2a.tokens import Token, TokenList

INSTALL = "pip install 'gitmem-coord[a2a]'"
PIPX = "pipx inject gitmem-coord 'a2a-sdk[http-server]>=1.3,<2' uvicorn"
UV = "uv tool install 'gitmem-coord[a2a]'"
PORT = 4810
LOOPBACK = ("127.0.0.1", "::1", "localhost")
LOCAL = "local"  # the caller of requests without a token
_THEIRS = ("a2a", "uvicorn", "starlette", "sse_starlette", "google", "httpx")


def serve(
    at: Environment,
    agent: Annotated[
        list[str] | None, typer.Option("--agent", metavar="NAME", help="Agent to serve; repeat for more.")
    ] = None,
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="ADDRESS", help="Address to listen on (default: 127.0.0.1)."),
    ] = None,
    port: Annotated[
        str | None, typer.Option("--port", metavar="N", help=f"Port (default: {PORT}; 0: a free one).")
    ] = None,
    url: Annotated[
        str | None, typer.Option("--url", metavar="URL", help="Where clients reach it, if behind a proxy.")
    ] = None,
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Let every program of this machine in without a token.")
    ] = False,
    push: Annotated[
        bool, typer.Option("--push", help="Send what happens to tasks to public URLs that clients name.")
    ] = False,
    push_allow_private: Annotated[
        bool, typer.Option("--push-allow-private", help="The same, also into private networks.")
    ] = False,
) -> None:
    """Serve agents of this repository to clients of the A2A protocol, over HTTP, until Ctrl-C."""
    try:
        from gitmem.a2a import server
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in _THEIRS:
            raise
        raise UsageError(
            "The A2A SDK is not installed; gitmem a2a serve needs it.",
            hint=f"Run `{INSTALL}` if gitmem was installed with pip, `{PIPX}` with pipx, or `{UV}` with uv.",
            code="no-a2a",
            next=[INSTALL, PIPX, UV],
        ) from None
    from gitmem import __version__

    if not agent:
        raise UsageError(
            "Missing --agent: name whom to serve; nobody else is reached.",
            code="no-agent",
            next=["gitmem a2a serve --agent NAME", "gitmem roster"],
        )
    listen = host or LOOPBACK[0]
    if no_token and listen not in LOOPBACK:
        raise UsageError(
            f"--no-token is refused with --host {listen}: other machines could give tasks to your agents.",
            hint="Make a token for each caller.",
            code="no-token",
            next=["gitmem a2a token NAME"],
        )
    log = _log(at, push=push or push_allow_private, allow_private=push_allow_private)
    agents = [_agent(log, each) for each in agent]
    bound = _bind(listen, _port(port))
    number = bound.getsockname()[1]
    shown = f"[{listen}]" if ":" in listen else listen
    callers = _callers(at, listen, no_token=no_token)
    served = server.Served(
        agents,
        {"": log},
        {"": callers},
        url=(url or f"http://{shown}:{number}").rstrip("/"),
        hosts=_hosts(shown, number, url),
        version=__version__,
        anonymous=LOCAL if no_token else None,
    )
    try:
        app = server.application(served)
        server.server_of(app, lambda: _note(f"serving {', '.join(agent)} at {served.url}/")).run(
            sockets=[bound]
        )
    finally:
        bound.close()


def token(
    at: Environment, name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the caller.")]
) -> None:
    """Make a token for a caller of `gitmem a2a serve`, and print it once; its earlier one is no longer valid."""
    from gitmem.a2a.tokens import Tokens

    store = at.store()
    found = Tokens(store.repo.state).add(name, store.now())
    output.answer(at.json, found, _new_token)


def tokens(at: Environment) -> None:
    """List the callers that have a token for `gitmem a2a serve`."""
    from gitmem.a2a.tokens import TokenList, Tokens

    output.answer(at.json, TokenList(Tokens(at.store().repo.state).list()), _token_list)


def revoke(
    at: Environment, name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the caller.")]
) -> None:
    """Make the token of a caller invalid, at once."""
    from gitmem.a2a.tokens import Tokens

    output.answer(at.json, Tokens(at.store().repo.state).remove(name), _revoked)


def _log(at: Environment, *, push: bool, allow_private: bool) -> ServedLog:
    """Return the log of a repository; what is recorded in it is committed and synced meanwhile."""
    from gitmem.a2a.served_log import ServedLog

    from .. import autosync, background

    store = at.store(long_lived=True)
    store.after_record = lambda: background.start_committer(at)
    found = ServedLog(store, lambda: autosync.start_if_due(at))
    if push:
        from gitmem.a2a.push import Push
        from gitmem.a2a.push_url import Poster

        found.push = Push(store.repo.state, Poster(allow_private=allow_private))
    return found


def _agent(log: ServedLog, name: str) -> ServedAgent:
    """Return the agent that a name means: one that the log knows, else the worker that will serve this name."""
    from gitmem.a2a.card import ServedAgent

    if not name or len(name) > 64 or not name.isascii() or name.strip().lower() != name or "/" in name:
        raise UsageError(
            f"--agent: invalid name {output.sanitize(name)[:80]!r}; a lower-case name without spaces or slashes is valid.",
            code="bad-agent-name",
        )
    return ServedAgent(name, name if name.count(":") == 2 else f"gitmem:worker:{name}")


def _callers(at: Environment, listen: str, *, no_token: bool) -> Callable[[str], str | None]:
    """Return what finds the caller of a token. Without any token, make one for as long as this runs."""
    import hmac

    from gitmem.a2a.tokens import Tokens, new_token

    known = Tokens(at.store().repo.state)
    if no_token or known.list():
        return known.caller_of
    if listen not in LOOPBACK:
        raise UsageError(
            f"--host {listen} needs tokens: other machines could give tasks to your agents.",
            code="no-token",
            next=["gitmem a2a token NAME"],
        )
    made = new_token()
    _note(f"no caller has a token; until this ends, this one is valid: {made}")
    return lambda given: LOCAL if hmac.compare_digest(given.encode(), made.encode()) else None


def _bind(host: str, port: int) -> socket.socket:
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


def _port(text: str | None) -> int:
    if text is None:
        return PORT
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= 65535):
        raise UsageError(
            f"Invalid port: {output.sanitize(text)[:20]}; 0 to 65535 are valid.", code="bad-port"
        )
    return int(text)


def _hosts(shown: str, port: int, url: str | None) -> list[str]:
    """Return the values of the Host header that name this gateway."""
    from urllib.parse import urlsplit

    names = {shown, *(("localhost", "127.0.0.1", "[::1]") if shown.strip("[]") in LOOPBACK else ())}
    found = [f"{name}:{port}" for name in sorted(names)]
    return [*found, urlsplit(url).netloc.lower()] if url else found


def _new_token(found: Token) -> list[str]:
    return [
        found.token or "",
        f"note: it is shown only now, and is {found.name}'s: Authorization: Bearer TOKEN",
    ]


def _token_list(found: TokenList) -> list[str]:
    lines = [
        f"{each.name}{SEPARATOR}{each.created_at[:16]}Z{SEPARATOR}{each.identity}" for each in found.callers
    ]
    return lines or ["Nobody has a token."]


def _revoked(found: Token) -> list[str]:
    return [f"{found.name} has no valid token now."]


def _note(text: str) -> None:
    output.write_error(f"gitmem: {output.sanitize(text)}")
