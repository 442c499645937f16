"""`gitmem mem create|update|relate|checkpoint`."""

from __future__ import annotations

from gitmem.errors import UsageError

from ..environment import Environment
from ..render import memory as render
from ..values import metadata, named_unit, parts, typed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

    from .. import shared_options as shared
    from .options import (
        Done,
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
        str | None,
        typer.Argument(metavar="[TEXT]", help="The text of the node; - reads standard input."),
        shared.PLAIN,
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
        str | None, typer.Option("--discovered-from", metavar="ID", help="The node it was discovered from.")
    ] = None,
    supersedes: Supersedes = None,
    jsonl: Annotated[
        bool,
        typer.Option(
            "--jsonl",
            help="Read nodes from standard input, one JSON object per line, and write them in one commit. Keys: "
            "content, type, lifecycle, wu, session, lane, priority, tags, paths, metadata, sensitive, "
            "discovered_from, supersedes.",
        ),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Record a finding, a bug or a decision. Work unit and session default to your session's."""
    from gitmem.memory import edit

    options: dict[str, object] = {
        "type": type, "lifecycle": lifecycle, "wu": named_unit(at, wu), "priority": priority,
        "tags": parts(tag), "paths": at.paths(path or ()), "metadata": metadata(meta), "sensitive": sensitive,
        "discovered_from": discovered_from, "supersedes": parts(supersedes),
    }  # fmt: skip
    if jsonl == (text is not None):
        raise UsageError(
            "Missing text. Nothing was written."
            if text is None
            else "--jsonl reads the nodes from standard input and takes no text argument. Nothing was written.",
            hint="Example: gitmem mem create 'The parser drops tabs' --type bug",
            next=["gitmem mem create --help"],
        )
    if jsonl:
        given = {name: value for name, value in options.items() if value}
        from .. import values

        many = [{**given, **node} for node in values.stdin_objects()]
        appended = edit.append(at.memory(), at.caller(), many, private=private)
        at.answer(appended, render.appended, only=[node.id for node in appended.nodes] if quiet else None)
        return
    created = edit.create(at.memory(), at.caller(), typed(str(text), "text"), private=private, **options)
    at.answer(created, render.created, only=[created.node.id] if quiet else None)


def update(
    at: Environment,
    id: NodeIds,
    text: Annotated[
        str | None, typer.Option("--content", metavar="TEXT", help="New text."), shared.PLAIN
    ] = None,
    status: Annotated[
        str | None,
        typer.Option("--status", metavar="S", help="New status: active, closed, archived or deleted."),
        shared.MODEL,
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
        typer.Option(
            "--clear",
            metavar="FIELD",
            help="Clear a field: priority, tags, wu, session, lane, paths, sensitive, closed, archived, deleted, reason, "
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
        str,
        typer.Argument(
            metavar="FROM", help="The source node: the blocker, the parent, the result, the newer one."
        ),
    ],
    type: Annotated[
        str,
        typer.Argument(metavar="TYPE", help="blocks, parent_child, related, discovered_from or supersedes."),
    ],
    to_id: Annotated[
        str,
        typer.Argument(
            metavar="TO", help="The target node: the blocked one, the child, the origin, the older one."
        ),
    ],
    remove: Annotated[bool, typer.Option("--remove", help="Remove the relation.")] = False,
) -> None:
    """Link two nodes."""
    from gitmem.memory import relations

    related = relations.relate(at.memory(), at.caller(), from_id, type, to_id, remove=remove)
    at.answer(related, render.related)


def checkpoint(
    at: Environment,
    text: Annotated[
        str, typer.Argument(metavar="[NOTE]", help="State of the work; - reads standard input."), shared.PLAIN
    ] = "",
    progress: Annotated[
        str | None, typer.Option("--progress", metavar="TEXT", help="Completed work."), shared.PLAIN
    ] = None,
    next_steps: Annotated[
        str | None, typer.Option("--next-steps", metavar="TEXT", help="Remaining work."), shared.PLAIN
    ] = None,
    trigger: Annotated[
        str | None,
        typer.Option("--trigger", metavar="TEXT", help="Trigger of the checkpoint, such as pre-compact."),
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
