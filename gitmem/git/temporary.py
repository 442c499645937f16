"""Temporary git folders that borrow the objects of the user's repository; what git writes there is removed with them.

`ScratchRepository` is for git commands that write objects. It has no refs, no worktree and a configuration of its own, and
ignores those of the user: no hook, filter, merge driver, text conversion or lazy fetch can run.

`Incoming` is for fetches. It is a git folder of the same repository, like that of a linked worktree. So git uses the user's
configuration and negotiates with the repository's refs, but writes only in that folder: objects, and refs below
`refs/worktree/`. `admit` moves the packs into the repository. The size of files, of objects and of the output is limited, so
that a small push of somebody else cannot fill the disk or the memory ([decision 173](docs/decisions/0173-fetch-into-a-folder-of-its-own.md)).
"""

from __future__ import annotations

import os
import sys
import time
from typing import NamedTuple

from .. import local_files
from . import files, packs, plumbing, processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from .processes import Result


PREFIX = "scratch-"
OLD_SECONDS = 3_600.0  # a process that was killed leaves its folder
ATTRIBUTES_MAX = 100_000  # bytes
_CONFIG = "[core]\n\trepositoryformatversion = 1\n\tbare = true\n\tlooseCompression = 0\n\tfsync = none\n"
_OWN = {
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_COUNT": "0",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_PARAMETERS": "",
}


