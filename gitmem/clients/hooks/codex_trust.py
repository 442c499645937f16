"""Whether Codex runs our hooks: it keeps a digest of each one that its user has reviewed, and skips the others.

The key of a hook has the absolute path of its file, its event and its place in it; the digest is of what it
does (checked against the `hooks/list` of Codex 0.169). The script's content is not part of it.
"""

from __future__ import annotations

import json
import os

from ...digests import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .settings import HookEntry, Ours

TRUSTED, UNTRUSTED, CHANGED, UNKNOWN = "trusted", "untrusted", "changed", "unknown"
ELSEWHERE = "elsewhere"
CONFIG = "config.toml"


def look(config_folder: str, settings: str, ours: Sequence[Ours], wanted: Sequence[HookEntry]) -> str:
    """`trusted`, `untrusted` (some of ours were never reviewed), `changed` (reviewed in another form) or `unknown`.

    Args:
        config_folder: Codex's own folder below the home folder.
        settings: The hooks file that `ours` stand in.
    """
    config = _config(config_folder)
    if config is None:
        return UNKNOWN
    if not config:
        return UNTRUSTED
    state = _table(_table(config, "hooks"), "state")
    digests = {each.command: digest(each) for each in wanted}
    said = set()
    for each in ours:
        place = f"{os.path.realpath(settings)}:{_snake(each.event)}:{each.group}:{each.handler}"
        kept = _table(state, place).get("trusted_hash")
        said.add(UNTRUSTED if kept is None else TRUSTED if kept == digests.get(each.command) else CHANGED)
    return next((word for word in (UNTRUSTED, CHANGED) if word in said), TRUSTED if said else UNKNOWN)


def trusts_project(config_folder: str, worktree: str) -> bool | None:
    """Whether a project's hooks are read at all. None where Codex's settings can't be read."""
    config = _config(config_folder)
    if config is None:
        return None
    return _table(_table(config, "projects"), os.path.realpath(worktree)).get("trust_level") == "trusted"


def digest(entry: HookEntry) -> str:
    """What Codex keeps of a hook that was reviewed."""
    handlers = entry.value["hooks"]
    assert isinstance(handlers, list)
    handler = handlers[0]
    reviewed = {
        "event_name": _snake(entry.event),
        "hooks": [
            {"async": False, "command": handler["command"], "timeout": handler["timeout"], "type": "command"}
        ],
    }
    text = json.dumps(reviewed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{sha256(text.encode()).hexdigest()}"


def _config(folder: str) -> dict[str, object] | None:
    """Codex's settings: empty where there are none, None where they can't be read."""
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
