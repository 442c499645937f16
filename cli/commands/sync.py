"""`gitmem sync`. With nothing new it should cost hardly more than git's own fetch."""

from __future__ import annotations

from .. import after_command, syncing
from ..environment import Environment
from ..render import output
from ..values import duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

    from .options import AllowForeign, ShowProgress, Timeout


def sync(
    at: Environment,
    remotes: Annotated[
        list[str] | None, typer.Argument(metavar="REMOTE", help="Remotes (default: the branch's upstream).")
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="Sync with all remotes.")] = False,
    publish: Annotated[
        bool,
        typer.Option(
            "--publish", help="Consent to publish the log to these remotes, now and in later syncs."
        ),
    ] = False,
    allow_foreign: AllowForeign = False,
    allow_large: Annotated[
        bool, typer.Option("--allow-large", help="Accept files of any size and number.")
    ] = False,
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair a remote log that all clones reject.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Allow a forced push if the repair needs one.")] = False,
    timeout: Timeout = syncing.TIMEOUT,
    progress: ShowProgress = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing if it succeeds.")] = False,
    auto: Annotated[bool, typer.Option("--auto", hidden=True)] = False,
) -> int:
    """Fetch records of other machines, and push local ones if you consented to publish."""
    after_command.look_for_commits(at)
    if auto:
        from .. import autosync

        return autosync.run(at)
    seconds = duration(timeout, "--timeout")
    if progress:
        at.store(long_lived=True).progress = output.progress(True)
    if remotes or all or publish or allow_foreign or allow_large or repair:
        from gitmem.sync import sync_remotes as operation

        synced = operation.sync(
            at.store(long_lived=True), remotes or (), all=all, publish=publish, allow_foreign=allow_foreign,
            allow_large=allow_large, repair=repair, force=yes, timeout=seconds,
        )  # fmt: skip
        if publish:
            from gitmem.sync import consent_messages

            consent_messages.report_consent(at.store(), synced.remotes)
    else:
        synced = syncing.sync_usual(at, seconds)
    if syncing.is_agent(at) and synced.status == 2:
        from gitmem.sync import consent_messages

        consent_messages.reword_for_agent(synced)
    from ..render import repository

    if at.json or synced.status or not quiet:
        output.answer(at.json, synced, repository.sync)
    return int(synced.status)
