"""`gitmem gate`."""

from __future__ import annotations

from gitmem.errors import UsageError

from ..environment import Environment
from ..render import output, signals
from ..render.output import with_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Annotated

    import typer

    from gitmem.agents.work_units import GateUnchecked
    from gitmem.signals.gate import Gate

    from .options import AllowSecret, Initiative, NewWu, Wu

CLOSED = 1


def gate(
    at: Environment,
    wu: Wu = None,
    initiative: Initiative = None,
    allow_unread_signals: Annotated[
        bool,
        typer.Option(
            "--allow-unread-signals",
            help="Pass the gate despite unread signals; needs --reason, and is recorded.",
        ),
    ] = False,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help="Reason for --allow-unread-signals.")
    ] = None,
    pre_push: Annotated[
        bool,
        typer.Option(
            "--pre-push",
            help="For git's pre-push hook: check the work unit of the branch, or of `gitmem.wu`.",
        ),
    ] = False,
    paths: Annotated[
        list[str] | None,
        typer.Option("--paths", metavar="PATH", help="Check claims on this path instead. May be repeated."),
    ] = None,
    anyway: Annotated[
        str | None, typer.Option("--anyway", metavar="REASON", help="Pass claims on --paths; it is recorded.")
    ] = None,
    pre_commit: Annotated[
        bool,
        typer.Option(
            "--pre-commit", help="For git's pre-commit hook: check claims on the paths on standard input."
        ),
    ] = False,
    new: NewWu = False,
    allow_secret: AllowSecret = False,
) -> int:
    """Exit 1 while signals to you on a work unit are unread or need your AGREE or REJECT, or others claim --paths."""
    if paths or anyway is not None or pre_commit:
        from .claim import guard

        return guard(at, paths or [], anyway, pre_commit=pre_commit)
    from gitmem.signals import gate as operation

    if allow_unread_signals != (reason is not None):
        raise UsageError(
            "--allow-unread-signals and --reason must be given together. Nothing was written.",
            hint="The reason is recorded in the log, where everybody can read it.",
            code="no-reason",
        )
    if pre_push:
        if wu or initiative or reason is not None:
            raise UsageError(
                "--pre-push takes no work unit and no reason: it uses the work unit of the branch.",
                code="usage",
            )
        return _before_push(at)
    at.store().asks_once = reason is None
    found = operation.check(
        at.store(),
        at.caller(),
        wu=wu,
        initiative=initiative,
        reason=reason,
        new=new,
        allow_secret=allow_secret,
    )
    _print_answer(at, found)
    return 0 if found.open else CLOSED


def _before_push(at: Environment) -> int:
    """Check the gate for git's pre-push hook, which passes no options.

    Print nothing if the gate is open. A gate that the caller has passed with a reason counts as open. Report what could
    not be checked.
    """
    from gitmem.agents import work_units
    from gitmem.agents.caller import pushing
    from gitmem.signals import gate as operation

    store = at.store()
    status = 0
    units = work_units.of_checkout(store, store.settings().get(work_units.SETTING))
    if not units:
        _print_unchecked(at, work_units.unchecked(store))
    for wu in units:
        callers = pushing(store, at.who())
        if not callers:
            _print_unchecked(at, work_units.unknown_pusher(wu))
        for caller in callers:
            found = operation.check(store, caller, wu=wu, push=True)
            if not found.open:
                status = CLOSED
                found.next = [*found.next[:2], operation.pass_command(wu)]
            if not found.open or found.warnings:
                _print_answer(at, found, ["--as", caller.reader] if len(callers) > 1 else [])
    return status


def _print_unchecked(at: Environment, found: GateUnchecked) -> None:
    """Print what was not checked, with a warning if records are missing from the log."""
    from gitmem import moved_back

    moved_back.add_warning(at.store(), found)
    output.answer(at.json, found, signals.unchecked)


def _print_answer(at: Environment, found: Gate, who: Sequence[str] = ()) -> None:
    """Print the result, with next commands that act as the checked session.

    Args:
        at: The environment.
        found: The result.
        who: The options that select the session, if the environment does not.
    """
    from gitmem.outcome import command

    def acting(commands: Sequence[str]) -> list[str]:
        words = f" {command(*who)}" if who else ""
        return [each + words if output.acts(each) else each for each in commands]

    for signal in found.signals:
        listed = signal["commands"]
        assert isinstance(listed, list)
        signal["commands"] = with_options(acting(listed))
    found.next = acting(found.next)
    output.answer(at.json, found, signals.gate)
