"""Claim paths, renew claims and release them."""

from __future__ import annotations

from ..agents import audits
from ..agents.delivery import delivery_lock
from ..commit_message import SUBJECT_MAX, cut, sanitize
from ..errors import GateError, UsageError
from ..log.lines import CommitMessage, format_at
from ..order import claim as claim_fold
from ..outcome import command
from ..records.ids import new_id, unit_key
from ..tasks import chains, find_task
from ..text.sanitize import is_blank
from . import claim_list, claimed_edits, path_patterns, standing_claims
from .claim_answers import ClaimChange, paths_text, text_of
from .standing_claims import BEHIND, EXCLUSIVE, PERHAPS_RENEWED, StandingClaim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..agents.caller import Caller
    from ..records.record_types import ClaimFields
    from ..store import Store

HOUR = 3600 * 1_000_000
AFTER_MAX = 64  # claims that a claim names as seen
LOCK = "path claims"
LOCK_WAIT_SECONDS = 3.0
PREFIX_MIN = 4

SHOWN, NAMED = 5, 10  # claims that are passed


def claim(
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
    allow_secret: bool = False,
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
        known = standing_claims.standing(store, forged=False)
        same = next((each for each in known if _is_same(each, caller, patterns, shared)), None)
        until = format_at(store.now() + lease)
        if same is not None:
            return _renewed(store, caller, same, until)
        named = _only_task(store, caller, caller.wu_id if wu is None else wu) if task_id is None else task_id
        unit = find_task.unit_of(store.db(), named) or caller.wu_id if wu is None else wu
        fields: ClaimFields = {
            "claim_id": new_id("claim", store.random), "event": "claim", "paths": patterns,
            "mode": "shared" if shared else EXCLUSIVE, "until": until, "reason": reason,
            "task_id": named or None,
            "workspace_id": caller.workspace, "sender_identity": caller.reader, "sender_session": caller.session_id,
            "sender_name": caller.name, "wu_id": unit or None,
        }  # fmt: skip
        wanted = _unwritten(store, fields)
        overlapping = [each for each in known if path_patterns.may_overlap(wanted.patterns, each.patterns)]
        overlapping.sort(key=lambda each: each.rank)
        others = [each for each in overlapping if standing_claims.are_in_conflict(wanted, each)]
        first = [each for each in others if each.status != PERHAPS_RENEWED and each.status != BEHIND]
        audit = check(store, caller, first, patterns, anyway, allow_secret=allow_secret)
        fields["after"] = [each.id for each in overlapping if not each.is_over][:AFTER_MAX]
        commit = _record(
            store, caller, fields, f"claims {paths_text(patterns)}", audit=audit, allow_secret=allow_secret
        )
    change = ClaimChange(fields["claim_id"], "claim", until, commit)
    change.paths, change.task_id = patterns, fields["task_id"]
    change.audit_id = audit.id if audit is not None else None
    change.warnings = [
        *filter(None, [caller.remark]),
        *notes(first),
        *(f"{text_of(each)}: {PERHAPS_RENEWED}. Ask {each.who} before you begin." for each in others if each.is_over),
        *claim_list.notes(store, patterns),
        *claimed_edits.of_answer(store, caller, change.claim_id),
    ]  # fmt: skip
    change.next = [command("gitmem", "claim", "release", change.claim_id)]
    return change


def release(
    store: Store, caller: Caller, named: Sequence[str] = (), *, allow_secret: bool = False
) -> list[ClaimChange]:
    """Release claims of the caller's agent: those with these ids or paths, otherwise all of the caller's session.

    Raises:
        UsageError: An id or path is unknown, ambiguous or of somebody else's claim, or a claim has further paths. Nothing was
            written.
        StoreError: A release can't be recorded.
    """
    known = standing_claims.standing(store, forged=False)
    by_path: list[StandingClaim] = []
    own = [each for each in known if each.claim.owner[0] == caller.reader]
    wanted = [each for each in own if each.claim.owner == (caller.reader, caller.session_id)]
    paths = [_checked([each])[0] for each in named if not each.startswith("claim-")]
    if named:
        by_id = [_named(known, each) for each in named if each.startswith("claim-")]
        by_path = [_of_path([*wanted, *own, *known], each) for each in paths]
        wanted = list({each.id: each for each in (*by_id, *by_path)}.values())
    for each in wanted:
        if each not in own:
            raise UsageError(
                f"{each.id} is {each.who}'s claim. Nothing was written.",
                hint="Releasing somebody else's claim needs a reason, which is recorded.",
                code="not-your-claim",
                next=[command("gitmem", "claim", "release", "--of", each.id, "--reason", "why")],
            )
        left = [path for path in each.claim.record["paths"] if path not in paths]
        if left and each in by_path:
            raise UsageError(
                f"{each.id} also covers {paths_text(left)}. Nothing was written.",
                hint="A claim is released as a whole: name all of its paths, or its id.",
                code="part-of-claim",
                next=[command("gitmem", "claim", "release", each.id)],
            )
    return [_released(store, caller, each, None, allow_secret) for each in wanted]


def release_of(
    store: Store, caller: Caller, claim_id: str, reason: str, *, allow_secret: bool = False
) -> ClaimChange:
    """Release somebody else's claim, with a reason that everybody can read. An audit records it.

    Raises:
        UsageError: The id is unknown or ambiguous, or the reason is empty or invalid. Nothing was written.
        StoreError: It can't be recorded.
    """
    if is_blank(reason):
        raise UsageError("--reason is empty. Nothing was written.", code="no-reason")
    found = _named(standing_claims.standing(store, forged=False), claim_id)
    past = f"{found.who}'s claim on {paths_text(found.claim.record['paths'])}"
    audit = audits.prepare(
        store, caller, audits.CLAIM_RELEASE, past, f"{reason} ({found.id})", wu=found.claim.record.get("wu_id"), allow_secret=allow_secret
    )  # fmt: skip
    change = _released(store, caller, found, reason, allow_secret, audit)
    change.audit_id = audit.id
    return change


def renewal(store: Store, found: StandingClaim, until: str) -> tuple[str, bytes]:
    """Return the line that renews a claim in the name of its owner."""
    record = found.claim.record
    fields: ClaimFields = {
        "claim_id": found.id, "event": "renew", "paths": list(record["paths"]), "mode": record["mode"], "until": until,
        "sender_identity": record["sender_identity"], "sender_session": record.get("sender_session"),
        "sender_name": record.get("sender_name"),
    }  # fmt: skip
    return store.line("claim", fields, allow_secret=True)  # it has no new text


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
        found = [path_patterns.DEEP]
    if not found:
        raise UsageError(
            "Missing path to claim. Nothing was written.", code="no-path", next=["gitmem claim list"]
        )
    long = next((each for each in found if len(each) > path_patterns.LENGTH_MAX), None)
    if long is not None:
        raise UsageError(
            f"Path too long: {len(long)} characters; the maximum is {path_patterns.LENGTH_MAX}. Nothing was written.",
            code="bad-path",
        )
    return found


def _only_task(store: Store, caller: Caller, wu: str | None) -> str | None:
    """Return the one open task that the caller's session has, unless the claim is of another work unit."""
    task_id = chains.only_held(store.db(), caller)
    theirs = unit_key(find_task.unit_of(store.db(), task_id))
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


def _renewed(store: Store, caller: Caller, found: StandingClaim, until: str) -> ClaimChange:
    until = max(until, format_at(found.claim.until))
    message = CommitMessage(
        caller.author, cut(f"{sanitize(found.who)} renews a claim", SUBJECT_MAX), "", caller.trailers()
    )
    appended = store.record([renewal(store, found, until), *caller.keepalive(store)], message)
    caller.touch(store)
    change = ClaimChange(found.id, "renew", until, appended.commit)
    change.paths, change.task_id = list(found.claim.record["paths"]), found.claim.record.get("task_id")
    change.warnings = [f"{text_of(each)}: contested." for each in found.against]
    change.next = [command("gitmem", "claim", "release", change.claim_id)]
    return change


def _released(
    store: Store,
    caller: Caller,
    found: StandingClaim,
    reason: str | None,
    allow_secret: bool,
    audit: audits.Audit | None = None,
) -> ClaimChange:
    fields: ClaimFields = {
        "claim_id": found.id, "event": "release", "paths": list(found.claim.record["paths"]), "mode": found.claim.record["mode"],
        "reason": reason, "sender_identity": caller.reader, "sender_session": caller.session_id, "sender_name": caller.name,
    }  # fmt: skip
    what = f"releases {paths_text(found.claim.record['paths'])}"
    commit = _record(store, caller, fields, what, text=reason or "", audit=audit, allow_secret=allow_secret)
    change = ClaimChange(found.id, "release", None, commit)
    change.paths = list(found.claim.record["paths"])
    change.next = ["gitmem claim list"]
    return change


def _record(
    store: Store,
    caller: Caller,
    fields: ClaimFields,
    what: str,
    *,
    text: str = "",
    audit: audits.Audit | None = None,
    allow_secret: bool,
) -> str | None:
    """Append a record, and with it the audit that allows it; return their commit, if they have one yet."""
    line = store.line("claim", fields, allow_secret=allow_secret)
    message = CommitMessage(
        caller.author,
        cut(sanitize(f"{caller.name or caller.reader} {what}"), SUBJECT_MAX),
        sanitize(fields.get("reason") or text),
        [("Claim", fields["claim_id"]), *((key, sanitize(value)) for key, value in caller.trailers())],
    )
    caller.touch(store)
    lines = [line, *caller.keepalive(store)]
    if audit is not None:
        lines.append(audit.line)
        message = audit.message
        message.trailers.append(("Claim", fields["claim_id"]))
    return store.record(lines, message).commit


def _unwritten(store: Store, fields: ClaimFields) -> StandingClaim:
    """Return a claim that is about to be written, to compare it with others."""
    record: Any = {"at": format_at(store.now()), **fields}
    folded = claim_fold.FoldedClaim(record, b"")
    return StandingClaim(folded, is_over=False, is_here=True)


def _of_path(known: Sequence[StandingClaim], path: str) -> StandingClaim:
    """Return the first claim that names a path as it was claimed."""
    found = next((each for each in known if path in each.claim.record["paths"]), None)
    if found is None:
        raise UsageError(
            f"Nobody has claimed {sanitize(path)[:80]}. Nothing was written.",
            hint="Name a path as it was claimed, or the id of the claim.",
            code="unknown-claim",
            next=["gitmem claim list"],
        )
    return found


def _named(known: Sequence[StandingClaim], text: str) -> StandingClaim:
    """Return the claim that an id or its beginning names."""
    found = [
        each
        for each in known
        if each.id == text or (each.id.startswith(text) and len(text) >= len("claim-") + PREFIX_MIN)
    ]
    if len(found) == 1:
        return found[0]
    what = "Ambiguous" if found else "Unknown or ended"
    raise UsageError(
        f"{what} claim: {sanitize(text)[:80]}. Nothing was written.",
        code="ambiguous-claim" if found else "unknown-claim",
        suggestions=[each.id for each in found[:4]],
        next=["gitmem claim list"],
    )


def refuse(others: Sequence[StandingClaim], paths: Sequence[str]) -> None:
    """Raise GateError if somebody else has claimed the paths."""
    if others:
        more = f", and {len(others) - 1} more" if len(others) > 1 else ""
        raise GateError(
            f"Already claimed: {text_of(others[0])}{more}. Nothing was written.",
            hint=f"Ask {sanitize(others[0].who)}, wait, or claim other paths.",
            code="claimed",
            next=[
                command(
                    "gitmem",
                    "signal",
                    f"May I change {paths_text(paths)}?",
                    "--to",
                    others[0].claim.owner[0],
                ),
                "gitmem claim list",
                command("gitmem", "claim", "paths", *paths, "--anyway", "why"),
            ],
        )


def check(
    store: Store,
    caller: Caller,
    others: Sequence[StandingClaim],
    paths: Sequence[str],
    anyway: str | None,
    *,
    allow_secret: bool,
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
    if anyway is None:
        refuse(others, paths)
        return None
    if is_blank(anyway):
        raise UsageError("--anyway is empty. Nothing was written.", code="no-reason")
    if not others:
        return None
    named = ", ".join(each.id for each in others[:NAMED])
    past = f"{others[0].who}'s claim on {paths_text(others[0].claim.record['paths'])}"
    return audits.prepare(
        store, caller, audits.CLAIM, past, f"{anyway} ({named})", wu=caller.wu_id, allow_secret=allow_secret
    )


def notes(others: Sequence[StandingClaim]) -> list[str]:
    """Return the first claims that were passed, and how many more there were."""
    more = [f"{len(others) - SHOWN} more claims: passed."] if others[SHOWN:] else []
    return [*(f"{text_of(each)}: passed." for each in others[:SHOWN]), *more]
