"""Sync, setup and remove, doctor, import, hooks of clients, pages, figures and who attested the log, as text."""

from __future__ import annotations

from gitmem.outcome import Outcome
from gitmem.records import NOUNS

from .output import paint, record_position, sanitize, with_options
from .text import (
    SEPARATOR,
    block,
    facts,
    format_ago,
    notes,
    plain,
    plural,
    rest,
    span,
    sync_error_line,
    table,
    wrapped,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitmem.clients.agents_md import AgentsMdBlock
    from gitmem.clients.client_scope import ClientHooks, HookTestResults
    from gitmem.clients.git_hook import GitHookResult
    from gitmem.clients.install import ClientStatus, HookStatus, InstallResult, ScopeStatus
    from gitmem.doctor.doctor import Report
    from gitmem.history.figures import Spread, Stats
    from gitmem.history.verify import JudgedLine, Verified, Writer
    from gitmem.importers.imported import Imported, LineNote
    from gitmem.page.page_file import View
    from gitmem.sync.init import Initialised, Uninstalled
    from gitmem.sync.sync_remotes import RemoteResult, SyncResult


RECORDS_SHOWN = 10


def sync(found: SyncResult) -> list[str]:
    """Return the result for each remote, and the error of the last automatic sync unless it is the same."""
    lines = [line for each in found.remotes for line in _with_records(each)] or [
        found.message or "No remote to sync with; the log is local only"
    ]
    before = found.autosync
    if before is not None and any(
        " ".join(each.message.split()).startswith(before.message) for each in found.remotes
    ):
        return lines  # the same error again
    return [*lines, *sync_error_line(before)]


def _with_records(each: RemoteResult) -> list[str]:
    """Return a remote; for records without consent to publish, also their counts by kind and some of them."""
    if not each.unpublished:
        return [_remote(each)]
    shown = each.records[:RECORDS_SHOWN]
    more = each.unpublished - len(shown)
    return block(
        _remote(each),
        "  " + ", ".join(_count(kind, count) for kind, count in each.kinds.items()),
        [f"  {sanitize(row['kind'])} {sanitize(row['id'])}  {sanitize(row['text'])}" for row in shown],
        more > 0 and f"  … {more} more; `gitmem log` shows them",
    )


def _count(kind: str, count: int) -> str:
    one = {**NOUNS, "unreadable": "unreadable line"}.get(kind)
    return plural(count, one) if one else f"{count} {sanitize(kind)}"


def _remote(each: RemoteResult) -> str:
    states = {
        "up-to-date": paint("up to date", "good"),
        "unsent": f"{paint('not sent yet', 'careful')}: the log there lacks records of this clone",
        "synced": f"received {plural(each.received, 'line')}, sent {each.sent}",
    }
    state = states.get(each.state) or paint(each.state, "bad")
    if each.state == "up-to-date" and each.tip is None:
        state = "no log on this remote yet"
    return f"{plain(each.name)}: {state}{f': {sanitize(each.message)}' if each.message else ''}"


def init(found: Initialised, changed: Sequence[str]) -> list[str]:
    """Return the state of the log, of its remote and of the merge driver."""
    states = {
        "started": f"Created the log at {found.log}",
        "adopted": f"Adopted the existing log at {found.log}",
        "present": f"The log is at {found.log}",
    }
    locations = {"branch": "the branch gitmem", "hidden": found.log + ", which forges do not show"}
    url = plain(found.publishes_to or "")
    published = f"gitmem sync publishes the log to {url}" if found.publishes_to is not None else (
        found.remote is not None and "not published: `gitmem sync` only fetches until your user runs `gitmem sync --publish`"
    )  # fmt: skip
    return block(
        found.agreed
        and f"Consent to publish the log to {url} recorded; `gitmem setup --publish no` withdraws it",
        states.get(found.state, found.state),
        f"remotes store it in {locations.get(found.publish, found.publish)}",
        found.remote is not None and _remote(found.remote),
        published,
        found.autosync is not None and f"automatic sync interval: {plain(found.autosync)}",
        _changed(changed),
        map(sanitize, found.remarks),
    )


def _changed(changed: Sequence[str]) -> list[str]:
    return [f"changed {plain(each)}" for each in changed]


def doctor(found: Report) -> list[str]:
    """Return the findings with their fixes, the state of the hooks, and a summary of what was checked."""
    looked = ", ".join(plural(count, what.removesuffix("s")) for what, count in found.checked.items())
    lines = []
    for each in found.findings:
        where = f" ({plain(str(each.where))})" if each.where else ""
        label = each.severity if each.state in ("found", "left") else each.state
        lines += block(
            f"{paint(label)}: {sanitize(each.what)}{where} [{each.code}]",
            each.did and f"  {sanitize(each.did)}",
            each.fix and each.state != "fixed" and f"  {sanitize(each.fix)}",
            each.command and [f"  do: {sanitize(command)}" for command in with_options([each.command])],
        )
    fixed = f", {found.fixed} fixed" if found.fixed else ""
    notes = sum(each.state != "fixed" for each in found.findings)
    good = f"Nothing is damaged; {plural(notes, 'note')} above" if notes else "No problems found"
    head = paint(good, "good") if found.healthy else paint("Problems found", "bad")
    key = f"; the key of {found.writer} writes here" if found.writer else ""
    hooks = hooks_status(found.hooks) if found.hooks is not None else []
    return [*lines, *hooks, *wrapped(f"{head}{fixed}; checked {looked}{key}")]


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
        *notes(found.warnings),
    ]


