"""Check the files of a clone around the log: refs, locks, leftovers, config, clock and merge driver."""

from __future__ import annotations

import os
import time

from ... import repo as places_of_git
from ...agents import name_pins
from ...atomic_write import TEMPORARY
from ...errors import StoreError
from ...log import log_refs, ref
from ...log.lines import format_at
from ...log.ref import STALE_LOCK_SECONDS
from ...log.replaced_project_ids import LOST_PROJECTS, ProjectIds
from ...sync import remote
from ...text.shell_quote import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...store import Store
    from ..findings import Findings
    from ..installed import DriverStatus

AHEAD_SECONDS = 60
LEFT_SECONDS = 600  # an older temporary file belongs to a dead process
OLDEST_GIT = (2, 36)
OURS = (ref.LOG_REF, ref.PUBLISHED_REF)


def check_refs(store: Store, tip: str | None, found: Findings) -> None:
    """Report refs with a log's name that are not logs of this project, and refs that are not needed."""
    log, git, ids = store.log, store.git, ProjectIds(store.log)
    known, every = log_refs.known(log), git.refs("refs/gitmem/")
    found.checked["refs"] = len(every) + len([name for name in known if name not in every])
    tips, others = log_refs.logs(log, known, remote.known_tips(log))
    others |= {each.name: LOST_PROJECTS for each in tips if ids.are_lost(each, None)}
    for name, why in others.items():
        found.note(
            "not-a-log",
            f"{name} has a log's name and is none: {why}.",
            name,
            "Sync leaves it out. Where a remote's log is at it, `gitmem sync` names the repair; else rename it there.",
        )
    ours = remote.projects(log) if tip is not None and not others.get(ref.LOG_REF) else set()
    for each in (one for one in tips if one.name not in others):
        if not remote.is_related(log, ours, each):
            found.note(
                "foreign-log",
                f"{each.name} is the log of another project.",
                each.name,
                "Sync leaves it alone; `gitmem sync --allow-foreign` would unite them for good.",
            )
        elif each.format.format > ref.FORMAT:
            found.note(
                "newer-format",
                f"{each.name} has format {each.format.format}, which this gitmem does not write.",
                each.name,
                "Install the gitmem that the others use.",
                "pip install --upgrade gitmem-coord",
            )
    branch = git.tip(ref.BRANCH)
    if branch is not None and not is_hub(store):
        found.note(
            "local-branch",
            "Somebody made a local branch gitmem. Sync reads it and never moves it, and it grows old.",
            ref.BRANCH,
            f"{ref.LOG_REF} is the log. After a sync has taken in what the branch has, delete it: git branch -D gitmem",
            "gitmem sync",
        )
    for name, oid in every.items():
        if name not in OURS and not name.startswith((ref.REMOTES_PREFIX, "refs/gitmem/outbox/")):
            found.note(
                "leftover-ref",
                f"{name} is none of gitmem's refs, or was left by a command that was killed.",
                name,
                "Delete it, if it is not yours.",
                command("git", "update-ref", "-d", name, oid),
            )


def is_hub(store: Store) -> bool:
    """Return whether clones sync with this repository, and it with none: then the branch `gitmem` is the log."""
    if store.place.worktree is not None:
        return not remote.configured(store.place)
    return True


def is_writable(store: Store) -> bool:
    """Return whether this process may write to the git folder."""
    place = store.place
    state = place.state if os.path.isdir(place.state) else place.common
    return all(os.access(folder, os.W_OK) for folder in (state, os.path.join(place.common, "objects")))


def _modified(path: str, otherwise: float) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return otherwise


def locks(store: Store) -> list[tuple[str, bool]]:
    """Return old git locks that seem to have no holder, and whether `--fix` removes them: those on gitmem's refs."""
    common, now = store.place.common, time.time()
    found = [(os.path.join(common, name + ".lock"), False) for name in ("packed-refs", "config", "shallow")]
    found.append((os.path.join(common, "reftable", "tables.list.lock"), True))
    for folder, _, names in os.walk(os.path.join(common, "refs", "gitmem")):
        found += [(os.path.join(folder, name), True) for name in names if name.endswith(".lock")]
    return [(path, ours) for path, ours in found if now - _modified(path, now) > STALE_LOCK_SECONDS]


