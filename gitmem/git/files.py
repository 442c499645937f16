"""What git's own files say of a repository, read in microseconds and without git: refs, and properties such as the length of ids."""

from __future__ import annotations

import os
import stat

from .. import local_files
from ..repo import READING, read_config, read_small

ALGORITHMS = {40: "sha1", 64: "sha256"}


def id_length(common: str) -> int:
    """Return the number of hex digits of an object id: 40 with sha1, 64 with sha256."""
    config = read_small(os.path.join(common, "config"))
    if b"objectformat" in config.lower():
        for key, value in read_config(config):
            if key == "extensions.objectformat" and value.lower() == "sha256":
                return 64
    return 40


def shallow_commits(common: str) -> frozenset[str]:
    """Return the boundary commits of a shallow clone; git treats them as commits without parents."""
    return frozenset(read_small(os.path.join(common, "shallow")).decode("ascii", "replace").split())


def promisors(common: str) -> list[str]:
    """Return the remotes that promise the objects that a partial clone lacks (`git clone --filter`)."""
    config = read_small(os.path.join(common, "config"))
    lowered = config.lower()
    if b"promisor" not in lowered and b"partialclone" not in lowered:
        return []
    found: dict[str, None] = {}
    for key, value in read_config(config):
        section, _, last = key.rpartition(".")
        if key == "extensions.partialclone":
            found[value] = None
        elif section.startswith("remote.") and last == "promisor":
            if value.lower() not in ("", "false", "no", "off", "0"):
                found[section.removeprefix("remote.")] = None
        elif section.startswith("remote.") and last == "partialclonefilter":
            found[section.removeprefix("remote.")] = None
    return list(found)


def reflog(git_dir: str) -> str:
    """Return the file of a worktree's reflog. Where references are kept in tables, or logs are off, it does not exist."""
    return os.path.join(git_dir, "logs", "HEAD")


LOG_REF = "refs/gitmem/log"
READ = "remote-read"  # in the state folder; its time is when the usual remote was last read
FENCES = ("refs/gitmem/fence/", "refs/heads/gitmem-fence-")  # no logs: see `sync/fences.py`
_HEX = b"0123456789abcdef"
# Cache of a reftable's refs below `refs/gitmem/`: the table list, and git's answer for it.
REMEMBERED = os.path.join("gitmem", "tables")


def plain_tip(common: str, ref: str) -> str | None:
    """Return the object id of a ref below `refs/gitmem/`, if it can be read without git.

    None means unknown, not missing.
    """
    listed = tables(common)
    return loose_tip(common, ref) if listed is None else (cached_refs(common, listed) or {}).get(ref)


def tables(common: str) -> bytes | None:
    """Return the list of a reftable's files; None if each ref is a file.

    Table files never change and names are never reused, so equal lists mean equal refs.
    """
    try:
        with open(os.path.join(common, "reftable", "tables.list"), "rb") as file:
            return file.read()
    except OSError:
        return None


def cached_refs(common: str, listed: bytes) -> dict[str, str] | None:
    """Return every cached ref below `refs/gitmem/` with its object id, if cached for this table list."""
    then, mark, rows = local_files.read(os.path.join(common, REMEMBERED)).partition(b"\n\n")
    if then != listed.strip() or not mark or not rows.endswith(b"\n"):
        return None  # the refs have moved, or the file is incomplete
    return {ref: oid for oid, _, ref in (row.partition(" ") for row in os.fsdecode(rows).split("\n")[:-1])}


def loose_tip(common: str, ref: str) -> str | None:
    """Return the object id in the ref's loose file under the common git folder.

    None means unknown: the ref may be packed, symbolic, or missing. In a repository with a reftable such a file has no
    meaning.
    """
    try:
        handle = os.open(os.path.join(common, ref), READING)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        data = os.read(handle, 80)
    except OSError:
        return None
    finally:
        os.close(handle)
    return id_of(data.rstrip(b"\r\n"))


def fetched_since(common: str, mark: str) -> dict[str, str]:
    """Return the tips of the branches `gitmem` of remotes that git has fetched since a file was written, by remote.

    Tips that the log or the last sync has are left out. A branch in `packed-refs` or a reftable was fetched long ago.
    """
    then, found = local_files.modified(mark), {}
    folder = os.path.join(common, "refs", "remotes")
    for remote in sorted(local_files.names_in(folder)):
        is_new = local_files.modified(os.path.join(folder, remote, "gitmem")) > then
        oid = loose_tip(common, f"refs/remotes/{remote}/gitmem") if is_new else None
        if oid is not None and oid not in (
            loose_tip(common, LOG_REF),
            loose_tip(common, "refs/gitmem/published"),
        ):
            found[remote] = oid
    return found


def id_of(text: bytes) -> str | None:
    """Return these bytes as an object id; None if they are not one."""
    return text.decode("ascii") if len(text) in (40, 64) and not text.strip(_HEX) else None


def packed_tip(common: str, ref: str) -> str | None:
    """Return the object id of the ref in `packed-refs`. Only valid if there is no loose file."""
    return packed_with(common, f" {ref}\n").get(ref)


def packed_with(common: str, part: str) -> dict[str, str]:
    """Return the refs in `packed-refs` whose lines contain a text.

    Only matching lines are parsed: 3 MB with 50,000 refs take a millisecond.
    """
    data, wanted = read_small(os.path.join(common, "packed-refs")), os.fsencode(part)
    found = {}
    at = data.find(wanted)
    while at >= 0:
        end = data.find(b"\n", at)
        word, _, name = data[data.rfind(b"\n", 0, at) + 1 : end].partition(b" ")
        oid = id_of(word)
        if oid is not None and end >= 0:
            found[os.fsdecode(name)] = oid
        at = data.find(wanted, end) if end >= 0 else -1
    return found


def plain_refs_below(common: str, prefix: str, *, at_rest: bool = False) -> dict[str, str] | None:
    """Return every ref whose full name starts with `prefix` (which ends in `/`); None if git must be asked.

    Args:
        at_rest: Return None also if one of them is locked.
    """
    if tables(common) is not None:
        return None
    found: dict[str, str] = {}
    for folder, _, files in os.walk(os.path.join(common, prefix)):
        below = os.path.relpath(folder, common).replace(os.sep, "/")
        for name in files:
            if name.endswith(".lock"):
                if at_rest:
                    return None
                continue
            oid = loose_tip(common, f"{below}/{name}")
            if oid is None:
                oid = _target(common, f"{below}/{name}")
            if oid is None and _is_special(os.path.join(folder, name)):
                continue  # not a ref: a pipe or device, whose writer git would wait for
            if oid is None:
                return None  # damaged, just deleted, or of an unknown form
            found[f"{below}/{name}"] = oid
    # Read last: git may be packing the loose refs.
    packed = {name: oid for name, oid in packed_with(common, prefix).items() if name.startswith(prefix)}
    found = {**packed, **found}
    if not found and not os.path.isdir(os.path.join(common, "refs")):
        return None
    return dict(sorted(found.items()))  # git's order: the order of folding must not depend on the disk


def _is_special(path: str) -> bool:
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def _target(common: str, ref: str) -> str | None:
    """Return the object id that a symbolic ref leads to in one step."""
    word, _, name = os.fsdecode(read_small(os.path.join(common, ref), 1000)).rstrip("\n").partition(": ")
    return loose_tip(common, name) or packed_tip(common, name) if word == "ref" else None
