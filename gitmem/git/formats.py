"""Properties of a repository, read from its files: id length, shallow boundary, promisor remotes."""

from __future__ import annotations

import os

from ..repo import read_config, read_small

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
