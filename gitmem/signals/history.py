"""Read the log: its newest records, one record with the commit that holds it, and who has received which signal, in the contract's shape."""

from __future__ import annotations

from .. import records
from ..agents import audits, mailbox, names, presence
from ..agents.descriptions import sender_name_from
from ..errors import UsageError, check_limit
from ..index import entities, resolve_id
from ..log.lines import SALT, digest, format_at, is_reduced, reduced
from ..log.ref import LOG_REF, lookup
from ..order import thread as agreement
from ..order.content import keyed_content
from ..outcome import Outcome, command
from ..records.ids import is_id, unit_key, unit_key_sql
from ..text.name_matching import fold
from ..text.sanitize import sanitize
from ..text.strict_json import json_list
from . import message_frame, threads
from .inbox import FOLD_MAX_BYTES
from .task_records import TaskRecords
from .threads import ThreadCache

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ..agents.presence import ShownNames
    from ..order.thread import FoldedThread, ThreadSignal
    from ..records.record_types import SignalFields
    from ..store import Store


# Recipients of a signal whose names are looked up; others are displayed by their addresses.
LOOKED_UP_MAX = 100

AHEAD_MICROS, AHEAD_SHOWN = 24 * 3600 * 1_000_000, 5
UPKEEP = ("receipt", "access", "attestation")  # kinds that are listed only on request
_WRITERS = (
    "sender_identity",
    "reader_identity",
    "agent_identity",
    "session_id",
)  # fields that name who wrote a record


_UNIT = "json_extract(l.body, '$.wu_id')"
_SPECIALTY = "json_extract(l.body, '$.specialty_profile')"
# The roles that a line names, as they are shown.
_ROLES = (
    "json_extract(l.body, '$.target_role')", "json_extract(l.body, '$.sender_role')",
    f"json_extract(l.body, '$.lifecycle_role') || coalesce('/' || {_SPECIALTY}, '')",
)  # fmt: skip


class LogPage(Outcome, kw_only=True):
    """The newest records of the log, oldest first, with `kind` and `sender_name`.

    Attributes:
        ahead: Records that are dated more than a day ahead, by a wrong clock or a forger: not the newest, whatever they say.
    """

    entries: list[Mapping[str, Any]]
    ahead: list[Mapping[str, Any]] = []
    next: list[str]


class RecordDetail(Outcome):
    """One record, and the commit that added it; None while the record waits for a commit."""

    kind: str
    record: Mapping[str, Any]
    commit: str | None
    recorded: bool = True
    ambiguous: bool = False
    next: list[str] = []


def log(
    store: Store,
    *,
    n: int = 20,
    wu: str | None = None,
    from_: str | None = None,
    since: int | None = None,
    role: str | None = None,
    receipts: bool = False,
    audits: bool = False,
) -> LogPage:
    """Return the last `n` records of all kinds, oldest first.

    Args:
        since: Only records from this time on, microseconds since the epoch.
        role: Only signals of or for a role, and sessions that state it; without a profile those of any.
        receipts: Include receipts, attestations, reads of memory nodes, and renewals of claims and takes.
        audits: Only audits, which say that somebody passed a rule and why, and signals that a session recorded as somebody else (`via`).

    Raises:
        UsageError: `n` is below 1.
    """
    check_limit(n)
    db = store.db()
    left = [*([] if receipts else UPKEEP), *(["session"] if wu or from_ else [])]
    kinds = [each for each in records.KINDS if each not in left]
    where, values = [f"l.kind IN ({', '.join('?' * len(kinds))})"], list(kinds)
    if not receipts:
        where.append("NOT (l.kind IN ('claim', 'task_event') AND json_extract(l.body, '$.event') IS 'renew')")
    if since is not None:
        where.append("l.at >= ?")
        values.append(format_at(max(since, 0)))
    if audits:
        where.append("(l.kind = 'audit' OR json_extract(l.body, '$.via') IS NOT NULL)")
    for text, condition in ((wu, _of_unit), (role, _of_role), (from_, _from)):
        if text:
            condition(db, text, where, values)
    by_session, by_reader = presence.names_by_session(db), presence.names_by_reader(db)
    until = format_at(store.now() + AHEAD_MICROS)

    def page(sign: str, order: str, most: int) -> list[Mapping[str, Any]]:
        condition, order = f"{' AND '.join(where)} AND l.at {sign} ?", f"l.at {order}, l.body {order}"
        lines = [*entities.bodies(db, condition, [*values, until], order=order, limit=most)]
        read = map(records.read, lines)
        return [_entry(db, by_session, by_reader, record) for record in read if record is not None]

    found = LogPage(entries=page("<=", "DESC", n)[::-1], next=["gitmem roster", "gitmem session start"])
    found.ahead = page(">", "ASC", AHEAD_SHOWN)
    if found.entries:
        named = next((each["signal_id"] for each in reversed(found.entries) if "signal_id" in each), None)
        found.next = [command("gitmem", "show", named)] if named else []
    return found


