"""`gitmem sync`, `doctor`, `verify`, `import`, `schema` and `completion`, and the commands that others start in the background."""

from __future__ import annotations

import os
from functools import partial

from gitmem.errors import UsageError
from gitmem.records import KINDS, OBJECTS

from .. import environment, syncing
from ..environment import Environment
from ..render import output
from ..values import duration

SOURCES = ("lumenflow", "beads", "github")
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    from .options import MODEL, AllowForeign, AllowLarge, Argument, Flag, Timeout


def sync(
    at: Environment,
    remotes: Annotated[
        list[str] | None, Argument("REMOTE", "Remotes (default: the branch's upstream)."), MODEL
    ] = None,
    all: Annotated[bool, Flag("--all", "Sync with all remotes.")] = False,
    publish: Annotated[
        bool, Flag("--publish", "Consent to publish the log to these remotes, now and in later syncs.")
    ] = False,
    allow_foreign: AllowForeign = False,
    allow_large: AllowLarge = False,
    repair: Annotated[bool, Flag("--repair", "Repair a remote log that all clones reject.")] = False,
    forget: Annotated[
        bool,
        Flag("--forget", "Write the log anew, here and on the usual remote, so that git forgets texts, too."),
    ] = False,
    yes: Annotated[
        bool, Flag("--yes", "Allow the forced push that --forget, and perhaps --repair, needs.")
    ] = False,
    timeout: Timeout = None,
) -> int:
    """Fetch records of other machines, and push local ones if you consented to publish."""
    environment.look_for_commits(at)
    seconds = duration(timeout, "--timeout") if timeout is not None else syncing.GIT_SECONDS
    if remotes or all or publish or allow_foreign or allow_large or repair or forget:
        from gitmem.sync import sync_remotes as operation

        run = partial(
            operation.sync, at.store(long_lived=True), remotes or (), all=all, publish=publish, allow_foreign=allow_foreign,
            allow_large=allow_large, repair=repair, forget=forget, timeout=seconds,
        )  # fmt: skip
        try:
            synced = run(force=yes)
        except UsageError as error:
            if error.code != "forget-needs-yes":
                raise
            syncing.confirm(at, f"{error.message} Go on?", error)
            synced = run(force=True)
        if publish:
            from gitmem.sync import sync_remotes

            sync_remotes.report_consent(at.store(), synced.remotes)
    else:
        synced = syncing.sync_usual(at, seconds)
    if at.is_agent() and synced.status == 2:
        from gitmem.sync import sync_remotes

        sync_remotes.reword_for_agent(synced)
    from ..render import repository

    at.answer(synced, repository.sync)
    return int(synced.status)


def doctor(
    at: Environment,
    fix: Annotated[
        bool, Flag("--fix", "Fix problems where no record can be lost. Never uses the network.")
    ] = False,
) -> int:
    """Check the log, the index, the write-ahead log, the merge driver and the hooks; report a fix for each finding."""
    from gitmem.doctor import doctor as operation

    from ..render import repository
    from .setup import LocalInstallation

    store, installed = at.store(), LocalInstallation(at)
    report = operation.fix(store, installed) if fix else operation.examine(store, installed)
    at.answer(report, repository.doctor)
    return report.status


def verify(
    at: Environment,
    id: Annotated[
        str | None,
        Argument(
            "ID",
            "A signal, thread, task, node, session, claim or other record, or the beginning of its id (default: the whole log).",
        ),
    ] = None,
) -> int:
    """Say who attested the log; exit 1 if a record or thread that is asked for is unsigned, or too large to be read."""
    from gitmem.history import verify as operation

    from ..render import repository

    at.store().try_commit_waiting()  # until then nothing attests them
    at.store().asks_once = True  # also for each address that is shown
    found = operation.verify(at.store(), id)
    at.answer(found, repository.verified)
    return found.status


