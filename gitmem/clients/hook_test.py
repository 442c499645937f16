"""Test installed hooks as their clients run them, one client after the other.

The command lines of a settings file run in a temporary repository, first without a signal and then with one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time

from ..agents import caller, lifecycle
from ..agents.caller import CallerClaims
from ..errors import GitmemError, UsageError
from ..open_store import open_store
from ..outcome import Outcome, quote
from ..repo import find
from ..signals import send
from . import clients, events, hook_state
from .client_scope import ABSENT, ClientScope, bare_message, chosen_clients, target_of
from .clients import ALL_FOUND, CLIENTS, FILES, PLUGIN, PROJECT, RULE, SCOPES, USER, ClientFolders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


LIMIT_SECONDS = 30
TRIES = 3  # on a busy machine a hook gives up in time, and shows the signal at the next tool call
SESSION = "gitmem-hooks-test"
STATE = "-state"  # behind the repository's path: the state folder of the test's user
_THEIRS = ("GITMEM_", "LUMENFLOW_", "GIT_", "COPILOT_", "CODEX_", "GEMINI_", "CURSOR_", "CLAUDE_", "CLINE_")
MESSAGE = "Test message of `gitmem hooks test`."


class Trial(Outcome):
    """The result of testing one client's hooks.

    Attributes:
        works: Whether the signal was shown once, in a form that the client reads.
        empty_ms: The shortest time of several runs without a signal.
        signal_ms: The time of a run with one signal.
        problem: The error, in a sentence; "" without one.
    """

    def __init__(self, target: ClientScope) -> None:
        self.client = target.client.name
        self.title = target.client.title
        self.scope = target.scope
        self.works = False
        self.empty_ms: float | None = None
        self.signal_ms: float | None = None
        self.problem = ""


class HookTestResults(Outcome):
    """The result of testing hooks.

    Attributes:
        trials: The test of each client in each scope that has hooks installed.
        works: Whether all of them passed.
    """

    __slots__ = ("works", "trials", "next")

    def __init__(self, trials: list[Trial]) -> None:
        self.trials = trials
        self.works = all(each.works for each in trials)
        again = [
            f"gitmem hooks install --client {each.client} --scope {each.scope}"
            for each in trials
            if not each.works
        ]
        self.next = [*again[:1], "gitmem hooks status"]

    @property
    def status(self) -> int:
        """The exit status: 1 if a test failed."""
        return 0 if self.works else 1


def run(
    folders: ClientFolders, names: Sequence[str], environment: dict[str, str], program: str | None
) -> HookTestResults:
    """Test the hooks of clients, one after the other.

    Remove the last recorded error of a client whose tests all pass: it no longer needs attention.

    Raises:
        UsageError: No hooks are installed.
    """
    known = hook_state.read_error(folders.state) if folders.state is not None else None
    picked = (
        [client for client, _ in chosen_clients(folders, names, PROJECT)]
        if ALL_FOUND not in names
        else CLIENTS.values()
    )
    scopes = [scope for scope in SCOPES if scope == USER or folders.worktree is not None]
    found = [target_of(folders, each, scope) for each in picked if each.form != RULE for scope in scopes]
    targets = [target for target in found if target is not None and _is_there(target)]
    if not targets:
        raise UsageError(
            "No installed hooks to test.",
            hint="Windsurf and Aider do not support hooks.",
            code="no-hooks",
            next=["gitmem hooks install" + (f" --scope {USER}" if folders.worktree is None else "")],
        )
    trials = [_try(target, folders, environment, program) for target in targets]
    for name in {each.client for each in trials if each.works}:
        if folders.state is not None and all(each.works for each in trials if each.client == name):
            hook_state.clear_if_fixed(folders.state, name, known)
    return HookTestResults(trials)


def _is_there(target: ClientScope) -> bool:
    """Return whether there is anything of ours to test, even if it can't be parsed."""
    try:
        return target.state() != ABSENT
    except GitmemError:
        return bool(target.seen())


def _try(
    target: ClientScope, folders: ClientFolders, environment: dict[str, str], program: str | None
) -> Trial:
    folder = tempfile.mkdtemp(prefix="gitmem-hooks-test-")
    try:
        target.state()  # a client reads no hook from broken settings
        return _run(target, folders, os.path.realpath(folder), environment, program)
    except GitmemError as error:
        trial = Trial(target)
        trial.problem = bare_message(error)
        return trial
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(
    target: ClientScope, folders: ClientFolders, folder: str, environment: dict[str, str], program: str | None
) -> Trial:
    """Test one client.

    Args:
        folder: A new folder for the temporary repository.
        environment: The environment that the client would pass to a hook.
        program: The gitmem program to test with.
    """
    trial = Trial(target)
    lines = _lines(target)
    tool = events.names(target.client.name, events.TOOL)
    start = events.names(target.client.name, events.START)
    drain, begin = (next((event for event in of_kind if event in lines), None) for of_kind in (tool, start))
    if drain is None or begin is None:
        trial.problem = "Its hooks are incomplete."
        return trial
    repo = os.path.join(folder, "repository")
    try:
        _build(target, folders, repo, environment, program)
        client = _Client(target, repo, environment)
        client.run(lines[begin], begin)
        client.run(lines[drain], drain)  # shows what the start has left
        empty = [client.run(lines[drain], drain) for _ in range(5)]
        trial.empty_ms = min(each[0] for each in empty)
        if any(out for _, out in empty):
            trial.problem = f"It printed text without a new signal: {empty[0][1][:200]!r}"
            return trial
        _send(repo)
        out = ""
        for _ in range(TRIES):
            trial.signal_ms, out = client.run(lines[drain], drain)
            if out:
                break
        again = client.run(lines[drain], drain)[1]
    except (OSError, subprocess.SubprocessError, GitmemError) as error:
        trial.problem = f"Cannot run the test: {getattr(error, 'message', None) or error}"
        return trial
    if MESSAGE not in _text(out, target):
        trouble_met = hook_state.read_error(os.path.join(repo, ".git", "gitmem"))
        because = f", and noted: {trouble_met}" if trouble_met else ""
        trial.problem = f"The hook did not show the signal; it printed {out[:200]!r}{because}"
    elif MESSAGE in again:
        trial.problem = "The hook showed the signal twice."
    trial.works = not trial.problem
    return trial


