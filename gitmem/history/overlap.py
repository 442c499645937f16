"""Compare branches: the files that two of them change, and where merging them conflicts.

Nothing of the user's is written: git works in a temporary repository (`git/fetch.py`), without the network.
"""

from __future__ import annotations

import os
import time
from heapq import nsmallest
from itertools import combinations

from .. import local_files
from .. import repo as repo_module
from ..agents import mailbox, presence
from ..agents.addressing import Resolved
from ..errors import GitmemError, StoreError, UsageError
from ..git import branches as changes
from ..git.branches import CONFLICT, SLOW, UNKNOWN, Merge, Tip
from ..git.fetch import ScratchRepository, make_parent
from ..log.lines import format_at
from ..order.content import ANNOUNCER, OVERLAP, is_notice
from ..outcome import Outcome, Struct, command
from ..records.ids import keyed_id
from ..records.lines import as_json
from ..signals import announcements
from ..text.sanitize import sanitize
from ..work import edit_guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..agents.caller import Caller
    from ..agents.presence import Presence
    from ..store import Store
    from ..work.edit_guard import Checkout

    Pair = tuple[str, str]


BRANCHES_MAX = 100
REFS_MAX = 20_000
RECENT_SECONDS = 14 * 24 * 3600
LOCAL, REMOTE = "refs/heads/", "refs/remotes/"
OURS = ("gitmem", "gitmem-outbox-")  # branches of the log: the name of one, and how others begin
USUAL = ("main", "master", "trunk")


class Branch(Struct):
    """A branch, or the detached HEAD of a worktree.

    Attributes:
        name: Its name without the remote; of a detached HEAD the folder of the worktree.
        revision: What git commands of the user call it; None if they can't.
        tip: Its commit; None before the first one.
        changed: The files that it changed since its merge base with the default branch.
        uncommitted: The files that differ from HEAD in its worktrees.
        sessions: The sessions that work on it.
    """

    name: str
    revision: str | None
    tip: str | None
    changed: list[str] = []
    uncommitted: list[str] = []
    sessions: list[Presence] = []
    is_checked_out: bool = False


class Refs:
    """The branches of this clone: the local ones, and those of remotes by name, each with its commits."""

    def __init__(self, store: Store) -> None:
        self.local = {
            ref.removeprefix(LOCAL): oid
            for ref, oid in store.git.refs(LOCAL).items()
            if not _is_ours(ref.removeprefix(LOCAL))
        }
        self.remote: dict[str, dict[str, str]] = {}  # name -> remote -> commit
        for ref, oid in store.git.refs(REMOTE).items():
            remote, _, name = ref.removeprefix(REMOTE).partition("/")
            if name and name != "HEAD" and not _is_ours(name):
                self.remote.setdefault(name, {})[remote] = oid
        self.default = _default(store, self)

    def names(self) -> list[str]:
        """Return the names of all branches, the local ones first."""
        return list(dict.fromkeys([*self.local, *self.remote]))

    def commits(self) -> list[str]:
        """Return the commits of all branches, of at most `REFS_MAX` of them."""
        found = dict.fromkeys(
            [*self.local.values(), *(oid for of in self.remote.values() for oid in of.values())]
        )
        return list(found)[:REFS_MAX]

    def default_tips(self) -> list[str]:
        """Return the commits of the default branch, here and at remotes."""
        if self.default is None:
            return []
        found = [self.local.get(self.default), *self.remote.get(self.default, {}).values()]
        return list(dict.fromkeys(oid for oid in found if oid is not None))

    def newest(self, name: str, tips: Mapping[str, Tip], *, checked_out: bool) -> Branch:
        """Return a branch as it is here; as a remote has it if that is newer, and it is not checked out here."""
        own = self.local.get(name)
        if own is not None and (checked_out or own not in tips):
            return Branch(name, name, own)
        known = [(tips[own].seconds, True, name, own)] if own is not None else []
        known += [
            (tips[oid].seconds, False, f"{remote}/{name}", oid)
            for remote, oid in self.remote.get(name, {}).items()
            if oid in tips
        ]
        if not known:
            return Branch(name, name, own)
        _, _, revision, oid = max(known)
        return Branch(name, revision, oid)


