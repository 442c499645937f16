"""The guard: check whether claims of other agents cover paths that the caller changes."""

from __future__ import annotations

import os

from ..agents import audits, delivery
from ..commit_message import cut, sanitize
from ..errors import UsageError
from ..log.lines import format_at
from ..outcome import Outcome, command
from ..text.sanitize import is_blank
from . import local_state, owner_notices, path_patterns, standing_claims
from .claim_answers import ClaimRow, paths_text, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..agents.caller import Caller
    from ..store import Store
    from .standing_claims import StandingClaim

SETTING = "gitmem.guard"
OFF, WARN, BLOCK = "off", "warn", "block"
PATHS_MAX = 10_000  # paths that one check compares; a commit of more is not checked further
STEPS_MAX = 400_000  # of matches in one check
CLAIMS_SHOWN, VALUE_MAX = 20, 40


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


def mode(store: Store, otherwise: str) -> str:
    """Return `gitmem.guard`: off, warn or block; `otherwise` if it is not set to one of them."""
    value = store.settings().get(SETTING, "").lower()
    return value if value in (OFF, WARN, BLOCK) else otherwise


def invalid_mode(store: Store) -> str:
    """Return a warning if `gitmem.guard` is set and is none of its values; else ""."""
    value = store.settings().get(SETTING, "")
    if value.lower() in ("", OFF, WARN, BLOCK):
        return ""
    return (
        f"Invalid `git config {SETTING}`: {cut(sanitize(value), VALUE_MAX)}; choose from {BLOCK}, {WARN}, {OFF}."
        " The default applies."
    )


def check(
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
        guard.warnings = [f"`git config {SETTING}` is off: claims are not checked."]
        return guard
    addresses = {each for caller in callers for each in caller.ids}
    blocks, warns = [], []
    blocked: dict[str, None] = {}  # a path of each claim that blocks
    passed = _passed(store, callers)
    budget = path_patterns.Budget(STEPS_MAX)
    given = [(each, path_patterns.normal(each)) for each in paths[:PATHS_MAX]]
    found = standing_claims.standing(store, forged=False)
    others = [
        each
        for each in found
        if not each.is_of(addresses)
        and each.claim.record["mode"] == standing_claims.EXCLUSIVE
        and each.id not in passed
    ]
    for claim in sorted(others, key=lambda each: each.weight):
        touched = list(claim.touched(given, budget))
        if not touched:
            continue
        is_known = claim.status == standing_claims.HELD and not _of_same_task(claim, callers, found)
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
        delivery.tell_once(store, lambda: owner_notices.news(store))
    if blocks and not guard.open:
        guard.next = [
            command("gitmem", "signal", "May I commit?", "--to", blocks[0].claim.owner[0]),
            command("gitmem", "gate", "--paths", *list(blocked)[:CLAIMS_SHOWN], "--anyway", "why"),
        ]
    guard.warnings += [text_of(each) for each in (*blocks, *warns)][:CLAIMS_SHOWN]
    if invalid := invalid_mode(store):
        guard.warnings.append(invalid)
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
    seen, before = local_state.seen_at(state, claim.id), local_state.changed_before(state, claim.id, top)
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
    return any(each.is_of(ids) and standing_claims.are_of_one_task(each, claim) for each in found)


def _passed(store: Store, callers: Sequence[Caller]) -> set[str]:
    """Return the claims that a caller has passed with a reason in the last day, by audits that were written in this clone."""
    since = format_at(store.now() - 24 * 3600 * 1_000_000)
    found: set[str] = set()
    for audit in audits.of_readers(store, [caller.reader for caller in callers], since=since):
        if audit["action"] == audits.CLAIM:
            found.update(audits.claim_ids(audit))
    return found
