"""Why a line or a commit is as it is, as text: who and whether it holds first, then the rest."""

from __future__ import annotations

from .output import paint
from .sessions import plain
from .text import format_ago, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitmem.history.why import AgreedThread, KnownNode, MakerRow, Story, TaskAnswer, Why

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


def why(found: Why) -> list[str]:
    """Return the commits behind lines, each with what is known of it."""
    lines: list[str] = []
    for each in found.commits:
        lines += [*([""] if lines else []), *_story(each)]
    if found.more:
        lines.append(f"{plural(found.more, 'more commit')} not shown; ask about fewer lines")
    return [*lines, *(f"note: {plain(each)}" for each in found.remarks)]


def _story(each: Story) -> list[str]:
    head = f"{paint(each.commit[:SHORT], 'head')} {plain(each.subject)}"
    where = f"{_ranges(each)}, " if each.lines else ""
    lines = [head, f"  {where}{plain(each.author)}, {format_ago(each.committed_at)}", f"  {_who(each)}"]
    if len(each.paths) > 1:
        lines.append(f"  then named {plain(each.paths[1])}")
    if each.task is not None:
        lines.append(
            f"  task {each.task.task_id} ({plain(each.task.state)}): {plain(each.task.title) or 'not here'}"
        )
    if each.wu_id:
        lines.append(f"  work unit {plain(each.wu_id)}")
    lines += [f"  {_thread(thread)}" for thread in each.threads]
    lines += [f"  {_node(node)}" for node in each.nodes]
    if each.now:
        lines.append(f"  {paint('no longer as it was', 'bad')}: {plain('; '.join(each.now))}")
    elif _holds(each):
        lines.append("  still holds")
    return lines


def _holds(each: Story) -> bool:
    """Return whether something was agreed or known when a commit was made, and nothing shown about it has changed."""
    agreed = any(one.agreed_then for one in each.threads)
    agreed = agreed and not any(one.rejected or one.replaced for one in each.threads)
    known = any(one.known_then for one in each.nodes)
    return (agreed or known) and all(one.now == HOLDS for one in each.nodes)


def _who(each: Story) -> str:
    if not each.made_by:
        text = f"no record of a session: made by {plain(each.author)}, or by a session that no record links to it"
        if each.possible:
            names = ", ".join(plain(one.name) for one in each.possible)
            text += f"; perhaps by {names}, who had claimed the file then (inferred)"
    else:
        text = f"made by {' and '.join(map(_maker, each.made_by))}"
        text += "" if each.is_whole else "; no record of who made the rest"
    if each.rewritten_by:
        text += f"; {', '.join(f'{REWRITTEN.get(one.action, one.action)} by {_maker(one)}' for one in each.rewritten_by)}"
    return text


def _maker(each: MakerRow) -> str:
    role = f", {plain(each.role)}" if each.role else ""
    notes = [f"{plain(each.agent)}{role}"]
    if each.inferred:
        notes.append("inferred")
    if not each.here:
        notes.append("as another clone says")
    return f"{plain(each.name)} ({'; '.join(notes)})"


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
    stand += map(_answer, each.answers)
    return f"{asked} ({'; '.join(stand)})" if stand else asked


def _answer(each: TaskAnswer) -> str:
    ago = format_ago(each.at)
    if each.state == "rejected":
        return f"rejected by {plain(each.name)} {ago}"
    state = "" if each.state == "working" else f", {plain(each.state)}"
    return f"taken by {plain(each.name)}{state} {ago}"


def _node(each: KnownNode) -> str:
    when = "known then" if each.known_then else "since"
    state = "" if each.now == HOLDS else f" [{plain(each.now)}]"
    return f"{when}: {each.id} {plain(each.type)} {plain(each.text)}{state}"


def _ranges(each: Story) -> str:
    """Return the numbers of lines, such as `lines 3-5, 9`."""
    shown = [str(first) if first == last else f"{first}-{last}" for first, last in each.lines[:RANGES_SHOWN]]
    more = len(each.lines) - len(shown)
    rest = f" and {more} more" if more else ""
    return f"{'line' if each.line_count == 1 else 'lines'} {', '.join(shown)}{rest}"
