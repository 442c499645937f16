"""The status of hooks: whether they are installed, complete, and able to work."""

from __future__ import annotations

import json
import os

from ...digests import sha256
from ...errors import GitmemError
from ...log.lines import format_at
from ...outcome import Outcome, command
from . import clients, git_hook, hook_errors
from .client_scope import ABSENT, BROKEN, ClientScope, bare, target_of
from .clients import CLIENTS, PROJECT, SCOPES, USER, Client, ClientFolders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .clients import HookEntry
    from .settings import OwnEntry

BEATS = "beats"

TRUSTED, UNTRUSTED, CHANGED, UNKNOWN = "trusted", "untrusted", "changed", "unknown"
ELSEWHERE = "elsewhere"
CONFIG = "config.toml"


class ScopeStatus(Outcome):
    """The hooks of one client in one scope.

    Attributes:
        scope: `project` or `user`.
        state: `installed`, `outdated`, `incomplete`, `broken` or `not installed`.
        files: Its existing files.
        trust: Whether Codex runs the hooks: `trusted`, `untrusted`, `changed`, `unknown`, `elsewhere` (it reads the
            main worktree's file, which has none of ours); None for other clients.
        problem: The error, in a sentence; "" without one.
    """

    def __init__(self, scope: str, state: str) -> None:
        self.scope = scope
        self.state = state
        self.files: list[str] = []
        self.trust: str | None = None
        self.problem = ""


class ClientStatus(Outcome):
    """The hooks of one client.

    Attributes:
        found: The sign of its use here, or None.
        pushed: Whether its model receives signals without asking.
        scopes: The scopes where something of ours is installed, or broken.
    """

    def __init__(self, client: Client, found: str | None) -> None:
        self.client = client.name
        self.title = client.title
        self.found = found
        self.pushed = client.pushes
        self.scopes: list[ScopeStatus] = []


class HookStatus(Outcome):
    """The hooks of all clients.

    Attributes:
        clients: The clients that are in use or have something installed.
        program: The program that hooks run, as noted in this repository; None if they search the PATH.
        program_works: Whether the hooks find a program that can be run.
        last_run: The last run of a session's hook in this clone, or None.
        last_error: The last error in a hook, with its time, or None.
        pre_push, pre_commit, post_commit: `installed`, `outdated`, `not run` (git does not run the file that calls ours), `only in files`
            (a checkout brought that file alone), `not installed` or `foreign` (only a hook that is not ours), for this worktree.
        replaced: Which of git's hooks another tool has overwritten after we installed it.
        hooks_path: `core.hooksPath`, or None.
        manager: A tool that writes git's hooks here, such as `husky`, or None.
    """

    def __init__(self) -> None:
        self.clients: list[ClientStatus] = []
        self.program: str | None = None
        self.program_works = False
        self.last_run: str | None = None
        self.last_error: str | None = None
        self.pre_push = self.pre_commit = self.post_commit = ABSENT
        self.replaced: list[str] = []
        self.hooks_path: str | None = None
        self.manager: str | None = None
        self.next: list[str] = []

    @property
    def installed(self) -> list[tuple[ClientStatus, ScopeStatus]]:
        """The clients and scopes with files of ours."""
        return [(client, scope) for client in self.clients for scope in client.scopes if scope.files]

    @property
    def broken(self) -> list[tuple[ClientStatus, ScopeStatus]]:
        """The clients and scopes with a file that can't be read, even without anything of ours."""
        return [
            (client, scope) for client in self.clients for scope in client.scopes if scope.state == BROKEN
        ]

    @property
    def status(self) -> int:
        """The exit status: 1 if a file can't be read."""
        return 1 if self.broken else 0


def read_status(
    folders: ClientFolders, hooks: Mapping[str, git_hook.Hook] | None = None, hooks_path: str | None = None
) -> HookStatus:
    """Return the status of all clients and of git's hooks, without changing anything.

    Args:
        folders: The folders of the clients.
        hooks: Git's hooks by their names; None without a repository.
        hooks_path: `core.hooksPath`, or None.
    """
    found = HookStatus()
    for client in CLIENTS.values():
        status = ClientStatus(client, clients.find(client, folders))
        status.scopes = [
            each for each in (_scope(folders, client, scope) for scope in SCOPES) if each is not None
        ]
        if status.found or status.scopes:
            found.clients.append(status)
    found.program = folders.noted_program()
    found.program_works = runs(found.program, folders)
    found.last_run = _last_run(folders)
    found.last_error = hook_errors.read(folders.state) if folders.state is not None else None
    hooks = hooks or {}
    states = {name: git_hook.state(hook) for name, hook in hooks.items()}
    found.pre_push = states.get(git_hook.PRE_PUSH, ABSENT)
    found.pre_commit = states.get(git_hook.PRE_COMMIT, ABSENT)
    found.post_commit = states.get(git_hook.POST_COMMIT, ABSENT)
    found.replaced = [name for name, hook in hooks.items() if git_hook.is_replaced(hook)]
    found.hooks_path = hooks_path
    found.manager = git_hook.manager(list(hooks.values()))
    found.next = _next(found, folders)
    return found


