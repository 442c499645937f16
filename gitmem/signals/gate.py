"""The gate: it is closed while signals on a work unit are unread or unanswered."""

from __future__ import annotations

from .. import records
from ..agents import audits, mailbox, session_view
from ..agents.descriptions import sender_name
from ..commit_message import sanitize
from ..errors import UsageError
from ..index import resolve_id
from ..order import thread
from ..outcome import Outcome, command
from ..records.ids import UNIT_FORM, is_work_unit, unit_key
from ..settings import WU
from ..store import add_lost_records
from ..text.name_matching import similar
from ..text.sanitize import is_blank
from . import message_frame, send
from .threads import ThreadLines, initiatives_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypedDict

    from ..agents.caller import Caller
    from ..order.thread import ThreadSignal
    from ..store import Store
    from .threads import ThreadCache

    class BlockingSignal(TypedDict):
        """A signal that closes a gate: its metadata and the commands that settle it, not its text."""

        signal_id: str
        created_at: str
        sender_identity: str
        sender_name: str | None
        intent: str
        requires_ack: bool
        thread_id: str | None
        wu_id: str | None
        initiative_id: str | None
        why: str
        commands: list[str]


SHOWN_MAX = 50  # signals listed in an answer
NAMED_MAX = 1_000  # signals named in an audit: the length of a line is limited


def check(
    store: Store,
    caller: Caller,
    *,
    wu: str | None = None,
    initiative: str | None = None,
    reason: str | None = None,
    push: bool = False,
) -> Gate:
    """Check whether signals on a work unit or its initiatives block the caller. Mark nothing as read.

    A signal is on the work unit that it names, or else the root of its thread; likewise for initiatives. Broadcasts
    and signals to others never block.

    Args:
        wu: The work unit; by default that of the caller's session, unless an initiative is given.
        initiative: The initiative; by default those that sessions or signals name together with the work unit.
        reason: Pass the closed gate: append an audit record with this reason. An open gate records nothing. The
            signals stay unread, but do not close this gate for the caller again.
        push: Only warn about a work unit that no record names: a hook can't ask.

    Raises:
        UsageError: `no-work-unit`, `bad-work-unit`, `unknown-work-unit` or `no-reason`.
        StoreError: The audit can't be recorded.
    """
    if reason is not None and is_blank(reason):
        raise UsageError(
            "Passing the gate despite unread signals needs a reason. Nothing was written.",
            hint="Give --anyway 'why'; it is recorded in the log, where everybody can read it.",
            code="no-reason",
        )
    wu = wu if wu is not None or initiative is not None else caller.wu_id
    if not wu and not initiative:
        raise _no_unit()
    unnamed = unnamed_unit(store, wu) if wu is not None else None
    if unnamed is not None and not push:
        raise unnamed
    about = [initiative] if initiative else initiatives_of(store.db(), wu or "")
    found, ids = look(store, caller, wu, about)
    if ids and reason is not None:
        _pass(store, caller, found, ids, reason)
    found.next = _next(store, found)
    found.warnings += [unnamed.message] if unnamed is not None else []
    add_lost_records(store, found)
    return found


def look(
    store: Store,
    caller: Caller,
    wu: str | None,
    initiatives: Sequence[str],
    *,
    threads_of: ThreadCache | None = None,
) -> tuple[Gate, list[str]]:
    """Return a gate as `check` finds it, without its next commands, and the ids of all blocking signals, oldest first.

    Args:
        wu: The work unit.
        initiatives: Its initiatives, see `initiatives_of`.
        threads_of: Folded threads, as far as somebody has them; the others are read.
    """
    found, db = Gate(caller, wu, initiatives), store.db()
    who = (caller.reader, caller.session_id, caller.workspace)
    unread = _by_id(db.execute(*mailbox.directed_to(db, *who, unread=True)))
    unit = unit_key(wu) if not initiatives else None
    asked = _by_id(db.execute(*mailbox.directed_to(db, *who, unread=False, unit=unit)))
    kept: list[tuple[bytes, str, BlockingSignal]] = []
    by_thread: dict[str, dict[str, list[str]]] = {}
    for signal_id, to in (asked | unread).items():
        by_thread.setdefault(resolve_id.thread_of(db, signal_id), {})[signal_id] = [*to, *caller.ids]
    lines = ThreadLines(db)
    for thread_id, ids in by_thread.items():
        known = threads_of.of(thread_id) if threads_of is not None else None
        fold = known or thread.FoldedThread(thread_id, lines.load(thread_id) or {})
        for signal_id, readers in ids.items():
            signal = fold.signals.get(signal_id)
            if signal is None or not is_on(signal, fold.root, found.wu_id, found.initiatives):
                continue
            if signal_id in unread or (signal_id in asked and fold.owes(readers, signal_id)):
                why = "unread" if signal_id in unread else "unanswered"
                kept.append((signal.line, signal_id, _shown(store, signal, why)))
    kept.sort(key=lambda each: each[:2])
    passed = audits.passed_at_gate(store, caller, found.wu_id) if kept else {}
    blocking = [each for each in kept if each[1] not in passed]
    if kept and not blocking:
        found.passed, found.audit_id = True, passed[kept[-1][1]]
    kept, found.open = blocking or kept, not blocking
    found.unread = sum(1 for *_, fields in kept if fields["why"] == "unread")
    found.unanswered = len(kept) - found.unread
    found.signals = [fields for *_, fields in kept[:SHOWN_MAX]]
    found.more = len(kept) - len(found.signals)
    return found, [signal_id for _, signal_id, _ in blocking]


