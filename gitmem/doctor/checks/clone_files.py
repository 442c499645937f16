"""Check the files of a clone beside its refs and lines: leftovers, pins, clock, config and packs."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator

from ... import atomic_write, state_files
from ... import repo as repo_module
from ...a2a import push_file, tokens
from ...agents import name_holders
from ...errors import StoreError
from ...log import committer, wal_files
from ...log.lines import format_at
from ...memory import private_nodes
from ...store import Store
from ..findings import Check, Finding, Fixed, note, problem

AHEAD_SECONDS = 60
ASIDE = "aside"  # the name of the folder for files that are moved instead of deleted
LEFT_SECONDS = 600  # an older temporary file belongs to a dead process
OLDEST_GIT = (2, 36)
PROBE_BYTES = 256 * 1024  # more than an everyday commit writes


class Leftovers(Check):
    """Temporary files in the state folder that are too old to be renamed by a process."""

    codes = fixes = ("leftover-file",)

    def check(self) -> Iterator[Finding]:
        for path in self._left():
            yield note(
                "leftover-file",
                "A temporary file of gitmem, left by a killed process. It is not used.",
                path,
                "--fix removes it.",
            )

    def fix(self) -> Iterator[Fixed]:
        """Remove them."""
        for path in self._left():
            atomic_write.remove_quietly(path)
            if not os.path.lexists(path):
                yield "leftover-file", path, "It was removed."

    def _left(self) -> list[str]:
        found, now = [], time.time()
        for folder, _, names in os.walk(self.store.repo.state):
            for name in names:
                path = os.path.join(folder, name)
                if name.startswith(atomic_write.TEMPORARY) and now - modified(path, now) > LEFT_SECONDS:
                    found.append(path)
        return sorted(found)


class NamePins(Check):
    """Pins of names that can't be read."""

    codes = fixes = ("name-pin",)

    def check(self) -> Iterator[Finding]:
        for path in name_holders.unreadable_pins(self.store):
            yield note(
                "name-pin",
                "Unreadable name pin: the name means whichever session the log shows.",
                path,
                "--fix moves it aside; the next use of the name writes a new one.",
            )

    def fix(self) -> Iterator[Fixed]:
        """Move them aside."""
        for path in name_holders.unreadable_pins(self.store):
            yield "name-pin", path, f"Moved to {move_aside(self.store, path)}."


class PrivateNodes(Check):
    """Private nodes that other users could read, or that are damaged."""

    codes = ("private-open", "private-damaged")
    fixes = ("private-open",)

    def check(self) -> Iterator[Finding]:
        for path in self._folders():
            if not wal_files.is_private(path):
                yield problem(
                    "private-open",
                    "The folder of private nodes is open to other users, or not yours; its nodes are not read.",
                    path,
                    "--fix sets the mode 700 if it is yours.",
                )
                continue
            try:
                damaged = private_nodes.PrivateStore(self.store, path).damaged if self._is_leaf(path) else 0
            except StoreError as error:
                yield problem("private-damaged", error.message, path, "Move its files away.")
                continue
            if damaged:
                yield problem(
                    "private-damaged",
                    f"Damaged parts in the file of private nodes: {damaged}; the other nodes are read.",
                    path,
                    "Create what is missing in `gitmem mem list` again.",
                )

    def fix(self) -> Iterator[Fixed]:
        """Close them to other users."""
        for path in self._folders():
            if not wal_files.is_private(path) and os.path.isdir(path) and not os.path.islink(path):
                os.chmod(path, 0o700)
                yield "private-open", path, "Its mode is 700 now."

    def _folders(self) -> list[str]:
        top = private_nodes.root(self.store.repo)
        if not os.path.lexists(top):
            return []
        return [top, *(os.path.join(top, name) for name in sorted(atomic_write.names_in(top)))]

    def _is_leaf(self, path: str) -> bool:
        return path != private_nodes.root(self.store.repo)


class HiddenLog(Check):
    """A file that hides the log from git."""

    codes = fixes = ("hidden-log",)

    def check(self) -> Iterator[Finding]:
        hiding = os.path.join(self.store.repo.state, "log")
        if os.path.lexists(hiding):
            yield problem(
                "hidden-log",
                "A file of this name hides the log from git: `git log gitmem/log` would read it as a ref.",
                hiding,
                "--fix moves it aside; gitmem never creates it.",
            )

    def fix(self) -> Iterator[Fixed]:
        """Move it aside."""
        for finding in self.check():
            hiding = str(finding.where)
            yield "hidden-log", hiding, f"Moved to {move_aside(self.store, hiding)}."


