"""Install and remove hooks, and tell their status: whether they are installed, complete, and able to work.

The files of a client are written all or none. A failure of one client does not stop the others that were found.
"""

from __future__ import annotations

import json
import os

from .. import local_files
from ..agents import doors
from ..errors import GitmemError
from ..outcome import Outcome, command
from ..text.digests import sha256
from . import agents_md, clients, git_hook, hook_state
from .client_scope import ABSENT, BROKEN, ClientHooks, ClientScope, chosen_clients, target_of
from .clients import ALL_FOUND, CLIENTS, PROJECT, SCOPES, USER, Client, ClientFolders
from .managed_files import bare_message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .agents_md import AgentsMdBlock
    from .clients import HookEntry
    from .git_hook import GitHookResult


TRUSTED, UNTRUSTED, CHANGED, UNKNOWN = "trusted", "untrusted", "changed", "unknown"
ELSEWHERE = "elsewhere"
SKIPPED = (UNTRUSTED, CHANGED, ELSEWHERE)
TRUST = {
    TRUSTED: "Reviewed and trusted",
    UNTRUSTED: "NOT trusted yet: Codex skips the hooks until you review them: start codex and type /hooks",
    CHANGED: "Changed since they were reviewed: Codex skips the hooks until you review them again with /hooks",
    ELSEWHERE: "In a linked worktree Codex reads the main worktree's file, which has no gitmem hooks",
    UNKNOWN: "Cannot read whether Codex trusts the hooks",
}
CONFIG = "config.toml"


class ScopeStatus(Outcome):
    """The hooks of one client in one scope.

    Attributes:
        scope: `project` or `user`.
        state: `installed`, `outdated`, `incomplete`, `broken` or `not installed`.
        files: Its existing files.
        trust: Whether Codex runs the hooks: `trusted`, `untrusted`, `changed`, `unknown`, `elsewhere` (it reads the
            main worktree's file, which has none of ours); None for other clients.
        instructions: Those that its model reads; None if it reads none in this scope.
        problem: The error, in a sentence; "" without one.
    """

    scope: str
    state: str
    files: list[str] = []
    trust: str | None = None
    instructions: AgentsMdBlock | None = None
    problem: str = ""


class ClientStatus(Outcome):
    """The hooks of one client.

    Attributes:
        found: The sign of its use here, or None.
        pushed: Whether its model receives signals without asking.
        scopes: The scopes where something of ours is installed, or broken.
    """

    client: str
    title: str
    found: str | None
    pushed: bool
    scopes: list[ScopeStatus]


class HookStatus(Outcome):
    """The hooks of all clients.

    Attributes:
        clients: The clients that are in use or have something installed.
        program: The program that hooks run, as noted in this repository; None if they search the PATH.
        program_works: Whether the hooks find a program that can be run.
        last_error: The last error in a hook, with its time, or None.
        pre_push, pre_commit, post_commit: `installed`, `outdated`, `not run` (git does not run the file that calls ours), `only in files`
            (a checkout brought that file alone), `not installed` or `foreign` (only a hook that is not ours), for this worktree.
        replaced: Which of git's hooks another tool has overwritten after we installed it.
        hooks_path: `core.hooksPath`, or None.
        manager: A tool that writes git's hooks here, such as `husky`, or None.
    """

    clients: list[ClientStatus] = []
    program: str | None = None
    program_works: bool = False
    last_error: str | None = None
    pre_push: str = ABSENT
    pre_commit: str = ABSENT
    post_commit: str = ABSENT
    replaced: list[str] = []
    hooks_path: str | None = None
    manager: str | None = None

    @property
    def installed(self) -> list[tuple[ClientStatus, ScopeStatus]]:
        """The clients and scopes with files of ours."""
        return [(client, scope) for client in self.clients for scope in client.scopes if scope.files]


def read_status(
    folders: ClientFolders, hooks: Mapping[str, git_hook.Hook] | None = None, hooks_path: str | None = None
) -> HookStatus:
    """Return the status of all clients and of git's hooks, without changing anything.

    Args:
        folders: The folders of the clients.
        hooks: Git's hooks by their names; None without a repository.
        hooks_path: `core.hooksPath`, or None.
    """
    hooks = hooks or {}
    found = HookStatus(
        program=folders.noted_program(),
        last_error=hook_state.read_error(folders.state) if folders.state is not None else None,
        replaced=[name for name, hook in hooks.items() if git_hook.is_replaced(hook)],
        hooks_path=hooks_path,
    )
    for client in CLIENTS.values():
        scopes = [each for each in (_scope(folders, client, scope) for scope in SCOPES) if each is not None]
        sign = clients.sign_of(client, folders)
        if sign or scopes:
            found.clients.append(ClientStatus(client.name, client.title, sign, client.pushes, scopes))
    noted = found.program or ""
    is_there = os.path.isfile(noted) and os.access(noted, os.X_OK)
    found.program_works = is_there or "gitmem" in folders.programs
    for name, hook in hooks.items():
        setattr(found, name.replace("-", "_"), git_hook.state(hook))
    found.manager = next((hook.writer for hook in hooks.values() if hook.writer is not None), None)
    return found