def _by_id(rows: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return, for each signal id, the reader's addresses to which it was sent."""
    found: dict[str, list[str]] = {}
    for address, signal_id in rows:
        found.setdefault(signal_id, []).append(address)
    return found


def is_on(
    signal: ThreadSignal, root: ThreadSignal | None, unit: str | None, initiatives: Sequence[str] = ()
) -> bool:
    """Return whether any line of a signal is on a work unit or initiatives."""
    for line in signal.lines:
        record = records.read_kind("signal", line) or signal.record
        first = root.record if root is not None else record
        wu = record.get("wu_id") or first.get("wu_id")
        initiative = record.get("initiative_id") or first.get("initiative_id")
        if (wu and unit_key(wu) == unit_key(unit)) or (initiative and initiative in initiatives):
            return True
    return False


def _shown(store: Store, signal: ThreadSignal, why: str) -> BlockingSignal:
    """Return a signal as it is shown."""
    record = signal.record
    read = command("gitmem", "inbox", "--thread", record.get("thread_id") or signal.id)
    is_conflicting = thread.is_conflicting(signal)
    settles = message_frame.compare(signal.id) if is_conflicting else message_frame.decide_now(store, record)
    return {
        "signal_id": signal.id,
        "created_at": record["at"],
        "sender_identity": record["sender_identity"],
        "sender_name": sender_name(store, record),
        "intent": record["intent"],
        "requires_ack": record.get("requires_ack", False),
        "thread_id": record.get("thread_id"),
        "wu_id": record.get("wu_id"),
        "initiative_id": record.get("initiative_id"),
        "why": why,
        "commands": [read] if why == "unread" else settles,
    }


def _pass(store: Store, caller: Caller, found: Gate, ids: Sequence[str], reason: str) -> None:
    """Pass the closed gate: record an audit."""
    audit = audits.prepare(
        store,
        caller,
        audits.GATE,
        count_text(found),
        reason,
        wu=found.wu_id,
        initiative=found.initiatives[0] if len(found.initiatives) == 1 else None,
        signal_ids=ids[:NAMED_MAX],
    )
    appended = store.record([audit.line], audit.message)
    found.open = found.passed = True
    found.audit_id, found.commit, found.recorded = audit.id, appended.commit, True


def pass_command(wu: str) -> str:
    """Return the command that passes the closed gate of a work unit."""
    return command("gitmem", "gate", "--wu", wu, "--anyway", "why they may wait")


def count_text(found: Gate) -> str:
    """Return text such as `2 unread signals` or `1 unread and 2 unanswered signals`."""
    counts = ((found.unread, "unread"), (found.unanswered, "unanswered"))
    parts = [f"{count} {word}" for count, word in counts if count]
    return f"{' and '.join(parts)} signal{'' if found.unread + found.unanswered == 1 else 's'}"


def _next(store: Store, found: Gate) -> list[str]:
    if found.passed:
        return [command("gitmem", "show", str(found.audit_id)), *(["gitmem inbox"] if found.unread else [])]
    steps: list[str] = []
    if found.unread:
        on_it = all(
            unit_key(fields["wu_id"]) == unit_key(found.wu_id)
            for fields in found.signals
            if fields["why"] == "unread"
        )
        steps.append(command("gitmem", "inbox", *(["--wu", found.wu_id] if found.wu_id and on_it else [])))
    open_ones = [fields for fields in found.signals if fields["why"] == "unanswered"]
    if open_ones:
        steps += open_ones[0]["commands"]
    if send.is_unpublished(store):  # the remote may have signals that this clone lacks
        steps.append("gitmem sync")
    return steps[:3]


class Gate(Outcome):
    """The state of the gate of a work unit for one reader.

    Attributes:
        open: Whether no signal blocks the reader, or the reader passed the gate with a reason.
        unread: The number of unread directed signals on the work unit; after a pass, those that were passed.
        unanswered: The number of further signals to which the reader owes an answer; likewise.
        signals: The blocking signals, oldest first, without their text: `why` is `unread` or `unanswered`,
            `commands` settle the signal.
        more: The number of blocking signals not listed.
        passed: Whether the reader passed the closed gate, now or before, with the record `audit_id`.
        warnings: Reasons why the answer may be wrong: lines are missing from the log.
    """

    def __init__(self, caller: Caller, wu: str | None, initiatives: Sequence[str]) -> None:
        self.open = True
        self.reader = caller.reader
        self.wu_id = wu
        self.initiatives = list(initiatives)
        self.unread = 0
        self.unanswered = 0
        self.signals: list[BlockingSignal] = []
        self.more = 0
        self.passed = False
        self.audit_id: str | None = None
        self.commit: str | None = None
        self.recorded = False
        self.warnings: list[str] = []
        self.next: list[str] = []

    @property
    def about(self) -> str:
        """The work unit and the initiatives, for messages."""
        parts = [self.wu_id or "", *self.initiatives]
        return ", ".join(part for part in parts if part)


COMPARED_MAX = 10_000  # names: peers can write any number


class GateUnchecked(Outcome, kw_only=True):
    """The answer about a push that could not be checked because the work unit or the caller is unknown.

    Attributes:
        open: True: the push continues.
        wu_id: The work unit; None if unknown.
        reason: A sentence about what is unknown.
    """

    open: bool = True
    wu_id: str | None
    reason: str
    warnings: list[str] = []
    next: list[str]


def unchecked(store: Store) -> GateUnchecked:
    """Return the answer if neither the branch nor `gitmem.wu` names the work unit of the push."""
    branch = store.branch()
    where = (
        f"branch {branch} does not contain the id of a work unit in the log"
        if branch
        else "no branch is checked out"
    )
    reason = f"{where}, and {WU.key} is not set; signals were not checked, and the push continues."
    named = session_view.unit_keys_in(branch or "")
    setting = [command("git", "config", WU.key, named[0])] if named else ["gitmem gate --help"]
    return GateUnchecked(wu_id=None, reason=reason, next=setting)


def unknown_pusher(wu: str) -> GateUnchecked:
    """Return the answer about a push by an unknown caller, to whom no signal can have been sent."""
    reason = (
        "no session and no user.email say who pushes, so signals were not looked for and the push continues."
    )
    return GateUnchecked(wu_id=wu, reason=reason, next=["gitmem session start", "gitmem gate --help"])


def _no_unit() -> UsageError:
    """Return the error about a caller who names no work unit, and whose session has none."""
    return UsageError(
        "Missing work unit.",
        hint="Name it with --wu WU-123, or set your session's.",
        code="no-work-unit",
        next=["gitmem session set --wu WU-123", "gitmem gate --help"],
    )


def unnamed_unit(store: Store, wu: str, *, ci: bool = False) -> UsageError | None:
    """Return the error about a work unit that no record names; None if one does.

    Args:
        ci: Whether it is for CI, which has no session.

    Raises:
        UsageError: `bad-work-unit`.
    """
    if not is_work_unit(wu):
        raise UsageError(
            f"Invalid work unit: {sanitize(wu)[:60]}.", hint=f"Use {UNIT_FORM}.", code="bad-work-unit"
        )
    if session_view.is_known_unit(store, wu):
        return None
    known = similar(unit_key(wu), session_view.units(store.db(), COMPARED_MAX))
    return UsageError(
        session_view.not_named(wu),
        hint="Check its spelling."
        if ci
        else "Check its spelling. To name a new one, set it for your session.",
        code="unknown-work-unit",
        suggestions=known,
        next=[
            *(command("gitmem", "gate", *(["--ci"] if ci else []), "--wu", each) for each in known[:1]),
            "gitmem sync" if ci else command("gitmem", "session", "set", "--wu", wu),
        ],
    )
