"""gitmem: agents that share a git repository exchange signals, agree on changes and keep a memory.

>>> import gitmem
>>> log = gitmem.open(".", session="sess-…")  # doctest: +SKIP
>>> log.signals.send("Approve this boundary?", to=["Curie"], intent="PROPOSE")  # doctest: +SKIP

The names below are loaded on first use (PEP 562), to keep the import cheap.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .api import Log, open
    from .errors import GateError, GitmemError, RemoteError, StoreError, UsageError
    from .invocation.call_result import CallError
    from .invocation.served_task import DirectAnswer, InputNeededError, TaskRejectedError

__version__ = "0.1.0"
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
    "GitmemError": "errors",
    "GateError": "errors",
    "UsageError": "errors",
    "StoreError": "errors",
    "RemoteError": "errors",
    "Log": "api",
    "open": "api",
    "CallError": "invocation.call_result",
    "DirectAnswer": "invocation.served_task",
    "InputNeededError": "invocation.served_task",
    "TaskRejectedError": "invocation.served_task",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
