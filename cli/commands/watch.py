"""`gitmem watch`: show signals as they arrive, and run syncs and --exec commands."""

from __future__ import annotations

import contextlib
import html
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from gitmem import local_files
from gitmem.errors import UsageError
from gitmem.outcome import Struct

from ..background import program
from ..environment import Environment, external_wals
from ..render import output
from ..render import signals as render
from ..render.output import tell
from ..render.terminal import is_read
from ..values import duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import FrameType
    from typing import Annotated, Protocol

    from gitmem.records.record_types import ShownSignal
    from gitmem.signals.inbox import InboxResult
    from gitmem.signals.watch import Watch, WatchOwner
    from gitmem.store import Store

    from .options import Flag, Option

    class StopChild(Protocol):
        """A flag that ends a running child early."""

        def is_set(self) -> bool:
            """Return whether the child must end."""
            ...


POLL_SECONDS = 0.1


def run(
    command: str,
    *,
    input: bytes,
    environment: Mapping[str, str],
    folder: str,
    seconds: float,
    stop: StopChild,
) -> str | None:
    """Run the user's command with `sh -c`; return the error in a sentence, or None.

    Its standard output goes to our standard error, because ours contains only signals.

    Args:
        input: Its standard input.
        environment: Variables in addition to ours.
        seconds: The time limit.
        stop: Ends it early.
    """
    try:
        child = subprocess.Popen(
            ["sh", "-c", command], cwd=folder, env={**os.environ, **environment}, stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL if sys.stderr is None else 2, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        return f"cannot start it ({error.strerror})"
    deadline = time.monotonic() + seconds
    rest: bytes | None = input
    try:
        while True:
            try:
                child.communicate(rest, timeout=POLL_SECONDS)
            except subprocess.TimeoutExpired:
                rest = None  # already passed: continue with it
                if stop.is_set():
                    return "stopped because the watch ended"
                if time.monotonic() >= deadline:
                    return f"timed out after {seconds:g} seconds"
                continue
            code = child.returncode
            return None if code == 0 else f"killed by signal {-code}" if code < 0 else f"exit status {code}"
    finally:
        from gitmem.calls.client_run import end_program

        end_program(child)


class BackgroundSyncs(Struct):
    """Repeated runs of `gitmem sync` beside a watch, which a slow or failing remote does not block.

    Attributes:
        folder: The folder to sync in.
        seconds: The pause between the end of a sync and the start of the next.
    """

    folder: str
    seconds: float
    _child: subprocess.Popen[bytes] | None = None
    _next: float = 0.0
    _state: str = ""  # "", or the beginning of what was told last

    def tick(self) -> str | None:
        """Start a sync that is due, or take its result; return a sentence when syncs begin to fail or work again."""
        if self._child is None:
            if time.monotonic() >= self._next:
                self._next = time.monotonic() + self.seconds
                with contextlib.suppress(OSError):  # such as too many processes: then the next time
                    self._child = subprocess.Popen(
                        [*program(), "sync", "--json"], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                        stderr=subprocess.DEVNULL, start_new_session=True,
                    )  # fmt: skip
            return None
        if self._child.poll() is None:
            return None
        answer = self._child.communicate()[0]  # one line, which fits into a pipe
        code, self._child = self._child.returncode, None
        self._next = time.monotonic() + self.seconds
        before, self._state = self._state, "" if code == 0 else "sync failed"
        if code == 2 and b'"consent-needed"' in answer:  # the fetch was complete
            self._state = "sync fetches but does not push"
        if self._state == before:
            return None
        if not self._state:
            return "sync works again"
        then = (
            "retrying. Signals of this clone are still shown"
            if self._state == "sync failed"
            else "only your user may run `gitmem sync --publish`"
        )
        return f"{self._state} ({_why(answer)}); {then}"

    def close(self) -> None:
        """End the running sync."""
        if self._child is not None:
            from gitmem.calls.client_run import end_program

            end_program(self._child)


def _why(answer: bytes) -> str:
    """Return the error message of a failed sync."""
    import json

    try:
        report = json.loads(answer)
        if "error" in report:
            return str(report["error"]["message"])
        words = [f"{each['name']}: {each['message'] or each['state']}" for each in report["remotes"]]
        return "; ".join(words)
    except (ValueError, TypeError, LookupError):
        return "it printed no result"


PROGRAMS = ("notify-send", "osascript")
NOTIFY_SECONDS = 10.0
_OSASCRIPT = ("on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run")


def notifier() -> str:
    """Return the program that shows the notifications of this desktop.

    Raises:
        UsageError: `no-notifier`.
    """
    found = next(filter(shutil.which, PROGRAMS), None)
    if found is None:
        raise UsageError(
            f"--notify: no program for notifications was found; it can be {' or '.join(PROGRAMS)}.",
            hint="On Linux, notify-send is in the package libnotify-bin or libnotify.",
            code="no-notifier",
        )
    return found


def notification(program: str, title: str, text: str) -> list[str]:
    """Return the command that shows one line as title and one as text. They are arguments, never parts of a script.

    Args:
        title: It starts with a fixed word, so that no program reads it as an option.
    """
    if program == "osascript":
        return [program, *(word for line in _OSASCRIPT for word in ("-e", line)), title, text]
    return [program, "--app-name=gitmem", "--", title, html.escape(text)]  # which reads markup in the text


TICK_SECONDS = 2.0
SYNC_TICK_SECONDS = 0.5
EXEC_SECONDS = 60.0
LEAST_SECONDS = 1.0


def watch(
    at: Environment,
    sync: Annotated[str | None, Option("--sync", "10s", "Sync with the remote at this interval.")] = None,
    exec_: Annotated[
        str | None,
        Option(
            "--exec", "CMD", "Run CMD with sh for each signal sent to you, with its JSON on standard input."
        ),
    ] = None,
    write: Annotated[
        str | None, Option("--write", "FILE", "Also write the latest signals to this file.")
    ] = None,
    notify: Annotated[
        bool, Flag("--notify", "Also tell of signals sent to you by the desktop's notifications.")
    ] = False,
) -> None:
    """Show new signals as they arrive, each once, until Ctrl-C. With --json, one per line."""
    from gitmem.signals import watch as watching

    every = _seconds("--sync", sync)
    stop = WatchEnded()
    store = at.store()
    of = watching.watch_owner(store, at.who())
    if of.peek and exec_ is not None:
        raise UsageError(
            f"{of.peek} --exec runs no commands for another reader's signals.",
            hint="Run it from that reader's own session, or with --as while no variable names another session.",
            code="not-yours",
        )
    if at.as_ is not None:
        output.set_options(None, of.session or of.reader)  # a name can be somebody else's tomorrow
    showing = SignalPrinter(at, of, stop, exec_, EXEC_SECONDS)
    if notify:
        showing.notifier = notifier()
    if write is not None:
        from gitmem.signals.message_frame import LIMIT

        showing.kept = SignalFile(os.path.join(at.folder, write), LIMIT)
    seen = watching.Watch(store, of, stop, events=not _polling(), one_by_one=exec_ is not None, report=tell)
    syncs: BackgroundSyncs | None = None
    if every is not None:
        syncs = BackgroundSyncs(at.folder, every)
    with stop:
        if of.caller.remark:
            tell(of.caller.remark)
        tell(of.peek or f"watching for signals to {of.name}; press Ctrl-C to end{_session_hint(store, of)}")
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
            tell(f"watch ended: the session of {seen.of.name} has ended")
            return
        if syncs is None:
            at.sync_if_due()
        elif (notice := syncs.tick()) is not None:
            tell(notice)
        seen.store.log.read_also(external_wals(at.repo)[1])
        if not is_read():
            return
        changed = seen.wait(TICK_SECONDS if syncs is None else SYNC_TICK_SECONDS)


class SignalPrinter(Struct):
    """Shows signals: on standard output, by the desktop of --notify, in the file of --write, and by the command of --exec.

    Attributes:
        at: The environment.
        of: The reader.
        stop: Set when the watch must end.
        command: The command to run for each signal that names the reader; None for none.
        limit: Its time limit in seconds.
    """

    at: Environment
    of: WatchOwner
    stop: WatchEnded
    command: str | None
    limit: float
    kept: SignalFile | None = None
    notifier: str = ""
    _unwritten: bool = False

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
        if self.notifier and (said := render.notification(batch.signals)) is not None:
            try:
                subprocess.run(
                    notification(self.notifier, *said), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    timeout=NOTIFY_SECONDS, check=True,
                )  # fmt: skip
            except (OSError, ValueError, subprocess.SubprocessError) as error:
                tell(f"--notify: {self.notifier} failed ({type(error).__name__}); no more notifications")
                self.notifier = ""
        if self.kept is not None and not self._write(self.kept, batch):
            for fields in batch.signals:
                seen.leave(batch, fields["signal_id"])
        for fields in batch.signals:
            wrong = self._run(fields) if fields.get("recipients") else None
            if wrong is not None:
                signal_id = fields["signal_id"]
                tell(f"--exec: {wrong}; {signal_id} remains unread")
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
                tell(f"cannot write {kept.path} ({error.strerror}); signals that are not in it remain unread")
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

        environment = {
            "GITMEM_SIGNAL_ID": fields["signal_id"],
            "GITMEM_THREAD_ID": fields.get("thread_id") or "",
            "GITMEM_INTENT": fields["intent"],
            "GITMEM_SENDER": output.plain(fields["sender_identity"]),
        }
        if self.of.session is not None:
            environment["GITMEM_SESSION"] = self.of.session  # its `gitmem reply` acts as this reader
        event = render.watched_event(fields, self.of) + "\n"
        return run(
            self.command, input=event.encode("utf-8", "backslashreplace"), environment=environment,
            folder=self.at.folder, seconds=self.limit, stop=self.stop,
        )  # fmt: skip


class WatchEnded(Struct):
    """A flag that is set by SIGINT, SIGTERM or SIGHUP.

    A second signal interrupts a blocked operation, too, such as a write to a reader that does not read.
    """

    _set: bool = False
    _before: dict[int, object] = {}

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
    """Return a hint on --as for a person in a worktree with an agent's session; otherwise ""."""
    from gitmem.agents import presence

    meant = of.caller.is_person and presence.of_worktree(store)
    return "; use `--as NAME` to watch for an agent" if meant else ""


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


MAX_BYTES = 16 * 1024
MARK = "gitmem signal:received: the last signals, newest last."
RULE = "\n\n"
_BETWEEN = re.compile(
    r"\n\n(?=\[)"
)  # each signal begins with its head, and no line of a message begins like one


class SignalFile:
    """The last signals in a file, newest last, at most 16 KiB of them.

    Args:
        path: The file. The signals that an earlier watch left in it are kept.
        head: The rest of its first line.

    Raises:
        UsageError: The file can't be read, or has a text that is not ours.
    """

    def __init__(self, path: str, head: str) -> None:
        self.path = os.path.abspath(path)
        self.head = f"{MARK} {head}"
        _, *self._signals = _BETWEEN.split(_read(self.path).rstrip("\n"))

    def add(self, signals: Sequence[str]) -> None:
        """Add signals, in the form that is shown, with one atomic write.

        Raises:
            OSError: The file can't be written; the next write includes the signals.
        """
        for text in signals:
            if text in self._signals:
                self._signals.remove(text)
            self._signals.append(text)
        size = 0
        for at in range(len(self._signals) - 1, -1, -1):
            size += len((RULE + self._signals[at]).encode())
            if size > MAX_BYTES and at < len(self._signals) - 1:
                del self._signals[: at + 1]
                break
        content = RULE.join([self.head, *self._signals]) + "\n"
        local_files.replace(os.path.realpath(self.path), content.encode("utf-8", "backslashreplace"))


def _read(path: str) -> str:
    """Return the content of the file, which must be ours, empty, or missing."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            content = file.read()
    except FileNotFoundError:
        if not os.path.isdir(os.path.dirname(path)):
            raise UsageError(
                f"--write: the folder of {path} does not exist. Nothing was written.", code="no-such-folder"
            ) from None
        return ""
    except OSError as error:
        raise UsageError(
            f"--write: cannot read {path} ({error.strerror}). Nothing was written.", code="bad-file"
        ) from error
    if content.strip() and not content.startswith(MARK):
        raise UsageError(
            f"--write: {path} has other content. Nothing was written.",
            hint="Name a new file, or remove that one.",
            code="not-ours",
        )
    return content
