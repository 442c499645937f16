"""Test the hooks of every client that has them installed."""

from __future__ import annotations

import os
import shutil
import tempfile

from ...errors import GitmemError, UsageError
from ...outcome import Outcome
from ...text.shell_quote import command
from . import hook_errors, hook_test
from .client_scope import ABSENT, ClientScope, bare
from .clients import ALL_FOUND, CLIENTS, RULE, SCOPES, USER, ClientFolders
from .install import chosen, target_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class HookTestResults(Outcome):
    """The result of testing hooks.

    Attributes:
        trials: The test of each client in each scope that has hooks installed.
        works: Whether all of them passed.
    """

    __slots__ = ("works", "trials", "next")

    def __init__(self, trials: list[hook_test.Trial]) -> None:
        self.trials = trials
        self.works = all(each.works for each in trials)
        again = [
            command("gitmem", "hooks", "install", "--client", each.client, "--scope", each.scope)
            for each in trials
            if not each.works
        ]
        self.next = [*again[:1], "gitmem hooks status"]

    @property
    def status(self) -> int:
        """The exit status: 1 if a test failed."""
        return 0 if self.works else 1


def run(
    places: ClientFolders, names: Sequence[str], environment: dict[str, str], program: str | None
) -> HookTestResults:
    """Test the hooks of clients, one after the other.

    Remove the last recorded error of a client whose tests all pass: it no longer needs attention.

    Args:
        names: The clients' names; `all-found` means every client.

    Raises:
        UsageError: No hooks are installed.
    """
    known = hook_errors.read(places.state) if places.state is not None else None
    meant = (
        list(CLIENTS.values())
        if ALL_FOUND in names
        else [client for client, _ in chosen(places, names, "project")]
    )
    targets: list[ClientScope] = []
    for client in meant:
        for scope in SCOPES:
            if scope == "project" and places.worktree is None:
                continue
            target = target_of(places, client, scope)
            if target is not None and client.form != RULE and _is_there(target):
                targets.append(target)
    if not targets:
        raise UsageError(
            "No hooks are installed that could be tried.",
            hint="Windsurf and Aider take none.",
            code="no-hooks",
            next=[
                command("gitmem", "hooks", "install", *(["--scope", USER] if places.worktree is None else []))
            ],
        )
    trials = [_try(target, places, environment, program) for target in targets]
    for name in {each.client for each in trials if each.works}:
        if places.state is not None and all(each.works for each in trials if each.client == name):
            hook_errors.clear_if_fixed(places.state, name, known)
    return HookTestResults(trials)


def _is_there(target: ClientScope) -> bool:
    """Return whether there is anything of ours to test, even if it can't be parsed."""
    try:
        return target.state() != ABSENT
    except GitmemError:
        return bool(target.seen())


def _try(
    target: ClientScope, places: ClientFolders, environment: dict[str, str], program: str | None
) -> hook_test.Trial:
    folder = tempfile.mkdtemp(prefix="gitmem-hooks-test-")
    try:
        target.state()  # a client reads no hook from broken settings
        return hook_test.run(target, places, os.path.realpath(folder), environment, program)
    except GitmemError as error:
        said = hook_test.Trial(target)
        said.said = bare(error)
        return said
    finally:
        shutil.rmtree(folder, ignore_errors=True)
