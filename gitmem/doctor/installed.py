"""The interface by which doctor checks and repairs installations outside the log; the command line implements it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ..clients.hooks.status import HookStatus


class DriverStatus(Protocol):
    """The status of the merge driver."""

    @property
    def driver(self) -> str | None:
        """The command that git would run, from any config; None if there is none."""
        ...

    @property
    def ours(self) -> bool:
        """Whether gitmem installed that command."""
        ...

    @property
    def attributes(self) -> bool:
        """Whether git would use the driver for the log's files."""
        ...

    @property
    def program(self) -> str | None:
        """The program in gitmem's command; None if the command is not gitmem's."""
        ...

    @property
    def runnable(self) -> bool:
        """Whether that program exists and is executable."""
        ...


class Installed(Protocol):
    """The merge driver and the hooks, which only the command line can check and install."""

    def driver(self) -> DriverStatus:
        """Return the status of the merge driver."""
        ...

    def hooks(self) -> HookStatus:
        """Return the status of the hooks of all clients."""
        ...

    def install_driver(self) -> list[str]:
        """Install the merge driver, and return the changed files."""
        ...

    def install_hooks(self, client: str, scope: str) -> list[str]:
        """Install the hooks of a client in a scope (`project`, `user`), and return the changed files."""
        ...

    def install_pre_push(self) -> None:
        """Install git's pre-push hook."""
        ...
