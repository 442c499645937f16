"""The guard: check whether claims of other agents cover paths that the caller changes, and what owners of claims and editors are told once."""

from __future__ import annotations

import os
import time
from functools import partial

from .. import local_files
from .. import repo as repo_module
from ..agents import audits, delivery, edited_paths, heartbeats, presence
from ..agents.heartbeats import ONLY_OWN
from ..commit_message import cut, sanitize
from ..errors import GitmemError, UsageError
from ..git.branches import TooManyFilesError, uncommitted_files
from ..index import index_file
from ..log.lines import format_at
from ..order import claim as claim_fold
from ..outcome import Outcome, Struct, command, operands
from ..settings import BLOCK, GUARD, OFF, WARN
from ..text.digests import sha256
from ..text.sanitize import first_of, is_blank, minute, sanitize_for_model
from . import claims, tables
from .claims import ClaimRow, contest_text, paths_text, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from ..agents.caller import Caller
    from ..agents.edited_paths import EditedPaths
    from ..order.claim import FoldedClaim
    from ..store import Store
    from .claims import StandingClaim


LOOKED_MAX = 50  # newest releases, and audits
OF_AUDIT_MAX = 20  # claims that an audit names
TOLD_REASON_MAX = 200


def owner_news(store: Store) -> Iterator[tuple[str, str, str]]:
    """Yield what sessions of this clone should be told once: the session, a word for what it is about, and a sentence."""
    db, now = store.index.db, store.now()
    here = heartbeats.known_sessions(store).keys()
    for claim_id in claims.released_here(db, now, LOOKED_MAX):
        claim = tables.folded_claim(db, claim_id)
        record = claim.released if claim is not None else None
        if claim is None or record is None or record["sender_identity"] == claim.owner[0]:
            continue
        if (session := claim.owner[1] or "") in here:
            who = record.get("sender_name") or record["sender_identity"]
            text = _sentence("released", who, claim, record.get("reason") or "")
            yield session, f"released/{claim_id}", text
    since = format_at(max(0, now - claim_fold.LEASE_MAX_MICROS))
    until = format_at(now + claim_fold.AHEAD_MICROS)
    for audit in audits.of_action(db, audits.CLAIM, since, until, LOOKED_MAX):
        for claim_id in audits.claim_ids(audit)[:OF_AUDIT_MAX]:
            claim = tables.folded_claim(db, claim_id)
            if claim is None or audit["sender_identity"] == claim.owner[0]:
                continue
            if (session := claim.owner[1] or "") in here:
                who = audit.get("sender_name") or audit["sender_identity"]
                about = sha256(audit["sender_identity"].encode()).hexdigest()[:12]
                reason = audit["reason"].rpartition(" (")[0]
                yield session, f"passed/{claim_id}/{about}", _sentence("passed", who, claim, reason)


def _sentence(what: str, who: str, claim: FoldedClaim, reason: str) -> str:
    shown = paths_text(claim.record["paths"])
    why = cut(sanitize(reason.replace("\n", " ")), TOLD_REASON_MAX)
    return f"{what}: {sanitize(who)} {what} your claim {claim.record['claim_id']} on {shown}: {why}"


EDITED_SHOWN = 5
FILES_MAX = 200  # changed files of one claim whose sessions are looked up


