"""Check the log's ref, its commits and its exchange: format, objects, lines that a later commit dropped, copies of remotes, automatic sync."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from .. import local_files, settings
from ..agents import roster, vocabulary
from ..errors import StoreError, UsageError
from ..git import fetch, packs, plumbing
from ..git.config import upstream_remote
from ..git.objects import TreeEntry
from ..log import forgetting, ledger, log_refs, recovery, ref, tree_union
from ..log.lines import CommitMessage, LogEntry
from ..log.recovery import History, walk_contents
from ..log.ref import STALE_LOCK_SECONDS
from ..log.ref_checks import LOST_PROJECTS, ProjectIds
from ..outcome import command
from ..store import Store
from ..sync import autosync, rebase, remote, sync_remotes, whereabouts
from . import wal_lines
from .clone_files import move_aside
from .findings import SYNC, Check, Examination, Finding, Fixed, note, problem


class RefFiles(Check):
    """Gitmem's refs with damaged files."""

    codes = fixes = ("damaged-ref",)

    def check(self) -> Iterator[Finding]:
        for name in plumbing.damaged_refs(self.store.repo.common, "refs/gitmem"):
            yield problem(
                "damaged-ref",
                f"The file of {name} is damaged, perhaps by a power loss.",
                name,
                "--fix moves the file aside. The log continues from its reflog's last position; the next sync recreates "
                "other refs of gitmem.",
            )

    def fix(self) -> Iterator[Fixed]:
        """Move damaged files aside."""
        with _no_other_writer(self.store):
            for name in plumbing.damaged_refs(self.store.repo.common, "refs/gitmem"):
                path = os.path.join(self.store.repo.common, *name.split("/"))
                yield "damaged-ref", name, f"Its file was moved to {move_aside(self.store, path)}."


