"""Agents of other systems, by the A2A protocol: serve our agents to their clients, and call their servers as agents of this clone.

A server is served as long as somebody here waits for it. After a question, or when nobody waits any more, it goes on with its task; `gitmem task
wait` and `gitmem task message` follow it, and tell it what it was not told.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time

from gitmem.errors import UsageError
from gitmem.outcome import Struct, command
from gitmem.text.addresses import of_writer, words_of

from .environment import Environment, variable
from .failure import needs_extra
from .render import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from gitmem.calls.a2a_files import Link, RemoteLinks
    from gitmem.calls.a2a_server import ServedAgent, ServedLog
    from gitmem.calls.call_result import CallResult
    from gitmem.order.task import FoldedTask
    from gitmem.store import Store
    from gitmem.work.task_records import TaskChange


ADDED = "'a2a-sdk[http-server]>=1.3,<2' uvicorn"
PORT = 4810
LOOPBACK = ("127.0.0.1", "::1", "localhost")
AGENT_MAX, NAME_MAX = 100, 64
_PATHS = ("agents", "rest", "v1", "message:send", "message:stream", "tasks", "extendedAgentCard")
PUBLIC, PRIVATE = "public", "private"  # the networks that notifications go to
LOCAL = "local"  # the caller of requests without a token
_THEIRS = ("a2a", "uvicorn", "starlette", "sse_starlette", "google", "httpx")


def served_log(at: Environment, push: str | None = None) -> ServedLog:
    """Return the log of a repository; what is recorded in it is committed and synced meanwhile."""
    from gitmem.calls.a2a_server import ServedLog

    store = at.store(long_lived=True)
    store.after_record = at.start_committer
    store.allow_secret = False  # others write here
    found = ServedLog(store, at.sync_if_due, report=output.tell)
    if push:
        from gitmem.calls.push import Push

        found.push = Push(store.repo.state, allow_private=push == PRIVATE, report=output.tell)
    return found


def needs_sdk(what: str) -> AbstractContextManager[None]:
    """Import a module of `gitmem.calls` that imports the SDK.

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


def served_agent(at: Environment, name: str) -> ServedAgent:
    """Return the agent of a name: the one that `gitmem serve-agent NAME` serves, or that of an identity."""
    from gitmem.agents import presence
    from gitmem.calls import call
    from gitmem.calls.a2a_server import ServedAgent, describe

    if not 1 <= len(name) <= AGENT_MAX or not is_word(name.replace(":", "")):
        raise UsageError(
            f"AGENT: invalid name {output.sanitize(name)[:80]!r}; letters, digits, -, _ and : are valid.",
            code="bad-agent-name",
        )
    address = call.own_address_of(at.store(), name)
    if not presence.is_known_reader(at.store(), address):
        output.tell(
            f"{name} has never been served: its tasks wait until `{command('gitmem', 'serve-agent', name)}` runs"
        )
    return ServedAgent(name, address, *describe(at.store(), name, address))


def callers_by_token(
    at: Environment, tenant: str, listen: str, *, no_token: bool
) -> Callable[[str], str | None]:
    """Return what finds the caller of a token. Without any token, make one for as long as this runs."""
    import hmac

    from gitmem.calls.a2a_files import Tokens, new_token

    known = Tokens(at.store().repo.state, report=output.tell)
    if no_token or tenant or known.list():
        return known.caller_of
    if listen not in LOOPBACK:
        raise UsageError(
            f"--host {listen} needs tokens: other machines could give tasks to your agents.",
            code="no-token",
            next=["gitmem a2a token --help"],
        )
    made = new_token()
    output.tell(f"no caller has a token; until this ends, this one is valid: {made}")
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


def grpc_of(shown: str, port: int, url: str | None) -> tuple[str, int] | None:
    """Return where gRPC is served: on this machine alone, at the ports after that of HTTP; None without its packages, or behind a proxy."""
    if url or shown.strip("[]") not in LOOPBACK:
        return None
    try:
        import grpc.aio  # noqa: F401  (the extra `grpc`)
    except ImportError:
        return None
    return shown, port + 1


def hosts(shown: str, port: int, url: str | None) -> list[str]:
    """Return the values of the Host header that name this gateway."""
    from urllib.parse import urlsplit

    names = {shown, *(("localhost", "127.0.0.1", "[::1]") if shown.strip("[]") in LOOPBACK else ())}
    found = [f"{name}:{port}" for name in sorted(names)]
    return [*found, urlsplit(url).netloc.lower()] if url else found


