"""Import the issues of beads: `.beads/issues.jsonl`, the form in git, or what `bd export` writes, one JSON object a line."""

from __future__ import annotations

import os
import stat
from functools import partial

from .. import records
from ..errors import UsageError
from ..memory import stored_nodes
from ..outcome import command
from ..records import ids
from ..repo import READING
from ..text.sanitize import sanitize
from .imported import Imported, next_commands, write_lines
from .issues import COUNTED, ID_MAX, Issue, IssueRun, Tracker
from .json_lines import micros_of, objects_in, time_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..agents.caller import Caller
    from ..store import Store
    from .json_lines import Given


TRACKER = Tracker("beads", "beads", has_past=True)
FILES = tuple(
    os.path.join(*folder, name) for folder in ((".beads",), ()) for name in ("issues.jsonl", "beads.jsonl")
)
FILE_BYTES_MAX = 256 * 1024 * 1024  # 50,000 issues have about 70 MB
CLOSED, TOMBSTONE = "closed", "tombstone"
BLOCKING = ("blocks", "conditional-blocks", "waits-for")
PARENT = "parent-child"
_PARTS = {"design": "Design", "acceptance_criteria": "Acceptance criteria", "notes": "Notes"}
_FACTS = ("issue_type", "status", "priority", "assignee", "labels")
# Fields that are read, and those that say nothing here.
_USED = {
    "_type", "id", "title", "description", *_PARTS, "status", "created_at", "updated_at", "closed_at", "close_reason", "deleted_at",
    "delete_reason", "dependencies", "comments", "dependency_count", "dependent_count", "comment_count",
}  # fmt: skip


def import_file(
    store: Store, caller: Caller, place: str, *, dry_run: bool = False, typed: str = ""
) -> Imported:
    """Import the issues in a file as tasks, and its memories as nodes.

    Importing twice, or on two clones, adds nothing. An unreadable line is skipped and reported.

    Args:
        place: The file, or a folder with it or its `.beads`.
        dry_run: Only report what would be done.
        typed: The place as typed, for the next command.

    Raises:
        UsageError: There is no such file, or it can't be read.
        StoreError: A commit failed. Earlier commits of the import stay.
    """
    path = find_file(place, store.repo.worktree)
    counts = {kind: dict.fromkeys(COUNTED, 0) for kind in ("issues", "memories")}
    found = Imported(folder=path, dry_run=dry_run, counts=counts)
    run = IssueRun(store, found, TRACKER, os.path.basename(path))
    memories: list[tuple[int, Given]] = []
    with os.fdopen(_open(path), "rb") as file:
        for number, given, why in objects_in(file, store.progress):
            if given is not None and given.get("_type") == "memory":
                memories.append((number, given))
            else:
                run.read(number, partial(_issue, given, why))
    run.settle()
    _add_memories(run, memories)
    if not dry_run:
        write_lines(store, caller, found, run.lines, TRACKER.title)
    found.warnings = [*filter(None, [caller.remark])]
    found.next = next_commands(
        found, command("gitmem", "import", "beads", typed or place), "gitmem task list --open"
    )
    return found


def find_file(place: str, worktree: str | None) -> str:
    """Return the path of the file with the issues.

    Args:
        place: The file, or a folder with it.
        worktree: The top folder of the repository: a link in it must not lead out of it.

    Raises:
        UsageError: There is none (`nothing-to-import`), or it is a link that leads out of the repository (`link`).
    """
    shown = sanitize(os.path.normpath(place))[:200]
    hint = "`bd export -o issues.jsonl` writes one; of another branch, `git show BRANCH:.beads/issues.jsonl > issues.jsonl` does; then import that file."
    names = [os.path.join(place, name) for name in FILES] if os.path.isdir(place) else [place]
    path = next(filter(os.path.lexists, names), None)
    if path is None:
        what = f"{shown} does not exist" if len(names) == 1 else f"No issues of beads in {shown}"
        raise UsageError(
            f"{what}. Nothing was written.", hint=hint, code="nothing-to-import", next=["gitmem task list"]
        )
    path = os.path.abspath(path)
    top = os.path.realpath(place) if os.path.isdir(place) else None
    if _is_below(path, worktree) or _is_below(os.path.realpath(os.path.dirname(path)), worktree):
        top = worktree
    real = os.path.realpath(path)
    if top is not None and not _is_below(real, top):
        raise UsageError(
            f"{shown} leads by a link to {sanitize(real)[:200]}, outside of the repository. Nothing was written.",
            hint="If that is the file that you mean, name it itself.",
            code="link",
            next=[command("gitmem", "import", "beads", real)],
        )
    return path


def _is_below(path: str, folder: str | None) -> bool:
    return folder is not None and os.path.commonpath([path, folder]) == folder


