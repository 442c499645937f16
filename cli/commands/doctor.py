"""`gitmem doctor`."""

from __future__ import annotations

from .. import driver
from ..render import show, upkeep
from ..surroundings import Surroundings
from .hooks import git_hook, places


def doctor(at: Surroundings) -> int:
    """Check the log, the index, the spool, the merge driver and the hooks; say what to do about each finding."""
    from gitmem.operations import doctor as operation
    from gitmem.operations.hooks import status as hooks

    store = at.store(lives_on=True)
    installed = hooks.look(places(at), git_hook(at))
    report = operation.examine(store, driver.status(store.place), installed)
    show.say(at.json, report, upkeep.doctor)
    return report.status
