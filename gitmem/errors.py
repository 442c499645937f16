"""Errors with messages that a person or an agent can act on.

There is one class for each exit status. Raise the most specific class near the cause; `code` is the short machine name
that `--json` shows.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


ELSEWHERE = "It may be on another machine: `gitmem sync` fetches it."  # a hint that needs a remote


class GitmemError(Exception):
    """Base of all errors of this library.

    Args:
        message: What happened, and the effect on the data, in one sentence.
        hint: What to do about it, in one sentence.
        code: Short machine name; the class has a default.
        next: Complete commands to run next, most useful first.
        suggestions: Valid values similar to the rejected one.
    """

    status = 3
    code = "unexpected"

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        code: str | None = None,
        next: Sequence[str] = (),
        suggestions: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.next = list(next)
        self.suggestions = list(suggestions)
        if code is not None:
            self.code = code


class GateError(GitmemError):
    """A rule that this project has chosen refuses the request; a reason passes it. Nothing was written."""

    status = 1
    code = "gate"


class UsageError(GitmemError):
    """The request was wrong: bad value, unknown or ambiguous name. Nothing was written."""

    status = 2
    code = "usage"


class StoreError(GitmemError):
    """The store could not be read or written: lock, disk, permissions, unsupported repository."""

    status = 4
    code = "store"


class RemoteError(GitmemError):
    """The remote could not be reached, or rejected the request. The local log is unchanged."""

    status = 5
    code = "remote"


class RecordError(UsageError):
    """A record that violates the contract. Nothing was written."""

    code = "invalid-record"

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(f"{what}. Nothing was written.", hint=hint)


class SecretError(UsageError):
    """A record with text that looks like a secret. Nothing was written.

    Args:
        what: Which text it is, and what it seems to contain.
    """

    code = "secret"

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}. Nothing was written.",
            hint="Remove it: others can read the log once it is pushed. If it is not a secret, a person may run the command "
            "again with GITMEM_ALLOW_SECRET=1 before it; an agent must ask its user first.",
        )


def bad_number(name: str, value: object, most: int | None = None, least: int = 1) -> UsageError:
    """Return the error for a value that is not a whole number within these limits."""
    valid = f"{least:,} to {most:,}" if most is not None else f"{least:,} or more"
    return UsageError(f"Invalid {name}: {value!r}; it must be a whole number of {valid}.", code="bad-number")


def check_limit(limit: int | None, most: int | None = None) -> None:
    """Reject a limit on entries that is below 1, or above `most`. None means no limit.

    Raises:
        UsageError: `bad-number`.
    """
    if limit is not None and (limit < 1 or (most is not None and limit > most)):
        raise bad_number("limit", limit, most)
