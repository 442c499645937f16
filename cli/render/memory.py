"""Nodes of the memory, and what is done with them, as text."""

from __future__ import annotations

from gitmem.memory import stored_nodes
from gitmem.text.sanitize import first_of

from .output import encode, paint, program, record_position, sanitize
from .text import BAR, SEPARATOR, block, facts, format_ago, notes, plain, plural, quote_lines, rest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gitmem.memory.context import Context, Profile, Recovered
    from gitmem.memory.edit import Created, NodesChanged, RelationResult
    from gitmem.memory.knowledge import Promoted, Summarized
    from gitmem.memory.listing import Blocked, Listing, NodeChange, NodeDetail, Ready, Relative
    from gitmem.memory.search import Hit, SearchResult
    from gitmem.memory.sources import Indexed
    from gitmem.memory.triage import Contradiction, PromotedToUnit, Triaged, WorkUnitSpec
    from gitmem.memory.upkeep import Archived, CleanupResult, Deleted
    from gitmem.order.node import VersionedNode


SHOWN = 20  # ids; JSON has all of them
KEPT_SHOWN = 5  # ids in a line


def created(found: Created) -> list[str]:
    """Return a new node's metadata in a line, and its warnings."""
    node = found.node
    where = "recorded in this clone only" if node.private else record_position(found.commit)
    return [facts(about(node), node.lifecycle, ", ".join(node.paths), where), *notes(found.warnings)]


def changed(found: NodesChanged) -> list[str]:
    """Return the nodes that were changed."""
    which = ", ".join(found.ids) if len(found.ids) <= 3 else plural(len(found.ids), "node")
    return [f"changed: {facts(which, record_position(found.commit))}", *notes(found.warnings)]


def related(found: RelationResult) -> list[str]:
    """Return a relation that was added or removed."""
    verb = f"no longer {found.type}" if found.removed else found.type
    head = facts(f"{found.from_id} {verb} {found.to_id}", record_position(found.commit))
    return [head, *notes(found.warnings)]


def about(node: VersionedNode) -> str:
    """Return a node's metadata: `mem-… · discovery · P1 · WU-7 · bug`."""
    status = node.status != "active" and node.status
    private = node.private and "private"
    return facts(
        node.id, private, node.type, node.priority, node.wu_id, node.lane, ", ".join(node.tags), status
    )


def end(commit: str | None, recorded: bool) -> str:
    """Return the end of a line with the commit of a change; "" without a change."""
    return SEPARATOR + record_position(commit) if commit or recorded else ""


def kept(reasons: Mapping[str, str]) -> list[str]:
    """Return the nodes that an operation on many nodes left as they are, a line for each reason."""
    lines = []
    for reason in sorted({*reasons.values()}):
        ids = [id for id, why in reasons.items() if why == reason]
        lines.append(f"kept, {reason}: {first_of(ids, KEPT_SHOWN)}")
    return lines


def checkpointed(found: Created) -> list[str]:
    """Return the node, and the last lines of its diff stat, which have the totals."""
    head, *rest = created(found)
    stat = str(found.node.metadata.get("gitDiffStat") or "").split("\n")
    counts = [f"  {sanitize(line.strip())}" for line in stat[-2:] if line and "|" not in line]
    return [head, *counts, *rest]


def packed(found: Context | Recovered) -> list[str]:
    """Return the packed text: peers' texts in it are already sanitized."""
    return [found.block]


def profile(found: Profile) -> list[str]:
    """Return the nodes of the whole project, and how often each tag is used."""
    if not found.nodes:
        return [f"No project nodes{f' with the tag {plain(found.tag)}' if found.tag else ''}"]
    tags = ", ".join(f"{plain(tag)} {count}" for tag, count in found.by_tag.items())
    return block(
        [found.block, ""],
        rest(found.fitting - len(found.nodes), then=""),
        f"{plural(found.total, 'node')}; tags: {tags or 'none'}",
    )


COLUMNS = 80  # of a node's text in a list; `show` prints all of it
OPEN, CLOSE = "«", "»"  # around a hit
WIDER = {
    "begin": "partial matches, words with this beginning:",
    "some": "partial matches, some of the words:",
}


def listed(found: Listing) -> list[str]:
    """Return the nodes of a list, one a line."""
    lines = [line(node, found.stale.get(node.id), found.superseded.get(node.id)) for node in found.nodes]
    return block(lines or "No nodes match.", rest(found.more, "node"))