def _of_unit(db: sqlite3.Connection, wu: str, where: list[str], values: list[str]) -> None:
    where.append(f"{unit_key_sql(_UNIT)} = ?")
    values.append(unit_key(wu))


def _of_role(db: sqlite3.Connection, role: str, where: list[str], values: list[str]) -> None:
    wanted = fold(role)
    where.append("(" + " OR ".join(f"{each} = ? OR substr({each}, 1, ?) = ?" for each in _ROLES) + ")")
    values += [wanted, str(len(wanted) + 1), f"{wanted}/"] * len(_ROLES)


def _from(db: sqlite3.Connection, name: str, where: list[str], values: list[str]) -> None:
    senders = json_list(sorted(presence.readers_named(db, name) | {name}))
    fields = ("sender_session", *_WRITERS)
    of = (f"json_extract(l.body, '$.{field}') {entities.AMONG}" for field in fields)
    where.append(f"({' OR '.join(of)})")
    values += [senders] * len(fields)


def _entry(
    db: sqlite3.Connection, by_session: ShownNames, by_reader: ShownNames, record: Any
) -> Mapping[str, Any]:
    """Return a record of the log as it is shown, with the names of its sender and recipients."""
    kind, own = record["kind"], [record.get(field) for field in _WRITERS if record.get(field)]
    entry = {**records.shown(record, kind=True)}
    entry["sender_name"] = sender_name_from(by_session, record) or (by_reader.get(own[0]) if own else None)
    if kind == "signal":
        to = record["recipients"]
        known = [by_reader.get(each) or each for each in to[:LOOKED_UP_MAX]]
        entry["recipient_names"] = [*known, *to[LOOKED_UP_MAX:]]
    elif kind == "audit" and record["action"] in (audits.CLAIM, audits.CLAIM_RELEASE):
        entry["past"] = audits.past_claims(db, record)
    return entry


def show(store: Store, id: str) -> RecordDetail:
    """Return the record with an id, or the one with a prefix. Mark nothing as read.

    Raises:
        UsageError: `not-a-signal` for the id of a memory node; `unknown-id`, `short-id` or `ambiguous-id`.
    """
    db = store.db()
    if is_id("mem", id):
        raise UsageError(
            f"{id} is a memory node, not another record.",
            hint=f"`gitmem show {id}` shows it.",
            code="not-a-signal",
            next=[command("gitmem", "show", id)],
        )
    found = _last(store, presence.find_session(db, id) or id)
    if found is not None:
        return found
    signal_id = resolve_id.resolve(db, id, what="record")
    thread = threads.load(db, resolve_id.thread_of(db, signal_id))
    thread_signal = (
        thread[signal_id] if signal_id in thread else min(thread.values(), key=lambda each: each.line)
    )
    signal = records.shown(thread_signal.record)
    TaskRecords(db).put(signal, thread_signal.record)
    one = RecordDetail("signal", signal, commit_of(store, thread_signal.line))
    one.ambiguous = agreement.is_conflicting(thread_signal)
    one.next = [command("gitmem", "thread", thread_signal.id), *(["gitmem doctor"] if one.ambiguous else [])]
    if one.ambiguous:
        message_frame.mark_versions(db, [signal], len(agreement.contents(thread_signal)))
    return one


def _last(store: Store, id: str) -> RecordDetail | None:
    """Return the last record of any kind but signals that has an id, or the one that begins with it; None if there is none.

    Raises:
        UsageError: `ambiguous-id`.
    """
    begins = len(id.partition("-")[2]) >= resolve_id.READ_PREFIX_MIN
    found: dict[str, tuple[str, bytes]] = {}
    for kind, field in records.ID_FIELDS.items():
        if field == "signal_id":
            continue
        rows = resolve_id.records_named(store.db(), kind, field, id, begins=begins)
        found.update((each, (kind, line)) for each, line in rows)
    if id not in found and len(found) > 1:
        raise resolve_id.ambiguous(id, found)
    kind, line = found.get(id) or next(iter(found.values()), ("", b""))
    record: Any = records.read(line) if line else None
    if record is None:
        return None
    one = RecordDetail(kind, records.shown(record), commit_of(store, line))
    one.next = [command("gitmem", *words(record)) for words in [_FOLLOW.get(kind)] if words is not None]
    return one


