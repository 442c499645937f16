"""Drafts as a stream for `git fast-import`, and one run of it."""

from __future__ import annotations

import os

from . import run
from .objects import EMPTY_TREE, format_message, format_signature, path_parts, plain_mode
from .port import FILE_MODE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from .port import Draft, Entry

TIMEOUT_SECONDS = 300.0
_CRASH_REPORT = "dumping crash report to "


def stream(ref: str, drafts: Sequence[Draft], onto: str | None) -> Iterator[bytes]:
    """Commands that write the drafts as a chain on `ref`, and print their oids in order."""
    for number, draft in enumerate(drafts, 1):
        message = format_message(draft.message)
        yield f"commit {ref}\nmark :{number}\n".encode("ascii")
        yield b"author " + format_signature(draft.author) + b"\n"
        yield b"committer " + format_signature(draft.committer) + b"\n"
        yield b"data %d\n%s\n" % (len(message), message)
        if number == 1 and onto is not None:
            yield f"from {onto}\n".encode("ascii")
        if draft.tree == EMPTY_TREE:
            yield b"deleteall\n"
        elif draft.tree is not None:
            yield f'M 040000 {draft.tree} ""\n'.encode("ascii")
        for path, change in draft.changes.items():
            yield _change(path, change)
        yield f"get-mark :{number}\n".encode("ascii")


def feed(
    common: str, options: Sequence[str], chunks: Iterable[bytes], env_extra: Mapping[str, str]
) -> run.Result:
    """Run fast-import on a stream. What it printed counts only where its exit status is 0."""
    args = [
        *options,
        "-c",
        "fastimport.unpackLimit=100",
        "-c",
        "core.packedRefsTimeout=0",  # a lock there hinders nothing but the forgetting of the scratch ref
        "fast-import",
        "--quiet",
        "--date-format=raw-permissive",
    ]
    data = b"feature done\n" + b"".join(chunks) + b"done\n"
    done = run.run(common, args, input=data, env_extra=env_extra, timeout=TIMEOUT_SECONDS, check=False)
    if done.code != 0:
        _remove_crash_report(common, done.err)
    return done


def _change(path: str, change: bytes | Entry | None) -> bytes:
    path_parts(path)
    quoted = _quote(path)
    if change is None:
        return b"D " + quoted + b"\n"
    if isinstance(change, bytes):
        return b"M %s inline %s\ndata %d\n%s\n" % (FILE_MODE.encode("ascii"), quoted, len(change), change)
    mode = plain_mode(change).zfill(6)
    return f"M {mode} {change.oid} ".encode("ascii") + quoted + b"\n"


def _quote(path: str) -> bytes:
    raw = path.encode("utf-8", "surrogateescape")
    return b'"' + raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'


def _remove_crash_report(common: str, err: str) -> None:
    """Remove the report that a dying fast-import leaves in the user's git folder: `err` has the cause."""
    for line in err.splitlines():
        _, found, path = line.partition(_CRASH_REPORT)
        name = os.path.basename(path.strip())
        if found and name.startswith("fast_import_crash_"):
            try:
                os.unlink(os.path.join(common, name))
            except OSError:
                pass
