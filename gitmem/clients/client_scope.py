"""One client in one scope: its files with something of ours, and what install and uninstall do to them.

The hook script: POSIX sh that checks whether there is anything for this agent, and only then starts gitmem.

A client runs it after every tool call. Without news it starts no program, forks no process and reads no input: it finds
the git folder, tests some files, and ends. Its text is the same in every repository and for every user, so it can be
committed and reviewed once.
"""

from __future__ import annotations

import os

from ..agents import edited_paths
from ..errors import GitmemError, UsageError
from ..outcome import Outcome
from ..text.digests import sha256
from . import clients, events, managed_files
from .clients import FLAT, GROUPS, PROJECT, SCRIPT, USER, Client, ClientFolders
from .managed_files import WORDS, FileChange, InstallRecord, OwnFile, installed_content, read_record
from .settings import SettingsFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .clients import HookEntry


# The key of the client's session id in the JSON on standard input, where no variable has it.
_KEYS = {"codex": "session_id", "cursor": "conversation_id", "cline": "taskId", "copilot": "sessionId"}
_ASKING = (events.TOOL, events.PROMPT, events.STOP)


def script_text(client: str) -> str:
    """Return the script for one of the clients of `events.EVENTS`; raise KeyError for another."""
    prompt = "by variable" if client in events.SESSION_VARIABLES else "by key"
    if not events.names(client, events.PROMPT):
        prompt = "none"
    left_out = {f"prompt {each}" for each in ("none", "by variable", "by key") if each != prompt}
    if client != "claude-code":
        left_out.add("claude-code")
    folder = events.FOLDER_VARIABLES.get(client)
    theirs = events.SESSION_VARIABLES.get(client)
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
    }
    script = "\n".join(part for name, part in script_parts().items() if name not in left_out)
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
        why: Why it was selected: by request, or by a sign of its use.
        state: `installed`, `updated`, `unchanged`, `advised` (it has no hooks), `failed`, `removed` or `absent`.
        pushed: Whether its model receives signals without asking.
        files: The files that were changed.
        problem: The error, in a sentence; "" without one.
        remarks: Advice for its user.
    """

    def __init__(self, client: Client, scope: str, why: str) -> None:
        self.client = client.name
        self.title = client.title
        self.scope = scope
        self.why = why
        self.state = "unchanged"
        self.pushed = client.pushes
        self.files: list[str] = []
        self.problem = ""
        self.remarks: list[str] = []


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

    def wanted(self, wake: bool) -> list[HookEntry]:
        """Return the entries that the settings should contain.

        Args:
            wake: Whether to include the background hook that wakes an idle session, if the client has one.

        Raises:
            UsageError: The path of the script is not UTF-8.
        """
        file = self.script()
        path = self.client.in_command(self.scope, file.path, os.path.dirname(self.base), self.folders.home)
        try:
            path.encode()
        except UnicodeEncodeError:
            raise UsageError(f"{self.base} is not UTF-8. Nothing was written.", code="not-utf8") from None
        return self.client.entries(self.scope, path, file.content, wake=wake)

    def install(self, *, wake: bool) -> list[FileChange]:
        """Return the changes of an install, that of the settings last."""
        own = [self.script()] if self.client.has_script else []
        own += self._others()
        attributes = self.attributes()
        if attributes is not None and ((found := attributes.read()) is None or attributes.has_ours(found)):
            own.insert(0, attributes)
        if self.settings is None:
            return [file.install() for file in own]
        self.settings.wake = wake
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
        try:
            os.unlink(self.record_path)
        except OSError:
            pass  # it did not exist
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
        changes = [change for change in self.install(wake=False) if change.needed]
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


def chosen_clients(folders: ClientFolders, names: Sequence[str], scope: str) -> list[tuple[Client, str]]:
    """Return the selected clients, each with the reason."""
    if scope not in clients.SCOPES:
        raise UsageError(
            f"Invalid --scope: {scope}; choose from {', '.join(clients.SCOPES)}. Nothing was written.",
            code="unknown-scope",
        )
    known = [*clients.CLIENTS, clients.ALL_FOUND]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UsageError(
            f"Unknown --client: {unknown[0]}. Nothing was written.",
            hint=f"It knows {', '.join(known)}.",
            code="unknown-client",
            suggestions=[name for name in known if name[:2] == unknown[0][:2].lower()],
            next=["gitmem hooks status"],
        )
    found: dict[str, tuple[Client, str]] = {}
    for client in clients.CLIENTS.values():
        if client.name in names:
            found[client.name] = (client, "asked for")
        elif clients.ALL_FOUND in names and (why := clients.sign_of(client, folders)):
            found[client.name] = (client, why)
    if not found:
        raise UsageError(
            "No clients found: no client folder in the project or home folder, and no client program on the PATH. Nothing was written.",
            hint=f"Name one with --client: {', '.join(clients.CLIENTS)}.",
            code="no-client",
            next=[
                "gitmem hooks install --client claude-code" + (f" --scope {USER}" if scope == USER else "")
            ],
        )
    return list(found.values())


def target_of(folders: ClientFolders, client: Client, scope: str) -> ClientScope | None:
    """Return a client in a scope; None if it has no file there that we could write."""
    base = folders.base(client, scope)
    if base is None:
        raise UsageError(
            "This is a bare repository without project files. Nothing was written.",
            hint="--scope user installs the hooks in your home folder.",
            code="no-worktree",
            next=["gitmem hooks install --scope user"],
        )
    nowhere = client.form == clients.NOTHING or (client.form == clients.RULE and scope == USER)
    return None if nowhere else ClientScope(client, scope, folders, base)


def bare_message(error: GitmemError) -> str:
    """Return an error's message without "nothing was written", for a report on several clients."""
    return error.message.replace(". Nothing was written.", ".")