def _import_head(found: Imported) -> str:
    folder = plain(found.folder)
    if found.dry_run:
        return f"{folder}: dry run, nothing was written"
    if found.commit is not None or found.recorded:
        return folder + SEPARATOR + record_position(found.commit)
    return f"{folder}: nothing new"


def _line_notes(word: str, every: Sequence[LineNote], more: int) -> list[str]:
    lines = []
    for each in every:
        where = plain(f"{each.file}:{each.line}" if each.line else each.file)
        lines.append(f"{word}: {where}: {sanitize(each.reason)}")
    return block(lines, more and f"{word}: and {more} more")


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
    "failed": "{path}: left as it is. {problem}",
}


def hooked(found: InstallResult) -> list[str]:
    """Return what an installation changed for each client and in git's hooks."""
    lines = [line for each in found.clients for line in _client(each)]
    return [*lines, *gated(found), *(sanitize(each) for each in found.remarks)]


def _client(each: ClientHooks) -> list[str]:
    whom = f"this {each.scope}" if each.scope == "project" else "this user"
    return block(
        f"{each.title}: {_STATES.get(each.state, f'{each.state} for {whom}')}",
        [f"  {'' if each.state == 'removed' else 'wrote '}{plain(path)}" for path in each.files],
        each.problem and f"  {sanitize(each.problem)}",
        [f"  {sanitize(remark)}" for remark in each.remarks],
    )


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
    # As the tool pre-commit runs it.
    name = found.path.replace("\\", "/").rpartition("/")[2].removesuffix(".legacy")
    return block(
        f"{name} {text}: {plain(found.path)}",
        map(sanitize, found.remarks),
    )


def hooks_status(found: HookStatus) -> list[str]:
    """Return the installed hooks of each client, their program, and their last run and error."""
    gits = []
    for name, state, what in (
        ("pre-push", found.pre_push, "gate"),
        ("pre-commit", found.pre_commit, "guard of claims"),
        ("post-commit", found.post_commit, "note of who commits"),
    ):
        if name in found.replaced:
            state = f"another hook has the place of gitmem's, and the {what} does not run"
        shown = {"foreign": f"another hook, without the {what}", "not run": _NOT_RUN, "only in files": _HALF}
        if state != "not installed":
            gits.append(f"git {name}: {shown.get(state, state)}")
    program = plain(found.program) if found.program is not None else "gitmem from the PATH"
    return block(
        [line for each in found.clients for line in _status(each)],
        found.installed and f"program of the hooks: {program}{'' if found.program_works else ', not found'}",
        gits,
        found.hooks_path is not None and f"core.hooksPath: {plain(found.hooks_path)}",
        found.manager is not None
        and f"{found.manager} writes git's hooks here; `gitmem setup --git` uses its form",
        found.last_error is not None and f"last hook error: {sanitize(found.last_error)}",
    )


