"""Remotes: which one is meant, where it is, and its name as a part of a ref."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.errors import StoreError, UsageError
from gitmem.git import remotes
from gitmem.repo import Repo, find

Run = Callable[..., str]


def test_push_url(common: str, repo: Path, hub: Path, tmp_path: Path, git: Run) -> None:
    """The push url where there is one, else the first url; relative paths as git sees them."""
    assert remotes.push_urls(common, "origin")[0] == str(hub)
    git("config", "remote.origin.pushurl", "git@example.org:a/b.git", cwd=repo)
    assert remotes.push_urls(common, "origin")[0] == "git@example.org:a/b.git"
    git("remote", "add", "near", "../hub.git", cwd=repo)
    assert remotes.push_urls(common, "near")[0] == str(hub)
    assert remotes.push_urls(common, "../hub.git", str(repo))[0] == str(hub)
    for url in ("https://example.org/x", "host:x/y", "host:x", str(hub), "work/short"):
        assert remotes.push_urls(common, url)[0] == url
    with pytest.raises(UsageError, match="Unknown remote: 'orign'") as caught:
        remotes.push_urls(common, "orign")[0]
    assert caught.value.code == "unknown-remote"
    assert caught.value.suggestions == ["near", "origin"]


def test_a_path_is_told_from_a_host_as_git_does(common: str, tmp_path: Path, repo: Path) -> None:
    """A colon before the first slash ends a host's name; one behind it is of a folder's name."""
    for name in ("a/b:c/d", "host:x/y:z/e"):
        (repo / name).mkdir(parents=True)

    assert remotes.push_urls(common, "a/b:c/d", str(repo))[0] == str(repo / "a/b:c/d")
    assert remotes.push_urls(common, "host:x/y:z/e", str(repo))[0] == "host:x/y:z/e"


def test_a_remote_whose_name_is_no_text(common: str, repo: Path, git: Run) -> None:
    """A config that was written by hand, in the letters of another time."""
    with open(repo / ".git/config", "ab") as file:
        file.write(b'[remote "caf\xe9"]\n\turl = /x\n[branch "main"]\n\tremote = caf\xe9\n')

    assert remotes.remotes(common) == ["caf\udce9"]
    assert remotes.push_urls(common, "caf\udce9")[0] == "/x"
    assert remotes.upstream_remote(find(str(repo))) == "caf\udce9"
    git("check-ref-format", f"refs/gitmem/remotes/{remotes.encode(chr(0xE9))}/heads/gitmem")


def test_where_no_remote_is_the_way_to_one_is_told(common: str, repo: Path) -> None:
    """Each of these errors ends with what to do."""
    with pytest.raises(UsageError) as caught:
        remotes.push_urls(common, "orign")[0]
    assert (caught.value.code, caught.value.next) == ("unknown-remote", [])
    assert "git remote add NAME URL" in caught.value.hint
    with pytest.raises(UsageError) as caught:
        remotes.upstream_remote(find(str(repo)))
    assert "git remote add origin URL" in caught.value.hint


def test_a_config_that_git_can_not_read_is_git_s_own_error(common: str, repo: Path) -> None:
    """It is not taken for one without remotes."""
    with open(repo / ".git/config", "a") as file:
        file.write("[remote\n")

    asks: list[Callable[[], str]] = [
        lambda: remotes.push_urls(common, "origin")[0],
        lambda: remotes.upstream_remote(find(str(repo))),
    ]
    for ask in asks:
        with pytest.raises(StoreError, match=r"^git cannot read its configuration: bad config") as caught:
            ask()
        assert caught.value.code == "bad-config"


def test_the_default_remote(repo: Path, tmp_path: Path, git: Run) -> None:
    """The upstream of this worktree's branch, else origin, else the only one, else a question."""
    place = find(str(repo))
    with pytest.raises(UsageError) as caught:
        remotes.upstream_remote(place)
    assert (caught.value.code, caught.value.status) == ("no-remote", 2)

    git("remote", "add", "hub", "x", cwd=repo)
    assert remotes.upstream_remote(place) == "hub"
    git("remote", "add", "fork", "x", cwd=repo)
    with pytest.raises(UsageError, match="fork, hub") as caught:
        remotes.upstream_remote(place)
    assert caught.value.code == "which-remote"
    assert caught.value.next == ["gitmem sync fork", "gitmem sync hub"]
    git("remote", "add", "origin", "x", cwd=repo)
    assert remotes.upstream_remote(place) == "origin"
    git("config", "branch.main.remote", ".", cwd=repo)
    assert remotes.upstream_remote(place) == "origin"

    git("worktree", "add", "--quiet", "-b", "a/B.c", str(tmp_path / "linked"), cwd=repo)
    git("config", "branch.a/B.c.remote", "fork", cwd=repo)
    assert remotes.upstream_remote(place) == "origin"
    assert remotes.upstream_remote(find(str(tmp_path / "linked"))) == "fork"
    git("checkout", "--quiet", "--detach", cwd=tmp_path / "linked")
    assert remotes.upstream_remote(find(str(tmp_path / "linked"))) == "origin"
    assert remotes.upstream_remote(Repo(str(repo / ".git"), str(tmp_path), None)) == "origin"


