"""Make many new nodes at once, column by column. `new_nodes` handles all input that is not plainly valid."""

from __future__ import annotations

from .. import records
from ..errors import UsageError
from ..records import bulk_lines, ids
from . import anchors, node_fields
from .versioned_node import NewNodes, VersionedNode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ..agents.caller import Caller
    from ..store import Store

    Given = Sequence[Mapping[str, object]]

PLAIN = frozenset(
    ("content", "type", "lifecycle", "wu", "session", "lane", "priority", "tags", "paths", "sensitive")
)
EMPTY = ("metadata", "discovered_from", "supersedes")  # must not be given here


def make_nodes(
    store: Store, caller: Caller, given: Given, head: tuple[str | None, str | None], *, allow_secret: bool
) -> NewNodes | None:
    """Return new nodes, their lines, and the columns that the index reads of them.

    Args:
        head: The commit and the branch of this worktree's HEAD.

    Returns:
        None if a node is not plainly valid, or has metadata or a source: use `new_nodes` then.

    Raises:
        StoreError: The clone key is damaged.
    """
    try:
        columns = _columns(given, caller)
    except (UsageError, TypeError):  # TypeError: an unhashable value is invalid
        return None
    if columns is None:
        return None
    count = len(given)
    columns["id"] = ids.new_ids("mem", count, store.random)
    for name, value in (
        ("head", head[0]),
        ("branch", head[1]),
        ("sender_identity", caller.reader),
        ("sender_session", caller.session_id),
        ("sender_name", caller.name),
    ):
        columns[name] = [value] * count
    mac = store.keys.for_writing()
    first = store.log.clock.tick(count)
    found = bulk_lines.lines("node", first, columns, allow_secret=allow_secret, mac=mac)
    if found is None:
        return None
    lines, group = found
    nodes = [
        VersionedNode(record, line, at).settle()
        for at, (record, line) in enumerate(zip(group[2], lines, strict=True), first)
    ]
    return NewNodes([(records.STREAMS["node"], line) for line in lines], nodes, group=group)


def _columns(given: Given, caller: Caller) -> dict[str, list[Any]] | None:
    """Return the fields of nodes as `new_nodes` makes them, one list of values for each field.

    Returns:
        None if a node is not plainly valid.

    Raises:
        UsageError, TypeError: A value is invalid; `new_nodes` reports which.
    """
    names = {name for each in given for name in each}
    if not names <= {*PLAIN, *EMPTY} or any(
        each.get(name) for each in given for name in names.intersection(EMPTY)
    ):
        return None
    types = _each([each.get("type") or node_fields.DEFAULT_TYPE for each in given], node_fields.node_type)
    usual = [node_fields.LIFECYCLE_OF[type] for type, _ in types]
    lifecycles = _each(
        [each.get("lifecycle") or by_type for each, by_type in zip(given, usual, strict=True)],
        lambda text: node_fields.one_of("lifecycle", text, node_fields.LIFECYCLES),
    )
    contents = [each.get("content") for each in given]
    if set(map(type, contents)) != {str} or not all(map(str.strip, contents)):  # type: ignore[arg-type]  # they are texts
        return None
    return {
        "schema_version": ["A2A.V1"] * len(given),
        "type": [type for type, _ in types],
        "lifecycle": lifecycles,
        "content": contents,
        "priority": _each(
            [each.get("priority") for each in given],
            lambda text: node_fields.one_of("priority", text, node_fields.PRIORITIES),
        ),
        "tags": _lists(
            [(of, each.get("tags")) for (_, of), each in zip(types, given, strict=True)],
            lambda of, more: node_fields.tags([*of, *node_fields.texts("tags", more)]),
        ),
        "wu_id": [
            wu or (None if lifecycle == "project" else caller.wu_id)
            for wu, lifecycle in zip(
                _each([each.get("wu") for each in given], node_fields.work_unit), lifecycles, strict=True
            )
        ],
        "session_id": [each.get("session") or caller.session_id for each in given],
        "lane": [each.get("lane") for each in given],
        "paths": _lists(
            [((), each.get("paths")) for each in given],
            lambda _, paths: anchors.validate_paths(node_fields.texts("paths", paths)),
        ),
        "sensitive": [node_fields.flag("sensitive", each.get("sensitive")) for each in given],
    }


def _each(texts: Sequence[object], check: Callable[[str], Any]) -> list[Any]:
    """Apply a check to each text, once for each distinct text; None stays None."""
    known: dict[object, Any] = {None: None}
    for text in set(texts):
        if text is not None:
            if type(text) is not str:
                raise TypeError
            known[text] = check(text)
    return [known[text] for text in texts]


def _lists(
    given: Sequence[tuple[tuple[str, ...], object]], check: Callable[[tuple[str, ...], object], list[str]]
) -> list[list[str]]:
    """Apply a check to each pair of texts and a list or a text of them; each result is a list of its own."""
    known: dict[object, list[str]] = {}
    found: list[list[str]] = []
    for first, more in given:
        if not first and more is None:
            found.append([])
            continue
        key = (first, tuple(more) if isinstance(more, list) else more)
        if key not in known:
            known[key] = check(first, more)
        found.append(list(known[key]))
    return found
