"""Fetch refs apart from those that break the fetch, and remember the commits that did.

One damaged or forbidden object behind any ref makes git refuse the whole fetch. The refs are then halved until those
are found; the others are fetched without them, and git keeps nothing of what it refused.
"""

from __future__ import annotations

import os
import time

from .. import aside
from ..place import read_small
from . import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    # Runs git on the network with these arguments.
    Ask = Callable[[Sequence[str]], run.Result]

PATTERNS = ("refs/heads/gitmem*", "refs/gitmem/*")
FILE = os.path.join("gitmem", "refused")
KEPT_MAX = 1_000
MISSING = "the remote does not have its objects"
_REASON_CHARS_MAX = 200
_MISSING = ("not our ref", "unable to read", "remote side", "bad object", "bad pack")
_OBJECTS = (
    *(*_MISSING, "error: object", "fsck", "missing", "index-pack", "unpack", "corrupt"),
    *("did not send all necessary objects", "unresolved deltas", "not a valid object", "pack-objects"),
)


class Refused:
    """The commits that broke a fetch: id → why. A small file of the clone; at most `KEPT_MAX` of them."""

    def __init__(self, common: str) -> None:
        self._path = os.path.join(common, FILE)
        rows = os.fsdecode(read_small(self._path)).splitlines()
        self.why = {oid: why for oid, _, why in (row.partition(" ") for row in rows) if why}

    def add(self, found: Mapping[str, str]) -> None:
        """Remember more of them; where the file can't be written they are found again."""
        if not found.items() - self.why.items():
            return
        self.why = dict(list({**self.why, **found}.items())[-KEPT_MAX:])
        text = "".join(f"{oid} {why}\n" for oid, why in self.why.items())
        try:
            aside.replace(self._path, os.fsencode(text))
        except OSError:
            return


def fetch(
    common: str, ask: Ask, head: Sequence[str], url: str, into_prefix: str, until: float
) -> tuple[dict[str, tuple[str, str]], str | None]:
    """Fetch every ref of a remote that can be. Return those that can't, with commit and reason, or git's words if none can.

    Args:
        ask: Runs git.
        head: Arguments of a fetch, before the url.
        into_prefix: Where our copies of the remote's refs are.
        until: When to give up, on the monotonic clock.
    """
    done = ask(["ls-remote", "--quiet", "--refs", "--", url, *PATTERNS])
    if done.code != 0:
        return {}, done.err
    rows = (line.partition("\t") for line in done.out.decode("utf-8", "surrogateescape").splitlines())
    there = {name: oid for oid, _, name in rows if not name.startswith("refs/gitmem/remotes/")}
    refused = Refused(common)
    bad = {name: (oid, refused.why[oid]) for name, oid in there.items() if oid in refused.why}
    first_words = ""

    def into(name: str) -> str:
        return into_prefix + name.removeprefix("refs/")

    def broken(names: Sequence[str]) -> dict[str, tuple[str, str]]:
        nonlocal first_words
        if not names or time.monotonic() > until:
            return {}
        done = ask([*head, "--", url, *(f"+{name}:{into(name)}" for name in names)])
        if done.code == 0:
            return {}
        first_words = first_words or done.err
        if len(names) == 1:
            return {names[0]: (there[names[0]], reason(done.err))}
        middle = len(names) // 2
        return {**broken(names[:middle]), **broken(names[middle:])}

    found = broken([name for name in there if name not in bad])
    # What every ref says is the network's trouble, unless git names the object.
    if (
        found
        and len(found) + len(bad) == len(there)
        and not any(map(_names_object, (why for _, why in found.values())))
    ):
        return {}, first_words
    refused.add({oid: why for oid, why in found.values() if why != MISSING})
    return {**bad, **found}, None


def is_about_objects(err: str) -> bool:
    """Whether a fetch failed for what a ref holds, rather than for the way to the remote."""
    return any(words in err for words in _OBJECTS)


def reason(err: str) -> str:
    """Why git refused a ref, in a few words."""
    if any(words in err for words in _MISSING):
        return MISSING
    lines = [line for line in err.splitlines() if "error: object" in line or "fsck" in line]
    return run.last_words("\n".join(lines[:1]) or err)[:_REASON_CHARS_MAX]


def _names_object(why: str) -> bool:
    return why == MISSING or "object" in why
