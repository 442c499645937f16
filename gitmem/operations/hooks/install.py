"""Hooks on and off: everything is read and checked first, and only then is anything written."""

from __future__ import annotations

import os

from ...errors import UsageError
from .. import pointers
from ..outcome import Outcome
from ..quoting import command
from . import advice, clients, files, record
from .clients import ALL_FOUND, CLIENTS, NOTHING, PROJECT, SCOPES, USER, Client, Places
from .files import Change
from .record import Record
from .target import Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .git_hook import Gated


class ClientHooks(Outcome):
    """What became of one client.

    Attributes:
        client, title: Its name here, and its own.
        scope: `project` or `user`.
        why: Why it was taken: asked for, or what was found of it.
        state: `installed`, `updated`, `unchanged`, `advised` (it takes no hooks), `removed` or `absent`.
        pushed: Whether signals reach its model by themselves.
        files: The files that were changed.
        remarks: What its user must know or do.
    """

    __slots__ = ("client", "title", "scope", "why", "state", "pushed", "files", "remarks")

    def __init__(self, client: Client, scope: str, why: str) -> None:
        self.client = client.name
        self.title = client.title
        self.scope = scope
        self.why = why
        self.state = "unchanged"
        self.pushed = client.pushes
        self.files: list[str] = []
        self.remarks: list[str] = []


class Hooked(Outcome):
    """What install or uninstall did.

    Attributes:
        clients: Each client that was looked at.
        git: What became of git's own hook, where that was asked for.
        program: The program that the hooks run; None where they can't be told.
        remarks: What holds for all of them.
    """

    __slots__ = ("clients", "git", "program", "remarks", "next")

    def __init__(self, found: list[ClientHooks], program: str | None) -> None:
        self.clients = found
        self.git: Gated | None = None
        self.program = program
        self.remarks: list[str] = []
        self.next: list[str] = []


class _Plan:
    """What is to be done for one client."""

    def __init__(self, said: ClientHooks, target: Target | None) -> None:
        self.said = said
        self.target = target
        self.changes: list[Change] = []
        self.kept: Record | None = None


def install(
    places: Places, names: Sequence[str], scope: str, *, program: str | None, wake: bool = False
) -> Hooked:
    """Have clients show signals to their models.

    Args:
        names: The clients' names; `all-found` stands for those that are in use here.
        program: The absolute path of the gitmem program that the hooks are to run.
        wake: With the background hook that wakes an idle session of Claude Code.

    Raises:
        UsageError: A name or scope is none, nothing was found, or a file can't be changed safely. Nothing was written.
        StoreError: A file can't be read or written.
    """
    plans = [_plan(places, client, scope, why) for client, why in chosen(places, names, scope)]
    for plan in plans:
        if plan.target is not None:
            plan.changes, plan.kept = plan.target.put_in(wake=wake)
    for plan in plans:
        _put_in(plan)
        plan.said.remarks += advice.remarks(plan.said.client, scope, places, wake=wake)
    found = Hooked([plan.said for plan in plans], program)
    if program is not None:
        try:
            os.makedirs(places.state, exist_ok=True)
        except OSError:
            pass  # the sandbox of an agent: the hooks look on the PATH
        if not pointers.write(places.state, program=program):
            found.remarks.append(
                "The program could not be noted in the git folder; the hooks look for gitmem on the PATH."
            )
    found.remarks += advice.for_all(found.clients, scope, wake=wake)
    asks = [command("gitmem", "hooks", "test")] if any(each.pushed for each in found.clients) else []
    found.next = [
        *asks,
        *(["gitmem watch"] if not all(each.pushed for each in found.clients) else []),
        "gitmem hooks status",
    ]
    return found


def uninstall(places: Places, names: Sequence[str], scope: str) -> Hooked:
    """Take out what install put in, and nothing else. `all-found` stands for every client. Errors as in `install`."""
    every = [(client, "asked for") for client in CLIENTS.values()]
    picked = every if ALL_FOUND in names else chosen(places, names, scope)
    plans = [_plan(places, client, scope, why) for client, why in picked]
    for plan in plans:
        if plan.target is not None:
            plan.changes = plan.target.take_out()
    for plan in plans:
        _take_out(plan)
    found = Hooked(
        [plan.said for plan in plans if plan.changes or ALL_FOUND not in names],
        pointers.program(places.state),
    )
    found.remarks += advice.left(places, scope)
    found.next = ["gitmem hooks status"]
    return found


