"""Fetches in a folder of their own: nothing of a fetch that fails stays in the repository.

The folder is a git folder of the same repository, like that of a linked worktree. So git uses the user's configuration and
negotiates with the repository's refs, but writes only in that folder: objects, and refs below `refs/worktree/`. `admit` moves the
packs into the repository. The size of files, of objects and of the output is limited, so that a small push of somebody
else cannot fill the disk or the memory ([decision 173](docs/decisions/0173-fetch-into-a-folder-of-its-own.md)).
"""

from __future__ import annotations

import os
import sys
import time
from typing import NamedTuple

from .. import atomic_write, state_files
from . import durable, packing, queries, run, scratch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

PREFIX = "tmp_objdir-gitmem-"  # in the folder of objects: `git gc` removes old ones, too
REFS = "refs/worktree/gitmem/"  # where the folder has the refs of the remote
MIB = 1024 * 1024
# Git refuses an object of more than GIT_ALLOC_LIMIT bytes when it has read its size, unless it streams it.
_NEVER_STREAM = "999g" if sys.maxsize > 2**32 else "3g"


class Limits(NamedTuple):
    """Limits of the fetches of one sync with one remote; None for no limit.

    Attributes:
        pack_bytes: Of all that one fetch brings, as it is sent.
        outbox_bytes: The same for a group of outboxes, if they are fetched separately.
        object_bytes: Of one object.
        list_bytes: Of the list of the remote's refs.
        outboxes: How many are fetched in one sync.
        all_seconds: For everything at once; then each ref is fetched separately.
        outbox_seconds: For one group of outboxes.
        outboxes_seconds: For all of them.
    """

    pack_bytes: int | None = 256 * MIB
    outbox_bytes: int | None = 32 * MIB
    object_bytes: int | None = 256 * MIB
    list_bytes: int = 16 * MIB
    outboxes: int = 200
    all_seconds: float = 10.0
    outbox_seconds: float = 6.0
    outboxes_seconds: float = 30.0


LIMITS = Limits()
WITHOUT_LIMITS = Limits(None, None, None, all_seconds=3600.0, outbox_seconds=3600.0, outboxes_seconds=3600.0)


class Incoming:
    """A context with a folder for fetches. Its end removes what was not admitted.

    Attributes:
        common: The common git folder of the repository.
        folder: The git folder for `run.run`.

    Raises:
        StoreError: The repository cannot be written.
    """

    def __init__(self, common: str) -> None:
        self.common = common
        self._objects = os.path.join(common, "objects")
        self.folder = os.path.join(self._objects, f"{PREFIX}{os.getpid()}-{time.monotonic_ns()}")
        self._own = os.path.join(self.folder, "objects")
        self._kept: list[str] = []

    def __enter__(self) -> Self:
        try:
            scratch.remove_old(self._objects, PREFIX)
        except OSError:
            pass
        self.reset()
        return self

    def reset(self) -> None:
        """Remove what was not admitted, and begin again."""
        scratch.remove(self.folder)
        try:
            for name in ("", "objects", "objects/pack", "refs", "reftable"):
                os.mkdir(os.path.join(self.folder, name), 0o700)
            for name, text in (("commondir", self.common), ("HEAD", "ref: refs/worktree/none")):
                with open(os.path.join(self.folder, name), "wb") as file:
                    file.write(os.fsencode(text + "\n"))
        except OSError as error:
            scratch.remove(self.folder)
            raise durable.failed("Nothing can be fetched", error, self.common) from error

    def __exit__(self, *_: object) -> None:
        packing.adopt(self.common, self._kept)
        for name in self._kept:
            packing.release(self.common, name)
        scratch.remove(self.folder)
        state_files.give_back(self.common)

    def variables(self, limits: Limits) -> dict[str, str]:
        """Return the variables for git that redirect its objects and limit their size."""
        limit = {} if limits.object_bytes is None else {"GIT_ALLOC_LIMIT": str(limits.object_bytes)}
        return {
            "GIT_OBJECT_DIRECTORY": self._own,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": scratch.quoted(self._objects),
            **limit,
        }

    def config(self) -> list[str]:
        """Return the settings for git."""
        return ["-c", f"core.bigFileThreshold={_NEVER_STREAM}", "-c", "core.logAllRefUpdates=false"]

    def refs(self) -> dict[str, str]:
        """Return the fetched refs, by their names on the remote."""
        return {
            "refs/" + name.removeprefix(REFS): oid
            for name, oid in queries.refs_below(self.folder, REFS).items()
        }

    def admit(self) -> None:
        """Move what was fetched into the repository. No gc removes it before the end of this context.

        Raises:
            StoreError: A part may have been moved; it is complete, but no ref needs it.
        """
        theirs, ours = os.path.join(self._own, "pack"), os.path.join(self._objects, "pack")
        names = atomic_write.names_in(theirs)
        try:
            if names:
                state_files.make_dirs(ours)
            for pack in (name[:-4] for name in names if name.endswith(".idx")):
                if packing.keep(self.common, pack):
                    self._kept.append(pack)
                for end in (".promisor", ".rev", ".pack", ".idx"):  # the last one makes git see it
                    if pack + end in names:
                        os.replace(os.path.join(theirs, pack + end), os.path.join(ours, pack + end))
        except OSError as error:
            raise durable.failed("What was fetched could not be stored", error, self.common) from error
        durable.fsync_dir(ours)

    def move_refs(self, prefix: str, there: dict[str, str]) -> None:
        """Make the refs below `prefix` those that the remote has, except for what others keep there.

        Args:
            there: The refs of the remote.
        """
        have = {
            name: oid
            for name, oid in queries.refs_below(self.common, prefix).items()
            if name.removeprefix(prefix).startswith(("heads/", "gitmem/"))
        }
        wanted = {prefix + name.removeprefix("refs/"): oid for name, oid in there.items()}
        gone = [f"delete {name}\n" for name in have if name not in wanted]
        new = [f"update {name} {oid}\n" for name, oid in wanted.items() if have.get(name) != oid]
        for rows in (gone, new):  # deleted first: a name may be the folder of a new one
            for attempt in range(3 if rows else 0):
                args = [*queries.DURABLE, "update-ref", "--no-deref", "-m", "fetch", "--stdin"]
                done = run.run(
                    self.common,
                    args,
                    input=os.fsencode("".join(rows)),
                    env_extra=queries.REFLOG_IDENTITY,
                    check=False,
                )
                if done.code == 0 or (rows is gone and "packed-refs.lock" in done.err):
                    break  # only pruning needs that lock, and the user's git may have left it behind
                if "cannot lock ref" not in done.err or attempt == 2:
                    raise queries.update_failure(self.common, done)
                time.sleep(0.05 * (attempt + 1))  # another sync of this clone is fetching
