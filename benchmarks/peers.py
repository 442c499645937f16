"""`python -m benchmarks.peers [--quick]`: compare gitmem with other programs for the same purpose.

They are installed from the package index, each into its own environment and home, and removed at the end.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial

from . import __main__ as installed
from .background_processes import AdoptedProcesses
from .measure import cpu, show_progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .mailboxes import Mailbox
    from .workbench import Workbench

UNREAD = 5
PEER = "hcom"  # the fastest of the other programs
WRITERS = 32


class Size:
    """How much is measured."""

    def __init__(self, *, messages: int, rounds: int, writers: int) -> None:
        self.messages = messages
        self.rounds = rounds
        self.writers = writers


FULL = Size(messages=10_000, rounds=31, writers=WRITERS)
QUICK = Size(messages=1_000, rounds=5, writers=8)


def main() -> int:
    """Parse the command line and measure; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller numbers, for a first look")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gitmem-peers-") as folder:
        if installed.INSIDE not in os.environ:
            return installed.install_and_run(folder, "benchmarks.peers", sys.argv[1:])
        from .mailboxes import Gitmem, GitmemLibrary
        from .other_mailboxes import AgentMailCli, Hcom, McpAgentMail
        from .workbench import QUICK as STAGE_SIZE
        from .workbench import Workbench

        workbench = Workbench(folder, os.path.dirname(sys.executable), STAGE_SIZE)
        os.environ.update(workbench.environment)  # the library starts git in this process's environment
        kinds = (Gitmem, GitmemLibrary, AgentMailCli, Hcom, McpAgentMail)
        print(measure(workbench, QUICK if asked.quick else FULL, kinds))
    return 0


def measure(workbench: Workbench, size: Size, kinds: Sequence[type[Mailbox]]) -> str:
    """Return the two tables in Markdown."""
    candidates = []
    try:
        for kind in kinds:
            mailbox = kind(workbench, _programs(workbench, kind.version))
            candidates.append(mailbox)
            started = time.monotonic()
            mailbox.begin(size.writers)
            mailbox.fill(size.messages)
            show_progress(
                f"{mailbox.name}: {size.messages:,} messages after {time.monotonic() - started:.0f} s"
            )
        with AdoptedProcesses() as adopted:
            took = _alone(candidates, size, adopted)
            adopted.wait()
            together = _together(candidates, size, adopted)
    finally:
        for mailbox in candidates:
            mailbox.end()
    versions = ", ".join(str(mailbox.version) for mailbox in candidates if mailbox.version)
    machine = f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}; {versions}"
    return "\n\n".join((machine, _table_alone(took, size), *_against(took), together))


