"""The guard: check whether claims of other agents cover paths that the caller changes."""

from __future__ import annotations

import os

from .. import local_files
from ..agents import audits, delivery, edited_paths, presence
from ..commit_message import cut
from ..errors import UsageError
from ..log.lines import format_at
from ..outcome import Outcome, Struct, command
from ..settings import BLOCK, GUARD, OFF, WARN
from ..text.digests import sha256
from ..text.sanitize import first_of, is_blank, minute, sanitize_for_model
from . import claim_notices, claims, path_patterns
from .claims import ClaimRow, paths_text, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..agents.caller import Caller
    from ..agents.edited_paths import EditedPaths
    from ..store import Store
    from .claims import StandingClaim


PATHS_MAX = 10_000  # paths that one check compares; a commit of more is not checked further
STEPS_MAX = 400_000  # of matches in one check
CLAIMS_SHOWN = 20


class Guard(Outcome):
    """Whether changes may go on.

    Attributes:
        open: Whether no claim blocks them.
        blocks: The claims that do: this clone had seen them before the first change of the paths.
        warns: Other claims on the paths: contested, perhaps renewed, or seen after that change.
        audit_id: The audit of passing the guard.
    """

    def __init__(self, blocks: Sequence[StandingClaim], warns: Sequence[StandingClaim]) -> None:
        self.open = not blocks
        self.blocks = [ClaimRow(each) for each in blocks]
        self.warns = [ClaimRow(each) for each in warns]
        self.audit_id: str | None = None
        self.warnings: list[str] = []
        self.next: list[str] = []

    @property
    def remarks(self) -> list[str]:
        """The warnings that are not about one claim."""
        return self.warnings[min(CLAIMS_SHOWN, len(self.blocks) + len(self.warns)) :]


def check_guard(
    store: Store,
    callers: Sequence[Caller],
    paths: Sequence[str],
    *,
    mode: str = BLOCK,
    anyway: str | None = None,
    before_edit: bool = False,
) -> Guard:
    """Return whether callers may change paths from the top of the work tree.

    Args:
        callers: Who may be changing them: their claims are not in the way.
        mode: `warn` lets claims that would block only warn; `off` checks nothing.
        anyway: The reason for passing the guard; it is recorded if a claim blocks.
        before_edit: Whether the paths are about to be changed, not changed already.

    Raises:
        UsageError: The reason is empty or invalid. Nothing was written.
        StoreError: The audit can't be recorded.
    """
    _check_reason(anyway)
    if mode == OFF:
        guard = Guard([], [])
        guard.warnings = [f"`git config {GUARD.key}` is off: claims are not checked."]
        return guard
    addresses = {each for caller in callers for each in caller.ids}
    blocks, warns = [], []
    blocked: dict[str, None] = {}  # a path of each claim that blocks
    passed = _passed(store, callers)
    budget = path_patterns.Budget(STEPS_MAX)
    given = [(each, path_patterns.normal(each)) for each in paths[:PATHS_MAX]]
    found = claims.standing(store)
    others = [
        each
        for each in found
        if not each.is_of(addresses)
        and each.claim.record["mode"] == claims.EXCLUSIVE
        and each.id not in passed
    ]
    for claim in sorted(others, key=lambda each: each.weight):
        touched = list(claim.touched(given, budget))
        if not touched:
            continue
        is_known = claim.status == claims.HELD and not _of_same_task(claim, callers, found)
        if is_known and _was_changed_after(store, touched, claim, before_edit=before_edit):
            blocks.append(claim)
            blocked[touched[0]] = None
        else:
            warns.append(claim)
    if mode == WARN:
        blocks, warns = [], [*blocks, *warns]
    guard = Guard(blocks, warns)
    guard.warnings = _passed_before(guard, [each for each in found if each.id in passed], given, budget)
    if blocks and anyway is not None:
        guard.audit_id = _pass(store, callers[0], blocks, anyway)
        guard.open = True
        delivery.tell_once(store, lambda: claim_notices.owner_news(store))
    if blocks and not guard.open:
        guard.next = [
            command("gitmem", "signal", "May I commit?", "--to", blocks[0].claim.owner[0]),
            command("gitmem", "gate", "--paths", *list(blocked)[:CLAIMS_SHOWN], "--anyway", "why"),
        ]
    guard.warnings += [text_of(each) for each in (*blocks, *warns)][:CLAIMS_SHOWN]
    if problem := GUARD.problem(store.settings()):
        guard.warnings.append(f"{problem} The default applies.")
    if budget.is_spent or len(paths) > PATHS_MAX:
        guard.warnings.append("Not all paths were compared with all claims: there are too many.")
    return guard


