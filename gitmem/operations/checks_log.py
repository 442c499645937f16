"""Doctor's look at the log's commits: format, objects, and lines that a later commit dropped."""

from __future__ import annotations

from ..errors import StoreError
from ..log import places, ref, trees
from .findings import Findings
from .quoting import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from .store import Store

BRING_BACK = (
    "`gitmem sync` brings it back from a remote that has it; else copy .git/objects from a clone that does."
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
            "Its reflog shows where it was before; `git update-ref` moves it back there.",
            f"git reflog {ref.LOG_REF}",
        )
        return store.git.has(tip) and _has_tree(store, tip)
    try:
        own.format.refuse_newer()
    except StoreError as error:
        found.problem("newer-format", error.message, f"{ref.LOG_REF}:format", error.hint, error.next[0])
    for name in trees.FIXED[1:]:
        if name not in store.git.tree(own.tree):
            found.note(
                "fixed-file",
                f"The log's tree has no {name}.",
                f"{ref.LOG_REF}:{name}",
                "Another clone's sync brings it back; the log works without it.",
                "gitmem sync",
            )
    if not own.projects:
        found.note(
            "no-project",
            "The log does not say which project it belongs to, so it can't be told from another's.",
            f"{ref.LOG_REF}:projects",
            "The next sync of a clone that has commits adds it.",
            "gitmem sync",
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
            _missing(found, oid, f"{ref.LOG_REF}:{path}", "the folder")
            continue
        for name, entry in entries.items():
            if entry.is_tree:
                todo.append((f"{path}{name}/", entry.oid))
                continue
            found.checked["files"] += 1
            try:
                content = store.git.blob(entry.oid) if entry.mode != "160000" else b""
            except KeyError:
                _missing(found, entry.oid, f"{ref.LOG_REF}:{path}{name}", "the file")
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


def _missing(found: Findings, oid: str, where: str, what: str) -> None:
    found.problem(
        "missing-object",
        f"The object {oid[:12]} of {what} is missing or damaged.",
        where,
        BRING_BACK,
        "git fsck",
    )


def check_history(store: Store, tip: str, present: Collection[bytes], found: Findings) -> None:
    """Read every object that the log's history has, and find the lines that are no more."""
    git = store.git
    try:
        commits = git.history(tip)
    except (KeyError, StoreError) as error:
        found.problem(
            "broken-history",
            f"The history of the log can't be followed to its start ({error}).",
            ref.LOG_REF,
            BRING_BACK,
            "git fsck",
        )
        return
    found.checked["commits"] = len(commits)
    walk = _Walk(store, set(present), found)
    for oid in reversed(commits):
        try:
            walk.tree(oid, git.commit(oid).tree, "")
        except KeyError:
            _missing(found, oid, oid[:12], "a commit")


class _Walk:
    """Every tree and blob of a history once, newest first."""

    def __init__(self, store: Store, present: set[bytes], found: Findings) -> None:
        self.git = store.git
        self.present = present
        self.found = found
        self.seen: set[str] = set()

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
        gone = [line for line in lines if line not in self.present]
        if not gone:
            return
        self.present.update(gone)  # each is told once
        first = [line.rstrip(b"\r") for line in content.split(b"\n")].index(gone[0]) + 1
        self.found.problem(
            "dropped-lines",
            f"{len(gone)} line{'s' if len(gone) > 1 else ''} that this commit had "
            f"{'are' if len(gone) > 1 else 'is'} in the log no more.",
            f"{commit[:12]}:{path}:{first}",
            "A sync with a clone that has them brings them back; the command shows them.",
            command("git", "show", f"{commit[:12]}:{path}"),
        )
