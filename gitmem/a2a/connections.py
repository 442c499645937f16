"""Connections that send a request soon: those that send none are closed, and give way to others where too many are open."""

from __future__ import annotations

import math

from uvicorn.protocols.http.h11_impl import H11Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio

CONNECTIONS_MAX = 200  # of all clients together
HEAD_SECONDS = 15.0  # for the head of a request, after the connection was made or the last answer was sent


class Connection(H11Protocol):
    """A connection of a client.

    Attributes:
        idle_since: When it began to wait for the head of a request, by the clock of the event loop.
    """

    head_seconds = HEAD_SECONDS
    idle_since = math.inf
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request. If too many connections are open, close the one that has waited longest."""
        super().connection_made(transport)
        self._wait()
        if len(self.connections) >= CONNECTIONS_MAX:
            waiting = [each for each in self.connections if isinstance(each, Connection) and each.is_idle]
            min(waiting, key=lambda each: each.idle_since).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._wait()

    @property
    def is_idle(self) -> bool:
        """Whether it waits for the head of a request."""
        is_answering = self.cycle is not None and not self.cycle.response_complete
        return not is_answering and not self.transport.is_closing()

    def _wait(self) -> None:
        self._stop()
        self.idle_since = self.loop.time()
        self._timer = self.loop.call_later(self.head_seconds, self._end)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self) -> None:
        if self.is_idle:
            self.transport.abort()
