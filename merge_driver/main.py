"""`gitmem-merge %O %A %B`: git's merge driver for the log's files.

`man gitattributes`, "Defining a custom merge driver", specifies what git requires of a driver; the code below quotes
it. A driver runs once for each path of a merge, so it imports only the union. Git must call the console script by its
absolute path: `python -m` puts the worktree first on the module path, so a folder `gitmem` there would be run instead.
"""

from __future__ import annotations

import os
import sys

from gitmem.log.union import union

USAGE = (
    "gitmem-merge is a git merge driver for gm-*.jsonl; git runs it as `gitmem-merge %O %A %B` "
    "(base, ours, theirs); `gitmem setup` installs it."
)


def main() -> int:
    """Write the union of two files to the first of them.

    Returns:
        0 on success; 2 for bad usage, and 1 if a file cannot be read or written, with a message on standard error and
            `%A` unchanged. The driver line then continues with git's own union.
    """
    if len(sys.argv) != 4:
        sys.stderr.write(USAGE + "\n")
        return 2
    # "to merge ancestor's version (%O), current version (%A) and the other branches' version (%B)".
    # A union never removes lines, so the ancestor is not needed and not read.
    _ancestor, ours, theirs = sys.argv[1:]
    try:
        current = _read(ours)
        merged = union(current, _read(theirs))
        # "The merge driver is expected to leave the result of the merge in the file named with %A
        # by overwriting it"
        if merged != current:
            _replace(ours, merged)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        sys.stderr.write(f"gitmem-merge: {error.strerror}{where}. Nothing was merged.\n")
        # "or non-zero if there were conflicts"; above 128 it would mean a crash, and git would give up.
        return 1
    # "and exit with zero status if it managed to merge them cleanly". A union always does.
    return 0


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _replace(path: str, content: bytes) -> None:
    """Overwrite a file atomically.

    A full disk or a kill must not leave a partial `%A` to the fallback.
    """
    path = os.path.realpath(path)
    beside = f"{path}.gitmem-{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    descriptor = os.open(beside, flags, os.stat(path).st_mode & 0o777)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


if __name__ == "__main__":
    sys.exit(main())