def edit_news(
    store: Store, claim: StandingClaim, changed: Sequence[tuple[str, str]]
) -> Iterator[tuple[str, str, str]]:
    """Yield what sessions of this clone should be told once: see `delivery.tell_once`.

    Args:
        store: The store.
        claim: A claim that this clone sees for the first time.
        changed: The files that it covers and that are changed and not committed, each after the top folder of its worktree.
    """
    if claim.is_over or claim.claim.record["mode"] != claims.EXCLUSIVE:
        return
    owner, claimer = claim.claim.owner
    files: dict[tuple[str, str], list[str]] = {}
    for folder, file in changed[:FILES_MAX]:
        where = edited_paths.EditedPaths(folder, 0, {}, 0)
        sessions = edited_paths.sessions_of(store, where, file)
        for session in (
            () if claimer in sessions else sessions
        ):  # else the change is perhaps the claimer's own
            files.setdefault((session, folder), []).append(file)
    editors = []
    for (session, folder), names in files.items():
        one = presence.get(store, session)
        if one is None or one.reader == owner:
            continue
        who, top = sanitize_for_model(one.name or one.reader), sanitize_for_model(os.path.basename(folder))
        editors.append(f"{_shown(names)} by {who} in the worktree {top}")
        ask = command("gitmem", "signal", f"I have changed {names[0]}. How do we go on?", "--to", owner)
        since = format_at(claim.claim.since)
        yield (
            session,
            f"claimed/{claim.id}",
            (
                f"claimed: {sanitize_for_model(claim.who)} claims {_shown(names)} since {since[:10]} {since[11:16]} UTC; you have changed "
                f"{'it' if len(names) == 1 else 'them'} since your last commit. Agree: `{sanitize_for_model(ask)}`"
            ),
        )
    if editors and claim.is_here and claimer is not None:
        more = f"; and by {len(editors) - EDITED_SHOWN} more" if len(editors) > EDITED_SHOWN else ""
        text = f"{_EDITED.format(claim.id)}{'; '.join(editors[:EDITED_SHOWN])}{more}. Agree before you change them."
        yield claimer, f"edited/{claim.id}", text


def edits_of_answer(store: Store, caller: Caller, claim_id: str) -> list[str]:
    """Return the sentence for the answer to whoever made a claim, who is not told again then."""
    store.db()  # as lines arrive, this clone sees the claim for the first time
    return delivery.drop_notices(store.repo.state, caller.session_id or "", _EDITED.format(claim_id))


_EDITED = "edited before your claim {} and not committed: "


def _shown(files: Sequence[str]) -> str:
    return first_of(files, EDITED_SHOWN, shown=sanitize_for_model)


FOLDER, CLAIMED, SEEN, DUE, WARNED = (
    "claims",
    "claimed",
    "seen",
    os.path.basename(delivery.DUE),
    "warned",
)
CHANGES_SECONDS = 1.0  # for git to list the uncommitted files of all worktrees
CHANGES_STEPS = 200_000  # of matches of these files
CHANGES_BYTES_MAX = 256 * 1024  # of one claim
AGAIN_MICROS = 60 * 1_000_000
SESSION_MICROS = 24 * 3600 * 1_000_000


def state_path(state: str, *names: str) -> str:
    """Return a path in the folder of claims."""
    return os.path.join(state, FOLDER, *names)


def update(store: Store) -> None:
    """Bring the files in line with the index. They are derived: after an error the next call repeats the work."""
    try:
        _update(store)
    except Exception:
        return


def _update(store: Store) -> None:
    db, now, state = store.index.db, store.now(), store.repo.state
    _, newest = index_file.mark(db, *heartbeats.CLAIMS_MARK)
    found = claims.standing(store, db=db)
    folder = state_path(state)
    if found or os.path.isdir(folder):
        local_files.make_dirs(folder)
        for name in (SEEN, DUE):
            local_files.make_dirs(state_path(state, name))
        local_files.make_dirs(os.path.join(state, ONLY_OWN))
        exclusive = [each for each in found if each.claim.record["mode"] == claims.EXCLUSIVE]
        local_files.mark(state_path(state, CLAIMED), bool(exclusive))
        _see(store, [each for each in found if not os.path.lexists(state_path(state, SEEN, each.id))])
        ids = {each.id for each in found}
        _keep(state_path(state, SEEN), ids)
        for name in local_files.names_in(state_path(state, WARNED)):
            if name.partition(".")[0] not in ids:
                local_files.remove_quietly(state_path(state, WARNED, name))
        _keep(os.path.join(state, ONLY_OWN), set(_only_own(store, exclusive)), create=True)
        _tell(store, [each for each in found if each.is_here])
        delivery.forget_others(store)
        delivery.tell_once(store, lambda: owner_news(store))
    ends = [each.claim.until + (claims.GRACE_MICROS if each.is_over else 0) for each in found]
    again = min([now + AGAIN_MICROS, *ends]) if found else None
    heartbeats.note_claims(db, newest, again)