def import_(
    at: Environment,
    source: Annotated[str, Argument("SOURCE", "What to import: lumenflow, beads or github.")],
    place: Annotated[
        str | None,
        Argument(
            "PLACE",
            "lumenflow: a project folder, or its .lumenflow/memory; beads: a file of issues, or a folder with it (default of both: this"
            " folder); github: the label of the issues (default: gitmem).",
        ),
    ] = None,
    dry_run: Annotated[bool, Flag("--dry-run", "Show what would be done without doing it.")] = False,
    report: Annotated[
        bool,
        Flag(
            "--report",
            "github: also comment there who has taken issues and how it ended, once; close what is completed.",
        ),
    ] = False,
) -> None:
    """Import memory, signals, tasks or issues of another tool, with their times. Idempotent: again, it adds what has changed."""
    from gitmem.importers import beads, github, lumenflow_import

    from ..render import repository

    if source not in SOURCES or (report and source != "github"):
        what = (
            "Only issues of GitHub have --report"
            if source in SOURCES
            else f"Nothing imports {output.sanitize(source)[:60]}"
        )
        raise UsageError(
            f"{what}. Nothing was written.",
            hint=f"Choose from {', '.join(SOURCES)}.",
            code="usage",
            next=["gitmem import github --report" if report else "gitmem import beads"],
        )
    store, caller = at.store(long_lived=True), at.caller(dry_run=dry_run)
    if source == "github":
        found = github.import_issues(store, caller, place or github.LABEL, dry_run=dry_run, report=report)
    else:
        run = lumenflow_import.import_folder if source == "lumenflow" else beads.import_file
        typed = place or "."
        found = run(store, caller, os.path.join(at.folder, typed), dry_run=dry_run, typed=typed)
    at.answer(found, repository.imported)


def background(
    at: Environment,
    job: Annotated[str, Argument("JOB", "upkeep, commit-waiting, note-commits or autosync.")],
) -> None:
    """Do what commands and git's hooks leave to a process in the background. Prints nothing."""
    if job not in JOBS:
        raise UsageError(f"Invalid job: {output.sanitize(job)}; choose from {', '.join(JOBS)}.", code="usage")
    JOBS[job](at)


def _upkeep(at: Environment) -> None:
    """Update the index, and combine the log's small packs if there are many."""
    store = at.store()
    store.starts_upkeep = None
    store.db()  # with full priority: other processes wait for it
    os.nice(10)
    store.keep_up()


def _commit_waiting(at: Environment) -> None:
    """Commit waiting records unless another process does."""
    from gitmem.agents import waking

    from .. import background

    store = at.store()
    store.commit_after = background.commit_window()
    store.run_committer(begins=waking.begin)
    store.tidy_index()
    waking.stay(store)


def _note_commits(at: Environment) -> None:
    """Record the commits of this worktree's sessions; git's post-commit hook starts this."""
    from gitmem.agents import heartbeats

    heartbeats.begin_commits(at.store(), from_beginning=True)  # every command records them at its end


def _autosync(at: Environment) -> None:
    """Sync with the usual remote if that is due."""
    environment.look_for_commits(at)
    syncing.run_autosync(at)


JOBS = {
    "upkeep": _upkeep, "commit-waiting": _commit_waiting, "note-commits": _note_commits, "autosync": _autosync,
}  # fmt: skip


def schema(
    at: Environment,
    kind: Annotated[
        str | None, Argument("KIND", f"{', '.join((*KINDS, *OBJECTS[:-1]))} or {OBJECTS[-1]} (default: all).")
    ] = None,
) -> None:
    """Print the JSON Schema of the records and of the objects in them. Needs no repository."""
    from gitmem import records

    if kind is not None:
        found = records.schema(kind)
    else:
        found = {each: records.schema(each) for each in (*KINDS, *OBJECTS)}
    if at.json:  # as in every JSON answer; without --json only the schema is printed
        found = {**found, "next": [] if kind else [f"gitmem schema {KINDS[0]}"]}
    output.write_json(found)


# How each shell reads the script in its start-up file.
USES = {
    "bash": 'eval "$(gitmem completion bash)"',
    "zsh": 'eval "$(gitmem completion zsh)"',
    "fish": "gitmem completion fish | source",
}


def completion(
    at: Environment,
    shell: Annotated[
        str, Argument("|".join(USES), f"The shell. In its start-up file: {' or '.join(USES.values())}.")
    ],
) -> None:
    """Print the script with which a shell completes commands and options."""
    if shell not in USES:
        raise UsageError(
            f"Unknown shell: {output.sanitize(shell)}; choose from {', '.join(USES)}. Nothing was printed.",
            suggestions=list(USES.values()),
            next=["gitmem completion --help"],
        )
    from ..app import completion_script

    script = completion_script(shell)
    if at.json:  # without --json only the script is printed
        output.write_json({"shell": shell, "script": script, "next": [USES[shell]]})
    else:
        output.write(script)