def _is_ours(name: str) -> bool:
    return name == OURS[0] or name.startswith((OURS[1], f"{OURS[0]}/"))


def _default(store: Store, refs: Refs) -> str | None:
    """Return the name of the default branch: what a remote says, else the setting of git, else a usual name."""
    known = {*refs.local, *refs.remote}
    for remote in ("origin", *sorted({remote for of in refs.remote.values() for remote in of})):
        text = os.fsdecode(
            repo_module.read_small(os.path.join(store.repo.common, f"{REMOTE}{remote}/HEAD"), 4096)
        )
        name = text.strip().removeprefix(f"ref: {REMOTE}{remote}/")
        if name in known:
            return name
    setting = store.git.config("^init\\.defaultbranch$").get("init.defaultbranch")
    return next((name for name in (setting, *USUAL) if name in known), None)


def need_default(refs: Refs) -> str:
    """Return the name of the default branch.

    Raises:
        UsageError: `no-default-branch`: nothing says which it is.
    """
    if refs.default is None:
        raise UsageError(
            f"No default branch: there is none of {', '.join(USUAL)}, and no remote names one. Nothing was compared.",
            hint="Name it in git's setting init.defaultBranch.",
            code="no-default-branch",
            next=["git remote set-head origin --auto"],
        )
    return refs.default


def sessions_by_branch(store: Store) -> dict[str, list[Presence]]:
    """Return the sessions of the last 24 hours that state a branch, at most `presence.READ_MAX` of the log, last seen first."""
    found: dict[str, list[Presence]] = {}
    current = [one for one in presence.shown(store, stating="branch").values() if one.is_current]
    for one in sorted(current, key=lambda one: (-one.last_seen, one.session_id)):
        name = one.record.get("branch")
        if name:
            found.setdefault(name, []).append(one)
    return found


def detached_name(place: Checkout, places: Sequence[Checkout]) -> str:
    """Return what a worktree without a branch is called: its folder, in full if another one has the same name."""
    name = os.path.basename(place.folder)
    count = sum(os.path.basename(each.folder) == name for each in places)
    return f"{name if count == 1 else place.folder} (detached)"


def select_branches(
    refs: Refs,
    tips: Mapping[str, Tip],
    held: Mapping[str, Sequence[Presence]],
    places: Sequence[Checkout],
    now_seconds: int,
) -> tuple[list[Branch], int]:
    """Return the branches to compare, and how many more are recent.

    Args:
        refs: The branches of this clone.
        tips: The commits of these branches that exist here.
        held: Sessions by the name of their branch.
        places: The worktrees of this clone.
        now_seconds: The time, seconds since the epoch.
    """
    out: dict[str, Branch] = {}
    on = {place.branch for place in places}

    def seconds(branch: Branch) -> int:
        return tips[branch.tip].seconds if branch.tip is not None and branch.tip in tips else 0

    for name in refs.names():
        branch = refs.newest(name, tips, checked_out=name in on)
        if name in held or name in on or now_seconds - seconds(branch) < RECENT_SECONDS:
            out[name] = branch
    for place in places:
        name = place.branch if place.branch is not None else detached_name(place, places)
        branch = out.setdefault(name, Branch(name, None, place.head))
        branch.uncommitted += place.files
        branch.is_checked_out = True
    if refs.default in out and not out[refs.default].uncommitted:
        del out[refs.default]
    for name, branch in out.items():
        branch.sessions = list(held.get(name, ()))

    def rank(branch: Branch) -> tuple[bool, int, str]:
        return not (branch.sessions or branch.is_checked_out), -seconds(branch), branch.name

    ranked = sorted(out.values(), key=rank)
    compared = sorted(ranked[:BRANCHES_MAX], key=lambda branch: branch.name)
    return compared, len(ranked) - len(compared)


class Shared(Struct):
    """The files that two branches both change.

    Attributes:
        one, other: The places of the branches in their list.
        count: The number of files.
        paths: The first of them.
        uncommitted: Those of `paths` that at least one side has not committed.
        committed: The number of files that both have committed.
    """

    one: int
    other: int
    count: int = 0
    committed: int = 0
    paths: list[str] = []
    uncommitted: list[str] = []


