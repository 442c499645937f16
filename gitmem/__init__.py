"""gitmem: agents that share a git repository exchange signals, agree on changes and keep a memory.

>>> import gitmem
>>> log = gitmem.open(".", session="sess-…")  # doctest: +SKIP
>>> log.signals.send("Approve this boundary?", to=["Curie"], intent="PROPOSE")  # doctest: +SKIP

The names below are loaded on first use (PEP 562), to keep the import cheap.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .api.log import Log, open
    from .calls.call_result import CallError
    from .calls.worker import DirectAnswer, InputNeededError, TaskRejectedError
    from .errors import GateError, GitmemError, RemoteError, StoreError, UsageError

__version__ = "1.0.0rc1"
__all__ = [
    "CallError",
    "DirectAnswer",
    "GateError",
    "GitmemError",
    "InputNeededError",
    "Log",
    "RemoteError",
    "StoreError",
    "TaskRejectedError",
    "UsageError",
    "__version__",
    "open",
]

_HOMES = {
    "GitmemError": "gitmem.errors",
    "GateError": "gitmem.errors",
    "UsageError": "gitmem.errors",
    "StoreError": "gitmem.errors",
    "RemoteError": "gitmem.errors",
    "Log": "gitmem.api.log",
    "open": "gitmem.api.log",
    "CallError": "gitmem.calls.call_result",
    "DirectAnswer": "gitmem.calls.worker",
    "InputNeededError": "gitmem.calls.worker",
    "TaskRejectedError": "gitmem.calls.worker",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value
