"""Fetch the log refs of a remote: all at once, or if that is not possible, each on its own terms; and the temporary git folders that this needs.

One damaged, forbidden or huge object behind any ref makes git reject the whole fetch, and very many refs make it last
too long. Then the shared refs are listed and fetched alone, then a limited number of outboxes in groups, which get smaller when
git rejects one or is too slow. Commits that broke a fetch are remembered with the reason; one that took too long is fetched
again after a growing pause. Outboxes that were not reached wait for the next sync.

A partial clone (`git clone --filter`) lacks objects that promisor remotes keep. Git would fetch such an object when it is
read. Recording and reading never use the network; a sync fetches the log's objects beforehand, by git's own mechanism, so
a gc keeps them, and no setting is changed.

Temporary folders borrow the objects of the user's repository; what git writes there is removed with them.
`ScratchRepository` is for git commands that write objects. It has no refs, no worktree and a configuration of its own, and
ignores those of the user: no hook, filter, merge driver, text conversion or lazy fetch can run.
`Incoming` is for fetches. It is a git folder of the same repository, like that of a linked worktree. So git uses the user's
configuration and negotiates with the repository's refs, but writes only in that folder: objects, and refs below
`refs/worktree/`. `admit` moves the packs into the repository. The size of files, of objects and of the output is limited, so
that a small push of somebody else cannot fill the disk or the memory ([decision 173](docs/decisions/0173-limit-and-check-what-a-sync-takes-in.md)).
"""

from __future__ import annotations

import os
import re
import sys
import time
from typing import NamedTuple

