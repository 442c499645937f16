"""The network of a sync whose first fetch ran before it was known whether there is anything to sync."""

from __future__ import annotations

from ..errors import RemoteError
from .network import GitNetwork


class PrefetchedNetwork(GitNetwork):
    """A network that fetches when it is created; the first identical `fetch` returns that result.

    Attributes:
        error: The error of the first fetch, or None.
        left: The result of the first fetch, see `GitNetwork.fetch`.
    """

    def __init__(self, common: str, url: str, into_prefix: str, timeout: float) -> None:
        super().__init__(common)
        self._made: tuple[str, str] | None = (url, into_prefix)
        self.error: RemoteError | None = None
        self.left: dict[str, tuple[str, str]] = {}
        try:
            self.left = super().fetch(url, into_prefix, timeout)
        except RemoteError as error:
            self.error = error

    def fetch(self, url: str, into_prefix: str, timeout: float = 60.0) -> dict[str, tuple[str, str]]:
        """Return the result of the first fetch, once, for the same URL and prefix; else fetch.

        Raises:
            RemoteError: The fetch failed.
        """
        made, self._made = self._made, None
        if made != (url, into_prefix):
            return super().fetch(url, into_prefix, timeout)
        if self.error is not None:
            raise self.error
        return self.left
