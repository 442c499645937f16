"""The repository that a command works in, as far as background work needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from gitmem.repo import Repo
    from gitmem.store import Store


class OpenedRepo(Protocol):
    """The part of `environment.Environment` that the committer and syncs use."""

    directory: str | None

    @property
    def client(self) -> str | None:
        """The client whose marker variable is set."""
        ...

    @property
    def client_session(self) -> tuple[str, str] | None:
        """The variable of the client that runs us, and the session id in it."""
        ...

    @property
    def repo(self) -> Repo:
        """The repository that the command works in."""
        ...

    @property
    def same_repo_options(self) -> list[str]:
        """The options with which another process finds the same repository."""
        ...

    def store(self, *, long_lived: bool = False) -> Store:
        """Open the store on the first call; return the same one afterwards."""
        ...
