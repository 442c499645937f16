"""The lines for AGENTS.md, and what became of them, as text."""

from __future__ import annotations

from .out import sanitize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitmem.operations.agents_md import Block

STATES = {
    "created": "{path} is new, with the lines of gitmem",
    "added": "{path} has the lines of gitmem at its end now",
    "updated": "{path} has the lines of this version now",
    "unchanged": "{path} has the lines of this version already",
    "removed": "{path} is as it was without the lines of gitmem",
    "deleted": "{path} had nothing but the lines of gitmem, which made it: it is gone",
    "missing": "{path} has no lines of gitmem",
    "current": "{path} has the lines of this version",
    "outdated": "{path} has lines of gitmem that are not those of this version",
}


def block(found: Block) -> list[str]:
    said = STATES[found.state].format(path=found.path)
    return [sanitize(said), *(f"note: {sanitize(each)}" for each in found.remarks)]
