"""Drafts as a stream for `git fast-import`, and one run of it."""

from __future__ import annotations

import os

from . import run
from .objects import format_message, format_signature, is_empty_tree, path_parts, plain_mode
from .port import FILE_MODE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from .port import Draft, Entry

TIMEOUT_SECONDS = 300.0
UNPACK_LIMIT = 100  # fewer objects become loose ones, not a pack
_CRASH_REPORT = "dumping crash report to "


def stream(ref: str, drafts: Sequence[Draft], onto: str | None) -> Iterator[bytes]:
    """Commands that write the drafts as a chain on `ref`, and print what `written` reads."""
    for number, draft in enumerate(drafts, 1):
        message = format_message(draft.message)
        yield f"commit {ref}\nmark :{number}\n".encode("ascii")
        yield b"author " + format_signature(draft.author) + b"\n"
        yield b"committer " + format_signature(draft.committer) + b"\n"
        yield b"data %d\n%s\n" % (len(message), message)
        if number == 1 and onto is not None:
            yield f"from {onto}\n".encode("ascii")
        if draft.tree is not None and is_empty_tree(draft.tree):
            yield b"deleteall\n"
        elif draft.tree is not None:
            yield f'M 040000 {draft.tree} ""\n'.encode("ascii")
        for path, change in draft.changes.items():
            yield _change(path, change)
        for path in touched(draft):
            yield b"ls " + _quote(path) + b"\n"
        yield f"get-mark :{number}\n".encode("ascii")


def touched(draft: Draft) -> list[str]:
    """The paths of what a draft may make anew: files, and the folders that they are in up to the root."""
    found = {"": None}
    for path, change in draft.changes.items():
        names = path.split("/")
        for at in range(1, len(names) + isinstance(change, bytes)):
            found["/".join(names[:at])] = None
    return list(found)


def written(out: bytes) -> tuple[list[str], list[str]]:
    """The commits that a stream made, in order, and the trees and files."""
    commits, others = [], []
    for row in out.decode("ascii", "replace").splitlines():
        mode, _, rest = row.partition(" ")
        if not rest:
            commits.append(mode)
        elif mode != "missing":
            others.append(rest[5:].partition("\t")[0])  # `tree` or `blob`, and a blank
    return commits, list(dict.fromkeys(others))


def feed(
    common: str,
    config: Sequence[str],
    chunks: Iterable[bytes],
    env_extra: Mapping[str, str],
    options: Sequence[str] = (),
) -> run.Result:
    """Run fast-import on a stream. What it printed counts only where its exit status is 0."""
    args = [
        "-c",
        f"fastimport.unpackLimit={UNPACK_LIMIT}",
        *config,
        "-c",
        "core.packedRefsTimeout=0",  # a lock there hinders nothing but the forgetting of the scratch ref
        "fast-import",
        "--quiet",
        "--date-format=raw-permissive",
        *options,
    ]
    data = b"feature done\n" + b"".join(chunks) + b"done\n"
    done = run.once(common, args, input=data, env_extra=env_extra, timeout=TIMEOUT_SECONDS)
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
