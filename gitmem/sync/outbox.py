"""Outboxes: refs on a remote with the lines of one clone, used when the shared ref is contended.

An outbox is created once, never moved, and named after its last commit. So no push of it can lose a race, and two
of the same name are equal. The clone that merges it into the shared ref deletes it.
"""

from __future__ import annotations

import os

from .. import local_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


# Where a remote may accept an outbox. Not every host accepts refs other than branches and tags.
PREFIXES = ("refs/gitmem/outbox/", "refs/heads/gitmem-outbox-")


class RemoteState:
    """The recorded state of one remote; it is discarded if the URL changes.

    Attributes:
        refused_prefixes: The prefixes under which it accepts no outbox.
        keeps_refs: Whether it refuses to delete refs: then it gets no outboxes either.
        read_only: Whether it rejected our push when it was one of several.
        seen: Its outboxes at the last fetch, also those that were not read.
        sent: The tip of the log whose lines it had, some perhaps in an outbox, when one was pushed last; or "".
        concurrent: How many of other clones were new then: whether others push at this time.
    """

    def __init__(self, state: str, name: str, url: str) -> None:
        import json

        self._path = os.path.join(state, "remotes", name)
        self._url = url
        self._text = ""
        fields: object = {}
        try:
            self._text = local_files.load(self._path).decode()
            fields = json.loads(self._text)
        except (OSError, ValueError, RecursionError):
            pass
        known = fields if isinstance(fields, dict) and fields.get("url") == url else {}
        self.refused_prefixes = _texts(known.get("refused"))
        self.keeps_refs = known.get("keeps_refs") is True
        self.read_only = known.get("read_only") is True
        self.seen = set(_texts(known.get("seen")))
        self.sent = str(known.get("sent") or "")
        concurrent = known.get("crowd")
        self.concurrent = concurrent if isinstance(concurrent, int) else 0

    @property
    def prefixes(self) -> list[str]:
        """The prefixes under which it may accept an outbox."""
        return (
            [] if self.keeps_refs else [prefix for prefix in PREFIXES if prefix not in self.refused_prefixes]
        )

    def retry(self) -> None:
        """Forget its rejections: a temporary error must not count for ever."""
        self.refused_prefixes = []
        self.keeps_refs = False

    def save(self) -> None:
        """Write the file if anything changed. A file that can't be written is not an error."""
        import json

        fields = {
            "url": self._url,
            "refused": self.refused_prefixes,
            "keeps_refs": self.keeps_refs,
            "read_only": self.read_only,
            "seen": sorted(self.seen),
            "sent": self.sent,
            "crowd": self.concurrent,
        }
        text = json.dumps(fields) + "\n"
        known = (
            self._text or self.refused_prefixes or self.keeps_refs or self.read_only or self.seen or self.sent
        )
        if text == self._text or not known:
            return
        if local_files.try_replace(self._path, text.encode(), folders=True):
            self._text = text


def sent_tips(state: str) -> list[str]:
    """Return the tips of the log that remotes had with their outboxes."""
    import json

    found = []
    for name in local_files.names_in(os.path.join(state, "remotes")):
        try:
            found.append(json.loads(local_files.read(os.path.join(state, "remotes", name)))["sent"])
        except (ValueError, LookupError, TypeError, RecursionError):
            continue
    return [each for each in found if isinstance(each, str) and each]


def _texts(found: object) -> list[str]:
    values: Iterable[object] = found if isinstance(found, list) else ()
    return [each for each in values if isinstance(each, str)]