def _next(found: HookStatus, folders: ClientFolders) -> list[str]:
    install = ["gitmem", "hooks", "install"]
    wrong = [scope for _, scope in found.installed if scope.state not in ("installed", BROKEN)]
    whole = [scope for _, scope in found.installed if scope.state != BROKEN]
    steps = [
        command(*install, "--client", client.client, "--scope", scope.scope)
        for client, scope in found.broken[:1]
    ]
    if wrong:
        steps.append(command(*install, "--scope", wrong[0].scope))
    if found.manager is not None:
        steps += [command(*install, "--git", name) for name in found.replaced]
    states = zip(git_hook.NAMES, (found.pre_push, found.pre_commit, found.post_commit), strict=True)
    half = [word for name, state in states if state == git_hook.HALF for word in ("--git", name)]
    steps += [command(*install, *half)] if half else []
    if whole:
        steps.append("gitmem hooks test")
    elif not steps and found.clients:  # an install without a client is refused
        steps.append(command(*install, *(["--scope", USER] if folders.worktree is None else [])))
    return steps


def runs(program: str | None, folders: ClientFolders) -> bool:
    """Return whether the hooks find a gitmem program to run."""
    if program is not None and os.path.isfile(program) and os.access(program, os.X_OK):
        return True
    return "gitmem" in folders.programs


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
    except GitmemError as error:
        found = ScopeStatus(scope, BROKEN)
        found.files = target.seen()
        found.problem = bare(error)
    return found


def trust(folders: ClientFolders, target: ClientScope) -> str:
    """Return whether Codex runs the hooks. In a linked worktree it reads only the main worktree's project file."""
    folder = folders.base(target.client, USER)
    assert folder is not None
    if target.scope == PROJECT:
        main = folders.main or folders.worktree
        assert main is not None
        if trusts_project(folder, main) is False:
            return UNTRUSTED
        if folders.main is not None:
            target = ClientScope(target.client, PROJECT, folders, os.path.join(main, target.client.base))
    assert target.settings is not None
    ours = target.settings.ours()
    if not ours:
        return ELSEWHERE
    return trust_state(folder, target.settings.path, ours, target.wanted(False))


def _last_run(folders: ClientFolders) -> str | None:
    newest = 0
    if folders.state is None:
        return None
    try:
        with os.scandir(os.path.join(folders.state, BEATS)) as entries:
            for entry in entries:
                newest = max(newest, entry.stat().st_mtime_ns // 1000)
    except OSError:
        pass  # no hook has ever run here
    return format_at(newest) if newest else None


def trust_state(
    config_folder: str, settings: str, ours: Sequence[OwnEntry], wanted: Sequence[HookEntry]
) -> str:
    """Return `trusted`, `untrusted` (a hook was never reviewed), `changed` (reviewed in another form) or `unknown`.

    Args:
        config_folder: Codex's own folder in the home folder.
        settings: The hooks file with the entries `ours`.
    """
    config = _config(config_folder)
    if config is None:
        return UNKNOWN
    if not config:
        return UNTRUSTED
    state = _table(_table(config, "hooks"), "state")
    digests = {each.command: digest(each) for each in wanted}
    states = set()
    for each in ours:
        place = f"{os.path.realpath(settings)}:{_snake(each.event)}:{each.group}:{each.handler}"
        kept = _table(state, place).get("trusted_hash")
        states.add(UNTRUSTED if kept is None else TRUSTED if kept == digests.get(each.command) else CHANGED)
    return next((word for word in (UNTRUSTED, CHANGED) if word in states), TRUSTED if states else UNKNOWN)


def trusts_project(config_folder: str, worktree: str) -> bool | None:
    """Return whether Codex reads a project's hooks at all, or None if its settings can't be read."""
    config = _config(config_folder)
    if config is None:
        return None
    return _table(_table(config, "projects"), os.path.realpath(worktree)).get("trust_level") == "trusted"


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
