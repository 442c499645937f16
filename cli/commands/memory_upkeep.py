"""`gitmem mem promote|summarize|triage|index|archive|cleanup|delete|access`: turn notes into knowledge, and clear up."""

from __future__ import annotations

from gitmem.errors import UsageError

from ..environment import Environment
from ..render import memory as render
from ..values import duration, named_unit, parts, typed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    from .options import (
        PLAIN,
        Argument,
        DryRun,
        Flag,
        NodeReason,
        NodeWu,
        OnlyTags,
        OnlyWu,
        Option,
        Tag,
        TaxonomyTag,
    )


ACTIONS = ("list", "promote", "archive")
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
    if action not in ACTIONS or (action == "list" and named):
        raise UsageError(
            f"Invalid action for triage: {action if action not in ACTIONS else named[0]!r}. Nothing was written.",
            hint="Choose from: list, promote ID, archive ID... --reason TEXT.",
            code="usage",
            next=["gitmem mem triage", "gitmem mem triage --help"],
        )
    _check(action, {name for name, value in given.items() if value is not None}, len(named))
    from gitmem.memory import triage as operation

    store = at.memory()
    if action == "promote":
        unit = operation.promote(store, at.caller(), named[0], wu=wu)
        at.answer(unit, render.became_unit)
    elif action == "archive":
        at.answer(operation.archive(store, at.caller(), named, reason=reason or ""), render.format_archived)
    else:
        at.answer(operation.listing(store, wu=named_unit(at, wu), tag=tag, limit=LIMIT), render.triaged)


_TAKES = {
    "list": {"--wu", "--tag"},
    "promote": {"--wu"},
    "archive": {"--reason"},
}


def _check(action: str, given: set[str], count: int) -> None:
    """Reject options and a missing id that do not fit the action.

    Raises:
        UsageError: An option does not belong to the action, or an id is missing.
    """
    wrong = sorted(given - _TAKES[action])
    if wrong:
        raise UsageError(
            f"Invalid option for `triage {action}`: {wrong[0]}. Nothing was written.",
            hint=f"Valid options: {', '.join(sorted(_TAKES[action]))}.",
            code="usage",
            next=["gitmem mem triage --help"],
        )
    if action != "list" and not count:
        raise UsageError(
            f"Missing node id to {action}. Nothing was written.",
            hint="Take an id from the list.",
            code="usage",
            next=["gitmem mem triage"],
        )
    if action == "promote" and count > 1:
        raise UsageError(
            "triage promote takes one node. Nothing was written.",
            hint="Promote the nodes one by one, or promote one and relate the others to it.",
            code="usage",
        )


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