class ScratchRepository:
    """A context in which `run` starts git in a temporary repository.

    Args:
        common: The common git folder of the user's repository.
        parent: An existing folder for the temporary one.

    Raises:
        OSError: The folder cannot be written.
    """

    def __init__(self, common: str, parent: str) -> None:
        self._common = common
        self._parent = parent
        self._folder = os.path.join(parent, f"{PREFIX}{os.getpid()}-{time.monotonic_ns()}")
        objects = os.path.join(common, "objects")
        self._variables = {**_OWN, "GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted(objects)}

    def __enter__(self) -> Self:
        remove_old(self._parent, PREFIX)
        local_files.refuse_link(self._parent)
        os.mkdir(self._folder, 0o700)
        try:
            for name in ("objects", "refs", "info"):
                os.mkdir(os.path.join(self._folder, name), 0o700)
            config = _CONFIG
            if files.id_length(self._common) != 40:
                config += f"[extensions]\n\tobjectFormat = {files.ALGORITHMS[64]}\n"
            self._write("HEAD", "ref: refs/heads/none\n")
            self._write("config", config)
            cut = files.shallow_commits(self._common)
            if cut:
                self._write("shallow", "".join(f"{oid}\n" for oid in sorted(cut)))
        except OSError:
            remove(self._folder)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        remove(self._folder)

    def use_attributes(self, commit: str) -> None:
        """Let the top `.gitattributes` of a commit say which files merge by `union`, or are binary."""
        try:
            found = self.run(["cat-file", "blob", f"{commit}:.gitattributes"], out_max=ATTRIBUTES_MAX)
        except processes.GitOutputError:
            return
        if found.code == 0:
            self._write(os.path.join("info", "attributes"), os.fsdecode(found.out))

    def run(
        self,
        args: Sequence[str],
        *,
        input: bytes = b"",
        timeout: float | None = None,
        out_max: int | None = None,
    ) -> Result:
        """Run git here, see `run.run`. The exit status may be any."""
        return processes.run(
            self._folder, args, input=input, env_extra=self._variables, timeout=timeout, check=False,
            out_max=out_max,
        )  # fmt: skip

    def _write(self, name: str, content: str) -> None:
        path = os.path.join(self._folder, name)
        with open(local_files.open_file(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
            file.write(os.fsencode(content))


def make_parent(state: str) -> str:
    """Return the folder for temporary repositories below gitmem's own files, after making it.

    Raises:
        OSError: It cannot be made.
    """
    local_files.make_dirs(state)
    return state


def quoted(path: str) -> str:
    """Return a path as git reads it from a list: in double quotes, with the escapes of C."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def remove(folder: str) -> None:
    """Remove a folder of ours, as far as possible."""
    import shutil

    if local_files.link_at(folder):
        return
    shutil.rmtree(folder, ignore_errors=True)


def remove_old(parent: str, prefix: str) -> None:
    """Remove temporary folders of processes that were killed."""
    before = time.time() - OLD_SECONDS
    for name in local_files.names_in(parent):
        path = os.path.join(parent, name)
        if name.startswith(prefix) and not os.path.islink(path) and os.path.getmtime(path) < before:
            remove(path)


INCOMING_PREFIX = "tmp_objdir-gitmem-"  # in the folder of objects: `git gc` removes old ones, too
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
        self.folder = os.path.join(self._objects, f"{INCOMING_PREFIX}{os.getpid()}-{time.monotonic_ns()}")
        self._own = os.path.join(self.folder, "objects")
        self._kept: list[str] = []

    def __enter__(self) -> Self:
        try:
            remove_old(self._objects, INCOMING_PREFIX)
        except OSError:
            pass
        self.reset()
        return self

    def reset(self) -> None:
        """Remove what was not admitted, and begin again."""
        remove(self.folder)
        try:
            for name in ("", "objects", "objects/pack", "refs", "reftable"):
                os.mkdir(os.path.join(self.folder, name), 0o700)
            for name, text in (("commondir", self.common), ("HEAD", "ref: refs/worktree/none")):
                with open(os.path.join(self.folder, name), "wb") as file:
                    file.write(os.fsencode(text + "\n"))
        except OSError as error:
            remove(self.folder)
            raise plumbing.failed("Nothing can be fetched", error, self.common) from error

    def __exit__(self, *_: object) -> None:
        packs.adopt(self.common, self._kept)
        for name in self._kept:
            packs.release(self.common, name)
        remove(self.folder)
        local_files.give_back(self.common)

    def variables(self, limits: Limits) -> dict[str, str]:
        """Return the variables for git that redirect its objects and limit their size."""
        limit = {} if limits.object_bytes is None else {"GIT_ALLOC_LIMIT": str(limits.object_bytes)}
        return {
            "GIT_OBJECT_DIRECTORY": self._own,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted(self._objects),
            **limit,
        }

    def config(self) -> list[str]:
        """Return the settings for git."""
        return ["-c", f"core.bigFileThreshold={_NEVER_STREAM}", "-c", "core.logAllRefUpdates=false"]

    def refs(self) -> dict[str, str]:
        """Return the fetched refs, by their names on the remote."""
        return {
            "refs/" + name.removeprefix(REFS): oid
            for name, oid in plumbing.refs_below(self.folder, REFS).items()
        }

    def admit(self) -> None:
        """Move what was fetched into the repository. No gc removes it before the end of this context.

        Raises:
            StoreError: A part may have been moved; it is complete, but no ref needs it.
        """
        theirs, ours = os.path.join(self._own, "pack"), os.path.join(self._objects, "pack")
        names = local_files.names_in(theirs)
        try:
            if names:
                local_files.make_dirs(ours)
            for pack in (name[:-4] for name in names if name.endswith(".idx")):
                if packs.keep(self.common, pack):
                    self._kept.append(pack)
                for end in (".promisor", ".rev", ".pack", ".idx"):  # the last one makes git see it
                    if pack + end in names:
                        os.replace(os.path.join(theirs, pack + end), os.path.join(ours, pack + end))
        except OSError as error:
            raise plumbing.failed("What was fetched could not be stored", error, self.common) from error
        local_files.fsync_dir(ours)

    def move_refs(self, prefix: str, there: dict[str, str]) -> None:
        """Make the refs below `prefix` those that the remote has, except for what others keep there.

        Args:
            there: The refs of the remote.
        """
        have = {
            name: oid
            for name, oid in plumbing.refs_below(self.common, prefix).items()
            if name.removeprefix(prefix).startswith(("heads/", "gitmem/"))
        }
        wanted = {prefix + name.removeprefix("refs/"): oid for name, oid in there.items()}
        gone = [f"delete {name}\n" for name in have if name not in wanted]
        new = [f"update {name} {oid}\n" for name, oid in wanted.items() if have.get(name) != oid]
        for rows in (gone, new):  # deleted first: a name may be the folder of a new one
            for attempt in range(3 if rows else 0):
                args = [*plumbing.DURABLE, "update-ref", "--no-deref", "-m", "fetch", "--stdin"]
                done = processes.run(
                    self.common,
                    args,
                    input=os.fsencode("".join(rows)),
                    env_extra=plumbing.REFLOG_IDENTITY,
                    check=False,
                )
                if done.code == 0 or (rows is gone and "packed-refs.lock" in done.err):
                    break  # only pruning needs that lock, and the user's git may have left it behind
                if "cannot lock ref" not in done.err or attempt == 2:
                    raise plumbing.update_failure(self.common, done)
                time.sleep(0.05 * (attempt + 1))  # another sync of this clone is fetching
