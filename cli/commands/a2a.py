"""`gitmem a2a`: serve agents of this repository to clients of the A2A protocol, and the tokens of these."""

from __future__ import annotations

from gitmem.errors import UsageError

from ..environment import Environment
from ..render import output
from ..render.text import SEPARATOR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

    from gitmem.a2a.tokens import Token, TokenList


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
        str | None, typer.Option("--port", metavar="N", help="Port (default: 4810; 0: a free one).")
    ] = None,
    url: Annotated[
        str | None, typer.Option("--url", metavar="URL", help="Where clients reach it, if behind a proxy.")
    ] = None,
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Let every program of this machine in without a token.")
    ] = False,
    tenant: Annotated[
        list[str] | None,
        typer.Option(
            "--tenant",
            metavar="NAME=DIR",
            help="Another repository, for requests with this tenant; repeat for more.",
        ),
    ] = None,
    push: Annotated[
        bool, typer.Option("--push", help="Send what happens to tasks to public URLs that clients name.")
    ] = False,
    push_allow_private: Annotated[
        bool, typer.Option("--push-allow-private", help="The same, also into private networks.")
    ] = False,
) -> None:
    """Serve agents of this repository to clients of the A2A protocol, over HTTP, until Ctrl-C."""
    if not agent:
        raise UsageError(
            "Missing --agent: name whom to serve; nobody else is reached.",
            code="no-agent",
            next=["gitmem roster"],
        )
    from .. import gateway

    gateway.run(
        at,
        agent,
        host or gateway.LOOPBACK[0],
        gateway.port_of(port),
        tenants=tenant or (),
        url=url,
        no_token=no_token,
        push=push or push_allow_private,
        allow_private=push_allow_private,
    )


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