class Clock(Check):
    """A clock of the clone that is ahead."""

    codes = fixes = ("clock-ahead",)

    def check(self) -> Iterator[Finding]:
        clock = os.path.join(self.store.repo.state, "clock")
        ahead = modified(clock, 0) - self.store.now() / 1e6
        if ahead > AHEAD_SECONDS:
            yield note(
                "clock-ahead",
                f"The last line of this clone was written at {format_at(int(modified(clock, 0) * 1e6))}, in the future.",
                clock,
                "The clock was wrong then or is wrong now. New records use the present clock.",
            )

    def fix(self) -> Iterator[Fixed]:
        """Set it to now."""
        for finding in self.check():
            os.utime(str(finding.where), ns=(self.store.now() * 1000,) * 2)
            yield "clock-ahead", str(finding.where), "It was set to the present time."


class Repository(Check):
    """Properties of the repository and its git with which the log is not safe."""

    codes = ("odd-repository", "old-git")

    def check(self) -> Iterator[Finding]:
        try:
            repo_module.reject_unsupported(self.store.repo)
        except StoreError as error:
            config = os.path.join(self.store.repo.common, "config")
            yield problem("odd-repository", error.message, config, error.hint)
        version = self.store.git.version()
        number = [int(part) for part in version.split(".")[:2] if part.isdecimal()]
        if len(number) == 2 and tuple(number) < OLDEST_GIT:
            yield note(
                "old-git",
                f"git {version} does not know core.fsync: after a power loss the last fetched objects may be missing.",
                "git",
                "Install git 2.36 or later.",
            )


class Packs(Check):
    """Small packs that automatic packing has left."""

    codes = fixes = ("many-packs",)

    def check(self) -> Iterator[Finding]:
        count = committer.excess_packs(self.store.log)
        if count:
            yield note(
                "many-packs",
                f"The log's objects are in {count:,} small packs, which makes git slow.",
                self.store.repo.common,
                "--fix combines them. Commands do this automatically if there is disk space and git can run.",
            )

    def fix(self) -> Iterator[Fixed]:
        """Combine the packs into one."""
        yield "many-packs", "", f"{committer.combine_packs(self.store.log):,} packs were combined."


def move_aside(store: Store, path: str, *, folder: str | None = None) -> str:
    """Move a file to the folder `ASIDE`, by default below the state folder; return its new path.

    Raises:
        OSError: The file can't be moved.
    """
    where = os.path.join(folder or store.repo.state, ASIDE)
    os.makedirs(where, mode=0o700, exist_ok=True)
    state_files.adjust(where)
    day = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(store.now() // 1_000_000))
    name, number = os.path.basename(path), 0
    while True:
        to = os.path.join(where, f"{day}-{name}" + (f".{number}" if number else ""))
        if not os.path.lexists(to):
            os.rename(path, to)
            return to
        number += 1


def is_writable(store: Store) -> bool:
    """Return whether this process may write to the git folder."""
    repo = store.repo
    state = repo.state if os.path.isdir(repo.state) else repo.common
    return all(os.access(folder, os.W_OK) for folder in (state, os.path.join(repo.common, "objects")))


def disk_error(store: Store) -> tuple[str, str]:
    """Return the folder of the git folder that takes no more data, and why; empty if all take some.

    It writes and syncs a temporary file, as free blocks alone do not tell about quotas, inodes and limits of processes.
    """
    for folder in (store.repo.state, os.path.join(store.repo.common, "objects")):
        if not os.path.isdir(folder):
            continue
        try:
            with tempfile.TemporaryFile(dir=folder, prefix=atomic_write.TEMPORARY, buffering=0) as file:
                left = PROBE_BYTES
                while left:
                    left -= os.write(file.fileno(), bytes(left))
                os.fsync(file.fileno())
        except OSError as error:
            return folder, error.strerror or str(error)
    return "", ""


def modified(path: str, otherwise: float) -> float:
    """Return when a file was modified, or another value for a file that is gone."""
    try:
        return os.stat(path).st_mtime
    except OSError:
        return otherwise


class GatewayFiles(Check):
    """The files of `gitmem a2a serve`: tokens that can't be read, so that every client is refused, and push configurations that can't."""

    codes = ("bad-tokens", "bad-push")

    def check(self) -> Iterator[Finding]:
        state = self.store.repo.state
        known = tokens.Tokens(state)
        try:
            known.list()
        except StoreError as error:
            what = error.message.removesuffix(" Nothing was written.")
            fix = "Correct its permissions, or remove it and make new tokens."
            yield problem("bad-tokens", what, known.path, fix)
        try:
            push_file.read(state)
        except StoreError as error:
            yield problem("bad-push", error.message, push_file.path_of(state), error.hint)
