"""Outcomes: results of operations, as values whose fields are those of their JSON form; their next commands; progress until then."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Protocol

    # Receives the progress of an operation: the name of a step, how much of it is done, and how much there is in all.
    Progress = Callable[[str, int, int], object]

    class Reporting(Protocol):
        """What reports progress: a store."""

        progress: Progress | None


class Outcome:
    """Base of all outcomes. The attributes, or the slots if it has any, in their order, are the fields of the JSON form."""

    __slots__: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        """Return all fields, always; nested outcomes become objects."""
        return {name: plain(getattr(self, name)) for name in self.__slots__ or vars(self)}

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__ or vars(self))
        return f"{type(self).__name__}({fields})"


class PartOfAnswer(Outcome):
    """A part of several answers, which they show as lines.

    `said` is what its lines say that another part may say, too: ids of tasks, handoffs and claims, and whole sentences.
    `steps` are the commands that its lines ask for.
    """

    __slots__ = ()

    @property
    def said(self) -> list[str]:
        """See the class."""
        return []

    @property
    def steps(self) -> list[str]:
        """See the class."""
        return []

    def lines(self, without: Collection[str] = (), *, whole: bool = False, via: str = "gitmem") -> list[str]:
        """Return its lines. They may have what peers wrote: sanitize them.

        Args:
            without: What the answer says already, as in `said`.
            whole: Include what the caller knows already.
            via: The program, with the options that its commands need to act as the reader.
        """
        raise NotImplementedError


def plain(value: object) -> object:
    """Return a value in JSON form: outcomes become objects, tuples and sets become lists."""
    if isinstance(value, Outcome):
        return value.as_json()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(plain(item) for item in value)  # type: ignore[type-var]  # sets here hold strings
    return value


class OneStep:
    """A context that reports a part of one step of an operation, instead of what the index would report meanwhile.

    Args:
        store: The store.
        step: The name of the step.
        done: How much is done before.
        then: How much is done after.
        total: How much there is in all.
    """

    def __init__(self, store: Reporting, step: str, done: int, then: int, total: int) -> None:
        self._store = store
        self._step = step
        self._counts = done, then, total
        self._progress: Progress | None = None

    def __enter__(self) -> None:
        self._progress, self._store.progress = self._store.progress, None
        self._report(self._counts[0])

    def __exit__(self, *_: object) -> None:
        self._store.progress = self._progress
        self._report(self._counts[1])

    def _report(self, done: int) -> None:
        if self._progress is not None:
            self._progress(self._step, done, self._counts[2])


_SAFE = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%_+=:,./-"


def quote(arg: str) -> str:
    """Return one argument, quoted if necessary: `shlex.quote` without importing `re`."""
    if arg and not arg.strip(_SAFE):
        return arg
    return "'" + arg.replace("'", "'\"'\"'") + "'"


def command(*args: str) -> str:
    """Return a whole command, each argument quoted if necessary."""
    return " ".join(quote(arg) for arg in args)
