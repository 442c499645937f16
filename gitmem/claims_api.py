"""The library's interface to claims on paths: `log.claims`."""

from __future__ import annotations

from .agents import caller as callers
from .claims import claim_list, claim_work
from .store import serialized

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .claims.claim_answers import ClaimChange, ClaimCheck, ClaimPage
    from .session_api import Opened


@serialized
class Claims:
    """The claims of a log, for its caller. Paths are from the top of the work tree; each method calls a function in `gitmem.claims`."""

    def __init__(self, log: Opened) -> None:
        self._log = log

    def claim(
        self,
        paths: Sequence[str],
        *,
        lease: int = claim_work.HOUR,
        shared: bool = False,
        wu: str | None = None,
        task_id: str | None = None,
        reason: str | None = None,
        anyway: str | None = None,
        allow_secret: bool = False,
    ) -> ClaimChange:
        """Claim paths for some time, in microseconds; `GateError` if somebody else has them, but for the reason `anyway`."""
        return claim_work.claim(
            self._log.store,
            self._log.caller,
            paths,
            lease=lease,
            shared=shared,
            wu=wu,
            task_id=task_id,
            reason=reason,
            anyway=anyway,
            allow_secret=allow_secret,
        )

    def list(self, *, mine: bool = False, limit: int = 50, edited: bool = False) -> ClaimPage:
        """Return the claims that stand now, or the caller's; `edited` adds what sessions change without one."""
        caller = self._log.caller if mine else callers.find(self._log.store, self._log.who, must=False)
        return claim_list.list_claims(self._log.store, caller, mine=mine, limit=limit, edited=edited)

    def check(self, paths: Sequence[str]) -> ClaimCheck:
        """Return who else claims some of these paths."""
        return claim_list.check(self._log.store, self._log.caller, paths)

    def release(self, *named: str) -> Sequence[ClaimChange]:
        """Release the caller's claims with these ids or paths; without any, all of its session."""
        return claim_work.release(self._log.store, self._log.caller, named)

    def release_of(self, claim_id: str, reason: str) -> ClaimChange:
        """Release somebody else's claim; everybody can read the reason."""
        return claim_work.release_of(self._log.store, self._log.caller, claim_id, reason)
