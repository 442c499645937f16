"""`gitmem doctor`."""

from __future__ import annotations

from .. import driver
from ..environment import Environment
from ..render import output, upkeep
from .hooks import git_hook, install_gate, places, program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

    from gitmem.clients.hooks.status import HookStatus
    from gitmem.doctor.findings import DriverStatus


class LocalInstallation:
    """The merge driver and the hooks of clients: how they are, and how they are put right."""

    def __init__(self, at: Environment) -> None:
        self.at = at

    def driver(self) -> DriverStatus:
        return driver.installer.status(self.at.repo)

    def hooks(self) -> HookStatus:
        from gitmem.clients.hooks import status

        return status.read_status(places(self.at), git_hook(self.at))

    def install_driver(self) -> list[str]:
        return driver.installer.install(self.at.repo, driver.program())

    def install_hooks(self, client: str, scope: str) -> list[str]:
        from gitmem.clients.hooks import install

        found = install.install(places(self.at, scope), [client], scope, program=program())
        return [path for each in found.clients for path in each.files]

    def install_pre_push(self) -> None:
        hook = git_hook(self.at)
        if hook is not None:
            install_gate(self.at, hook)


def doctor(
    at: Environment,
    fix: Annotated[
        bool,
        typer.Option("--fix", help="Fix problems where no record can be lost. Never uses the network."),
    ] = False,
) -> int:
    """Check the log, the index, the write-ahead log, the merge driver and the hooks; report a fix for each finding."""
    from gitmem.doctor import doctor as operation

    store, installed = at.store(), LocalInstallation(at)
    report = operation.fix(store, installed) if fix else operation.examine(store, installed)
    output.answer(at.json, report, upkeep.doctor)
    return report.status
