"""`gitmem watch`: show signals as they arrive, and run syncs and --exec commands."""

from __future__ import annotations

import os
import signal

from gitmem.errors import UsageError

from .. import autosync
from ..environment import Environment
from ..render import output
from ..render import signals as render
from ..render.terminal import is_read
from ..values import duration
from ..wal_folders import external_wals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Annotated

    import typer

    from gitmem.records.record_types import ShownSignal
    from gitmem.signals.inbox import InboxResult
    from gitmem.signals.watch import Watch, WatchOwner
    from gitmem.store import Store

    from ..children import BackgroundSyncs
    from ..signal_file import SignalFile

TICK_SECONDS = 2.0
SYNC_TICK_SECONDS = 0.5
EXEC_LIMIT = "60s"
LEAST_SECONDS = 1.0


def watch(
    at: Environment,
    session: Annotated[
        str | None,
        typer.Option(
            "--session", metavar="WHO", help="Watch for this session id, agent identity or name in use."
        ),
    ] = None,
    sync: Annotated[
        str | None, typer.Option("--sync", metavar="10s", help="Sync with the remote at this interval.")
    ] = None,
    exec_: Annotated[
        str | None,
        typer.Option(
            "--exec",
            metavar="CMD",
            help="Run CMD with sh for each signal sent to you, with its JSON on standard input.",
        ),
    ] = None,
    exec_limit: Annotated[
        str | None, typer.Option("--exec-limit", metavar="60s", help="Time limit for CMD (default: 60s).")
    ] = None,
    write: Annotated[
        str | None,
        typer.Option("--write", metavar="FILE", help="Also write the latest signals to this file."),
    ] = None,
) -> None:
    """Show new signals as they arrive, each once, until Ctrl-C. With --json, one per line."""
    from gitmem.signals import watch as watching

    every, limit = _seconds("--sync", sync), _seconds("--exec-limit", exec_limit or EXEC_LIMIT)
    stop = WatchEnded()
    store = at.store()
    of = watching.watch_owner(store, at.who(), session)
    if of.peek and exec_ is not None:
        raise UsageError(
            f"{of.peek} --exec runs no commands for another reader's signals.",
            hint="Run it from that reader's own session, or with --as while no variable names another session.",
            code="not-yours",
        )
    output.set_options(None, (of.session or of.reader) if session is not None else None)
    showing = SignalPrinter(at, of, stop, exec_, limit or 0.0)
    if write is not None:
        from gitmem.signals.message_frame import LIMIT

        from ..signal_file import SignalFile

        showing.kept = SignalFile(os.path.join(at.folder, write), LIMIT)
    seen = watching.Watch(store, of, stop, events=not _polling(), one_by_one=exec_ is not None, report=_note)
    syncs: BackgroundSyncs | None = None
    if every is not None:
        from ..children import BackgroundSyncs

        syncs = BackgroundSyncs(at.folder, every)
    with stop:
        if session is None and of.caller is not None and of.caller.remark:
            _note(of.caller.remark)
        _note(of.peek or f"watching for signals to {of.name}; press Ctrl-C to end{_session_hint(store, of)}")
        try:
            _watch_loop(at, seen, showing, syncs)
        finally:
            seen.close()
            if syncs is not None:
                syncs.close()


def _watch_loop(at: Environment, seen: Watch, showing: SignalPrinter, syncs: BackgroundSyncs | None) -> None:
    """Show unread signals and wait for more, until the watch, its session or its reader ends."""
    changed = True
    while not showing.stop.is_set():
        if changed:
            for batch in seen.unread():
                if not showing.show(batch, seen):
                    return  # standard output is closed: the signals stay unread
        if seen.ended:
            _note(f"watch ended: the session of {seen.of.name} has ended")
            return
        if syncs is None:
            autosync.start_if_due(at)
        elif (notice := syncs.tick()) is not None:
            _note(notice)
        seen.store.log.read_also(external_wals(at.repo)[1])
        if not is_read():
            return
        changed = seen.wait(TICK_SECONDS if syncs is None else SYNC_TICK_SECONDS)