def line(node: VersionedNode, stale: str | None = None, live: str | None = None) -> str:
    """Return `mem-… · 2026-10-26 · discovery · P1 · WU-7 · bug · src/parser.py +1 | The parser drops tabs`."""
    id, _, more = about(node).partition(SEPARATOR)
    said = block(
        facts(
            id, _when(node.created_at), more, node.lifecycle != "wu" and node.lifecycle, _files(node.paths)
        ),
        _stale(stale),
        _superseded(live),
        stored_nodes.is_changed(node) and plain(f"by {stored_nodes.byline(node)}"),
    )  # `wu` is the most frequent lifecycle
    return f"{SEPARATOR.join(said)} | {_beginning(node.content)}"


def _stale(said: str | None) -> str:
    return paint(plain(said or ""), "careful")


def _superseded(live: str | None) -> str:
    return paint(f"superseded by {live}", "quiet") if live else ""


def _when(at: str) -> str:
    """Return the age if it is given in hours or less, otherwise the day."""
    ago = format_ago(at)
    return at[:10] if ago.endswith(" days ago") else ago


def _files(paths: Sequence[str]) -> str:
    return plain(paths[0]) + (f" +{len(paths) - 1}" if len(paths) > 1 else "") if paths else ""


def _beginning(content: str) -> str:
    text = plain(content.strip().split("\n", 1)[0].strip())
    return text if len(text) <= COLUMNS else text[: COLUMNS - 1].rstrip() + "…"


def shown(found: NodeDetail) -> list[str]:
    """Return a node in full, with its relations and history."""
    from gitmem.signals import task_records

    node = found.node
    metadata = ", ".join(f"{key}={_plain(value)}" for key, value in sorted(node.metadata.items()))
    fields = (
        ("about", ", ".join(node.paths)),
        ("written at", f"{node.head[:12]}{f' on {node.branch}' if node.branch else ''}" if node.head else ""),
        ("session", node.session_id),
        ("reason", node.reason),
        ("summarized in", node.summarized_into),
        ("superseded by", found.superseded_by),
        ("metadata", metadata),
    )
    end = {"about": f"  {_stale(found.stale)}" if found.stale else ""}
    last = f", last {format_ago(node.last_accessed_at)}" if node.last_accessed_at else ""
    read = f"read {plural(node.accesses, 'time')}{last}"
    return block(
        f"[{facts(about(node), node.lifecycle, stored_nodes.byline(node), format_ago(node.created_at))}]",
        quote_lines(node.content),
        found.ambiguous
        and f"ambiguous: more than one record with id {node.id}; the first in sort order is shown",
        [_fact(name, str(value), end.get(name, "")) for name, value in fields if value],
        task_records.lines(found.contradicts, program()),
        [_relation(node.id, each) for each in found.relations],
        [_change(node, each) for each in found.history],
        found.left_out
        and f"{found.left_out:,} patches of those who wrote most do not count: there are too many",
        facts(f"score {found.score:.3g}", read, record_position(found.commit)),
    )


def _fact(name: str, value: str, end: str) -> str:
    return f"{paint(name, 'head')}: {plain(value)}{end}"


def _relation(id: str, each: Relative) -> str:
    other = _beginning(each["other"]) if each["other"] is not None else "(missing from this log)"
    if each["from_id"] == id:
        return f"{each['type']} {each['to_id']} | {other}"
    return f"{each['from_id']} {each['type']} this | {other}"


def _change(node: VersionedNode, each: NodeChange) -> str:
    changes = []
    for name, value in each.fields.items():
        if name in ("head", "branch"):
            continue
        text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else _plain(value)
        word = "cleared:" if name == "clear" else name
        changes.append(name if value is True else f"{word} {_beginning(text)}")
    if "head" in each.fields:
        changes.append(_verified(each))
    by = stored_nodes.format_writer(node, each.sender, each.sender_identity)
    return plain(f"{each.at[:19]}Z {by}: {'; '.join(changes)}")


def _plain(value: object) -> str:
    """Return a text unchanged, anything else as JSON."""
    return value if isinstance(value, str) else encode(value)


def _verified(each: NodeChange) -> str:
    """Return `verified at 6830b317c2b3 (wu-7)`; without `verified` if the change has new files or a new text."""
    branch = f" ({each.fields['branch']})" if "branch" in each.fields else ""
    verb = "" if each.fields.keys() & {"content", "paths"} else "verified "
    return f"{verb}at {each.fields['head']!s:.12}{branch}"


