"""Import a project's records of LumenFlow, and say what was imported and what was not."""

from __future__ import annotations

import os
from functools import partial

from .. import records
from ..agents.broadcasts import IMPORTED_ORIGIN as ORIGIN
from ..commit_message import sanitize
from ..log.lines import digest
from ..outcome import command
from . import lumenflow_lines
from .imported import COMMIT_LINES_MAX, Imported, ImportRun, next_commands, write_lines
from .json_lines import ConvertedLines, objects_in, put, time_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ..agents.caller import Caller
    from ..store import Store

    Given = Mapping[str, object]


COUNTED = ("read", "imported", "present", "differs", "repeated", "bad")
DELIVERED = "delivered"

# The reader in a receipt that names none and is for a signal to everybody.
UNKNOWN_READER = "lumenflow:import:reader"
NOBODY = "system"  # LumenFlow's own word for an unknown sender
# Fields with the same meaning in the contract. Unknown ones are kept together in `lumenflow`.
SAME = (
    "thread_id", "reply_to", "intent", "interrupt_class", "requires_ack", "wu_id", "initiative_id", "lane",
    "sender_role", "target_role", "delegation_id", "artifact_path", "workspace_id", "sender_name",
    "idempotency_key",
)  # fmt: skip
_GONE = ("id", "signal_id", "created_at", "at", "kind", "schema_version", "mac", "writer", "read", "message", "content",
         "sender", "sender_identity", "recipients", "target_agent", *SAME)  # fmt: skip


def import_folder(
    store: Store,
    caller: Caller,
    folder: str,
    *,
    dry_run: bool = False,
    typed: str = "",
    lines_max: int = COMMIT_LINES_MAX,
) -> Imported:
    """Import a project's memory and signals into the log, with their ids and times.

    Lines in the log are not written again, and ids with other content in the log stay as they are: importing twice, or
    on two clones, adds nothing. An unreadable line is skipped and reported.

    Args:
        folder: The project's folder, or the one with the files.
        dry_run: Only report what would be done.
        typed: The folder as typed, for the next command.
        lines_max: The number of lines of one commit.

    Raises:
        UsageError: There are no such files.
        StoreError: A commit failed. Earlier commits of the import stay.
    """
    where = lumenflow_lines.find_folder(folder)
    counts = {kind: dict.fromkeys(COUNTED, 0) for kind in lumenflow_lines.NAMES}
    found = Imported(folder=where, dry_run=dry_run, counts=counts)
    work = _ImportRun(store, where, found)
    for name in lumenflow_lines.other_files(where):
        found.remark(name, 0, "it is not one of the LumenFlow files that gitmem reads")
    times = work.import_nodes()
    work.import_relations(times)
    work.import_receipts(work.import_signals())
    work.import_delegations()
    if not dry_run:
        write_lines(store, caller, found, work.lines, "LumenFlow", lines_max)
    found.warnings = [*filter(None, [caller.remark, found.unread_remark()])]
    again = command("gitmem", "import", "lumenflow", typed or folder)
    found.next = next_commands(found, again, "gitmem mem list")
    return found


