"""The record of an installation, kept until uninstall, which restores the user's files byte for byte with it.

The record is optional. Without it, as in another clone, uninstall removes what it recognizes.
"""

from __future__ import annotations

import json
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class InstallRecord(NamedTuple):
    """The record of an installation.

    Attributes:
        is_new: Whether install created the settings file.
        inserted: The texts that it added to the settings, in order.
        made: The members that it added: `hooks` and `hooks.EVENT`.
        folders: The folders that it created.
    """

    is_new: bool = False
    inserted: Sequence[str] = ()
    made: Sequence[str] = ()
    folders: Sequence[str] = ()

    def encode(self) -> bytes:
        """Return the record as a line of JSON."""
        return (json.dumps(self._asdict()) + "\n").encode()


def read(path: str) -> InstallRecord | None:
    """Return the record in a file, or None if there is no usable one."""
    try:
        with open(path, "rb") as file:
            values = json.loads(file.read())
        return InstallRecord(
            is_new=bool(values["is_new"]),
            inserted=[str(each) for each in values["inserted"]],
            made=[str(each) for each in values["made"]],
            folders=[str(each) for each in values["folders"]],
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
