"""Results of calls as text: what an agent answered, or why there is no answer."""

from __future__ import annotations

from .sessions import plain
from .text import SEPARATOR, plural, quote_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitmem.invocation.bundle_content import Transfer
    from gitmem.invocation.call_result import AgentResult, CallResult
    from gitmem.invocation.preview import CallPreview, PreviewedAgent

ERROR_SHOWN = 2_000  # characters of an error
OMITTED_SHOWN = 10
KEPT = ("branch", "commit", "uncommitted", "worktree")  # fields of a payload: where the work of the callee is
KEPT_SHOWN = 300  # characters of each


def result(found: CallResult) -> list[str]:
    """Return the results of a call: of one agent or several, each text in a frame, as it is the text of a peer."""
    from gitmem.signals.message_frame import PEERS

    lines = [PEERS] if any(each.message or each.error for each in found.results) else []
    for each in found.results:
        lines += _agent(each)
    if len(found.results) > 1:
        left = len(found.results) - found.completed - found.failed
        parts = [
            plural(found.completed, "result"),
            f"{found.failed} failed" if found.failed else "",
            f"{left} open" if left else "",
        ]
        lines.append(plain(SEPARATOR.join(filter(None, parts))))
    lines += transferred(found.transfer) if found.transfer is not None else []
    return [*lines, *(plain(f"note: {each}") for each in found.warnings)]


def transferred(found: Transfer) -> list[str]:
    """Return what was handed over: how much, and what was left out."""
    counts = [
        f"{name.replace('_', ' ')} {count}" for name, count in found.counts.items() if name != "omitted"
    ]
    size = f"{found.bytes} of {found.budget} bytes"
    lines = [plain(f"handed over: {', '.join([*counts, size]) if found.bytes else 'nothing'}")]
    lines += [plain(f"not handed over: {each.id} {each.reason}") for each in found.omitted[:OMITTED_SHOWN]]
    more = len(found.omitted) - OMITTED_SHOWN
    return [*lines, *([f"{more} more not shown; --json has all of them"] if more > 0 else [])]


def previewed(found: CallPreview) -> list[str]:
    """Return what a call would do."""
    lines = [plain(f"would call {', '.join(map(_whom, found.agents))}; nothing was written")]
    lines += transferred(found.transfer) if found.transfer is not None else ["would hand over nothing"]
    return [*lines, *found.text.splitlines()]


def _whom(each: AgentResult | PreviewedAgent) -> str:
    """Return name and address; the name alone for a role, which has no address until somebody takes the task."""
    return f"{each.name} ({each.agent})" if each.agent not in ("", each.name) else each.name


def _agent(each: AgentResult) -> list[str]:
    """Return what became of the task of one agent."""
    state = (
        each.state
        if each.confirmed or each.state not in ("completed", "failed")
        else f"{each.state} (unconfirmed)"
    )
    parts = [
        each.task_id,
        _whom(each),
        state,
        f"found by {each.resolved_by}" if each.resolved_by not in ("exact", "") else "",
        "stopped waiting; the task goes on" if each.timed_out and each.state != "canceled" else "",
    ]
    lines = [plain(SEPARATOR.join(filter(None, parts)))]
    if each.message:
        lines += quote_lines(each.message)
    if each.error:
        texts = [str(each.error[name]) for name in ("type", "message") if each.error.get(name)]
        said = ": ".join(dict.fromkeys(texts))
        lines += quote_lines(said[:ERROR_SHOWN])
    kept = [(name, each.payload.get(name)) for name in KEPT]
    shown = [f"{name} {value[:KEPT_SHOWN]}" for name, value in kept if isinstance(value, str)]
    return [*lines, *([plain(f"its work: {SEPARATOR.join(shown)}")] if shown else [])]
