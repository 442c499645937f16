"""The checkpoint gate: nobody says that a work unit is done without a checkpoint of it, if `gitmem.checkpointGate` says so.

It is checked only where somebody says that a work unit is done, never at the end of a turn or of a session alone. Any
checkpoint of the work unit opens it, also one of another agent, or one that a hook saved.
"""

from __future__ import annotations

from ..agents import audits, lifecycle
from ..errors import GateError, UsageError
from ..signals import completion
from ..text.sanitize import is_blank, sanitize
from ..text.shell_quote import command
from . import session_checkpoints

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..agents.caller import Caller
    from ..agents.lifecycle import SessionEnded
    from ..store import Store

SETTING = "gitmem.checkpointGate"
OFF, WARN, BLOCK = MODES = ("off", "warn", "block")


def end_session(
    store: Store,
    caller: Caller,
    *,
    summary: str | None = None,
    done: bool = False,
    reason: str | None = None,
    allow_secret: bool = False,
) -> SessionEnded:
    """End the caller's session as `completion.end_session` does; with `done`, check the checkpoint gate before.

    Args:
        summary: What the session did, for others.
        done: First tell everybody that the session's work unit is done.
        reason: Pass the closed gate: append an audit record with this reason. An open gate records nothing.
        allow_secret: Accept a summary or a reason that looks like a secret.

    Raises:
        GateError: The gate is closed. Nothing was written, and nobody was told.
        UsageError: As in `completion.end_session`, `no-reason` or `bad-setting`. Nothing was written, and nobody was
            told.
        StoreError: The store could not be read or written.
    """
    if reason is not None and (not done or is_blank(reason)):
        raise UsageError(
            "Passing the checkpoint gate needs a reason, and --done. Nothing was written.",
            hint="The reason is recorded in the log, where everybody can read it.",
            code="no-reason",
        )
    warning = None
    if done and is_closed(store, unit := completion.unit_of(caller)):
        missing = f"{sanitize(unit)} has no checkpoint"
        if reason is not None:
            lifecycle.end_line(store, caller, summary, allow_secret=allow_secret)  # refuses before the audit
            audit = audits.prepare(
                store, caller, audits.CHECKPOINT_GATE, "no checkpoint", reason, wu=unit, allow_secret=allow_secret
            )  # fmt: skip
            store.record([audit.line], audit.message)
            warning = f"{missing}; the reason is recorded ({audit.id})."
        elif _mode(store) == BLOCK:
            raise _refusal(missing, unit)
        else:
            warning = f"{missing}: {command('gitmem', 'mem', 'checkpoint', 'what is done', '--wu', unit)}"
    ended = completion.end_session(store, caller, summary=summary, done=done, allow_secret=allow_secret)
    ended.remark = " ".join(filter(None, (ended.remark, warning))) or None
    return ended


def is_closed(store: Store, unit: str) -> bool:
    """Return whether the gate is on, and the work unit has no checkpoint.

    Raises:
        UsageError: `bad-setting`. Nothing was written.
    """
    if _mode(store) == OFF:
        return False
    written = session_checkpoints.last_checkpoint(store, None, unit, unit)
    return written is None and not session_checkpoints.automatic_ids(store, None, unit)


def _mode(store: Store) -> str:
    mode = store.settings().get(SETTING.lower(), OFF).lower()
    if mode not in MODES:
        raise UsageError(
            f"Invalid {SETTING}: {mode!r}; valid are {', '.join(MODES)}. Nothing was written.",
            code="bad-setting",
            next=[f"git config {SETTING} {OFF}"],
        )
    return mode


def _refusal(missing: str, unit: str) -> GateError:
    checkpoint = ["gitmem", "mem", "checkpoint", "what is done", "--wu", unit]
    return GateError(
        f"{missing}, and {SETTING} is {BLOCK}. Nothing was written, and nobody was told.",
        hint="A person can pass the gate with --allow-no-checkpoint --reason 'why', which is recorded.",
        code="no-checkpoint",
        next=[command(*checkpoint), "gitmem session end --done"],
    )
