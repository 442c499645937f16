"""The library's interface to signals and sessions: `log.signals` and `log.sessions`."""

from __future__ import annotations

from .agents import caller as callers
from .agents import lifecycle
from .signals import announcements
from .signals import send as signals
from .store import serialized

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol, Unpack

    from .agents.caller import Caller
    from .agents.lifecycle import SessionChanged, SessionEnded, SessionStarted
    from .signals.signal_options import SignalOptions
    from .store import Store

    class Opened(Protocol):
        """An open log: its store and its caller."""

        store: Store
        who: callers.CallerClaims

        @property
        def caller(self) -> Caller:
            """The caller in whose name records are written."""
            ...


@serialized
class Signals:
    """Signals of a log's caller."""

    def __init__(self, log: Opened) -> None:
        self._log = log

    def send(self, message: str, **options: Unpack[SignalOptions]) -> signals.Sent:
        """Record a signal; see `SignalOptions` for the options and `signals.send.send` for the errors."""
        from .signals import signal_options

        signal_options.reject_unknown(options)
        return signals.send_with_one_snapshot(self._log.store, lambda: self._log.caller, message, **options)

    def reply(self, signal_id: str, message: str, **options: Unpack[SignalOptions]) -> signals.Sent:
        """Reply to a signal: to its sender, in its thread.

        Raises:
            TypeError: `reply_to` is among the options; `signal_id` is the answered signal.
        """
        if "reply_to" in options:
            raise TypeError(
                "A reply has no option reply_to: it answers the signal that its first argument names."
            )
        return self.send(message, **(options | {"reply_to": signal_id}))


@serialized
class Sessions:
    """Sessions of agents in this worktree."""

    def __init__(self, log: Opened) -> None:
        self._log = log

    def start(self, **options: Any) -> SessionStarted:
        """Start a session and make it the caller; see `sessions.lifecycle.start` for the options."""
        started = lifecycle.start(self._log.store, self._log.who, **options)
        own = started.session_id
        self._log.who = callers.CallerClaims(as_=own, session=own, identity=self._log.who.identity)
        return started

    def change(self, **options: Any) -> SessionChanged:
        """Change the caller's session; see `signals.completion.change_session` for the options and the errors."""
        return announcements.change_session(self._log.store, self._log.caller, **options)

    def end(self, **options: Any) -> SessionEnded:
        """End the caller's session and release its name; see `handoffs.session_end.end_session` for the options."""
        from .handoffs import session_end

        return session_end.end_session(self._log.store, self._log.caller, **options)
