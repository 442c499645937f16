"""One client in one scope: its files with something of ours, and what install and uninstall do to them.

The hook script: POSIX sh that checks whether there is anything for this agent, and only then starts gitmem.

A client runs it after every tool call. Without news it starts no program, forks no process and reads no input: it finds
the git folder, tests some files, and ends. Its text is the same in every repository and for every user, so it can be
committed and reviewed once.

`try_hooks` runs installed hooks as their clients run them, one client after the other: the command lines of a settings
file, in a temporary repository, first without a signal and then with one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time

from .. import local_files
from ..agents import caller, edited_paths, lifecycle
from ..agents.caller import CallerClaims
from ..errors import GitmemError, UsageError
from ..open_store import open_store
from ..outcome import Outcome, quote
from ..repo import find
from ..signals import send
from ..text.digests import sha256
from . import clients, events, hook_state, managed_files
from .clients import (
    CLIENTS,
    FILES,
    FLAT,
    GROUPS,
    PLUGIN,
    PROJECT,
    SCRIPT,
    USER,
    Client,
    ClientFolders,
)
from .managed_files import (
    WORDS,
    FileChange,
    InstallRecord,
    OwnFile,
    bare_message,
    installed_content,
    read_record,
)
from .settings import SettingsFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .clients import HookEntry


# The key of the client's session id in the JSON on standard input, where no variable has it.
_KEYS = {"codex": "session_id", "cursor": "conversation_id", "cline": "taskId", "copilot": "sessionId"}
_ASKING = (events.TOOL, events.PROMPT, events.STOP)


def script_text(client: str, *, in_plugin: bool = False) -> str:
    """Return the script for one of the clients of `events.EVENTS`; raise KeyError for another.

    Args:
        in_plugin: Whether it comes with a plugin of the client, and so does nothing where `gitmem setup` has installed it.
    """
    prompt = "by variable" if client in events.SESSION_VARIABLES else "by key"
    if not events.names(client, events.PROMPT):
        prompt = "none"
    left_out = {f"prompt {each}" for each in ("none", "by variable", "by key") if each != prompt}
    if client != "claude-code":
        left_out.add("claude-code")
    if not in_plugin:
        left_out.add("plugin")
    folder = events.FOLDER_VARIABLES.get(client)
    theirs = events.SESSION_VARIABLES.get(client)
    usual, moved = f"${{HOME-}}/{CLIENTS[client].base}", clients.FOLDER_VARIABLES.get(client)
    values = {
        "CLIENT": client,
        "EVENT": "${0##*/}" if client == "cline" else "${1-}",  # its hooks have no arguments
        "CASES": _cases(client),
        "FOLDER": f"${{{folder}:-${{PWD:-.}}}}" if folder else "${PWD:-.}",
        "OURS": "" if client in events.SHARED_ENVIRONMENT else "${GITMEM_SESSION-}",
        "THEIRS": f"${{{theirs}-}}" if theirs else "",
        "TURN": events.PROMPT if client in events.NO_STOP else events.STOP,
        "EDITS": "" if events.names(client, events.EDIT) else events.TOOL,
        "READS": " | ".join(kind for kind in _ASKING if kind in events.READS[client]),
        "KEY": _KEYS.get(client, ""),
        "KEPT": str(edited_paths.INPUTS_MAX),
        "BYTES": str(edited_paths.INPUT_MAX_BYTES),
        "BASE": CLIENTS[client].base,
        "USER": f"${{{moved}:-{usual}}}" if moved else usual,
        "SCRIPTS": " ".join(SCRIPTS),
        "SETTINGS": CLIENTS[client].settings + " settings.local.json" * (client == "claude-code"),
    }
    script = "\n".join(part for name, part in script_parts().items() if name not in left_out)
    if in_plugin:
        script = script.replace("if repository; then", "if repository && ! is_set_up; then")
    for name, value in values.items():
        script = script.replace(f"@{name}@", value)
    return script


def script_parts() -> dict[str, str]:
    """Return the parts of `hook.sh` by name: each begins with a line `#@ NAME: REMARK`."""
    named = ("#@ head\n" + installed_content("hook.sh")).removeprefix("#@ ").split("\n#@ ")
    lines = [each.partition("\n") for each in named]
    return {line.partition(":")[0]: part for line, _, part in lines}


def _cases(client: str) -> str:
    found: dict[str, list[str]] = {}
    for event, kind in events.EVENTS[client].items():
        found.setdefault(kind, []).append(event)
    return "\n".join(f"  {' | '.join(names)}) kind={kind} ;;" for kind, names in found.items())


INSTALLED, OUTDATED, INCOMPLETE, ABSENT, BROKEN = (
    "installed",
    "outdated",
    "incomplete",
    "not installed",
    "broken",
)
SCRIPTS = ("signal-received.sh", "gitmem-signal-received.sh")  # the second if the first is not ours
ATTRIBUTES = ".gitattributes"
RECORD = ".gitmem-hooks"  # in the client's folder; for a project in the repository's state


class ClientHooks(Outcome):
    """The result for one client.

    Attributes:
        client, title: Its name in gitmem, and its product name.
        scope: `project` or `user`.
        pushed: Whether its model receives signals without asking.
        state: `installed`, `updated`, `unchanged`, `advised` (it has no hooks), `failed`, `removed` or `absent`.
        files: The files that were changed.
        problem: The error, in a sentence; "" without one.
        remarks: Advice for its user.
    """

    client: str
    title: str
    scope: str
    pushed: bool
    state: str = "unchanged"
    files: list[str] = []
    problem: str = ""
    remarks: list[str] = []


class ClientScope:
    """A client in a scope. It reads files only when a method needs them.

    Attributes:
        base: The client's folder.
        settings: Its settings file, or None if it has none that names hooks.
        record_path: The record of its installation.
    """

    def __init__(self, client: Client, scope: str, folders: ClientFolders, base: str) -> None:
        self.client = client
        self.scope = scope
        self.folders = folders
        self.base = base
        self.top = os.path.dirname(base) if scope == PROJECT else None  # no link may lead out of it
        self.record_path = os.path.join(base, RECORD)
        if scope == PROJECT:
            assert folders.state is not None
            name = f"{client.name}-{sha256(os.fsencode(base)).hexdigest()[:16]}"
            self.record_path = os.path.join(folders.state, "hooks", name)
        self.settings: SettingsFile | None = None
        if client.form in (GROUPS, FLAT):
            path = os.path.join(base, *client.settings.split("/"))
            self.settings = SettingsFile(client, path, self.wanted, self.record_path, top=self.top)

    def script(self) -> OwnFile:
        """Return our script, which may not exist; it has its second name if the first is taken by another file."""
        first, second = self._scripts()
        found = first.read()
        return first if found is None or first.has_ours(found) else second

    def _scripts(self) -> list[OwnFile]:
        text = script_text(self.client.name)
        paths = [os.path.join(self.base, "hooks", name) for name in SCRIPTS]
        return [OwnFile(path, text, top=self.top, runs=True) for path in paths]

    def wanted(self) -> list[HookEntry]:
        """Return the entries that the settings should contain.

        Raises:
            UsageError: The path of the script is not UTF-8.
        """
        file = self.script()
        path = self.client.in_command(self.scope, file.path, os.path.dirname(self.base), self.folders.home)
        try:
            path.encode()
        except UnicodeEncodeError:
            raise UsageError(f"{self.base} is not UTF-8. Nothing was written.", code="not-utf8") from None
        return self.client.entries(self.scope, path, file.content)

    def install(self) -> list[FileChange]:
        """Return the changes of an install, that of the settings last."""
        own = [self.script()] if self.client.has_script else []
        own += self._others()
        attributes = self.attributes()
        if attributes is not None and ((found := attributes.read()) is None or attributes.has_ours(found)):
            own.insert(0, attributes)
        if self.settings is None:
            return [file.install() for file in own]
        return [file.install() for file in (*own, self.settings)]

    def uninstall(self) -> list[FileChange]:
        """Return the changes of an uninstall."""
        files = [self.settings] if self.settings is not None else []
        changes = [file.remove() for file in (*files, *self._own_files())]
        return [change for change in changes if change.needed]

    def write_install(self, changes: Sequence[FileChange]) -> list[str]:
        """Write our own files, then the record, and last the settings, which name the other files.

        Returns:
            The files that were changed.

        Raises:
            UsageError, StoreError: Every file and folder is unchanged.
        """
        settings_path = self.settings.path if self.settings is not None else None
        with managed_files.Written() as written:
            for change in changes:
                if change.path == settings_path:
                    self._write_record(written, change)
                written.apply(change)
            if settings_path is None:
                self._write_record(written, None)
        return written.files

    def _write_record(self, written: managed_files.Written, change: FileChange | None) -> None:
        """Record the changes that uninstall must undo; without a record, uninstall removes what it recognizes."""
        edits = change is not None and change.needed
        if not written.files and not edits:
            return
        old = read_record(self.record_path) or InstallRecord()
        new = self.settings.record if edits and self.settings is not None else old
        new = new._replace(folders=list(dict.fromkeys([*old.folders, *written.folders])))
        top = self.folders.state if self.scope == PROJECT else None  # a git folder may come from a stranger
        try:
            before = managed_files.read_file(self.record_path, top)
        except GitmemError:
            return
        written.apply(FileChange(self.record_path, before, new.encode(), top=top), note=True)

    def write_uninstall(self, changes: Sequence[FileChange]) -> list[str]:
        """Write the changes of an uninstall, and return the files that were changed.

        Raises:
            UsageError, StoreError: Every file is unchanged.
        """
        old = read_record(self.record_path)
        files = managed_files.write_files(changes)
        local_files.remove_quietly(self.record_path)
        if files:
            managed_files.remove_folders(old.folders if old is not None else self._usual_folders(files))
        return files

    def _usual_folders(self, removed: Sequence[str]) -> list[str]:
        """Return the folders that git or an install created for the files that were removed."""
        found = {self.base}
        for path in removed:
            folder = os.path.dirname(path)
            while folder.startswith(os.path.join(self.base, "")):
                found.add(folder)
                folder = os.path.dirname(folder)
        return list(found)

    def _others(self) -> list[OwnFile]:
        """Return the files beside the script."""
        path = os.path.join(self.base, *self.client.settings.split("/"))
        text = script_text(self.client.name) if self.client.form == clients.FILES else ""
        if text:
            paths = [os.path.join(path, event) for event, _ in self.client.events]
            return [OwnFile(each, text, top=self.top, runs=True) for each in paths]
        name = {clients.PLUGIN: "opencode.js", clients.RULE: "windsurf.md"}.get(self.client.form)
        return [OwnFile(path, installed_content(name), top=self.top)] if name else []

    def attributes(self) -> OwnFile | None:
        """Return git's attributes of our scripts in a project, beside them: a checkout with `core.autocrlf` must not give them CRs."""
        if self.scope != PROJECT or not (self.client.has_script or self.client.form == clients.FILES):
            return None
        names = [f"*{SCRIPT}"] if self.client.has_script else [event for event, _ in self.client.events]
        text = "".join(f"{name} text eol=lf\n" for name in (*names, ATTRIBUTES))
        return OwnFile(os.path.join(self.base, "hooks", ATTRIBUTES), f"# {WORDS}\n{text}", top=self.top)

    def lacks_attributes(self) -> bool:
        """Return whether there is a file of the user's in the place of ours, which does not keep LF either."""
        file = self.attributes()
        found = file.read() if file is not None else None
        return file is not None and found is not None and not file.has_ours(found) and b"eol=lf" not in found

    def _own_files(self) -> list[OwnFile]:
        files = [*(self._scripts() if self.client.has_script else []), *self._others()]
        attributes = self.attributes()
        return [*files, attributes] if attributes is not None else files

    def own_paths(self) -> list[str]:
        """Return those files that are entirely ours and exist."""
        return [file.path for file in self._own_files() if file.has_ours(file.read())]

    def state(self) -> str:
        """Return whether it is installed, as one of the constants of this module.

        Raises:
            UsageError: A file can't be read or parsed.
        """
        present = self.settings is None
        if self.settings is not None:
            present = bool(self.settings.ours())
            self.settings.check()
        own = [path for path in self.own_paths() if os.path.basename(path) != ATTRIBUTES]
        if not own and not (present and self.settings is not None):
            return ABSENT
        changes = [change for change in self.install() if change.needed]
        missing = [change.path for change in changes if change.before is None]
        if not present or any(os.path.basename(path) != ATTRIBUTES for path in missing):
            return INCOMPLETE
        return OUTDATED if changes else INSTALLED

    def seen(self) -> list[str]:
        """Return the files with anything of ours, even if they can't be parsed."""
        try:
            there = self.own_paths()
            if self.settings is not None and SCRIPT.encode() in (self.settings.read() or b""):
                there.append(self.settings.path)
        except GitmemError:
            return []
        return there


