"""How many cases a property test tries: the hypothesis profile decides, a costly test asks for fewer."""

from __future__ import annotations

from hypothesis import settings

PROFILE_EXAMPLES = settings.get_profile(settings.get_current_profile_name()).max_examples


def up_to(count: int) -> int:
    """Return the profile's number of examples, or `count` where that is fewer."""
    return min(count, PROFILE_EXAMPLES)
