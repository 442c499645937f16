"""Check the files that name roles, and the roles that sessions state.

Nothing is lost by either: roles are shown as they are recorded, and an entry that breaks a rule is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...roles import roles_file
from ...sessions import role_list
from ..findings import Check, Finding, note

FILE, UNKNOWN = "roles-file", "unknown-role"
COMMAND = "gitmem role check"


class RoleFiles(Check):
    """Entries of `.gitmem/roles.toml` and agent files of clients that do not count: one finding for all."""

    codes = (FILE,)

    def check(self) -> Iterator[Finding]:
        problems = role_list.check(self.store).problems
        if problems:
            yield note(
                FILE,
                _first([each.text for each in problems]),
                problems[0].path,
                "This entry or file does not count; everything else does. Correct it.",
                COMMAND,
            )


class UnknownRoles(Check):
    """Sessions whose role or responsibility is not in the vocabulary here, or whose alias has another role now."""

    codes = (UNKNOWN,)

    def check(self) -> Iterator[Finding]:
        found = role_list.check(self.store).unknown
        if found:
            yield note(
                UNKNOWN,
                _first(found),
                roles_file.FILE,
                f"It is kept and shown. If it is meant, add it to {roles_file.FILE}.",
                COMMAND,
            )


def _first(found: Sequence[str]) -> str:
    """Return the first sentence with the number of others."""
    return found[0] + (f" {len(found) - 1} more." if found[1:] else "")
