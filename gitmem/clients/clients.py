"""The clients: the location of their hooks, the events that we use, the form of their command lines, and what hooks may start.

The program that hooks start, and the folders of write-ahead logs outside the repository.

Hooks need both before any Python runs. They are small files with one path a line. A shell reads them, so a path with a
line break is left out.

- `program`, `wal-folders`: in the repository's state folder.
- `programs`: the user's list of gitmem programs that hooks may start, in the user's own state folder. A git folder can
  come from a stranger, in an archive or on a shared disk; hooks therefore start a program that it names only if this
  list contains it, too. The scripts read the list with `is_listed` in `files/hook.sh`.

Checked copies of a project's hook scripts: `<state>/hook-scripts/<sha256>.sh`.

A client's command line makes the copy under the umask of the client's user. This module gives a copy
the mode that the repository asks for.
"""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

from .. import local_files
from ..outcome import quote
from ..repo import read_small
from ..text.digests import sha256
from . import events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


PROGRAM = "program"
WAL_FOLDERS = "wal-folders"
LISTED = "programs"
KEPT_MAX = 100  # above this number, programs that no longer exist are removed from the list


def write_paths(
    state: str, *, user: str = "", program: str | None = None, wal_folders: Sequence[str] | None = None
) -> bool:
    """Write the given values where they differ from the files.

    Args:
        state: The folder of gitmem's own files; it must exist.
        user: gitmem's folder in the user's state folder, whose list must contain the program.
        program: The absolute path of the gitmem program that hooks run.
        wal_folders: All folders of write-ahead logs outside the repository.

    Returns:
        False if a value could not be written.
    """
    done = True
    if program is not None:
        done = add_to_list(user, program) and done
        done = _keep(os.path.join(state, PROGRAM), [program]) and done
    if wal_folders is not None:
        done = _keep(os.path.join(state, WAL_FOLDERS), wal_folders) and done
    return done


def noted_program(state: str) -> str | None:
    """Return the program that hooks run, or None if none is noted."""
    found = _lines(os.path.join(state, PROGRAM))
    return found[0] if found else None


def is_listed(folder: str, program: str) -> bool:
    """Return whether the user's list contains a program.

    Args:
        folder: gitmem's folder in the user's state folder.
        program: The program's absolute path.
    """
    path = os.path.join(folder, LISTED)
    is_own = local_files.is_users(folder, stat.S_ISDIR, follow=True) and local_files.is_users(path)
    return is_own and program in _lines(path)


