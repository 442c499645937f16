"""Tell the sessions on two branches that these conflict: once, by one signal, whichever clone finds it.

The signal is a notice (`signals.notices`). Its key has a digest of both names, all conflicting files and the recipients,
and the sentence of its text.
"""

from __future__ import annotations

from .. import records
from ..agents.addressing import Resolved
from ..errors import UsageError
from ..log.lines import format_at
from ..mailbox.content import ANNOUNCER, OVERLAP, is_notice
from ..records.codec import as_json
from ..records.ids import keyed_id
from ..signals import notices
from ..text.sanitize import sanitize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..agents.caller import Caller
    from ..agents.presence import Presence
    from ..store import Store

NOTICES_MAX = 20  # in one call
RECIPIENTS_MAX = 40  # of one
NAME_MAX = 120  # characters of a branch or file in the text
FILES_SHOWN = 3
DAY_MICROS = 24 * 3600 * 1_000_000
AHEAD_MICROS = 300 * 1_000_000  # that clocks of others may be


class Conflict:
    """Two branches that conflict: their names, the files, and the sessions that work on them.

    Args:
        files: The first of the files.
        count: The number of all of them; by default those given.
        digest: The digest of all of them, if there are more.
    """

    def __init__(
        self, names: Sequence[str], files: Sequence[str], sessions: Sequence[Presence], count: int = 0, digest: str = ""
    ) -> None:  # fmt: skip
        self.names = sorted(names)
        self.files = sorted(files)
        self.sessions = list(sessions)
        self.count = count or len(self.files)
        self.digest = digest

    def recipients(self) -> list[str]:
        """Return the addresses of the sessions, sorted."""
        return sorted({one.reader for one in self.sessions})[:RECIPIENTS_MAX]

    def thread(self) -> str:
        """Return the id of the thread of all notices about this pair."""
        return keyed_id("thread", ANNOUNCER, OVERLAP, as_json(self.names))

    def key(self) -> str:
        """Return the key of the notice: a digest, and what its text says."""
        digest = keyed_id(
            OVERLAP,
            as_json([self.names, [*self.files, *([self.digest] if self.digest else [])], self.recipients()]),
        )
        shown = ", ".join(map(_shown, self.files[:FILES_SHOWN]))
        more = self.count - FILES_SHOWN
        rest = f" and {more} more files" if more > 0 else ""
        return f"{digest} {' and '.join(map(_shown, self.names))} conflict in {shown}{rest}"


def _shown(name: str) -> str:
    shown = sanitize(name)
    return shown if len(shown) <= NAME_MAX else f"{shown[: NAME_MAX - 1]}…"


def tell(store: Store, caller: Caller, conflict: Conflict) -> str | None:
    """Send the notice of a conflict, unless its readers have it, or one about this pair is less than a day old.

    Returns:
        The id of the signal; None if nothing was sent, also if the caller is the only reader.

    Raises:
        UsageError: A name looks like a secret. Nothing was written.
        StoreError: The signal can't be recorded.
    """
    recipients = conflict.recipients()
    if not set(recipients) - set(caller.ids):
        return None
    fields = notices.fields_of(store, caller, OVERLAP, conflict.key())
    fields["recipients"] = recipients
    fields["target_agent"] = recipients[0]
    fields["thread_id"] = conflict.thread()
    fields["interrupt_class"] = "priority"
    if notices.is_recorded(store, caller, fields) or _was_told(store, conflict, fields["signal_id"]):
        return None
    names = {one.reader: one.name for one in conflict.sessions}
    resolved = [Resolved(address, address, "exact") for address in recipients]
    for each in resolved:
        each.display_name = names[each.address]
    notices.record(store, caller, fields, resolved)
    return fields["signal_id"]


def _was_told(store: Store, conflict: Conflict, signal_id: str) -> bool:
    """Return whether somebody told the same readers of this pair in the last day, or this clone told anybody.

    A peer's notice to others, or with another text, does not count: it must not keep ours back.
    """
    now = store.now()
    rows = store.db().execute(
        "SELECT l.body FROM signal s JOIN line l ON l.id = s.line WHERE s.thread = ? AND l.at > ? AND l.at < ? LIMIT ?",
        (conflict.thread(), format_at(now - DAY_MICROS), format_at(now + AHEAD_MICROS), notices.LINES_MAX),
    )
    for (body,) in rows:
        line = body.encode()
        record = records.read_kind("signal", line)
        if record is None or not is_notice(record):
            continue
        is_to_all = set(conflict.recipients()) <= {*record["recipients"], record["sender_identity"]}
        if is_to_all or notices.is_own_line(store, line):
            return True
    return False


def tell_all(store: Store, caller: Caller, conflicts: Sequence[Conflict]) -> tuple[list[str], list[str]]:
    """Tell the sessions of conflicts, of the first `NOTICES_MAX` that are news.

    Returns:
        The ids of the signals, and sentences about those that were not sent.

    Raises:
        StoreError: A signal can't be recorded.
    """
    sent: list[str] = []
    warnings: list[str] = []
    for conflict in conflicts:
        if len(sent) >= NOTICES_MAX:
            warnings.append(
                f"At most {NOTICES_MAX} signals are sent at once; run the command again for more."
            )
            break
        try:
            found = tell(store, caller, conflict)
        except UsageError as error:
            names = " and ".join(map(_shown, conflict.names))
            warnings.append(f"Nobody was told of {names}: {error.message}")
            continue
        if found is not None:
            sent.append(found)
    if not sent and not warnings:
        warnings.append(_why_nobody(caller, conflicts))
    return sent, warnings


def _why_nobody(caller: Caller, conflicts: Sequence[Conflict]) -> str:
    """Return why nobody was told of conflicts."""
    if not conflicts:
        return "Nobody was told: no two branches are in conflict."
    if any(set(each.recipients()) - set(caller.ids) for each in conflicts):
        return "Nobody was told: all of them were told already in the last day."
    return "Nobody was told: no other session works on these branches."
