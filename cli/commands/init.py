"""`gitmem init`."""

from __future__ import annotations

from ..driver import installer, program
from ..environment import Environment
from ..render import output, repository
from ..syncing import TIMEOUT, is_agent
from ..values import duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

    from .options import AllowForeign, Timeout


def init(
    at: Environment,
    publish: Annotated[
        str | None,
        typer.Option(
            "--publish", metavar="branch|hidden", help="Ref that stores the log on remotes, for all clones."
        ),
    ] = None,
    autosync: Annotated[
        str | None,
        typer.Option("--autosync", metavar="30s|off", help="Sync automatically at this interval, or off."),
    ] = None,
    uninstall: Annotated[
        bool, typer.Option("--uninstall", help="Remove the settings that init added to git's config.")
    ] = False,
    no_publish: Annotated[
        bool,
        typer.Option(
            "--no-publish", help="Withdraw consent: sync only fetches until `gitmem sync --publish`."
        ),
    ] = False,
    allow_foreign: AllowForeign = False,
    timeout: Timeout = TIMEOUT,
) -> None:
    """Set up this repository: the log, the remote's log, consent to publish to it, the merge driver. Idempotent."""
    from gitmem.sync import autosync as syncs
    from gitmem.sync import init as operation

    every = syncs.normalize_interval(autosync) if autosync is not None else None
    store = at.store(long_lived=True)
    if uninstall:
        changed = _unique([*installer.set_autosync(store.repo, None), *installer.uninstall(store.repo)])
        syncs.switch(store.repo, False)
        left = operation.uninstall(store)
        lines = repository.uninstalled(left, changed)
        output.answer_values(at.json, {**left.as_json(), "changed": changed}, lines, left.next)
        return
    merger = program()
    found = operation.init(
        store,
        publish=publish,
        consents=False if no_publish else None if autosync is not None else True,
        allow_foreign=allow_foreign,
        timeout=duration(timeout, "--timeout"),
    )
    changed = installer.install(store.repo, merger)
    if autosync is not None:
        changed = _unique([*changed, *installer.set_autosync(store.repo, every)])
        operation.apply_autosync(store, found, every)
    from gitmem.agents import edited_paths

    if is_agent(at):  # the agent's user decides what is published
        found.next = [each for each in found.next if "--publish" not in each.split()]
    elif found.publishes_to is not None and not edited_paths.is_published(store):
        found.remarks.append(
            "`git config gitmem.claims publish` also shares which tracked files your agents edit, as claims that stop nobody."
        )
    values = {**found.as_json(), "program": merger, "changed": changed}
    output.answer_values(at.json, values, repository.init(found, merger, changed), found.next)


def _unique(paths: list[str]) -> list[str]:
    return list(dict.fromkeys(paths))
