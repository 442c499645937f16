"""Forget: take texts of the caller's own lines out of every answer, and ask others to forget theirs. What the lines decide stays."""

from __future__ import annotations

from .. import commit_message, records
from ..errors import UsageError
from ..index import catch_up, entities, grants, resolve_id
from ..log import forgetting, ref
from ..log.lines import SALT, is_reduced, line_hash, writer_of
from ..order.content import is_notice
from ..outcome import Outcome, Struct, command
from ..signals import send
from ..text.strict_json import quote
from .verify import THREAD, resolved

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from ..agents.caller import Caller
    from ..store import Store

LINES_MAX = 1_000  # of one record
QUOTED_BYTES = 8  # a shorter text is in others by chance
SHOWN = 20  # records that quote the text, and files that have it
COPIED = (
    "Git's history of the log still has it until `gitmem sync --forget` writes the log anew, which your user has to confirm. If it was"
    " a secret, replace it: clones that never sync, forks and the caches of hosts keep what they have."
)
_TEXTED = ("signal", THREAD, "node", "task")
_TEXTS = ("message", "content")
_WITH_TEXT = "l.kind NOT IN ('', 'attestation') AND instr(l.body, ?)"


class Forgotten(Outcome, kw_only=True):
    """What was forgotten of what an id names.

    Attributes:
        lines: How many lines of the caller's lost their texts now.
        records: The ids of the records that say so.
        asked: The ids of the signals that ask others to forget their lines.
        quoted: The ids of other records that contain a forgotten text.
        copies: Files of this clone that contain one, or could not be read.
    """

    id: str
    lines: int = 0
    records: list[str] = []
    asked: list[str] = []
    quoted: list[str] = []
    copies: list[str] = []
    commit: str | None = None
    warnings: list[str] = []
    next: list[str] = []


class _Lines(Struct):
    """The lines of what an id names: the caller's that can be forgotten, those that are, and others', with what is left."""

    own: list[bytes] = []
    over: list[bytes] = []
    others: list[bytes] = []
    fixed: list[bytes] = []


def forget(store: Store, caller: Caller, id: str, reason: str) -> Forgotten:
    """Forget the texts of the caller's lines of a signal, a node with its changes, a thread or a task; ask others for theirs.

    Args:
        id: Its id, or the beginning of it.
        reason: Why, in the caller's words; everybody can read it.

    Raises:
        UsageError: There is no such id, it has no texts, or nobody can forget them. Nothing was written.
        StoreError: Nothing is recorded.
    """
    kind, id = resolved(store, id)
    if kind not in _TEXTED:
        raise UsageError(
            f"{id} is a {records.NOUNS[kind]}, which has no text to forget; signals, threads, nodes and tasks have. Nothing was written.",
            code="no-text",
            next=[command("gitmem", "show", id)],
        )
    lines = _lines(store, kind, id)
    found = Forgotten(id=id)
    if lines.own:
        _forget(store, caller, found, lines.own, reason)
    elif lines.others and kind != THREAD:
        _ask(store, caller, found, lines.others, reason)
    elif not lines.over:
        raise _impossible(id, lines)
    elif back := _back_in_log(store, lines.over):
        _forget(store, caller, found, back, reason)
    else:
        found.warnings.append(f"The texts of {id} were forgotten before. Nothing was written.")
    if lines.own and lines.others:
        found.warnings.append(f"{_count(lines.others)} of others, who alone can forget them, in {id}.")
    if lines.own and lines.fixed:
        found.warnings.append(
            f"{_count(lines.fixed)} that cannot be forgotten, in {id}: other tools wrote them."
        )
    return found


def _back_in_log(store: Store, over: Sequence[bytes]) -> list[bytes]:
    """Return forgotten lines of the caller's that the log has as a whole, if it can't be written anew without another record.

    Somebody has written it anew with them.
    """
    log, writer, allowed = store.log, store.writers.writer(), grants.Grants(store.db())
    own = [line for line in over if allowed.allow_all(writer, writer_of(line))]
    back = [line for line in own if catch_up.is_whole(store.db(), line_hash(line))]
    epoch = forgetting.epoch_of(log, log.git.tip(ref.LOG_REF)) if back else None
    return back if epoch and not forgetting.may_begin_epoch(log) else []