def shared_files(
    branches: Sequence[Branch], paths_max: int, remaining: Callable[[], float]
) -> tuple[list[Shared], bool]:
    """Return the pairs of branches that change the same files, and whether some were left out because no time was left.

    Args:
        branches: The branches.
        paths_max: The greatest number of paths of a pair; all are counted.
        remaining: Returns the seconds that are left.
    """
    committed = [set(each.changed) for each in branches]
    changed = [{*each.changed, *each.uncommitted} for each in branches]
    found: list[Shared] = []
    for one, other in combinations(range(len(branches)), 2):
        if remaining() <= 0:
            return found, True
        if paths := changed[one] & changed[other]:
            in_both = committed[one] & committed[other]
            shown = nsmallest(paths_max, paths)
            uncommitted = [path for path in shown if path not in in_both]
            found.append(Shared(one, other, len(paths), len(in_both), shown, uncommitted))
    return found, False


SECONDS = 10.0  # for all runs of git
PAIRS_MAX = 2_000  # that git merges in one call

FILE = "overlap"
VERSION = 3
BYTES_MAX = 32 * 1024 * 1024

NOTICES_MAX = 20  # in one call
DAY_MICROS = 24 * 3600 * 1_000_000
AHEAD_MICROS = 300 * 1_000_000  # that clocks of others may be
RECIPIENTS_MAX = 40  # of one
NAME_MAX = 120  # characters of a branch or file in the text
FILES_SHOWN = 3

OVERLAPS_MAX = 100
PATHS_MAX = 20  # of one pair


