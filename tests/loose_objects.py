"""Objects of a repository in a file each, as an earlier version or git itself has written them."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path


def loosen(common: Path) -> None:
    """Take every pack apart."""
    packs = common / "objects" / "pack"
    with tempfile.TemporaryDirectory() as away:
        files = sorted(packs.glob("*"))
        for path in files:
            shutil.move(path, away)
        for path in Path(away).glob("*.pack"):
            with path.open("rb") as pack:
                subprocess.run(["git", "unpack-objects", "-q"], cwd=common, stdin=pack, check=True)
    shutil.rmtree(common / "gitmem" / "own-packs", ignore_errors=True)


def path_of(common: Path, oid: str) -> Path:
    """Where a loose object is."""
    return common / "objects" / oid[:2] / oid[2:]


def remove(common: Path, oid: str) -> None:
    """Take an object away, wherever it is; all others stay."""
    if not path_of(common, oid).exists():
        loosen(common)
    path_of(common, oid).unlink()


def wipe(common: Path, oids: Iterable[str]) -> None:
    """Fill what packs have of objects with zeros, as a disk that has lost their blocks."""
    wanted = set(oids)
    for index in (common / "objects" / "pack").glob("*.idx"):
        with index.open("rb") as file:
            out = subprocess.run(
                ["git", "show-index"], cwd=common, stdin=file, capture_output=True, check=True
            )
        rows = sorted((int(row.split()[0]), row.split()[1].decode()) for row in out.stdout.splitlines())
        pack = index.with_suffix(".pack")
        data = bytearray(pack.read_bytes())
        ends = [at for at, _ in rows[1:]] + [len(data) - 20]
        for (at, oid), end in zip(rows, ends, strict=True):
            if oid in wanted:
                data[at:end] = bytes(end - at)
        pack.chmod(0o644)
        pack.write_bytes(data)
