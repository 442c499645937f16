"""`gitmem call https://…`: serve an A2A server as an agent of this clone, as long as the call waits for it."""

from __future__ import annotations

import contextlib
import threading

from .environment import Environment, variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gitmem.agents.caller import Caller
    from gitmem.store import Store

TOKEN = "GITMEM_A2A_TOKEN"  # noqa: S105  (the name of a variable)
END_SECONDS = 5.0


def is_url(agent: str) -> bool:
    """Return whether a call names a server instead of agents of the log."""
    return agent.strip().lower().startswith(("https://", "http://"))


@contextlib.contextmanager
def serving(at: Environment, store: Store, url: str) -> Iterator[str]:
    """Serve a server's tasks in a thread; yield the identity that a call names.

    Raises:
        UsageError: The URL is invalid, or the extra is not installed.
    """
    from gitmem.agents import caller as callers
    from gitmem.agents.caller import CallerClaims
    from gitmem.invocation import WORKER, worker
    from gitmem.invocation.runs import FunctionRun
    from gitmem.sessions import lifecycle

    from .gateway import needs_sdk

    with needs_sdk("a call to an A2A server"):
        from gitmem.a2a import remote
    identity = remote.identity_of(url)
    function = remote.RemoteAgent(url, variable(TOKEN))
    with store.lock:
        began = lifecycle.start(store, CallerClaims(), agent_identity=identity, client=WORKER)
    who = CallerClaims(as_=began.session_id, session=began.session_id)

    def own() -> Caller:
        found = callers.find(store, who)
        assert found is not None  # the session is open
        return found

    stop = threading.Event()
    serves = worker.Worker(store, own, lambda task: FunctionRun(function, task), stop=stop)
    thread = threading.Thread(target=serves.serve, daemon=True)
    thread.start()
    try:
        yield identity
    finally:
        stop.set()
        thread.join(END_SECONDS)
        with store.lock:
            lifecycle.end(store, own())
