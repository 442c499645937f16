"""The programs and functions with which `gitmem serve-agent` runs tasks, and what they get: standard input and environment."""

from __future__ import annotations

import os

from .commands.call import TASK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from gitmem.invocation.runs import Run, Start
    from gitmem.invocation.served_task import ServedTask

    from .environment import Environment

PREFIX, SESSION = "GITMEM_", "GITMEM_SESSION"  # of variables of our own


def starter(
    at: Environment, command: str | None, function: str | None, form: str | None, session: list[str]
) -> Start:
    """Return what starts a task: a program or a function.

    Args:
        session: The session of the worker, once it has started.
    """
    from gitmem.invocation.served_task import FRAME, INPUT_FORMS

    if (command is None) == (function is None):
        refuse_several()
    if form is not None and (form not in INPUT_FORMS or command is None):
        _refuse_form(form)
    if function is not None:
        return _function(at, function)
    from gitmem.invocation.child_process import ChildRun

    def start(task: ServedTask, folder: str = at.folder) -> Run:
        assert command is not None
        return ChildRun(command, _encoded(task.input(form or FRAME)), variables(task, session[0]), folder)

    return start


def client(at: Environment, typed: str, form: str | None, session: list[str]) -> Start:
    """Return what starts a task with the coding agent that `--client` names, and the words after it."""
    import shlex
    import shutil

    from gitmem.errors import UsageError
    from gitmem.invocation.client_run import CLIENT_PROGRAMS, ClientOutput, ClientRun, prompt
    from gitmem.invocation.served_task import INPUT_FORMS, TEXT

    try:
        name, *words = shlex.split(typed) or [""]
    except ValueError:
        name, words = typed, []
    program = CLIENT_PROGRAMS.get(name)
    if program is None:
        choices = ", ".join(CLIENT_PROGRAMS)
        raise UsageError(
            f"Invalid --client: {name}; choose from {choices}. Nothing was written.",
            hint="Any other program runs with --exec CMD.",
            code="bad-client",
        )
    if form is not None and form not in INPUT_FORMS:
        _refuse_form(form)
    if form == TEXT:
        raise UsageError(
            "--input text is for programs: a coding agent would take the bare text of a peer for its user's, with commands and files that it names. Nothing was written.",
            hint="Leave it out.",
            code="bad-input-form",
        )
    if shutil.which(name) is None:
        raise UsageError(
            f"--client: the program {name} is not on PATH. Nothing was written.",
            hint="Install it, or put its folder on PATH.",
            code="no-client",
        )
    sessions: dict[str, str] = {}  # of tasks that may go on after an answer

    def start(task: ServedTask, folder: str = at.folder) -> Run:
        id = task.task_id

        def ended(resumable: str | None) -> None:
            if resumable is not None:
                sessions[id] = resumable

        known = sessions.pop(id, None)
        return ClientRun(
            program.command(words, known), _encoded(prompt(task)), variables(task, session[0]), folder,
            output=ClientOutput(program.read, task.progress), ended=ended, is_resumed=known is not None,
        )  # fmt: skip

    return start


def _function(at: Environment, typed: str) -> Start:
    """Return what starts a task with the function that `--callable` names, from the folder of the command."""
    import sys
    from importlib import import_module

    from gitmem.errors import UsageError
    from gitmem.invocation.runs import FunctionRun

    module, _, name = typed.partition(":")
    # Imports are the user's here, so the folders that `__init__` has left out count again.
    sys.path[:0] = [at.folder, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(
            f"--callable: cannot import {typed} ({error}). Nothing was written.",
            hint="Name a module of this folder or of the environment, and a function: shop:prices.",
            code="bad-callable",
        ) from error
    if not callable(found):
        raise UsageError(f"--callable: {typed} is not a function. Nothing was written.", code="bad-callable")
    return lambda task: FunctionRun(found, task)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def variables(task: ServedTask, session: str) -> dict[str, str]:
    """Return the environment of a program that runs a task.

    Of our own variables it gets the settings alone: the others have a token of the user's, or would make it act for somebody else. Variables of
    git that belong to one repository go, the user's own settings of git stay.
    """
    from gitmem.git.processes import without_local

    from .background import COMMIT_AFTER

    kept = {
        name: value
        for name, value in without_local(os.environ).items()
        if name == COMMIT_AFTER or not name.upper().startswith(PREFIX)
    }
    return {**kept, TASK: task.task_id, SESSION: session}


def refuse_several() -> NoReturn:
    """Raise UsageError, because of `--exec`, `--client` and `--callable` one is to be given."""
    from gitmem.errors import UsageError

    raise UsageError(
        "serve-agent runs --exec CMD, --client NAME or --callable MODULE:FUNCTION, not both. Nothing was written.",
        code="no-command",
    )


def _refuse_form(form: str) -> NoReturn:
    from gitmem.errors import UsageError
    from gitmem.invocation.served_task import INPUT_FORMS

    raise UsageError(
        f"Invalid --input: {form}; choose from {', '.join(INPUT_FORMS)}, with --exec. Nothing was written.",
        code="bad-input-form",
    )