def ready(found: Ready) -> list[str]:
    """Return the nodes that are ready, the blocked ones, and the cycles among them."""
    from . import tasks

    lines = [line(node) for node in found.nodes]
    where = f"in {sanitize(found.wu_id)}" if found.wu_id is not None else "of any work unit or without one"
    if not lines:
        lines.append(f"no ready nodes {where}")
    elif found.wu_id is None:
        lines.insert(0, f"ready nodes {where}:")
    return block(
        map(tasks.ready, found.tasks),
        lines,
        rest(found.more, "node"),
        [one for each in found.blocked for one in _blocked(each)],
        rest(found.more_blocked, "blocked node"),
        [f"note: cycle, each is blocked by the next: {' → '.join(circle)}" for circle in found.circles],
    )


def _blocked(each: Blocked) -> list[str]:
    hidden = len(each.blocked_by) - len(each.blockers)
    return block(
        f"blocked: {line(each.node)}",
        [f"  by {facts(one.id, one.priority, one.wu_id)} | {_beginning(one.title)}" for one in each.blockers],
        hidden and f"  by {hidden} more",
    )


def matching(answer: SearchResult) -> list[str]:
    """Return the hits of a search, with a heading before each group of weaker matches."""
    if not answer.hits:
        return [f"no matches for {plain(answer.query)}"]
    similar = answer.similar.items()
    lines = [f"no matches for {plain(word)}; searched for {plain(found)}" for word, found in similar]
    matched = "all"
    for hit in answer.hits:
        if hit.matched != matched and hit.superseded_by is None:
            matched = hit.matched
            lines.append(WIDER[matched])
        lines += _hit(hit)
    return block(lines, answer.more and "more nodes match; use --limit N")


def _hit(hit: Hit) -> list[str]:
    node = hit.node
    id, _, more = about(node).partition(SEPARATOR)
    said = block(
        facts(id, node.created_at[:10], more, ", ".join(node.paths[:3])),
        _stale(hit.stale),
        _superseded(hit.superseded_by),
        stored_nodes.is_changed(node) and plain(f"by {stored_nodes.byline(node)}"),
    )
    return [SEPARATOR.join(said), BAR + _marked(hit)]


def _marked(hit: Hit) -> str:
    """Return the snippet with its hits between marks. It is already sanitized."""
    shown, at = "", 0
    for start, end in hit.marks:
        shown += hit.snippet[at:start] + OPEN + hit.snippet[start:end] + CLOSE
        at = end
    return shown + hit.snippet[at:]


def promoted(found: Promoted) -> list[str]:
    """Return the nodes that were promoted to project scope, now or before."""
    verb = "would promote to" if found.dry_run else "promoted to"
    lines = []
    for node in found.promoted_nodes:
        was = node.id in found.already_promoted
        origin = plain(f"from {node.metadata.get('promoted_from')}")
        described = origin if was else origin + end(found.commit, found.recorded)
        lines.append(f"{'already promoted to' if was else verb} {about(node)}{SEPARATOR}{described}")
    return [*lines, *notes(found.warnings)]


def summarized(found: Summarized) -> list[str]:
    """Return a summary, and how many nodes are left to summarize."""
    head = f"summarized {plural(len(found.source_ids), 'node')} in {about(found.summary)}"
    return block(
        head + end(found.commit, found.recorded),
        quote_lines(found.summary.content),
        found.left
        and f"{plural(found.left, 'more node')} not included; repeat the command to summarize them",
        kept(found.kept),
        notes(found.warnings),
    )


def triaged(found: Triaged) -> list[str]:
    """Return the nodes that wait for triage, and those that are stale."""
    lines = block(
        [line(node, found.stale.get(node.id)) for node in found.discoveries],
        found.stale_nodes and "stale, files changed since:",
        [line(node, found.stale[node.id]) for node in found.stale_nodes],
        found.contradictions
        and "perhaps contradictory; relate the one that counts: A supersedes B, or if all do: A related B",
        map(_contradiction, found.contradictions),
    )
    return (
        block(lines, rest(found.more, "node", "; filter them with --wu or --tag"))
        if lines
        else ["nothing to triage"]
    )