# What shows more of a record of a kind: the words of the command.
_FOLLOW: dict[str, Callable[[Mapping[str, Any]], tuple[str, ...]]] = {
    "session": lambda record: ("roster",),
    "patch": lambda record: ("show", record["node_ids"][0]),
    "relation": lambda record: ("show", record["from_id"]),
    "access": lambda record: ("show", record["node_ids"][0]),
    "audit": lambda record: ("log", "--audits"),
    "task": lambda record: ("task", "show", record["task_id"]),
    "task_event": lambda record: ("task", "show", record["task_id"]),
    "claim": lambda record: ("claim", "list"),
    "commit": lambda record: ("why", record["commit"]),
}


def commit_of(store: Store, line: bytes) -> str | None:
    """Return the commit of the log that added a line, or None while the line waits for a commit.

    Lines are never removed: along first parents, all commits before it lack the line and all later ones have it. So
    a binary search finds it.
    """
    db = store.db()
    path = entities.file_of(db, line)
    tip = store.git.tip(LOG_REF)
    if path is None or tip is None:
        return None
    return _first_with(store, tip, path, line)


def _first_with(store: Store, tip: str, path: str, line: bytes) -> str | None:
    """Return the first commit along first parents that has a line, or None."""
    commits = store.git.history(tip)
    low, high = 0, len(commits) - 1
    while low < high:
        middle = (low + high) // 2
        if _has(store, commits[middle], path, line):
            high = middle
        else:
            low = middle + 1
    return commits[low] if commits and _has(store, commits[low], path, line) else None


def _has(store: Store, commit: str, path: str, line: bytes) -> bool:
    entry = lookup(store.git, store.git.commit(commit).tree, path)
    found = store.git.blob(entry.oid).split(b"\n") if entry is not None else []
    return line in found or (
        is_reduced(line) and any(SALT in each and reduced(each) == line for each in found)
    )


def of_same_key(db: sqlite3.Connection, fields: SignalFields) -> ThreadSignal | None:
    """Return the recorded signal with the id of a new one, which an idempotency key made.

    Raises:
        UsageError: It has other content.
    """
    signal_id = fields["signal_id"]
    before = threads.load(db, resolve_id.thread_of(db, signal_id)).get(signal_id)
    by_role = {"role", "alias"} & set(fields.get("resolved_by", ()))
    if by_role and before and set(fields["requested_to"]) == set(before.record.get("requested_to", ())):
        fields = {**fields, "recipients": before.record["recipients"]}  # others may hold the role by now
    if before is not None and not fields.get(
        "delegation_id"
    ):  # an answer to a task got both as it was recorded
        fields = {
            **fields,
            "delegation_id": before.record.get("delegation_id"),
            "task_id": before.record.get("task_id"),
        }
    if before is not None and records.is_forgotten(before.record):
        fields = {**fields, "message": before.record["message"]}  # nobody knows it any more
    if before is not None and keyed_content(before.record) != keyed_content(fields):
        raise UsageError(
            f"The idempotency key {fields['idempotency_key']} was used for other content "
            f"({signal_id}). Nothing was written.",
            hint="Use a different key for each signal.",
            code="idempotency-conflict",
            next=[command("gitmem", "show", signal_id)],
        )
    return before


RECEIPTS_LIMIT = 50
_AT = 27


class EffectiveReceipt(Outcome, kw_only=True):
    """The one effective receipt of a reader for a signal, with the contract's names.

    Attributes:
        read_at: When the signal was first displayed to the reader or answered by it.
        delivery_state: delivered, acked or rejected.
        answers_digest: The digest of the line that was read; None for an imported reply without one.
        idempotency_key: The key of an importing adapter, or None.
        reader_name: The reader's display name, or None.
    """

    signal_id: str
    reader_identity: str
    read_at: str
    delivery_state: str = "delivered"
    answers_digest: str | None
    idempotency_key: str | None = None
    reader_name: str | None = None


class Stages(Outcome, kw_only=True):
    """How far a directed signal has come to one recipient: when, or None.

    Attributes:
        stored_at: When it was written.
        woken_at: When the client of a session of the reader in this clone was told that it waits (`agents.waking`). That is known
            in this clone alone, and no receipt: the agent may have seen nothing of it.
        shown_at: When it was first displayed to the reader or answered by it.
        answered: How: replied, acked or rejected.
    """

    signal_id: str
    reader_identity: str
    reader_name: str | None
    stored_at: str
    woken_at: str | None
    shown_at: str | None
    answered: str | None


