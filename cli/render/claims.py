"""Claims, branches that change the same files, and the origin of lines as text."""

from __future__ import annotations

from gitmem.text.sanitize import first_of, minute

from .output import as_json, paint
from .text import block, facts, format_ago, notes, plain, plural, rest, table, wrapped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitmem.history.export import Exported
    from gitmem.history.overlap import Overlap, Overlaps, Side
    from gitmem.history.why import AgreedThread, KnownNode, MakerRow, Story, ToolWord, Why
    from gitmem.work.claims import ClaimChange, ClaimCheck, ClaimPage, ClaimRow, ClaimsReleased, EditRow
    from gitmem.work.edit_guard import Guard


PATHS_SHOWN, GUARDED_SHOWN = 3, 20


def change(found: ClaimChange) -> list[str]:
    """Return a claim that was made or renewed."""
    verb = "renewed" if found.event == "renew" else "yours"
    ends = found.task_id and f"ends with {found.task_id}"
    head = facts(
        found.claim_id, f"{verb} until {minute(found.until)}", first_of(found.paths, PATHS_SHOWN), ends
    )
    return [head, *notes(found.warnings)]


def page(found: ClaimPage) -> list[str]:
    """Return the claims that stand, a line each."""
    lines = [line for each in found.claims for line in wrapped(row(each))] or ["Nothing is claimed."]
    return block(lines, rest(found.more, then=""), map(_edit, found.edits), notes(found.warnings))


def check(found: ClaimCheck) -> list[str]:
    """Return who claims the paths."""
    lines = [row(each) for each in found.claims] or [
        f"Nobody else claims {plain(first_of(found.paths, PATHS_SHOWN))}."
    ]
    return block(lines, map(_edit, found.edits), notes(found.warnings))


def _edit(found: EditRow) -> str:
    paths = first_of(found.paths, PATHS_SHOWN, found.more)
    return facts(f"{found.name or found.session_id} edits, unclaimed: {paths}", found.worktree)


def released(found: ClaimsReleased) -> list[str]:
    """Return the claims that were released."""
    lines = [facts(each.claim_id, "released", first_of(each.paths, PATHS_SHOWN)) for each in found.released]
    return lines or ["You have no claims."]


def row(found: ClaimRow) -> str:
    """Return one claim: who, what, until when, its status and why."""
    return facts(
        f"{found.name or found.owner} claims {first_of(found.paths, PATHS_SHOWN)}",
        f"until {minute(found.until)}",
        found.status != "held" and found.status,
        found.mode != "exclusive" and found.mode,
        found.reason and f'"{found.reason}"',
        found.wu_id,
        found.claim_id,
    )


OPEN = "guard open: nobody else claims these paths"


def guard(found: Guard, *, pre_commit: bool = False) -> list[str]:
    """Return which claims block changes, and which are only shown."""
    if not found.blocks and not found.warns:
        return found.warnings or [OPEN]
    state = "closed" if not found.open else "passed" if found.audit_id else "open"
    head = f"guard {state}: others claim paths that you change"
    if pre_commit and not found.open:
        head = "The commit was stopped: others claim paths that you change. Ask, or give a reason, as below; then commit again."
    return [
        head,
        *_rows("", found.blocks),
        *_rows("warning: ", found.warns),
        *([f"{found.audit_id} · recorded"] if found.audit_id else []),
        *found.remarks,
    ]


def _rows(word: str, found: Sequence[ClaimRow]) -> list[str]:
    """Return the first claims, a line each, and how many more there are."""
    more = [f"  {word}{len(found) - GUARDED_SHOWN} more claims"] if found[GUARDED_SHOWN:] else []
    return [*(f"  {word}{row(each)}" for each in found[:GUARDED_SHOWN]), *more]


PAIRS_SHOWN = 20
FILES_SHOWN = 3
STATES = {True: "conflict", None: "unknown", False: "clean"}


def overlap(found: Overlaps) -> list[str]:
    """Return a line for each pair, those that conflict first, and how many were told."""
    shown = found.overlaps[:PAIRS_SHOWN]
    more = len(found.overlaps) - len(shown) + found.more
    listed = f"; --json has {len(found.overlaps)}" if len(found.overlaps) > len(shown) else ""
    return block(
        table([*map(_row, shown)], head=("MERGE", "BRANCHES", "", "FILES"), shortened=(3,)),
        rest(more, "pair", listed),
        _summary(found),
        found.sent and f"told by {plural(len(found.sent), 'signal')}: {', '.join(found.sent)}",
        map(plain, found.warnings),
    )


def _summary(found: Overlaps) -> str:
    """Return a sentence about all pairs."""
    branches = f"{found.compared} branches"
    if found.compared < 2:
        only = "One branch has" if found.compared else "No branch has"
        return f"{only} recent commits, a session or uncommitted files: nothing to compare"
    if not found.overlaps:
        return f"No two of {branches} change the same file"
    pairs = plural(len(found.overlaps) + found.more, "pair")
    return f"{branches}: {pairs} with the same files, {found.conflicts} in conflict"


def _row(each: Overlap) -> tuple[str, ...]:
    files = each.conflicting or each.files
    count = len(files) + (each.more_conflicting if each.conflicting else each.more)
    note = "" if each.conflicting or not each.uncommitted else " (uncommitted)"
    one, other = map(_side, each.sides)
    shown = first_of(files[:FILES_SHOWN], FILES_SHOWN, max(0, count - FILES_SHOWN))
    return STATES[each.conflicts], one, other, plain(shown) + note