WHY = {
    "cycle": "supersede each other, so all of them count",
    "successors": "supersede {}, and none of them the others",
    "paths": "are decisions about {}",
    "tags": "are decisions with the tags {}",
}


def _contradiction(each: Contradiction) -> str:
    more = f" and {each.more} more" if each.more else ""
    return f"{', '.join(each.node_ids)}{more} {WHY[each.reason].format(plain(', '.join(each.about)))}"


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
    return block(
        f"id: {found.id}",
        f"title: {_quoted(found.title)}",
        found.lane and f"lane: {_quoted(found.lane)}",
        f"priority: {found.priority}",
        f"discovered_from: {found.discovered_from}",
        found.tags and f"tags: [{', '.join(map(_quoted, found.tags))}]",
        found.code_paths and ["code_paths:", *(f"  - {_quoted(path)}" for path in found.code_paths)],
        "description: |2",
        [f"  {sanitize(each)}".rstrip() for each in found.description.splitlines()],
    )


def format_archived(found: NodesChanged) -> list[str]:
    """Return the nodes that triage archived."""
    done = found.ids and f"archived {', '.join(found.ids)}{end(found.commit, found.recorded)}"
    return [done or "nothing to archive", *notes(found.warnings)]


def indexed(found: Indexed) -> list[str]:
    """Return what indexing the sources changed, one node a line."""
    would = "would be " if found.dry_run else ""
    changed = [each for each in found.entries if each.what in ("created", "updated")]
    head = facts(
        plural(len(found.sources_scanned), "source"),
        f"{len(changed)} changed",
        f"{found.count('unchanged')} unchanged",
    )
    away = [each for each in found.entries if each.what == "put away"]
    return [
        head + end(found.commit, found.recorded),
        *(f"{would}{each.what}: {facts(each.node_id, each.path)}" for each in changed),
        *(f"archived by hand, left unchanged: {facts(each.node_id, each.path)}" for each in away),
        *notes([*found.problems, *found.warnings]),
    ]


def _quoted(text: str) -> str:
    return plain(encode(text))


def archived(found: Archived) -> list[str]:
    """Return the nodes that were archived for their low scores, with the scores."""
    verb = "would archive" if found.dry_run else "archived"
    head = facts(
        f"{verb} {len(found.archived_ids)} of {plural(found.total_processed, 'node')}",
        f"{len(found.retained_ids)} kept",
        f"{len(found.skipped_ids)} skipped",
    )
    return block(
        head + end(found.commit, found.recorded),
        [f"{id}  {found.scores[id]:.3g}" for id in found.archived_ids[:SHOWN]],
        _more(found.archived_ids),
        kept(found.protected),
        notes(found.warnings),
    )


def cleaned(found: CleanupResult) -> list[str]:
    """Return the nodes that cleanup deleted, with counts by reason."""
    every = len(found.removed_ids) + len(found.retained_ids)
    verb = "would delete" if found.dry_run else "deleted"
    head = f"{verb} {len(found.removed_ids)} of {plural(every, 'node')}"
    why = found.breakdown
    counts = [
        (why.ttl_expired, "expired"),
        (why.ephemeral, "ephemeral"),
        (why.session, "session nodes"),
        (why.wu, "summarized"),
        (why.sensitive, "sensitive, kept"),
        (why.urgent, "open P0 or P1, kept (`gitmem mem delete ID` deletes one)"),
        (why.active_session_protected, "of active sessions, kept"),
        (why.decay_archived, "to archive" if found.dry_run else "archived"),
    ]
    return block(
        head + end(found.commit, found.recorded),
        facts(*(count and f"{count} {what}" for count, what in counts)),
        _ids(found.removed_ids),
        notes(found.warnings),
    )


def deleted(found: Deleted) -> list[str]:
    """Return the nodes that were deleted, now or before."""
    verb = "would delete" if found.dry_run else "deleted"
    head = f"{verb} {plural(len(found.ids), 'node')}" if found.ids else "nothing to delete"
    already = [f"{id}: already deleted" for id in found.already]
    return [head + end(found.commit, found.recorded), *_ids(found.ids), *already, *notes(found.warnings)]


def _ids(ids: Sequence[str]) -> list[str]:
    return block(ids[:SHOWN], _more(ids))


def _more(ids: Sequence[str]) -> str:
    return f"… {len(ids) - SHOWN} more; --json lists all" if len(ids) > SHOWN else ""
