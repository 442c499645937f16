"""Blocks for prompts, and the profile of a project, as text."""

from __future__ import annotations

from ..out import sanitize
from ..text import plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitmem.operations.memory.context import Context
    from gitmem.operations.memory.profile import Profile
    from gitmem.operations.memory.recover import Recovered


def block(found: Context | Recovered) -> list[str]:
    """The text as it was packed: what others wrote in it is harmless already."""
    return [found.block]


def profile(found: Profile) -> list[str]:
    if not found.nodes:
        about = (
            f" has the tag {sanitize(found.tag, keep='')}"
            if found.tag
            else " is known of the whole project yet"
        )
        return [f"Nothing{about}"]
    more = found.fitting - len(found.nodes)
    lines = [found.block, "", *([f"and {more} more"] if more else [])]
    tags = ", ".join(f"{sanitize(tag, keep='')} {count}" for tag, count in found.by_tag.items())
    return [*lines, f"{plural(found.total, 'node')}; tags: {tags or 'none'}"]
