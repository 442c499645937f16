"""List the refs of a repository on this machine, by the program that git itself would start for it.

A fetch that finds nothing new starts four processes; this starts one.
"""

from __future__ import annotations

import os

from ..repo import read_small
from . import run
from .read_ref import id_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

OUT_BYTES_MAX = 4 * 1024 * 1024
_FLUSH, _DELIMITER = b"0000", b"0001"
_REDIRECTING_SETTINGS = (b"insteadof", b"uploadpack", b"[include")


def ask(
    common: str, path: str, prefixes: Sequence[str], timeout: float, meanwhile: Callable[[], object]
) -> dict[str, str] | None:
    """Return the refs below the prefixes of a repository in a folder.

    Args:
        common: The asking repository.
        timeout: Seconds.
        meanwhile: Called once, while the other process answers.

    Returns:
        Object id by ref name. None if only a fetch can tell, for example because the repository's config may redirect
            git to another repository or program.
    """
    config = read_small(os.path.join(common, "config")).lower()
    if (
        not os.path.isabs(path)
        or not os.path.isdir(path)
        or any(word in config for word in _REDIRECTING_SETTINGS)
    ):
        meanwhile()
        return None
    wanted = [_packet(b"ref-prefix " + os.fsencode(prefix) + b"\n") for prefix in prefixes]
    question = b"".join([_packet(b"command=ls-refs\n"), _DELIMITER, *wanted, _FLUSH, _FLUSH])
    version = {"GIT_PROTOCOL": "version=2"}
    try:
        done = run.run(
            common, ["upload-pack", path], input=question, env_extra=version, timeout=timeout, check=False,
            meanwhile=meanwhile, out_max=OUT_BYTES_MAX,
        )  # fmt: skip
    except (run.GitTimeoutError, run.GitOutputError):
        return None
    return _parse(done.out) if done.code == 0 else None


def _packet(line: bytes) -> bytes:
    return b"%04x%s" % (len(line) + 4, line)


def _parse(out: bytes) -> dict[str, str] | None:
    """Return the refs in the second answer; the first one lists the server's capabilities."""
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
            word, _, name = line.partition(b" ")
            oid = id_of(word)
            if oid is None:
                return None
            refs[os.fsdecode(name)] = oid
    return refs if answers == 2 and at == len(out) else None