class _ImportRun(ImportRun):
    """One import of a folder."""

    def __init__(self, store: Store, where: str, found: Imported) -> None:
        super().__init__(store, found, lumenflow_lines.NAMES, "LumenFlow")
        self.where = where
        self.progress = store.progress
        self.others: set[str] = set()  # signals that the log has with other content

    def read(self, kind: str) -> Iterator[tuple[int, dict[str, object]]]:
        """Yield (line number, object) of a file. Other lines are counted and reported."""
        path = lumenflow_lines.file_of(self.where, kind)
        if not os.path.isfile(path):
            return
        with open(path, "rb") as file:
            for number, given, why in objects_in(file, self.progress):
                self.found.counts[kind]["read"] += 1
                if given is None:
                    self.bad(kind, number, why)
                else:
                    yield number, given

    def mapped(
        self, kind: str, make: Callable[[dict[str, object]], ConvertedLines]
    ) -> Iterator[tuple[int, ConvertedLines]]:
        """Yield (line number, converted line) of a file. Other lines are counted and reported."""
        for number, given in self.read(kind):
            made = self.tried(kind, number, partial(self._converted, make, given))
            if made is not None:
                yield number, made

    def _converted(
        self, make: Callable[[dict[str, object]], ConvertedLines], given: dict[str, object]
    ) -> ConvertedLines:
        made = make(given)
        made.line = records.line(made.kind, made.at, made.fields, allow_secret=self.allow_secret)
        return made

    def import_nodes(self) -> dict[str, int]:
        """Convert nodes and return their times by id.

        Of a repeated id the last line counts, in the position of the first.
        """
        every: dict[str, tuple[int, ConvertedLines]] = {}
        for number, made in self.mapped("nodes", lumenflow_lines.convert_node):
            before = every.get(made.id)
            if before is not None:
                self.found.counts["nodes"]["repeated"] += 1
                if before[1].at != made.at:
                    self.found.remark(
                        lumenflow_lines.NAMES["nodes"],
                        number,
                        f"{made.id} differs from the node of line {before[0]} and replaces it, "
                        "as it does in LumenFlow",
                    )
            every[made.id] = (number, made)
        self._settle("nodes", every, self.known("nodes", every))
        return {id: made.at for id, (_, made) in every.items()}

    def import_relations(self, times: Mapping[str, int]) -> None:
        """Convert relations, each once. A relation to an unknown node is kept: the node may come with a sync."""
        every: dict[str, tuple[int, ConvertedLines]] = {}
        for number, made in self.mapped("relations", partial(lumenflow_lines.convert_relation, times=times)):
            self._once("relations", every, number, made)
        ends = {id for relation_key in every for id in relation_key.split("\n")[::2]}
        here = times.keys() | self.known("nodes", ends)
        for relation_key, (number, _) in every.items():
            for id in [each for each in relation_key.split("\n")[::2] if each not in here]:
                self.found.remark(
                    lumenflow_lines.NAMES["relations"], number, f"{id} is missing here; the relation is kept"
                )
        known = {relation_key for relation_key in every if self.is_related(relation_key.split("\n"))}
        self._settle("relations", every, known)

    def import_signals(self) -> dict[str, ImportedSignal]:
        """Convert signals, and return by id those that the log now has with exactly this content."""
        every: dict[str, tuple[int, ConvertedLines]] = {}
        for number, made in self.mapped("signals", convert_signal):
            self._once("signals", every, number, made)
        same = self._settle("signals", every, self.known("signals", every))
        self.others = every.keys() - set(same)
        return {id: made for id in same if isinstance(made := every[id][1], ImportedSignal)}

    def import_receipts(self, of: Mapping[str, ImportedSignal]) -> None:
        """Convert receipts, one for each reader and signal.

        Signals that their own line marks as read get receipts, too.
        """
        before: set[tuple[str, str, str]] = set()
        for number, given in self.read("receipts"):
            id = str(given.get("signal_id") or given.get("id"))
            if id in self.others:
                self.found.counts["receipts"]["differs"] += 1
            elif id not in of:
                self.bad("receipts", number, f"it is for the unknown signal {sanitize(id)[:40]}")
            else:
                made = self.tried("receipts", number, partial(convert_receipts, given, of[id]))
                if made is not None:
                    self._receipt(number, made, before, self.found.counts["receipts"])
        for one in of.values():
            if one.read:  # written by an old LumenFlow, without a line in the file of receipts
                self._receipt(0, convert_receipts({}, one), before, {})
            for address in one.recipients:
                if (address, one.id, DELIVERED) not in before:
                    self.found.unread[address] = self.found.unread.get(address, 0) + 1

    def import_delegations(self) -> None:
        """Convert delegations. The lines of one id are changes of one delegation."""
        merged, repeated = lumenflow_lines.merge_delegations(self.read("delegations"))
        self.found.counts["delegations"]["repeated"] += repeated
        every: dict[str, tuple[int, ConvertedLines]] = {}
        for number, first, last in merged:
            make = partial(lumenflow_lines.convert_delegation, last=last)
            made = self.tried("delegations", number, partial(self._converted, make, first))
            if made is not None:
                every[made.id] = (number, made)
        self._settle("delegations", every, self.known("delegations", every))

    def _receipt(
        self, number: int, made: ConvertedLines, before: set[tuple[str, str, str]], counts: dict[str, int]
    ) -> None:
        fresh, again = [], []
        for line in made.more:
            record = records.read_kind("receipt", line)
            assert record is not None  # it was checked as it was made
            key = (record["reader_identity"], made.id, record["delivery_state"])
            if key in before:
                again.append(line)
            elif not self.is_received(*key, DELIVERED):
                fresh.append(line)
            before |= {key, (*key[:2], DELIVERED)}  # another state says that it was delivered, too
        outcome = "imported" if fresh else "repeated" if again else "present"
        if counts:
            counts[outcome] += 1
        self.lines += [("receipts", line) for line in fresh]
        for remark in made.remarks:
            self.found.remark(lumenflow_lines.NAMES["receipts"], number, remark)

    def _once(
        self, kind: str, every: dict[str, tuple[int, ConvertedLines]], number: int, made: ConvertedLines
    ) -> None:
        """Keep the first line of an id."""
        if made.id not in every:
            every[made.id] = (number, made)
            return
        self.found.counts[kind]["repeated"] += 1
        if every[made.id][1].line != made.line:
            id = made.id.replace("\n", " ")
            self.found.remark(
                lumenflow_lines.NAMES[kind],
                number,
                f"{id} has different content in line {every[made.id][0]}, which is used",
            )

    def _settle(
        self, kind: str, every: Mapping[str, tuple[int, ConvertedLines]], known: set[str]
    ) -> list[str]:
        """Add the lines that the log lacks, and return the ids that it then has with exactly this content."""
        here = self.here(made.line for _, made in every.values())
        same = []
        counts = self.found.counts[kind]
        file = lumenflow_lines.NAMES[kind]
        for id, (number, made) in every.items():
            for remark in made.remarks:
                self.found.remark(file, number, remark)
            if made.line in here:
                counts["present"] += 1
            elif id in known:
                counts["differs"] += 1
                what = id.replace("\n", " ")
                self.found.remark(file, number, f"{what} is in the log with different content, which is kept")
                continue
            else:
                counts["imported"] += 1
                self.add(made.line)
            same.append(id)
        more = [line for id in same for line in every[id][1].more]
        gone = self.here(more)
        for line in more:
            if line not in gone:
                self.add(line)
        return same