from .. import local_files
from ..outcome import Struct
from . import files, packs, plumbing, processes
from .files import FENCES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Self

    from .processes import Result

    # Runs git on the network with these arguments and this input, for so many seconds, with so many bytes of a file.
    Ask = Callable[[Sequence[str], bytes, float, int | None], processes.Result]
    Look = Callable[..., dict[str, str]]


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
        self._variables = {**_OWN, "GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted_path(objects)}

    def __enter__(self) -> Self:
        remove_old_folders(self._parent, PREFIX)
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
            remove_folder(self._folder)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        remove_folder(self._folder)

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


def quoted_path(path: str) -> str:
    """Return a path as git reads it from a list: in double quotes, with the escapes of C."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def remove_folder(folder: str) -> None:
    """Remove a folder of ours, as far as possible."""
    import shutil

    if local_files.link_at(folder):
        return
    shutil.rmtree(folder, ignore_errors=True)


def remove_old_folders(parent: str, prefix: str) -> None:
    """Remove temporary folders of processes that were killed."""
    before = time.time() - OLD_SECONDS
    for name in local_files.names_in(parent):
        path = os.path.join(parent, name)
        if name.startswith(prefix) and not os.path.islink(path) and os.path.getmtime(path) < before:
            remove_folder(path)


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
            remove_old_folders(self._objects, INCOMING_PREFIX)
        except OSError:
            pass
        self.reset()
        return self

    def reset(self) -> None:
        """Remove what was not admitted, and begin again."""
        remove_folder(self.folder)
        try:
            for name in ("", "objects", "objects/pack", "refs", "reftable"):
                os.mkdir(os.path.join(self.folder, name), 0o700)
            for name, text in (("commondir", self.common), ("HEAD", "ref: refs/worktree/none")):
                with open(os.path.join(self.folder, name), "wb") as file:
                    file.write(os.fsencode(text + "\n"))
        except OSError as error:
            remove_folder(self.folder)
            raise plumbing.failed("Nothing can be fetched", error, self.common) from error

    def __exit__(self, *_: object) -> None:
        packs.adopt(self.common, self._kept)
        for name in self._kept:
            packs.release(self.common, name)
        remove_folder(self.folder)
        local_files.give_back(self.common)

    def variables(self, limits: Limits) -> dict[str, str]:
        """Return the variables for git that redirect its objects and limit their size."""
        limit = {} if limits.object_bytes is None else {"GIT_ALLOC_LIMIT": str(limits.object_bytes)}
        return {
            "GIT_OBJECT_DIRECTORY": self._own,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted_path(self._objects),
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


ROUNDS_MAX = 4  # missing folders hide further missing objects


def missing_objects(common: str, commits: Iterable[str]) -> list[str]:
    """Return the missing objects of the commits' trees: folders and files, as far as known."""
    wanted = "".join(f"{oid}\n" for oid in commits)
    if not wanted:
        return []
    args = ["rev-list", "--objects", "--no-walk=unsorted", "--quiet", "--missing=print", "--stdin"]
    out = processes.run(common, args, input=wanted.encode("ascii")).out.decode("ascii", "replace")
    return [row[1:].split(" ")[0] for row in out.split("\n") if row.startswith("?")]


def is_incomplete(common: str, commit: str) -> bool:
    """Return whether this is a partial clone that lacks files of a commit."""
    return bool(files.promisors(common) and missing_objects(common, [commit]))


def promised_objects(common: str, commit: str) -> set[str]:
    """Return the missing objects of a commit's history if all are promised; empty if others are missing too."""
    if not files.promisors(common):
        return set()
    args = ["rev-list", "--objects", "--quiet"]
    if processes.run(common, [*args, "--missing=allow-promisor", commit, "--"], check=False).code != 0:
        return set()
    out = processes.run(common, [*args, "--missing=print", commit, "--"]).out.decode("ascii", "replace")
    return {row[1:].split(" ")[0] for row in out.split("\n") if row.startswith("?")}


def fetch_missing(common: str, prefix: str, online: Callable[[str, list[str], bytes], object]) -> None:
    """Fetch the missing objects of a remote's logs, in a partial clone.

    Args:
        prefix: Prefix of the local copies of the remote's refs.
        online: Runs git with network access: remote, arguments, standard input.
    """
    names = files.promisors(common)
    if not names:
        return
    args = ["for-each-ref", "--format=%(objecttype) %(objectname)", prefix]
    rows = processes.run(common, args).out.split(b"\n")
    tips = {row[7:].decode("ascii") for row in rows if row.startswith(b"commit ")}
    for name in names:
        for _ in range(ROUNDS_MAX):
            wanted = missing_objects(common, sorted(tips))
            if not wanted:
                return
            args = [
                # Filter of this run alone: a treeless clone gets whole folders, and any clone whole files.
                *("-c", f"remote.{name}.partialclonefilter=blob:none"),
                *(
                    "-c",
                    "fetch.negotiationAlgorithm=noop",
                    *plumbing.DURABLE,
                    "fetch",
                    "--quiet",
                    "--no-tags",
                ),
                *("--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules", "--no-prune"),
                *("--refmap=", "--stdin", "--", name),
            ]
            online(name, args, "".join(f"{oid}\n" for oid in wanted).encode("ascii"))


SHARED = ("refs/heads/gitmem", "refs/gitmem/log")
OUTBOXES = ("refs/heads/gitmem-outbox-*", "refs/gitmem/outbox/*")
FOLDER = os.path.join("gitmem", "refused-commits")
REASONS_MAX = 1_000
KEPT_MAX = 100_000
RUNS_MAX = 40
GROUP = 64  # outboxes in the first group
MISSING = "the remote does not have its objects"
NOT_FETCHED = "it was not fetched yet"
TOO_MUCH = "fetching it takes more than "  # the beginning of the reasons that do not say that it is invalid
_SECONDS = " seconds"
FIRST_PAUSE, LONGEST_PAUSE = 600, 86_400  # seconds until a slow outbox is fetched again: doubled at each try
_AGAIN = re.compile(
    r"(.*), next try after ([0-9]{1,12}), pause ([0-9]{1,6})"
)  # the end of its row in the file
_KNOWN = "git refused its objects in an earlier sync"
_OUTBOX = re.compile(r"refs/(heads/gitmem-outbox-|gitmem/outbox/)([0-9a-f]{40}|[0-9a-f]{64})")
_GONE = re.compile(r"couldn't find remote ref (\S+)")
_OVER = re.compile(r"attempting to allocate [0-9]+ over limit ([0-9]+)")
_REASON_CHARS_MAX = 200
_HEAD = (
    *("-c", "fetch.fsckObjects=true", "fetch", "--quiet", "--no-tags", "--refmap=", "--no-write-fetch-head"),
    *("--no-auto-maintenance", "--no-recurse-submodules", "--no-show-forced-updates"),
    # The log has no commits in common with the user's branches.
    *("--negotiation-tip=refs/gitmem/*", f"--negotiation-tip={REFS}*"),
)
_SEPARATELY = "unpack: separately"
_MISSING = ("not our ref", "unable to read", "remote side", "bad object", "bad pack")
_OBJECTS = (
    *(*_MISSING, "error: object", "fsck", "missing", "index-pack", "unpack", "corrupt"),
    *("did not send all necessary objects", "unresolved deltas", "not a valid object", "pack-objects"),
)

_LIMITED = ("over limit", "File too large")
_CUT_OFF = ("early EOF", "unexpected disconnect", "hung up", "RPC failed", "transfer closed", "premature end")


class RefusedRef:
    """The commits of one remote that broke a fetch, each with the reason, in a file with at most `KEPT_MAX` rows.

    The newest `REASONS_MAX` rows have git's reason, the others only the commit id. While there is a file, also an empty one,
    refs are fetched separately.
    """

    def __init__(self, common: str, prefix: str, now: float) -> None:
        self._now = int(now)
        self._path = os.path.join(common, FOLDER, os.path.basename(prefix.rstrip("/")))
        self.exists = os.path.exists(self._path)
        rows = (row.partition(" ") for row in os.fsdecode(local_files.read(self._path)).splitlines())
        self.why = {oid: why or _KNOWN for oid, _, why in rows if len(oid) in (40, 64)}
        self._again = {oid: again for oid, why in self.why.items() if (again := _AGAIN.fullmatch(why))}
        self.why |= {oid: again[1] for oid, again in self._again.items()}

    def is_due(self, oid: str) -> bool:
        """Return whether a commit was refused for the time that it took, and its pause is over, or the clock was set back."""
        again = self._again.get(oid)
        return again is not None and not int(again[2]) - int(again[3]) <= self._now < int(again[2])

    def _row(self, oid: str, why: str) -> str:
        """Return how a reason is kept; that of a slow commit with the time of its next try."""
        if not (why.startswith(TOO_MUCH) and why.endswith(_SECONDS)):
            return why
        again = self._again.get(oid)
        if again is not None and not self.is_due(oid):
            return again[0]
        pause = min(2 * int(again[3]), LONGEST_PAUSE) if again is not None else FIRST_PAUSE
        return f"{why}, next try after {self._now + pause}, pause {pause}"

    def save(self, found: Mapping[str, str], there: Iterable[str], *, wrong: bool) -> None:
        """Add commits, or remove the file if nothing is wrong any more.

        If there are too many, remove those first that no ref of the remote (`there`) points to. If the file cannot be
        written, they are found again later.
        """
        if not wrong:
            local_files.remove_quietly(self._path)
            return
        old = {oid: why for oid, why in self.why.items() if not self.is_due(oid)}
        if self.exists and len(old) == len(self.why) and not found.items() - old.items():
            return
        new = {**{oid: why for oid, why in old.items() if oid not in found}, **found}
        if len(new) > KEPT_MAX:
            kept = set(there)
            gone = [oid for oid in new if oid not in kept]
            for oid in [*gone, *(oid for oid in list(new) if oid in kept)][: len(new) - KEPT_MAX]:
                del new[oid]
        self.why = new
        bare = len(new) - REASONS_MAX
        rows = (
            oid if at < bare or why == _KNOWN else f"{oid} {self._row(oid, why)}"
            for at, (oid, why) in enumerate(new.items())
        )
        local_files.try_replace(self._path, os.fsencode("".join(f"{row}\n" for row in rows)), folders=True)


class _Fetch(Struct):
    """One fetch of one remote: its refs, the rejected ones, and git's errors."""

    _into: Incoming
    _ask: Ask
    _url: str
    _prefix: str
    _limits: Limits
    there: dict[str, str] = {}
    bad: dict[str, str] = {}

    def everything(self) -> str | None:
        """Fetch all refs at once. Return None, or git's errors; they are about objects if there are too many new ones."""
        refspecs = [f"+refs/heads/gitmem*:{REFS}heads/gitmem*", f"+refs/gitmem/*:{REFS}gitmem/*"]
        others = ["^refs/gitmem/remotes/*", *(f"^{prefix}*" for prefix in FENCES)]
        try:
            done = self._ask(
                [*_HEAD, "--", self._url, *refspecs, *others],
                b"",
                self._limits.all_seconds,
                self._limits.pack_bytes,
            )
        except processes.GitTimeoutError:
            return _SEPARATELY
        if done.code != 0:
            return done.err
        self.there = self._into.refs()
        have = plumbing.refs_below(self._into.common, self._prefix)
        new = [name for name, oid in self.there.items() if have.get(self.copy_of(name)) != oid]
        if len(new) > self._limits.outboxes:
            return _SEPARATELY
        self._into.admit()
        self._into.move_refs(self._prefix, self.there)
        return None

    def copy_of(self, name: str) -> str:
        return self._prefix + name.removeprefix("refs/")

    def names(self, names: Sequence[str], seconds: float, most: int | None) -> str | None:
        """Fetch these refs together, without those that the remote no longer has. Return None, or git's errors."""
        while names := [name for name in names if name in self.there]:
            given = "".join(f"+{name}:{REFS}{name.removeprefix('refs/')}\n" for name in names)
            try:
                done = self._ask([*_HEAD, "--stdin", "--", self._url], os.fsencode(given), seconds, most)
            except processes.GitTimeoutError:
                return f"unpack: {TOO_MUCH}{seconds:g}{_SECONDS}"
            if done.code == 0:
                self._into.admit()
                return None
            gone = _GONE.search(done.err)
            if gone is None or self.there.pop(gone[1], None) is None:
                return done.err
        return None

    def shared(self, seconds: float) -> str | None:
        """Fetch the shared refs. Return git's errors if the remote cannot be reached, else None."""
        names = [name for name in SHARED if name in self.there and name not in self.bad]
        err = self.names(names, seconds, self._limits.pack_bytes)
        if err is None:
            return None
        for name in names:
            err = self.names([name], seconds, self._limits.pack_bytes) if len(names) > 1 else err
            if err is not None and not is_about_objects(err):
                return err
            if err is not None:
                self.bad[name] = reason(err, self._limits.pack_bytes)
        return None

    def outboxes(self, names: Sequence[str]) -> None:
        """Fetch outboxes in groups.

        After a rejected group the next is a quarter as large, after a successful one twice as large.
        """
        until = time.monotonic() + self._limits.outboxes_seconds
        waiting, size, runs = list(names), GROUP, 0
        while waiting and runs < RUNS_MAX and time.monotonic() < until:
            runs += 1
            group = waiting[:size]
            seconds = min(self._limits.outbox_seconds, max(1.0, until - time.monotonic()))
            err = self.names(group, seconds, self._limits.outbox_bytes)
            if err is None:
                size *= 2
            elif not is_about_objects(err):
                return
            elif len(group) > 1:
                size = 1 if TOO_MUCH in err else max(1, len(group) // 4)
                continue
            elif seconds < self._limits.outbox_seconds and TOO_MUCH in err:
                return  # it did not get the time that it may take
            else:
                self.bad[group[0]] = reason(err, self._limits.outbox_bytes)
            waiting = waiting[len(group) :]


def fetch(
    into: Incoming, ask: Ask, look: Look, url: str, prefix: str, timeout: float, limits: Limits, now: float
) -> tuple[dict[str, tuple[str, str]], str | None]:
    """Fetch those log refs of a remote that can be fetched, and move our copies below `prefix`.

    Outboxes that this call did not reach have the reason `NOT_FETCHED`. Those without a copy are fetched in a random order, so
    that nobody can put another clone's outbox last.

    Args:
        ask: Runs git.
        look: Lists the refs of the remote that match some patterns.
        timeout: Seconds for the shared refs.
        now: Seconds since the epoch.

    Returns:
        Commit and reason by ref, for refs that were not fetched; and git's errors if the remote is offline, else None.
    """
    step, refused = _Fetch(into, ask, url, prefix, limits), RefusedRef(into.common, prefix, now)
    if not refused.exists:
        err = step.everything()
        if err is None or not is_about_objects(err):
            return {}, err
        into.reset()
    shared = look(*SHARED)  # alone: these names come after a flood of others, in a list that is cut off
    boxes = {
        name: oid
        for name, oid in look(*OUTBOXES).items()
        if (box := _OUTBOX.fullmatch(name)) and box[2] == oid
    }
    step.there = {**{name: oid for name, oid in shared.items() if name in SHARED}, **boxes}
    have = plumbing.refs_below(into.common, prefix)
    step.bad = {
        name: refused.why[oid]
        for name, oid in step.there.items()
        if oid in refused.why
        and not refused.is_due(oid)
        and not (limits.pack_bytes is None and is_too_much(refused.why[oid]))
    }
    words = step.shared(timeout)
    if words is not None:
        return {}, words
    outboxes = [
        name for name in boxes if name not in step.bad and have.get(step.copy_of(name)) != boxes[name]
    ]
    if outboxes:
        import random

        random.SystemRandom().shuffle(outboxes)
        step.outboxes(outboxes[: limits.outboxes])
    came = into.refs()
    kept = {name: have[copy] for name in step.there if (copy := step.copy_of(name)) in have}
    into.move_refs(prefix, {**kept, **came})
    why = {name: NOT_FETCHED for name in outboxes if name not in came} | step.bad
    left = {name: (step.there[name], why[name]) for name in why if name in step.there}
    found = {oid: why for name, (oid, why) in left.items() if not _is_passing(name, why)}
    refused.save(found, step.there.values(), wrong=bool(left))
    return left, None


def _is_passing(name: str, why: str) -> bool:
    """Return whether the next sync tries a ref again: the time that the shared log takes says nothing about its commit."""
    return why in (MISSING, NOT_FETCHED) or (name in SHARED and why.endswith(_SECONDS))


def is_about_objects(err: str) -> bool:
    """Return whether a fetch failed because of a ref's objects; a lost connection does not count."""
    if any(words in err for words in _LIMITED):
        return True
    return any(words in err for words in _OBJECTS) and not any(words in err for words in _CUT_OFF)


def is_too_much(why: str) -> bool:
    """Return whether a ref was not fetched because of a limit that the user may lift."""
    return why.startswith(TOO_MUCH)


def reason(err: str, most: int | None = None) -> str:
    """Return in a few words why a ref was not fetched (`most`: the limit of bytes)."""
    _, found, amount = err.partition(TOO_MUCH)
    if found:
        return found + amount
    over = _OVER.search(err)
    if over is not None:
        return f"an object of it has more than {int(over[1]) // MIB:,} MiB"
    if most is not None and any(words in err for words in _LIMITED):
        return f"{TOO_MUCH}{most // MIB:,} MiB"
    if any(words in err for words in _MISSING):
        return MISSING
    lines = [line for line in err.splitlines() if "error: object" in line or "fsck" in line]
    return processes.summary_line("\n".join(lines[:1]) or err)[:_REASON_CHARS_MAX]