def _side(side: Side) -> str:
    names = f" ({', '.join(side.sessions)})" if side.sessions else ""
    return plain(f"{side.branch}{names}")


SHORT = 12
RANGES_SHOWN = 4
HOLDS = "holds"
REWRITTEN = {
    "amend": "amended",
    "apply": "applied",
    "cherry-pick": "cherry-picked",
    "commit": "committed",
    "merge": "merged",
    "rebase": "rebased",
    "revert": "reverted",
    "rewrite": "rewritten",
    "squash": "squashed",
}  # what the actions of records mean for who only rewrote a commit


WROTE = {"ai": "written by", "human": "typed by", "mixed": "by a person and"}


def why(found: Why) -> list[str]:
    """Return the commits behind lines, each with what is known of it."""
    lines: list[str] = []
    for each in found.commits:
        lines += [*([""] if lines else []), *_story(each)]
    return block(lines, rest(found.more, "commit", "; ask about fewer lines"), notes(found.remarks))


def _story(each: Story) -> list[str]:
    where = f"{_ranges(each)}, " if each.lines else ""
    task = each.task
    return block(
        f"{paint(each.commit[:SHORT], 'head')} {plain(each.subject)}",
        f"  {where}{plain(each.author)}, {format_ago(each.committed_at)}",
        f"  {_who(each)}",
        [f"  {_word(word, each)}" for word in each.said if word.conflicts or not each.made_by],
        len(each.paths) > 1 and f"  then named {plain(each.paths[1])}",
        task is not None
        and f"  task {task.task_id} ({plain(task.state)}): {plain(task.title) or 'not here'}",
        each.wu_id and f"  work unit {plain(each.wu_id)}",
        [f"  {_thread(thread)}" for thread in each.threads],
        [f"  {_node(node)}" for node in each.nodes],
        f"  {paint('no longer as it was', 'bad')}: {plain('; '.join(each.now))}"
        if each.now
        else _holds(each) and "  still holds",
    )


def exported(found: Exported) -> list[str]:
    """Return the records of agent-trace, one a line, or which notes were written."""
    if found.records:
        return [as_json(each) for each in found.records]  # a file of such lines is what other tools read
    return block(bool(found.commits) and f"{plural(len(found.commits), 'note')} written to {found.ref}")


def _holds(each: Story) -> bool:
    """Return whether something was agreed or known when a commit was made, and nothing shown about it has changed."""
    agreed = any(one.agreed_then for one in each.threads)
    agreed = agreed and not any((one.rejected and not one.agreed_on) or one.replaced for one in each.threads)
    known = any(one.known_then for one in each.nodes)
    return (agreed or known) and all(one.now == HOLDS for one in each.nodes)


def _who(each: Story) -> str:
    if not each.made_by and each.said:
        text = "no record of a session"
    elif not each.made_by:
        text = f"no record of a session: made by {plain(each.author)}, or by a session that no record links to it"
    else:
        text = f"made by {' and '.join(map(_maker, each.made_by))}"
        text += "" if each.is_whole else "; no record of who made the rest"
    if each.rewritten_by:
        text += f"; {', '.join(f'{REWRITTEN.get(one.action, one.action)} by {_maker(one)}' for one in each.rewritten_by)}"
    return text


def _word(each: ToolWord, story: Story) -> str:
    """Return what another tool says of lines."""
    where = f"{_numbers(each.lines)} " if each.lines and each.lines != story.lines else ""
    agent = " ".join(filter(None, (each.client or "an agent", each.model and f"({each.model})")))
    who = f"{WROTE.get(each.kind, 'of')} {each.person or agent}"
    about = each.commit != story.commit and f"about {each.commit[:SHORT]}, whose changes it has"
    more = "; ".join(block(about, each.session and f"session {each.session}", "unsigned"))
    said = paint("says otherwise", "bad") if each.conflicts else "says"
    return f"{each.by} {said}: {plain(f'{where}{who} ({more})')}"


def _maker(each: MakerRow) -> str:
    role = f", {each.role}" if each.role else ""
    said = block(
        f"{each.agent}{role}", each.inferred and "inferred", not each.here and "as another clone says"
    )
    return plain(f"{each.name} ({'; '.join(said)})")


def _thread(each: AgreedThread) -> str:
    proposed = (
        " / ".join(
            f"{plain(one.by_name or one.by)} proposed {one.signal_id}: {plain(one.text)}"
            for one in each.in_force
        )
        or "nothing is in force, all was withdrawn"
    )
    asked = f"{'agreed' if each.agreed_on else 'asked'} in {each.thread_id}: {proposed}"
    stand = [
        f"{word} {', '.join(map(plain, names))}"
        for word, names in (
            ("agreed:", each.agreed),
            ("rejected:", each.rejected),
            ("no answer:", each.pending),
        )
        if names
    ]
    stand += [plain(each.settled)] if each.settled else []
    return f"{asked} ({'; '.join(stand)})" if stand else asked


def _node(each: KnownNode) -> str:
    when = "known then" if each.known_then else "since"
    state = "" if each.now == HOLDS else f" [{plain(each.now)}]"
    return f"{when}: {each.id} {plain(each.type)} {plain(each.text)}{state}"


def _ranges(each: Story) -> str:
    """Return the numbers of lines, such as `lines 3-5, 9`."""
    return f"{'line' if each.line_count == 1 else 'lines'} {_numbers(each.lines)}"


def _numbers(lines: Sequence[Sequence[int]]) -> str:
    return first_of([str(start) if start == end else f"{start}-{end}" for start, end in lines], RANGES_SHOWN)
