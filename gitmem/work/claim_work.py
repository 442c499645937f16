"""Claim paths, renew, release and hand over claims; list them, and check paths against them."""

from __future__ import annotations

import os

from ..agents import audits, delivery, edited_paths, presence
from ..agents.delivery import delivery_lock
from ..commit_message import SUBJECT_MAX, cut, sanitize
from ..errors import GateError, UsageError
from ..log.lines import CommitMessage, format_at
from ..order import claim as claim_fold
from ..order.claim import LEASE_MAX_MICROS
from ..outcome import Struct, command, operands
from ..records.ids import unit_key
from . import claims, edit_guard, stored_tasks, tables, task_rules
from .claims import (
    BEHIND,
    EXCLUSIVE,
    LISTED,
    PERHAPS_RENEWED,
    ClaimChange,
    ClaimCheck,
    ClaimPage,
    EditRow,
    StandingClaim,
    paths_text,
    text_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Any

    from ..agents.caller import Caller
    from ..order import claim
    from ..store import Store


VISITED_MAX = 20_000  # files; a larger work tree is not searched further


def list_claims(
    store: Store, caller: Caller | None = None, *, mine: bool = False, limit: int = 50, edited: bool = False
) -> ClaimPage:
    """Return the claims that stand now. Only those who have some are told how to release them.

    Args:
        store: The store.
        caller: Who asks, if known.
        mine: Whether to return only the caller's.
        limit: The number of claims.
        edited: Whether to list what sessions of this clone change without a claim, too.
    """
    every = claims.standing(store)
    own = [each for each in every if caller is not None and each.is_of(caller.ids)]
    page = ClaimPage(own if mine else every, limit, own)
    page.edits = unclaimed_edits(store, every, caller if mine else None) if edited else []
    return page


def check_paths(store: Store, caller: Caller | None, paths: Sequence[str]) -> ClaimCheck:
    """Return who else claims some of these paths, which may be patterns.

    Raises:
        UsageError: A path is invalid.
    """
    from ..memory import anchors

    wanted = anchors.validate_paths(paths) or [claims.DEEP]
    patterns = [claims.PathPattern(each) for each in wanted]
    found = [
        each
        for each in claims.standing(store)
        if not (caller is not None and each.is_of(caller.ids)) and claims.may_overlap(patterns, each.patterns)
    ]
    answer = ClaimCheck(wanted, found)
    edits = unclaimed_edits(store, [], covered_by=patterns)
    answer.edits = [each for each in edits if caller is None or each.session_id != caller.session_id]
    return answer


def unclaimed_edits(
    store: Store,
    known: Sequence[StandingClaim],
    caller: Caller | None = None,
    *,
    covered_by: Sequence[claims.PathPattern] | None = None,
) -> list[EditRow]:
    """Return what sessions of this clone had changed without committing at the end of their last turn.

    Args:
        store: The store.
        known: Claims; paths that a session has claimed by one of these are left out.
        caller: Whose changes; None for all.
        covered_by: Patterns, one of which must cover a path; None for all paths.
    """
    found = []
    for session_id, paths in edited_paths.by_session(store).items():
        if caller is not None and session_id != caller.session_id:
            continue
        own = [each for each in known if each.claim.owner[1] == session_id]
        paths = [path for path in paths if not any(each.covers(path) for each in own)]
        if covered_by is not None:
            paths = [path for path in paths if any(each.matches(path) for each in covered_by)]
        one = presence.get(store, session_id) if paths else None
        if one is not None:
            first = paths[:LISTED]
            found.append(EditRow(session_id, one.name, one.worktree, first, len(paths) - len(first)))
    return found


def is_missing(top: str, pattern: str) -> bool:
    """Return whether a pattern covers nothing in a work tree. False if that would take long to find out."""
    if not claims.is_pattern(pattern):
        return not os.path.lexists(os.path.join(top, pattern))
    prepared = claims.PathPattern(pattern)
    visited = 0
    for folder, folders, files in os.walk(os.path.join(top, claims.fixed_part(pattern))):
        folders[:] = [each for each in folders if each != ".git"]
        below = os.path.relpath(folder, top).replace(os.sep, "/")
        for name in (*files, *folders):
            visited += 1
            if visited > VISITED_MAX or prepared.matches(name if below == "." else f"{below}/{name}"):
                return False
    return True


HOUR = 3600 * 1_000_000
AFTER_MAX = 64  # claims that a claim names as seen
LOCK = "path claims"
LOCK_WAIT_SECONDS = 3.0
PREFIX, PREFIX_MIN = "claim-", 4

SHOWN = 5  # claims that are passed


def claim_paths(
    store: Store,
    caller: Caller,
    paths: Sequence[str],
    *,
    lease: int = HOUR,
    shared: bool = False,
    wu: str | None = None,
    task_id: str | None = None,
    reason: str | None = None,
    anyway: str | None = None,
) -> ClaimChange:
    """Claim paths, so that others see who is about to change them. Claiming the same paths again renews the claim.

    Args:
        paths: From the top of the work tree, with `*`, `?` and `**`; a folder covers its content.
        lease: For how long, in microseconds: at most 24 hours.
        shared: Whether others may claim the paths as shared, too.
        wu: The work unit; by default that of the task, else that of the caller's session. Empty for none.
        task_id: The task that it belongs to and ends with; by default the one open task that the caller's session has, if it
            has exactly one, and not of another work unit. Empty for none.
        anyway: The reason for claiming what others have claimed; an audit records it.

    Raises:
        GateError: Somebody else has claimed some of them. Nothing was written.
        UsageError: A path, the time or the reason is invalid (also RecordError, SecretError). Nothing was written.
        StoreError: It can't be recorded.
    """
    patterns = _checked(paths)
    _check_lease(lease)
    with delivery_lock(store, LOCK, wait_seconds=LOCK_WAIT_SECONDS):
        known = claims.standing(store)
        same = next((each for each in known if _is_same(each, caller, patterns, shared)), None)
        until = format_at(store.now() + lease)
        if same is not None:
            return _renewed(store, caller, same, until)
        named = _only_task(store, caller, caller.wu_id if wu is None else wu) if task_id is None else task_id
        unit = task_rules.unit_of(store.db(), named) or caller.wu_id if wu is None else wu
        new: Any = {
            "claim_id": store.new_id("claim"), "paths": patterns, "mode": "shared" if shared else EXCLUSIVE, "until": until,
            "reason": reason, "task_id": named or None, "workspace_id": caller.workspace, "wu_id": unit or None,
        }  # fmt: skip
        by = {"sender_identity": caller.reader, "sender_session": caller.session_id}
        folded = claim_fold.FoldedClaim({"at": format_at(store.now()), **by, **new}, b"")  # type: ignore[typeddict-item]
        wanted = StandingClaim(folded, is_over=False, is_here=True)
        overlapping = [each for each in known if claims.may_overlap(wanted.patterns, each.patterns)]
        overlapping.sort(key=lambda each: each.rank)
        others = [each for each in overlapping if claims.are_in_conflict(wanted, each)]
        first = [each for each in others if each.status != PERHAPS_RENEWED and each.status != BEHIND]
        audit = _check_others(store, caller, first, patterns, anyway)
        new["after"] = [each.id for each in overlapping if not each.is_over][:AFTER_MAX]
        change = _write(store, caller, "claim", new, f"claims {paths_text(patterns)}", audit=audit, **new)
    top = store.repo.worktree
    missing = [each for each in patterns if top is not None and is_missing(top, each)]
    change.warnings = [
        *filter(None, [caller.remark]),
        *(f"{text_of(each)}: passed." for each in first[:SHOWN]),
        *(f"{text_of(each)}: {PERHAPS_RENEWED}. Ask {each.who} before you begin." for each in others if each.is_over),
        *([f"Nothing matches yet: {paths_text(missing)}."] if missing else []),
        *edit_guard.edits_of_answer(store, caller, change.claim_id),
    ]  # fmt: skip
    return change


def release(
    store: Store, caller: Caller, named: Sequence[str] = (), *, reason: str | None = None
) -> list[ClaimChange]:
    """Release claims of the caller's agent: those with these ids or paths, otherwise all of the caller's session.

    Args:
        reason: Why, for everybody to read; with it, one id may be of somebody else's claim, of which an audit tells then.

    Raises:
        UsageError: An id or path is unknown, ambiguous or of somebody else's claim, or a claim has further paths. Nothing was
            written.
        StoreError: A release can't be recorded.
    """
    edit_guard.check_reason("--reason", reason)
    known = claims.standing(store)
    own = [each for each in known if each.claim.owner[0] == caller.reader]
    wanted = {each.id: each for each in own if each.claim.owner[1] == caller.session_id}
    if named:
        # A path names the claim of this session, else of this agent, else of anybody.
        paths = [_checked([each])[0] for each in named if not each.startswith(PREFIX)]
        by_path = [_named([*wanted.values(), *own, *known], each) for each in paths]
        by_id = [_named(known, each) for each in named if each.startswith(PREFIX)]
        for each in by_path:
            _refuse_part(each, paths)
        wanted = {each.id: each for each in (*by_id, *by_path)}
        may_be_others = reason is not None and len(named) == len(by_id) == 1
        for each in wanted.values() if not may_be_others else ():
            if each not in own:
                raise UsageError(
                    f"{each.id} is {each.who}'s claim. Nothing was written.",
                    hint="Releasing somebody else's claim needs a reason, which is recorded.",
                    code="not-your-claim",
                    next=[command("gitmem", "claim", "release", each.id, "--reason", "why")],
                )
    return [_released(store, caller, each, reason) for each in wanted.values()]


def _refuse_part(found: StandingClaim, paths: Sequence[str]) -> None:
    """Raise UsageError if a claim has paths beside these: it is released as a whole."""
    left = [path for path in found.claim.record["paths"] if path not in paths]
    if left:
        raise UsageError(
            f"{found.id} also covers {paths_text(left)}. Nothing was written.",
            hint="A claim is released as a whole: name all of its paths, or its id.",
            code="part-of-claim",
            next=[command("gitmem", "claim", "release", found.id)],
        )


def _checked(paths: Sequence[str]) -> list[str]:
    """Return the paths in their stored form.

    Raises:
        UsageError: There are none, too many, or one of them is invalid.
    """
    from ..memory import anchors

    if not all(each.strip() for each in paths):
        raise UsageError(
            "Empty path. Nothing was written.", hint="`.` is the whole work tree.", code="bad-path"
        )
    found = anchors.validate_paths(paths)
    if not found and any(each in (".", "./") for each in paths):
        found = [claims.DEEP]
    if not found:
        raise UsageError(
            "Missing path to claim. Nothing was written.", code="no-path", next=["gitmem claim list"]
        )
    long = next((each for each in found if len(each) > claims.LENGTH_MAX), None)
    if long is not None:
        raise UsageError(
            f"Path too long: {len(long)} characters; the maximum is {claims.LENGTH_MAX}. Nothing was written.",
            code="bad-path",
        )
    return found


def _only_task(store: Store, caller: Caller, wu: str | None) -> str | None:
    """Return the one open task that the caller's session has, unless the claim is of another work unit."""
    task_id = task_rules.only_held(store.db(), caller)
    theirs = unit_key(task_rules.unit_of(store.db(), task_id))
    return None if wu and theirs and unit_key(wu) != theirs else task_id


def _check_lease(lease: int) -> None:
    if not 0 < lease <= claim_fold.LEASE_MAX_MICROS:
        hours = claim_fold.LEASE_MAX_MICROS // HOUR
        raise UsageError(
            f"Invalid time of a claim: {lease / 1_000_000:g}s; it lasts more than 0 and at most {hours}h. Nothing was written.",
            hint="It is renewed while your session is at work.",
            code="bad-duration",
        )


def _is_same(each: StandingClaim, caller: Caller, patterns: Sequence[str], shared: bool) -> bool:
    record = each.claim.record
    return (
        each.claim.owner == (caller.reader, caller.session_id)
        and sorted(record["paths"]) == sorted(patterns)
        and (record["mode"] != EXCLUSIVE) is shared
    )


def _line(
    store: Store, caller: Caller, event: str, claim: Mapping[str, Any], *, new_text: bool = False, **more: Any
) -> tuple[str, bytes]:
    """Return the line of an event of a claim.

    Args:
        claim: What each event says again: id, paths and mode.
        new_text: Whether texts have to be checked for secrets: they are not those of an earlier line.
        more: Further fields.
    """
    fields: Any = {
        **more, **{name: claim[name] for name in ("claim_id", "paths", "mode")}, "event": event,
        "sender_identity": caller.reader, "sender_session": caller.session_id, "sender_name": caller.name,
    }  # fmt: skip
    return store.line("claim", fields, allow_secret=not new_text)


def _renewed(store: Store, caller: Caller, found: StandingClaim, until: str) -> ClaimChange:
    until = max(until, format_at(found.claim.until))
    change = _write(store, caller, "renew", found.claim.record, "renews a claim", until=until)
    change.warnings = [f"{text_of(each)}: contested." for each in found.against]
    return change


def _released(store: Store, caller: Caller, found: StandingClaim, reason: str | None) -> ClaimChange:
    record = found.claim.record
    audit = None
    if found.claim.owner[0] != caller.reader and reason is not None:
        audit = edit_guard.audit_of(store, caller, audits.CLAIM_RELEASE, [found], reason, record.get("wu_id"))
    what = f"releases {paths_text(record['paths'])}"
    return _write(store, caller, "release", record, what, audit=audit, reason=reason)


def _write(
    store: Store,
    caller: Caller,
    event: str,
    claim: Mapping[str, Any],
    what: str,
    *,
    audit: audits.Audit | None = None,
    **more: Any,
) -> ClaimChange:
    """Record an event of a claim, and with it the audit that allows it; return the answer.

    Args:
        what: The subject of the commit, after the caller's name.
        more: Further fields of the event.
    """
    lines = [_line(store, caller, event, claim, new_text=True, **more), *caller.keepalive(store)]
    message = CommitMessage(
        caller.author,
        cut(sanitize(f"{caller.name or caller.reader} {what}"), SUBJECT_MAX),
        sanitize(more.get("reason") or ""),
        [(key, sanitize(value)) for key, value in caller.trailers()],
    )
    caller.touch(store)
    if audit is not None:
        lines.append(audit.line)
        message = audit.message
    message.trailers.insert(0, ("Claim", claim["claim_id"]))
    is_over = event == "release"
    return ClaimChange(
        claim_id=claim["claim_id"],
        event=event,
        until=more.get("until"),
        paths=list(claim["paths"]),
        task_id=None if is_over else claim.get("task_id"),
        commit=store.record(lines, message).commit,
        audit_id=audit.id if audit is not None else None,
        next=["gitmem claim list" if is_over else command("gitmem", "claim", "release", claim["claim_id"])],
    )


def _named(known: Sequence[StandingClaim], text: str) -> StandingClaim:
    """Return the claim that an id or its beginning names, or the first one that names a path as it was claimed."""
    if text.startswith(PREFIX):
        is_long = len(text) >= len(PREFIX) + PREFIX_MIN
        found = [each for each in known if each.id == text or (is_long and each.id.startswith(text))]
    else:
        found = [each for each in known if text in each.claim.record["paths"]][:1]
    if len(found) == 1:
        return found[0]
    raise UsageError(
        f"{'Ambiguous' if found else 'Unknown or ended'} claim: {sanitize(text)[:80]}. Nothing was written.",
        hint="Name a path as it was claimed, or the id of the claim.",
        code="ambiguous-claim" if found else "unknown-claim",
        suggestions=[each.id for each in found[:4]],
        next=["gitmem claim list"],
    )


def _check_others(
    store: Store, caller: Caller, others: Sequence[StandingClaim], paths: Sequence[str], anyway: str | None
) -> audits.Audit | None:
    """Refuse a claim on what others have claimed, or return the audit of the reason, which is to be recorded with it.

    Args:
        others: Their claims, those known longest first.
        paths: What is to be claimed.
        anyway: The reason, if there is one.

    Returns:
        The audit; None if nobody else has claimed anything.

    Raises:
        GateError: There is no reason to pass them. Nothing was written.
        UsageError: The reason is empty or invalid. Nothing was written.
    """
    edit_guard.check_reason("--anyway", anyway)
    if not others:
        return None
    if anyway is not None:
        return edit_guard.audit_of(store, caller, audits.CLAIM, others, anyway, caller.wu_id)
    more = f", and {len(others) - 1} more" if len(others) > 1 else ""
    ask = f"May I change {paths_text(paths)}?"
    raise GateError(
        f"Already claimed: {text_of(others[0])}{more}. Nothing was written.",
        hint=f"Ask {sanitize(others[0].who)}, wait, or claim other paths.",
        code="claimed",
        next=[
            command("gitmem", "signal", ask, "--to", others[0].claim.owner[0]),
            "gitmem claim list",
            command("gitmem", "claim", "paths", *operands(paths), "--anyway", "why"),
        ],
    )


class MovedClaims(Struct):
    """The lines that move claims.

    Attributes:
        moved: The old and the new id, the paths, the end and the mode of each claim that moves.
        kept: The id of each that does not, and why.
    """

    lines: list[tuple[str, bytes]] = []
    moved: list[tuple[str, str, Sequence[str], int, str]] = []
    kept: list[tuple[str, str]] = []


def move_claims(
    store: Store, caller: Caller, owner: tuple[str, str | None], claim_ids: Iterable[str], task_id: str
) -> MovedClaims:
    """Return the lines with which a caller takes over claims of an owner. Hold the lock of claims until they are recorded.

    A claim moves also if its session has ended since, and not if it was released, is over, is of somebody else, or if somebody else
    claims its paths now.

    Args:
        owner: Identity and session of the present owner.
        task_id: The task by which it gives them, named in the release.

    Raises:
        RecordError: A value is invalid. Nothing was written.
    """
    found = MovedClaims()
    known = claims.standing(store)
    for claim_id in claim_ids:
        claim = tables.folded_claim(store.db(), claim_id)
        if claim is None:
            found.kept.append((claim_id, "is not in this log"))
        elif why := why_not_moved(
            store,
            claim.owner,
            owner,
            claim.until,
            claim.record.get("task_id"),
            is_released=claim.released is not None,
        ):
            found.kept.append((claim_id, why))
        elif other := _in_the_way(claim, known, caller):
            found.kept.append((claim_id, f"is lost: {text_of(other)}"))
        else:
            _add(store, caller, claim, task_id, found)
    return found


def reason_of_move(task_id: str) -> str:
    """Return the reason of a release by which a claim moves."""
    return f"handed over by {task_id}"


def why_not_moved(
    store: Store,
    owner: tuple[str, str | None],
    giver: tuple[str, str | None],
    until: int,
    task_id: str | None,
    *,
    is_released: bool,
) -> str | None:
    """Return why a claim is not a giver's to hand over, or None if it is. It is also if its session has ended."""
    if owner != giver:
        return "is not the giver's"
    if is_released:
        return "was released"
    if until <= store.now():
        return "has ended"
    task = stored_tasks.row_of(store.db(), task_id, "decided_by") if task_id else None
    return "has ended with its task" if task is not None and task[0] is not None else None


def _in_the_way(
    claim: claim.FoldedClaim, known: Collection[StandingClaim], caller: Caller
) -> StandingClaim | None:
    """Return a claim of a third agent on the same paths, if this one does not stand: its session has ended; None without one."""
    if any(each.id == claim.record["claim_id"] for each in known):
        return None  # whatever is in its way stays so
    wanted = StandingClaim(claim, is_over=False, is_here=True)
    others = (
        each for each in known if each.status not in (PERHAPS_RENEWED, BEHIND) and not each.is_of(caller.ids)
    )
    return next((each for each in others if claims.are_in_conflict(wanted, each)), None)


def _add(store: Store, caller: Caller, claim: claim.FoldedClaim, task_id: str, found: MovedClaims) -> None:
    """Add the two lines. The new claim has seen what the old one had: claims that contested the old one contest it."""
    old = claim.record
    new: Any = {
        "claim_id": store.new_id("claim"), "paths": list(old["paths"]), "mode": old["mode"], "until": format_at(claim.until),
        "reason": old.get("reason"), "task_id": old.get("task_id"), "wu_id": old.get("wu_id"), "workspace_id": caller.workspace,
        "after": [old["claim_id"], *sorted(claim.after)][:AFTER_MAX],
    }  # fmt: skip
    found.lines.append(_line(store, caller, "release", old, reason=reason_of_move(task_id)))
    found.lines.append(_line(store, caller, "claim", new, **new))
    found.moved.append((old["claim_id"], new["claim_id"], new["paths"], claim.until, old["mode"]))


def renew_due(store: Store, caller: Caller) -> int:
    """Renew the caller's claims of which half the lease is over, for the same time. It waits for the next commit.

    Returns:
        The number of renewed claims.

    Raises:
        StoreError: It can't be recorded.
    """
    now = store.now()
    own = (caller.reader, caller.session_id)
    lines = []
    for each in claims.standing(store):
        folded = each.claim
        if folded.owner != own or each.is_over or (folded.renewed + folded.until) // 2 > now:
            continue
        lease = min(folded.until - folded.renewed, LEASE_MAX_MICROS)
        lines.append(_line(store, caller, "renew", folded.record, until=format_at(now + lease)))
    if lines:
        message = CommitMessage(
            caller.author, f"{caller.name or caller.reader} renews claims", "", caller.trailers()
        )
        store.record(lines, message, deferred=True)
    return len(lines)


def at_command(store: Store, caller: Caller) -> list[str]:
    """Do at a session's command or hook what is due: renew its claims, and return what it has to be told. Never raises."""
    state, session = store.repo.state, caller.session_id or ""
    try:
        if delivery.renews(state, session, store.now()):
            edit_guard.postpone(store, session)
            renew_due(store, caller)
            edit_guard.update(store)
        return delivery.take_notices(state, session)
    except Exception:
        return []