class StaleLocks(Check):
    """Old git locks that seem to have no holder."""

    codes = fixes = ("stale-lock",)

    def check(self) -> Iterator[Finding]:
        now = time.time()
        for path, ours in self._locks():
            yield problem(
                "stale-lock",
                f"This lock of git's is {now - local_files.modified(path, now):.0f} seconds old: its process was killed, or hangs.",
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
        return [
            (path, ours) for path, ours in found if now - local_files.modified(path, now) > STALE_LOCK_SECONDS
        ]


@contextmanager
def _no_other_writer(store: Store) -> Iterator[None]:
    with rebase.take_lock(store.log) as lock:
        if not lock.is_held:
            raise StoreError("Another process writes constantly; run the command again.")
        yield


class RemoteCopies(Check):
    """Local copies of remote refs that are unreadable, on which a sync would build, or that no sync has read."""

    codes, fixes = ("damaged-copy", "fetched-unread"), ("damaged-copy",)

    def check(self) -> Iterator[Finding]:
        for name in recovery.damaged_copies(self.store.log, self.run.seen.commits):
            yield problem(
                "damaged-copy",
                f"Objects of {name} are missing or damaged.",
                name,
                "--fix removes the ref, and the next sync fetches it again.",
            )
        found = whereabouts.unread(self.store)
        if found:
            yield note("fetched-unread", f"{found}.", "", "A sync checks and reads them.", SYNC)

    def fix(self) -> Iterator[Fixed]:
        """Delete them, after the log is whole: they would only obstruct a sync."""
        for name in rebase.forget_damaged(self.store.log, None):
            yield "damaged-copy", name, "The ref was removed; a sync fetches it again."


class OtherRefs(Check):
    """Refs with a log's name that are not logs of this project."""

    codes = ("not-a-log", "foreign-log", "newer-format", "local-branch")

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


def is_hub(store: Store) -> bool:
    """Return whether clones sync with this repository, and it with none: then the branch `gitmem` is the log."""
    if store.repo.worktree is not None:
        return not remote.configured(store.repo)
    return True


ROUNDS_MAX = 20
PATH_SHOWN_MAX = 60
CONTINUABLE = ("not-a-log", "bad-epoch", "broken-history", "missing-object")
FIX_CONTINUES = "--fix continues the log from the last complete commit, with every line that the index and other refs still have."
FETCH_RESTORES = (
    "This loses no lines. A full fetch restores it from a remote that has it; otherwise copy .git/objects "
    "from a clone that does."
)


class LogTip(Check):
    """Problems of the log's tip.

    Attributes:
        is_readable: Whether the tip can be read at all; set by `check`.
    """

    codes = ("not-a-log", "newer-format", "bad-epoch", "fixed-file", "no-project")
    fixes = (
        *(*CONTINUABLE, "lost-lines", "dropped-lines", "crlf", "not-canonical", "deep-folder", "fixed-file"),
        "no-project",
    )
    is_readable = False

    def check(self) -> Iterator[Finding]:
        tip = str(self.run.tip)
        try:
            own = log_refs.read(self.store.log, ref.LOG_REF, tip)
        except log_refs.NotALog as why:
            yield problem(
                "not-a-log",
                f"{ref.LOG_REF} is at {tip[:12]}, which is not a gitmem log: {why}.",
                ref.LOG_REF,
                "--fix moves it back to the last complete commit, with every known line. Its reflog shows earlier positions.",
            )
            self.is_readable = self.store.git.has(tip) and _has_tree(self.store, tip)
            return
        try:
            own.format.refuse_newer()
        except StoreError as error:
            yield problem("newer-format", error.message, f"{ref.LOG_REF}:format", error.hint, error.next[0])
        if wrong := forgetting.epoch_problem(self.store.log, own, ()):
            yield problem(
                "bad-epoch",
                f"The log's {wrong}. A peer replaced the log with it.",
                f"{ref.LOG_REF}:format",
                "--fix restores the log, with every line that the reflog, the index and the ledger know.",
            )
        for name in tree_union.FIXED[1:]:
            if name not in self.store.git.tree(own.tree):
                yield note(
                    "fixed-file",
                    f"The log's tree has no {name}.",
                    f"{ref.LOG_REF}:{name}",
                    "The log works without it; `gitmem doctor --fix` or another clone's sync restores it.",
                )
        if not own.projects:
            yield note(
                "no-project",
                "The log does not name its project, so it cannot be distinguished from another project's log.",
                f"{ref.LOG_REF}:projects",
                "`gitmem doctor --fix`, or the next sync, of a clone that has commits adds it.",
                "gitmem sync",
                fixable=bool(log_refs.own_projects(self.store.log)),
            )
        self.is_readable = True

    def fix(self) -> Iterator[Fixed]:
        """Repair the log in one compare-and-swap of its ref, to a commit on a whole base with all known lines.

        The steps, numbered as in the code:

        1. If the ref points to a readable log, that is the base of the new tip.
        2. Else the base is the newest whole commit among its ancestors and earlier tips. Without one, a new log begins.
        3. Earlier tips that were removed from the ref are applied again, one by one.
        4. One more commit adds the lines that are still missing, and makes the files canonical.

        Raises:
            StoreError: The ref can't be moved; nothing was changed.
        """
        log = self.store.log
        for attempt in range(ROUNDS_MAX):
            tip = self.store.git.tip(ref.LOG_REF)
            if tip is None and not wal_lines.find_missing(self.store, None).found:
                return
            base = rebase.repair_base(log, tip)  # 1, 2
            new = self._assembled(base, tip)
            if new == tip:
                return
            if rebase.swap_log_ref(log, tip, new):
                break
            time.sleep(min(0.002 * 1.5**attempt, 0.2) * log.random(1)[0] / 255)
        else:
            raise StoreError(
                f"Cannot move {ref.LOG_REF}: git has a lock on it, or it changes constantly. Nothing was changed.",
                hint="Run the command again.",
                code="locked",
                next=["gitmem doctor --fix"],
            )
        for code in self.fixes:
            yield code, "", f"The log is now at {new[:12]}."
        if base != tip:
            for code in CONTINUABLE:
                yield code, "", f"The log continues from {base[:12]}, with all known lines."
            rebase.forget_damaged(log, tip)
        self.store.refresh()

    def _assembled(self, base: str, tip: str | None) -> str:
        """Return the new tip: `base` itself if it is complete."""
        log = self.store.log
        found = wal_lines.find_missing(self.store, base, damaged=tip if tip != base else None)
        top = base
        for oid in reversed(found.heads):
            top = rebase.reapply(log, oid, top)  # 3
        present = {
            ledger.key(line)
            for _, content in rebase.segments(log, top)
            for line in tree_union.lines_of(content)
        }
        missing = [*found.found.values(), *wal_lines.dropped(self.store, top, set(present))]
        lines: dict[str, list[bytes]] = {}
        for path, line in missing:
            key = ledger.key(line)
            where = wal_lines.path_of(self.store, path, line) if key not in present else None
            if where is not None:
                lines.setdefault(where, []).append(line)
                present.add(key)
        for path, line in self._attested(top, lines):
            lines.setdefault(path, []).append(line)
        return rebase.repair_log(log, top, lines)  # 4

    def _attested(self, top: str, lines: Mapping[str, Sequence[bytes]]) -> Iterator[tuple[str, bytes]]:
        """Yield attestations of restored lines that this clone has acknowledged, each with its path: nothing else is signed again."""
        log, (known, _) = self.store.log, ledger.acknowledged(self.store.repo)
        own = [
            (path.partition("/")[0], line)
            for path, found in lines.items()
            for line in found
            if ledger.digest(line) in known
        ]
        entry, tree = LogEntry(own, CommitMessage("", ""), token=log.token()), log.git.commit(top).tree
        sealer = log.sealer() if log.sealer is not None and own else None
        for sealed in (
            sealer.seal([entry], lambda path: ref.content_at(log.git, tree, path)) if sealer else ()
        ):
            for stream, line in sealed.lines:
                yield ref.segment_path(stream, line, sealed.token), line


class EarlierEpochs(Check):
    """What git still has of the log as it was before forgotten texts were taken out of its history."""

    codes = ("earlier-epoch",)

    def check(self) -> Iterator[Finding]:
        log, own = self.store.log, forgetting.epoch_of(self.store.log, self.run.tip)
        if not own:
            return
        for name, oid in sorted(log_refs.known_log_refs(log).items()):
            if forgetting.is_earlier(log, oid, own):
                yield note(
                    "earlier-epoch",
                    f"{name} is at a log that still has forgotten texts.",
                    name,
                    "It is yours, or that of a remote whose log was not written anew: delete it, or let its owner replace it.",
                )
        commits = set(ledger.acknowledged(self.store.repo)[1]).difference(log.git.history(str(self.run.tip)))
        known = log.git.heads(sorted(commits)) if commits else {}
        if any(forgetting.is_earlier(log, oid, own) for oid in known):
            yield note(
                "earlier-epoch",
                "Forgotten texts are still in objects of git on this disk that no ref uses, until a gc two weeks later"
                " (`gc.pruneExpire`). No program can take back what clones that never sync, forks and caches of hosts have.",
                ref.LOG_REF,
                "Replace a secret that was recorded. `git gc --prune=now` removes all objects here that no ref uses.",
                command("git", "gc", "--prune=now"),
            )


class LogHistory(Check):
    """Unreadable objects of the log's history, and lines that it dropped."""

    codes = ("broken-history", "partial-clone", "dropped-lines")

    def check(self) -> Iterator[Finding]:
        """Yield the findings, and add the keys of dropped lines to those of the present lines."""
        tip = str(self.run.tip)
        try:
            commits = self.store.git.history(tip)
        except (KeyError, StoreError) as error:
            yield problem(
                "broken-history",
                f"Cannot follow the history of the log to its start ({error}).",
                ref.LOG_REF,
                FIX_CONTINUES,
            )
            return
        self.run.checked["commits"] = len(commits)
        left = fetch.promised_objects(self.store.repo.common, tip)
        if left:
            yield note(
                "partial-clone",
                f"{len(left)} older objects of the log are only on the remote of this partial clone.",
                ref.LOG_REF,
                "This is not an error: the present log is complete here, and older files are not checked.",
            )
        history = History(self.store.log, commits, left)
        for each in history.dropped(self.run.seen.keys, Objects(self.run).report):
            many = len(each.lines) > 1
            # The bytes are peers'.
            show = command("git", "show", f"{each.commit[:12]}:{each.path}") + " | cat -v"
            yield problem(
                "dropped-lines",
                f"{len(each.lines)} line{'s' if many else ''} of this commit {'are' if many else 'is'} missing from the log.",
                f"{each.commit[:12]}:{each.path}:{each.number}",
                f"--fix restores them, or a sync with a clone that has them; {show} shows them.",
            )
        if history.is_whole and not self.run.damaged:
            self.run.seen.commits = frozenset(commits)


class Objects(Check):
    """Unreadable objects, which the checks of lines and history come upon."""

    codes = fixes = ("missing-object",)

    def report(self, oid: str, where: str, what: str, *, now: bool = False) -> None:
        """Report one. `--fix` restores the lines of present files; older objects affect history alone."""
        self.run.damaged.add(oid)
        self.run.add(
            problem(
                "missing-object",
                f"The object {oid[:12]} of {what} is missing or damaged.",
                where,
                FIX_CONTINUES if now else FETCH_RESTORES,
                self.run.refetch or "git fsck",
                fixable=now,
            )
        )

    def fix(self) -> Iterator[Fixed]:
        """Move damaged object files aside, before repairs: a pack may have them whole, and a fetch can restore them."""
        repo = self.store.repo
        aside = os.path.join(repo.state, "aside", "objects")
        for oid in recovery.damaged_objects(self.store.log):
            where = packs.move_aside(repo.common, oid, aside, self.store.git.read)
            if where is not None:
                yield "missing-object", oid, f"Its damaged file was moved to {where}."
        self.store.git.close()  # an open git process has read the old objects


def _has_tree(store: Store, tip: str) -> bool:
    try:
        store.git.tree(store.git.commit(tip).tree)
    except KeyError:
        return False
    return True


def read_commits(run: Examination) -> Iterator[tuple[str, TreeEntry, bytes]]:
    """Yield all folders and segments of the tip's tree, as `recovery.walk_contents` does. Objects that can't be read are reported."""

    def missing(oid: str, path: str, is_folder: bool) -> None:
        run.checked["files"] += not is_folder
        what = "the folder" if is_folder else "the file"
        Objects(run).report(oid, f"{ref.LOG_REF}:{path}", what, now=True)

    for path, entry, content in walk_contents(run.store.git, str(run.tip), missing):
        run.checked["files"] += not entry.is_tree
        if tree_union.is_too_deep(path):
            run.add(
                note(
                    "deep-folder",
                    f"More than {ref.FOLDERS_MAX} folders are nested here; no lines are read below.",
                    f"{ref.LOG_REF}:{path if len(path) <= PATH_SHOWN_MAX else path[:PATH_SHOWN_MAX] + '…'}",
                    "Other clones refuse a log with such a folder. --fix, or the next sync, takes it out of the log; the ref's "
                    "reflog keeps its commits. Record again what matters of it.",
                )
            )
        elif entry.is_tree or tree_union.is_plain_segment(path, entry):
            yield path, entry, content
        elif tree_union.is_segment(path):
            run.add(
                note(
                    "odd-file",
                    f"It is not a regular file (mode {entry.mode}); no lines are read from it.",
                    f"{ref.LOG_REF}:{path}",
                    "gitmem never writes such a file; ask the author of the commit.",
                )
            )


MAY_PASS = ("offline", "rejected", "timeout", "empty")

FILE, UNKNOWN = "roles-file", "unknown-role"
COMMAND = "gitmem role --check"


class Autosync(Check):
    """Automatic syncs that can't publish, and the failure of the last sync."""

    codes = ("autosync-only-fetches", "sync-failed")

    def check(self) -> Iterator[Finding]:
        remark = sync_remotes.consent_remark(self.store)
        if remark is not None:
            yield note(
                "autosync-only-fetches",
                remark,
                settings.AUTOSYNC.key,
                "An agent must ask its user whether others may read this log there, and must not consent for the user.",
            )
        trouble = autosync.last_failure(self.store.repo)
        if trouble is None:
            return
        finding = note if trouble.code in MAY_PASS else problem
        is_on = autosync.interval(self.store.repo) is not None
        again = " It is retried automatically within a few minutes." if is_on else ""
        yield finding(
            "sync-failed",
            f"{trouble.what}, at {trouble.at}: {trouble.message}",
            "",
            f"Local records are kept. Shown until a sync succeeds.{again}",
            self._step(trouble.message),
        )

    def _step(self, message: str) -> str:
        """Return the command that goes on after a failed sync: the repair that its message names, else a sync."""
        try:
            repair = command("gitmem", "sync", "--repair", upstream_remote(self.store.repo))
        except UsageError:
            return SYNC
        return repair if repair in message else SYNC


class Roles(Check):
    """Entries of `.gitmem/roles.toml` and agent files of clients that do not count; sessions with roles or aliases that are not known here."""

    codes = (FILE, UNKNOWN)

    def check(self) -> Iterator[Finding]:
        found = roster.role_check(self.store)
        if found.problems:
            yield note(
                FILE,
                _first([each.text for each in found.problems]),
                found.problems[0].path,
                "This entry or file does not count; everything else does. Correct it.",
                COMMAND,
            )
        if found.unknown:
            yield note(
                UNKNOWN,
                _first(found.unknown),
                vocabulary.FILE,
                f"It is kept and shown. If it is meant, add it to {vocabulary.FILE}.",
                COMMAND,
            )


def _first(found: Sequence[str]) -> str:
    """Return the first sentence with the number of others."""
    return found[0] + (f" {len(found) - 1} more." if found[1:] else "")
