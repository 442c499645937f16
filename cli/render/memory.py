"""Nodes of the memory, and what is done with them, as text."""

from __future__ import annotations

from gitmem.memory import stored_nodes

from .output import encode, paint, program, record_position, sanitize
from .text import BAR, SEPARATOR, format_ago, plural, quote_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gitmem.memory.context import Context, Profile, Recovered
    from gitmem.memory.decay import Accessed
    from gitmem.memory.edit import Created, NodesChanged, NodesCreated
    from gitmem.memory.knowledge import Promoted, Summarized
    from gitmem.memory.listing import Blocker, Listing, NodeChange, NodeDetail, Ready, Relative
    from gitmem.memory.relations import RelationResult
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
    facts = [
        about(node),
        node.lifecycle,
        sanitize(", ".join(node.paths), keep=""),
        "recorded in this clone only" if node.private else record_position(found.commit),
    ]
    return [SEPARATOR.join(fact for fact in facts if fact), *notes(found.warnings)]


def appended(found: NodesCreated) -> list[str]:
    """Return the ids of nodes that were created at once, at most SHOWN of them."""
    count = len(found.nodes)
    head = f"{count:,} node{'' if count == 1 else 's'}{SEPARATOR}{record_position(found.commit)}"
    more = [f"{count - SHOWN:,} more not shown"] if count > SHOWN else []
    return [head, *(node.id for node in found.nodes[:SHOWN]), *more, *notes(found.warnings)]


def changed(found: NodesChanged) -> list[str]:
    """Return the nodes that were changed."""
    which = ", ".join(found.ids) if len(found.ids) <= 3 else plural(len(found.ids), "node")
    return [f"changed: {which}{SEPARATOR}{record_position(found.commit)}", *notes(found.warnings)]


def related(found: RelationResult) -> list[str]:
    """Return a relation that was added or removed."""
    verb = f"no longer {found.type}" if found.removed else found.type
    return [
        f"{found.from_id} {verb} {found.to_id}{SEPARATOR}{record_position(found.commit)}",
        *notes(found.warnings),
    ]


def about(node: VersionedNode) -> str:
    """Return a node's metadata: `mem-… · discovery · P1 · WU-7 · bug`."""
    status = "" if node.status == "active" else node.status
    private = "private" if node.private else ""
    parts = [node.id, private, node.type, node.priority, node.wu_id, node.lane, ", ".join(node.tags), status]
    return sanitize(SEPARATOR.join(part for part in parts if part), keep="")


def end(commit: str | None, recorded: bool) -> str:
    """Return the end of a line with the commit of a change; "" without a change."""
    return SEPARATOR + record_position(commit) if commit or recorded else ""


def notes(sentences: Sequence[str]) -> list[str]:
    """Return sentences as sanitized lines that begin with `note:`."""
    return [f"note: {sanitize(each)}" for each in sentences]


def kept(reasons: Mapping[str, str]) -> list[str]:
    """Return the nodes that an operation on many nodes left as they are, a line for each reason."""
    lines = []
    for reason in sorted({*reasons.values()}):
        ids = [id for id, why in reasons.items() if why == reason]
        more = f" and {len(ids) - KEPT_SHOWN} more" if len(ids) > KEPT_SHOWN else ""
        forced = "; --force includes them" if reason.startswith(("open ", "last ")) else ""
        lines.append(f"kept, {reason}: {', '.join(ids[:KEPT_SHOWN])}{more}{forced}")
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
        about = f" with the tag {sanitize(found.tag, keep='')}" if found.tag else ""
        return [f"No project nodes{about}"]
    more = found.fitting - len(found.nodes)
    lines = [found.block, "", *([f"{more} more not shown"] if more else [])]
    tags = ", ".join(f"{sanitize(tag, keep='')} {count}" for tag, count in found.by_tag.items())
    return [*lines, f"{plural(found.total, 'node')}; tags: {tags or 'none'}"]


COLUMNS = 80  # of a node's text in a list; `show` prints all of it
OPEN, CLOSE = "«", "»"  # around a hit
WIDER = {
    "begin": "partial matches, words with this beginning:",
    "some": "partial matches, some of the words:",
}


