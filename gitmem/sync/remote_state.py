"""What a clone remembers of a remote between syncs: what it refuses, and how many others were at it.

Nothing is lost with the file: it is learned again.
"""

from __future__ import annotations

import os

from .. import atomic_write, shared_mode
from .outbox import PREFIXES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class RemoteState:
    """One remote as it was seen; forgotten where its url changes.

    Attributes:
        refused: The prefixes under which it takes no outbox.
        keeps_refs: Whether it refuses to delete refs: then it gets no outboxes either.
        read_only: Whether it took nothing from us when it was one of several.
        seen: The outboxes that were there at the last look, also those that it did not read.
        crowd: How many of those were new then and not ours: whether others push at this time.
    """

    __slots__ = ("_path", "_text", "_url", "crowd", "keeps_refs", "read_only", "refused", "seen")

    def __init__(self, state: str, name: str, url: str) -> None:
        import json

        self._path = os.path.join(state, "remotes", name)
        self._url = url
        self._text = ""
        fields: object = {}
        try:
            with open(self._path, encoding="utf-8") as file:
                self._text = file.read()
            fields = json.loads(self._text)
        except (OSError, ValueError, RecursionError):
            pass
        known = fields if isinstance(fields, dict) and fields.get("url") == url else {}
        self.refused = _texts(known.get("refused"))
        self.keeps_refs = known.get("keeps_refs") is True
        self.read_only = known.get("read_only") is True
        self.seen = set(_texts(known.get("seen")))
        crowd = known.get("crowd")
        self.crowd = crowd if isinstance(crowd, int) else 0

    @property
    def prefixes(self) -> list[str]:
        """Where it may take an outbox."""
        return [] if self.keeps_refs else [prefix for prefix in PREFIXES if prefix not in self.refused]

    def retry(self) -> None:
        """Forget what it refuses: what was no more than a trouble of one day must not count for ever."""
        self.refused = []
        self.keeps_refs = False

    def save(self) -> None:
        """Write the file if there is anything new. One that can't be written is no error."""
        import json

        fields = {
            "url": self._url,
            "refused": self.refused,
            "keeps_refs": self.keeps_refs,
            "read_only": self.read_only,
            "seen": sorted(self.seen),
            "crowd": self.crowd,
        }
        text = json.dumps(fields) + "\n"
        known = self._text or self.refused or self.keeps_refs or self.read_only or self.seen
        if text == self._text or not known:
            return
        try:
            shared_mode.make_dirs(os.path.dirname(self._path))
            atomic_write.replace(self._path, text.encode())
        except OSError:
            return
        self._text = text


def _texts(found: object) -> list[str]:
    values: Iterable[object] = found if isinstance(found, list) else ()
    return [each for each in values if isinstance(each, str)]
