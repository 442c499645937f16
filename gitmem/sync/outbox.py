"""Outboxes: refs on a remote with the lines of one clone, used when the shared ref is contended.

An outbox is created once, never moved, and named after its last commit. So no push of it can lose a race, and two
of the same name are equal. The clone that merges it into the shared ref deletes it.
"""

from __future__ import annotations

import os

from .. import local_files
from ..git.port import HistoryWalk
from ..log import ref, tree_union
from ..log.squash import Squash
from ..log.union import canonical, lines
from ..outcome import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ..git.objects import TreeEntry
    from ..git.port import Git
    from ..log.forgotten import Forgotten
    from ..log.local_log import LocalLog
    from ..log.log_refs import LogTip


# Where a remote may accept an outbox. Not every host accepts refs other than branches and tags.
PREFIXES = ("refs/gitmem/outbox/", "refs/heads/gitmem-outbox-")
CACHE_MAX = 1_000
OVERFLOW_LINKS_MAX = (
    8  # overflow files that are read for one content; it is in a later one only if all are full
)


class Outbox(Struct):
    """One outbox of a remote.

    Attributes:
        oid: Its last commit.
        commits: Its commits that the shared ref's history lacks, parents before children.
        lines: The lines that those add, by segment; None if they do more than add lines, and its tree decides.
        files: Those segments, with their entries and the entries before.
        base: The commit on which it is based.
    """

    oid: str
    commits: Sequence[str]
    tree: str
    lines: Mapping[str, set[bytes]] | None = None
    base: str | None = None
    files: list[tuple[str, TreeEntry, list[TreeEntry]]] = []

    def is_in(self, git: Git, tree: str, forgotten: Forgotten | None = None) -> bool:
        """Return whether a tree has all of its lines, whole or, of those that are forgotten, in the reduced form.

        Raises:
            KeyError: An object is missing.
        """
        if self.lines is not None and all(
            not (missing := _missing(wanted, lines_at(git, tree, path), forgotten))
            or self._is_beside(git, tree, path, missing)
            for path, wanted in self.lines.items()
        ):
            return True
        return (self.lines is None or self.is_large(git, tree)) and not tree_union.union_changes(
            git, tree, [self.tree], forgotten
        )

    def _is_beside(self, git: Git, tree: str, path: str, missing: set[bytes]) -> bool:
        """Return whether a tree keeps these lines of a segment in overflow files because of the size limit.

        If an overflow file is full, the content is in the overflow file of that one, and so on (`Squash`).
        """
        entry = next(entry for each, entry, _ in self.files if each == path)
        if ref.lookup(git, tree, path) == entry:
            return False
        content = canonical(git.blob(entry.oid))
        for _ in range(OVERFLOW_LINKS_MAX):
            path = tree_union.overflow_path(path, content)
            found = lines_at(git, tree, path)
            missing = missing - found
            if not missing or not found:
                break
        return not missing

    def is_large(self, git: Git, tree: str) -> bool:
        """Return whether a segment may exceed the size limit together with the tree's; then only the union decides."""
        return any(
            sum(len(git.blob(each.oid)) for each in (entry, ref.lookup(git, tree, path)) if each is not None)
            > ref.UNION_BYTES_MAX
            for path, entry, _ in self.files
        )


def _missing(wanted: set[bytes], there: set[bytes], forgotten: Forgotten | None) -> set[bytes]:
    missing = wanted - there
    return forgotten.left_of(missing) - there if forgotten else missing


def read(
    log: LocalLog,
    oid: str,
    shared: LogTip,
    trunk: HistoryWalk | None = None,
    may_stand_on: Callable[[str], bool] = lambda base: True,
) -> Outbox | None:
    """Return the outbox if it is based on the history of a log and only adds lines; else None.

    Args:
        trunk: That history, if the caller walks it for several outboxes.
        may_stand_on: Whether the tree of the outbox's base may be read.
    """
    git = log.git
    trunk = trunk or HistoryWalk(git, shared.oid)
    try:
        box = log.outboxes.get(oid)
        if box is None or box.base is None or trunk.above(box.base) != []:
            commits = trunk.above(oid)
            if commits is None or (commits and not may_stand_on(git.commit(commits[0]).parents[0])):
                return None
            box = _plain(git, oid, commits, shared.tree)
    except KeyError:
        return None  # the caller checks it again and reports the missing object
    if box is not None:
        log.outboxes = {**(log.outboxes if len(log.outboxes) < CACHE_MAX else {}), oid: box}
    return box


def made(git: Git, oid: str, shared: LogTip) -> Outbox:
    """Return the outbox that was just committed on the tip `shared`."""
    commits = git.history(oid, [shared.oid])
    return _plain(git, oid, commits, shared.tree) or Outbox(oid, commits, git.commit(oid).tree)


def whole(git: Git, tip: LogTip, shared: LogTip | None) -> Outbox:
    """Return an outbox that is a log of its own, without a linear history from the shared one."""
    return Outbox(tip.oid, git.history(tip.oid, [shared.oid] if shared is not None else []), tip.tree)