def _count(lines: Sequence[bytes]) -> str:
    return "There is 1 line" if len(lines) == 1 else f"There are {len(lines):,} lines"


def _impossible(id: str, lines: _Lines) -> UsageError:
    who = (
        "others wrote its texts"
        if lines.others
        else "its texts were imported, or are the same whoever writes them"
    )
    return UsageError(
        f"Nothing of {id} can be forgotten: {who}. Nothing was written.",
        hint="Name one of its signals: gitmem then asks its sender." if lines.others else "",
        code="not-own",
        next=[command("gitmem", "thread", id)] if lines.others else [],
    )


def _lines(store: Store, kind: str, id: str) -> _Lines:
    """Return the lines with texts of what an id names."""
    found = _Lines()
    writer, allowed = store.writers.writer(), grants.Grants(store.db())
    for line in resolve_id.all_lines(store.db(), kind, id):
        record: Any = records.read(line)
        if is_reduced(line):
            found.over.append(line)
        elif record is None or not any(record.get(name) for name in records.TEXTS[record["kind"]]):
            continue
        elif SALT not in line or (record["kind"] == "signal" and is_notice(record)):
            found.fixed.append(line)
        else:
            (found.own if allowed.allow_all(writer, writer_of(line)) else found.others).append(line)
    return found


def _forget(store: Store, caller: Caller, found: Forgotten, lines: Sequence[bytes], reason: str) -> None:
    """Record that lines are forgotten, and remove their texts from the files of this clone."""
    digests = sorted({(writer_of(line), line_hash(line).hex()) for line in lines})
    new = []
    for writer in sorted({each for each, _ in digests}):
        mine = [digest for each, digest in digests if each == writer]
        for start in range(0, len(mine), LINES_MAX):
            found.records.append(store.new_id("forget"))
            new.append(
                store.line(
                    "forget",
                    {
                        "forget_id": found.records[-1], "lines": mine[start : start + LINES_MAX], "about": found.id, "reason": reason,
                        "of": writer if writer != store.writers.writer() else None,
                        "sender_identity": caller.reader, "sender_session": caller.session_id, "sender_name": caller.name,
                    },
                )
            )  # fmt: skip
    message = commit_message.of_forget(caller.author, caller.name or caller.reader, found.id, reason)
    found.commit = store.record([*new, *caller.keepalive(store)], message).commit
    found.lines = len(lines)
    # What waits is in a file of its own.
    found.commit = store.try_commit_waiting(deferred=True) or found.commit
    texts = [*_texts(lines)]
    found.quoted = _quoting(store.db(), texts)
    store.tidy_index()
    found.copies = forgetting.cut_files(store.log, lines, texts)[:SHOWN]
    found.warnings.append(COPIED)
    found.next = ["gitmem sync", "gitmem sync --forget"]


def _texts(lines: Iterable[bytes]) -> Iterator[str]:
    """Yield the texts of lines as they stand in JSON, those that are no words by chance."""
    for line in lines:
        record: Any = records.read(line)
        for name in _TEXTS:
            text = quote((record.get(name) or "").strip())[1:-1]
            if len(text.encode()) >= QUOTED_BYTES:
                yield text


def _quoting(db: sqlite3.Connection, texts: Sequence[str]) -> list[str]:
    """Return the ids of records that contain one of these texts."""
    found: dict[str, None] = {}
    for text in dict.fromkeys(texts):
        for line in entities.bodies(db, _WITH_TEXT, (text,), order="l.id", limit=SHOWN):
            record: Any = records.read(line)
            found[str(record[records.ID_FIELDS[record["kind"]]])] = None
    return list(found)[:SHOWN]


def _ask(store: Store, caller: Caller, found: Forgotten, lines: Sequence[bytes], reason: str) -> None:
    """Ask the writers of lines to forget them."""
    found.warnings.append("Only who wrote it can forget it; its sender is asked to.")
    for sender in sorted({str(_record(line)["sender_identity"]) for line in lines}):
        text = f"Please forget the text of {found.id}: {reason}\n\nRun: {command('gitmem', 'forget', found.id, reason)}"
        sent = send.send(store, caller, text, to=[sender], interrupt="priority")
        found.asked.append(sent.signal["signal_id"])
    found.next = [command("gitmem", "thread", each) for each in found.asked[:1]]


def _record(line: bytes) -> Any:
    return records.read(line)
