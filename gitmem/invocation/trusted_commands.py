"""Commands that a repository names for its agents: they run only after the user has trusted exactly this text on this machine.

A command stands in `.gitmem/roles.toml`, which anybody may change who can push. Each trusted one has a file in `<state>/trusted/`, named by the SHA-256
of agent and command; no fetch or checkout can write there. What a command starts, such as a script of the repository, is not covered.
"""

from __future__ import annotations

import json
import os

from .. import atomic_write, state_files
from ..agents import vocabulary
from ..digests import sha256
from ..errors import UsageError
from ..log.lines import format_at
from ..outcome import command
from ..text.name_matching import fold
from ..text.sanitize import sanitize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..store import Store

FOLDER, FILE_MAX_BYTES = "trusted", 256 * 1024


def find(store: Store, name: str, *, trust: bool = False) -> str:
    """Return the command that the repository names for an agent.

    Args:
        name: The agent's name, an alias of `.gitmem/roles.toml`.
        trust: Whether the user trusts the command as it is now, and from now on.

    Raises:
        UsageError: `no-command` or `not-trusted`. Nothing was written.
        StoreError: `read-only`: the trust can't be recorded.
    """
    alias = vocabulary.read(store.repo.worktree).pack.aliases.get(fold(name))
    if alias is None or alias.exec is None:
        raise UsageError(
            f"No command for {sanitize(name)}: {vocabulary.FILE} names none. Nothing was written.",
            hint="Give one with --exec CMD or --callable MODULE:FUNCTION.",
            code="no-command",
        )
    path = os.path.join(store.repo.state, FOLDER, _digest(alias.name, alias.exec))
    if trust:
        _record(store, path, alias.name, alias.exec)
    if not _is_trusted(path, alias.name, alias.exec):
        raise UsageError(
            f"The command for {alias.name} in {vocabulary.FILE} is not trusted on this machine: {sanitize(alias.exec)}. Nothing was written.",
            hint="Whoever can push can change that file. Only your user may decide to run it.",
            code="not-trusted",
            next=[command("gitmem", "serve-agent", name, "--trust")],
        )
    return alias.exec


def _digest(name: str, text: str) -> str:
    return sha256(f"{fold(name)}\n{text}".encode()).hexdigest()


def _is_trusted(path: str, name: str, text: str) -> bool:
    """Return whether this user has recorded that a command is trusted: others may write to the folders of a shared repository."""
    try:
        with open(state_files.open_file(path, os.O_RDONLY), "rb") as file:
            found = os.fstat(file.fileno())
            value = json.loads(file.read(FILE_MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return False
    if found.st_uid != os.geteuid() or found.st_mode & 0o022:
        return False
    return isinstance(value, dict) and value.get("agent") == name and value.get("exec") == text


def _record(store: Store, path: str, name: str, text: str) -> None:
    content = json.dumps({"agent": name, "exec": text, "at": format_at(store.now())}) + "\n"
    atomic_write.record_choice(store.repo.state, path, content.encode(), "the trust", private=state_files.OWN)
