"""Check the log's commits: format, objects, and lines that a later commit dropped."""

from __future__ import annotations

from ...errors import StoreError
from ...log import log_refs, ref, tree_union
from ...log.dropped_lines import History, walk
from ...text.shell_quote import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...git.open_git import TreeEntry
    from ...log.dropped_lines import LogReadResult
    from ...store import Store
    from ..findings import Findings

GO_BACK = "The log goes on from the last commit that is whole, with every line that the index and others still know."
BRING_BACK = (
    "No line is lost by it. A fetch of everything brings it back from a remote that has it; else copy .git/objects "
    "from a clone that does."
)


def check_tip(store: Store, tip: str, found: Findings) -> bool:
    """Report problems of the log's tip; return whether it can be read at all."""
    try:
        own = log_refs.read(store.log, ref.LOG_REF, tip)
    except log_refs.NotALog as why:
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
    for name in tree_union.FIXED[1:]:
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
            mends=bool(log_refs.own_projects(store.log)),
        )
    return True


def _has_tree(store: Store, tip: str) -> bool:
    try:
        store.git.tree(store.git.commit(tip).tree)
    except KeyError:
        return False
    return True


def read(store: Store, tip: str, found: Findings) -> Iterator[tuple[str, TreeEntry, bytes]]:
    """Yield all folders and segments of the current tree, in the form of `dropped_lines.walk`.

    Signals come first, because other lines name them. Objects that can't be read are reported.
    """

    def missing(oid: str, path: str, is_folder: bool) -> None:
        found.checked["files"] += not is_folder
        _missing(found, oid, f"{ref.LOG_REF}:{path}", "the folder" if is_folder else "the file", now=True)

    for path, entry, content in walk(store.git, tip, missing, first="signals"):
        found.checked["files"] += not entry.is_tree
        if entry.is_tree or tree_union.is_plain_segment(path, entry):
            yield path, entry, content
        elif tree_union.is_segment(path):
            found.note(
                "odd-file",
                f"It is no plain file (mode {entry.mode}), so no lines are read from it.",
                f"{ref.LOG_REF}:{path}",
                "gitmem never writes such a file; ask whoever did.",
            )


def _missing(found: Findings, oid: str, where: str, what: str, *, now: bool = False) -> None:
    """Report an unreadable object. `--fix` restores the lines of present files; older objects affect history alone."""
    found.damaged.add(oid)
    found.problem(
        "missing-object",
        f"The object {oid[:12]} of {what} is missing or damaged.",
        where,
        GO_BACK if now else BRING_BACK,
        found.refetch or "git fsck",
        mends=now,
    )


def check_history(store: Store, tip: str, survey: LogReadResult, found: Findings) -> None:
    """Read every object of the log's history, and report lines that were dropped.

    Args:
        survey: Has the keys of the present lines, and receives those of the dropped lines.
    """
    try:
        commits = store.git.history(tip)
    except (KeyError, StoreError) as error:
        found.problem(
            "broken-history",
            f"The history of the log can't be followed to its start ({error}).",
            ref.LOG_REF,
            GO_BACK,
            mends=True,
        )
        return
    found.checked["commits"] = len(commits)
    left = log_refs.promised_objects(store.log, tip)
    if left:
        found.note(
            "partial-clone",
            f"{len(left)} older objects of the log are with the remote that this clone left them with.",
            ref.LOG_REF,
            "Nothing is wrong: what the log has now is all here, and older files are not looked at.",
        )
    history = History(store.log, commits, left)
    for each in history.dropped(survey.keys, lambda *what: _missing(found, *what)):
        many = len(each.lines) > 1
        show = command("git", "show", f"{each.commit[:12]}:{each.path}") + " | cat -v"  # the bytes are peers'
        found.problem(
            "dropped-lines",
            f"{len(each.lines)} line{'s' if many else ''} that this commit had {'are' if many else 'is'} in the log no more.",
            f"{each.commit[:12]}:{each.path}:{each.number}",
            f"They come back by --fix, or by a sync with a clone that has them; {show} shows them.",
            mends=True,
        )
    if history.is_whole and not found.damaged:
        survey.commits = frozenset(commits)
