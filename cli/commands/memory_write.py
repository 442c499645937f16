"""`gitmem mem create|update|relate|checkpoint`."""

from __future__ import annotations

from gitmem.errors import UsageError

from ..environment import Environment
from ..render import memory as render
from ..values import metadata, named_unit, parts, typed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    from .options import (
        MODEL,
        PLAIN,
        Argument,
        Done,
        Flag,
        Meta,
        NewLifecycle,
        NewMeta,
        NewNodeWu,
        NewPaths,
        NewTags,
        NodeIds,
        NodePaths,
        NodeReason,
        NodeWu,
        Option,
        Priority,
        Private,
        Quiet,
        Sensitive,
        Supersedes,
        Tags,
        Type,
        Verified,
    )


# `--clear` accepts names of options, too, for the fields that have another name.
FIELD_OF = {"wu": "wu_id", "session": "session_id", "tag": "tags", "path": "paths", "meta": "metadata"}


def create(
    at: Environment,
    text: Annotated[
        str | None, Argument("[TEXT]", "The text of the node; - reads standard input."), PLAIN
    ] = None,
    type: Type = None,
    lifecycle: NewLifecycle = None,
    wu: NodeWu = None,
    priority: Priority = None,
    tag: Tags = None,
    path: NodePaths = None,
    meta: Meta = None,
    sensitive: Sensitive = False,
    private: Private = False,
    discovered_from: Annotated[
        str | None, Option("--discovered-from", "ID", "The node it was discovered from.")
    ] = None,
    supersedes: Supersedes = None,
    quiet: Quiet = False,
) -> None:
    """Record a finding, a bug or a decision. Work unit and session default to your session's."""
    from gitmem.memory import edit

    options: dict[str, object] = {
        "type": type, "lifecycle": lifecycle, "wu": named_unit(at, wu), "priority": priority,
        "tags": parts(tag), "paths": at.paths(path or ()), "metadata": metadata(meta), "sensitive": sensitive,
        "discovered_from": discovered_from, "supersedes": parts(supersedes),
    }  # fmt: skip
    if text is None:
        raise UsageError(
            "Missing text. Nothing was written.",
            hint="Example: `gitmem mem create 'The parser drops tabs' --type bug`",
            next=["gitmem mem create --help"],
        )
    created = edit.create(at.memory(), at.caller(), typed(text, "text") or "", private=private, **options)
    at.answer(created, render.created, only=[created.node.id] if quiet else None)


def update(
    at: Environment,
    id: NodeIds,
    text: Annotated[str | None, Option("--content", "TEXT", "New text."), PLAIN] = None,
    status: Annotated[
        str | None, Option("--status", "S", "New status: active, closed, archived or deleted."), MODEL
    ] = None,
    wu: NewNodeWu = None,
    priority: Priority = None,
    tag: NewTags = None,
    path: NewPaths = None,
    meta: NewMeta = None,
    reason: NodeReason = None,
    verified: Verified = False,
    clear: Annotated[
        list[str] | None,
        Option(
            "--clear",
            "FIELD",
            "Clear a field: priority, tags, wu, session, lane, paths, sensitive, closed, archived, deleted, reason, "
            "summarized_into or metadata. May be repeated.",
        ),
    ] = None,
) -> None:
    """Change fields of nodes. Concurrent changes of other fields are kept."""
    from gitmem.memory import edit, node_fields
    from gitmem.order.node import STATUSES

    options: dict[str, object] = {
        "content": typed(text, "text"),
        "wu": named_unit(at, wu), "priority": priority, "tags": parts(tag),
        "paths": at.paths(path or ()), "metadata": metadata(meta), "reason": reason,
    }  # fmt: skip
    empty = [FIELD_OF.get(name, name) for name in parts(clear)]
    if status is not None:
        word = node_fields.one_of("status", status, STATUSES)
        empty += [name for name in STATUSES[1:] if word == "active"]
        options |= {word: True} if word != "active" else {}
    changed = edit.change(at.memory(), at.caller(), id, verified=verified, clear=empty, **options)
    at.answer(changed, render.changed)


def relate(
    at: Environment,
    from_id: Annotated[
        str, Argument("FROM", "The source node: the blocker, the parent, the result, the newer one.")
    ],
    type: Annotated[str, Argument("TYPE", "blocks, parent_child, related, discovered_from or supersedes.")],
    to_id: Annotated[
        str, Argument("TO", "The target node: the blocked one, the child, the origin, the older one.")
    ],
    remove: Annotated[bool, Flag("--remove", "Remove the relation.")] = False,
) -> None:
    """Link two nodes."""
    from gitmem.memory import relations

    related = relations.relate(at.memory(), at.caller(), from_id, type, to_id, remove=remove)
    at.answer(related, render.related)


def checkpoint(
    at: Environment,
    text: Annotated[str, Argument("[NOTE]", "State of the work; - reads standard input."), PLAIN] = "",
    progress: Annotated[str | None, Option("--progress", "TEXT", "Completed work."), PLAIN] = None,
    next_steps: Annotated[str | None, Option("--next-steps", "TEXT", "Remaining work."), PLAIN] = None,
    trigger: Annotated[
        str | None, Option("--trigger", "TEXT", "Trigger of the checkpoint, such as pre-compact.")
    ] = None,
    wu: NodeWu = None,
    meta: Meta = None,
    done: Done = False,
) -> None:
    """Record the state of the work. Includes git's diff stat; `gitmem mem recover` shows it."""
    from gitmem.memory import checkpoints as operation

    created = operation.checkpoint(
        at.store(), at.caller(), typed(text, "note"), progress=progress,
        next_steps=next_steps, trigger=trigger, wu=named_unit(at, wu), metadata=metadata(meta),
        done=done,
    )  # fmt: skip
    at.answer(created, render.checkpointed)