def _pass(store: Store, caller: Caller, blocks: Sequence[StandingClaim], reason: str) -> str:
    """Record that a caller passes claims, and why; return the audit's id."""
    named = ", ".join(each.id for each in blocks[:20])
    what = f"{blocks[0].who}'s claim on {paths_text(blocks[0].claim.record['paths'])}"
    audit = audits.prepare(store, caller, audits.CLAIM, what, f"{reason} ({named})", wu=caller.wu_id)
    store.record([audit.line], audit.message)
    return audit.id


def _check_reason(anyway: str | None) -> None:
    if anyway is not None and is_blank(anyway):
        raise UsageError(
            "--anyway is empty. Nothing was written.",
            hint="It takes the reason, which is recorded in the log, where everybody can read it.",
            code="no-reason",
        )


def _passed_before(
    guard: Guard,
    passed: Sequence[StandingClaim],
    paths: Sequence[tuple[str, str]],
    budget: path_patterns.Budget,
) -> list[str]:
    """Return a sentence about the claims that the caller has passed with a reason, if no other ones are on the paths."""
    if guard.blocks or guard.warns:
        return []
    found = [each for each in passed if any(True for _ in each.touched(paths, budget))][:CLAIMS_SHOWN]
    named = ", ".join(f"{each.who}'s {each.id}" for each in found)
    return [f"guard open: you have passed the claims on these paths: {named}"] if found else []


def _was_changed_after(
    store: Store, paths: Sequence[str], claim: StandingClaim, *, before_edit: bool
) -> bool:
    """Return whether the first change of a file came after this clone saw a claim. A file that is gone was changed now."""
    top, state = store.repo.worktree or "", store.repo.state
    seen, before = claim_notices.seen_at(state, claim.id), claim_notices.changed_before(state, claim.id, top)
    for path in paths:
        try:
            changed = seen if before_edit else os.lstat(os.path.join(top, path)).st_mtime_ns // 1000
        except OSError:
            changed = seen
        if changed >= seen and path not in before:
            return True
    return False


def _of_same_task(claim: StandingClaim, callers: Sequence[Caller], found: Sequence[StandingClaim]) -> bool:
    """Return whether a caller has claimed something for the same task, together with the claim's owner."""
    ids = {each for caller in callers for each in caller.ids}
    return any(each.is_of(ids) and claims.are_of_one_task(each, claim) for each in found)


def _passed(store: Store, callers: Sequence[Caller]) -> set[str]:
    """Return the claims that a caller has passed with a reason in the last day, by audits that were written in this clone."""
    since = format_at(store.now() - 24 * 3600 * 1_000_000)
    found: set[str] = set()
    for audit in audits.of_readers(store, [caller.reader for caller in callers], since=since):
        if audit["action"] == audits.CLAIM:
            found.update(audits.claim_ids(audit))
    return found


SHOWN_MAX = 5
TOLD = "told"  # below `edits/`: an empty file for each pair of worktrees and path
TOLD_MAX = 10_000  # files; then all are forgotten
COMPARED_MAX = 200  # common paths of two worktrees that are compared with claims


def note_overlaps(store: Store) -> int:
    """Notice what this worktree has changed, and tell sessions that edit the same paths.

    Returns:
        The number of sessions that were told.

    Raises:
        OSError: It can't be written.
        StoreError: The log can't be read.
    """
    here = edited_paths.note(store)
    if here is None:
        return 0
    told = 0
    for other in edited_paths.worktrees(store):
        common = sorted(here.paths.keys() & other.paths.keys()) if other.worktree != here.worktree else []
        if common:
            told += _tell_both(store, here, other, _unclaimed(store, common[:COMPARED_MAX]))
    return told


def _unclaimed(store: Store, paths: Sequence[str]) -> list[str]:
    """Return the paths without a claim: claims have warnings of their own."""
    found = claims.standing(store)
    return [path for path in paths if not any(each.covers(path) for each in found)]


def _tell_both(store: Store, one: EditedPaths, two: EditedPaths, paths: Sequence[str]) -> int:
    if not edited_paths.sessions_of(store, one) or not edited_paths.sessions_of(store, two):
        return 0
    new = [path for path in paths if _is_first_overlap(store.repo.state, one, two, path)]
    ours, theirs = _editors(store, one, new), _editors(store, two, new)
    for sessions, where, others in ((ours, two, theirs), (theirs, one, ours)):
        for session in sessions:
            delivery.tell(store, session, _text(store, new, where, others))
    return len(ours) + len(theirs)


def _editors(store: Store, where: EditedPaths, paths: Sequence[str]) -> list[str]:
    found = [session for path in paths for session in edited_paths.sessions_of(store, where, path)]
    return list(dict.fromkeys(found))