def listed(found: Listing) -> list[str]:
    """Return the nodes of a list, one a line."""
    lines = [line(node, found.stale.get(node.id), found.superseded.get(node.id)) for node in found.nodes]
    if not lines:
        return ["No nodes match."]
    return [*lines, *([f"{plural(found.more, 'more node')} not shown; use --limit N"] if found.more else [])]


def line(node: VersionedNode, stale: str | None = None, live: str | None = None) -> str:
    """Return `mem-… · 2026-10-26 · discovery · P1 · WU-7 · bug · src/parser.py +1 | The parser drops tabs`."""
    id, _, rest = about(node).partition(SEPARATOR)
    lifecycle = "" if node.lifecycle == "wu" else node.lifecycle  # the most frequent one
    facts = [id, _when(node.created_at), rest, lifecycle, _files(node.paths), _stale(stale)]
    facts.append(_superseded(live))
    if stored_nodes.is_changed(node):
        facts.append(sanitize(f"by {stored_nodes.byline(node)}", keep=""))
    return f"{SEPARATOR.join(fact for fact in facts if fact)} | {_beginning(node.content)}"


def _stale(said: str | None) -> str:
    return paint(sanitize(said or "", keep=""), "careful")


def _superseded(live: str | None) -> str:
    return paint(f"superseded by {live}", "quiet") if live else ""


def _when(at: str) -> str:
    """Return the age if it is given in hours or less, otherwise the day."""
    ago = format_ago(at)
    return at[:10] if ago.endswith(" days ago") else ago


def _files(paths: Sequence[str]) -> str:
    more = f" +{len(paths) - 1}" if len(paths) > 1 else ""
    return sanitize(paths[0], keep="") + more if paths else ""


def _beginning(content: str) -> str:
    first = sanitize(content.strip().split("\n", 1)[0].strip(), keep="")
    return first if len(first) <= COLUMNS else first[: COLUMNS - 1].rstrip() + "…"


def shown(found: NodeDetail) -> list[str]:
    """Return a node in full, with its relations and history."""
    from gitmem.signals import task_records

    node = found.node
    by = sanitize(stored_nodes.byline(node), keep="")
    lines = [
        f"[{about(node)}{SEPARATOR}{node.lifecycle}{SEPARATOR}{by}{SEPARATOR}{format_ago(node.created_at)}]",
        *quote_lines(node.content),
    ]
    if found.ambiguous:
        lines.append(f"ambiguous: more than one record with id {node.id}; the first in sort order is shown")
    facts = [
        ("about", ", ".join(node.paths)),
        ("written at", f"{node.head[:12]}{f' on {node.branch}' if node.branch else ''}" if node.head else ""),
        ("session", node.session_id),
        ("reason", node.reason),
        ("summarized in", node.summarized_into),
        ("superseded by", found.superseded_by),
        ("metadata", ", ".join(f"{key}={_plain(value)}" for key, value in sorted(node.metadata.items()))),
    ]
    end = {"about": f"  {_stale(found.stale)}" if found.stale else ""}
    lines += [_fact(name, str(value), end.get(name, "")) for name, value in facts if value]
    lines += task_records.lines(found.contradicts, program())
    lines += [_relation(node.id, each) for each in found.relations]
    lines += [_change(node, each) for each in found.history]
    if found.left_out:
        lines.append(f"{found.left_out:,} patches of those who wrote most do not count: there are too many")
    last = f", last {format_ago(node.last_accessed_at)}" if node.last_accessed_at else ""
    return [
        *lines,
        f"score {found.score:.3g}{SEPARATOR}read {plural(node.accesses, 'time')}{last}{SEPARATOR}{record_position(found.commit)}",
    ]


def _fact(name: str, value: str, end: str) -> str:
    return f"{paint(name, 'head')}: {sanitize(value, keep='')}{end}"


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
    return sanitize(f"{each.at[:19]}Z {by}: {'; '.join(changes)}", keep="")


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
    lines += [f"{plural(found.more, 'more node')} not shown; use --limit N"] if found.more else []
    for each in found.blocked:
        lines.append(f"blocked: {line(each.node)}")
        lines += [_blocker(one) for one in each.blockers]
        lines += [f"  by {hidden} more"] if (hidden := len(each.blocked_by) - len(each.blockers)) else []
    lines += (
        [f"{plural(found.more_blocked, 'more blocked node')} not shown; use --limit N"]
        if found.more_blocked
        else []
    )
    return [
        *map(tasks.ready, found.tasks),
        *lines,
        *(f"note: cycle, each is blocked by the next: {' → '.join(circle)}" for circle in found.circles),
    ]