class Comparison:
    """One comparison of a clone's branches.

    Args:
        store: The open store.
        seconds: The limit for all runs of git together.
        pairs_max: The greatest number of pairs that git merges.
    """

    def __init__(self, store: Store, *, seconds: float = SECONDS, pairs_max: int = PAIRS_MAX) -> None:
        self.store = store
        self.warnings: list[str] = []
        self._until = time.monotonic() + seconds
        self._pairs_max = pairs_max
        self._refs = Refs(store)
        self.default = self._refs.default
        self._default_tips = self._refs.default_tips()
        self._cache = OverlapCache(store.repo.state, self._default_tips)
        self._scratch: ScratchRepository | None = None
        self.branches: list[Branch] = []

    def remaining(self) -> float:
        """Return the seconds that are left for git."""
        return self._until - time.monotonic()

    def run(self) -> list[tuple[Branch, Branch, Shared, changes.Merge | None]]:
        """Return the pairs that change the same files.

        Raises:
            UsageError: `no-default-branch`: there are several branches, and nothing says which is the default one.
            StoreError: git can't be used, or gitmem's folder can't be written.
        """
        try:
            return self._compare()
        finally:
            if self._scratch is not None:
                self._scratch.__exit__()

    def _compare(self) -> list[tuple[Branch, Branch, Shared, changes.Merge | None]]:
        if len(self._refs.names()) > 1:
            need_default(self._refs)
        commits = self._refs.commits()
        self._learn_tips(commits)
        held = sessions_by_branch(self.store)
        places, warnings = edit_guard.checkouts(self.store, self.remaining)
        self.warnings += warnings
        self._learn_tips([place.head for place in places if place.head is not None])
        now = self.store.now() // 1_000_000
        self.branches, more = select_branches(self._refs, self._cache.tips, held, places, now)
        if more:
            self.warnings.append(
                f"{more} recent branches were left out: at most {BRANCHES_MAX} are compared."
            )
        for branch in self.branches:
            branch.changed = self._changed(branch)
        shared, is_cut = shared_files(self.branches, PATHS_MAX, self.remaining)
        if is_cut:
            self.warnings.append("Not all pairs of branches were compared: they share too many files.")
        # The fewest files first, which merge fastest.
        merges = self._merges(
            sorted((each for each in shared if each.committed), key=lambda each: each.committed)
        )
        self._cache.tips = {
            oid: tip for oid, tip in self._cache.tips.items() if oid in {*commits, *self._tips()}
        }
        self._cache.write(self._tips())
        found = []
        for each in shared:
            a, b = self.branches[each.one], self.branches[each.other]
            merge = merges.get((a.tip or "", b.tip or "")) if each.committed else None
            if merge is None or merge.state != changes.CONTAINED or each.uncommitted:
                found.append((a, b, each, merge))
        return found

    def _tips(self) -> set[str]:
        return {branch.tip for branch in self.branches if branch.tip is not None}

    def scratch(self) -> ScratchRepository:
        """Return the temporary repository, which is made at the first call."""
        if self._scratch is None:
            repo = self.store.repo
            try:
                made = ScratchRepository(repo.common, make_parent(repo.state))
                self._scratch = made.__enter__()
            except OSError as error:
                raise StoreError(
                    f"Branches cannot be compared: {repo.state} cannot be written ({error.strerror}). Nothing was changed.",
                    hint="Check its permissions and the disk.",
                    next=["gitmem doctor"],
                ) from error
            for oid in self._default_tips[:1]:
                self._scratch.use_attributes(oid)
        return self._scratch

    def _learn_tips(self, oids: Sequence[str]) -> None:
        new = [oid for oid in dict.fromkeys(oids) if oid not in self._cache.tips]
        if new:
            self._cache.tips |= changes.tips(self.scratch(), new, SECONDS)

    def _seconds(self) -> float:
        return max(0.01, self.remaining())

    def _changed(self, branch: Branch) -> list[str]:
        """Return the files that a branch changed since its merge base with the default branch."""
        tip = branch.tip
        if tip is None or tip in self._default_tips or branch.name == self.default:
            return []
        known = self._cache.files
        if tip not in known:
            if tip not in self._cache.tips:
                self.warnings.append(f"{sanitize(branch.name)} was left out: its commit is missing here.")
                return []
            if self.remaining() <= 0:
                self.warnings.append(f"{sanitize(branch.name)} was left out: there was no time.")
                return []
            try:
                known[tip] = self._files_since_base(tip)
            except changes.TooManyFilesError:
                known[tip] = None
            except (KeyError, GitmemError):
                self.warnings.append(f"{sanitize(branch.name)} was left out: git could not compare it.")
                return []
        files = known[tip]
        if files is None:
            self.warnings.append(
                f"{sanitize(branch.name)} was left out: it changes more than {changes.FILES_MAX:,} files,"
                f" or has no commit in common with {sanitize(self.default or '')}."
            )
        return files or []

    def _files_since_base(self, tip: str) -> list[str] | None:
        base = changes.merge_base(self.scratch(), tip, self._default_tips, self._seconds())
        if base is None:
            return None
        files = changes.changed_files(self.scratch(), base, tip, self._seconds())
        if files is None:
            raise KeyError(tip)
        return files

    def _merges(self, wanted: Sequence[Shared]) -> Mapping[Pair, changes.Merge]:
        """Return the merges of the pairs, from the cache or from git; pairs that were not merged are missing."""
        pairs = [self._pair(each) for each in wanted]
        merges = self._cache.merges
        same = {pair: changes.Merge(changes.CONTAINED) for pair in pairs if pair[0] == pair[1]}
        new = [pair for pair in dict.fromkeys(pairs) if pair not in merges and pair not in same]
        if new:
            try:
                found = changes.merges(
                    self.scratch(), new[: self._pairs_max], self._cache.tips, self.remaining
                )
                merges.update(found)
            except changes.NoMergeTreeError:
                self.warnings.append(
                    f"Conflicts were not checked: git {changes.STDIN_SINCE} or newer is needed, and this is"
                    f" {sanitize(self.store.git.version())}."
                )
                return same
        missing = sum(
            pair not in same and (pair not in merges or merges[pair].state >= changes.SLOW)
            for pair in dict.fromkeys(pairs)
        )
        if missing:
            self.warnings.append(
                f"{missing} pairs of branches were not merged: there was no time, or objects are missing here."
                " The next call continues."
            )
        return {**merges, **same}

    def _pair(self, shared: Shared) -> Pair:
        return self.branches[shared.one].tip or "", self.branches[shared.other].tip or ""


