"""The clients: the location of their hooks, the events that we use, and the form of their command lines.

`docs/clients.md` has the same facts for users, with their sources.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from ...digests import sha256
from ...outcome import quote
from .. import hook_paths
from . import events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

SCRIPT = "signal-received.sh"
END = " gitmem"  # the last word of each of our command lines
PROJECT, USER = "project", "user"
SCOPES = (PROJECT, USER)
GROUPS, FLAT, FILES, PLUGIN, RULE, NOTHING = "groups", "flat", "files", "plugin", "rule", "nothing"
WAKE = "Wake"
WAKE_SECONDS = 31 * 60  # a little more than the half hour after which it ends by itself
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

    def entries(self, scope: str, script: str, content: bytes, *, wake: bool) -> list[HookEntry]:
        """Return the entries for its settings.

        Args:
            script: The script as the command line names it; see `in_command`.
            content: The script's content.
            wake: Whether to include the background hook that wakes an idle session, if the client has one.
        """
        run = _RUN
        if scope == PROJECT and self.name in _CHECKED:
            run = _CHECK.replace("@DIGEST@", sha256(content).hexdigest())
        found = [self._entry(f"{run}{script} {event}{END}", event, seconds) for event, seconds in self.events]
        if wake and self.name == "claude-code":
            line = f"{run}{script} {WAKE}{END}"
            handler = {
                "type": "command",
                "command": line,
                "timeout": WAKE_SECONDS,
                "async": True,
                "asyncRewake": True,
            }
            found.append(HookEntry("Stop", line, {"hooks": [handler]}))
        return found

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
        found = hook_paths.program(self.state) if self.state is not None else None
        return found if found is not None and hook_paths.is_listed(self.user, found) else None

    def base(self, client: Client, scope: str) -> str | None:
        """Return the folder of a client, or None in project scope without a worktree."""
        if scope == USER:
            return self.moved.get(client.name) or os.path.join(
                self.home, *(client.home_base or client.base).split("/")
            )
        return os.path.join(self.worktree, client.base) if self.worktree is not None else None


def find(client: Client, folders: ClientFolders) -> str | None:
    """Return the sign that a client is in use here, in some words, or None without one."""
    if folders.worktree is not None:
        for sign in client.signs or (client.base,):
            if os.path.lexists(os.path.join(folders.worktree, *sign.split("/"))):
                return f"{sign} is in the project"
    folder = folders.base(client, USER)
    if folder is not None and os.path.lexists(folder):
        return f"{folder} exists"
    for program in client.programs:
        if program in folders.programs:
            return f"{program} is on the PATH"
    return None
