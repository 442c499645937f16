"""What a call hands over: working memory by value, and nodes of the memory by reference.

It passes six stages: acquisition, encoding, derivation, retrieval, relations and utilization. Nothing is handed over
that was not asked for, nothing is cut, and what is left out is named with its reason.
"""

from __future__ import annotations

from ..commit_message import cut, sanitize
from ..errors import SecretError, UsageError
from ..memory import load, private_nodes, relations, search
from ..records.ids import unit_key
from ..text.secrets import find_in, has_marker
from . import bundle_encoding, working_memory
from .bundle_content import BUDGET_BYTES, MEMORY, Bundle, PackedContext
from .bundle_encoding import FORMAT

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from ..agents.caller import Caller
    from ..memory.versioned_node import VersionedNode
    from ..store import Store

NODES_MAX = 20  # nodes by reference
_OF_UNIT = (
    "SELECT id, wu_id IS NOT NULL AND wu_id = ?1 FROM node WHERE state = 0 AND (wu_id = ?1 OR lifecycle = 'project')"
    " ORDER BY (wu_id IS NOT NULL AND wu_id = ?1) DESC, coalesce(priority, 'P4'), touched DESC, id LIMIT ?2"
)


class _Reference:
    """A node that is handed over by reference, with the reason."""

    def __init__(self, node: VersionedNode, why: str) -> None:
        self.node = node
        self.why = why


def build(
    store: Store,
    caller: Caller,
    *,
    context: bool | Mapping[str, Any] | None = None,
    variables: Mapping[str, Any] | None = None,
    memory_query: bool | str | Sequence[str] | None = None,
    budget: int = BUDGET_BYTES,
    allow_secret: bool = False,
    by_value: bool = False,
) -> Bundle:
    """Return what a call hands over. Nothing is written.

    Args:
        context: True for the caller's working memory; or the parts to hand over instead: `goal` (a text), `variables` (an
            object), `decisions`, `open_questions` and `thoughts` (lists of texts, or of objects with a `text`).
        variables: Values by name, beside either.
        memory_query: True for the nodes of the caller's work unit and the project; words to search for; or ids of nodes.
        budget: The most bytes. What the caller gives itself must fit; of the rest what fits is handed over.
        allow_secret: Hand over text that looks like a secret.
        by_value: Hand over the content of nodes too, to an agent that does not read this log.

    Raises:
        UsageError: A value is not JSON, or is too large for the budget (`bad-context`); as SecretError, it has a secret.
            Nothing was written.
    """
    bundle = Bundle(budget)
    own, items = _acquire(store, caller, bundle, context, variables or {}, allow_secret=allow_secret)
    _encode(bundle, own, items)
    references = _retrieve(store, caller, bundle, memory_query, allow_secret=allow_secret)
    sources = _derive(store.db(), bundle, references)
    links = _relate(store.db(), bundle, items, references)
    _utilize(bundle, own, items, references, sources, links, by_value=by_value)
    return bundle


def _acquire(
    store: Store,
    caller: Caller,
    bundle: Bundle,
    context: bool | Mapping[str, Any] | None,
    variables: Mapping[str, Any],
    *,
    allow_secret: bool,
) -> tuple[dict[str, Any], list[working_memory.Item]]:
    """Stage 1: take what was asked for, without what must not leave its writer."""
    values = context if context is not None and not isinstance(context, bool) else {}
    own = working_memory.given(values, variables)
    for name, value in own.items():
        if not allow_secret:
            _refuse_secret(name, value)
    found: list[working_memory.Item] = []
    if context is True:
        goal = working_memory.Item("goal", "goal", working_memory.goal(caller))
        items = (
            [goal, *working_memory.items(store, caller)]
            if goal.value
            else [*working_memory.items(store, caller)]
        )
        searched = not allow_secret and _may_hold_secret([item.value for item in items])
        for item in items:
            why = _why_not(item.value, item.node, searched=searched)
            if why:
                bundle.leave_out(item.id, why)
            elif item is goal:
                own["goal"] = goal.value
            else:
                found.append(item)
    bundle.stages["acquisition"] = {
        "given": sum(len(value) if isinstance(value, list) else 1 for value in own.values()),
        "taken": len(found),
        "filtered": len(bundle.omitted),
    }
    return own, found


def _refuse_secret(name: str, value: Any) -> None:
    parts = value.items() if name == "variables" else [("", value)]
    for part, each in parts:
        found = find_in([part, each])
        if found:
            what = f"Variable {cut(sanitize(part), 60)}" if part else f"The {name} of the context"
            raise SecretError(
                f"{what} seems to contain {found.what}. Nothing was written.",
                hint="Remove it: others can read the log once it is pushed. "
                "If it is not a secret, a person may allow it with --allow-secret; an agent must ask its user first.",
            )


def _may_hold_secret(values: Sequence[object]) -> bool:
    """Return whether values must be searched one by one: quick, and mostly False."""
    return has_marker("\n".join(bundle_encoding.texts(values)))


def _why_not(value: object, node: VersionedNode | None, *, searched: bool) -> str:
    """Return why something is not handed over; "" if it may be.

    Args:
        searched: Whether to search the value for secrets.
    """
    if node is not None and (node.sensitive or node.private):
        return "is sensitive" if node.sensitive else "is private"
    if node is not None and node.is_hidden:
        return f"is {node.status}"
    found = find_in(value) if searched else None
    return f"seems to contain {found.what}" if found else ""