def overlap(
    store: Store,
    branch: str | None = None,
    *,
    notify: Caller | None = None,
    seconds: float = SECONDS,
    pairs_max: int = PAIRS_MAX,
) -> Overlaps:
    """Return the pairs of branches that change the same files, those that conflict first.

    Args:
        branch: Only pairs with this branch.
        notify: Who tells the sessions on branches that conflict; None to tell nobody.
        seconds: The limit for all runs of git together.
        pairs_max: The greatest number of pairs that git merges.

    Raises:
        UsageError: `no-default-branch`; `unknown-branch`: it was not compared. Nothing was written.
        StoreError: git can't be used, gitmem's folder can't be written, or a signal can't be recorded.
    """
    comparison = Comparison(store, seconds=seconds, pairs_max=pairs_max)
    rows = comparison.run()
    names = [each.name for each in comparison.branches]
    if branch is not None and branch not in names:
        raise UsageError(
            f"{sanitize(branch)[:200]} was not compared: it is unknown, the default branch without uncommitted files, or"
            " has neither a commit in 14 days nor a session. Nothing was written.",
            code="unknown-branch",
            suggestions=[decoded(name) for name in names][:5],
            next=["gitmem overlap"],
        )
    found = [(Overlap(*row), row) for row in rows if branch is None or branch in (row[0].name, row[1].name)]
    found.sort(key=lambda each: _rank(each[0]))
    overlaps = [each for each, _ in found]
    outcome = Overlaps(comparison.default, len(names), overlaps)
    outcome.warnings = comparison.warnings
    if notify is not None:
        conflicts = [_conflict(*row) for each, row in found if each.conflicts]
        outcome.sent, warnings = tell_all(store, notify, conflicts)
        outcome.warnings += warnings
    outcome.next = _next(overlaps, is_told=notify is not None)
    return outcome


def _conflict(one: Branch, other: Branch, _: Shared, merge: changes.Merge | None) -> Conflict:
    assert merge is not None  # it conflicts
    names, files = [decoded(one.name), decoded(other.name)], list(map(decoded, merge.paths))
    return Conflict(names, files, [*one.sessions, *other.sessions], merge.count, merge.digest)


def _rank(found: Overlap) -> tuple[int, int, list[str]]:
    worst = {True: 0, None: 1, False: 2}[found.conflicts]
    count = len(found.conflicting) + found.more_conflicting or len(found.files) + found.more
    return worst, -count, [side.branch for side in found.sides]


def _next(found: Sequence[Overlap], *, is_told: bool) -> list[str]:
    if not found:
        return []
    worst = found[0]
    steps = []
    if not is_told and worst.conflicts and any(side.sessions for side in worst.sides):
        steps.append("gitmem overlap --notify")
    one, other = (side.revision for side in worst.sides)
    path = (worst.conflicting or worst.files)[0]
    if one and other and f"{one}{other}{path}".isprintable() and "\ufffd" not in f"{one}{other}{path}":
        steps.append(command("git", "diff", f"{one}...{other}", "--", path))
    return steps


class OverlapCache:
    """Tips, changed files and merges by commits.

    Attributes:
        tips: Time and tree by commit.
        files: The files that a commit changed since the merge base with the default branch; None if there are too many or
            no merge base.
        merges: Results by pair of commits.
    """

    def __init__(self, state: str, default_tips: Sequence[str]) -> None:
        self._path = os.path.join(state, FILE)
        self._default = list(default_tips)
        self.tips: dict[str, Tip] = {}
        self.files: dict[str, list[str] | None] = {}
        self.merges: dict[Pair, Merge] = {}
        self._read = local_files.read(self._path, BYTES_MAX)
        try:
            self._load(self._read)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            self.tips, self.files, self.merges = {}, {}, {}

    def _load(self, content: bytes) -> None:
        import json

        found = json.loads(content)
        if found["version"] != VERSION:
            return
        self.tips = {oid: Tip(int(seconds), str(tree)) for oid, (seconds, tree) in found["tips"].items()}
        self.merges = {
            (one, other): Merge(int(state), list(map(str, paths)), int(count), str(digest))
            for one, other, state, paths, count, digest in found["merges"]
        }
        if found["default"] == self._default:
            self.files = {
                oid: None if paths is None else list(map(str, paths)) for oid, paths in found["files"].items()
            }

    def write(self, kept: set[str]) -> None:
        """Write what is known of these branches' tips, if that differs from the file. Never raise an error.

        Args:
            kept: The commits that were compared. Merges and files of others are dropped; times are kept, if the
                caller has left only those of existing refs.
        """
        import json

        values = {
            "version": VERSION,
            "default": self._default,
            "tips": {oid: [tip.seconds, tip.tree] for oid, tip in sorted(self.tips.items())},
            "files": {oid: paths for oid, paths in sorted(self.files.items()) if oid in kept},
            "merges": [
                [one, other, merge.state, merge.paths, merge.count, merge.digest]
                for (one, other), merge in sorted(self.merges.items(), key=lambda item: item[0])
                if merge.state != UNKNOWN and {one, other} <= kept
            ],
        }
        content = json.dumps(values, separators=(",", ":")).encode("ascii")
        if content != self._read and len(content) < BYTES_MAX:
            local_files.try_replace(self._path, content, folders=True, private=True)


