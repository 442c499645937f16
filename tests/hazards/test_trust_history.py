"""What the user's repository contains (commits, reflogs, files, config) makes no command hang, fail with a traceback or start a program."""

from __future__ import annotations

import os
import resource
import subprocess
from pathlib import Path

import pytest

from gitmem.git import files, history

from ..commits.people import git
from .conftest import Desk, Said, process

SIZE = 50_000_000
MEMORY = 1_500_000_000  # of addresses, which Python and git reserve generously
READING = (("view",), ("view", "--stats"), ("why", "README"), ("why", "HEAD"), ("whoami",))


def run(desk: Desk, *args: str) -> Said:
    """A command in a process of its own, which may not hang or take all memory."""
    return process(*args, cwd=desk.repo, before=_limit)


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def last(said: Said) -> str:
    return (said.out + said.err).strip()


def test_a_pipe_or_a_device_instead_of_a_file_is_never_waited_for(desk: Desk) -> None:
    """As the file that is asked about, as the reflog, and as the notes of the post-commit hook."""
    session = desk.start("Bohr")
    os.mkfifo(desk.repo / "pipe")
    for target in ("pipe", "pipe:1"):
        said = run(desk, "why", target)
        assert said.status == 2 and "not a regular file" in said.err
    reflog = Path(files.reflog(str(desk.repo / ".git")))
    notes = desk.repo / ".git" / "gitmem" / "commits" / "by-.git"
    for path in (reflog, notes):
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        assert process("whoami", cwd=desk.repo, env={"GITMEM_SESSION": session}).status == 0
        path.unlink()
        path.symlink_to("/dev/zero")
        assert process("whoami", cwd=desk.repo, env={"GITMEM_SESSION": session}).status == 0
        path.unlink()
    for command in READING:
        assert run(desk, *command).status == 0


def test_a_link_out_of_the_repository_shows_nothing_of_what_it_names(desk: Desk, tmp_path: Path) -> None:
    """Of a link git knows where it leads, not what is there; through a linked folder nothing is reached."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret").write_text("secret\n" * 5)
    (desk.repo / "link").symlink_to(tmp_path / "elsewhere" / "secret")
    (desk.repo / "folder").symlink_to(tmp_path / "elsewhere")
    git(desk.repo, "add", "-A")
    git(desk.repo, "commit", "--quiet", "-m", "links")
    assert desk("why", "link:2").status == 2  # a link is one line
    assert desk("why", "link:1").status == 0
    for path in ("folder/secret", "folder/secret:1", "../elsewhere/secret"):
        said = desk("why", path)
        assert said.status == 2 and "outside" in said.err


class Trap:
    """A repository whose config names a program wherever git's config can."""

    def __init__(self, desk: Desk, folder: Path) -> None:
        self.desk = desk
        self.sprung = folder / "sprung"
        program = folder / "program"
        program.write_text(f'#!/bin/sh\necho "$0 $*" >>"{self.sprung}"\ncat\n')
        program.chmod(0o755)
        repo, name = desk.repo, str(program)
        (repo / "a=b.txt").write_text("one\n")
        (repo / ".gitattributes").write_text("* filter=a=b diff=odd merge=odd\n")
        git(repo, "add", "-A")
        git(repo, "commit", "--quiet", "-m", "odd attributes")
        (repo / "a=b.txt").write_text("one\ntwo\n")
        keys = (
            "core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass", "core.alternateRefsCommand", "diff.external",
            "diff.odd.command", "diff.odd.textconv", "merge.odd.driver", "filter.a=b.clean", "filter.a=b.smudge", "filter.a=b.process",
            "gpg.program", "gpg.ssh.program", "pager.log", "pager.blame", "credential.helper", "sequence.editor", "interactive.diffFilter",
            "trailer.odd.command", "uploadpack.packObjectsHook", "alias.blame", "alias.rev-list", "alias.log",
        )  # fmt: skip
        for key in keys:
            git(repo, "config", key, f"!{name}" if key.startswith("alias") else name)
        for key in ("log.showSignature", "filter.a=b.required"):
            git(repo, "config", key, "true")
        for hook in ("post-index-change", "reference-transaction", "pre-auto-gc", "post-checkout"):
            (repo / ".git" / "hooks" / hook).symlink_to(program)


def test_no_config_of_the_repository_starts_a_program(desk: Desk, tmp_path: Path) -> None:
    """Filters, drivers of diffs and merges, monitors, pagers, hooks and signatures: `why` reads what is in the work tree all the same."""
    trap = Trap(desk, tmp_path)
    git(desk.repo, "blame", "a=b.txt", check=False)
    assert trap.sprung.exists()  # so git would
    trap.sprung.unlink()
    for command in (*READING, ("why", "a=b.txt:1"), ("why", "a=b.txt:2"), ("why", "gone")):
        said = desk(*command)
        assert said.status in (0, 2), said
        assert not trap.sprung.exists(), (command, trap.sprung.read_text())
    assert desk("why", "a=b.txt:2", "--json").json["uncommitted"] == 1
    assert not trap.sprung.exists(), trap.sprung.read_text()


