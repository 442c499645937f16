"""Fetch the libraries of the page from npm: `python tools/vendor_page_libraries.py [NAME@VERSION …]`.

`gitmem/page/assets/vendor/manifest.json` pins each by its version and npm's digest of the package. Without arguments the tool fetches
what is pinned, refuses a package of another digest, and rewrites the files. With NAME@VERSION it pins another version first. It needs
npm; users of gitmem and CI do not.
"""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

VENDOR = Path(__file__).resolve().parent.parent / "gitmem/page/assets/vendor"
MANIFEST = VENDOR / "manifest.json"


def main(arguments: list[str]) -> int:
    """Fetch all libraries, those of the arguments in another version."""
    manifest = json.loads(MANIFEST.read_text(encoding="utf-8"))
    wanted = dict(each.rpartition("@")[::2] for each in arguments)
    unknown = set(wanted) - {each["name"] for each in manifest["libraries"]}
    if unknown:
        print(
            f"Not a library of {MANIFEST}: {', '.join(sorted(unknown))}; write NAME@VERSION", file=sys.stderr
        )
        return 2
    for library in manifest["libraries"]:
        if library["name"] in wanted:
            library["version"] = wanted[library["name"]]
            library["integrity"] = _npm("view", _named(library), "dist.integrity")
            library["licence"] = _npm("view", _named(library), "license")
        with tempfile.TemporaryDirectory() as folder:
            package = Path(folder, _npm("pack", _named(library), "--silent", "--pack-destination", folder))
            found = integrity(package.read_bytes())
            if found != library["integrity"]:
                print(
                    f"{_named(library)}: npm sent {found}, pinned is {library['integrity']}", file=sys.stderr
                )
                return 1
            _extract(package, library["files"])
        print(f"{_named(library)}: {', '.join(library['files'])}")
    MANIFEST.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    return 0


def integrity(package: bytes) -> str:
    """Return the digest of a package in npm's form."""
    return f"sha512-{base64.b64encode(hashlib.sha512(package).digest()).decode()}"


def _extract(package: Path, files: dict[str, dict[str, Any]]) -> None:
    with tarfile.open(package) as archive:
        for name, file in files.items():
            member = archive.extractfile(f"package/{file['from']}")
            if member is None:
                raise SystemExit(f"{package.name} has no file {file['from']}")
            content = member.read()
            file["sha256"] = hashlib.sha256(content).hexdigest()
            (VENDOR / name).write_bytes(content)


def _named(library: dict[str, Any]) -> str:
    return f"{library['name']}@{library['version']}"


def _npm(*arguments: str) -> str:
    done = subprocess.run(["npm", *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
