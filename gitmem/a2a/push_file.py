"""The file with the push configurations of a clone. It has credentials, so only this user reads it."""

from __future__ import annotations

import json
import os

from .. import atomic_write, state_files
from ..errors import StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

# What is read; of configurations less is accepted, because the ids of what was sent are added to each.
FILE_MAX_BYTES, CONFIGS_MAX_BYTES = 32 * 1024 * 1024, 16 * 1024 * 1024
_FILE = ("a2a", "push.json")


def path_of(state: str) -> str:
    """Return the path of the file in a state folder."""
    return os.path.join(state, *_FILE)


def read(state: str) -> list[dict[str, Any]]:
    """Return what the file has.

    Raises:
        StoreError: `bad-push`: it is damaged, too large, or can't be read.
    """
    path = path_of(state)
    try:
        content = state_files.load(path, FILE_MAX_BYTES + 1)
        values = json.loads(content) if len(content) <= FILE_MAX_BYTES else None
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError):
        values = None
    if not isinstance(values, list) or not all(map(_is_entry, values)):
        raise StoreError(
            f"The push configurations in {path} are damaged. Clients are not notified.",
            hint="Remove the file; clients make new ones.",
            code="bad-push",
            next=["gitmem doctor"],
        )
    return values


def write(state: str, entries: Iterable[str]) -> None:
    """Write the file.

    Args:
        entries: The JSON of each configuration.

    Raises:
        OSError: It can't be written.
    """
    path = path_of(state)
    state_files.make_dirs(os.path.dirname(path))
    atomic_write.replace(path, f"[{','.join(entries)}]".encode(), private=True)


def _is_entry(value: object) -> bool:
    return (
        isinstance(value, dict)
        and all(isinstance(value.get(name), str) for name in ("caller", "agent"))
        and isinstance(value.get("config"), dict)
        and isinstance(value.get("sent"), list)
        and all(isinstance(each, str) for each in value["sent"])
    )