def _scope(folders: ClientFolders, client: Client, scope: str) -> ScopeStatus | None:
    target = target_of(folders, client, scope) if folders.base(client, scope) is not None else None
    if target is None:
        return None
    try:
        found = ScopeStatus(scope, target.state())
        if found.state == ABSENT:
            return None
        found.files = target.own_paths()
        if target.settings is not None and target.settings.ours():
            found.files.append(target.settings.path)
            if client.name == "codex":
                found.trust = trust(folders, target)
        found.instructions = agents_md.check(folders, client.name, scope)
    except GitmemError as error:
        found = ScopeStatus(scope, BROKEN)
        found.files = target.seen()
        found.problem = bare_message(error)
    return found


def trust(folders: ClientFolders, target: ClientScope) -> str:
    """Return whether Codex runs the hooks, see `ScopeStatus`. In a linked worktree it reads only the main worktree's project file."""
    folder = folders.base(target.client, USER)
    config = _config(folder or "")
    if config is None:
        return UNKNOWN
    if target.scope == PROJECT:
        main = folders.main or folders.worktree or ""
        if _table(_table(config, "projects"), os.path.realpath(main)).get("trust_level") != "trusted":
            return UNTRUSTED
        if folders.main is not None:
            target = ClientScope(target.client, PROJECT, folders, os.path.join(main, target.client.base))
    assert target.settings is not None
    ours = target.settings.ours()
    if not ours:
        return ELSEWHERE
    state = _table(_table(config, "hooks"), "state")
    digests = {each.command: digest(each) for each in target.wanted()}
    states = set()
    for each in ours:
        place = f"{os.path.realpath(target.settings.path)}:{_snake(each.event)}:{each.group}:{each.handler}"
        kept = _table(state, place).get("trusted_hash")
        states.add(UNTRUSTED if kept is None else TRUSTED if kept == digests.get(each.command) else CHANGED)
    return next(word for word in (UNTRUSTED, CHANGED, TRUSTED) if word in states)


