"""An adapter for a bus that answers JSON over HTTP: `--adapter gitmem.conformance.over_http:make`.

docs/conformance.md describes the requests. The bus is at $BUS_URL.
"""

from __future__ import annotations

import http.client
import json
import socket
import threading
import urllib.parse
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Unpack

from .adapter import (
    OPTIONAL,
    Claim,
    Convergence,
    Descriptor,
    Options,
    Receipt,
    Refused,
    Session,
    Signal,
    Task,
    as_descriptor,
)
from .library import sources

SECONDS = 30.0  # for one request and its whole answer
ANSWER_BYTES_MAX = 8 * 1024 * 1024
SHOWN = 500  # characters of an answer in an error
# Fields of a task that may be missing.
DEFAULTS = dict.fromkeys(("agent", "requested_role", "holder", "actual_role", "result"))
CONNECTIONS = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}


class BadAnswer(Exception):  # noqa: N818  # an answer of the bus, which fails the case
    """The bus has not answered as the page describes."""


class RemoteBus:
    """One place of a bus behind HTTP.

    Args:
        url: The address of the bus, `http://` or `https://`.
        bus: The name of the bus of this case; a bus that this name was not used for is empty.
        place: The number of the place.
        seconds: Time limit of one request, with its whole answer.
        most: Maximum bytes of one answer.
    """

    def __init__(
        self, url: str, bus: str, place: int = 1, *, seconds: float = SECONDS, most: int = ANSWER_BYTES_MAX
    ) -> None:
        self.url = urllib.parse.urlsplit(url)
        if self.url.scheme not in CONNECTIONS or not self.url.hostname:
            raise BadAnswer(f"Invalid BUS_URL: {url!r}; it must begin with http:// or https://.")
        self.bus = bus
        self.place = place
        self.seconds = seconds
        self.most = most
        self.places = [place]
        self._lacks: dict[str, str] | None = None

    @property
    def lacks(self) -> Mapping[str, str]:
        """The methods that the bus says it does not support, each with a reason."""
        if self._lacks is None:
            found = self.ask("lacks", dict)
            self._lacks = {str(name): str(why) for name, why in found.items() if name in OPTIONAL}
        return self._lacks

    def ask(self, operation: str, kind: type | None, **fields: Any) -> Any:
        """Send a request and return the answer.

        Args:
            operation: The last part of its path.
            kind: The type of the answer; None for an operation that answers null.
            fields: The JSON object of its body; None is left out.

        Raises:
            Refused: The bus has answered 409.
            BadAnswer: It has answered anything else than the page describes, or not in time.
        """
        body = json.dumps({name: value for name, value in fields.items() if value is not None}).encode()
        status, answer = self._post(f"{self.url.path.rstrip('/')}/{self.bus}/{self.place}/{operation}", body)
        shown = answer[:SHOWN].decode("utf-8", "replace")
        if status == 409:
            raise Refused(shown)
        if status != 200:
            raise BadAnswer(
                f"{operation}: the bus answered {status}; valid are 200 and 409. It said: {shown}"
            )
        try:
            found = json.loads(answer)
        except (ValueError, RecursionError) as error:
            raise BadAnswer(f"{operation}: the answer is not JSON ({error}): {shown}") from error
        if kind is not None and (not isinstance(found, kind) or isinstance(found, bool)):
            raise BadAnswer(f"{operation}: the answer is not a JSON {kind.__name__}: {shown}")
        return found

    def _post(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Send a POST request; return the status and the body of the answer. Redirects are not followed."""
        connection = CONNECTIONS[self.url.scheme](str(self.url.hostname), self.url.port, timeout=self.seconds)
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            if connection.sock is None:
                return
            with suppress(OSError):  # closed meanwhile
                connection.sock.shutdown(socket.SHUT_RDWR)  # ends a read that gets a byte now and then

        timer = threading.Timer(self.seconds, expire)
        timer.start()
        try:
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            found = answer.read(self.most + 1)
        except (OSError, http.client.HTTPException) as error:
            why = f"no whole answer in {self.seconds:g} s" if expired.is_set() else repr(error)
            raise BadAnswer(f"POST {path}: {why}") from error
        finally:
            timer.cancel()
            connection.close()
        if expired.is_set():
            raise BadAnswer(f"POST {path}: no whole answer in {self.seconds:g} s")
        if len(found) > self.most:
            raise BadAnswer(f"POST {path}: the answer has more than {self.most} bytes")
        return answer.status, found

    def start(
        self, *, identity: str | None = None, name: str | None = None, workspace: str | None = None
    ) -> Session:
        """Start a session."""
        found: Session = self.ask("start", dict, identity=identity, name=name, workspace=workspace)
        return found

    def end(self, session: str) -> None:
        """End a session."""
        self.ask("end", None, session=session)

    def send(self, session: str, message: str, **options: Unpack[Options]) -> Signal:
        """Send a signal as a session."""
        return as_signal(self.ask("send", dict, session=session, message=message, **options))

    def inbox(
        self, session: str, *, mark: bool = True, thread: str | None = None, intents: Sequence[str] = ()
    ) -> list[Signal]:
        """Return the unread signals of a session."""
        found = self.ask("inbox", list, session=session, mark=mark, thread=thread, intents=list(intents))
        return [as_signal(each) for each in found]

    def count(self, session: str) -> int:
        """Return the number of unread signals of a session."""
        return int(self.ask("count", int, session=session))

    def watch(self, session: str) -> list[Signal]:
        """Return the signals that a watch of a session shows now."""
        return [as_signal(each) for each in self.ask("watch", list, session=session)]

    def receipts(self, signal_id: str) -> list[Receipt]:
        """Return the receipts of a signal."""
        found: list[Receipt] = self.ask("receipts", list, signal_id=signal_id)
        return found

    def converged(self, thread: str) -> Convergence:
        """Return whether a thread has converged."""
        found: Convergence = self.ask("converged", dict, thread=thread)
        return found

    def take(self, record: Mapping[str, Any]) -> None:
        """Have another program's record stored unchanged."""
        self.ask("take", None, record=record)

    def role(self, session: str, role: str) -> Descriptor | None:
        """State a session's role."""
        found = self.ask("role", None, session=session, role=role)
        return as_descriptor(found) if isinstance(found, dict) else None

    def delegate(
        self, session: str, message: str, *, to: str, role: str | None = None, paths: Sequence[str] = ()
    ) -> Task:
        """Delegate a task."""
        fields = {"session": session, "message": message, "to": to, "role": role, "paths": list(paths)}
        return self._task("delegate", **fields)

    def work(self, session: str, task_id: str, event: str, text: str = "") -> Task:
        """Change a task."""
        return self._task("work", session=session, task_id=task_id, event=event, text=text)

    def task(self, task_id: str) -> Task:
        """Return a task."""
        return self._task("task", task_id=task_id)

    def handoff(self, session: str, task_ids: Sequence[str], to: str) -> Task:
        """Offer tasks to another reader."""
        return self._task("handoff", session=session, task_ids=list(task_ids), to=to)

    def _task(self, operation: str, **fields: Any) -> Task:
        whole: Any = {**DEFAULTS, **self.ask(operation, dict, **fields)}
        return whole  # type: ignore[no-any-return]

    def claim(self, session: str, paths: Sequence[str]) -> Claim:
        """Claim paths."""
        found: Claim = self.ask("claim", dict, session=session, paths=list(paths))
        return found

    def unclaim(self, session: str, claim_id: str) -> None:
        """Release a claim."""
        self.ask("unclaim", None, session=session, claim_id=claim_id)

    def claims(self) -> list[Claim]:
        """Return the claims that stand."""
        found: list[Claim] = self.ask("claims", list)
        return found

    def judge(self, lines: Sequence[str]) -> list[str]:
        """Return which of these lines count."""
        found: list[str] = self.ask("judge", list, lines=list(lines))
        return found

    def second(self) -> RemoteBus:
        """Return another place of the same bus."""
        self.places.append(len(self.places) + 1)
        limits: dict[str, Any] = {"seconds": self.seconds, "most": self.most}
        return type(self)(self.url.geturl(), self.bus, self.places[-1], **limits)

    def exchange(self) -> None:
        """Exchange the records of this place with the other places."""
        self.ask("exchange", None)

    def close(self) -> None:
        """Tell the bus that the case has ended."""
        self.ask("close", None)


def make(folder: Path) -> RemoteBus:
    """Return the adapter of a new bus at $BUS_URL."""
    return RemoteBus(sources().get("BUS_URL", ""), uuid.uuid4().hex)


def as_signal(found: Any) -> Signal:
    """Return a signal, with the contract's defaults of missing fields."""
    if not isinstance(found, dict):
        raise BadAnswer(f"A signal must be a JSON object; the bus answered {str(found)[:SHOWN]}")
    whole: Any = {"recipients": [], "requires_ack": False, **found}
    return whole  # type: ignore[no-any-return]