def chosen_clients(folders: ClientFolders, names: Sequence[str]) -> list[Client]:
    """Return the clients of these names; `all-found` means those with a sign of their use."""
    known = [*clients.CLIENTS, clients.ALL_FOUND]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UsageError(
            f"Unknown --client: {unknown[0]}. Nothing was written.",
            hint=f"It knows {', '.join(known)}.",
            code="unknown-client",
            suggestions=[name for name in known if name[:2] == unknown[0][:2].lower()],
        )
    return [
        client
        for client in clients.CLIENTS.values()
        if client.name in names or (clients.ALL_FOUND in names and clients.sign_of(client, folders))
    ]


def target_of(folders: ClientFolders, client: Client, scope: str) -> ClientScope | None:
    """Return a client in a scope; None if it has no file there that we could write."""
    base = folders.base(client, scope)
    if base is None:
        raise UsageError(
            "This is a bare repository without project files. Nothing was written.",
            hint="--scope user serves all your repositories, from your home folder.",
            code="no-worktree",
        )
    nowhere = client.form == clients.NOTHING or (client.form == clients.RULE and scope == USER)
    return None if nowhere else ClientScope(client, scope, folders, base)


LIMIT_SECONDS = 30
TRIES = 3  # on a busy machine a hook gives up in time, and shows the signal at the next tool call
SESSION = "gitmem-hooks-test"
STATE = "-state"  # behind the repository's path: the state folder of the test's user
_THEIRS = ("GITMEM_", "LUMENFLOW_", "GIT_", "COPILOT_", "CODEX_", "GEMINI_", "CURSOR_", "CLAUDE_", "CLINE_")
MESSAGE = "Test message of `gitmem setup`."