def digest(entry: HookEntry) -> str:
    """Return the digest that Codex stores for a reviewed hook."""
    handlers = entry.value["hooks"]
    assert isinstance(handlers, list)
    handler = handlers[0]
    matcher = entry.value.get("matcher")
    reviewed = {
        "event_name": _snake(entry.event),
        **({"matcher": matcher} if matcher is not None else {}),
        "hooks": [
            {"async": False, "command": handler["command"], "timeout": handler["timeout"], "type": "command"}
        ],
    }
    text = json.dumps(reviewed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{sha256(text.encode()).hexdigest()}"


def _config(folder: str) -> dict[str, object] | None:
    """Return Codex's settings: empty if there are none, None if they can't be read."""
    import tomllib

    try:
        with open(os.path.join(folder, CONFIG), "rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        return None


def _table(of: dict[str, object], name: str) -> dict[str, object]:
    found = of.get(name)
    return found if isinstance(found, dict) else {}


def _snake(event: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in event).lstrip("_")


SIGNALS_FILE = ".aider.signals.md"
_ALWAYS = {
    "cursor": ["Cursor may run Claude Code's hooks too (third-party skills): a signal is still shown once."],
    "cline": ["Enable hooks in Cline's settings. Signals are shown with a tool's result."],
    "opencode": ["OpenCode reads plugins when it starts: restart it."],
    "aider": [
        f"Aider has no hooks. Nothing was written. Run `gitmem watch --as NAME --write {SIGNALS_FILE}` in a side terminal, and start it with `aider --read {SIGNALS_FILE}`.",
        "NAME is the agent's session; without --as, the watch shows your own signals.",
        f"Add {SIGNALS_FILE} to .git/info/exclude or .gitignore; do not commit it.",
    ],
}
_IN_PROJECTS = {
    "claude-code": [
        "Claude Code reads project hooks from the folder it is started in: start it at the top of the worktree."
    ],
    "gemini": [
        "Gemini CLI runs a project's hooks only in a folder that you trust, started at the top of the worktree."
    ],
    "copilot": [
        "Copilot runs a project's hooks only in a folder that you trust. VS Code reads the same file."
    ],
}


def _each(
    folders: ClientFolders,
    picked: Sequence[Client],
    scope: str,
    step: Callable[[ClientHooks, ClientScope | None], None],
) -> tuple[list[ClientHooks], int]:
    """Take a step with each client and its files, None where there are none that we could write; an error with one stops no other.

    Returns:
        The results, and the exit status of the worst error.
    """
    found, status = [], 0
    for client in picked:
        result = ClientHooks(client.name, client.title, scope, client.pushes)
        target = target_of(folders, client, scope)
        try:
            step(result, target)
        except GitmemError as error:
            status = max(status, error.status)
            result.state, result.files, result.problem = "failed", [], bare_message(error)
            result.remarks = [error.hint] if error.hint else []
        found.append(result)
    return found, status


class _Ended(Outcome):
    """A result with an exit status, which is not a field of its JSON."""

    __slots__ = ("status",)


class InstallResult(_Ended):
    """The result of install or uninstall.

    Attributes:
        clients: Each selected client.
        git: The results for git's own hooks that were requested.
        program: The program that the hooks run; None if it can't be determined.
        remarks: Remarks for all clients.
        status: Exit status: that of the worst error of a client, 0 without one.
    """

    __slots__ = ("clients", "git", "program", "remarks")

    def __init__(self, found: list[ClientHooks], program: str | None) -> None:
        self.clients = found
        self.git: list[GitHookResult] = []
        self.program = program
        self.status = 0
        self.remarks: list[str] = []


def install(
    folders: ClientFolders,
    names: Sequence[str],
    scope: str,
    *,
    program: str | None,
    dry_run: bool = False,
) -> InstallResult:
    """Install hooks that show signals to the models of clients.

    Args:
        names: The clients' names; `all-found` means those in use here.
        program: The absolute path of the gitmem program that the hooks run.
        dry_run: Whether to write nothing: the results have the files that would be written.

    Returns:
        The result. A client whose files can't be read or written safely is `failed`; its changes are undone.

    Raises:
        UsageError: An unknown name or scope, or a project scope without a work tree; nothing was written.
    """

    def step(result: ClientHooks, target: ClientScope | None) -> None:
        changes = target.install() if target is not None else []
        if dry_run:
            result.files = [each.path for each in changes if each.needed]
            return
        if target is None:
            result.state = "advised"
        else:
            is_update = target.state() != ABSENT
            result.files = target.write_install(changes)
            if result.files:
                result.state = "updated" if is_update else "installed"
        _add_remarks(result, target, folders)

    results, status = _each(folders, chosen_clients(folders, names), scope, step)
    found = InstallResult(results, program)
    if dry_run:
        return found
    found.status = status
    if any(each.state != "failed" for each in results):
        _name_program(found, folders, scope)
    found.remarks += remarks_for_all(results, scope)
    return found


def uninstall(
    folders: ClientFolders,
    names: Sequence[str],
    scope: str,
    *,
    dry_run: bool = False,
) -> InstallResult:
    """Remove the entries and files of install, and nothing else.

    Args:
        names: The clients' names; `all-found` means every client.
        dry_run: Whether to write nothing: the results have the files that would be changed.

    Raises:
        UsageError: As in `install`.
    """

    def step(result: ClientHooks, target: ClientScope | None) -> None:
        changes = target.uninstall() if target is not None else []
        result.files = [each.path for each in changes]
        if not dry_run and target is not None:
            result.files = target.write_uninstall(changes)
        if not dry_run:
            result.state = "removed" if result.files else "absent"

    every = ALL_FOUND in names
    picked = list(CLIENTS.values()) if every else chosen_clients(folders, names)
    results, status = _each(folders, picked, scope, step)
    shown = [each for each in results if each.files or each.state == "failed" or not every]
    found = InstallResult(shown, folders.noted_program())
    found.status = status
    if not dry_run:
        other = _other(scope)
        still = [client.title for client in installed_clients(folders, other)]
        found.remarks += [f"Still installed in {other} scope: {', '.join(still)}."] if still else []
    return found


def _add_remarks(result: ClientHooks, target: ClientScope | None, folders: ClientFolders) -> None:
    """Add the remarks for the user; for an unchanged client only that Codex does not run its hooks."""
    if result.state != "unchanged":
        result.remarks += remarks(result.client, result.scope, folders)
        file = target.attributes() if target is not None and target.lacks_attributes() else None
        if file is not None:
            result.remarks.append(
                f"{file.path} is yours and was not changed. With `* text eol=lf` there, checkouts with core.autocrlf keep the script as it is."
            )
    elif result.state == "unchanged" and result.client == "codex" and target is not None:
        word = trust(folders, target)
        result.remarks += [f"{TRUST[word]}."] if word in SKIPPED else []


def _name_program(found: InstallResult, folders: ClientFolders, scope: str) -> None:
    """Note the program that the hooks run, and add remarks if they may not find one."""
    program, on_path = found.program, folders.programs.get("gitmem")
    if folders.state is None:
        found.program = on_path
    elif program is None:
        found.remarks.append("The hooks use gitmem from the PATH: this one is not an installed program.")
    else:
        try:
            local_files.make_dirs(folders.state)
        except OSError:
            pass  # in an agent's sandbox: the hooks search the PATH
        if not clients.write_paths(folders.state, user=folders.user, program=program):
            found.remarks.append(
                "Cannot store the program's path in the git folder and your state folder; the hooks use gitmem from the PATH."
            )
    if on_path is None and scope == USER:
        found.remarks.append(
            "gitmem is not on the PATH: hooks find it only in repositories where a gitmem command has stored its path. Add it to the PATH of your clients."
        )


def remarks(name: str, scope: str, folders: ClientFolders) -> list[str]:
    """Return the remarks for one client after an install."""
    found = [*_ALWAYS.get(name, ()), *(_IN_PROJECTS.get(name, ()) if scope == PROJECT else ())]
    if name in doors.DOORS:
        found.append(
            f"A session that waits for you is woken for a message to it, by {doors.DOORS[name][0]}; `gitmem roster` shows which are."
        )
    if name == "codex":
        found += _codex(scope, folders)
    elif name == "windsurf":
        found.append(
            "Windsurf supports project scope only: use --scope project. Nothing was written."
            if scope == USER
            else "Windsurf hooks cannot show text to the model. The installed rule asks the model to run `gitmem inbox`; `gitmem watch` in a side terminal shows signals to you."
        )
    if name in CLIENTS and CLIENTS[name].pushes and is_installed(folders, CLIENTS[name], _other(scope)):
        found.append(
            f"The hooks are also installed in {_other(scope)} scope: they run twice, and a signal is still shown once."
        )
    return found


def _codex(scope: str, folders: ClientFolders) -> list[str]:
    found = [
        "Codex silently skips a hook until you have reviewed it: start codex and type /hooks. `gitmem doctor` shows whether they are trusted."
    ]
    if scope == PROJECT:
        found.append("It reads project hooks only if you trust the project.")
        if folders.main is not None:
            found.append(
                f"In a linked worktree it reads only the main worktree's hooks, and only if the linked worktree has a .codex folder: use --scope user, or run `{command('gitmem', '-C', folders.main, 'setup', '--client', 'codex')}`."
            )
    common = os.path.dirname(folders.state) if folders.state is not None else "…/.git"
    found.append(
        f'Records written in its sandbox wait until a hook commits them. With writable_roots = ["{common}"] under [sandbox_workspace_write] in config.toml they are committed at once.'
    )
    return found


def remarks_for_all(done: Sequence[ClientHooks], scope: str) -> list[str]:
    """Return the remarks for all clients of an install."""
    found = []
    failed = [each.title for each in done if each.state == "failed"]
    if failed and len(failed) < len(done):
        there = [each.title for each in done if each.state not in ("failed", "advised")]
        found.append(f"Installed: {', '.join(there) or 'none'}. Not installed: {', '.join(failed)}.")
    if scope == PROJECT and any(each.files for each in done):
        found.append(
            "Commit these files to install the hooks in every worktree and clone; --scope user installs them for you only, in every repository."
        )
    return found


def other_worktrees(folders: ClientFolders) -> list[str]:
    """Return the other worktrees of this clone with something of ours in a project's files."""
    here = os.path.realpath(folders.worktree or "")
    found = [
        folders._replace(worktree=top) for top in clients.worktrees(folders) if os.path.realpath(top) != here
    ]
    return [
        str(each.worktree)
        for each in found
        if installed_clients(each, PROJECT) or agents_md.written(each, PROJECT)
    ]


def installed_clients(folders: ClientFolders, scope: str) -> list[Client]:
    """Return the clients with something of ours in a scope."""
    return [client for client in CLIENTS.values() if is_installed(folders, client, scope)]


def is_installed(folders: ClientFolders, client: Client, scope: str) -> bool:
    """Return whether anything of ours is installed for a client in a scope."""
    try:
        target = target_of(folders, client, scope)
        return target is not None and target.state() != ABSENT
    except GitmemError:
        return False


def _other(scope: str) -> str:
    return USER if scope == PROJECT else PROJECT