def _status(each: ClientStatus) -> list[str]:
    if not each.scopes:
        does = "`gitmem setup` installs it" if each.pushed else "does not support hooks: run `gitmem watch`"
        return [f"{each.title}: not installed ({plain(str(each.found))}); {does}"]
    return [line for scope in each.scopes for line in _scope(each, scope)]


def _scope(each: ClientStatus, scope: ScopeStatus) -> list[str]:
    from gitmem.clients.install import TRUST

    text = scope.instructions
    return block(
        facts(
            f"{each.title}: {scope.state}",
            f"{scope.scope} scope",
            scope.trust and TRUST[scope.trust],
            text and f"instructions {text.state}",
        ),
        scope.problem
        and [f"  {sanitize(scope.problem)}", f"  {each.title} may ignore its hooks in that file."],
    )


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
    return [sanitize(_BLOCK_STATES[found.state].format(path=found.path, problem=found.problem))]


class Setup(Outcome):
    """What `setup` did, or would do.

    Attributes:
        log: The log, its remote, and the consent to publish; None after a dry run, and without a repository.
        changed: The changed files of git's config.
        clients: The hooks of each client that was connected.
        instructions: The instructions in each file that the clients' models read.
        tried: Whether a message went through each hook; None if there is none.
        problems: Why hooks of git were left out.
        dry_run: Whether nothing was written.
    """

    dry_run: bool
    clients: InstallResult
    log: Initialised | None = None
    changed: list[str] = []
    instructions: list[AgentsMdBlock] = []
    tried: HookTestResults | None = None
    problems: list[str] = []
    next: list[str] = []

    @property
    def status(self) -> int:
        """The exit status: that of the worst error of a client, or 1 if a hook did not show the message or a file was left out."""
        return self.clients.status or (self.tried.status if self.tried is not None else 0) or _failed(self)


class Removed(Outcome):
    """What `remove` took out, and what it left.

    Attributes:
        left: The refs and folders of the log, and the commands that delete them.
        changed: The changed files of git's config.
        clients: The hooks of each client and of git.
        instructions: The instructions in each file that had them.
        problems: Why hooks of git stay.
        dry_run: Whether nothing was removed.
    """

    dry_run: bool
    clients: InstallResult
    left: Uninstalled | None = None
    changed: list[str] = []
    instructions: list[AgentsMdBlock] = []
    problems: list[str] = []
    remarks: list[str] = []
    next: list[str] = []

    @property
    def status(self) -> int:
        """The exit status: that of the worst error of a client, or 1 if instructions are left in a file."""
        return self.clients.status or _failed(self)


def _failed(found: Setup | Removed) -> int:
    return int(bool(found.problems) or any(each.problem for each in found.instructions))


def setup(found: Setup) -> list[str]:
    """Return what was written where, and whether a message went through each hook."""
    if found.dry_run:
        files = [path for each in found.clients.clients for path in each.files]
        files += [each.path for each in found.instructions if each.state not in ("unchanged", "failed")]
        return block(
            wrapped(
                "Nothing was written. gitmem setup would write the log below refs/gitmem/ and its folder in the git folder, and"
            ),
            [f"  {plain(path)}" for path in (*found.changed, *files)],
            [line for each in found.clients.clients if each.problem for line in _client(each)],
            [sanitize(each.problem) for each in found.instructions if each.problem],
        )
    return block(
        found.log is not None and init(found.log, found.changed),
        hooked(found.clients) or "No client was connected; `gitmem setup --client NAME` connects one",
        [line for each in found.instructions for line in agents_md_block(each)],
        found.tried is not None and "A message through each hook:",
        found.tried is not None and [f"  {line}" for line in hooks_tried(found.tried)],
        map(sanitize, found.problems),
        paint("Set up.", "good") if not found.status else paint("Set up, but not all of it works.", "bad"),
    )


