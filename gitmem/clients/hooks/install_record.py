"""The record of an installation, kept until uninstall, which restores the settings byte for byte with it.

The record is optional. Without it, as in another clone, uninstall reconstructs the original; see
`remove_entries.reconstruct`.
"""

from __future__ import annotations

import json
import os

from ...digests import sha256
from .clients import PROJECT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .clients import Client, ClientFolders

IN_BASE = ".gitmem-hooks"


class InstallRecord:
    """The record of an installation.

    Attributes:
        is_new: Whether install created the settings file.
        after: The digest of the settings after install; "" if they were not changed.
        ranges: The added spans of that text.
        made: The added members.
        folders: The created folders.
    """

    __slots__ = ("after", "folders", "is_new", "made", "ranges")

    def __init__(
        self,
        *,
        is_new: bool = False,
        after: str = "",
        ranges: list[list[int]] | None = None,
        made: list[str] | None = None,
        folders: list[str] | None = None,
    ) -> None:
        self.is_new = is_new
        self.after = after
        self.ranges = ranges or []
        self.made = made or []
        self.folders = folders or []

    def encode(self) -> bytes:
        """Return the record as a line of JSON."""
        return (json.dumps({name: getattr(self, name) for name in self.__slots__}) + "\n").encode()


def path(client: Client, scope: str, places: ClientFolders, base: str) -> str:
    """Return the path of the record: in the repository's state for a project, otherwise in the client's folder."""
    if scope == PROJECT:
        assert places.state is not None
        name = f"{client.name}-{digest(os.fsencode(base))[:16]}"
        return os.path.join(places.state, "hooks", name)
    return os.path.join(base, IN_BASE)


def read(where: str) -> InstallRecord | None:
    """Return the record in a file, or None if there is no usable one."""
    try:
        with open(where, "rb") as file:
            values = json.loads(file.read())
        record = InstallRecord(
            is_new=bool(values["is_new"]),
            after=str(values["after"]),
            ranges=[[int(start), int(end)] for start, end in values["ranges"]],
            made=[str(each) for each in values["made"]],
            folders=[str(each) for each in values["folders"]],
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return record


def digest(content: bytes) -> str:
    """Return the SHA-256 of a content as hex."""
    return sha256(content).hexdigest()