def _programs(workbench: Workbench, wanted: str | None) -> str:
    if wanted is None:
        return workbench.programs
    show_progress(f"installing {wanted}")
    where = os.path.join(workbench.folder, "peer-" + wanted.partition("=")[0])
    subprocess.run([sys.executable, "-m", "venv", where], check=True)
    programs = os.path.join(where, "bin")
    pip = [os.path.join(programs, "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, wanted], check=True, stdout=sys.stderr)
    return programs


class Timings:
    """The measurements of one program."""

    def __init__(self) -> None:
        self.send: list[float] = []
        self.send_cpu: list[float] = []
        self.inbox: list[float] = []
        self.inbox_cpu: list[float] = []
        self.bytes = 0


def _alone(candidates: list[Mailbox], size: Size, adopted: AdoptedProcesses) -> dict[Mailbox, Timings]:
    """Measure one send and one inbox, each program in turn. Background processes of one end before the next starts."""
    took = {mailbox: Timings() for mailbox in candidates}
    for _ in range(size.rounds + 1):
        for mailbox, each in took.items():
            send = mailbox.sending(0)
            each.send.append(_timed(mailbox, send, each.send_cpu))
            for _ in range(UNREAD - 1):
                send()
            shown: list[str] = []
            each.inbox.append(_timed(mailbox, partial(_read, mailbox, shown), each.inbox_cpu))
            (text,) = shown
            assert text.count("boundary of the index") == UNREAD, f"{mailbox.name} showed {text}"
            each.bytes = len(text.encode())
            adopted.wait()
    return took


def _read(mailbox: Mailbox, shown: list[str]) -> None:
    shown.append(mailbox.read())


def _table_alone(took: dict[Mailbox, Timings], size: Size) -> str:
    rows = [
        f"| with {size.messages:,} messages there | one send, ms (CPU, mean) | inbox with {UNREAD} unread, ms (CPU, mean) | what it shows, bytes |",
        "|---|--:|--:|--:|",
    ]
    for mailbox, each in took.items():
        cells = [_pair(each.send, each.send_cpu), _pair(each.inbox, each.inbox_cpu), f"{each.bytes:,}"]
        rows.append(f"| {mailbox.name} ({mailbox.note}) | {' | '.join(cells)} |")
    return "\n".join(rows)


def _against(took: dict[Mailbox, Timings]) -> list[str]:
    """Return how our sends compare with those of `PEER`; nothing if that was not measured."""
    sends = {mailbox.name: statistics.median(each.send[1:]) for mailbox, each in took.items()}
    peer = sends.pop(PEER, None)
    if peer is None:
        return []
    ours = (f"{name}: {each / peer:.2f} ×" for name, each in sends.items() if name.startswith("gitmem"))
    return [f"One send against {PEER}'s program, wall: {'; '.join(ours)}."]


def _pair(wall: list[float], used: list[float]) -> str:
    return f"{statistics.median(wall[1:]):.1f} ({statistics.fmean(used[1:]):.1f})"


def _timed(mailbox: Mailbox, body: Callable[[], object], used: list[float]) -> float:
    """Return wall milliseconds; append those of CPU to `used`: ours, the children's and the server's."""
    before, start = _cpu(mailbox.pid), time.perf_counter()
    body()
    passed = (time.perf_counter() - start) * 1e3
    used.append((_cpu(mailbox.pid) - before) * 1e3)
    return passed


def _cpu(server: int | None) -> float:
    """Return the CPU seconds of a server and its children, or otherwise of this process and its children."""
    if server is None:
        return cpu()
    with open(f"/proc/{server}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _together(candidates: list[Mailbox], size: Size, adopted: AdoptedProcesses) -> str:
    """Measure many writers at once."""
    rows = [
        f"| {size.writers} writers at once | sends of each | sends/s | p50, ms | p95, ms | longest, ms | ok | errors | stored − ok |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for mailbox in candidates:
        before = mailbox.stored()
        ok, errors, took = _race(mailbox, size.writers)
        mailbox.stop_writers()
        adopted.wait()
        more = mailbox.stored() - before - len(ok)
        ok.sort()
        at = [ok[min(len(ok) - 1, int(len(ok) * share))] if ok else float("nan") for share in (0.5, 0.95, 1)]
        cells = [str(mailbox.each), f"{len(ok) / took:.1f}", *(f"{each:,.0f}" for each in at)]
        rows.append(f"| {mailbox.name} | {' | '.join(cells)} | {len(ok)} | {errors} | {more:+d} |")
        show_progress(rows[-1])
    return "\n".join(rows)


def _race(mailbox: Mailbox, writers: int) -> tuple[list[float], int, float]:
    """Return the milliseconds of each successful send, the number of failures, and the seconds of the whole race."""
    start = threading.Barrier(writers + 1)
    ok: list[float] = []
    failed: list[str] = []

    def write(number: int) -> None:
        send = mailbox.sending_at_once(number)
        start.wait()
        for _ in range(mailbox.each):
            began = time.perf_counter()
            try:
                send()
            except Exception as error:
                failed.append(str(error))
            else:
                ok.append((time.perf_counter() - began) * 1e3)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    start.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    if failed:
        show_progress(f"{mailbox.name}: {failed[0]}")
    return ok, len(failed), time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