def _plain(git: Git, oid: str, commits: Sequence[str], shared: str) -> Outbox | None:
    """Return the outbox if its commits only add lines to segments; None if it must be read as any other log."""
    tree = git.commit(oid).tree
    if not commits:
        return Outbox(oid, commits, tree, {}, oid)
    base = git.commit(commits[0]).parents[0]
    box = Outbox(oid, commits, tree, found := {}, base)
    for path, entry, before in tree_union.differing(git, tree, [git.commit(base).tree]):
        here = ref.lookup(git, shared, path)
        if not tree_union.is_segment(path) or any(
            not each.mode.startswith("100") for each in (entry, here or entry)
        ):
            return None
        found[path] = lines(git.blob(entry.oid))
        for old in before:
            found[path] -= lines(git.blob(old.oid))
        box.files.append((path, entry, before))
    return box


def lines_at(git: Git, tree: str, path: str) -> set[bytes]:
    """Return the lines of one segment; an empty set if there is no such file."""
    entry = ref.lookup(git, tree, path)
    if entry is None or not entry.mode.startswith("100"):
        return set()
    return lines(git.blob(entry.oid))


def lines_of(outboxes: Iterable[Outbox]) -> dict[str, set[bytes]]:
    """Return the lines of several outboxes, by segment."""
    found: dict[str, set[bytes]] = {}
    for box in outboxes:
        for path, added in (box.lines or {}).items():
            found.setdefault(path, set()).update(added)
    return found


class OutboxSent:
    """The content of outboxes: it is on the remote, and need not be sent again."""

    def __init__(self, git: Git, outboxes: Iterable[Outbox]) -> None:
        self._git = git
        outboxes = list(outboxes)
        self._lines = lines_of(outboxes)
        self._trees = [box.tree for box in outboxes if box.lines is None]

    def lines(self, path: str) -> set[bytes]:
        """Return the lines of a segment in these outboxes."""
        return self._lines.get(path, set()).union(*(lines_at(self._git, tree, path) for tree in self._trees))

    def has(self, path: str, entry: TreeEntry) -> bool:
        """Return whether one of them has exactly this file."""
        return any(ref.lookup(self._git, tree, path) == entry for tree in self._trees)


def merge(git: Git, outboxes: Iterable[Outbox], onto: str) -> str:
    """Commit the content of outboxes on top of `onto`; return the new tip, which is the same in every clone."""
    found = Squash(git, git.commit(onto).tree)
    for box in sorted(outboxes, key=lambda box: (git.commit(box.oid).author.seconds, box.oid)):
        found.add_commits(box.commits, box.files if box.lines is not None else None, each_max=0)
    return found.write(onto)


class RemoteState:
    """The recorded state of one remote; it is discarded if the URL changes.

    Attributes:
        refused_prefixes: The prefixes under which it accepts no outbox.
        keeps_refs: Whether it refuses to delete refs: then it gets no outboxes either.
        read_only: Whether it rejected our push when it was one of several.
        seen: Its outboxes at the last fetch, also those that were not read.
        sent: The tip of the log whose lines it had, some perhaps in an outbox, when one was pushed last; or "".
        concurrent: How many of other clones were new then: whether others push at this time.
    """

    def __init__(self, state: str, name: str, url: str) -> None:
        import json

        self._path = os.path.join(state, "remotes", name)
        self._url = url
        self._text = ""
        fields: object = {}
        try:
            self._text = local_files.load(self._path).decode()
            fields = json.loads(self._text)
        except (OSError, ValueError, RecursionError):
            pass
        known = fields if isinstance(fields, dict) and fields.get("url") == url else {}
        self.refused_prefixes = _texts(known.get("refused"))
        self.keeps_refs = known.get("keeps_refs") is True
        self.read_only = known.get("read_only") is True
        self.seen = set(_texts(known.get("seen")))
        self.sent = str(known.get("sent") or "")
        concurrent = known.get("crowd")
        self.concurrent = concurrent if isinstance(concurrent, int) else 0

    @property
    def prefixes(self) -> list[str]:
        """The prefixes under which it may accept an outbox."""
        return (
            [] if self.keeps_refs else [prefix for prefix in PREFIXES if prefix not in self.refused_prefixes]
        )

    def retry(self) -> None:
        """Forget its rejections: a temporary error must not count for ever."""
        self.refused_prefixes = []
        self.keeps_refs = False

    def save(self) -> None:
        """Write the file if anything changed. A file that can't be written is not an error."""
        import json

        fields = {
            "url": self._url,
            "refused": self.refused_prefixes,
            "keeps_refs": self.keeps_refs,
            "read_only": self.read_only,
            "seen": sorted(self.seen),
            "sent": self.sent,
            "crowd": self.concurrent,
        }
        text = json.dumps(fields) + "\n"
        known = (
            self._text or self.refused_prefixes or self.keeps_refs or self.read_only or self.seen or self.sent
        )
        if text == self._text or not known:
            return
        if local_files.try_replace(self._path, text.encode(), folders=True):
            self._text = text


def sent_tips(state: str) -> list[str]:
    """Return the tips of the log that remotes had with their outboxes."""
    import json

    found = []
    for name in local_files.names_in(os.path.join(state, "remotes")):
        try:
            found.append(json.loads(local_files.read(os.path.join(state, "remotes", name)))["sent"])
        except (ValueError, LookupError, TypeError, RecursionError):
            continue
    return [each for each in found if isinstance(each, str) and each]


def _texts(found: object) -> list[str]:
    values: Iterable[object] = found if isinstance(found, list) else ()
    return [each for each in values if isinstance(each, str)]