class ReceiptList(Outcome):
    """Receipts, oldest first.

    Attributes:
        more: The number of older matching receipts that are not in `receipts`.
        stages: Of a signal that was asked for, for each recipient; else of signals for which a session of this clone was woken
            and that were not shown, at most `UNSHOWN_MAX`.
    """

    receipts: Sequence[EffectiveReceipt]
    more: int
    stages: Sequence[Stages] = []
    warnings: list[str] = []
    next: list[str] = []


def receipt_list(
    store: Store,
    signal: str | None = None,
    *,
    reader: str | None = None,
    limit: int = RECEIPTS_LIMIT,
    fold_most: int = FOLD_MAX_BYTES,
) -> ReceiptList:
    """Return the newest effective receipts. Mark nothing as read.

    Args:
        signal: Only receipts of this signal, by its id or a prefix. They include those of recipients that decided
            without a receipt or an answer for this signal itself.
        reader: Only receipts of this reader: a name, an agent identity, a session id or a person.
        limit: Maximum number of receipts.
        fold_most: Maximum bytes of lines of threads to fold. The state of a receipt beyond that is as recorded.

    Raises:
        UsageError: The log has no such signal, or the limit is below 1.
    """
    check_limit(limit)
    db = store.db()
    signal_id = _signal_id(db, signal) if signal else None
    readers = presence.readers_named(db, reader) | {reader} if reader else None
    found, total = _recorded(db, signal_id, readers, limit)
    cache = ThreadCache(db, fold_most)
    large = _set_states(db, found, cache)
    if signal_id is not None:
        implied = _implied(db, signal_id, cache)
        added = [each for each in implied if readers is None or each.reader_identity in readers]
        found = sorted([*found, *added], key=_newest)[-limit:]
        total += len(added)
        answered = {each.reader_identity for each in implied}
        folded = _thread_of(db, signal_id, cache)[1]
        is_settled = folded is not None and bool(folded.signals[signal_id].settled)
        waits = [each for each in _recipients(db, signal_id) if not is_settled and each not in answered]
        away = threads.away(store, signal_id, [each for each in waits if readers is None or each in readers])
    else:
        away = []
    _set_keys(db, found)
    names = presence.names_by_reader(db)
    for each in found:
        each.reader_name = names.get(each.reader_identity)
    outcome = ReceiptList(found, total - len(found))
    outcome.stages = [
        each
        for each in _stages(store, signal_id, found)
        if readers is None or each.reader_identity in readers
    ]
    outcome.warnings = [
        *_unknown(store, reader),
        *(
            f"{sanitize(id)} is too large to evaluate here; states of its receipts are as recorded."
            for id in large
        ),
        *away,
    ]
    outcome.next = _more_receipts(outcome, signal, reader, limit)
    return outcome


def _signal_id(db: sqlite3.Connection, text: str) -> str:
    id = resolve_id.resolve(db, text)
    if mailbox.digests_of(db, [id]):
        return id
    raise UsageError(
        f"{id} is a thread id; receipts need the id of a signal.",
        hint="`gitmem thread` lists its signals.",
        code="not-a-signal",
        next=[command("gitmem", "thread", id)],
    )


def _recipients(db: sqlite3.Connection, signal_id: str) -> list[str]:
    """Return the recipients that any line of a signal names."""
    found = mailbox.signals(db, "s.signal_id = ?", (signal_id,))
    return list(dict.fromkeys(name for record, _ in found for name in record["recipients"]))


UNSHOWN_MAX = 20


def _stages(store: Store, signal_id: str | None, found: Sequence[EffectiveReceipt]) -> list[Stages]:
    """Return the stages of a signal, or of those that somebody was woken for in vain.

    Args:
        found: The receipts of the signal.
    """
    from ..agents import waking

    db = store.db()
    woken: dict[tuple[str, str], int] = {}  # by signal and address
    for one, id, at in waking.woken(store, signal_id):
        for address in {one.reader, one.session_id}:
            woken[id, address] = min(at, woken.get((id, address), at))
    wanted = [(signal_id, each) for each in _recipients(db, signal_id)] if signal_id is not None else []
    if signal_id is None:
        wanted = [each for each in woken if mailbox.unread_contents(db, each[1], each[0])][:UNSHOWN_MAX]
    receipts = {each.reader_identity: each for each in found if each.signal_id == signal_id}
    shown, stages = presence.names_by_reader(db), []
    for id, address in wanted:
        receipt, told = receipts.get(address), woken.get((id, address))
        stored = mailbox.line_of(db, id)[7:34].decode()
        state = receipt.delivery_state if receipt is not None else "delivered"
        if state == "delivered":
            state = "replied" if mailbox.has_replied(db, id, address) else ""
        stages.append(
            Stages(
                signal_id=id, reader_identity=address, reader_name=shown.get(address), stored_at=stored,
                woken_at=format_at(told) if told is not None else None, shown_at=receipt.read_at if receipt is not None else None,
                answered=state or None,
            )
        )  # fmt: skip
    return stages


