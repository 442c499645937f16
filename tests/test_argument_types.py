"""The library refuses arguments of a wrong type with a sentence, at every entry point, and records nothing."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import gitmem
from gitmem.api import _declared
from gitmem.errors import GitmemError, UsageError

VALUES = [None, 5, -1, "5s", "", b"x", 3.5, object(), [], [5], {}, {5: 5}, int, True]
SKIPPED = {
    "close",
    "serve",
    "watch",
    "batch",
    "sync",
    "acall",
    "acall_stream",
    "call_stream",
}  # they wait, or end the log
MORE = ("limit", "name", "agent_identity", "metadata", "dry_run", "threshold", "ttl", "max_size", "format", "text", "only", "progress")  # fmt: skip


@pytest.fixture
def log(repo: Path) -> Iterator[Any]:
    """A log with a node, a signal and a task."""
    with gitmem.open(repo, identity="codex:planner:shop", commit_after=3600) as found:
        found.sessions.start(name="Planck")
        yield found


def entries(log: Any) -> Iterator[tuple[Callable[..., Any], Callable[..., Any]]]:
    """Yield the methods of the library, each with the function that declares its types."""
    for owner in (log, log.memory, log.tasks, log.claims, log.signals, log.sessions):
        for name in sorted(set(dir(owner)) - SKIPPED):
            found = inspect.getattr_static(type(owner), name, None)
            found = found.__func__ if isinstance(found, staticmethod) else found
            if not name.startswith("_") and inspect.isfunction(found):
                yield getattr(owner, name), inspect.unwrap(found)


def tried(log: Any) -> Iterator[tuple[Callable[..., Any], list[Any], dict[str, Any]]]:
    """Yield each method with arguments of which one is any of the values."""
    node = log.memory.append("x").node.id
    good = {
        "message": "m", "node": node, "id": node, "ids": [node], "from_id": node, "to_id": node, "type": "relates_to", "tag": "decision",
        "signal_id": log.signals.send("hi", broadcast=True).signal["signal_id"], "paths": ["a"], "wu": "WU-1", "agents": "nobody",
    }  # fmt: skip
    for method, function in entries(log):
        parameters = [each for each in inspect.signature(function).parameters.values() if each.name != "self"]
        needed = {
            each.name: good.get(each.name, "x")
            for each in parameters
            if each.default is each.empty and each.kind < 4
        }
        rest = next((each for each in parameters if each.kind is each.VAR_POSITIONAL), None)
        if rest is not None:
            needed.pop(rest.name)
        names = [each.name for each in parameters if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
        if any(each.kind is each.VAR_KEYWORD for each in parameters):
            names += [each for each in (*_declared(function), *MORE) if each not in ("", "return", *names)]
        for name in names:
            for value in VALUES:
                yield (
                    method,
                    [],
                    {**needed, name: value, **({"wait": False} if method.__name__ == "call" else {})},
                )
        for value in VALUES if rest is not None else ():
            yield method, [value], needed


def test_no_argument_ends_in_an_error_of_python(log: Any) -> None:
    """Only an option that a method does not have is a TypeError, as of any function."""
    count, wrong = 0, []
    for method, given, options in tried(log):
        count += 1
        try:
            method(*given, **options)
        except GitmemError:
            pass
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            is_unknown = any(
                each in said
                for each in ("unexpected keyword", "has no option", "multiple values", "Unknown filters")
            )
            if not (isinstance(error, TypeError) and is_unknown):
                wrong.append((method.__qualname__, options, said))
    assert wrong == []
    assert count > 2_000


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda log: log.call("Bohr", "x", timeout="5s"), "Invalid timeout: '5s'; a number or None is valid. Nothing was written."),
        (lambda log: log.signals.send("x", to="Curie"), "Invalid to: 'Curie'; a list or None is valid. Nothing was written."),
        (lambda log: log.memory.select(tags=[5]), "Invalid tags: [5]; a list or None is valid. Nothing was written."),
        (lambda log: log.inbox(wu=5), "Invalid wu: 5; a text or None is valid. Nothing was written."),
        (lambda log: log.thread(None), "Invalid id: None; a text is valid. Nothing was written."),
    ],
)  # fmt: skip
def test_the_sentence_names_argument_value_and_what_is_valid(
    log: Any, call: Callable[[Any], object], sentence: str
) -> None:
    with pytest.raises(UsageError) as caught:
        call(log)
    assert (caught.value.message, caught.value.code) == (sentence, "bad-type")


def test_a_validation_answers_for_everything(log: Any) -> None:
    """None is no node, and that is what validation says."""
    for value in (None, 5, "x", [1], b""):
        assert "must be an object" in log.memory.validate_node(value)
        assert "must be an object" in log.memory.validate_relation(value)