def check_files(store: Store, found: Findings) -> None:
    """Report stale git locks, leftovers of killed processes, a file that hides the log, and a clock that is ahead."""
    now = time.time()
    for path, ours in locks(store):
        found.problem(
            "stale-lock",
            f"This lock of git's is {now - _modified(path, now):.0f} seconds old: whoever made it was killed, or hangs.",
            path,
            "It is removed, as the next write does with the one of the log's own ref."
            if ours
            else "Where no git runs here, remove the file.",
            command("rm", path),
            mends=ours,
        )
    for path in leftovers(store):
        found.note(
            "leftover-file",
            "A temporary file of gitmem's, left by a process that was killed. Nothing reads it.",
            path,
            "It is removed.",
            mends=True,
        )
    for path in name_pins.unreadable(store):
        found.note(
            "name-pin",
            "This note of whom a name means here can't be read: that name means whoever the log shows under it.",
            path,
            "Remove the file; the next use of the name writes another.",
            command("rm", path),
        )
    hiding = os.path.join(store.place.state, "log")
    if os.path.lexists(hiding):
        found.problem(
            "hidden-log",
            "A file of this name hides the log from git: `git log gitmem/log` would read it as a ref.",
            hiding,
            "It is moved aside; gitmem never makes it.",
            mends=True,
        )
    clock = os.path.join(store.place.state, "clock")
    ahead = _modified(clock, 0) - store.now() / 1e6
    if ahead > AHEAD_SECONDS:
        found.note(
            "clock-ahead",
            f"The last line of this clone was written at {format_at(int(_modified(clock, 0) * 1e6))}, in the future.",
            clock,
            "The clock was wrong then, or is now. New lines take the time that it has now.",
            mends=True,
        )


def leftovers(store: Store) -> list[str]:
    """Return the temporary files in the state folder that are too old to be renamed by a process."""
    found, now = [], time.time()
    for folder, _, names in os.walk(store.place.state):
        for name in names:
            path = os.path.join(folder, name)
            if name.startswith(TEMPORARY) and now - _modified(path, now) > LEFT_SECONDS:
                found.append(path)
    return sorted(found)


def check_config(store: Store, found: Findings) -> None:
    """Report repositories in which the log is not safe, and a git that is too old for `core.fsync`."""
    try:
        places_of_git.reject_unsupported(store.place)
    except StoreError as error:
        found.problem("odd-repository", error.message, os.path.join(store.place.common, "config"), error.hint)
    version = store.git.version()
    number = [int(part) for part in version.split(".")[:2] if part.isdecimal()]
    if len(number) == 2 and tuple(number) < OLDEST_GIT:
        found.note(
            "old-git",
            f"git {version} does not know core.fsync: after a power loss the last fetched objects may be missing.",
            "git",
            "Install git 2.36 or later.",
        )


def check_driver(driver: DriverStatus, found: Findings, init: str) -> None:
    """Report problems of the merge driver, which is only for merging by hand.

    Args:
        init: The command that installs it and publishes nothing.
    """
    if driver.driver is None and driver.attributes:
        found.problem(
            "driver-missing",
            "The attributes name the merge driver, but no config says what it is: a merge by hand leaves conflict markers.",
            "merge.gitmem.driver",
            "It is installed again.",
            mends=True,
        )
    elif driver.driver is None:
        found.note(
            "driver-missing",
            "The merge driver is not installed. Sync does not need it; a merge by hand may leave duplicates.",
            "merge.gitmem.driver",
            f"`{init}` installs it.",
            init,
        )
    elif not driver.ours:
        found.note(
            "driver-other",
            f"The merge driver is not the one that gitmem installs: {driver.driver}",
            "merge.gitmem.driver",
            "Leave it if it is yours; else remove it with `git config --unset`, then run `gitmem init`.",
        )
    elif not driver.runnable:
        found.problem(
            "driver-program",
            f"The merge driver's program {driver.program} is missing or can't be run: git's own union is used.",
            "merge.gitmem.driver",
            "It is installed again, from the gitmem that you use now.",
            mends=True,
        )
    elif not driver.attributes:
        found.note(
            "driver-unused",
            "The merge driver is installed, but the attributes do not use it for the log's files.",
            os.path.join("info", "attributes"),
            "The attribute is put back.",
            mends=True,
        )
