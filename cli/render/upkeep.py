"""Sync, init, doctor and import as text."""

from __future__ import annotations

from .output import paint, record_position, sanitize, with_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitmem.doctor.doctor import Report
    from gitmem.importers.lumenflow.import_result import Imported, LineNote
    from gitmem.sync.init import Initialised, Uninstalled
    from gitmem.sync.sync_result import RemoteResult, SyncResult

RECORDS_SHOWN = 10
KIND_NAMES = {
    "signal": "signal", "node": "memory node", "patch": "memory change", "relation": "memory relation",
    "task": "task", "task_event": "task event", "claim": "claim", "audit": "gate record", "session": "session record", "name": "name record", "receipt": "receipt",
    "access": "access record", "unreadable": "unreadable line",
}  # fmt: skip


def sync(found: SyncResult) -> list[str]:
    """Return the result for each remote, and the error of the last automatic sync unless it is the same."""
    lines = [line for each in found.remotes for line in _with_records(each)] or [
        "No remote to sync with; the log is local only"
    ]
    before = found.autosync
    if before is not None and any(
        " ".join(each.message.split()).startswith(before.message) for each in found.remotes
    ):
        return lines  # the same error again
    from .text import sync_error_line

    return [*lines, *sync_error_line(before)]


def _with_records(each: RemoteResult) -> list[str]:
    """Return a remote; for records without consent to publish, also their counts by kind and some of them."""
    lines = [_remote(each)]
    if not each.unpublished:
        return lines
    lines.append("  " + ", ".join(_count(kind, count) for kind, count in each.kinds.items()))
    shown = each.records[:RECORDS_SHOWN]
    lines += [f"  {sanitize(row['kind'])} {sanitize(row['id'])}  {sanitize(row['text'])}" for row in shown]
    if each.unpublished > len(shown):
        lines.append(f"  … {each.unpublished - len(shown)} more; `gitmem log` shows them")
    return lines


def _count(kind: str, count: int) -> str:
    from .text import plural

    one = KIND_NAMES.get(kind)
    return plural(count, one) if one else f"{count} {sanitize(kind)}"


def _remote(each: RemoteResult) -> str:
    name = sanitize(each.name, keep="")
    message = f": {sanitize(each.message)}" if each.message else ""
    if each.state == "up-to-date" and each.tip is None:
        return f"{name}: no log on this remote yet{message}"
    if each.state == "up-to-date":
        return f"{name}: {paint('up to date', 'good')}{message}"
    if each.state == "unsent":
        return (
            f"{name}: {paint('not sent yet', 'careful')}: the log there lacks records of this clone{message}"
        )
    if each.state == "synced":
        from .text import plural

        return f"{name}: received {plural(each.received, 'line')}, sent {each.sent}{message}"
    return f"{name}: {paint(each.state, 'bad')}{message}"


def init(found: Initialised, program: str, changed: Sequence[str]) -> list[str]:
    """Return the state of the log, of its remote and of the merge driver."""
    states = {
        "started": f"Created the log at {found.log}",
        "adopted": f"Adopted the existing log at {found.log}",
        "present": f"The log is at {found.log}",
    }
    locations = {"branch": "the branch gitmem", "hidden": found.log + ", which forges do not show"}
    url = sanitize(found.publishes_to or "", keep="")
    lines = (
        [f"Consent to publish the log to {url} recorded; `gitmem init --no-publish` withdraws it"]
        if found.agreed
        else []
    )
    lines += [
        states.get(found.state, found.state),
        f"remotes store it in {locations.get(found.publish, found.publish)}",
    ]
    if found.remote is not None:
        lines.append(_remote(found.remote))
    if found.publishes_to is not None:
        lines.append(f"gitmem sync publishes the log to {url}")
    elif found.remote is not None:
        lines.append("not published: `gitmem sync` only fetches until your user runs `gitmem sync --publish`")
    if found.autosync is not None:
        lines.append(f"automatic sync interval: {sanitize(found.autosync, keep='')}")
    lines.append(f"git merges log files with {sanitize(program, keep='')}")
    return [*lines, *_changed(changed), *(sanitize(line) for line in found.remarks)]


def uninstalled(found: Uninstalled, changed: Sequence[str]) -> list[str]:
    """Return what was removed, what was left alone, and the commands that delete the rest."""
    lines = _changed(changed) or ["The merge driver is not installed; nothing was changed"]
    if found.kept:
        lines.append(f"left unchanged: {', '.join(sanitize(each, keep='') for each in found.kept)}")
    lines += [sanitize(line) for line in found.remarks]
    return lines + [f"to delete the rest: {sanitize(each)}" for each in found.remove]


def _changed(changed: Sequence[str]) -> list[str]:
    return [f"changed {sanitize(each, keep='')}" for each in changed]


def doctor(found: Report) -> list[str]:
    """Return the findings with their fixes, and a summary of what was checked."""
    looked = ", ".join(f"{count} {what}" for what, count in found.checked.items())
    lines = []
    for each in found.findings:
        where = f" ({sanitize(str(each.where), keep='')})" if each.where else ""
        label = each.severity if each.state in ("found", "left") else each.state
        lines.append(f"{paint(label)}: {sanitize(each.what)}{where} [{each.code}]")
        if each.did:
            lines.append(f"  {sanitize(each.did)}")
        if each.fix and each.state != "fixed":
            lines.append(f"  {sanitize(each.fix)}")
        if each.command:
            lines += [f"  do: {sanitize(command)}" for command in with_options([each.command])]
    fixed = f", {found.fixed} fixed" if found.fixed else ""
    head = paint("No problems found", "good") if found.healthy else paint("Problems found", "bad")
    return [*lines, f"{head}{fixed}; checked {looked}"]


def imported(found: Imported) -> list[str]:
    """Return the counts of each kind as a table, followed by skipped lines and notes."""
    from .text import table

    counts = found.counts
    columns = list(next(iter(counts.values())))
    rows = [["", *columns]]
    rows += [[kind, *(str(each[column]) for column in columns)] for kind, each in counts.items()]
    return [
        _import_head(found),
        *table(rows),
        *_line_notes("skipped", found.problems, found.problems_more),
        *_line_notes("note", found.remarks, found.remarks_more),
        *(f"note: {sanitize(each)}" for each in found.warnings),
    ]


def _import_head(found: Imported) -> str:
    from .text import SEPARATOR

    folder = sanitize(found.folder, keep="")
    if found.dry_run:
        return f"{folder}: dry run, nothing was written"
    if found.commit is not None or found.recorded:
        return folder + SEPARATOR + record_position(found.commit)
    return f"{folder}: nothing new"


def _line_notes(word: str, every: Sequence[LineNote], more: int) -> list[str]:
    lines = []
    for each in every:
        where = sanitize(f"{each.file}:{each.line}" if each.line else each.file, keep="")
        lines.append(f"{word}: {where}: {sanitize(each.reason)}")
    return [*lines, *([f"{word}: and {more} more"] if more else [])]
