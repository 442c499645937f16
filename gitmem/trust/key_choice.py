"""The choice of a key file: what to say about it, and a new file for a container or CI."""

from __future__ import annotations

import os

from .. import local_files
from ..errors import StoreError, UsageError
from ..git import config
from ..outcome import Outcome, command
from ..text.sanitize import sanitize
from . import keys
from .clone_key import create_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class MadeKey(Outcome, kw_only=True):
    """A key file that was made for use elsewhere.

    Attributes:
        writer: The id of its writer.
        key_file: Its absolute path.
        remark: How to use it.
    """

    writer: str
    key_file: str
    remark: str
    next: list[str] = []


def make(path: str, random: Callable[[int], bytes]) -> MadeKey:
    """Make a key file that only this user may read; one that exists is never replaced.

    Raises:
        UsageError: `key-exists`: something has this path.
        StoreError: `key-file`: the file can't be made there.
    """
    path = os.path.abspath(path)
    content = keys.content_of(random(keys.SEED_BYTES))
    try:
        create_once(path, content, 0o600, random, private=local_files.OWN)
    except OSError as error:
        raise StoreError(
            f"Cannot make {sanitize(path)}: {error.strerror}. Nothing was written.",
            hint="Name a path in a folder that exists and that you may write to.",
            code="key-file",
            next=["gitmem trust --help"],
        ) from None
    if local_files.read(path) != content:
        raise UsageError(
            f"There is a file {sanitize(path)} already; a key is never replaced. Nothing was written.",
            hint="Give the path of a file that does not exist yet.",
            code="key-exists",
        )
    key = keys.read(path).key()
    assert key is not None
    used = command("env", f"GITMEM_KEY_FILE={path}", "gitmem", "whoami").split()[1]
    return MadeKey(
        writer=key.writer,
        key_file=path,
        remark=f"Commands with {used} write as {key.writer}. Give the file to a container or a CI as a secret, name its path there with "
        "GITMEM_KEY_FILE, and keep it out of every repository.",
        next=[command("gitmem", "trust", key.writer)],
    )


def remarks(found: keys.Keys, git_dir: str) -> list[str]:
    """Return sentences about a choice of a key that does not count, or does not yet.

    Args:
        found: Which key writes here.
        git_dir: The git folder of the worktree.
    """
    return [each for each in (_pending(found), unheeded(git_dir)) if each]


def _pending(found: keys.Keys) -> str:
    """Return that the key that the user's configuration names counts from the next commit on; "" if it is in force."""
    writer, chosen = found.describe()[0], found.chosen()
    key = keys.read(chosen).key() if writer and chosen and not found.given else None
    if key is None or key.writer == writer:
        return ""
    return f"gitmem.key names {sanitize(chosen)}, the key of {key.writer}: it counts from the next commit on."


def unheeded(git_dir: str) -> str:
    """Return that a key file which the repository's own configuration names is not heeded; "" if it names none."""
    path = config.unheeded_key(git_dir)
    if not path:
        return ""
    return (
        f"gitmem.key in this repository's own configuration is not heeded: {sanitize(path)[:300]}; "
        "`git config --global gitmem.key PATH` or GITMEM_KEY_FILE is."
    )