class Trial(Outcome):
    """The result of testing one client's hooks.

    Attributes:
        works: Whether the signal was shown once, in a form that the client reads.
        empty_ms: The shortest time of several runs without a signal.
        signal_ms: The time of a run with one signal.
        problem: The error, in a sentence; "" without one.
    """

    client: str
    title: str
    scope: str
    works: bool = False
    empty_ms: float | None = None
    signal_ms: float | None = None
    problem: str = ""


class HookTestResults(Outcome):
    """The result of testing hooks.

    Attributes:
        trials: The test of each client.
        works: Whether all of them passed.
    """

    __slots__ = ("works", "trials")

    def __init__(self, trials: list[Trial]) -> None:
        self.trials = trials
        self.works = all(each.works for each in trials)

    @property
    def status(self) -> int:
        """The exit status: 1 if a test failed."""
        return 0 if self.works else 1


def try_hooks(
    folders: ClientFolders,
    names: Sequence[str],
    environment: dict[str, str],
    program: str | None,
    scope: str,
) -> HookTestResults:
    """Test the hooks of clients, one after the other.

    Remove the last recorded error of a client whose test passes: it no longer needs attention.

    Args:
        folders: The folders of the clients.
        names: The clients' names, whose hooks have just been written: others may be as a repository brought them.
        environment: The environment that a client would pass to a hook.
        program: The gitmem program to test with.
        scope: The scope in which they were written.
    """
    known = hook_state.read_error(folders.state) if folders.state is not None else None
    found = [target_of(folders, CLIENTS[name], scope) for name in names]
    trials = [_try(target, folders, environment, program) for target in found if target is not None]
    for each in trials:
        if folders.state is not None and each.works:
            hook_state.clear_if_fixed(folders.state, each.client, known)
    return HookTestResults(trials)