def _open(path: str) -> int:
    """Open a regular file that is not too large.

    Raises:
        UsageError: It is of another kind, too large, or can't be opened.
    """
    shown = sanitize(path)[:200]
    try:
        handle = os.open(path, READING)
    except OSError as error:
        raise UsageError(
            f"{shown} can't be read: {error.strerror}. Nothing was written.", code="unreadable-file"
        ) from None
    status = os.fstat(handle)
    if stat.S_ISREG(status.st_mode) and status.st_size <= FILE_BYTES_MAX:
        return handle
    os.close(handle)
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"{shown} is not a regular file. Nothing was written.", code="unreadable-file")
    raise UsageError(
        f"{shown} has {status.st_size:,} bytes, and at most {FILE_BYTES_MAX:,} are read. Nothing was written.",
        hint="Split it: each line is an issue of its own.",
        code="large-file",
    )


def _issue(given: Given | None, why: str) -> Issue:
    """Return the issue in a line.

    Raises:
        UsageError: It is invalid.
    """
    if given is None:
        raise UsageError(why)
    id, title = given.get("id"), given.get("title") or given.get("id")
    if not isinstance(id, str) or not 0 < len(id) <= ID_MAX or not isinstance(title, str):
        raise UsageError(f"its id or title is missing, or not a text; an id has at most {ID_MAX} characters")
    updated = micros_of(given.get("updated_at"))
    created = time_of(given, "created_at", updated)
    edges = [each for each in given.get("dependencies") or () if each.get("depends_on_id")]  # type: ignore[attr-defined]
    kinds: dict[str, list[str]] = {}
    for each in edges:
        kind = str(each.get("type") or BLOCKING[0])
        kinds.setdefault("blocks" if kind in BLOCKING else kind, []).append(str(each["depends_on_id"]))
    blockers = kinds.pop("blocks", [])
    status, priority = given.get("status"), given.get("priority", 2)
    return Issue(
        id=id, texts=[title, *_texts(given), _facts(given, blockers)], created=created, updated=max(updated or 0, created), unit=id,
        priority=f"P{min(priority, 3)}" if isinstance(priority, int) and priority >= 0 else None,
        initiative=next(iter(kinds.get(PARENT, ())), ""),
        blocked_by=blockers,
        references=[each for some in kinds.values() for each in some],
        comments=_comments(given),
        ended=_end(given, created) if status in (CLOSED, TOMBSTONE) else None,
        is_deleted=status == TOMBSTONE,
        kept={name: value for name, value in given.items() if name not in _USED},
    )  # fmt: skip


def _texts(given: Given) -> list[str]:
    found = [str(given.get("description") or "")]
    return found + [f"{title}:\n{text}" for name, title in _PARTS.items() if (text := given.get(name))]


def _facts(given: Given, blockers: list[str]) -> str:
    """Return a line with what has no field in a task, or may change."""
    facts = [
        f"{name.removeprefix('issue_')} {_words(value)}"
        for name in _FACTS
        if (value := given.get(name)) is not None
    ]
    return " · ".join(
        [f"beads {given['id']}", *facts, *([f"blocked by {_words(blockers)}"] if blockers else [])]
    )


def _words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _comments(given: Given) -> list[tuple[str, int, str]]:
    every = [each for each in given.get("comments") or () if each.get("text")]  # type: ignore[attr-defined]
    return [
        (str(each.get("author") or "somebody"), time_of(each, "created_at"), str(each["text"]))
        for each in every
    ]


def _end(given: Given, created: int) -> tuple[str, int, str]:
    is_closed = given.get("status") == CLOSED
    at = time_of(
        given, "closed_at" if is_closed else "deleted_at", micros_of(given.get("updated_at")) or created
    )
    reason = given.get("close_reason" if is_closed else "delete_reason")
    return "completed" if is_closed else "canceled", at, str(reason or "")


def _add_memories(run: IssueRun, memories: list[tuple[int, Given]]) -> None:
    """Make nodes of what `bd remember` keeps. It has no times: the last one of the issues stands for them."""
    counts = run.found.counts["memories"]
    at = max((each.issue.updated for each in run.every.values()), default=0)
    every: dict[str, tuple[int, object, bytes]] = {}
    for number, given in memories:
        counts["read"] += 1
        made = run.tried("memories", number, partial(_node, given, at, allow_secret=run.allow_secret))
        if made is not None:
            id, line = made
            counts["repeated"] += id in every
            every[id] = number, given.get("value"), line
    known = run.known("nodes", every)
    contents = {node.id: node.content for node in stored_nodes.load(run.db, sorted(known))}
    for id, (number, content, line) in every.items():
        counts["present" if id in known else "imported"] += 1
        if id not in known:
            run.add(line)
        elif contents[id] != content:
            run.remark("memories", number, f"{id} is in the log with different content, which is kept")


def _node(given: Given, at: int, *, allow_secret: bool) -> tuple[str, bytes]:
    """Return the id and the line of what `bd remember` keeps.

    Raises:
        UsageError: It is invalid.
    """
    key = str(given.get("key"))
    fields = {
        "id": ids.keyed_id("mem", TRACKER.sender, key), "type": "note", "lifecycle": "project", "content": given.get("value"),
        "sender_identity": "beads:import:memory", "metadata": {"beads": key},
    }  # fmt: skip
    return str(fields["id"]), records.line("node", at, fields, allow_secret=allow_secret)
