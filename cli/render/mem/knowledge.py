"""Promotions, summaries, triage and the index of sources as text."""

from __future__ import annotations

from ..as_json import encode
from ..output import sanitize
from ..text import SEPARATOR, plural, quote_lines
from .listing import line
from .nodes import about, end, kept, notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitmem.memory.contradictions import Contradiction
    from gitmem.memory.edit import NodesChanged
    from gitmem.memory.promote import Promoted
    from gitmem.memory.sources import Indexed
    from gitmem.memory.summarize import Summarized
    from gitmem.memory.triage import PromotedToUnit, Triaged, WorkUnitSpec


def promoted(found: Promoted) -> list[str]:
    """Return the nodes that were promoted to project scope, now or before."""
    verb = "would promote to" if found.dry_run else "promoted to"
    lines = []
    for node in found.promoted_nodes:
        was = node.id in found.already_promoted
        described = "" if was else end(found.commit, found.recorded)
        lines.append(
            f"{'already promoted to' if was else verb} {about(node)}"
            f"{SEPARATOR}from {sanitize(str(node.metadata.get('promoted_from')), keep='')}{described}"
        )
    return [*lines, *notes(found.warnings)]


def summarized(found: Summarized) -> list[str]:
    """Return a summary, and how many nodes are left to summarize."""
    verb = "would summarize" if found.dry_run else "summarized"
    head = f"{verb} {plural(len(found.source_ids), 'node')} in {about(found.summary)}"
    left = (
        [f"{plural(found.left, 'more node')} not included; repeat the command to summarize them"]
        if found.left
        else []
    )
    return [
        head + end(found.commit, found.recorded),
        *quote_lines(found.summary.content),
        *left,
        *kept(found.kept),
        *notes(found.warnings),
    ]


def triaged(found: Triaged) -> list[str]:
    """Return the nodes that wait for triage, and those that are stale."""
    lines = [line(node, found.stale.get(node.id)) for node in found.discoveries]
    if found.stale_nodes:
        lines += [
            "stale, files changed since:",
            *(line(node, found.stale[node.id]) for node in found.stale_nodes),
        ]
    lines += _contradictions(found.contradictions)
    if not lines:
        return ["nothing to triage"]
    return [*lines, *([f"{plural(found.more, 'more node')} not shown; use --limit N"] if found.more else [])]


WHY = {
    "cycle": "supersede each other, so all of them count",
    "successors": "supersede {}, and none of them the others",
    "paths": "are decisions about {}",
    "tags": "are decisions with the tags {}",
}


def _contradictions(found: Sequence[Contradiction]) -> list[str]:
    lines = (
        ["perhaps contradictory; relate the one that counts: A supersedes B, or if all do: A related B"]
        if found
        else []
    )
    for each in found:
        more = f" and {each.more} more" if each.more else ""
        about = sanitize(", ".join(each.about), keep="")
        lines.append(f"{', '.join(each.node_ids)}{more} {WHY[each.reason].format(about)}")
    return lines


def became_unit(found: PromotedToUnit) -> list[str]:
    """Return the work unit that a node became, as YAML below a comment line."""
    unit = sanitize(found.spec.id)
    if not found.recorded:
        head = "# nothing was written; --wu ID records the new work unit"
    elif not found.already:
        head = f"# {found.node_id} promoted to {unit} and closed{end(found.commit, found.recorded)}"
    else:
        head = f"# {found.node_id} was already promoted to {unit}"
    return [head, *format_spec(found.spec), *notes(found.warnings)]


def format_spec(found: WorkUnitSpec) -> list[str]:
    """Return a work unit as YAML with the words of a note. Texts are quoted as JSON, which YAML reads, too."""
    lines = [
        f"id: {found.id}",
        f"title: {_quoted(found.title)}",
        *([f"lane: {_quoted(found.lane)}"] if found.lane else []),
        f"priority: {found.priority}",
        f"discovered_from: {found.discovered_from}",
        *([f"tags: [{', '.join(map(_quoted, found.tags))}]"] if found.tags else []),
        *(
            ["code_paths:", *(f"  - {_quoted(path)}" for path in found.code_paths)]
            if found.code_paths
            else []
        ),
        "description: |2",
    ]
    return [*lines, *(f"  {sanitize(each)}".rstrip() for each in found.description.splitlines())]


def format_archived(found: NodesChanged) -> list[str]:
    """Return the nodes that triage archived."""
    if not found.ids:
        return ["nothing to archive", *notes(found.warnings)]
    return [f"archived {', '.join(found.ids)}{end(found.commit, found.recorded)}", *notes(found.warnings)]


def indexed(found: Indexed) -> list[str]:
    """Return what indexing the sources changed, one node a line."""
    would = "would be " if found.dry_run else ""
    changed = [each for each in found.entries if each.what in ("created", "updated", "archived")]
    lines = [f"{would}{each.what}: {each.node_id}{SEPARATOR}{sanitize(each.path)}" for each in changed]
    same = found.count("unchanged")
    away = [f"archived by hand, left unchanged: {each.node_id}{SEPARATOR}{sanitize(each.path)}"
            for each in found.entries if each.what == "put away"]  # fmt: skip
    head = f"{plural(len(found.sources_scanned), 'source')}{SEPARATOR}{len(changed)} changed{SEPARATOR}{same} unchanged"
    return [
        head + end(found.commit, found.recorded),
        *lines,
        *away,
        *notes(found.problems),
        *notes(found.warnings),
    ]


def _quoted(text: str) -> str:
    return sanitize(encode(text), keep="")