def _try(
    target: ClientScope, folders: ClientFolders, environment: dict[str, str], program: str | None
) -> Trial:
    """Test one client in a temporary repository.

    Args:
        environment: The environment that the client would pass to a hook.
        program: The gitmem program to test with.
    """
    trial = Trial(target.client.name, target.client.title, target.scope)
    folder = tempfile.mkdtemp(prefix="gitmem-hooks-test-")
    repo = os.path.join(os.path.realpath(folder), "repository")
    try:
        client = _Client(target, repo, environment)
        _build(target, folders, repo, client.environment, program)
        trial.problem = _problem(trial, target, client)
    except GitmemError as error:
        trial.problem = bare_message(error)
    except (OSError, subprocess.SubprocessError) as error:
        trial.problem = f"Cannot run the test: {error}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    trial.works = not trial.problem
    return trial


def _problem(trial: Trial, target: ClientScope, client: _Client) -> str:
    """Run the hooks without a signal and with one, and note the times; return what is wrong, or ""."""
    lines = _lines(target)
    tool = events.names(target.client.name, events.TOOL)
    start = events.names(target.client.name, events.START)
    drain, begin = (next((event for event in of_kind if event in lines), None) for of_kind in (tool, start))
    if drain is None or begin is None:
        return "Its hooks are incomplete."
    client.run(lines[begin], begin)
    client.run(lines[drain], drain)  # shows what the start has left
    empty = [client.run(lines[drain], drain) for _ in range(5)]
    trial.empty_ms = min(each[0] for each in empty)
    if any(out for _, out in empty):
        return f"It printed text without a new signal: {empty[0][1][:200]!r}"
    _send(client.repo)
    out = ""
    for _ in range(TRIES):
        trial.signal_ms, out = client.run(lines[drain], drain)
        if out:
            break
    again = client.run(lines[drain], drain)[1]
    if MESSAGE not in _text(out, target):
        trouble_met = hook_state.read_error(os.path.join(client.repo, ".git", "gitmem"))
        because = f", and noted: {trouble_met}" if trouble_met else ""
        return f"The hook did not show the signal; it printed {out[:200]!r}{because}"
    return "The hook showed the signal twice." if MESSAGE in again else ""


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
