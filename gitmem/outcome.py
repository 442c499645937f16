"""Outcomes: results of operations, as values whose fields are those of their JSON form; their next commands; progress until then."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from typing import Any, ClassVar, Protocol, Self, dataclass_transform

    # Receives the progress of an operation: the name of a step, how much of it is done, and how much there is in all.
    Progress = Callable[[str, int, int], object]

    # The fields of a class, those without default, and those whose default is copied, with what copies it.
    Layout = tuple[tuple[str, ...], tuple[str, ...], tuple[tuple[str, Callable[[], object]], ...]]

    class Reporting(Protocol):
        """What reports progress: a store."""

        progress: Progress | None

else:

    def dataclass_transform(**_: object):  # noqa: D103 - `typing` costs an import at start-up
        return lambda made: made


@dataclass_transform(eq_default=False)
class Struct:
    """A value with the fields that its class annotates, in their order, which are the arguments of its constructor.

    What the class assigns to a field is its default. Lists, dicts and sets of the class are copied, not what is in them.
    With `kw_only`, whose arguments are named, a field without default may follow one with it.
    """

    __slots__: ClassVar[Collection[str]] = ()
    _layout: ClassVar[Layout | None] = None

    def __init_subclass__(cls, *, kw_only: bool = False) -> None:
        cls._layout = None  # made for the first value: most classes that a command loads have none

    def __init__(self, *args: Any, **fields: Any) -> None:
        names, required, fresh = self._layout or self._lay_out()
        for name, value in zip(names, args):  # noqa: B905 - mypy counts them
            fields[name] = value  # noqa: PERF403 - half the time of a comprehension
        for name, copy in fresh:
            if name not in fields:
                fields[name] = copy()
        for name in required:
            if name not in fields:
                raise TypeError(f"{type(self).__name__} has no {name}.")
        self.__dict__ = fields  # type: ignore[misc]  # subclasses without slots have it

    @classmethod
    def _lay_out(cls) -> Layout:
        """Return `Layout`, and keep it."""
        kinds: dict[str, str] = {}
        for base in cls.__mro__[::-1]:
            kinds |= getattr(base, "__annotations__", {})
        names = tuple(name for name, kind in kinds.items() if not kind.startswith("ClassVar"))
        defaults = {name: getattr(cls, name) for name in names if hasattr(cls, name)}
        fresh = tuple((name, it.copy) for name, it in defaults.items() if isinstance(it, (list, dict, set)))
        cls._layout = names, tuple(name for name in names if name not in defaults), fresh
        return cls._layout

    @classmethod
    def taken_from(cls, source: object, /, **fields: Any) -> Self:
        """Return one with the attributes or keys of another value that have the names of fields, and with the fields given."""
        names = cls._lay_out()[0]
        if isinstance(source, dict):
            found = {name: source[name] for name in names if name in source}
        else:
            found = {name: getattr(source, name) for name in names if hasattr(source, name)}
        return cls(**{**found, **fields})

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._names())
        return f"{type(self).__name__}({fields})"

    def _names(self) -> Collection[str]:
        """Return the names of the fields; of a class with a constructor of its own its slots or attributes, if it annotates none."""
        return self.__slots__ or (self._layout or self._lay_out())[0] or vars(self)


class Outcome(Struct):
    """Base of all outcomes. The fields are those of the JSON form."""

    __slots__ = ()

    def as_json(self) -> dict[str, object]:
        """Return all fields, always; nested outcomes become objects."""
        return {name: plain(getattr(self, name)) for name in self._names()}


class Written(Outcome, kw_only=True):
    """Base of the outcomes of operations that write.

    Attributes:
        commit: The commit of what was written; None until there is one.
        recorded: Whether something was written.
        warnings: What the writer should know.
        next: The commands to run next.
    """

    commit: str | None = None
    recorded: bool = False
    warnings: list[str] = []
    next: list[str] = []

    def as_json(self) -> dict[str, object]:
        """Return the JSON form, in which the fields of this class are the last."""
        found = super().as_json()
        return found | {name: found.pop(name) for name in Written._lay_out()[0]}


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


def operands(paths: Iterable[str]) -> list[str]:
    """Return paths as arguments of a command, which would take one that begins with a dash for an option."""
    return [f"./{each}" if each.startswith("-") else each for each in paths]