def _blocker(each: Blocker) -> str:
    facts = [each.id, each.priority, each.wu_id]
    return (
        f"  by {sanitize(SEPARATOR.join(fact for fact in facts if fact), keep='')} | {_beginning(each.title)}"
    )


def matching(answer: SearchResult) -> list[str]:
    """Return the hits of a search, with a heading before each group of weaker matches."""
    lines = [
        f"no matches for {sanitize(word, keep='')}; searched for {sanitize(similar, keep='')}"
        for word, similar in answer.similar.items()
    ]
    matched = "all"
    for hit in answer.hits:
        if hit.matched != matched and hit.superseded_by is None:
            matched = hit.matched
            lines.append(WIDER[matched])
        lines += _hit(hit)
    if not answer.hits:
        return [f"no matches for {sanitize(answer.query, keep='')}"]
    return [*lines, *(["more nodes match; use --limit N"] if answer.more else [])]


def _hit(hit: Hit) -> list[str]:
    node = hit.node
    id, _, rest = about(node).partition(SEPARATOR)
    facts = [
        id,
        node.created_at[:10],
        rest,
        sanitize(", ".join(node.paths[:3]), keep=""),
        _stale(hit.stale),
        _superseded(hit.superseded_by),
        sanitize(f"by {stored_nodes.byline(node)}", keep="") if stored_nodes.is_changed(node) else "",
    ]
    return [SEPARATOR.join(fact for fact in facts if fact), BAR + _marked(hit)]


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


def archived(found: Archived) -> list[str]:
    """Return the nodes that were archived for their low scores, with the scores."""
    verb = "would archive" if found.dry_run else "archived"
    head = (
        f"{verb} {len(found.archived_ids)} of {plural(found.total_processed, 'node')}"
        f"{SEPARATOR}{len(found.retained_ids)} kept{SEPARATOR}{len(found.skipped_ids)} skipped"
    )
    each = [f"{id}  {found.scores[id]:.3g}" for id in found.archived_ids[:SHOWN]]
    return [
        head + end(found.commit, found.recorded),
        *each,
        *_more(found.archived_ids),
        *kept(found.protected),
        *notes(found.warnings),
    ]


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
        (why.urgent, "open P0 or P1, kept (--force deletes them)"),
        (why.active_session_protected, "of active sessions, kept"),
        (why.decay_archived, "to archive" if found.dry_run else "archived"),
    ]
    reasons = SEPARATOR.join(f"{count} {what}" for count, what in counts if count)
    lines = [head + end(found.commit, found.recorded), *([reasons] if reasons else [])]
    return [*lines, *found.removed_ids[:SHOWN], *_more(found.removed_ids), *notes(found.warnings)]


def deleted(found: Deleted) -> list[str]:
    """Return the nodes that were deleted, now or before."""
    verb = "would delete" if found.dry_run else "deleted"
    head = f"{verb} {plural(len(found.ids), 'node')}" if found.ids else "nothing to delete"
    lines = [head + end(found.commit, found.recorded), *found.ids[:SHOWN], *_more(found.ids)]
    lines += [f"{id}: already deleted" for id in found.already]
    return [*lines, *notes(found.warnings)]


def accessed(found: Accessed) -> list[str]:
    """Return how often and when each node was read, and its score."""
    lines = []
    for each in found.accesses:
        last = f", last {format_ago(each.last_accessed_at)}" if each.last_accessed_at else ""
        lines.append(
            f"{sanitize(each.node_id)}: read {plural(each.count, 'time')}{last}{SEPARATOR}score {each.score:.3g}"
        )
    return lines


def _more(ids: Sequence[str]) -> list[str]:
    return [f"… {len(ids) - SHOWN} more; --json lists all"] if len(ids) > SHOWN else []