def _lines(target: ClientScope) -> dict[str, str]:
    """Return the command line of each event, as the client would run it."""
    if target.client.form == FILES:
        return {os.path.basename(path): quote(path) for path in target.own_paths()}
    if target.client.form == PLUGIN:
        path = quote(target.script().path)
        return {event: f"sh {path} {event}" for event, _ in target.client.events}
    assert target.settings is not None
    return {each.event: each.command for each in reversed(target.settings.ours())}


def _build(
    target: ClientScope, folders: ClientFolders, repo: str, environment: dict[str, str], program: str | None
) -> None:
    """Make a repository with one commit, our state and, in project scope, the project's script."""
    identity = ["-c", "user.name=gitmem", "-c", "user.email=gitmem@localhost", "-c", "commit.gpgSign=false"]
    commit = ["-C", repo, "commit", "--quiet", "--allow-empty", "--message=First"]
    for args in (["init", "--quiet", repo], commit):
        subprocess.run(
            ["git", *identity, *args], check=True, capture_output=True, timeout=LIMIT_SECONDS, env=environment
        )
    state = os.path.join(repo, ".git", "gitmem")
    os.makedirs(state, exist_ok=True)
    known = program or folders.noted_program()
    if known is not None:
        clients.write_paths(state, user=os.path.join(repo + STATE, "gitmem"), program=known)
    if target.scope == PROJECT and folders.worktree is not None:
        for path in target.own_paths():
            copy = os.path.join(repo, os.path.relpath(path, folders.worktree))
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            shutil.copy(path, copy)


class _Client:
    """The client as hooks see it: its environment, its input and its working folder."""

    def __init__(self, target: ClientScope, repo: str, environment: dict[str, str]) -> None:
        name = target.client.name
        self.target = target
        self.repo = repo
        others = (*events.SESSION_VARIABLES.values(), *events.FOLDER_VARIABLES.values())
        self.environment = {
            key: value
            for key, value in environment.items()
            if not key.startswith(_THEIRS) and key not in others
        }
        ids = [events.SESSION_VARIABLES.get(name), "COPILOT_CLI" if name == "copilot" else None]
        self.environment.update((variable, SESSION) for variable in ids if variable)
        self.environment["XDG_STATE_HOME"] = repo + STATE
        folder = events.FOLDER_VARIABLES.get(name)
        if folder:
            self.environment[folder] = repo

    def run(self, line: str, event: str) -> tuple[float, str]:
        """Run a hook; return the time in milliseconds and the output."""
        began = time.perf_counter()
        done = subprocess.run(
            ["sh", "-c", line],
            input=json.dumps(self._input(event)).encode(),
            capture_output=True,
            cwd=self.repo,
            env=self.environment,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        took = (time.perf_counter() - began) * 1000
        if done.returncode:
            raise OSError(f"the hook of {event} exited with {done.returncode}")
        return took, done.stdout.decode("utf-8", "replace")

    def _input(self, event: str) -> dict[str, object]:
        """Return an input with the fields of every client, each under its own names."""
        return {
            "session_id": SESSION, "sessionId": SESSION, "conversation_id": SESSION, "taskId": SESSION,
            "cwd": self.repo, "workspace_roots": [self.repo], "workspaceRoots": [self.repo],
            "hook_event_name": event, "hookName": event, "source": "startup", "transcript_path": "",
            "tool_name": "Bash", "tool_input": {}, "tool_response": "",
        }  # fmt: skip


def _send(repo: str) -> None:
    """Send a signal from another session to the one that the client's hook has started."""
    store = open_store(find(repo), machine="test", long_lived=True)
    try:
        began = lifecycle.start(store, CallerClaims(), agent_identity="gitmem:hooks:trial")
        sender = caller.find(store, CallerClaims(session=str(began.session_id)))
        assert sender is not None
        send.send(store, sender, MESSAGE)
    finally:
        store.close()


def _text(out: str, target: ClientScope) -> str:
    """Return the text that a model would read of an output, or "" if its client would read nothing."""
    if target.client.form == PLUGIN:
        return out
    try:
        answer = json.loads(out)
    except ValueError:
        return ""
    inner = answer.get("hookSpecificOutput", {}) if isinstance(answer, dict) else {}
    keys = ("additionalContext", "additional_context", "contextModification")
    found = [part.get(key) for part in (inner, answer) if isinstance(part, dict) for key in keys]
    return next((each for each in found if isinstance(each, str)), "")