class Conflict:
    """Two branches that conflict: their names, the files, and the sessions that work on them.

    Args:
        files: The first of the files.
        count: The number of all of them; by default those given.
        digest: The digest of all of them, if there are more.
    """

    def __init__(
        self,
        names: Sequence[str],
        files: Sequence[str],
        sessions: Sequence[Presence],
        count: int = 0,
        digest: str = "",
    ) -> None:
        self.names = sorted(names)
        self.files = sorted(files)
        self.sessions = list(sessions)
        self.count = count or len(self.files)
        self.digest = digest

    def recipients(self) -> list[str]:
        """Return the addresses of the sessions, sorted."""
        return sorted({one.reader for one in self.sessions})[:RECIPIENTS_MAX]

    def thread(self) -> str:
        """Return the id of the thread of all notices about this pair."""
        return keyed_id("thread", ANNOUNCER, OVERLAP, as_json(self.names))

    def key(self) -> str:
        """Return the key of the notice: a digest, and what its text says."""
        digest = keyed_id(
            OVERLAP,
            as_json([self.names, [*self.files, *([self.digest] if self.digest else [])], self.recipients()]),
        )
        shown = ", ".join(map(_shown, self.files[:FILES_SHOWN]))
        more = self.count - FILES_SHOWN
        rest = f" and {more} more files" if more > 0 else ""
        return f"{digest} {' and '.join(map(_shown, self.names))} conflict in {shown}{rest}"


def _shown(name: str) -> str:
    shown = sanitize(name)
    return shown if len(shown) <= NAME_MAX else f"{shown[: NAME_MAX - 1]}…"


def tell(store: Store, caller: Caller, conflict: Conflict) -> str | None:
    """Send the notice of a conflict, unless this clone has sent it, or its readers have one about this pair that is less than a day old.

    Returns:
        The id of the signal; None if nothing was sent, also if the caller is the only reader.

    Raises:
        UsageError: A name looks like a secret. Nothing was written.
        StoreError: The signal can't be recorded.
    """
    recipients = conflict.recipients()
    if not set(recipients) - set(caller.ids):
        return None
    fields = announcements.notice_fields(store, caller, OVERLAP, conflict.key())
    fields["recipients"] = recipients
    fields["target_agent"] = recipients[0]
    fields["thread_id"] = conflict.thread()
    fields["interrupt_class"] = "priority"
    if announcements.is_notice_recorded(store, caller, fields) or _were_told(store, conflict):
        return None
    names = {one.reader: one.name for one in conflict.sessions}
    resolved = [Resolved(address, address, "exact") for address in recipients]
    for each in resolved:
        each.display_name = names[each.address]
    announcements.record_notice(store, caller, fields, resolved)
    return fields["signal_id"]


