"""`gitmem doctor`."""

from __future__ import annotations

from .. import driver
from ..environment import Environment
from ..render import output, repository
from .hooks import client_folders, git_hooks, install_gate, program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    import typer

    from gitmem.clients.hooks.status import HookStatus
    from gitmem.doctor.findings import DriverStatus

    from .options import ShowProgress


class LocalInstallation:
    """The merge driver and the hooks of clients, for doctor: their state, and how to install them."""

    def __init__(self, at: Environment) -> None:
        self.at = at

    def driver(self) -> DriverStatus:
        """Return the state of the merge driver in git's config."""
        return driver.installer.status(self.at.repo)

    def hooks(self) -> HookStatus:
        """Return the installed hooks of each client and of git."""
        from gitmem.clients.hooks import status

        return status.read_status(client_folders(self.at), *git_hooks(self.at))

    def install_driver(self) -> list[str]:
        """Install the merge driver; return what was changed."""
        return driver.installer.install(self.at.repo, driver.program())

    def install_hooks(self, client: str, scope: str) -> list[str]:
        """Install a client's hooks; return the files that were written."""
        from gitmem.clients.hooks import install

        found = install.install(client_folders(self.at, scope), [client], scope, program=program())
        return [path for each in found.clients for path in each.files]

    def install_git_hook(self, name: str) -> None:
        """Install one of git's hooks, if the repository has a folder for hooks."""
        hooks, _ = git_hooks(self.at)
        if hooks is not None and name in hooks:
            install_gate(self.at, hooks[name])


def doctor(
    at: Environment,
    fix: Annotated[
        bool,
        typer.Option("--fix", help="Fix problems where no record can be lost. Never uses the network."),
    ] = False,
    progress: ShowProgress = False,
) -> int:
    """Check the log, the index, the write-ahead log, the merge driver and the hooks; report a fix for each finding."""
    from gitmem.doctor import doctor as operation

    store, installed = at.store(), LocalInstallation(at)
    store.progress = output.progress(progress)
    report = operation.fix(store, installed) if fix else operation.examine(store, installed)
    output.answer(at.json, report, repository.doctor)
    return report.status
