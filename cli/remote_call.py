"""`gitmem call https://…`: serve an A2A server as an agent of this clone, as long as somebody here waits for it.

After a question, or when nobody waits any more, the server goes on with its task; `gitmem task wait` and `gitmem task input` follow it.
"""

from __future__ import annotations

import contextlib
import threading
import time

from .environment import variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gitmem.a2a.remote_links import RemoteLinks
    from gitmem.agents.caller import Caller
    from gitmem.invocation.call_result import CallResult
    from gitmem.store import Store
    from gitmem.tasks.fold import FoldedTask

TOKEN = "GITMEM_A2A_TOKEN"  # noqa: S105  (the name of a variable)
END_SECONDS, SEND_SECONDS, LOOK_SECONDS = 5.0, 10.0, 0.05


def is_url(agent: str) -> bool:
    """Return whether a call names a server instead of agents of the log."""
    return agent.strip().lower().startswith(("https://", "http://"))


@contextlib.contextmanager
def serving(store: Store, url: str, ids: set[str]) -> Iterator[str]:
    """Serve a server's tasks in a thread; yield the identity that a call names.

    Args:
        ids: The tasks that it may get, once they are known. Those of others would be sent with our token.

    Raises:
        UsageError: The URL is invalid, or the extra is not installed.
        StoreError: The server can't be remembered.
    """
    from gitmem.a2a import remote_links

    from .gateway import needs_sdk

    with needs_sdk("a call to an A2A server"):
        from gitmem.a2a import remote  # noqa: F401  (before anything is written)
    identity, links = remote_links.identity_of(url), remote_links.RemoteLinks(store.repo.state)
    links.add_server(identity, url, variable(TOKEN))
    with _served(store, links, identity, url, "", ids):
        yield identity


@contextlib.contextmanager
def following(store: Store, ids: Sequence[str]) -> Iterator[None]:
    """Go on with those of some tasks that servers have, and that nobody else in this clone follows.

    Raises:
        UsageError: See `of_servers`, or the extra is not installed.
    """
    with contextlib.ExitStack() as stack:
        for (identity, url, session), wanted in of_servers(store, ids).items():
            from gitmem.a2a.remote_links import RemoteLinks

            stack.enter_context(_served(store, RemoteLinks(store.repo.state), identity, url, session, wanted))
        yield


def wait_until_sent(store: Store, found: CallResult) -> None:
    """Wait until the server of a call has its task, for a caller that does not wait for the result; warn if it has not."""
    from gitmem.a2a.remote_links import RemoteLinks

    links = RemoteLinks(store.repo.state)
    ids = [each.task_id for each in found.results]
    if not until(lambda: all(((link := links.read(id)) and link.id) or is_over(store, id) for id in ids)):
        found.warnings.append("The server does not have it yet; gitmem task wait sends it.")


def of_server(store: Store, id: str) -> FoldedTask | None:
    """Return a task that is for a server, or None."""
    from gitmem.invocation import SERVER
    from gitmem.tasks import find_task

    with store.lock:
        task = find_task.require(store, id, writing=True)
    return task if (task.record.get("agent") or "").startswith(SERVER) else None


def is_over(store: Store, id: str) -> bool:
    """Return whether a task has an end."""
    from gitmem.tasks import find_task

    with store.lock:
        return find_task.require(store, id, writing=True).is_finished


def until(is_so: Callable[[], object]) -> bool:
    """Wait until something is so; return whether it was in time."""
    deadline = time.monotonic() + SEND_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_SECONDS)
    return True


def of_servers(store: Store, ids: Sequence[str]) -> dict[tuple[str, str, str], set[str]]:
    """Return those of some tasks that servers have, by identity and URL of the server and the session that took them, or "".

    Raises:
        UsageError: A task is unknown, or the token is not the one that its server got.
    """
    from gitmem.errors import UsageError
    from gitmem.invocation import SERVER
    from gitmem.tasks import find_task

    found: dict[tuple[str, str, str], set[str]] = {}
    for id in ids:
        task = find_task.require(store, id, writing=True)
        identity = task.record.get("agent") or ""
        if task.is_finished or not identity.startswith(SERVER):
            continue
        from gitmem.a2a.remote_links import RemoteLinks, digest_of

        links = RemoteLinks(store.repo.state)
        own = task.record["task_id"]
        known, link = links.server(identity), links.read(own)
        if known is None:  # another clone has called it
            continue
        url, digest = known
        if digest != digest_of(variable(TOKEN)) and task.state != "auth-required":
            raise UsageError(
                f"{TOKEN} is not the token that {identity} got with the call. Nothing was written or sent.",
                hint="Set the same token, or none if the call had none.",
                code="other-token",
                next=[f"gitmem task show {own}"],
            )
        found.setdefault((identity, url, link.session if link is not None else ""), set()).add(own)
    return found


@contextlib.contextmanager
def _served(
    store: Store, links: RemoteLinks, identity: str, url: str, session: str, ids: set[str]
) -> Iterator[None]:
    """Serve some tasks of a server in a thread, as the session that has taken them if any has; do nothing if another process does."""
    import os

    from gitmem import state_files
    from gitmem.agents import caller as callers
    from gitmem.agents import lifecycle, presence
    from gitmem.agents.caller import CallerClaims
    from gitmem.invocation import DEADLINE_SECONDS, SERVER, worker, worker_session
    from gitmem.invocation.runs import FunctionRun
    from gitmem.log.lock import Lock

    from .gateway import needs_sdk

    with needs_sdk("a call to an A2A server"):
        from gitmem.a2a.remote import RemoteAgent
    with store.lock:
        known = presence.get(store, session) if session else None
        if known is None or known.ended is not None or not known.here or known.agent_identity != identity:
            session = worker_session.start(store, identity, name=identity.removeprefix(SERVER)).session_id
    state_files.make_dirs(links.folder)
    lock = Lock(os.path.join(links.folder, f"{session}.lock"))
    if not lock.take():
        yield
        return
    who = CallerClaims(as_=session, session=session)

    def own() -> Caller:
        found = callers.find(store, who)
        assert found is not None  # the session is open
        return found

    stop, function = threading.Event(), RemoteAgent(url, variable(TOKEN), links, session)
    serves = worker.Worker(
        store,
        own,
        lambda task: FunctionRun(function, task),
        stop=stop,
        lease=DEADLINE_SECONDS,
        accepts=ids.__contains__,
    )
    thread = threading.Thread(target=serves.serve, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(END_SECONDS)
        function.wait(END_SECONDS)
        with store.lock:
            if _is_through(store, links, ids):
                lifecycle.end(store, own())
        lock.release()


def _is_through(store: Store, links: RemoteLinks, task_ids: set[str]) -> bool:
    """Forget the server's tasks of those of ours that have ended; return whether all have."""
    from gitmem.tasks import load

    left = set()
    for id in task_ids:
        task = load.load(store.db(), id)
        if task is None or task.is_finished:
            links.delete(id)
        else:
            left.add(id)
    return not left