class ImportedSignal(ConvertedLines, kw_only=True):
    """A signal with its recipients; `read` says whether its own line marks it as read."""

    recipients: list[str]
    read: bool


def convert_signal(given: Given) -> ImportedSignal:
    """Return a signal: an INFO to its `target_agent`, or to everybody.

    Raises:
        UsageError: A time is invalid.
    """
    at = time_of(given, "created_at")
    id = given.get("signal_id") or given.get("id")
    kept = {name: value for name, value in given.items() if name not in _GONE and value not in (None, "")}
    remarks: list[str] = []
    sender = _address(given.get("sender_identity") or given.get("sender") or NOBODY, "sender", kept, remarks)
    to = given.get("recipients") or given.get("target_agent") or []
    recipients = [
        _address(each, "recipient", kept, remarks) for each in (to if isinstance(to, list) else [to])
    ]
    if id is not None and kept.get("remote_id") == id:
        del kept["remote_id"]
    if kept.get("origin") == "local":
        del kept["origin"]
    fields: dict[str, object] = {
        "signal_id": id,
        "sender_identity": sender,
        "recipients": list(dict.fromkeys(recipients)),
        "message": given.get("message") or given.get("content"),
        "origin": ORIGIN,
    }
    for name in SAME:
        put("signal", fields, kept, remarks, name, given.get(name))
    if kept:
        fields["lumenflow"] = kept
    return ImportedSignal(
        id=str(id), kind="signal", at=at, fields=fields, remarks=remarks,
        recipients=recipients, read=given.get("read") is True,
    )  # fmt: skip


def _address(given: object, what: str, kept: dict[str, object], remarks: list[str]) -> str:
    """Return a name as an address, without spaces or commas. The original is kept."""
    text = str(given)
    if records.fits("signal", "sender_identity", text):
        return text
    words = "".join(char if char.isprintable() and char not in ", " else " " for char in text).split()
    found = "-".join(words)[:200] or NOBODY
    kept.setdefault(f"{what}_was", given)
    remarks.append(f"its {what} is not valid here; it becomes {found}")
    return found


def convert_receipts(given: Given, of: ImportedSignal) -> ConvertedLines:
    """Return the receipts for one of LumenFlow's: for its reader, or else for the recipients of the signal.

    LumenFlow's own receipt names no reader: one receipt marks a signal as read for all.

    Raises:
        UsageError: It is not a receipt (RecordError).
    """
    at = time_of(given, "read_at", of.at)
    reader = given.get("reader_identity") or given.get("reader")
    remarks: list[str] = []
    readers = [_address(reader, "reader", {}, remarks)] if reader else of.recipients or [UNKNOWN_READER]
    fields: dict[str, object] = {
        "signal_id": of.id,
        "delivery_state": "delivered",
        "answers_digest": digest(of.line),
        "origin": ORIGIN,
    }
    made = ConvertedLines(of.id, "receipt", at, fields, remarks=remarks)
    kept: dict[str, object] = {}
    for name in ("delivery_state", "idempotency_key"):
        put("receipt", fields, kept, made.remarks, name, given.get(name))
    if kept:
        fields["lumenflow"] = kept
    for each in dict.fromkeys(readers):
        made.more.append(records.line("receipt", at, {**fields, "reader_identity": each}))
    return made