class SignalPrinter:
    """Shows signals: on standard output, in the file of --write, and by the command of --exec.

    Args:
        at: The environment.
        of: The reader.
        stop: Set when the watch must end.
        command: The command to run for each signal that names the reader; None for none.
        limit: Its time limit in seconds.
    """

    def __init__(
        self, at: Environment, of: WatchOwner, stop: WatchEnded, command: str | None, limit: float
    ) -> None:
        self.at = at
        self.of = of
        self.stop = stop
        self.command = command
        self.limit = limit
        self.kept: SignalFile | None = None
        self._unwritten = False

    def show(self, batch: InboxResult, seen: Watch) -> bool:
        """Show a batch; signals that could not be written to the file, or whose command failed, stay unread.

        Args:
            batch: The signals.
            seen: The watch that marks them.

        Returns:
            False if standard output is closed.
        """
        self.of = seen.of
        if self.at.json:
            text = "\n".join(render.watched_event(fields, self.of) for fields in batch.signals)
        else:
            text = render.watched_together(batch.signals, self.of)
        if not output.write(text):
            return False
        if self.kept is not None and not self._write(self.kept, batch):
            for fields in batch.signals:
                seen.leave(batch, fields["signal_id"])
        for fields in batch.signals:
            wrong = self._run(fields) if fields.get("recipients") else None
            if wrong is not None:
                signal_id = fields["signal_id"]
                _note(f"--exec: {wrong}; {signal_id} remains unread")
                seen.leave(batch, signal_id)
        return True

    def _write(self, kept: SignalFile, batch: InboxResult) -> bool:
        """Add a batch to the file; return whether it was written. Report only the first of several failures."""
        try:
            kept.add(
                [
                    render.watched(fields, self.of, age=_format_minute(fields["created_at"]))
                    for fields in batch.signals
                ]
            )
        except OSError as error:
            if not self._unwritten:
                _note(
                    f"cannot write {kept.path} ({error.strerror}); signals that are not in it remain unread"
                )
            self._unwritten = True
            return False
        self._unwritten = False
        return True

    def _run(self, fields: ShownSignal) -> str | None:
        """Run the command for a signal, if there is one; return the error as a sentence, or None.

        The command line contains no text of the signal.
        """
        if self.command is None:
            return None
        from .. import children

        environment = {
            "GITMEM_SIGNAL_ID": fields["signal_id"],
            "GITMEM_THREAD_ID": fields.get("thread_id") or "",
            "GITMEM_INTENT": fields["intent"],
            "GITMEM_SENDER": fields["sender_identity"],
        }
        if self.of.session is not None:
            environment["GITMEM_SESSION"] = self.of.session  # its `gitmem reply` acts as this reader
        event = render.watched_event(fields, self.of) + "\n"
        return children.run(
            self.command, input=event.encode("utf-8", "backslashreplace"), environment=environment,
            folder=self.at.folder, seconds=self.limit, stop=self.stop,
        )  # fmt: skip


class WatchEnded:
    """A flag that is set by SIGINT, SIGTERM or SIGHUP.

    A second signal interrupts a blocked operation, too, such as a write to a reader that does not read.
    """

    def __init__(self) -> None:
        self._set = False
        self._before: dict[int, object] = {}

    def is_set(self) -> bool:
        """Return whether the watch must end."""
        return self._set

    def __enter__(self) -> WatchEnded:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # ignored under nohup
                self._before[number] = signal.signal(number, self._on)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # `signal.signal` returned it

    def _on(self, number: int, frame: FrameType | None) -> None:
        if self._set:
            raise KeyboardInterrupt
        self._set = True


def _session_hint(store: Store, of: WatchOwner) -> str:
    """Return a hint on --session for a person in a worktree with an agent's session; otherwise ""."""
    from gitmem.agents import presence

    meant = of.caller is not None and of.caller.is_person and presence.of_worktree(store)
    return "; use `--session NAME` to watch for an agent" if meant else ""


def _polling() -> bool:
    """Return whether `WATCHFILES_FORCE_POLLING` of `watchfiles` forbids file-system events."""
    value = os.environ.get("WATCHFILES_FORCE_POLLING") or "false"
    return value.lower() not in ("false", "disable", "disabled")


def _seconds(option: str, text: str | None) -> float | None:
    """Return an option's duration in seconds, at least LEAST_SECONDS; None without the option."""
    if text is None:
        return None
    seconds = duration(text, option)
    if seconds < LEAST_SECONDS:
        raise UsageError(f"Invalid {option}: {text!r}; the minimum is 1s.", code="bad-duration")
    return seconds


def _format_minute(at: str) -> str:
    """Return a time as `2026-11-21 20:00Z`."""
    return f"{at[:16].replace('T', ' ')}Z"


def _note(sentence: str) -> None:
    output.write_error(f"gitmem: {output.sanitize(sentence)}")
