"""`gitmem doctor`."""

from __future__ import annotations

from .. import driver
from ..render import show, upkeep
from ..surroundings import Surroundings


def doctor(at: Surroundings) -> int:
    """Check the log, the index, the spool and the merge driver; say what to do about each finding."""
    from gitmem.operations import doctor as operation

    store = at.store(lives_on=True)
    report = operation.examine(store, driver.status(store.place))
    show.say(at.json, report, upkeep.doctor)
    return report.status
