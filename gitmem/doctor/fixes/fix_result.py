"""The results of fixes."""

from __future__ import annotations

from ...errors import GitmemError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class FixResult:
    """Sentences about fixes by code and location of the finding, and about failures by code."""

    def __init__(self) -> None:
        self._did: dict[tuple[str, str], str] = {}
        self._failed: dict[str, str] = {}

    def say(self, code: str, where: str, what: str) -> None:
        """Record what was fixed for a code at a location; "" means every location."""
        self._did[code, where] = what

    def fail(self, code: str, why: str) -> None:
        """Record why the fix for a code failed."""
        self._failed[code] = why

    def about(self, code: str, where: str) -> str:
        """Return what was fixed for a finding, or ""."""
        return self._did.get((code, where)) or self._did.get((code, "")) or ""

    def why_not(self, code: str) -> str:
        """Return why the fix for a code failed, or ""."""
        return self._failed.get(code) or self._failed.get("") or ""

    def attempt(self, step: Callable[[], None], *codes: str) -> None:
        """Run a step; record its failure for these codes instead of raising it."""
        try:
            step()
        except (GitmemError, OSError, KeyError) as error:
            why = error.message if isinstance(error, GitmemError) else str(error)
            for code in codes:
                self.fail(code, why)
