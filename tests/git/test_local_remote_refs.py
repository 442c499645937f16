"""Asking a repository on this machine for its refs, without a fetch."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitmem.git import local_remote_refs

from ..clones import git

PREFIXES = ("refs/heads/gitmem", "refs/gitmem/")


def refs_at(common: str, path: Path | str) -> dict[str, str] | None:
    called: list[str] = []
    found = local_remote_refs.ask(common, str(path), PREFIXES, 30, lambda: called.append("once"))
    assert called == ["once"]
    return found


def test_it_says_what_a_fetch_would_bring(repo: Path, tmp_path: Path) -> None:
    """Also of packed refs, of a work tree's repository, and of no such ref at all."""
    hub = tmp_path / "a hub"
    git("clone", "--quiet", "--bare", str(repo), str(hub), cwd=tmp_path)
    common = str(repo / ".git")
    assert refs_at(common, hub) == {}

    oid = git("rev-parse", "HEAD", cwd=repo).strip()
    for name in ("refs/heads/gitmem", "refs/heads/gitmem-outbox-1", "refs/gitmem/outbox/1", "refs/heads/git"):
        git("update-ref", name, oid, cwd=hub)
    expected = dict.fromkeys(("refs/heads/gitmem", "refs/heads/gitmem-outbox-1", "refs/gitmem/outbox/1"), oid)
    assert refs_at(common, hub) == expected
    git("pack-refs", "--all", cwd=hub)
    assert refs_at(common, hub) == expected
    git("update-ref", "refs/heads/gitmem", oid, cwd=repo)
    assert refs_at(common, repo) == {"refs/heads/gitmem": oid}


@pytest.mark.parametrize("path", ["nowhere", "/nowhere", ".", "https://example.org/x.git"])
def test_what_is_no_repository_here_is_left_to_a_fetch(repo: Path, tmp_path: Path, path: str) -> None:
    where = str(tmp_path) if path == "." else path

    assert refs_at(str(repo / ".git"), where) is None


@pytest.mark.parametrize(
    "lines",
    [
        "[url {hub}/]\n\tinsteadOf = work:",
        "[remote origin]\n\tuploadPack = other-program",
        "[INCLUDE]\n\tpath = more",
        "[includeIf gitdir:~/]\n\tpath = more",
    ],
)
def test_a_config_that_may_send_git_elsewhere_is_left_to_a_fetch(repo: Path, lines: str) -> None:
    """In whatever letters: git takes the names of keys in any."""
    assert refs_at(str(repo / ".git"), repo) == {}
    with open(repo / ".git" / "config", "a") as file:
        file.write(lines + "\n")

    assert refs_at(str(repo / ".git"), repo) is None


@pytest.mark.parametrize(
    "out",
    [
        b"",
        b"003f" + b"1" * 40 + b" refs/heads/gitmem\n0000",  # an old server's first answer
        b"000eversion 2\n0000",
        b"000eversion 2\n00000009nop\n0000",
        b"000eversion 2\n0000003f" + b"1" * 40 + b" refs/heads/gitmem\n",
        b"000eversion 2\n0000003f" + b"g" * 40 + b" refs/heads/gitmem\n0000",
        b"000eversion 2\n0000003e" + b"1" * 39 + b" refs/heads/gitmem\n0000",
        b"nonsense",
    ],
)
def test_an_answer_of_another_form_is_none(out: bytes) -> None:
    assert local_remote_refs._parse(out) is None


def test_what_does_not_answer_in_time_is_left_to_a_fetch(repo: Path) -> None:
    assert local_remote_refs.ask(str(repo / ".git"), str(repo), PREFIXES, -1, lambda: None) is None