@pytest.mark.parametrize(
    ("remote", "encoded"),
    [
        ("origin", "origin"),
        ("a/b.lock", "a%2Fb%2Elock"),
        ("..", "%2E%2E"),
        ("ü %", "%C3%BC%20%25"),
        ("https://me:secret@example.org/x", "https%3A%2F%2Fexample%2Eorg%2Fx"),
        ("https://ghp_token@example.org/x", "https%3A%2F%2Fexample%2Eorg%2Fx"),
        ("ssh://git:secret@host/x", "ssh%3A%2F%2Fgit%40host%2Fx"),
        ("git@host:x", "git%40host%3Ax"),
        ("https://me:p@ss@example.org/x", "https%3A%2F%2Fexample%2Eorg%2Fx"),
        ("https://example.org/a@b/x", "https%3A%2F%2Fexample%2Eorg%2Fa%40b%2Fx"),
        ("X" * 201, "X" * 150 + "-5d9c2166321b6187"),
    ],
)
def test_a_remote_becomes_one_component_of_a_ref(remote: str, encoded: str, git: Run) -> None:
    """Any name or url, without the secrets in it."""
    assert remotes.encode(remote) == encoded
    git("check-ref-format", f"refs/gitmem/remotes/{encoded}/heads/gitmem")


def test_a_long_url_still_fits_a_file_name(git: Run) -> None:
    """And two long ones stay apart."""
    one, two = (remotes.encode("https://example.org/" + "é/" * 200 + end) for end in "ab")

    assert one != two
    assert len(one) <= 200
    git("check-ref-format", f"refs/gitmem/remotes/{one}/heads/gitmem")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://localhost/x?private_token=secret", "https://localhost/x"),
        ("https://localhost/x#secret", "https://localhost/x"),
        ("https://me:pass/secret@localhost/x", "https://localhost/x"),
        ("foo::https://secret@localhost/x", "foo::https://localhost/x"),
        ("ssh://git:pa/secret@localhost:22/x", "ssh://git@localhost:22/x"),
        ("https://[::1]:8080/a@b", "https://[::1]:8080/a@b"),
        ("https://localhost:8080/a@b", "https://localhost:8080/a@b"),
        ("file:///a:b/c@d", "file:///a:b/c@d"),
        ("/a:b/c@d", "/a:b/c@d"),
    ],
)
def test_a_url_is_shown_without_what_may_be_a_secret(url: str, shown: str) -> None:
    """Nothing else of it is lost."""
    assert remotes.without_credentials(url) == shown
    assert remotes.scrubbed(f"fatal: '{url}' not found") == f"fatal: '{shown}' not found"


def test_where_a_push_ends(common: str, repo: Path, git: Run) -> None:
    """The url after git's own rewriting, as git does it for a url that is given to it."""
    git("config", "remote.origin.url", "short:a/b", cwd=repo)
    assert remotes.push_urls(common, "origin") == ("short:a/b", "short:a/b")
    git("config", "url.https://me:secret@one.example/.insteadOf", "short:", cwd=repo)
    assert remotes.push_urls(common, "origin") == ("short:a/b", "https://one.example/a/b")
    git("config", "url.https://two.example/.insteadOf", "short:a", cwd=repo)
    assert remotes.push_urls(common, "origin")[1] == "https://two.example//b"
    git("config", "url.https://three.example/.pushInsteadOf", "short:", cwd=repo)
    assert remotes.push_urls(common, "origin")[1] == "https://three.example/a/b"