@pytest.fixture
def long_commits(desk: Desk) -> list[str]:
    """Commits as nobody makes them: long texts, thousands of parents, times that no calendar has."""
    tree = git(desk.repo, "write-tree").strip()
    head = git(desk.repo, "rev-parse", "HEAD").strip()
    made = []
    long = "x" * 65_536
    shapes = [
        ([head], long, f"{long} <a@b>", "1790000000"),
        ([head] * 50_000, "parents", "a <a@b>", "1790000000"),
        ([head], "late", "a <a@b>", "300000000000"),
        ([head], "later", "a <a@b>", "9" * 18),
        ([head], "early", "a <a@b>", "-5"),
        ([head], "odd \x1b[2J\x01\u202e", "\x1b[31m <\x07>", "x"),
        ([], "", "<>", ""),
    ]
    for parents, subject, who, time in shapes:
        lines = [f"tree {tree}", *(f"parent {each}" for each in parents)]
        lines += [f"author {who} {time} +0000", f"committer {who} {time} +0000", "", subject]
        done = subprocess.run(
            ["git", "hash-object", "-t", "commit", "-w", "--stdin", "--literally"],
            cwd=desk.repo, input="\n".join(lines).encode(), capture_output=True, check=True,
        )  # fmt: skip
        made.append(done.stdout.decode().strip())
    return made


def test_odd_commits_are_shown_with_what_can_be_shown(desk: Desk, long_commits: list[str]) -> None:
    """A subject of 64 KiB is cut, a time beyond the year 9999 is its end, and none hides another."""
    for commit in long_commits:
        git(desk.repo, "update-ref", f"refs/heads/b-{commit}", commit)
        said = desk("why", commit)
        assert said.status == 0 and commit[:12] in said.out, said
        assert "\x1b" not in said.out and max(map(len, said.out.splitlines())) < 2_000
    found = history.facts_of(str(desk.repo / ".git"), long_commits, 9.0)
    assert set(found) == set(long_commits)
    assert all(len(each.subject) < 1_000 and len(each.author) < 1_000 for each in found.values())
    for command in READING:
        assert desk(*command).status == 0


def test_commits_too_large_to_read_at_once_are_read_apart(desk: Desk, long_commits: list[str]) -> None:
    """Else one of them in a reflog would keep all others from being recorded, at each look."""
    common, large = str(desk.repo / ".git"), long_commits[1]
    whole = history.facts_of(common, long_commits, 9.0)
    apart = history.facts_of(common, long_commits, 9.0, out_max=100_000)
    assert apart == {oid: each for oid, each in whole.items() if oid != large}


@pytest.mark.deep
def test_large_files_and_reflogs_take_limited_time_and_memory(desk: Desk) -> None:
    """50 MB in one line, and in 25 million; a reflog of 100 MB; a config that names a pipe of commits to ignore."""
    session = desk.start("Bohr")
    for name, unit in (("line", b"x"), ("lines", b"x\n")):
        (desk.repo / name).write_bytes(unit * (SIZE // len(unit)))
        git(desk.repo, "add", name)
        git(desk.repo, "commit", "--quiet", "-m", name)
        for target in (name, f"{name}:1"):
            said = run(desk, "why", target)
            assert said.status == 0 or "not end within" in said.err or "more than" in said.err, said
    reflog = Path(files.reflog(str(desk.repo / ".git")))
    entry = reflog.read_bytes().splitlines(keepends=True)[0]
    reflog.write_bytes(entry * (2 * SIZE // len(entry)))
    for command in (("whoami",), *READING):
        assert process(*command, cwd=desk.repo, env={"GITMEM_SESSION": session}, before=_limit).status == 0
    os.mkfifo(desk.repo / "pipe")
    git(desk.repo, "config", "blame.ignoreRevsFile", "pipe")
    said = run(desk, "why", "README")
    assert said.status == 4 and "git blame did not end within" in said.err


@pytest.mark.deep
def test_a_hundred_thousand_branches_and_tags_take_limited_time_and_memory(desk: Desk) -> None:
    head = git(desk.repo, "rev-parse", "HEAD").strip()
    lines = [f"{head} refs/{kind}/{number:06d}" for kind in ("heads", "tags") for number in range(100_000)]
    packed = desk.repo / ".git" / "packed-refs"
    packed.write_text(
        "# pack-refs with: peeled fully-peeled sorted \n"
        + "\n".join(sorted(lines, key=lambda each: each[41:]))
        + "\n"
    )
    for command in READING:
        said = run(desk, *command)
        assert said.status == 0, said
    assert (desk.repo / ".git" / "gitmem" / "view.html").stat().st_size < 4_000_000
