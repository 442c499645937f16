"""The roles of a work tree: the built-in pack and `.gitmem/roles.toml`. Both are read only where a role is named."""

from __future__ import annotations

import os

from .. import work_tree_files
from . import pack as packs
from .pack import Pack, Problem

FILE = ".gitmem/roles.toml"
BUILTIN = "software-delivery.toml"
FILE_BYTES_MAX = 64 * 1024


class Roles:
    """The pack that counts in a work tree, and what its file has wrong.

    Attributes:
        path: The file of the work tree; None if it has none.
        is_whole: Whether the file could be read, if there is one.
    """

    def __init__(self, pack: Pack) -> None:
        self.pack = pack
        self.path: str | None = None
        self.problems: list[Problem] = []
        self.is_whole = True

    @property
    def warning(self) -> str | None:
        """What somebody who names a role should know of the file, or None."""
        if not self.problems:
            return None
        more = f" {len(self.problems) - 1} more: `gitmem role check`." if self.problems[1:] else ""
        left = "This entry does not count." if self.is_whole else "Only the built-in roles count."
        return f"{self.problems[0].text}. {left}{more}"


def builtin() -> Pack:
    """Return the pack that comes with gitmem."""
    with open(os.path.join(os.path.dirname(__file__), BUILTIN), encoding="utf-8") as file:
        found, problems = packs.parse(file.read(), BUILTIN)
    assert found is not None and not problems
    return found


def read(top: str | None) -> Roles:
    """Return the roles that count in a work tree. Nothing that its file contains makes this fail.

    Args:
        top: The top folder of the work tree; None for a bare repository, which has the built-in pack alone.
    """
    found = Roles(builtin())
    if top is None:
        return found
    try:
        real = work_tree_files.resolve(top, FILE)
        if real is None:
            return found
        found.path = FILE
        text = work_tree_files.read_text(real, FILE_BYTES_MAX)
    except OSError as error:
        reason = f"it cannot be read ({error.strerror})"
    except ValueError as error:
        reason = str(error)
    else:
        both, found.problems = packs.parse(text, FILE, found.pack)
        found.is_whole = both is not None
        found.pack = both or found.pack
        return found
    found.path, found.is_whole, found.problems = FILE, False, [Problem(FILE, None, reason)]
    return found