def _encode(bundle: Bundle, own: Mapping[str, Any], items: Sequence[working_memory.Item]) -> None:
    """Stage 2: encode all without loss; the sizes decide later what fits."""
    sizes = [bundle_encoding.size(item.value) for item in items]
    bundle.stages["encoding"] = {
        "items": len(items),
        "bytes": sum(sizes) + (bundle_encoding.size(own) if own else 0),
    }


def _retrieve(
    store: Store,
    caller: Caller,
    bundle: Bundle,
    query: bool | str | Sequence[str] | None,
    *,
    allow_secret: bool,
) -> list[_Reference]:
    """Stage 4: find the nodes that the target needs, best first."""
    db = store.db()
    if query is None or query is False:
        matches = []
    elif query is True or query == "":
        rows = db.execute(_OF_UNIT, (unit_key(caller.wu_id) or None, NODES_MAX)).fetchall()
        whys = {id: f"of {caller.wu_id}" if is_of_unit else "of the project" for id, is_of_unit in rows}
        matches = [_Reference(node, whys[node.id]) for node in load.load(db, whys)]
    elif isinstance(query, str):
        hits = search.recall(store, query, limit=NODES_MAX, stale=False)
        said = cut(sanitize(query), 60)
        matches = [_Reference(hit.node, f"matches {said}: {_MATCHED[hit.matched]}") for hit in hits]
    else:
        matches = [_Reference(_named(store, id), "named by the caller") for id in query]
    found: list[_Reference] = []
    values = [bundle_encoding.node_values(each.node) for each in matches]
    searched = not allow_secret and _may_hold_secret(values)
    for each, value in zip(matches, values, strict=True):
        why = _why_not(value, each.node, searched=searched)
        if why:
            bundle.leave_out(each.node.id, why)
        elif each.node.id not in {other.node.id for other in found}:
            found.append(each)
    bundle.stages["retrieval"] = {"matched": len(matches), "filtered": len(matches) - len(found)}
    return found


_MATCHED = {"all": "all words", "begin": "the beginnings of its words", "some": "some of its words"}


def _named(store: Store, id: str) -> VersionedNode:
    if private_nodes.is_private(store, id):
        raise UsageError(
            f"Private node: {id}; it stays in this clone. Nothing was written.",
            hint="Say what the other agent needs in the text of the call.",
            code="private-nodes",
        )
    return load.load_one(store.db(), private_nodes.find_node(store.db(), id, writing=True))


def _derive(db: sqlite3.Connection, bundle: Bundle, references: Sequence[_Reference]) -> dict[str, list[str]]:
    """Stage 3: find what each node was derived from, so that it is not separated from its sources.

    It follows the retrieval, because it is about the nodes that this has found.
    """
    found = {}
    for each in references:
        origins = [to for source, to, type in relations.relations_of(db, each.node.id)
                   if source == each.node.id and type == "discovered_from"]  # fmt: skip
        summarized = each.node.metadata.get("source_nodes")
        listed = [id for id in summarized if isinstance(id, str)] if isinstance(summarized, list) else []
        if sources := list(dict.fromkeys([*origins, *listed]))[:NODES_MAX]:
            found[each.node.id] = sources
    bundle.stages["derivation"] = {"insights": len(found), "sources": sum(map(len, found.values()))}
    return found


def _relate(
    db: sqlite3.Connection,
    bundle: Bundle,
    items: Iterable[working_memory.Item],
    references: Iterable[_Reference],
) -> list[tuple[str, str, str]]:
    """Stage 5: find the relations between the nodes that are handed over."""
    ids = {each.node.id for each in references} | {item.id for item in items if item.node is not None}
    every = {link for id in sorted(ids) for link in relations.relations_of(db, id)}
    found = sorted(link for link in every if link[0] in ids and link[1] in ids)
    bundle.stages["relations"] = {"found": len(found), "to others": len(every) - len(found)}
    return found


def _utilize(
    bundle: Bundle,
    own: Mapping[str, Any],
    items: Sequence[working_memory.Item],
    references: Sequence[_Reference],
    sources: Mapping[str, Sequence[str]],
    links: Sequence[tuple[str, str, str]],
    *,
    by_value: bool,
) -> None:
    """Stage 6: put what fits into the budget, in the order in which the target needs it."""
    if not (own or items or references or bundle.omitted):
        bundle.stages["utilization"] = {"sent": 0, "omitted": 0, "bytes": 0}
        return
    packed = PackedContext(bundle, {"format": FORMAT, **own})
    for each in references:
        value = {"id": each.node.id, "digest": bundle_encoding.node_digest(each.node), "why": each.why}
        more: dict[str, Any] = {"sources": list(sources[each.node.id])} if each.node.id in sources else {}
        if by_value:
            more["node"] = bundle_encoding.node_values(each.node)
        packed.add(MEMORY, each.node.id, {**value, **more})
    for item in items:
        packed.add(item.section, item.id, item.value)
    for from_id, to_id, type in links:
        if packed.ids.issuperset((from_id, to_id)):
            packed.add(
                "relations", f"{from_id} {type} {to_id}", {"from_id": from_id, "type": type, "to_id": to_id}
            )
    packed.finish()
