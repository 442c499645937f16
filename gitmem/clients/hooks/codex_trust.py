"""Codex's trust in our hooks: Codex stores a digest of each hook that its user reviewed, and skips the others.

A hook's key has the absolute path of its file, its event and its position. The digest covers what the hook does
(checked against `hooks/list` of Codex 0.169), but not the script's content.
"""

from __future__ import annotations

import json
import os

from ...digests import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .clients import HookEntry
    from .settings import OwnEntry

TRUSTED, UNTRUSTED, CHANGED, UNKNOWN = "trusted", "untrusted", "changed", "unknown"
ELSEWHERE = "elsewhere"
CONFIG = "config.toml"


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
