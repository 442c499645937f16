"""The main job between two repositories, for tests of odd ones: agents signal, answer, remember and sync."""

from __future__ import annotations

import subprocess
from pathlib import Path

from gitmem.git import processes
from gitmem.log import committer, ref
from gitmem.open_store import open_store
from gitmem.repo import find

from .conftest import Desk


def git(*args: str, cwd: Path, check: bool = True) -> str:
    """Git by hand. What is missing is not brought from anywhere."""
    done = subprocess.run(
        ["git", *args], cwd=cwd, capture_output=True, text=True, timeout=60,
        env=processes.environment() if args[0] not in ("clone", "fetch", "push") else None,
    )  # fmt: skip
    assert done.returncode == 0 or not check, f"git {' '.join(args)}: {done.stdout}{done.stderr}"
    return done.stdout


def make_hub(root: Path, *options: str) -> Path:
    """A bare remote with three commits of a user on `main`, which serves filters; the options are those of init."""
    hub, first = root / "hub.git", root / "first"
    git("init", "--quiet", "--bare", "--initial-branch=main", *options, str(hub), cwd=root)
    git("config", "uploadpack.allowFilter", "true", cwd=hub)
    git("init", "--quiet", "--initial-branch=main", *options, str(first), cwd=root)
    git("remote", "add", "origin", str(hub), cwd=first)
    for number in range(3):
        (first / "README").write_text(f"A project, {number}.\n")
        git("add", "README", cwd=first)
        git("commit", "--quiet", "-m", f"Number {number}", cwd=first)
    git("push", "--quiet", "origin", "main", cwd=first)
    return hub


def clone(hub: Path, name: str, *options: str) -> Path:
    """A clone over a transport that heeds its options, with a user."""
    where = hub.parent / name
    url = str(hub) if set(options) & {"--shared"} else f"file://{hub}"
    git("clone", "--quiet", *options, url, str(where), cwd=hub.parent)
    for key, value in (("name", name), ("email", f"{name}@example.org")):
        git("config", f"user.{key}", value, cwd=where)
    return where


def sync(desk: Desk, where: Path, *args: str) -> dict[str, str]:
    """Sync, which must succeed: what became of each remote."""
    said = desk("sync", "--publish", *args, "--json", cwd=where)
    assert said.status == 0, said
    return {each["name"]: each["state"] for each in said.json["remotes"]}


def converse(desk: Desk, where: Path, there: Path, names: tuple[str, str] = ("Planck", "Curie")) -> str:
    """Somebody in one clone and somebody in another one come to an agreement and remember it; the signal's id."""
    planck, curie = (desk.start(name, cwd=at) for name, at in zip(names, (where, there), strict=True))
    for at in (where, there, where):
        sync(desk, at)
    sent = desk.send(planck, "Cut the boundary here?", "--to", names[1], "--intent", "propose", cwd=where)
    assert sent["commit"]
    for at in (where, there):
        sync(desk, at)
    inbox = desk("inbox", "--json", session=curie, cwd=there).json
    assert inbox["signals"][-1]["message"] == "Cut the boundary here?"
    signal_id = str(inbox["signals"][-1]["signal_id"])
    assert desk("reply", signal_id, "Yes, here.", "--agree", session=curie, cwd=there).status == 0
    note = ("mem", "create", f"{names[1]} cut the boundary in README", "--lifecycle", "project")
    assert desk(*note, session=curie, cwd=there).status == 0
    for at in (there, where):
        sync(desk, at)
    assert desk("converged", signal_id, session=planck, cwd=where).status == 0
    assert f"{names[1]} cut the boundary" in desk("mem", "search", "boundary", "--json", cwd=where).out
    assert set(names) <= {row["display_name"] for row in desk("roster", "--json", cwd=where).json["sessions"]}
    assert desk("inbox", "--count", session=curie, cwd=there).out == "0\n"
    return signal_id


def pack(where: Path) -> None:
    """The log's packs become one, as after some commits."""
    store = open_store(find(str(where)), machine="test", long_lived=True)
    assert committer.combine_packs(store.log) > 0
    store.close()


def check_whole(desk: Desk, *folders: Path) -> None:
    """Doctor and git find nothing wrong, and all have the same lines."""
    trees = set()
    for where in folders:
        said = desk("doctor", "--json", cwd=where)
        problems = [each for each in said.json["findings"] if each["severity"] == "problem"]
        assert (said.status, problems) == (0, []), said
        fsck = git("fsck", "--strict", "--no-dangling", cwd=where)
        assert [row for row in fsck.splitlines() if not row.startswith(("notice:", "dangling"))] == []
        trees.add(git("rev-parse", f"{ref.LOG_REF}^{{tree}}", cwd=where))
    assert len(trees) == 1
