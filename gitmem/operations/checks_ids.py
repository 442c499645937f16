"""Doctor's look at what records say of each other: contents, answers, and what came before what."""

from __future__ import annotations

from .. import records
from ..log.lines import digest
from ..signals.content import is_imported
from . import causality, threads
from .causality import Said
from .findings import Findings
from .quoting import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .checks_lines import Line

LATER = "It may come with the next sync; until then it is no edge and decides nothing."


def check(lines: Sequence[Line], found: Findings) -> None:
    """Ids with two contents, answers to what nobody said, names of what is not here, cycles."""
    signals = [each for each in lines if each.record is not None and each.record["kind"] == "signal"]
    by_id: dict[str, list[Line]] = {}
    for each in signals:
        by_id.setdefault(str(each.record and each.record["signal_id"]), []).append(each)
    said = {id: _said(group) for id, group in by_id.items()}
    where = {id: min(group, key=lambda each: each.line).where for id, group in by_id.items()}
    for id, one in said.items():
        if len(threads.contents(one)) > 1:
            found.problem(
                "two-contents",
                f"The id {id} has {len(threads.contents(one))} different contents, by {_senders(one)}: "
                "its thread is ambiguous.",
                where[id],
                "Ask its sender what was meant and answer a new signal; neither content is agreed to.",
                command("gitmem", "thread", id),
            )
    digests = {id: {digest(line) for line in one.lines} for id, one in said.items()}
    for each in lines:
        if each.record is not None:
            _check_answer(each, digests, found)
    for id in sorted(causality.cycles(said)):
        found.note(
            "cycle",
            f"By what {id} names as seen before, it comes before itself.",
            where[id],
            "These names are no edges and decide nothing. gitmem does not write such a thing; ask who did.",
            command("gitmem", "thread", id),
        )


def _said(group: Sequence[Line]) -> Said:
    first = min(group, key=lambda each: each.line)
    return Said(first.record or {}, [each.line for each in group])


def _senders(one: Said) -> str:
    """Who the lines of an id say they are by, in a few words."""
    names = sorted({str((records.read(line) or {}).get("sender_identity")) for line in one.lines})
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if names[3:] else "")


def _check_answer(each: Line, digests: Mapping[str, set[str]], found: Findings) -> None:
    record = each.record or {}
    if record["kind"] == "signal":
        answered = record.get("reply_to")
        named = [*(record.get("after") or ()), *([answered] if answered else [])]
    elif record["kind"] == "receipt":
        answered = record.get("signal_id")
        named = [answered]
    else:
        return
    missing = sorted({str(name) for name in named if name not in digests})
    if missing:
        found.note(
            "unknown-id",
            f"This {record['kind']} names {', '.join(missing[:3])}, which this log does not have.",
            each.where,
            LATER,
            "gitmem sync",
        )
    of = record.get("answers_digest")
    if of and answered in digests and of not in digests[str(answered)]:
        found.problem(
            "swapped-content",
            f"This {record['kind']} answers {answered} with another content than any that this log has of it.",
            each.where,
            "It marks nothing read and decides nothing until a line with this content arrives.",
            "gitmem sync",
        )
    if record["kind"] == "signal" and answered in digests and not of and not is_imported(record):
        found.note(
            "no-digest",
            f"This signal answers {answered} and does not say which line of it.",
            each.where,
            "It marks nothing read and decides nothing. gitmem always names the line; ask who wrote this one.",
            command("gitmem", "thread", str(record["signal_id"])),
        )