def removed(found: Removed) -> list[str]:
    """Return what was taken out, what stays, and the commands that delete that."""
    left = found.left
    hooks, gits = found.clients.clients, found.clients.git
    lines = block(
        [f"{each.title}: {each.state} {each.problem}".rstrip() for each in hooks if not each.files],
        [f"removed from {plain(path)}" for each in hooks for path in each.files],
        gated(found.clients),
        [line for each in found.instructions for line in agents_md_block(each)],
        [f"removed from {plain(path)}" for path in found.changed],
        map(sanitize, found.clients.remarks),
    )
    if found.dry_run:
        files = [path for each in hooks for path in each.files] + [
            path for each in gits for path in each.files
        ]
        files += [each.path for each in found.instructions if not each.problem]
        problems = [each.problem for each in hooks] + [each.problem for each in found.instructions]
        lines = block(
            "Nothing was removed. gitmem remove would take out what is gitmem's in",
            [f"  {plain(path)}" for path in dict.fromkeys((*files, *found.changed))],
            [sanitize(each) for each in problems if each],
        )
    return block(
        lines or "Nothing of gitmem is installed here",
        left is not None
        and left.kept
        and f"stays, as it has what was recorded: {plain(', '.join(left.kept))}",
        map(sanitize, (*found.problems, *found.remarks)),
        left is not None and [f"to delete it: {sanitize(each)}" for each in left.remove],
    )


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
    left = ", ".join(f"{count:,} {name}" for name, count in found.omitted.items())
    return block(
        f"wrote {plain(found.path)}",
        f"{has}; {(found.bytes + 1023) // 1024:,} KiB",
        left and f"left out: {left}, the oldest; --since, --wu or --agent choose others",
        map(plain, found.warnings),
    )


def stats(found: Stats) -> list[str]:
    """Return a table of the last days, and a line for each other figure."""
    if not found.days and not found.tasks and not found.ahead:
        return [plain(found.remark) or "Nothing was said, and there are no tasks."]
    shown = found.days[-DAYS_SHOWN:]
    rows = [
        (
            one["day"],
            *(f"{count:,}" for count in (one["signals"], one["agents"], one["proposals"], one["answers"])),
        )
        for one in shown
    ]
    earlier = len(found.days) - len(shown)
    return block(
        table(rows, head=("DAY", "SIGNALS", "AGENTS", "PROPOSALS", "ANSWERS")),
        earlier and f"{earlier} earlier days not shown; --json has the last {len(found.days)}",
        found.ahead
        and f"{plural(found.ahead, 'signal')} with a date more than a day ahead; no day counts them",
        _took("first answer after", found.first_answer, "question"),
        _took("agreement after", found.agreement, "thread"),
        _took("unread for", found.unread_age, "signal"),
        found.unanswered and f"answers owed: {found.unanswered:,}",
        found.tasks and f"tasks: {facts(*(f'{count:,} {name}' for name, count in found.tasks.items()))}",
        found.older
        and f"answers and agreements are those of the newest signals; {found.older:,} older ones were not read",
    )


def _took(what: str, found: Spread, noun: str) -> str:
    """Return the line of a time; "" without any."""
    if not found["n"]:
        return ""
    median, p90 = (span(each / 1_000) for each in (found["median_ms"], found["p90_ms"]))
    return f"{what} {median} (median), 90% within {p90}; {plural(found['n'], noun)}"


VERIFIED_SHOWN = 50  # lines, held lines, and gaps and forks


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
        numbers[:VERIFIED_SHOWN],
        rest(len(numbers) - VERIFIED_SHOWN, then=""),
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
        for each in found[:VERIFIED_SHOWN]
    ]
    return [*table(rows, shortened=(5, 3)), *block(rest(len(found) - VERIFIED_SHOWN, then=""))]
