"""Where lines wait outside the repository: an agent in a sandbox leaves them there, as the environment has it."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitmem.place import Place

# Where temporary files go for whoever has no $TMPDIR: spools there are checked for owner, mode and links.
SHARED = ("/tmp", "/var/tmp")  # noqa: S108


def spools_elsewhere(place: Place) -> tuple[list[str], list[str]]:
    """Spool folders outside the repository: those to write to, in turn, and those to read.

    A sandbox that can't write the git folder may have a $TMPDIR of its own: the folders where everybody
    looks are read too. To be read a folder must be there; none is written where the git folder can be.
    """
    is_writable = _is_writable(place)
    if is_writable and not any(
        map(os.path.isdir, (each for parents in _spool_parents() for each in parents))
    ):
        return [], []
    own, shared = _spool_folders(place)
    written = [] if is_writable else own
    found: dict[tuple[int, int], str] = {}  # a folder that has two names is read once
    for folder in (*own, *shared):
        try:
            status = os.lstat(folder)
        except OSError:
            continue
        found.setdefault((status.st_dev, status.st_ino or len(found)), folder)
    return written, [folder for folder in found.values() if folder not in written]


def spool_folders(place: Place) -> list[str]:
    """Every folder outside the repository where an agent in a sandbox may leave lines, whether it is there or not."""
    own, shared = _spool_folders(place)
    return [*own, *shared]


def _spool_folders(place: Place) -> tuple[list[str], list[str]]:
    """Those that this process would write to, in turn, and those where everybody looks."""
    from gitmem.sha256 import sha256

    project = sha256(os.fsencode(os.path.realpath(place.common))).hexdigest()[:16]
    own, shared = ([os.path.join(each, project) for each in parents] for parents in _spool_parents())
    return own, shared


def _spool_parents() -> tuple[list[str], list[str]]:
    """The folders that have those of all repositories."""
    user = f"gitmem-{os.getuid() if hasattr(os, 'getuid') else os.environ.get('USERNAME', 'user')}"
    temporary = os.environ.get("TMPDIR") or os.environ.get("TEMP") or SHARED[0]
    own = [os.path.join(temporary, user), user_state()]
    shared = [os.path.join(folder, user) for folder in SHARED]
    return list(filter(os.path.isabs, own)), list(filter(os.path.isabs, shared))


def user_state() -> str:
    """Return gitmem's folder in the user's state folder, which may be missing."""
    state = os.environ.get("XDG_STATE_HOME") or ""
    if not os.path.isabs(state):  # the standard says to ignore such a one
        state = os.path.expanduser(os.path.join("~", ".local", "state"))
    return os.path.join(state, "gitmem")


def _is_writable(place: Place) -> bool:
    state = place.state if os.path.isdir(place.state) else place.common
    return os.access(state, os.W_OK) and os.access(os.path.join(place.common, "objects"), os.W_OK)