def _were_told(store: Store, conflict: Conflict) -> bool:
    """Return whether a notice of the last day has told the same readers of this pair, perhaps of other files.

    A text of a peer that is no notice does not count: it must not keep ours back.
    """
    now = store.now()
    values = (conflict.thread(), format_at(now - DAY_MICROS), format_at(now + AHEAD_MICROS))
    recent = mailbox.signals(
        store.db(), "s.thread = ? AND l.at > ? AND l.at < ?", values, limit=announcements.LINES_MAX
    )
    return any(
        is_notice(each) and set(each["recipients"]) == set(conflict.recipients()) for each, _ in recent
    )


def tell_all(store: Store, caller: Caller, conflicts: Sequence[Conflict]) -> tuple[list[str], list[str]]:
    """Tell the sessions of conflicts, of the first `NOTICES_MAX` that are news.

    Returns:
        The ids of the signals, and sentences about those that were not sent.

    Raises:
        StoreError: A signal can't be recorded.
    """
    sent: list[str] = []
    warnings: list[str] = []
    for conflict in conflicts:
        if len(sent) >= NOTICES_MAX:
            warnings.append(
                f"At most {NOTICES_MAX} signals are sent at once; run the command again for more."
            )
            break
        try:
            found = tell(store, caller, conflict)
        except UsageError as error:
            names = " and ".join(map(_shown, conflict.names))
            warnings.append(f"Nobody was told of {names}: {error.message}")
            continue
        if found is not None:
            sent.append(found)
    if not sent and not warnings:
        warnings.append(_why_nobody(caller, conflicts))
    return sent, warnings


def _why_nobody(caller: Caller, conflicts: Sequence[Conflict]) -> str:
    """Return why nobody was told of conflicts."""
    if not conflicts:
        return "Nobody was told: no two branches are in conflict."
    if any(set(each.recipients()) - set(caller.ids) for each in conflicts):
        return "Nobody was told: all of them were told already."
    return "Nobody was told: no other session works on these branches."


class Side(Outcome):
    """One of two branches.

    Attributes:
        revision: What git calls it; None for a detached HEAD, and before the first commit.
        sessions: The names of the sessions that work on it.
    """

    def __init__(self, branch: Branch) -> None:
        self.branch = decoded(branch.name)
        self.revision = decoded(branch.revision) if branch.revision is not None else None
        self.commit = branch.tip
        self.sessions = [one.name for one in branch.sessions]


class Overlap(Outcome):
    """Two branches that change the same files.

    Attributes:
        conflicts: Whether merging their commits conflicts; None if that is not known, as for uncommitted changes.
        conflicting: The files that conflict, at most `PATHS_MAX`, sorted; `more_conflicting` counts the others.
        files: All files that both change, at most `PATHS_MAX`, sorted; `more` counts the others.
        uncommitted: Those of `files` that at least one side has not committed.
    """

    def __init__(self, one: Branch, other: Branch, shared: Shared, merge: Merge | None) -> None:
        self.sides = [Side(one), Side(other)]
        state = merge.state if merge is not None else UNKNOWN
        is_known = state < SLOW and not shared.uncommitted
        self.conflicts = state == CONFLICT if is_known or state == CONFLICT else None
        self.conflicting = [decoded(path) for path in merge.paths[:PATHS_MAX]] if merge is not None else []
        self.more_conflicting = merge.count - len(self.conflicting) if merge is not None else 0
        self.files = [decoded(path) for path in shared.paths]
        self.uncommitted = [decoded(path) for path in shared.uncommitted]
        self.more = shared.count - len(shared.paths)


class Overlaps(Outcome):
    """The pairs of branches that change the same files: those that conflict first.

    Attributes:
        compared: The number of branches that were compared.
        conflicts: The number of pairs that conflict.
        sent: The ids of the signals that told sessions of conflicts.
        warnings: What was not compared, and why.
    """

    def __init__(self, default: str | None, compared: int, found: Sequence[Overlap]) -> None:
        self.default_branch = decoded(default) if default is not None else None
        self.compared = compared
        self.conflicts = sum(each.conflicts is True for each in found)
        self.overlaps = list(found[:OVERLAPS_MAX])
        self.more = len(found) - len(self.overlaps)
        self.sent: list[str] = []
        self.warnings: list[str] = []
        self.next: list[str] = []


def decoded(text: str) -> str:
    """Return a name of git's as text that can be written: bytes that are not UTF-8 are replaced."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