WORKTREES_MAX = 50
WORKTREE_SECONDS = 10.0


class Checkout(Struct):
    """A worktree of this clone: its folder, branch, commit and uncommitted files."""

    folder: str
    branch: str | None
    head: str | None
    files: Sequence[str]


def checkouts(store: Store, remaining: Callable[[], float]) -> tuple[list[Checkout], list[str]]:
    """Return the worktrees of this clone, and a sentence about each whose uncommitted files are not known."""
    common = store.repo.common
    linked = sorted(local_files.names_in(os.path.join(common, "worktrees")))
    folders = [common, *(os.path.join(common, "worktrees", name) for name in linked)]
    found, warnings = [], []
    for git_dir in folders[:WORKTREES_MAX]:
        try:
            own = store.repo if git_dir == store.repo.git_dir else repo_module.find(common, git_dir=git_dir)
            top = own.worktree
            if top is None or top == common or not os.path.isdir(top):
                continue
            head, branch = store.git.head(git_dir)
            seconds = max(0.01, min(WORKTREE_SECONDS, remaining()))
            files = uncommitted_files(common, git_dir, top, seconds)
        except TooManyFilesError:
            warnings.append(
                f"Uncommitted files of {sanitize(top or git_dir)} were left out: there are too many."
            )
            files = []
        except GitmemError:
            files = None
        if files is None:
            warnings.append(
                f"Uncommitted files of {sanitize(git_dir)} were left out: git could not list them."
            )
            continue
        found.append(Checkout(top or "", branch, head, files))
    if len(folders) > WORKTREES_MAX:
        warnings.append(
            f"{len(folders) - WORKTREES_MAX} worktrees were left out: at most {WORKTREES_MAX} are compared."
        )
    return found, warnings


def _see(store: Store, new: Collection[StandingClaim]) -> None:
    """Note when this clone first sees claims, and which of the files that they cover have been changed before, and tell who did."""
    if not new:
        return
    until = time.monotonic() + CHANGES_SECONDS
    places, _ = checkouts(store, lambda: until - time.monotonic())
    given = [(place.folder, [(each, claims.normal(each)) for each in place.files]) for place in places]
    budget = claims.Budget(CHANGES_STEPS)
    for claim in sorted(new, key=lambda each: each.weight):
        rows = [(folder, file) for folder, files in given for file in claim.touched(files, budget)]
        delivery.tell_once(store, partial(edit_news, store, claim, rows))
        content = os.fsencode("".join(f"{folder}\0{file}\0" for folder, file in rows))
        local_files.replace(
            state_path(store.repo.state, SEEN, claim.id),
            content if len(content) <= CHANGES_BYTES_MAX else b"",
        )
        _touch(state_path(store.repo.state, SEEN, claim.id), store.now())


def _only_own(store: Store, found: Collection[StandingClaim]) -> Iterable[str]:
    """Yield the names of the git folders of worktrees whose only session has made all claims that stand."""
    worktrees: dict[str, set[str]] = {}
    for session_id, (where, at) in heartbeats.known_sessions(store).items():
        if at > store.now() - SESSION_MICROS:
            worktrees.setdefault(where, set()).add(session_id)
    for where, sessions in worktrees.items():
        name = "in-" + (where.rpartition(" ")[0] or where)
        own_only = len(sessions) == 1 and all(each.claim.owner[1] in sessions for each in found)
        if own_only and heartbeats.is_safe(name) and not repo_module.is_gone(where, store.repo.common):
            yield name


def _tell(store: Store, own: Collection[StandingClaim]) -> None:
    """Write what sessions of this clone have to be told, and when their claims are to be renewed."""
    state = store.repo.state
    due: dict[str, int] = {}
    for each in own:
        session = each.claim.owner[1] or ""
        half = (each.claim.renewed + each.claim.until) // 2
        due[session] = min(half, due.get(session, half))
        told = delivery.told(state, session)
        new = [other for other in each.against if f"{each.id}/{other.id}" not in told]
        if not new:
            continue
        line = f"contested: {contest_text(each, new[0])}. Agree with {new[0].who}."
        delivery.tell(store, session, line)
        delivery.note_told(state, session, [f"{each.id}/{other.id}" for other in new])
    names = {name: at for session, at in due.items() for name in _names(store, session)}
    _keep(state_path(state, DUE), names)
    for name, at in names.items():
        _touch(state_path(state, DUE, name), at)


