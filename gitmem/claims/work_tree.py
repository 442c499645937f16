"""What claims cover in a work tree."""

from __future__ import annotations

import os

from .path_patterns import PathPattern, fixed_part, is_pattern

VISITED_MAX = 20_000  # files; a larger work tree is not searched further


def is_missing(top: str, pattern: str, visited_max: int = VISITED_MAX) -> bool:
    """Return whether a pattern covers nothing in a work tree. False if that would take long to find out."""
    if not is_pattern(pattern):
        return not os.path.lexists(os.path.join(top, pattern))
    prepared = PathPattern(pattern)
    visited = 0
    for folder, folders, files in os.walk(os.path.join(top, fixed_part(pattern))):
        folders[:] = [each for each in folders if each != ".git"]
        below = os.path.relpath(folder, top).replace(os.sep, "/")
        for name in (*files, *folders):
            visited += 1
            if visited > visited_max or prepared.matches(name if below == "." else f"{below}/{name}"):
                return False
    return True
