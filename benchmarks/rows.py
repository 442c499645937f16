"""The measurements and their limits. Each limit is a ratio to a floor that is measured in the same run."""

from __future__ import annotations

from collections.abc import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .measure import Figure
    from .stage import Stage


def _of(module: str, name: str) -> Callable[[Stage], list[Figure]]:
    """Return a measurement that imports its module when it runs.

    Therefore the command that builds the wheel needs no installed packages.
    """

    def measure(stage: Stage) -> list[Figure]:
        from importlib import import_module

        found: Callable[[Stage], list[Figure]] = getattr(import_module(f"{__package__}.{module}"), name)
        return found(stage)

    return measure


ROWS: dict[str, Callable[[Stage], list[Figure]]] = {
    "inbox": _of("startup", "inbox"),
    "signal": _of("startup", "signal"),
    "everyday": _of("startup", "everyday"),
    "signal-syncs": _of("syscalls", "syncs"),
    "signal-git": _of("syscalls", "git_processes"),
    "signal-commit": _of("commits", "isolated"),
    "until-commit": _of("commits", "after_answer"),
    "send": _of("appends", "sends"),
    "writers": _of("appends", "writers"),
    "growth": _of("reading", "growth"),
    "catch-up": _of("reading", "catching_up"),
    "merge": _of("startup", "merge"),
    "size": _of("packing", "bursts"),
    "doctor": _of("checkup", "doctor"),
    "doctor-memory": _of("checkup", "doctor_memory"),
    "context": _of("memory", "context"),
    "recall": _of("memory", "recall"),
    "archive": _of("memory", "archive"),
    "creates": _of("memory", "creates"),
    "hook": _of("hooks", "quiet"),
    "hook-signal": _of("hooks", "one_signal"),
    "hook-tokens": _of("hooks", "tokens"),
    "watch": _of("watching", "latency"),
    "watch-idle": _of("watching", "idle"),
    "sync-nothing": _of("syncing", "nothing"),
    "sync-10000": _of("syncing", "apart"),
    "contention-20": _of("contention", "twenty"),
    "contention-50": _of("contention", "fifty"),
}
# Measured only if they are named: they take long.
ON_DEMAND: dict[str, Callable[[Stage], list[Figure]]] = {
    "inbox-million": _of("reading", "million"),
    "kept-up": _of("packing", "kept_up"),
}
EVERY = {**ROWS, **ON_DEMAND}
