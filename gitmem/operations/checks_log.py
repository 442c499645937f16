"""Doctor's look at the log's commits: format, objects, and lines that a later commit dropped."""

from __future__ import annotations

from ..errors import StoreError
from ..log import lines as form
from ..log import places, ref, trees
from .findings import Findings
from .quoting import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from .store import Store

GO_BACK = "The log goes on from the last commit that is whole, with every line that the index and others still know."
BRING_BACK = (
    "No line is lost by it. A fetch of everything brings it back from a remote that has it; else copy .git/objects "
    "from a clone that does."
)


def check_tip(store: Store, tip: str, found: Findings) -> bool:
    """Whether the ref is at a log that can be read at all."""
    try:
        own = places.read(store.log, ref.LOG_REF, tip)
    except places.NotALog as why:
        found.problem(
            "not-a-log",
            f"{ref.LOG_REF} is at {tip[:12]}, which is no gitmem log: {why}.",
            ref.LOG_REF,
            "It goes back to the last commit that is whole, with every line that is known. Its reflog shows where it was.",
            mends=True,
        )
        return store.git.has(tip) and _has_tree(store, tip)
    try:
        own.format.refuse_newer()
    except StoreError as error:
        found.problem("newer-format", error.message, f"{ref.LOG_REF}:format", error.hint, error.next[0])
    if own.format.epoch != 0:
        found.problem(
            "bad-epoch",
            f"The log's epoch is {own.format.epoch}; only 0 is valid. A peer replaced the log with it.",
            f"{ref.LOG_REF}:format",
            "The log goes back to what it was, with every line that the reflog, the index and the ledger know.",
            mends=True,
        )
    for name in trees.FIXED[1:]:
        if name not in store.git.tree(own.tree):
            found.note(
                "fixed-file",
                f"The log's tree has no {name}.",
                f"{ref.LOG_REF}:{name}",
                "The log works without it; `gitmem doctor --fix` or another clone's sync brings it back.",
                mends=True,
            )
    if not own.projects:
        found.note(
            "no-project",
            "The log does not say which project it belongs to, so it can't be told from another's.",
            f"{ref.LOG_REF}:projects",
            "`gitmem doctor --fix`, or the next sync, of a clone that has commits adds it.",
            "gitmem sync",
            mends=bool(places.own_projects(store.log)),
        )
    return True


def _has_tree(store: Store, tip: str) -> bool:
    try:
        store.git.tree(store.git.commit(tip).tree)
    except KeyError:
        return False
    return True


def read_files(store: Store, tip: str, found: Findings) -> dict[str, bytes]:
    """Every segment of the current tree. What can't be read is a finding."""
    files: dict[str, bytes] = {}
    todo = [("", store.git.commit(tip).tree)]
    while todo:
        path, oid = todo.pop()
        try:
            entries = store.git.tree(oid)
        except KeyError:
            _missing(found, oid, f"{ref.LOG_REF}:{path}", "the folder", now=True)
            continue
        for name, entry in entries.items():
            if entry.is_tree:
                todo.append((f"{path}{name}/", entry.oid))
                continue
            found.checked["files"] += 1
            try:
                content = store.git.blob(entry.oid) if entry.mode != "160000" else b""
            except KeyError:
                _missing(found, entry.oid, f"{ref.LOG_REF}:{path}{name}", "the file", now=True)
                continue
            if trees.is_segment(name) and entry.mode.startswith("100"):
                files[path + name] = content
            elif trees.is_segment(name):
                found.note(
                    "odd-file",
                    f"It is no plain file (mode {entry.mode}), so no lines are read from it.",
                    f"{ref.LOG_REF}:{path}{name}",
                    "gitmem never writes such a file; ask whoever did.",
                )
    return dict(sorted(files.items()))


def _missing(found: Findings, oid: str, where: str, what: str, *, now: bool = False) -> None:
    """An object that can't be read. Of what is in the log now, the lines are mended; older ones are the story's alone."""
    found.damaged.add(oid)
    found.problem(
        "missing-object",
        f"The object {oid[:12]} of {what} is missing or damaged.",
        where,
        GO_BACK if now else BRING_BACK,
        found.refetch or "git fsck",
        mends=now,
    )


def check_history(store: Store, tip: str, present: Collection[bytes], found: Findings) -> set[bytes]:
    """Read every object that the log's history has, and find the lines that are no more: those, and what is present."""
    git = store.git
    try:
        commits = git.history(tip)
    except (KeyError, StoreError) as error:
        found.problem(
            "broken-history",
            f"The history of the log can't be followed to its start ({error}).",
            ref.LOG_REF,
            GO_BACK,
            mends=True,
        )
        return set(present)
    found.checked["commits"] = len(commits)
    left = places.left_behind(store.log, tip)
    if left:
        found.note(
            "partial-clone",
            f"{len(left)} older objects of the log are with the remote that this clone left them with.",
            ref.LOG_REF,
            "Nothing is wrong: what the log has now is all here, and older files are not looked at.",
        )
    walk = _Walk(store, set(present), found, left)
    for oid in reversed(commits):
        try:
            walk.tree(oid, git.commit(oid).tree, "")
        except KeyError:
            _missing(found, oid, oid[:12], "a commit")
    return walk.present


class _Walk:
    """Every tree and blob of a history once, newest first."""

    def __init__(self, store: Store, present: set[bytes], found: Findings, left: set[str]) -> None:
        self.git = store.git
        self.present = present
        self.found = found
        self.seen = left

    def tree(self, commit: str, oid: str, path: str) -> None:
        if oid in self.seen:
            return
        self.seen.add(oid)
        try:
            entries = self.git.tree(oid)
        except KeyError:
            _missing(self.found, oid, f"{commit[:12]}:{path}", "an older folder")
            return
        for name, entry in entries.items():
            if entry.is_tree:
                self.tree(commit, entry.oid, f"{path}{name}/")
            elif entry.oid not in self.seen and entry.mode != "160000":
                self.seen.add(entry.oid)
                self._blob(commit, entry.oid, path + name)

    def _blob(self, commit: str, oid: str, path: str) -> None:
        try:
            content = self.git.blob(oid)
        except KeyError:
            _missing(self.found, oid, f"{commit[:12]}:{path}", "an older file")
            return
        lines = trees.lines_of(content) if trees.is_segment(path) else []
        # What is no line of a log, such as a conflict marker, may be deleted.
        gone = [line for line in lines if line not in self.present and form.problem(line) is None]
        if not gone:
            return
        self.present.update(gone)  # each is told once
        first = [line.rstrip(b"\r") for line in content.split(b"\n")].index(gone[0]) + 1
        show = command("git", "show", f"{commit[:12]}:{path}") + " | cat -v"  # the bytes are peers'
        self.found.problem(
            "dropped-lines",
            f"{len(gone)} line{'s' if len(gone) > 1 else ''} that this commit had "
            f"{'are' if len(gone) > 1 else 'is'} in the log no more.",
            f"{commit[:12]}:{path}:{first}",
            f"They come back by --fix, or by a sync with a clone that has them; {show} shows them.",
            mends=True,
        )
