"""The page over HTTP: its data are collected when the log has changed and a browser asks, and browsers are told of changes.

What a person answers in the page is one operation of the library each, on exactly what the page has shown.

What passes is decided by the gateway's guard: the Host header, no Origin of another page, and a token. A browser gets the token as
a cookie by the link that is printed. Cookies do not tell ports apart, so this one is only for paths below a random one.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import secrets
import time

from a2a.utils.errors import A2AError
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from ..agents import caller as callers
from ..agents.caller import CallerClaims
from ..calls import SERVER
from ..calls.http_guard import Callers, Guard
from ..errors import GateError, UsageError
from ..history import open_work
from ..outcome import command
from ..records.ids import is_id
from ..signals import reply, send
from ..signals.watch import ChangeWatcher, NeverSet
from ..text.sanitize import sanitize
from ..work import handoffs, task_decisions, task_rules, task_work
from .board import millis_of
from .page_data import ANSWER
from .page_file import ANSWER_URL, DATA_URL, EVENTS_URL, Assets, packed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Sequence

    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from ..agents.caller import Caller
    from ..calls.a2a_server import ServedLog
    from ..store import Store
    from .board import Fields


COOKIE, READER = "gitmem_view", "page"
REST_SECONDS, REST_TIMES = 1.0, 4  # after a change: at least so long, and so many times what collecting took
OLD_SECONDS = 60.0  # data that depend on the time are collected again after it
BEAT_SECONDS = 15.0
FORM_TOKEN = "X-Gitmem-Token"  # noqa: S105  (the name of a header)
FORM_MOST = 64 * 1024  # bytes of an answer
_NEEDED = "Open the link that gitmem view --serve has printed; it is valid until that ends."
_NO_FORM = "This is no answer of the page of this server: load the page again. Nothing was written."
_CLOSED = "default-src 'none'; frame-ancestors 'none'"
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Content-Security-Policy": _CLOSED,
}
BAD_FORM = "bad-form"
ALL_WAITS = 10_000
TEXTS, NUMBERS = ("do", "id", "text"), ("since",)  # of a form
INTENTS = {"agree": "AGREE", "reject": "REJECT", "reply": None}
WAYS = (*INTENTS, "take", "refuse", "accept", ANSWER)
# A page of ours goes on, and no redirect: the cookie is for requests of the same site alone.
_ENTRY = '<!doctype html><meta charset="utf-8"><title>gitmem</title><meta http-equiv="refresh" content="0; url=../"><a href="../">gitmem</a>'


class LivePage:
    """The page of one log.

    Args:
        log: The log, in its thread.
        collect: Collects the data, in that thread.
        who: Who answers in the page: the caller of the command that serves it.
        rest: The least time between two notices of changes, seconds.

    Attributes:
        path: The path below which it answers.
        entry: The path of the link that lets a browser in.
    """

    def __init__(
        self,
        log: ServedLog,
        collect: Callable[[], Fields],
        who: CallerClaims | None = None,
        *,
        rest: float = REST_SECONDS,
    ) -> None:
        self._log = log
        self._collect = collect
        self._who = who or CallerClaims()
        self._rest = rest
        self._watcher = ChangeWatcher(log.store, NeverSet(), events=False)
        self._token = secrets.token_urlsafe(32)
        self._form_token = secrets.token_urlsafe(32)
        self.path = f"/{secrets.token_urlsafe(12)}/"
        self.entry = f"{self.path}open/{secrets.token_urlsafe(32)}"
        self._assets = Assets()
        self._reading = asyncio.Lock()
        self._seen: object = None
        self._made = 0.0
        self._took = 0.0
        self._body: bytes | None = None

    def application(self, hosts: Collection[str]) -> ASGIApp:
        """Return the application that answers.

        Args:
            hosts: The values of the Host header that are ours.
        """
        routes = [
            Route(self.path, self._page),
            Route(self.path + DATA_URL, self._data),
            Route(self.path + EVENTS_URL, self._events),
            Route(self.path + ANSWER_URL, self._answer, methods=["POST"]),
            Route(self.entry, self._enter),
        ]
        app = Starlette(routes=routes, lifespan=self._watched)
        app.router.redirect_slashes = False
        guarded = Guard(
            app,
            hosts,
            Callers({"": self._caller}),
            cards=(self.entry,),
            needed=_NEEDED,
            serves_pages=True,
            body_most=FORM_MOST,
        )
        return _with_headers(_cookie_as_token(guarded))

    @contextlib.asynccontextmanager
    async def _watched(self, _: Starlette) -> AsyncIterator[None]:
        self._log.start()
        try:
            yield
        finally:
            self._log.close()

    def _caller(self, token: str) -> str | None:
        return READER if hmac.compare_digest(token.encode(), self._token.encode()) else None

    async def _enter(self, _: Request) -> Response:
        answer = HTMLResponse(_ENTRY)
        answer.set_cookie(COOKIE, self._token, path=self.path, httponly=True, samesite="strict")
        return answer

    async def _page(self, _: Request) -> Response:
        policy = f"{self._assets.policy(served=True)}; frame-ancestors 'none'"
        return HTMLResponse(self._assets.page(None), headers={"Content-Security-Policy": policy})

    async def _data(self, _: Request) -> Response:
        async with self._reading:
            stamp = self._watcher.stamp()
            if self._body is None or stamp != self._seen or time.monotonic() - self._made > OLD_SECONDS:
                try:
                    self._body = await self._log.run(self._read)
                except A2AError as error:
                    return PlainTextResponse(str(error.message), 503)
                self._seen = stamp
        headers = {"Content-Encoding": "gzip", FORM_TOKEN: self._form_token}
        return Response(self._body, media_type="application/json", headers=headers)

    def _read(self) -> bytes:
        started = time.monotonic()
        body = packed(self._collect())
        self._made = time.monotonic()
        self._took = self._made - started
        return body

    async def _answer(self, request: Request) -> Response:
        """Record an answer. Its token is in the data, which no other page can read; a form of another page has no headers."""
        if not hmac.compare_digest(request.headers.get(FORM_TOKEN, "").encode(), self._form_token.encode()):
            return _refused(403, "forbidden", _NO_FORM)
        try:
            form = json.loads(await request.body())
        except ValueError:
            form = None
        try:
            return await self._log.run(lambda: self._record(form))
        except A2AError as error:
            return _refused(503, "store", str(error.message))

    def _record(self, form: object) -> Response:
        try:
            return JSONResponse(record(self._log.store, self._who, form))
        except (GateError, UsageError) as error:
            status = 400 if error.code == BAD_FORM else 409
            return _refused(status, error.code, f"{error.message} {error.hint}".strip(), error.next)

    async def _events(self, _: Request) -> Response:
        return StreamingResponse(self._changes(), media_type="text/event-stream")

    async def _changes(self) -> AsyncIterator[str]:
        """Yield a notice for each change, not more often than a browser can follow, and comments meanwhile."""
        seen, said = self._watcher.stamp(), time.monotonic()
        yield ": begin\n\n"
        while True:
            await self._log.change().wait()  # about once a second, also without a change
            stamp = self._watcher.stamp()
            if stamp != seen:
                seen, said = stamp, time.monotonic()
                yield "event: changed\ndata: 1\n\n"
                await asyncio.sleep(max(self._rest, REST_TIMES * self._took))
            elif time.monotonic() - said > BEAT_SECONDS:
                said = time.monotonic()
                yield ": no change\n\n"


def _refused(status: int, code: str, message: str, next: Sequence[str] = ()) -> Response:
    error = {"code": status, "status": code, "message": sanitize(message), "next": list(next)}
    return JSONResponse({"error": error}, status)


def _cookie_as_token(app: ASGIApp) -> ASGIApp:
    """Return an application whose guard finds the token of a browser's cookie where it looks for that of a client."""

    async def called(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            names = {name for name, _ in scope["headers"]}
            token = _cookie(Headers(scope=scope).get("cookie", ""))
            if token and b"authorization" not in names:
                given = (b"authorization", b"Bearer " + token.encode("latin-1", "replace"))
                scope = {**scope, "headers": [*scope["headers"], given]}
        await app(scope, receive, send)

    return called


def _cookie(header: str) -> str:
    """Return the token in a Cookie header; browsers send that with the longest path first, and others may set one for the host."""
    for part in header.split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
            return value
    return ""


def _with_headers(app: ASGIApp) -> ASGIApp:
    """Return an application whose every answer forbids to keep it, to embed it, and to guess its type."""

    async def called(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_all(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await app(scope, receive, send_all if scope["type"] == "http" else send)

    return called


def record(store: Store, who: CallerClaims, form: object) -> Fields:
    """Record an answer as the caller; return the id of the signal or event, and sentences about it.

    Args:
        who: The caller of the command that serves the page.
        form: What the page sent: `do`, one of `ways`; `id`, of the signal or task; `since`, when the waiting began, as the page has shown it;
            `text`, the words.

    Raises:
        GateError: A rule of the project refuses it. Nothing was written.
        UsageError: `bad-form`: the form is invalid; `not-awaited`: nothing waits for the caller, or no longer; other codes are those of the operation.
        StoreError: It can't be recorded.
    """
    found = _form(form)
    way, id, text = str(found["do"]), str(found["id"]), str(found["text"]).strip()
    with store.one_look():
        caller = callers.find(store, who)
        assert caller is not None  # `find` raises
        if way in ("agree", "reject"):
            _refuse_void(store, caller, id, way.upper())
        _require_awaited(store, caller, way, id, found["since"])
    return _give(store, caller, way, id, text)


def _form(form: object) -> Fields:
    """Return a form of which every field is there and nothing else."""
    if not isinstance(form, dict) or set(form) != {*TEXTS, *NUMBERS}:
        raise _bad_form(f"an object with {', '.join((*TEXTS, *NUMBERS))} is valid")
    if not all(type(form[each]) is str for each in TEXTS) or type(form["since"]) is not int:
        raise _bad_form("since is a number, the others are texts")
    if form["do"] not in WAYS or not any(is_id(kind, form["id"]) for kind in ("sig", "task")):
        raise _bad_form(f"do is one of {', '.join(WAYS)}, id that of a signal or task")
    return form


def _bad_form(valid: str) -> UsageError:
    return UsageError(f"The answer is not in the form of this page: {valid}. Nothing was written.", code=BAD_FORM)  # fmt: skip


def _refuse_void(store: Store, caller: Caller, id: str, intent: str) -> None:
    """Raise UsageError for a decision that would not count, such as on a proposal that another one has replaced meanwhile."""
    _, why = reply.look_ahead(store, caller, id, intent)
    if why:
        raise _not_awaited(" ".join(why), id)


def _require_awaited(store: Store, caller: Caller, way: str, id: str, since: object) -> None:
    """Raise UsageError unless exactly this still waits for the caller. A reply without a decision may come later, too."""
    for each in open_work.waits(store, caller, limit=ALL_WAITS).rows:
        if each.you == open_work.OWES and each.id == id and millis_of(each.since) == since:
            return
    if way != "reply":
        raise _not_awaited(
            "It does not wait for you as this page has shown it: it was answered or changed meanwhile.", id
        )


def _not_awaited(why: str, id: str) -> UsageError:
    show = ["thread"] if id.startswith("sig-") else ["task", "show"]
    return UsageError(f"{why} Nothing was written.", code="not-awaited", next=[command("gitmem", *show, id)])


def _give(store: Store, caller: Caller, way: str, id: str, text: str) -> Fields:
    if way in INTENTS:
        sent = send.send(store, caller, text, reply_to=id, intent=INTENTS[way])
        return {"id": sent.signal["signal_id"], "warnings": [*sent.warnings]}
    if way == "take":
        found = handoffs.take_handoff(store, caller, id)
    elif way == "refuse":
        found = task_work.reject(store, caller, id, text or None)
    elif way == "accept":
        found = task_decisions.seal_task(store, caller, id)
    else:
        task = task_rules.require(store, id, writing=True)
        if (task.record.get("agent") or "").startswith(SERVER):
            raise UsageError(
                f"{id} is done by a server, which gets an answer only while a command waits. Nothing was written.",
                code="remote-task",
                next=[command("gitmem", "task", "show", id)],
            )
        found = task_decisions.message(store, caller, id, text)
    return {"id": found.event_id or "", "warnings": [*found.warnings]}
