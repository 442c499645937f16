"""`gitmem mem promote|summarize|triage|index`: from what was noted to what the project knows."""

from __future__ import annotations

from gitmem.errors import UsageError

from ...environment import Environment
from ...render import output
from ...render.mem import knowledge as render
from ...values import number, parts, typed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

    from .options import AllowSecret, DryRun, Reason, Tag, Wu

ACTIONS = ("list", "promote", "archive")
LIMIT = 50


def promote(
    at: Environment,
    id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="A node id (mem-…), or a unique prefix of it.")
    ] = None,
    node: Annotated[str | None, typer.Option("--node", metavar="ID", help="The same as ID.")] = None,
    wu: Annotated[
        str | None, typer.Option("--wu", metavar="ID", help="All summaries of this work unit.")
    ] = None,
    tag: Annotated[
        str | None,
        typer.Option(
            "--tag",
            metavar="TAG",
            help="Required: decision, convention, pattern, pitfall, interface, invariant or faq.",
        ),
    ] = None,
    dry_run: DryRun = False,
    allow_secret: AllowSecret = False,
) -> None:
    """Make project knowledge of nodes. One node, or the summaries of a work unit; twice is as good as once."""
    from gitmem.memory import promote as operation

    if id is not None and node is not None and id != node:
        raise UsageError("ID and --node name different nodes; nothing was written.", code="usage")
    found = operation.promote(
        at.store(),
        at.caller(),
        node=id if id is not None else node,
        wu=wu,
        tag=tag or "",
        dry_run=dry_run,
        allow_secret=allow_secret,
    )
    output.answer(at.json, found, render.promoted)


def summarize(
    at: Environment,
    wu: Wu = None,
    text: Annotated[
        str | None,
        typer.Option("--text", metavar="TEXT", help="Your own summary, instead of first lines; - reads it."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="ID,ID", help="The nodes that it covers; all that are new."),
    ] = None,
    dry_run: DryRun = False,
    allow_secret: AllowSecret = False,
) -> None:
    """Sum up a work unit in one node. It takes what no summary covers yet, and marks each node that it covers."""
    from gitmem.memory import summarize as operation

    unit = wu if wu is not None else at.caller().wu_id
    if not unit:
        raise UsageError(
            "Nothing says which work unit to sum up; nothing was written.",
            hint="Such as --wu WU-7; without it that of your session counts, which has none.",
            code="no-wu",
            next=["gitmem mem summarize --help"],
        )
    found = operation.summarize(
        at.store(),
        at.caller(),
        unit,
        text=typed(text, "summary"),
        only=parts(only),
        dry_run=dry_run,
        allow_secret=allow_secret,
    )
    output.answer(at.json, found, render.summarized)


def triage(
    at: Environment,
    action: Annotated[
        str, typer.Argument(metavar="[list|promote|archive]", help="What to do; list without it.")
    ] = "list",
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID...]", help="What to promote or to archive.")
    ] = None,
    wu: Annotated[
        str | None,
        typer.Option(
            "--wu", metavar="ID", help="list: only nodes of it, or `unlinked`. promote: what the node became."
        ),
    ] = None,
    tag: Tag = None,
    limit: Annotated[
        str | None, typer.Option("--limit", metavar="N", help=f"list: nodes to show at most; {LIMIT}.")
    ] = None,
    lane: Annotated[
        str | None,
        typer.Option(
            "--lane",
            metavar="LANE",
            help="promote: the lane of the work unit; the node's without it, or your session's.",
        ),
    ] = None,
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="promote: instead of the first sentence.")
    ] = None,
    reason: Reason = None,
) -> None:
    """Open discoveries, and what the code outgrew. Make a work unit of one, or put it away."""
    given = {"--tag": tag, "--limit": limit, "--lane": lane, "--title": title, "--reason": reason, "--wu": wu}
    named = ids or []
    if action not in ACTIONS or (action == "list" and named):
        raise UsageError(
            f"{action if action not in ACTIONS else named[0]!r} is nothing that triage does; nothing was written.",
            hint="It is list, promote ID or archive ID... --reason TEXT.",
            code="usage",
            next=["gitmem mem triage", "gitmem mem triage --help"],
        )
    _check(action, {name for name, value in given.items() if value is not None}, len(named))
    from gitmem.memory import triage as operation

    store = at.store()
    if action == "promote":
        unit = operation.promote(store, at.caller(), named[0], wu=wu, lane=lane, title=title)
        output.answer(at.json, unit, render.became_unit)
    elif action == "archive":
        output.answer(
            at.json, operation.archive(store, at.caller(), named, reason=reason or ""), render.format_archived
        )
    else:
        most = number("--limit", limit, LIMIT)
        output.answer(at.json, operation.listing(store, wu=wu, tag=tag, limit=most), render.triaged)


_TAKES = {
    "list": {"--wu", "--tag", "--limit"},
    "promote": {"--wu", "--lane", "--title"},
    "archive": {"--reason"},
}


def _check(action: str, given: set[str], count: int) -> None:
    wrong = sorted(given - _TAKES[action])
    if wrong:
        raise UsageError(
            f"{wrong[0]} is no option of `triage {action}`; nothing was written.",
            hint=f"It takes {', '.join(sorted(_TAKES[action]))}.",
            code="usage",
            next=["gitmem mem triage --help"],
        )
    if action != "list" and not count:
        raise UsageError(
            f"Nothing says what to {action}; nothing was written.",
            hint="It takes an id from the list.",
            code="usage",
            next=["gitmem mem triage"],
        )
    if action == "promote" and count > 1:
        raise UsageError(
            "One node becomes one work unit; nothing was written.",
            hint="Promote them one by one, or one of them, and relate the others to it.",
            code="usage",
        )


def index(
    at: Environment,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source",
            metavar="FILE=TAG",
            help="Another file, such as docs/RULES.md=index:conventions. May be repeated; those of the git "
            "config value gitmem.indexSources count always.",
        ),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Remember README, AGENTS.md and their like. One node a file, written anew where the file has changed."""
    from gitmem.memory import sources as operation

    given = []
    for each in source or ():
        path, equals, tags = each.rpartition("=")
        given.append(f"{at.paths([path])[0]}={tags}" if equals and path else each)
    found = operation.index(at.store(), at.caller(), sources=given, dry_run=dry_run)
    output.answer(at.json, found, render.indexed)
