"""The measurements and their limits. Each limit is a ratio to a floor that is measured in the same run."""

from __future__ import annotations

from collections.abc import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .measure import Figure
    from .workbench import Workbench


def _of(module: str, name: str) -> Callable[[Workbench], list[Figure]]:
    """Return a measurement that imports its module when it runs.

    Therefore the command that builds the wheel needs no installed packages.
    """

    def measure(workbench: Workbench) -> list[Figure]:
        from importlib import import_module

        found: Callable[[Workbench], list[Figure]] = getattr(import_module(f"{__package__}.{module}"), name)
        return found(workbench)

    return measure


ROWS: dict[str, Callable[[Workbench], list[Figure]]] = {
    "inbox": _of("startup", "inbox"),
    "signal": _of("startup", "signal"),
    "everyday": _of("startup", "everyday"),
    "task-list": _of("tasks", "task_list"),
    "call": _of("calls", "calls"),
    "call-transfer": _of("transfer", "transfer"),
    "signal-syncs": _of("syscalls", "syncs"),
    "signal-git": _of("syscalls", "git_processes"),
    "signal-commit": _of("commits", "isolated"),
    "until-commit": _of("commits", "after_answer"),
    "send": _of("appends", "sends"),
    "writers": _of("appends", "writers"),
    "growth": _of("reading", "growth"),
    "catch-up": _of("reading", "catching_up"),
    "first-look": _of("attesting", "first_look"),
    "merge": _of("startup", "merge"),
    "size": _of("packing", "bursts"),
    "size-attested": _of("packing", "attested"),
    "overlap": _of("overlap", "overlap"),
    "view": _of("page", "view"),
    "why": _of("why", "why"),
    "doctor": _of("doctor", "doctor"),
    "doctor-memory": _of("doctor", "doctor_memory"),
    "context": _of("memory", "context"),
    "recall": _of("memory", "recall"),
    "recall-typo": _of("memory", "recall_typo"),
    "archive": _of("memory", "archive"),
    "creates": _of("memory", "creates"),
    "hook": _of("hooks", "quiet"),
    "hook-signal": _of("hooks", "one_signal"),
    "hook-tokens": _of("hooks", "tokens"),
    "watch": _of("watching", "latency"),
    "watch-idle": _of("watching", "idle"),
    "page-browser": _of("page_in_chromium", "page_browser"),
    "top": _of("screen", "screen"),
    "sync-nothing": _of("syncing", "nothing"),
    "sync-10000": _of("syncing", "apart"),
    "contention-20": _of("contention", "twenty"),
    "contention-50": _of("contention", "fifty"),
}
# Measured only if they are named: they take long.
ON_DEMAND: dict[str, Callable[[Workbench], list[Figure]]] = {
    "inbox-million": _of("reading", "million"),
    "kept-up": _of("packing", "kept_up"),
}
EVERY = {**ROWS, **ON_DEMAND}
