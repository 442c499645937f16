"""The library: what `gitmem.open` returns. Here is what all of its methods do first: check arguments against the declared types, and let one thread at a time in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from importlib import import_module
from inspect import CO_VARARGS, Parameter, signature, unwrap

from ..commit_message import cut
from ..errors import GitmemError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

    from ..agents.caller import Caller, CallerClaims
    from ..store import Store

    P = ParamSpec("P")
    R = TypeVar("R")
    T = TypeVar("T", bound=Callable[..., Any])
    Owner = TypeVar("Owner", bound=type)

    class Opened(Protocol):
        """An open log: its store and its caller."""

        store: Store
        who: CallerClaims

        @property
        def caller(self) -> Caller:
            """The caller in whose name records are written."""
            ...


SHOWN_MAX, ITEMS_MAX = 60, 1_000
# Where the options are declared that methods take as `Unpack[NAME]`.
_OPTIONS = {
    "CallOptions": "gitmem.calls.call",
    "SignalOptions": "gitmem.signals.signal_options",
    "TaskOptions": "gitmem.work.new_task",
}
# Options that have one type wherever they occur, for methods that pass options on.
_SHARED = {
    **dict.fromkeys(("wu", "type", "lifecycle", "path", "session", "lane", "priority", "status", "role", "model", "agent_identity"), "str|None"),
    **dict.fromkeys(("tags", "scope", "capabilities"), "Sequence[str]|None"), **dict.fromkeys(("since", "before"), "int|None"),
}  # fmt: skip
_LIST = ("list", "Sequence", "Iterable", "Collection", "tuple", "set")
_WORDS: dict[str, tuple[Any, str]] = {
    "None": (type(None), "None"), "VersionedNode": ((), "a node"), "str": (str, "a text"), "bool": (bool, "True or False"), "int": (int, "a whole number"),
    "float": ((int, float), "a number"), "Mapping": (Mapping, "a dict"), "dict": (dict, "a dict"), "Callable": (Callable, "a function"),
    "Function": (Callable, "a function"), **dict.fromkeys(_LIST, (Iterable, "a list")),
}  # fmt: skip


GIVEN = ("store", "caller")  # what a method gets from its log


def method(operation: Callable[Concatenate[Store, Caller, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Return an operation as a method: it declares the parameters and their meaning; store and caller are those of the log."""

    @wraps(operation)
    def call(self: Any, *args: P.args, **options: P.kwargs) -> R:
        return operation(self._log.store, self._log.caller, *args, **options)

    found = signature(operation)
    own = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    rest = [each for each in found.parameters.values() if each.name not in GIVEN]
    call.__signature__ = found.replace(parameters=[own, *rest])  # type: ignore[attr-defined]  # for documentation
    return call  # type: ignore[return-value]  # mypy keeps the name `self`


def checked(function: T) -> T:
    """Let a function of the library raise UsageError (`bad-type`) for an argument of another type than it declares."""
    declared: dict[str, str] = {}
    code = unwrap(function).__code__
    names = code.co_varnames[: code.co_argcount]
    if names[:2] == GIVEN:
        names = ("", *names[2:])
    rest = code.co_varnames[code.co_argcount + code.co_kwonlyargcount] if code.co_flags & CO_VARARGS else ""

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if not declared:
            declared.update(_declared(function))
        more = ((rest, each) for each in args[len(names) :])
        for name, value in (*zip(names, args, strict=False), *more, *options.items()):
            _check(name, value, declared.get(name, ""))
        try:
            return function(*args, **options)
        except GitmemError:
            raise
        except Exception as error:
            _blame(error.__traceback__, options)
            raise

    return call  # type: ignore[return-value]


def checked_methods(owner: Owner) -> Owner:
    """Check the arguments of all public methods of a class; return it."""
    for name, value in list(vars(owner).items()):
        if name.startswith("_"):
            continue
        if isinstance(value, staticmethod):
            setattr(owner, name, staticmethod(checked(value.__func__)))
        elif type(value) is type(checked):
            setattr(owner, name, checked(value))
    return owner


def serialized(owner: Owner) -> Owner:
    """Let one thread at a time into the public methods of a class: threads share the store's SQLite connections.

    Args:
        owner: A class whose objects have the store as `store`, or as `_log.store`.
    """

    def locked(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(self: Any, *args: Any, **options: Any) -> Any:
            with getattr(self, "_log", self).store.lock:
                return method(self, *args, **options)

        return call

    for name, value in list(vars(owner).items()):
        if not name.startswith("_") and type(value) is type(serialized):
            setattr(owner, name, locked(value))
    return checked_methods(owner)


def _declared(function: Callable[..., Any]) -> dict[str, str]:
    """Return the declared types by parameter, those of options included."""
    found = {name: str(text) for name, text in function.__annotations__.items()}
    if "Any" in found.values():
        found = {**_SHARED, **found}
    for text in [each for each in found.values() if each.startswith("Unpack[")]:
        name = text[len("Unpack[") : -1]
        if name not in _OPTIONS:
            continue
        options = getattr(import_module(_OPTIONS[name]), name)
        for field, kind in options.__annotations__.items():
            whole = str(getattr(kind, "__forward_arg__", kind))
            found[field] = whole[len("NotRequired[") : -1] if whole.startswith("NotRequired[") else whole
    return {"": "", **found}


def _check(name: str, value: object, declared: str) -> None:
    """Raise UsageError if a value is certainly of none of the declared types."""
    kinds = _parts(declared)
    if not kinds or any(_may_be(value, each) for each in kinds):
        return
    valid = " or ".join(dict.fromkeys(_WORDS[each.partition("[")[0]][1] for each in kinds))
    shown = cut(ascii(value), SHOWN_MAX)
    raise UsageError(f"Invalid {name}: {shown}; {valid} is valid. Nothing was written.", code="bad-type")


def _may_be(value: object, kind: str) -> bool:
    name, _, inner = kind.partition("[")
    known = _WORDS.get(name)
    if known is None:
        return True
    if name in _LIST and isinstance(value, (str, bytes, Mapping)):
        return False
    if type(value).__name__ == name:
        return True
    if not isinstance(value, known[0]) or (name in ("int", "float") and isinstance(value, bool)):
        return False
    if name in _LIST and isinstance(value, (list, tuple)) and (of := _parts(inner.removesuffix("]"))):
        return all(any(_may_be(each, kind) for kind in of) for each in value[:ITEMS_MAX])
    return True


def _parts(declared: str) -> list[str]:
    """Return the types of a union."""
    found, depth = [""], 0
    for char in declared:
        depth += (char == "[") - (char == "]")
        if char == "|" and not depth:
            found.append("")
        elif char != " ":
            found[-1] += char
    return [each for each in found if each]


def _blame(trace: TracebackType | None, options: Mapping[str, object]) -> None:
    """Raise UsageError for an option that a function of gitmem, which failed, declares with another type."""
    while trace is not None:
        frame = trace.tb_frame
        name = frame.f_code.co_name
        function = frame.f_globals.get(name) or getattr(frame.f_locals.get("self"), name, None)
        for each, text in getattr(function, "__annotations__", {}).items():
            if each in options and frame.f_locals.get(each) is options[each]:
                _check(each, options[each], str(text))
        trace = trace.tb_next
