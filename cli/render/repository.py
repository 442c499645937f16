"""Sync, init, doctor, import, hooks of clients, pages and figures as text."""

from __future__ import annotations

from gitmem.records import NOUNS

from .output import paint, record_position, sanitize, with_options
from .text import SEPARATOR, format_ago, plain, plural, span, sync_error_line, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitmem.clients.agents_md import AgentsMdBlock
    from gitmem.clients.client_scope import ClientHooks
    from gitmem.clients.git_hook import GitHookResult
    from gitmem.clients.hook_test import HookTestResults
    from gitmem.clients.install import ClientStatus, HookStatus, InstallResult, ScopeStatus
    from gitmem.doctor.doctor import Report
    from gitmem.history.figures import Spread, Stats
    from gitmem.importers.lumenflow_import import Imported, LineNote
    from gitmem.page.page_file import View
    from gitmem.sync.init import Initialised, Uninstalled
    from gitmem.sync.sync_result import RemoteResult, SyncResult


RECORDS_SHOWN = 10


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
    one = {**NOUNS, "unreadable": "unreadable line"}.get(kind)
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


_STATES = {
    "unchanged": "already installed; nothing was changed",
    "advised": "does not support hooks",
    "failed": "NOT installed",
    "absent": "had no gitmem hooks",
}
_HALF = "a checkout brought the file that calls it; not installed in this clone, so it does nothing"
_NOT_RUN = "installed, but git does not run the hook that calls it: that is missing or not executable"
_BLOCK_STATES = {
    "created": "{path}: created with gitmem's instructions",
    "added": "{path}: added gitmem's instructions at the end",
    "updated": "{path}: updated gitmem's instructions",
    "unchanged": "{path}: gitmem's instructions are already up to date",
    "removed": "{path}: removed gitmem's instructions",
    "deleted": "{path}: deleted; gitmem had created it, and it had no other content",
    "missing": "{path}: no instructions of gitmem",
    "current": "{path}: gitmem's instructions are up to date",
    "outdated": "{path}: gitmem's instructions are of another version",
}


def hooked(found: InstallResult) -> list[str]:
    """Return what an installation changed for each client and in git's hooks."""
    lines = [line for each in found.clients for line in _client(each)]
    return [*lines, *gated(found), *(sanitize(each) for each in found.remarks)]


def unhooked(found: InstallResult) -> list[str]:
    """Return what an uninstallation removed for each client and from git's hooks."""
    lines = [*(line for each in found.clients for line in _client(each)), *gated(found)]
    return [
        *(lines or ["No gitmem hooks are installed in this scope"]),
        *(sanitize(each) for each in found.remarks),
    ]


def _client(each: ClientHooks) -> list[str]:
    why = "" if each.why == "asked for" else f" ({sanitize(each.why, keep='')})"
    state = _STATES.get(
        each.state,
        f"{each.state} for this {each.scope}" if each.scope == "project" else f"{each.state} for this user",
    )
    return [
        f"{each.title}{why}: {state}",
        *(f"  {'' if each.state == 'removed' else 'wrote '}{sanitize(path, keep='')}" for path in each.files),
        *([f"  {sanitize(each.problem)}"] if each.problem else []),
        *(f"  {sanitize(remark)}" for remark in each.remarks),
    ]


def gated(found: InstallResult) -> list[str]:
    """Return the state of each git hook that was requested."""
    return [line for each in found.git for line in _git_hook(each)]


def _git_hook(found: GitHookResult) -> list[str]:
    text = {
        "installed": "hook installed",
        "updated": "hook updated",
        "unchanged": "hook already installed",
        "removed": "hook removed",
        "absent": "hook not installed; nothing was changed",
    }[found.state]
    name = (
        found.path.replace("\\", "/").rpartition("/")[2].removesuffix(".legacy")
    )  # as the tool pre-commit runs it
    lines = [f"{name} {text}: {sanitize(found.path, keep='')}"]
    if found.kept is not None:
        lines.append(f"the previous hook runs after it: {sanitize(found.kept, keep='')}")
    return [*lines, *(sanitize(each) for each in found.remarks)]


def hooks_status(found: HookStatus) -> list[str]:
    """Return the installed hooks of each client, their program, and their last run and error."""
    lines = [line for each in found.clients for line in _status(each)]
    if not lines:
        lines = ["No clients found, and no client hooks installed"]
    if found.installed:
        lines.append(_program(found))
    for name, state, what in (
        ("pre-push", found.pre_push, "gate"),
        ("pre-commit", found.pre_commit, "guard of claims"),
        ("post-commit", found.post_commit, "note of who commits"),
    ):
        if name in found.replaced:
            state = f"another tool has replaced gitmem's hook, and the {what} does not run"
        shown = {"foreign": f"another hook, without the {what}", "not run": _NOT_RUN, "only in files": _HALF}
        state = shown.get(state, state)
        if state != "not installed":
            lines.append(f"git {name}: {state}")
    if found.hooks_path is not None:
        lines.append(f"core.hooksPath: {sanitize(found.hooks_path, keep='')}")
    if found.manager is not None:
        lines.append(f"{found.manager} writes git's hooks here; `gitmem hooks install --git` uses its form")
    if found.last_run is not None:
        lines.append(f"last hook run: {format_ago(found.last_run)}")
    if found.last_error is not None:
        lines.append(f"last hook error: {sanitize(found.last_error)}")
    return lines