def _names(store: Store, session: str) -> list[str]:
    return heartbeats.flag_names(session, heartbeats.client_of(store, session))


def postpone(store: Store, session: str) -> None:
    """Let a session try to renew its claims in a minute, not at its next hook: it tries now."""
    for name in _names(store, session):
        _touch(state_path(store.repo.state, DUE, name), store.now() + AGAIN_MICROS)


def seen_at(state: str, claim_id: str) -> int:
    """Return when this clone first saw a claim, in microseconds; 0 if that is not known."""
    return local_files.modified_ns(state_path(state, SEEN, claim_id)) // 1000


def changed_before(state: str, claim_id: str, worktree: str) -> set[str]:
    """Return the files of a worktree that were changed before this clone first saw a claim, and that it covers."""
    names = os.fsdecode(local_files.read(state_path(state, SEEN, claim_id), CHANGES_BYTES_MAX)).split("\0")
    return {file for folder, file in zip(names[::2], names[1::2], strict=False) if folder == worktree}


def _keep(folder: str, names: Collection[str], *, create: bool = False) -> None:
    """Remove the files of a folder with other names; create those that are missing."""
    for name in set(local_files.names_in(folder)) - set(names):
        local_files.remove_quietly(os.path.join(folder, name))
    for name in names if create else ():
        local_files.mark(os.path.join(folder, name))


def _touch(where: str, at: int) -> None:
    local_files.mark(where)
    local_files.utime(where, (at * 1000, at * 1000))


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
    check_reason("--anyway", anyway)
    if mode == OFF:
        guard = Guard([], [])
        guard.warnings = [f"`git config {GUARD.key}` is off: claims are not checked."]
        return guard
    blocks, warns, past = [], [], []
    blocked: dict[str, None] = {}  # a path of each claim that blocks
    passed = _passed(store, callers)
    budget = claims.Budget(STEPS_MAX)
    found = claims.standing(store)
    for claim, touched in _others(callers, found, paths, budget):
        is_known = claim.status == claims.HELD and not _of_same_task(claim, callers, found)
        if claim.id in passed:
            past.append(f"{claim.who}'s {claim.id}")
        elif is_known and _was_changed_after(store, touched, claim, before_edit=before_edit):
            blocks.append(claim)
            blocked[touched[0]] = None
        else:
            warns.append(claim)
    if mode == WARN:
        blocks, warns = [], [*blocks, *warns]
    guard = Guard(blocks, warns)
    if past and not (blocks or warns):
        named = ", ".join(past[:CLAIMS_SHOWN])
        guard.warnings = [f"guard open: you have passed the claims on these paths: {named}"]
    if blocks and anyway is not None:
        audit = audit_of(store, callers[0], audits.CLAIM, blocks, anyway, callers[0].wu_id)
        store.record([audit.line], audit.message)
        guard.audit_id, guard.open = audit.id, True
        guard.next = [command("gitmem", "show", audit.id)]
        delivery.tell_once(store, lambda: owner_news(store))
    if blocks and not guard.open:
        guard.next = [
            command("gitmem", "signal", "May I commit?", "--to", blocks[0].claim.owner[0]),
            command("gitmem", "gate", *operands(list(blocked)[:CLAIMS_SHOWN]), "--anyway", "why"),
        ]
    guard.warnings += [text_of(each) for each in (*blocks, *warns)][:CLAIMS_SHOWN]
    problem = GUARD.problem(store.settings())
    some = "Not all paths were compared with all claims: there are too many."
    guard.warnings += [f"{problem} The default applies."] if problem else []
    guard.warnings += [some] if budget.is_spent else []
    return guard


