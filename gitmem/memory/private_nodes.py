"""Answers about shared nodes together with the caller's private ones."""

from __future__ import annotations

import os

from ..errors import UsageError
from ..text.shell_quote import command
from . import private_store, resolve_node
from .private_store import PrivateStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeVar

    from ..agents.caller import Caller
    from ..store import Store
    from .versioned_node import VersionedNode

    FindCaller = Callable[[], Caller | None]
    Item = TypeVar("Item")


def of_caller(store: Store, find_caller: FindCaller | None) -> PrivateStore | None:
    """Return the private nodes of a caller, or None if it has none. The caller is found only if somebody has some.

    Raises:
        StoreError: They cannot be read.
    """
    if (
        find_caller is None
        or isinstance(store, PrivateStore)
        or not os.path.lexists(private_store.root(store.repo))
    ):
        return None
    caller = find_caller()
    if caller is None or not os.path.lexists(private_store.folder_of(store.repo, caller.reader)):
        return None
    return private_store.open_for(store, caller)


def holding(store: Store, caller: Caller, node_ids: Sequence[str]) -> Store:
    """Return the store that has the nodes to change: the private one of the caller if they are private.

    Raises:
        UsageError: Some of them are private and others are not. Nothing was written.
    """
    own = of_caller(store, lambda: caller)
    private = [id for id in node_ids if own is not None and resolve_node.is_in(own.db(), id)]
    if own is None or not private:
        return store
    if len(private) < len(node_ids):
        raise UsageError(
            "Some of these nodes are private and others are not. Nothing was written.",
            hint="Change them by two commands.",
            code="private-nodes",
            next=[command("gitmem", "mem", "show", private[0])],
        )
    return own


def mark(nodes: Iterable[VersionedNode]) -> None:
    """Mark nodes as private, for those who show them."""
    for node in nodes:
        node.private = True


def merge(one: Sequence[Item], other: Sequence[Item], key: Callable[[Item], object]) -> Iterator[Item]:
    """Yield the items of two lists by a key; the order within each list stays."""
    first, second = list(one), list(other)
    while first and second:
        yield (first if key(first[0]) <= key(second[0]) else second).pop(0)  # type: ignore[operator]  # keys are comparable
    yield from first
    yield from second