def chosen(places: Places, names: Sequence[str], scope: str) -> list[tuple[Client, str]]:
    """The clients that are meant, each with the reason."""
    if scope not in SCOPES:
        raise UsageError(
            f"--scope {scope} is none of {', '.join(SCOPES)}; nothing was written.", code="unknown-scope"
        )
    known = [*CLIENTS, ALL_FOUND]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UsageError(
            f"--client {unknown[0]} is no client that gitmem knows; nothing was written.",
            hint=f"It knows {', '.join(known)}.",
            code="unknown-client",
            suggestions=[name for name in known if name[:2] == unknown[0][:2].lower()],
            next=["gitmem hooks status"],
        )
    found: dict[str, tuple[Client, str]] = {}
    for client in CLIENTS.values():
        if client.name in names:
            found[client.name] = (client, "asked for")
        elif ALL_FOUND in names and (why := clients.find(client, places)):
            found[client.name] = (client, why)
    if not found:
        raise UsageError(
            "No client was found here, neither a folder of one in the project or the home folder nor a program; nothing was written.",
            hint=f"Name one with --client: {', '.join(CLIENTS)}.",
            code="no-client",
            next=["gitmem hooks install --client claude-code"],
        )
    return list(found.values())


def target_of(places: Places, client: Client, scope: str) -> Target | None:
    """A client in a scope; None where it has nothing there that we could write."""
    base = places.base(client, scope)
    if base is None:
        raise UsageError(
            "This is a bare repository, which has no files of a project; nothing was written.",
            hint="With --scope user the hooks are in your home folder.",
            code="no-worktree",
            next=["gitmem hooks install --scope user"],
        )
    nowhere = client.form == NOTHING or (client.form == clients.RULE and scope == USER)
    return None if nowhere else Target(client, scope, places, base)


def _plan(places: Places, client: Client, scope: str, why: str) -> _Plan:
    return _Plan(ClientHooks(client, scope, why), target_of(places, client, scope))


def _put_in(plan: _Plan) -> None:
    target, said = plan.target, plan.said
    if target is None:
        said.state = "advised"
        return
    made: list[str] = []
    old = record.read(target.record_path)
    is_update = any(
        change.before is not None for change in plan.changes if change.needed and _is_ours(change, target)
    )
    own = [change for change in plan.changes if change.path != target.settings]
    said.files = [change.path for change in own if files.apply(change, made)]
    if target.scope == PROJECT:
        _make_quietly(os.path.dirname(target.record_path))
    kept = plan.kept or (old if old is not None else Record())
    kept.folders = list(dict.fromkeys([*(old.folders if old is not None else []), *made]))
    if said.files or plan.kept is not None:
        _remember(target.record_path, kept)
    said.files += [change.path for change in plan.changes if change not in own and files.apply(change, made)]
    if said.files:
        said.state = "updated" if is_update else "installed"


def _is_ours(change: Change, target: Target) -> bool:
    return change.path != target.settings or bool(target.ours(target.text()))


def _make_quietly(folder: str) -> None:
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        return  # without a record uninstall tries what install would have done


def _remember(path: str, kept: Record) -> None:
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "wb") as file:
            file.write(kept.encode())
        os.replace(temporary, path)
    except OSError:
        return


def _take_out(plan: _Plan) -> None:
    target, said = plan.target, plan.said
    said.state = "absent"
    if target is None:
        return
    old = record.read(target.record_path)
    said.files = [change.path for change in plan.changes if files.apply(change, [])]
    try:
        os.unlink(target.record_path)
    except OSError:
        pass  # there was none
    if said.files:
        said.state = "removed"
        files.remove_folders(old.folders if old is not None else _usual_folders(target, said.files))


def _usual_folders(target: Target, removed: Sequence[str]) -> list[str]:
    """The folders that git or an install has made for the files that are gone."""
    found = {target.base}
    for path in removed:
        folder = os.path.dirname(path)
        while folder.startswith(os.path.join(target.base, "")):
            found.add(folder)
            folder = os.path.dirname(folder)
    return list(found)