def _program(found: HookStatus) -> str:
    if found.program is None:
        return "program of the hooks: gitmem from the PATH" + ("" if found.program_works else ", not found")
    return f"program of the hooks: {sanitize(found.program, keep='')}" + (
        "" if found.program_works else ", not found"
    )


def _status(each: ClientStatus) -> list[str]:
    if not each.scopes:
        pulled = "" if each.pushed else "; does not support hooks: run `gitmem watch`"
        return [f"{each.title}: not installed ({sanitize(str(each.found), keep='')}){pulled}"]
    return [line for scope in each.scopes for line in _scope(each, scope)]


def _scope(each: ClientStatus, scope: ScopeStatus) -> list[str]:
    parts = [f"{each.title}: {scope.state}", f"{scope.scope} scope"]
    if scope.trust is not None:
        parts.append(_TRUST[scope.trust])
    lines = [SEPARATOR.join(parts)]
    if scope.problem:
        lines.append(f"  {sanitize(scope.problem)}")
        lines.append(
            f"  Correct that file: {each.title} may ignore its hooks, and `gitmem hooks install` rejects it."
        )
    return [*lines, *(f"  {sanitize(path, keep='')}" for path in scope.files)]


_TRUST = {
    "trusted": "reviewed and trusted",
    "untrusted": "NOT trusted yet: Codex skips it until you review it with /hooks",
    "changed": "changed since it was reviewed: Codex skips it until you review it again with /hooks",
    "elsewhere": "in a linked worktree Codex reads the main worktree's file, which has no gitmem hooks",
    "unknown": "cannot read whether Codex trusts it",
}


def hooks_tried(found: HookTestResults) -> Sequence[str]:
    """Return the result of each hook's test in a line, with its times."""
    lines = []
    for each in found.trials:
        name = f"{each.title} ({each.scope})"
        if each.works:
            times = f"{each.empty_ms:.1f} ms with nothing new, {each.signal_ms:.0f} ms with one signal"
            lines.append(f"{name}: {paint('works', 'good')}{SEPARATOR}{times}")
        else:
            lines.append(f"{name}: {paint('FAILED', 'bad')}{SEPARATOR}{sanitize(each.problem)}")
    return lines


def agents_md_block(found: AgentsMdBlock) -> list[str]:
    """Return the state of gitmem's block in AGENTS.md."""
    text = _BLOCK_STATES[found.state].format(path=found.path)
    return [sanitize(text), *(f"note: {sanitize(each)}" for each in found.remarks)]


DAYS_SHOWN = 14
WORDS = {
    "agents": "agent",
    "signals": "signal",
    "tasks": "task",
    "claims": "claim",
    "commits": "commit",
    "nodes": "memory node",
}


def view(found: View) -> list[str]:
    """Return the path of a page, what it has and what it lacks."""
    has = ", ".join(plural(found.counts[name], word) for name, word in WORDS.items())
    lines = [f"wrote {plain(found.path)}", f"{has}; {(found.bytes + 1023) // 1024:,} KiB"]
    left = [f"{count:,} {name}" for name, count in found.omitted.items()]
    lines += (
        [f"left out: {', '.join(left)}, the oldest; --since, --wu or --agent choose others"] if left else []
    )
    return [*lines, *map(plain, found.warnings)]


def stats(found: Stats) -> list[str]:
    """Return a table of the last days, and a line for each other figure."""
    if not found.days and not found.tasks and not found.ahead:
        return [plain(found.remark) or "Nothing was said, and there are no tasks."]
    shown = found.days[-DAYS_SHOWN:]
    rows: list[tuple[str, ...]] = [("DAY", "SIGNALS", "AGENTS", "PROPOSALS", "ANSWERS")] if shown else []
    rows += [
        (
            each["day"],
            *(
                f"{number:,}"
                for number in (each["signals"], each["agents"], each["proposals"], each["answers"])
            ),
        )
        for each in shown
    ]
    lines = table(rows, painted=lambda row, _, cell: cell if row else paint(cell, "head"))
    if len(found.days) > len(shown):
        lines.append(
            f"{len(found.days) - len(shown)} earlier days not shown; --json has the last {len(found.days)}"
        )
    lines += (
        [f"{plural(found.ahead, 'signal')} with a date more than a day ahead; no day counts them"]
        if found.ahead
        else []
    )
    lines += _took("first answer after", found.first_answer, "question")
    lines += _took("agreement after", found.agreement, "thread")
    lines += _took("unread for", found.unread_age, "signal")
    lines += [f"answers owed: {found.unanswered:,}"] if found.unanswered else []
    counts = SEPARATOR.join(f"{count:,} {plain(name)}" for name, count in found.tasks.items())
    lines += [f"tasks: {counts}"] if counts else []
    if found.older:
        lines.append(
            f"answers and agreements are those of the newest signals; {found.older:,} older ones were not read"
        )
    return lines


def _took(what: str, found: Spread, noun: str) -> list[str]:
    """Return the line of a time; nothing without any."""
    if not found["n"]:
        return []
    median, p90 = (span(each / 1_000) for each in (found["median_ms"], found["p90_ms"]))
    return [f"{what} {median} (median), 90% within {p90}; {plural(found['n'], noun)}"]
