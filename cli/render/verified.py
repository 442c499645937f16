"""Who attested the lines of a log or of a record, as text."""

from __future__ import annotations

from .output import paint
from .text import block, facts, format_ago, plain, plural, rest, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitmem.history.verify import JudgedLine, Verified, Writer

SHOWN = 50  # lines, held lines, and gaps and forks


def verified(found: Verified) -> list[str]:
    """Return whether everything is attested, by whom, and what is not."""
    word = paint("verified", "good") if found.verified else paint("not verified", "bad")
    unsigned = sum(found.unsigned.values())
    signed = sum(each.lines for each in found.writers)
    kinds = ", ".join(f"{count} {kind}" for kind, count in found.unsigned.items())
    said = facts(
        found.asked or "the log",
        f"{plural(signed, 'attested line')} of {plural(len(found.writers), 'writer')}",
        unsigned and f"{unsigned} unsigned: {kinds}",
        found.held and f"{len(found.held)} held",
        found.left_out and f"{found.left_out} not read, because there are too many",
        found.commit and f"commit {found.commit[:12]}",
    )
    writers = [
        (
            each.writer,
            plain(
                facts("you" if each.you else "", each.known_for and f"known for {', '.join(each.known_for)}")
            ),
            format_ago(each.since),
            str(each.lines),
            str(each.clones),
        )
        for each in found.writers
    ]
    numbers = [line for each in found.writers for line in _numbers(each)]
    return block(
        f"{word}: {said}",
        table(writers, head=("WRITER", "", "KEY SINCE", "LINES", "CLONES")),
        [plain(f"note: {each}") for each in found.problems],
        numbers[:SHOWN],
        rest(len(numbers) - SHOWN, then=""),
        _lines(found.lines),
        found.held and "Ignored, as they are not signed by the writer that they name, or by nobody:",
        _lines(found.held),
    )


def _numbers(each: Writer) -> list[str]:
    gaps = [
        f"gap: {each.writer}, clone {gap.clone}: no attestation {gap.first} to {gap.last}"
        for gap in each.gaps
    ]
    return [
        *gaps,
        *(f"fork: {each.writer}, clone {fork.clone}: several attestations {fork.number}" for fork in each.forks),
    ]  # fmt: skip


def _lines(found: Sequence[JudgedLine]) -> list[str]:
    rows = [
        (
            format_ago(each.at),
            plain(each.id),
            plain(" ".join(filter(None, (each.kind, each.event)))),
            f"from {plain(each.sender)}" if each.sender else "",
            f"writer {each.writer}" if each.writer else "unsigned",
            f"attested {format_ago(each.attested)}" if each.attested else "",
        )
        for each in found[:SHOWN]
    ]
    return [*table(rows, shortened=(5, 3)), *block(rest(len(found) - SHOWN, then=""))]
