"""`gitmem sync`, as both ways in call it. With nothing new it is to be hardly more than git's own fetch."""

from __future__ import annotations

from .values import duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitmem.operations.sync import Synced

    from .surroundings import Surroundings

TIMEOUT = "30s"  # for each run of git


def sync(
    at: Surroundings,
    *remotes: str,
    all: bool = False,
    publish: bool = False,
    allow_foreign: bool = False,
    allow_large: bool = False,
    repair: bool = False,
    yes: bool = False,
    timeout: str = TIMEOUT,
    auto: bool = False,
) -> int:
    """Fetch what other machines wrote, and push what was written here, where the user has agreed to publish."""
    if auto:
        from . import autosync

        return autosync.run(at)
    seconds = duration(timeout)
    if remotes or all or publish or allow_foreign or allow_large or repair:
        from gitmem.operations import sync as operation

        synced = operation.sync(
            at.store(lives_on=True), remotes, all=all, publish=publish, allow_foreign=allow_foreign,
            allow_large=allow_large, repair=repair, force=yes, timeout=seconds,
        )  # fmt: skip
        if publish:
            from gitmem.operations import agreement

            agreement.tell_agreed(at.store(), synced.remotes)
    else:
        synced = usual(at, seconds)
    if is_agent(at) and synced.status == 2:
        from gitmem.operations import agreement

        agreement.ask_user(synced)
    from .render import show, upkeep

    show.say(at.json, synced, upkeep.sync)
    return int(synced.status)


def is_agent(at: Surroundings) -> bool:
    """Return whether a client's variable says that an agent runs the command."""
    return at.client is not None or at.harness is not None


def usual(at: Surroundings, timeout: float) -> Synced:
    """Sync with the usual remote; where nothing is new that costs a question to it, and no more."""
    import os
    import time

    from gitmem.operations import sync as operation

    from .spools import spools_elsewhere

    place = at.place

    def meanwhile() -> list[str]:
        from .render import show, upkeep  # noqa: F401  (needed in a moment, and the remote takes its time)

        written, read = spools_elsewhere(place)
        return [*written, *read]

    looked = operation.look(place, meanwhile, time.time(), timeout)
    if looked is not None and looked.unchanged:
        return operation.unchanged(place, looked, time.time(), os.urandom(1)[0] / 255)
    return operation.sync(at.store(lives_on=True), timeout=timeout, looked=looked)