def is_word(text: str) -> bool:
    """Return whether a text has only ASCII letters, digits, dashes and underscores."""
    return text.isascii() and text.replace("-", "").replace("_", "").isalnum()


TOKEN = "GITMEM_A2A_TOKEN"  # noqa: S105  (the name of a variable)
END_SECONDS, SEND_SECONDS, LOOK_SECONDS = 5.0, 10.0, 0.05
NOT_SENT = "The server does not have it yet; gitmem task wait sends it."


def is_url(agent: str) -> bool:
    """Return whether a call names a server instead of agents of the log."""
    return "://" in agent


class ServerTask(Struct):
    """A task that is for a server, as this clone knows it.

    Attributes:
        url: Where the server is; "" if another clone has called it.
        digest: That of the token that it got.
        link: Its task there; None before a session of ours has taken it.
    """

    id: str
    task: FoldedTask
    links: RemoteLinks
    url: str
    digest: str
    link: Link | None

    @property
    def has_token(self) -> bool:
        """Whether the token is the one that the server got."""
        from gitmem.calls.a2a_files import digest_of

        return self.digest == digest_of(variable(TOKEN))


def server_task(store: Store, id: str) -> ServerTask | None:
    """Return a task that is for a server; None for another one.

    Raises:
        UsageError: It is unknown.
    """
    from gitmem.calls import SERVER
    from gitmem.work import task_rules

    with store.lock:
        task = task_rules.require(store, id, writing=True)
    identity = task.record.get("agent") or ""
    if not identity.startswith(SERVER):
        return None
    from gitmem.calls.a2a_files import RemoteLinks

    links, id = RemoteLinks(store.repo.state), task.record["task_id"]
    return ServerTask(id, task, links, *(links.server(identity) or ("", "")), links.read(id))


@contextlib.contextmanager
def serving_tasks_of(store: Store, url: str, ids: set[str]) -> Iterator[str]:
    """Serve a server's tasks in a thread; yield the identity that a call names.

    Args:
        ids: The tasks that it may get, once they are known. Those of others would be sent with our token.

    Raises:
        UsageError: The URL is invalid, or the extra is not installed.
        StoreError: The server can't be remembered.
    """
    from gitmem.calls import a2a_files

    with needs_sdk("a call to an A2A server"):
        from gitmem.calls import a2a_remote  # noqa: F401  (before anything is written)
    identity = server_address(url, store.writers.writer())
    links = a2a_files.RemoteLinks(store.repo.state)
    links.add_server(identity, url, variable(TOKEN))
    with _served(store, links, identity, url, "", ids):
        yield identity


@contextlib.contextmanager
def following(store: Store, ids: Sequence[str]) -> Iterator[None]:
    """Go on with those of some tasks that servers have, and that nobody else in this clone follows.

    Raises:
        UsageError: A task is unknown, the token is not the one that its server got, or the extra is not installed.
    """
    by_session: dict[tuple[str, str], list[ServerTask]] = {}
    for each in with_servers(store, ids):
        by_session.setdefault((each.url, each.link.session if each.link is not None else ""), []).append(each)
    with contextlib.ExitStack() as stack:
        for (url, session), some in by_session.items():
            identity = some[0].task.record["agent"] or ""
            wanted = {each.id for each in some}
            stack.enter_context(_served(store, some[0].links, identity, url, session, wanted))
        yield


def with_servers(store: Store, ids: Sequence[str]) -> list[ServerTask]:
    """Return those of some tasks that go on at servers which this clone has called.

    Raises:
        UsageError: A task is unknown, or the token is not the one that its server got.
    """
    found = [server_task(store, id) for id in ids]
    known = [each for each in found if each is not None and each.url and not each.task.is_finished]
    for each in known:
        if not each.has_token and each.task.state != "auth-required":
            raise UsageError(
                f"{TOKEN} is not the token that {each.task.record['agent']} got with the call. Nothing was written or sent.",
                hint="Set the same token, or none if the call had none.",
                code="other-token",
                next=[f"gitmem task show {each.id}"],
            )
    return known


def server_address(url: str, writer: str) -> str:
    """Return the address of a server as an agent of a writer.

    Raises:
        UsageError: See `server_identity`.
    """
    from gitmem.calls import a2a_files

    return of_writer(a2a_files.server_identity(url), writer)


def _is_over(store: Store, id: str) -> bool:
    from gitmem.work import task_rules

    with store.lock:
        return task_rules.require(store, id, writing=True).is_finished


