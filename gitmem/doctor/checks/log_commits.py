"""Check the log's commits: format, objects, and lines that a later commit dropped. Repair the log."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from ...errors import StoreError
from ...git import repair
from ...git.objects import TreeEntry
from ...log import ledger, log_refs, recovery, ref, tree_union
from ...log.recovery import History, walk_contents
from ...outcome import command
from ...store import Store
from ...sync import consent_messages, repair_log
from ..findings import Check, Examination, Finding, Fixed, note, problem
from . import missing_lines

ROUNDS_MAX = 20
CONTINUABLE = ("not-a-log", "bad-epoch", "broken-history", "missing-object")
FIX_CONTINUES = "--fix continues the log from the last complete commit, with every line that the index and other refs still have."
FETCH_RESTORES = (
    "This loses no lines. A full fetch restores it from a remote that has it; otherwise copy .git/objects "
    "from a clone that does."
)


class NoLog(Check):
    """A clone without a log."""

    codes = ("no-log",)

    def check(self) -> Iterator[Finding]:
        init = consent_messages.init_command(self.store)
        yield note(
            "no-log",
            "This clone has no log yet.",
            ref.LOG_REF,
            f"The first record creates it; `{init}` fetches the remote's.",
            init,
        )


class LogTip(Check):
    """Problems of the log's tip.

    Attributes:
        is_readable: Whether the tip can be read at all; set by `check`.
    """

    codes = ("not-a-log", "newer-format", "bad-epoch", "fixed-file", "no-project")
    fixes = (*CONTINUABLE, "lost-lines", "dropped-lines", "crlf", "not-canonical", "fixed-file", "no-project")
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
        if own.format.epoch != 0:
            yield problem(
                "bad-epoch",
                f"The log's epoch is {own.format.epoch}; only 0 is valid. A peer replaced the log with it.",
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
            if tip is None and not missing_lines.find(self.store, None).found:
                return
            base = repair_log.repair_base(log, tip)  # 1, 2
            new = self._assembled(base, tip)
            if new == tip:
                return
            if repair_log.swap_log_ref(log, tip, new):
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
            repair_log.forget_damaged(log, tip)
        self.store.refresh()

    def _assembled(self, base: str, tip: str | None) -> str:
        """Return the new tip: `base` itself if it is complete."""
        log = self.store.log
        found = missing_lines.find(self.store, base, damaged=tip if tip != base else None)
        top = base
        for oid in reversed(found.heads):
            top = repair_log.reapply(log, oid, top)  # 3
        present = {
            ledger.key(line)
            for _, content in repair_log.segments(log, top)
            for line in tree_union.lines_of(content)
        }
        missing = [*found.found.values(), *missing_lines.dropped(self.store, top, set(present))]
        lines: dict[str, list[bytes]] = {}
        for path, line in missing:
            key = ledger.key(line)
            where = missing_lines.path_of(self.store, path, line) if key not in present else None
            if where is not None:
                lines.setdefault(where, []).append(line)
                present.add(key)
        return repair_log.repair(log, top, lines)  # 4


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
        left = log_refs.promised_objects(self.store.log, tip)
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
            show = (
                command("git", "show", f"{each.commit[:12]}:{each.path}") + " | cat -v"
            )  # the bytes are peers'
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
            where = repair.move_aside(repo.common, oid, aside)
            if where is not None:
                yield "missing-object", oid, f"Its damaged file was moved to {where}."
        self.store.git.close()  # an open git process has read the old objects


def _has_tree(store: Store, tip: str) -> bool:
    try:
        store.git.tree(store.git.commit(tip).tree)
    except KeyError:
        return False
    return True


def read(run: Examination) -> Iterator[tuple[str, TreeEntry, bytes]]:
    """Yield all folders and segments of the tip's tree, in the form of `recovery.walk_contents`.

    Signals come first, because other lines name them. Objects that can't be read are reported.
    """

    def missing(oid: str, path: str, is_folder: bool) -> None:
        run.checked["files"] += not is_folder
        what = "the folder" if is_folder else "the file"
        Objects(run).report(oid, f"{ref.LOG_REF}:{path}", what, now=True)

    for path, entry, content in walk_contents(run.store.git, str(run.tip), missing, first="signals"):
        run.checked["files"] += not entry.is_tree
        if entry.is_tree or tree_union.is_plain_segment(path, entry):
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
