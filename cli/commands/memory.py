"""`gitmem show` of a node, and `gitmem mem …`: what agents know, and what is done with it."""

from __future__ import annotations

from gitmem.errors import UsageError

from ..environment import Environment
from ..render import memory as render
from ..render import output
from ..values import duration, metadata, named_unit, number, parts, typed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    from gitmem.memory.context import Context, Recovered

    from .options import (
        MODEL,
        PLAIN,
        Archived,
        Argument,
        AsOf,
        Done,
        DryRun,
        Flag,
        Lifecycle,
        ListLimit,
        MaxSize,
        Meta,
        NewLifecycle,
        NewMeta,
        NewNodeWu,
        NewPaths,
        NewTags,
        NodeId,
        NodeIds,
        NodePaths,
        NodeReason,
        NodeWu,
        NoRoster,
        OnlyTags,
        OnlyWu,
        Option,
        Path,
        Priority,
        Private,
        ProfileLimit,
        Quiet,
        ReadyLimit,
        ReadyType,
        SearchLimit,
        Sensitive,
        Supersedes,
        Tag,
        Tags,
        TaxonomyTag,
        TrackAccess,
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
    from gitmem.memory import edit

    related = edit.relate(at.memory(), at.caller(), from_id, type, to_id, remove=remove)
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


def show(at: Environment, id: NodeId) -> int:
    """Show one node in full. Prints its text, relations and changes."""
    from gitmem.memory import listing as operation

    found = operation.show(at.memory(), id)
    at.answer(found, render.shown)
    return 1 if found.ambiguous else 0


def listing(
    at: Environment,
    wu: OnlyWu = None,
    type: Type = None,
    lifecycle: Lifecycle = None,
    tag: OnlyTags = None,
    path: Path = None,
    status: Annotated[
        str | None,
        Option("--status", "S", "Only nodes with this status: active, closed, archived or deleted."),
    ] = None,
    limit: ListLimit = None,
    include_archived: Archived = False,
) -> None:
    """List nodes, newest first."""
    from gitmem.memory import listing as operation

    found = operation.listing(
        at.memory(), wu=named_unit(at, wu), type=type, lifecycle=lifecycle, tags=parts(tag),
        path=at.paths([path])[0] if path else path,
        status=status,
        limit=number("--limit", limit, operation.LIMIT), include_archived=include_archived,
    )  # fmt: skip
    at.answer(found, render.listed)


def ready(
    at: Environment,
    wu: NodeWu = None,
    type: ReadyType = None,
    limit: ReadyLimit = None,
) -> None:
    """List nodes and your tasks that can be begun. Most important first, with tasks for your role, and what blocks the others of the work unit."""
    from gitmem.memory import listing as operation
    from gitmem.work import task_list

    found = task_list.ready_work(
        at.memory(),
        at.caller_if_any(),
        named_unit(at, wu),
        type=type,
        limit=number("--limit", limit, operation.READY_LIMIT),
    )
    at.answer(found, render.ready)


def export(
    at: Environment,
    format: Annotated[
        str | None, Option("--format", "F", "markdown, json or jsonl (default: markdown).")
    ] = None,
    wu: OnlyWu = None,
) -> None:
    """Print the memory as one document."""
    from gitmem.memory import listing as operation

    found = operation.export(
        at.store(), format=format or ("json" if at.json else "markdown"), wu=named_unit(at, wu),
    )  # fmt: skip
    if at.json and found.format != "json":
        values = {
            "format": found.format,
            "count": found.count,
            "filters": found.filters,
            "document": found.document,
        }
        output.answer_values(True, values, (), found.next)
    elif at.json:
        at.answer(found, lambda _: ())
    elif found.document:
        output.write_lines([found.document])


def search(
    at: Environment,
    text: Annotated[list[str], Argument("TEXT...", "Words; quoted words must be adjacent."), PLAIN],
    wu: Annotated[OnlyWu, PLAIN] = None,
    type: Type = None,
    tag: Annotated[OnlyTags, PLAIN] = None,
    path: Path = None,
    limit: SearchLimit = None,
    include_archived: Archived = False,
) -> None:
    """Search nodes by words, best match first. Exit 0 even if nothing is found."""
    from gitmem.memory import search as operation

    found = operation.search(
        at.memory(), " ".join(text), wu=named_unit(at, wu), type=type,
        tags=parts(tag), path=at.paths([path])[0] if path else path,
        limit=number("--limit", limit, operation.LIMIT), include_archived=include_archived,
    )  # fmt: skip
    at.answer(found, render.matching)


def context(
    at: Environment,
    wu: NodeWu = None,
    max_size: MaxSize = None,
    no_roster: NoRoster = False,
    track_access: TrackAccess = False,
    as_of: AsOf = None,
) -> None:
    """Print the nodes for a work unit. Fits them into a byte budget, for a prompt: the last checkpoint always, then the newest first. Who works on what is listed, too (--no-roster: not). With nothing to say it prints nothing."""
    from gitmem.memory import context as operation

    at.store().asks_once = True
    found = operation.context_at(
        at.store(),
        at.caller() if track_access else at.caller_if_any(),
        as_of=as_of,
        wu=named_unit(at, wu),
        max_size=number("--max-size", max_size, operation.MAX_SIZE),
        roster=not no_roster,
        track_access=track_access,
    )
    _print_block(at, found)


def recover(
    at: Environment,
    session: Annotated[
        str | None, Option("--session", "ID", "The session to recover (default: yours).")
    ] = None,
    wu: NodeWu = None,
    max_size: MaxSize = None,
) -> None:
    """Restore context after compaction. Print your session, its last checkpoint, later events, and the memory context."""
    from gitmem.memory import context as operation

    found = operation.recover(
        at.store(),
        at.caller() if session is None and wu is None else at.caller_if_any(),
        session=session,
        wu=named_unit(at, wu),
        max_size=number("--max-size", max_size, operation.MAX_SIZE),
    )
    _print_block(at, found)


def _print_block(at: Environment, found: Context | Recovered) -> None:
    """Print only the block, for a prompt: its size is limited, and nothing may be added to it."""
    if at.json:
        at.answer(found, render.packed)
    elif found.block:
        output.write(found.block)


def profile(
    at: Environment,
    limit: ProfileLimit = None,
    tag: Tag = None,
) -> None:
    """Show the nodes of project scope. Newest first, with the number of uses of each tag."""
    from gitmem.memory import context as operation

    found = operation.profile(at.memory(), limit=number("--limit", limit, operation.PROFILE_LIMIT), tag=tag)
    at.answer(found, render.profile)


_TAKES = {"list": ("--wu", "--tag"), "promote": ("--wu",), "archive": ("--reason",)}  # actions of triage
LIMIT = 50  # nodes of a list


def promote(
    at: Environment,
    id: Annotated[str | None, Argument("[ID]", "A node id (mem-…) or a unique prefix."), PLAIN] = None,
    wu: Annotated[str | None, Option("--wu", "ID", "All summaries of this work unit."), PLAIN] = None,
    tag: TaxonomyTag = None,
    dry_run: DryRun = False,
) -> None:
    """Promote nodes to project scope. Takes one node, or the summaries of a work unit. Idempotent."""
    from gitmem.memory import knowledge as operation

    found = operation.promote(
        at.store(),
        at.caller(dry_run=dry_run),
        node=id,
        wu=named_unit(at, wu),
        tag=tag,
        dry_run=dry_run,
    )
    at.answer(found, render.promoted)


def summarize(
    at: Environment,
    wu: NodeWu = None,
    text: Annotated[
        str | None,
        Option(
            "--text",
            "TEXT",
            "The summary text (default: the first lines of the nodes); - reads standard input.",
        ),
    ] = None,
) -> None:
    """Summarize a work unit in one node. Covers nodes without a summary, and marks each node it covers."""
    from gitmem.memory import knowledge as operation

    unit = named_unit(at, wu) if wu is not None else at.caller().wu_id
    if not unit:
        raise UsageError(
            "Missing work unit: your session has none. Nothing was written.",
            hint="Name it, such as --wu WU-7.",
            code="no-wu",
            next=["gitmem mem summarize --help"],
        )
    found = operation.summarize(at.store(), at.caller(), unit, text=typed(text, "summary"))
    at.answer(found, render.summarized)


def triage(
    at: Environment,
    action: Annotated[str, Argument("[list|promote|archive]", "The action (default: list).")] = "list",
    ids: Annotated[list[str] | None, Argument("[ID...]", "The nodes to promote or archive.")] = None,
    wu: Annotated[
        str | None,
        Option(
            "--wu", "ID", "list: only nodes of this work unit, or `unlinked`. promote: the new work unit."
        ),
    ] = None,
    tag: Tag = None,
    reason: NodeReason = None,
) -> None:
    """List, promote or archive open discoveries. Also lists stale nodes; promote makes a work unit of one."""
    given = {"--tag": tag, "--reason": reason, "--wu": wu}
    named = ids or []
    fits = {"list": not named, "promote": len(named) == 1, "archive": bool(named)}
    wrong = [
        name for name, value in given.items() if value is not None and name not in _TAKES.get(action, ())
    ]
    if wrong or not fits.get(action):
        raise UsageError(
            f"Invalid arguments of triage: {' '.join([action, *named, *wrong])[:80]!r}. Nothing was written.",
            hint="Choose from: list [--wu ID] [--tag T], promote ID [--wu ID], archive ID... --reason TEXT.",
            code="usage",
            next=["gitmem mem triage", "gitmem mem triage --help"],
        )
    from gitmem.memory import triage as operation

    store = at.memory()
    if action == "promote":
        unit = operation.promote(store, at.caller(), named[0], wu=wu)
        at.answer(unit, render.became_unit)
    elif action == "archive":
        at.answer(operation.archive(store, at.caller(), named, reason=reason or ""), render.format_archived)
    else:
        at.answer(operation.listing(store, wu=named_unit(at, wu), tag=tag, limit=LIMIT), render.triaged)


def index(
    at: Environment,
    source: Annotated[
        list[str] | None,
        Option(
            "--source",
            "FILE=TAG",
            "An additional file, such as docs/RULES.md=index:conventions. May be repeated.",
        ),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Record README and similar files as nodes. Writes one node per file, and updates the nodes of changed files."""
    from gitmem.memory import sources as operation

    given = []
    for each in source or ():
        path, equals, tags = each.rpartition("=")
        given.append(f"{at.paths([path])[0]}={tags}" if equals and path else each)
    found = operation.index(at.store(), at.caller(dry_run=dry_run), sources=given, dry_run=dry_run)
    at.answer(found, render.indexed)


def archive(
    at: Environment,
    ids: Annotated[list[str] | None, Argument("[ID]...", "Only these nodes (default: decayed ones).")] = None,
    threshold: Annotated[
        str | None, Option("--threshold", "N", "Archive nodes with a lower score (default: 0.1).")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Archive decayed nodes, or the named ones. --include-archived shows them. Project nodes, open P0 and P1 and last checkpoints are kept."""
    from gitmem.memory import edit
    from gitmem.memory import upkeep as operation

    if ids:
        if threshold is not None or dry_run:
            raise UsageError("The options select nodes; they go without ids. Nothing was written.")
        at.answer(edit.change(at.memory(), at.caller(), ids, archived=True), render.changed)
        return
    archived = operation.archive(
        at.memory(), at.caller(dry_run=dry_run), threshold=score(threshold), dry_run=dry_run,
    )  # fmt: skip
    at.answer(archived, render.archived)


def cleanup(
    at: Environment,
    ttl: Annotated[str | None, Option("--ttl", "30d", "Delete nodes older than this.")] = None,
    session: Annotated[
        str | None, Option("--session", "ID", "Delete this session's nodes of lifecycle `session`.")
    ] = None,
    decay: Annotated[bool, Flag("--decay", "Also archive decayed nodes.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Delete expired nodes. These are ephemeral and summarized nodes, and those selected by options."""
    from gitmem.memory import upkeep as operation

    cleaned = operation.cleanup(
        at.store(), at.caller(dry_run=dry_run), ttl=micros(ttl), session=session, decay=decay,
        dry_run=dry_run,
    )  # fmt: skip
    at.answer(cleaned, render.cleaned)


def delete(
    at: Environment,
    id: Annotated[list[str] | None, Argument("[ID]...", "Node ids or unique prefixes."), PLAIN] = None,
    tag: OnlyTags = None,
    older_than: Annotated[str | None, Option("--older-than", "30d", "Only nodes older than this.")] = None,
    wu: OnlyWu = None,
    dry_run: DryRun = False,
) -> None:
    """Delete nodes by id or by filters. `gitmem mem update ID --clear deleted` restores a node."""
    from gitmem.memory import upkeep as operation

    deleted = operation.delete(
        at.memory(), at.caller(dry_run=dry_run), id or (), tags=parts(tag), older_than=micros(older_than), wu=named_unit(at, wu),
        dry_run=dry_run,
    )  # fmt: skip
    at.answer(deleted, render.deleted)


def score(text: str | None) -> float:
    """Return a decay score, or the default. The operation checks that it is above 0.

    Raises:
        UsageError: The text is not a number.
    """
    from gitmem.memory.decay import THRESHOLD

    try:
        return THRESHOLD if text is None else float(text)
    except ValueError:
        raise UsageError(
            f"Invalid number: {text!r}. Nothing was written.",
            hint="Give a number above 0, such as 0.1 (the default).",
            code="bad-threshold",
        ) from None


def micros(text: str | None) -> int | None:
    """Return a duration in microseconds, or None.

    Raises:
        UsageError: The text is not a duration.
    """
    return None if text is None else int(duration(text) * 1_000_000)