def _unknown(store: Store, reader: str | None) -> list[str]:
    """Return a sentence if the name of the reader is unknown, because an empty list does not show that."""
    if not reader or names.is_known(store, reader):
        return []
    return [f"Unknown reader: {sanitize(reader)}. `gitmem roster --all` lists all agents."]


def _newest(each: EffectiveReceipt) -> tuple[str, str, str]:
    return each.read_at, each.signal_id, each.reader_identity


def _recorded(
    db: sqlite3.Connection, signal_id: str | None, readers: set[str] | None, limit: int
) -> tuple[list[EffectiveReceipt], int]:
    """Return the newest receipts with a line of their own, oldest first, and the number of all."""
    rows, total = mailbox.receipts(db, signal_id, readers, limit)
    found = [
        EffectiveReceipt(signal_id=id, reader_identity=who, read_at=at[:_AT], answers_digest=at[_AT:] or None)
        for id, who, at in rows
    ]
    return sorted(found, key=_newest), total


def _thread_of(db: sqlite3.Connection, signal_id: str, cache: ThreadCache) -> tuple[str, FoldedThread | None]:
    thread_id = resolve_id.thread_of(db, signal_id)
    return thread_id, cache.of(thread_id)


def _set_states(db: sqlite3.Connection, found: Sequence[EffectiveReceipt], cache: ThreadCache) -> list[str]:
    """Set the states; return the ids of the threads that are too large."""
    large: dict[str, None] = {}
    for each in found:
        recorded = mailbox.delivery_state(db, each.signal_id, each.reader_identity)
        thread_id, folded = _thread_of(db, each.signal_id, cache)
        said = folded.signals.get(each.signal_id) if folded else None
        state: str | None = recorded
        if folded is None:
            large[thread_id] = None
        elif said is not None:
            state = threads.delivery_state(each.reader_identity, said, folded, recorded)
        each.delivery_state = state or "delivered"
    return list(large)


def _implied(db: sqlite3.Connection, signal_id: str, cache: ThreadCache) -> list[EffectiveReceipt]:
    """Return the receipts of recipients that decided in the thread, and have no receipt or answer for the signal."""
    _, folded = _thread_of(db, signal_id, cache)
    said = folded.signals.get(signal_id) if folded else None
    if folded is None or said is None:
        return []
    found = []
    for reader in dict.fromkeys(said.record["recipients"]):
        standing = folded.answer(reader, signal_id)
        if (
            standing is None
            or standing is said
            or mailbox.delivery_state(db, signal_id, reader, counts=mailbox.RECEIPT_COUNTS) is not None
        ):
            continue
        one = EffectiveReceipt(
            signal_id=signal_id,
            reader_identity=reader,
            read_at=standing.line[7:34].decode(),
            answers_digest=digest(said.line),
        )
        one.delivery_state = threads.STATES.get(standing.intent, "delivered")
        found.append(one)
    return found


def _set_keys(db: sqlite3.Connection, found: Sequence[EffectiveReceipt]) -> None:
    """Set the idempotency keys: those of the lines with the reader, the time and the digest of the receipt."""
    wanted = {
        (each.signal_id, each.reader_identity, each.read_at, each.answers_digest): each for each in found
    }
    ids, times = {id for id, *_ in wanted}, {at for _, _, at, _ in wanted}
    for line in mailbox.keyed_receipts(db, ids, times):
        record = records.read_kind("receipt", line)
        if record is None:
            continue
        key = (record["signal_id"], record["reader_identity"], line[7:34].decode(), record["answers_digest"])
        if key in wanted:
            wanted[key].idempotency_key = record.get("idempotency_key")


def _more_receipts(outcome: ReceiptList, signal: str | None, reader: str | None, limit: int) -> list[str]:
    found = []
    if outcome.more:
        typed = [*([signal] if signal else []), *(["--reader", reader] if reader else [])]
        found.append(command("gitmem", "receipts", *typed, "--limit", str(limit + outcome.more)))
    if outcome.receipts:
        found.append(command("gitmem", "thread", outcome.receipts[-1].signal_id))
    return found
