"""Check gitmem's refs: their files and locks, copies of remote refs, and refs that are not logs of this project."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ...errors import StoreError
from ...git import repair
from ...log import log_refs, recovery, ref
from ...log.ref import STALE_LOCK_SECONDS
from ...log.ref_checks import LOST_PROJECTS, ProjectIds
from ...outcome import command
from ...store import Store
from ...sync import fences, rebase, remote, repair_log
from ..findings import Check, Finding, Fixed, note, problem
from .clone_files import modified, move_aside

OURS = (ref.LOG_REF, ref.PUBLISHED_REF)


class RefFiles(Check):
    """Gitmem's refs with damaged files, and refs whose names conflict with gitmem's."""

    codes = fixes = ("damaged-ref", "ref-in-the-way")

    def check(self) -> Iterator[Finding]:
        for name in repair.damaged_refs(self.store.repo.common, "refs/gitmem"):
            yield problem(
                "damaged-ref",
                f"The file of {name} is damaged, perhaps by a power loss.",
                name,
                "--fix moves the file aside. The log continues from its reflog's last position; the next sync recreates "
                "other refs of gitmem.",
            )
        for name, oid in recovery.blocking_refs(self.store.log).items():
            yield problem(
                "ref-in-the-way",
                f"{name} conflicts with a ref of gitmem: one name is a folder of the other.",
                name,
                f"--fix renames it (at {oid[:12]}) to a name below {recovery.ASIDE}."
                if oid
                else "--fix removes the empty folder.",
            )

    def fix(self) -> Iterator[Fixed]:
        """Move damaged files aside, and rename refs that conflict with gitmem's."""
        with _no_other_writer(self.store):
            for name in repair.damaged_refs(self.store.repo.common, "refs/gitmem"):
                path = os.path.join(self.store.repo.common, *name.split("/"))
                yield "damaged-ref", name, f"Its file was moved to {move_aside(self.store, path)}."
            for name, oid in recovery.blocking_refs(self.store.log).items():
                to = recovery.rename_blocking_ref(self.store.log, name, oid)
                if to is not None:
                    done = f"It was renamed to {to}." if to else "It was empty and was removed."
                    yield "ref-in-the-way", name, done


class StaleLocks(Check):
    """Old git locks that seem to have no holder."""

    codes = fixes = ("stale-lock",)

    def check(self) -> Iterator[Finding]:
        now = time.time()
        for path, ours in self._locks():
            yield problem(
                "stale-lock",
                f"This lock of git's is {now - modified(path, now):.0f} seconds old: its process was killed, or hangs.",
                path,
                "--fix removes it. The next write also removes a stale lock of the log's ref."
                if ours
                else "If no git process is running here, remove the file.",
                command("rm", path),
                fixable=ours,
            )

    def fix(self) -> Iterator[Fixed]:
        """Remove the locks on gitmem's refs."""
        with _no_other_writer(self.store):
            for path, ours in self._locks():
                # Check again: a lock that was recreated since belongs to a live process.
                if ours and time.time() - os.stat(path).st_mtime > STALE_LOCK_SECONDS:
                    os.unlink(path)
                    yield "stale-lock", path, "It was removed."

    def _locks(self) -> list[tuple[str, bool]]:
        """Return the locks, and whether `fix` removes them: those on gitmem's refs."""
        common, now = self.store.repo.common, time.time()
        found = [
            (os.path.join(common, name + ".lock"), False) for name in ("packed-refs", "config", "shallow")
        ]
        found.append((os.path.join(common, "reftable", "tables.list.lock"), True))
        for folder, _, names in os.walk(os.path.join(common, "refs", "gitmem")):
            found += [(os.path.join(folder, name), True) for name in names if name.endswith(".lock")]
        return [(path, ours) for path, ours in found if now - modified(path, now) > STALE_LOCK_SECONDS]


@contextmanager
def _no_other_writer(store: Store) -> Iterator[None]:
    with rebase.take_lock(store.log) as lock:
        if not lock.is_held:
            raise StoreError("Another process writes constantly; run the command again.")
        yield


class RemoteCopies(Check):
    """Unreadable local copies of remote refs: a sync would build on them."""

    codes = fixes = ("damaged-copy",)

    def check(self) -> Iterator[Finding]:
        for name in recovery.damaged_copies(self.store.log, self.run.seen.commits):
            yield problem(
                "damaged-copy",
                f"Objects of {name} are missing or damaged.",
                name,
                "--fix removes the ref, and the next sync fetches it again.",
            )

    def fix(self) -> Iterator[Fixed]:
        """Delete them, after the log is whole: they would only obstruct a sync."""
        for name in repair_log.forget_damaged(self.store.log, None):
            yield "damaged-copy", name, "The ref was removed; a sync fetches it again."


class OtherRefs(Check):
    """Refs with a log's name that are not logs of this project, and refs that are not needed."""

    codes = ("not-a-log", "foreign-log", "newer-format", "local-branch", "leftover-ref")

    def check(self) -> Iterator[Finding]:
        log, git, ids = self.store.log, self.store.git, ProjectIds(self.store.log)
        known, every = log_refs.known_log_refs(log), git.refs("refs/gitmem/")
        self.run.checked["refs"] = len(every) + len([name for name in known if name not in every])
        tips, others = log_refs.logs(log, known, remote.log_tips(log))
        others |= {each.name: LOST_PROJECTS for each in tips if ids.are_lost(each, None)}
        for name, why in others.items():
            yield note(
                "not-a-log",
                f"{name} has the name of a log but is not a valid log: {why}.",
                name,
                "Sync ignores it. If it should be the remote's log, `gitmem sync` names the repair; otherwise rename it there.",
                fixable=False,
            )
        ours = remote.projects(log) if self.run.tip is not None and not others.get(ref.LOG_REF) else set()
        for each in (one for one in tips if one.name not in others):
            if not remote.is_related(log, ours, each):
                yield note(
                    "foreign-log",
                    f"{each.name} is the log of another project.",
                    each.name,
                    "Sync ignores it; `gitmem sync --allow-foreign` would merge the logs permanently.",
                )
            elif each.format.format > ref.FORMAT:
                yield note(
                    "newer-format",
                    f"{each.name} has format {each.format.format}, which this gitmem does not write.",
                    each.name,
                    "Install the gitmem that the others use.",
                    "pip install --upgrade gitmem-coord",
                )
        branch = git.tip(ref.BRANCH)
        if branch is not None and not is_hub(self.store):
            yield note(
                "local-branch",
                "There is a local branch gitmem. Sync reads it but never updates it.",
                ref.BRANCH,
                f"{ref.LOG_REF} is the log. After a sync has merged the branch, delete it: git branch -D gitmem",
                "gitmem sync",
            )
        for name, oid in every.items():
            if name not in OURS and not name.startswith(
                (ref.REMOTES_PREFIX, "refs/gitmem/outbox/", fences.LOCAL)
            ):
                yield note(
                    "leftover-ref",
                    f"{name} is not a ref of gitmem, or was left by a killed command.",
                    name,
                    "Delete it if it is not yours.",
                    command("git", "update-ref", "-d", name, oid),
                )


def is_hub(store: Store) -> bool:
    """Return whether clones sync with this repository, and it with none: then the branch `gitmem` is the log."""
    if store.repo.worktree is not None:
        return not remote.configured(store.repo)
    return True
