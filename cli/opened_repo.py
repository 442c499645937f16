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
    def client(self) -> str | None: ...

    @property
    def harness(self) -> tuple[str, str] | None: ...

    @property
    def place(self) -> Repo: ...

    @property
    def same_place(self) -> list[str]: ...

    def store(self, *, lives_on: bool = False) -> Store: ...