def _others(
    callers: Sequence[Caller], found: Sequence[StandingClaim], paths: Sequence[str], budget: claims.Budget
) -> Iterator[tuple[StandingClaim, list[str]]]:
    """Yield the exclusive claims of others with the paths that each covers."""
    addresses = {each for caller in callers for each in caller.ids}
    given = [(each, claims.normal(each)) for each in paths[:PATHS_MAX]]
    for claim in sorted(found, key=lambda each: each.weight):
        if not claim.is_of(addresses) and claim.claim.record["mode"] == claims.EXCLUSIVE:
            touched = list(claim.touched(given, budget))
            if touched:
                yield claim, touched
    budget.is_spent |= len(paths) > PATHS_MAX


def audit_of(
    store: Store, caller: Caller, action: str, passed: Sequence[StandingClaim], reason: str, wu: str | None
) -> audits.Audit:
    """Return the audit of what a caller does in spite of others' claims, to record with it.

    Args:
        passed: Their claims, one at least; the first ones are named.

    Raises:
        UsageError: The reason is invalid. Nothing was written.
    """
    named = ", ".join(each.id for each in passed[:OF_AUDIT_MAX])
    past = f"{passed[0].who}'s claim on {paths_text(passed[0].claim.record['paths'])}"
    return audits.prepare(store, caller, action, past, f"{reason} ({named})", wu=wu)


def check_reason(option: str, reason: str | None) -> None:
    """Raise UsageError for a reason that is given and empty."""
    if reason is not None and is_blank(reason):
        raise UsageError(
            f"{option} is empty. Nothing was written.",
            hint="It takes the reason, which is recorded in the log, where everybody can read it.",
            code="no-reason",
        )


def _was_changed_after(
    store: Store, paths: Sequence[str], claim: StandingClaim, *, before_edit: bool
) -> bool:
    """Return whether the first change of a file came after this clone saw a claim. A file that is gone was changed now."""
    top, state = store.repo.worktree or "", store.repo.state
    seen, before = seen_at(state, claim.id), changed_before(state, claim.id, top)
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
            claimed = claims.standing(store)  # claims have warnings of their own
            free = [each for each in common[:COMPARED_MAX] if not any(one.covers(each) for one in claimed)]
            told += _tell_both(store, here, other, free)
    return told


def _tell_both(store: Store, one: EditedPaths, two: EditedPaths, paths: Sequence[str]) -> int:
    if not edited_paths.sessions_of(store, one) or not edited_paths.sessions_of(store, two):
        return 0
    pair = sorted((one.worktree, two.worktree))
    told = edited_paths.path(store.repo.state, TOLD)
    new = [path for path in paths if _is_first(told, "", *pair, path)]
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


def _is_first(folder: str, begin: str, *about: str) -> bool:
    """Note that somebody was told, by an empty file; return False if that was noted before. Of hooks that run at once one gets True."""
    name = begin + sha256("\0".join(about).encode("utf-8", "surrogatepass")).hexdigest()[:24]
    try:
        local_files.make_dirs(folder)
        names = local_files.names_in(folder)
        for each in names if len(names) >= TOLD_MAX else ():
            local_files.remove_quietly(os.path.join(folder, each))
        os.close(local_files.open_file(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    except OSError as error:  # where nothing can be noted: better twice than never
        return not (isinstance(error, FileExistsError) and os.path.isdir(folder))
    return True


REASON_MAX = 120


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
        anyway = command("gitmem", "gate", *operands(paths[:1]), "--anyway", "why")
        last = f"Nothing was changed: gitmem.guard is block. To edit nevertheless: `{anyway}`."
        return EditWarnings("\n".join([*_cut(refused), last]), is_refused=True)
    noted = state_path(store.repo.state, WARNED)
    warned = [
        _line(path, each)
        for path, each in _touched(paths, guard.warns)
        if _is_first(noted, f"{each.claim_id}.", caller.session_id or "", path)
    ]
    problem = GUARD.problem(store.settings()) if warned else ""
    return EditWarnings("\n".join([*_cut(warned), *filter(None, [problem])]))


def _touched(paths: Sequence[str], found: Iterable[ClaimRow]) -> Iterator[tuple[str, ClaimRow]]:
    """Yield each path with the claims that cover it."""
    for each in found:
        patterns = claims.prepared(each.paths)
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
