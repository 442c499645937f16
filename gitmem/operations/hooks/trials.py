"""The try of every client that hooks are installed for."""

from __future__ import annotations

import os
import shutil
import tempfile

from ...errors import UsageError
from ..outcome import Outcome
from . import trial
from .clients import ALL_FOUND, CLIENTS, RULE, SCOPES, Places
from .install import chosen, target_of
from .target import ABSENT, Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Tried(Outcome):
    """How the hooks did.

    Attributes:
        trials: Each client in each scope that hooks are installed in.
        works: Whether all of them do.
    """

    __slots__ = ("works", "trials", "next")

    def __init__(self, trials: list[trial.Trial]) -> None:
        self.trials = trials
        self.works = all(each.works for each in trials)
        self.next = ["gitmem hooks status"] if self.works else ["gitmem hooks install", "gitmem hooks status"]

    @property
    def status(self) -> int:
        """Exit status: 1 where one fails."""
        return 0 if self.works else 1


def run(places: Places, names: Sequence[str], environment: dict[str, str], program: str | None) -> Tried:
    """Try the hooks of clients, one after the other.

    Raises:
        UsageError: Nothing is installed, or a settings file can't be read.
    """
    meant = (
        list(CLIENTS.values())
        if ALL_FOUND in names
        else [client for client, _ in chosen(places, names, "project")]
    )
    targets: list[Target] = []
    for client in meant:
        for scope in SCOPES:
            if scope == "project" and places.worktree is None:
                continue
            target = target_of(places, client, scope)
            if target is not None and client.form != RULE and target.state() != ABSENT:
                targets.append(target)
    if not targets:
        raise UsageError(
            "No hooks are installed that could be tried.",
            hint="Windsurf and Aider take none.",
            code="no-hooks",
            next=["gitmem hooks install"],
        )
    trials = []
    for target in targets:
        folder = tempfile.mkdtemp(prefix="gitmem-hooks-test-")
        try:
            trials.append(trial.run(target, places, os.path.realpath(folder), environment, program))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return Tried(trials)
