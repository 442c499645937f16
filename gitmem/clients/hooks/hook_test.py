"""Test installed hooks as their client runs them.

The command lines of a settings file run in a temporary repository, first without a signal and then with one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time

from ...agents import caller
from ...agents.caller import Who
from ...errors import GitmemError
from ...open_store import open_store
from ...outcome import Outcome
from ...repo import find
from ...sessions import lifecycle
from ...signals import send
from .. import hook_paths
from . import events, hook_errors
from .clients import FILES, PLUGIN, PROJECT, ClientFolders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .client_scope import ClientScope

LIMIT_SECONDS = 30
TRIES = 3  # on a busy machine a hook gives up in time, and shows the signal at the next tool call
SESSION = "gitmem-hooks-test"
_THEIRS = ("GITMEM_", "LUMENFLOW_", "GIT_", "COPILOT_", "CODEX_", "GEMINI_", "CURSOR_", "CLAUDE_", "CLINE_")
MESSAGE = "Can you read this? A try of the hooks."


class Trial(Outcome):
    """The result of testing one client's hooks.

    Attributes:
        works: Whether the signal was shown once, in a form that the client reads.
        empty_ms: The shortest time of several runs without a signal.
        signal_ms: The time of a run with one signal.
        said: The error, in a sentence; "" without one.
    """

    __slots__ = ("client", "title", "scope", "works", "empty_ms", "signal_ms", "said")

    def __init__(self, target: ClientScope) -> None:
        self.client = target.client.name
        self.title = target.client.title
        self.scope = target.scope
        self.works = False
        self.empty_ms: float | None = None
        self.signal_ms: float | None = None
        self.said = ""


def run(
    target: ClientScope, places: ClientFolders, folder: str, environment: dict[str, str], program: str | None
) -> Trial:
    """Test one client.

    Args:
        folder: A new folder for the temporary repository.
        environment: The environment that the client would pass to a hook.
        program: The gitmem program to test with.
    """
    said = Trial(target)
    lines = _lines(target)
    tool = events.names(target.client.name, events.TOOL)
    start = events.names(target.client.name, events.START)
    drain = next((event for event in tool if event in lines), None)
    begin = next((event for event in start if event in lines), None)
    if drain is None or begin is None:
        said.said = "Its hooks are not complete."
        return said
    repo = os.path.join(folder, "repository")
    try:
        _build(target, places, repo, environment, program)
        client = _Client(target, repo, environment)
        client.run(lines[begin], begin)
        client.run(lines[drain], drain)  # shows what the start has left
        empty = [client.run(lines[drain], drain) for _ in range(5)]
        said.empty_ms = min(each[0] for each in empty)
        if any(out for _, out in empty):
            said.said = f"It says something where there is nothing to say: {empty[0][1][:200]!r}"
            return said
        _send(repo)
        out = ""
        for _ in range(TRIES):
            said.signal_ms, out = client.run(lines[drain], drain)
            if out:
                break
        again = client.run(lines[drain], drain)[1]
    except (OSError, subprocess.SubprocessError, GitmemError) as error:
        said.said = f"It could not be tried: {getattr(error, 'message', None) or error}"
        return said
    if MESSAGE not in _text(out, target):
        trouble_met = hook_errors.read(os.path.join(repo, ".git", "gitmem"))
        because = f", and noted: {trouble_met}" if trouble_met else ""
        said.said = f"The signal did not come out; the hook said {out[:200]!r}{because}"
    elif MESSAGE in again:
        said.said = "The signal came out twice."
    said.works = not said.said
    return said


def _lines(target: ClientScope) -> dict[str, str]:
    """Return the command line of each event, as the client would run it."""
    if target.client.form == FILES:
        return {os.path.basename(path): _quoted(path) for path in target.own_paths()}
    if target.client.form == PLUGIN:
        path = _quoted(target.script().path)
        return {event: f"sh {path} {event}" for event, _ in target.client.events}
    assert target.settings is not None
    return {each.event: each.command for each in reversed(target.settings.ours())}


def _quoted(path: str) -> str:
    from ...text.shell_quote import quote

    return quote(path)


def _build(
    target: ClientScope, places: ClientFolders, repo: str, environment: dict[str, str], program: str | None
) -> None:
    """Make a repository with one commit, our state and, in project scope, the project's script."""
    for args in (
        ["init", "--quiet", repo],
        ["-C", repo, "commit", "--quiet", "--allow-empty", "--message=First"],
    ):
        identity = [
            "-c",
            "user.name=gitmem",
            "-c",
            "user.email=gitmem@localhost",
            "-c",
            "commit.gpgSign=false",
        ]
        subprocess.run(
            ["git", *identity, *args], check=True, capture_output=True, timeout=LIMIT_SECONDS, env=environment
        )
    state = os.path.join(repo, ".git", "gitmem")
    os.makedirs(state, exist_ok=True)
    known = program or places.noted_program()
    if known is not None:
        hook_paths.write(state, user=os.path.join(_user_state(repo), "gitmem"), program=known)
    if target.scope == PROJECT and places.worktree is not None:
        for path in target.own_paths():
            copy = os.path.join(repo, os.path.relpath(path, places.worktree))
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            shutil.copy(path, copy)


def _user_state(repo: str) -> str:
    """Return the state folder of the test's user: a test leaves nothing in the real one."""
    return repo + "-state"


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
        for variable in (events.SESSION_VARIABLES.get(name), *(["COPILOT_CLI"] if name == "copilot" else [])):
            if variable:
                self.environment[variable] = SESSION
        self.environment["XDG_STATE_HOME"] = _user_state(repo)
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
            raise OSError(f"the hook of {event} ended with {done.returncode}")
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
    store = open_store(find(repo), machine="test", lives_on=True)
    try:
        began = lifecycle.start(store, Who(), agent_identity="gitmem:hooks:trial")
        sender = caller.find(store, Who(session=str(began.session_id)))
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