def _text(store: Store, paths: Sequence[str], where: EditedPaths, others: Sequence[str]) -> str:
    shown = first_of(paths, SHOWN_MAX, shown=sanitize_for_model)
    found = presence.get(store, others[0])
    who = found.name if found is not None else others[0]
    to = found.reader if found is not None else others[0]
    ask = command("gitmem", "signal", f"Do we both change {paths[0]}?", "--to", to)
    folder = os.path.basename(where.worktree)
    return (
        f"also edited, unclaimed: {shown}, by {sanitize_for_model(who)} in the worktree {sanitize_for_model(folder)}. "
        f"Agree: `{sanitize_for_model(ask)}`, or claim it."
    )


def _is_first_overlap(state: str, one: EditedPaths, two: EditedPaths, path: str) -> bool:
    """Note that two worktrees were told about a path; return False if they were before."""
    folder = edited_paths.path(state, TOLD)
    pair = "\0".join([*sorted((one.worktree, two.worktree)), path])
    name = sha256(pair.encode("utf-8", "surrogatepass")).hexdigest()[:24]
    local_files.make_dirs(folder)
    names = local_files.names_in(folder)
    for each in names if len(names) >= TOLD_MAX else ():
        local_files.remove_quietly(os.path.join(folder, each))
    try:
        os.close(local_files.open_file(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


REASON_MAX = 120
WARNED_MAX = 5_000  # files; with more nobody is warned again


class EditWarnings(Struct):
    """What to tell a session that is about to edit files.

    Attributes:
        text: The warnings, a line each; "" without one.
        is_refused: Whether `gitmem.guard` is `block` and a claim blocks the edit.
    """

    text: str = ""
    is_refused: bool = False


def warnings_of_edit(
    store: Store, caller: Caller, paths: Sequence[str], *, may_refuse: bool = True
) -> EditWarnings:
    """Return the warnings for an edit that is about to happen, or, without `may_refuse`, that has perhaps happened.

    Args:
        store: The store.
        caller: Who edits.
        paths: From the top of the work tree.
        may_refuse: Whether the client can keep the edit from happening.

    Raises:
        StoreError: The log can't be read.
    """
    mode = GUARD.value(store.settings()) or WARN
    if mode == OFF or not paths:
        return EditWarnings()
    mode = mode if may_refuse else WARN
    guard = check_guard(store, [caller], paths, mode=mode, before_edit=True)
    refused = [_line(path, each) for path, each in _touched(paths, guard.blocks)]
    if refused:
        anyway = command("gitmem", "gate", "--paths", *paths[:1], "--anyway", "why")
        last = f"Nothing was changed: gitmem.guard is block. To edit nevertheless: `{anyway}`."
        return EditWarnings("\n".join([*_cut(refused), last]), is_refused=True)
    warned = [
        _line(path, each)
        for path, each in _touched(paths, guard.warns)
        if _is_first(store.repo.state, each.claim_id, caller.session_id or "", path)
    ]
    problem = GUARD.problem(store.settings()) if warned else ""
    return EditWarnings("\n".join([*_cut(warned), *filter(None, [problem])]))


def _touched(paths: Sequence[str], found: Iterable[ClaimRow]) -> Iterator[tuple[str, ClaimRow]]:
    """Yield each path with the claims that cover it."""
    for each in found:
        patterns = path_patterns.prepared(each.paths)
        yield from ((path, each) for path in paths if any(one.matches(path) for one in patterns))


def _line(path: str, found: ClaimRow) -> str:
    who = sanitize_for_model(found.name or found.owner)
    why = f': "{cut(sanitize_for_model(found.reason), REASON_MAX)}"' if found.reason else ""
    status = "" if found.status == "held" else f" ({found.status})"
    ask = command("gitmem", "signal", f"May I change {path}?", "--to", found.owner)
    return f"{sanitize_for_model(path)}: {who} claims it until {minute(found.until)}{status}{why}. Ask first: `{sanitize_for_model(ask)}`"


def _cut(lines: Sequence[str]) -> list[str]:
    more = len(lines) - SHOWN_MAX
    return [*lines[:SHOWN_MAX], *([f"{more} more: `gitmem claim list`"] if more > 0 else [])]


def _is_first(state: str, claim_id: str, session: str, path: str) -> bool:
    """Note a warning; return False if it was noted before. Of hooks that run at once one gets True."""
    folder = claim_notices.state_path(state, claim_notices.WARNED)
    digest = sha256(f"{session}\0{path}".encode("utf-8", "surrogatepass")).hexdigest()[:24]
    try:
        local_files.make_dirs(folder)
        if len(local_files.names_in(folder)) >= WARNED_MAX:
            return False
    except OSError:
        return True  # nothing can be noted: better twice than never
    try:
        os.close(
            local_files.open_file(
                os.path.join(folder, f"{claim_id}.{digest}"), os.O_WRONLY | os.O_CREAT | os.O_EXCL
            )
        )
    except FileExistsError:
        return False
    except OSError:
        return True
    return True