def _until(is_so: Callable[[], object]) -> bool:
    """Wait until something is so; return whether it was in time."""
    deadline = time.monotonic() + SEND_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_SECONDS)
    return True


def wait_until_sent(store: Store, found: CallResult) -> None:
    """Wait until the server of a call has its task, for a caller that does not wait for the result; warn if it has not."""
    from gitmem.calls.a2a_files import RemoteLinks

    links = RemoteLinks(store.repo.state)
    ids = [each.task_id for each in found.results]
    if not _until(lambda: all(((link := links.read(id)) and link.id) or _is_over(store, id) for id in ids)):
        found.warnings.append(NOT_SENT)


@contextlib.contextmanager
def _served(
    store: Store, links: RemoteLinks, identity: str, url: str, session: str, ids: set[str]
) -> Iterator[None]:
    """Serve some tasks of a server in a thread, as the session that has taken them if any has; do nothing if another process does."""
    from gitmem import local_files
    from gitmem.agents import lifecycle, presence
    from gitmem.calls import DEADLINE_SECONDS, SERVER, worker
    from gitmem.calls.worker import FunctionRun
    from gitmem.log.lock import Lock

    with needs_sdk("a call to an A2A server"):
        from gitmem.calls.a2a_remote import RemoteAgent
    with store.lock:
        known = presence.get(store, session) if session else None
        if known is None or known.ended is not None or not known.here or known.agent_identity != identity:
            session = worker.start_session(
                store, identity, name=words_of(identity).removeprefix(SERVER)
            ).session_id
    local_files.make_dirs(links.folder)
    lock = Lock(os.path.join(links.folder, f"{session}.lock"))
    if not lock.take():
        yield
        return
    own = worker.acting(store, session)
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
    from gitmem.work import task_state

    left = set()
    for id in task_ids:
        task = task_state.load_task(store.db(), id)
        if task is None or task.is_finished:
            links.delete(id)
        else:
            left.add(id)
    return not left


def asks(store: Store, id: str) -> bool:
    """Return whether a server that this clone has called waits for an answer.

    Raises:
        UsageError: See `with_servers`.
    """
    from gitmem.order.task import WAITING

    return any(each.task.state in WAITING for each in with_servers(store, [id]))


def send_answer(store: Store, found: TaskChange) -> None:
    """Send an answer that was recorded to the server that has asked; warn if it does not have it in time."""
    from gitmem.calls.a2a_files import RemoteLinks

    links, id = RemoteLinks(store.repo.state), found.task_id
    before = link.answers if (link := links.read(id)) is not None else 0
    with following(store, [id]):
        is_sent = _until(lambda: _is_over(store, id) or ((link := links.read(id)) and link.answers > before))
    if not is_sent:
        found.warnings.append(NOT_SENT)
    found.next = [f"gitmem task wait {id}"]


def send_cancel(store: Store, found: TaskChange) -> None:
    """Ask the server of a task that was canceled to cancel it, and let our session that has the task give it back."""
    at_server, id = server_task(store, found.task_id), found.task_id
    said = cancel_there(store, [id])
    if at_server is not None and at_server.link is not None and not said and not at_server.task.is_finished:
        with following(store, [id]):
            if _until(lambda: _is_over(store, id)):
                found.state, found.warnings = "canceled", []
    found.warnings += said


def cancel_there(store: Store, ids: Sequence[str]) -> list[str]:
    """Ask the servers of some tasks to cancel those whose callers want that; return a sentence for each that was not told."""
    from gitmem.work import task_rules

    said = []
    for each in filter(None, (server_task(store, id) for id in ids)):
        is_wished = any(task_rules.close(each.task, by.sender) is None for by in each.task.cancels)
        if each.task.cancels and (each.task.state == "canceled" or (is_wished and not each.task.is_finished)):
            why = _not_canceled(each)
            said += [f"The server is not told that it is canceled: {why}."] if why else []
    return said


def _not_canceled(found: ServerTask) -> str:
    """Ask a server to cancel a task; return why it was not told, or ""."""
    if not found.url:
        return "another clone has called it"
    if found.link is None or not found.link.id:
        return ""  # it does not have the task, or was told
    if not found.has_token:
        return f"{TOKEN} is not the token that it got; with that, gitmem task wait {found.id} tells it"
    with needs_sdk("a call to an A2A server"):
        from gitmem.calls import a2a_remote
    if not a2a_remote.cancel(found.url, variable(TOKEN), found.link.id):
        return f"it does not answer; gitmem task wait {found.id} tells it"
    if found.task.is_finished:
        found.links.delete(found.id)
    return ""
