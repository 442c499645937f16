"""Which refs a repository on this machine has, asked of the program that git itself would start there.

A fetch that finds nothing new starts four processes to say so; this is one.
"""

from __future__ import annotations

import os

from . import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .child import Child

_FLUSH, _DELIMITER = b"0000", b"0001"
_DETOURS = (b"insteadof", b"uploadpack", b"[include")
_HEX = b"0123456789abcdef"


class Asked:
    """A question on its way: `refs` has the answer."""

    __slots__ = ("_child", "_question")

    def __init__(self, child: Child, question: bytes) -> None:
        self._child = child
        self._question = question

    def refs(self, timeout: float) -> dict[str, str] | None:
        """The refs with their targets; None where that can't be said so simply. `timeout` is in seconds."""
        try:
            code, out, _ = self._child.communicate(self._question, timeout)
        except TimeoutError:
            self._child.kill()
            return None
        except BaseException:
            self._child.kill()
            raise
        return _parse(out) if code == 0 else None

    def drop(self) -> None:
        """The answer is not wanted any more."""
        self._child.kill()


def ask(common: str, path: str, prefixes: Sequence[str]) -> Asked | None:
    """Ask for the refs below the prefixes of a repository in a folder. None where it is not there: fetch, then.

    None, too, where the repository's config may send git elsewhere, or to another program.

    Args:
        common: The asking repository.
    """
    if not os.path.isabs(path) or not os.path.isdir(path):
        return None
    try:
        with open(os.path.join(common, "config"), "rb") as file:
            config = file.read().lower()
    except OSError:
        return None
    if any(word in config for word in _DETOURS):
        return None
    child = run.spawn(common, ["upload-pack", path], env_extra={"GIT_PROTOCOL": "version=2"})
    wanted = [_packet(b"ref-prefix " + os.fsencode(prefix) + b"\n") for prefix in prefixes]
    return Asked(child, b"".join([_packet(b"command=ls-refs\n"), _DELIMITER, *wanted, _FLUSH, _FLUSH]))


def _packet(line: bytes) -> bytes:
    return b"%04x%s" % (len(line) + 4, line)


def _parse(out: bytes) -> dict[str, str] | None:
    """The second answer, behind what the server says it can do."""
    refs: dict[str, str] = {}
    at = answers = 0
    while at + 4 <= len(out):
        try:
            size = int(out[at : at + 4], 16)
        except ValueError:
            return None
        line = out[at + 4 : at + size].rstrip(b"\n")
        at += max(size, 4)
        if size == 0:
            answers += 1
        elif answers == 1:
            oid, _, name = line.partition(b" ")
            if len(oid) not in (40, 64) or oid.strip(_HEX):
                return None
            refs[os.fsdecode(name)] = oid.decode("ascii")
    return refs if answers == 2 and at == len(out) else None