def add_to_list(folder: str, program: str) -> bool:
    """Add a program that the user runs to the list.

    Args:
        folder: gitmem's folder in the user's state folder; created if missing.
        program: The program's absolute path.

    Returns:
        Whether the list contains it now. False if the list can't be written, or if other users could write to it.
    """
    if not os.path.isabs(program) or "\n" in program:
        return False
    if is_listed(folder, program):
        return True
    path = os.path.join(folder, LISTED)
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        is_own = local_files.is_users(folder, stat.S_ISDIR, follow=True)
        if not is_own or (os.path.lexists(path) and not local_files.is_users(path)):
            return False
        known = _lines(path)
        if len(known) >= KEPT_MAX:
            known = [each for each in known if os.path.exists(each)][-KEPT_MAX // 2 :]
            local_files.replace(path, _content(known), private=True)
        descriptor = local_files.open_file(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, os.fsencode(program) + b"\n")
        finally:
            os.close(descriptor)
    except OSError:
        return False
    return is_listed(folder, program)


def _keep(path: str, lines: Sequence[str]) -> bool:
    wanted = [line for line in dict.fromkeys(lines) if line and "\n" not in line and "\0" not in line]
    content = _content(wanted)
    return local_files.read(path) == content or local_files.try_replace(path, content)


def _lines(path: str) -> list[str]:
    return [os.fsdecode(line) for line in local_files.read(path).split(b"\n") if line]


def _content(lines: Sequence[str]) -> bytes:
    return b"".join(os.fsencode(line) + b"\n" for line in lines)


SCRIPT = "signal-received.sh"
START, END = "exec sh -c '", " gitmem"  # of each of our command lines
PROJECT, USER = "project", "user"
SCOPES = (PROJECT, USER)
GROUPS, FLAT, FILES, PLUGIN, RULE, NOTHING = "groups", "flat", "files", "plugin", "rule", "nothing"
# A missing script must be silent: a shell that can't open one may end with 2, which blocks the agent.
_RUN = """exec sh -c '[ ! -r "$0" ] || . "$0"' """
# Run the script from the top of the work tree, and only in the installed version: never a script of the folder that the
# agent is in, such as a dependency's, and never a modified one. A checked copy is cached under its digest in the git
# folder, where no commit can write; then no program is started.
_CHECK = """exec sh -c 'd=$PWD; until [ -f "$d/.git" ] || [ -d "$d/.git/objects" ]; do [ "$d" ] || exit 0; d=${d%/*}; done; \
at() { case $1 in /* | [A-Za-z]:*) g=$1 ;; *) g=$2/$1 ;; esac; }; \
g=$d/.git; if [ -f "$g" ]; then read -r _ c <"$g"; at "$c" "$d"; fi; \
if [ -r "$g/commondir" ]; then read -r c <"$g/commondir"; at "$c" "$g"; fi; \
s=$g/gitmem/hook-scripts/@DIGEST@.sh; if [ -r "$s" ]; then . "$s"; exit; fi; [ -r "$d/$0" ] || exit 0; \
h=$({ sha256sum <"$d/$0" || shasum -a 256 <"$d/$0"; } 2>/dev/null); [ "${h%% *}" = @DIGEST@ ] || exit 0; \
if [ -d "$g/gitmem" ]; then { mkdir -p "${s%/*}" && cp "$d/$0" "$s.$$" && h=$(sha256sum <"$s.$$" || shasum -a 256 <"$s.$$") && \
[ "${h%% *}" = @DIGEST@ ] && mv -f "$s.$$" "$s" || rm -f "$s.$$"; } 2>/dev/null; fi; . "$d/$0"' """
_CHECKED = (
    "codex",
    "copilot",
    "cursor",
    "gemini",
)  # their commands name the script by a path in the work tree


class HookEntry(NamedTuple):
    """An entry that a settings file should contain.

    Attributes:
        event: The client's own name of it.
        command: Its command line.
        value: The group or, in the flat form, the handler.
    """

    event: str
    command: str
    value: dict[str, object]


class Client(NamedTuple):
    """A client, with the location and the form of its hooks.

    Attributes:
        name, title: Its name on the command line, and its product name.
        form: The form of its hooks; see the constants.
        base: Its folder in a project.
        settings: The file in `base` that names the hooks, or the one file that we write.
        events: The events that we use, each with its timeout in seconds.
        home_base: Its folder in the home folder, if it has another name there.
        comments: Whether its settings may have comments.
        extra: Members that the settings must have.
        signs: Files in a project that show its use, if `base` does not: others may use that folder, too.
        programs: The names of its programs.
    """

    name: str
    title: str
    form: str
    base: str
    settings: str
    events: Sequence[tuple[str, int]]
    home_base: str = ""
    comments: bool = False
    extra: Sequence[tuple[str, object]] = ()
    signs: Sequence[str] = ()
    programs: Sequence[str] = ()

    @property
    def pushes(self) -> bool:
        """Whether its model receives signals without asking."""
        return self.form not in (RULE, NOTHING)

    @property
    def has_script(self) -> bool:
        """Whether the client runs our hook script."""
        return self.form in (GROUPS, FLAT, PLUGIN)

    def entries(self, scope: str, script: str, content: bytes) -> list[HookEntry]:
        """Return the entries for its settings.

        Args:
            script: The script as the command line names it; see `in_command`.
            content: The script's content.
        """
        run = _RUN
        if scope == PROJECT and self.name in _CHECKED:
            run = _CHECK.replace("@DIGEST@", sha256(content).hexdigest())
        return [self._entry(f"{run}{script} {event}{END}", event, seconds) for event, seconds in self.events]

    def _entry(self, line: str, event: str, seconds: int) -> HookEntry:
        handler: dict[str, object] = {"type": "command", "command": line, "timeout": seconds}
        if self.name == "gemini":
            handler = {"type": "command", "name": "gitmem", "command": line, "timeout": seconds * 1000}
        elif self.name == "cursor":
            handler = {"command": line, "timeout": seconds}
        elif self.name == "copilot":
            handler = {"type": "command", "bash": line, "timeoutSec": seconds}
        matcher = {"matcher": "*"} if self.name == "claude-code" and event == "PostToolUse" else {}
        if events.kind(self.name, event) == events.EDIT:
            matcher = {"matcher": events.MATCHERS[self.name]}
        if self.form == FLAT:
            return HookEntry(event, line, {**matcher, **handler})
        return HookEntry(event, line, {**matcher, "hooks": [handler]})

    def in_command(self, scope: str, path: str, root: str, home: str) -> str:
        """Return a script's name for the command line, without a path of this machine where possible.

        Args:
            path: The script.
            root: The project's folder; unused in user scope.
            home: The home folder.
        """
        if scope == PROJECT:
            inside = os.path.relpath(path, root).replace(os.sep, "/")
            return f'"$CLAUDE_PROJECT_DIR/{inside}"' if self.name == "claude-code" else inside
        inside = os.path.relpath(path, home).replace(os.sep, "/")
        plain = not inside.startswith("../") and quote(inside) == inside
        return f'"$HOME/{inside}"' if plain else quote(path)


CLIENTS: dict[str, Client] = {
    each.name: each
    for each in (
        Client(
            "claude-code", "Claude Code", GROUPS, ".claude", "settings.json",
            # Not PostToolBatch: a version that does not know an event ignores the whole file.
            [("PostToolUse", 10), ("UserPromptSubmit", 10), ("SessionStart", 20), ("Stop", 10), ("SessionEnd", 10),
             ("PreCompact", 10), ("SubagentStop", 10), ("PreToolUse", 10)],
            programs=["claude"],
        ),
        Client(
            "codex", "Codex CLI", GROUPS, ".codex", "hooks.json",
            [("PostToolUse", 10), ("UserPromptSubmit", 10), ("SessionStart", 20), ("Stop", 10), ("SessionEnd", 3),
             ("PreCompact", 10), ("SubagentStop", 10), ("PreToolUse", 10)],
            programs=["codex"],
        ),
        Client(
            "gemini", "Gemini CLI", GROUPS, ".gemini", "settings.json",
            [("AfterTool", 10), ("BeforeAgent", 10), ("SessionStart", 20), ("AfterAgent", 10), ("SessionEnd", 10),
             ("BeforeTool", 10)],
            comments=True, programs=["gemini"],
        ),
        Client(
            "cursor", "Cursor", FLAT, ".cursor", "hooks.json",
            [("postToolUse", 10), ("postToolUseFailure", 10), ("sessionStart", 20), ("stop", 10), ("sessionEnd", 10)],
            extra=[("version", 1)], programs=["cursor", "cursor-agent"],
        ),
        Client(
            "opencode", "OpenCode", PLUGIN, ".opencode", "plugins/gitmem.js",
            [("tool.execute.after", 10), ("chat.message", 10), ("session.created", 20), ("session.deleted", 10),
             ("tool.execute.before", 10)],
            home_base=".config/opencode", signs=[".opencode", "opencode.json", "opencode.jsonc"], programs=["opencode"],
        ),
        Client(
            "cline", "Cline", FILES, ".clinerules", "hooks",
            [("PostToolUse", 10), ("UserPromptSubmit", 10), ("TaskStart", 20), ("TaskResume", 20), ("TaskCancel", 10),
             ("PreToolUse", 10)],
            home_base=".cline", signs=[".clinerules", ".cline"], programs=["cline"],
        ),
        Client(
            "copilot", "GitHub Copilot", FLAT, ".github", "hooks/gitmem.json",
            [("postToolUse", 10), ("postToolUseFailure", 10), ("userPromptSubmitted", 10), ("sessionStart", 20),
             ("agentStop", 10), ("sessionEnd", 10), ("preToolUse", 10)],
            extra=[("version", 1)], home_base=".copilot",
            signs=[".github/hooks", ".github/copilot-instructions.md"], programs=["copilot"],
        ),
        Client(
            "windsurf", "Windsurf", RULE, ".windsurf", "rules/gitmem.md", [],
            home_base=".codeium/windsurf", programs=["windsurf"],
        ),
        Client(
            "aider", "Aider", NOTHING, ".aider.conf.yml", "", [], programs=["aider"],
        ),
    )
}  # fmt: skip
ALL_FOUND = "all-found"
# Variables that move a client's folder in the home folder.
FOLDER_VARIABLES = {"claude-code": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME", "copilot": "COPILOT_HOME"}


class ClientFolders(NamedTuple):
    """The folders of one user in one worktree.

    Attributes:
        worktree: The top of the worktree; None if there is none.
        main: The top of the main worktree, if this one is a linked worktree.
        state: The folder of gitmem's own files in the repository; None outside of a repository.
        user: gitmem's folder in the user's state folder.
        home: The home folder.
        moved: The clients whose folder in the home folder was moved, and its new path.
        programs: The programs found on the user's PATH, by name.
    """

    worktree: str | None
    main: str | None
    state: str | None
    user: str
    home: str
    moved: dict[str, str]
    programs: dict[str, str]

    def noted_program(self) -> str | None:
        """Return the program that hooks run: the one noted in this repository, if the user's own list has it, too."""
        found = noted_program(self.state) if self.state is not None else None
        return found if found is not None and is_listed(self.user, found) else None

    def base(self, client: Client, scope: str) -> str | None:
        """Return the folder of a client, or None in project scope without a worktree."""
        if scope == USER:
            return self.moved.get(client.name) or os.path.join(
                self.home, *(client.home_base or client.base).split("/")
            )
        return os.path.join(self.worktree, client.base) if self.worktree is not None else None


def sign_of(client: Client, folders: ClientFolders) -> str | None:
    """Return the sign that a client is in use here, in some words, or None without one."""
    if folders.worktree is not None:
        for sign in client.signs or (client.base,):
            path = os.path.join(folders.worktree, *sign.split("/"))
            if os.path.isdir(path) or (sign != client.base and os.path.isfile(path)):
                return f"{sign} is in the project"
    folder = folders.base(client, USER)
    if folder is not None and os.path.isdir(folder):
        return f"{folder} exists"
    for program in client.programs:
        if program in folders.programs:
            return f"{program} is on the PATH"
    return None


COPIES_FOLDER = "hook-scripts"
_OTHERS_MAY_WRITE = 0o022


def share_copies(state: str) -> None:
    """Let the users of a shared repository (`core.sharedRepository`) read the copies, but not write to them."""
    folder = os.path.join(state, COPIES_FOLDER)
    try:
        local_files.adjust(folder)
        local_files.refuse_link(folder)
        for entry in os.scandir(folder):
            local_files.adjust(entry.path)
            mode = stat.S_IMODE(entry.stat(follow_symlinks=False).st_mode)
            if mode & _OTHERS_MAY_WRITE and entry.is_file(follow_symlinks=False):
                os.chmod(entry.path, mode & ~_OTHERS_MAY_WRITE)
    except OSError:
        return  # no copies, or no permission: then the script is checked at each run


def worktrees(folders: ClientFolders) -> list[str]:
    """Return the tops of this clone's known worktrees."""
    found = [each for each in (folders.worktree, folders.main) if each is not None]
    linked = os.path.join(os.path.dirname(folders.state or ""), "worktrees")
    for name in local_files.names_in(linked):
        git_file = read_small(os.path.join(linked, name, "gitdir")).rstrip(b"\n")
        found.append(os.path.dirname(os.fsdecode(git_file)))
    return list(dict.fromkeys(each for each in found if each))
