"""Remotes: which one, what is fetched and pushed, and what every kind of refusal is called."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.errors import RemoteError, StoreError, UsageError
from gitmem.git import queries, remotes, run
from gitmem.git.plumbing import PlumbingGit
from gitmem.git.port import Draft, Signature
from gitmem.place import Place, find

Run = Callable[..., str]
REF = "refs/gitmem/log"
BRANCH = "refs/heads/gitmem"
INTO = "refs/gitmem/remotes/origin/"
AGENT = Signature("Planck", "planck@gitmem", 1_795_000_000)


@pytest.fixture
def hub(tmp_path: Path, repo: Path, git: Run) -> Path:
    """A bare remote of `repo`, with its branch `main`."""
    path = tmp_path / "hub.git"
    git("clone", "--quiet", "--bare", str(repo), str(path))
    git("remote", "add", "origin", str(path), cwd=repo)
    return path


@pytest.fixture
def common(repo: Path) -> str:
    return str(repo / ".git")


def chain(common: str, count: int, name: str = "a", onto: str | None = None) -> list[str]:
    """A few commits in a repository, without a ref."""
    port = PlumbingGit(common)
    return port.write([Draft({f"{name}{n}": b"x"}, AGENT, AGENT, f"{name}{n}\n") for n in range(count)], onto)


def test_push_and_fetch(common: str, hub: Path, repo: Path, tmp_path: Path, git: Run) -> None:
    """What one clone pushes another finds, under the names that it has on the remote."""
    first, second = chain(common, 2)
    assert remotes.push(common, str(hub), first, BRANCH, None) == "pushed"
    assert remotes.push(common, str(hub), second, BRANCH, first) == "pushed"
    assert remotes.push(common, str(hub), second, BRANCH, second) == "pushed"
    assert remotes.push(common, str(hub), first, REF, None) == "pushed"

    git("clone", "--quiet", str(hub), "other")
    other = str(tmp_path / "other" / ".git")
    fetched = remotes.fetch(other, str(hub), INTO)
    assert fetched.refs == {BRANCH: second, REF: first}
    assert queries.refs_below(other, "refs/gitmem/") == {
        INTO + "heads/gitmem": second,
        INTO + "gitmem/log": first,
    }
    assert not (tmp_path / "other/.git/FETCH_HEAD").exists()
    assert git("status", "--porcelain", cwd=tmp_path / "other") == ""


def test_a_fetch_follows_rewinds_and_deletions_and_takes_nothing_else(
    common: str, hub: Path, git: Run, repo: Path
) -> None:
    """Remote tips are a picture of the remote, without tags, other branches or its own pictures of others."""
    first, second = chain(common, 2)
    for ref in (BRANCH, "refs/heads/gitmem-x", "refs/gitmem/remotes/b/heads/gitmem", "refs/gitmem/outbox/1"):
        git("push", "--quiet", str(hub), f"{second}:{ref}", cwd=repo)
    git("tag", "v1", second, cwd=hub)
    git("update-ref", "refs/gitmem/remotes/upstream/heads/gitmem", first, cwd=repo)
    assert set(remotes.fetch(common, str(hub), INTO).refs) == {
        BRANCH,
        "refs/heads/gitmem-x",
        "refs/gitmem/outbox/1",
    }
    assert git("tag", cwd=repo) == ""

    git("update-ref", BRANCH, first, cwd=hub)
    git("update-ref", "-d", "refs/heads/gitmem-x", cwd=hub)
    git("update-ref", "-d", "refs/gitmem/outbox/1", cwd=hub)
    assert remotes.fetch(common, str(hub), INTO).refs == {BRANCH: first}
    assert queries.tip_of(common, "refs/gitmem/remotes/upstream/heads/gitmem") == first


def test_a_remote_that_moved_on_is_rejected(common: str, hub: Path, git: Run, repo: Path) -> None:
    """Moved, made, rewound or deleted in between: nothing is overwritten, and the caller looks again."""
    base, ours = chain(common, 2)
    (theirs,) = chain(common, 1, "b", base)
    git("push", "--quiet", str(hub), f"{theirs}:{BRANCH}", cwd=repo)

    assert remotes.push(common, str(hub), ours, BRANCH, base) == "rejected"
    assert remotes.push(common, str(hub), ours, BRANCH, None) == "rejected"
    assert git("rev-parse", BRANCH, cwd=hub).strip() == theirs
    git("update-ref", "-d", BRANCH, cwd=hub)
    assert remotes.push(common, str(hub), ours, BRANCH, base) == "rejected"
    with pytest.raises(StoreError, match="does not contain"):
        remotes.push(common, str(hub), ours, BRANCH, theirs)
    assert git("for-each-ref", "refs/heads/gitmem", cwd=hub) == ""


def test_a_lock_on_the_remote_s_ref_is_rejected(common: str, hub: Path) -> None:
    """Two clones that push at the same moment: the second tries again."""
    first, second = chain(common, 2)
    assert remotes.push(common, str(hub), first, BRANCH, None) == "pushed"
    (hub / (BRANCH + ".lock")).touch()

    assert remotes.push(common, str(hub), second, BRANCH, first) == "rejected"


@pytest.mark.parametrize("hook", ["pre-receive", "update"])
def test_a_hook_on_the_remote_refuses(common: str, hub: Path, hook: str) -> None:
    """That is no race: the remote's words are passed on, made harmless."""
    path = hub / "hooks" / hook
    path.write_text("#!/bin/sh\nprintf 'GH006: \\033[31mProtected branch\\n' >&2\nexit 1\n")
    path.chmod(0o755)
    (oid,) = chain(common, 1)

    with pytest.raises(RemoteError, match=r"hook declined.*GH006: .*Protected branch") as caught:
        remotes.push(common, str(hub), oid, BRANCH, None)
    assert (caught.value.code, caught.value.status) == ("refused", 5)
    assert "\x1b" not in caught.value.message


def test_a_hidden_ref_refuses(common: str, hub: Path, git: Run) -> None:
    """A forge that keeps a namespace for itself."""
    git("config", "receive.hideRefs", "refs/gitmem", cwd=hub)
    (oid,) = chain(common, 1)

    with pytest.raises(RemoteError, match="hidden ref") as caught:
        remotes.push(common, str(hub), oid, REF, None)
    assert caught.value.code == "refused"


@pytest.mark.parametrize(
    "url", ["/nowhere/hub.git", "file:///nowhere", "http://127.0.0.1:9/x", "ssh://127.0.0.1:9/x"]
)
def test_a_remote_that_is_not_there_is_offline(common: str, url: str, hub: Path) -> None:
    """Every way to ask says so with git's reason, and the refs are as they were."""
    (oid,) = chain(common, 1)
    remotes.push(common, str(hub), oid, BRANCH, None)
    remotes.fetch(common, str(hub), INTO)
    asks: list[Callable[[], object]] = [
        lambda: remotes.fetch(common, url, INTO),
        lambda: remotes.push(common, url, oid, BRANCH, None),
        lambda: remotes.has_branches(common, url),
    ]
    for ask in asks:
        with pytest.raises(RemoteError, match=r"could not be reached: .*stays recorded") as caught:
            ask()
        assert (caught.value.code, caught.value.status) == ("offline", 5)
        assert ".;" not in caught.value.message
        assert "Could not read from remote repository" not in caught.value.message
    assert queries.tip_of(common, INTO + "heads/gitmem") == oid


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("fatal: '/x' does not appear to be a git repository\nfatal: Could not read from remote repository.\n\n"
         "Please make sure you have the correct access rights\nand the repository exists.\n",
         "fatal: '/x' does not appear to be a git repository"),
        ("git@hub: Permission denied (publickey).\nfatal: Could not read from remote repository.\n",
         "git@hub: Permission denied (publickey)"),
        ("fatal: Could not read from remote repository.\n", "fatal: Could not read from remote repository"),
    ],
)  # fmt: skip
def test_what_git_says_first_is_told(
    common: str, monkeypatch: pytest.MonkeyPatch, said: str, told: str
) -> None:
    """The reason, not the advice below it; and one sentence sign at its end."""
    monkeypatch.setattr(remotes, "_network", lambda *args: run.Result(128, b"", said))
    with pytest.raises(RemoteError) as caught:
        remotes.fetch(common, "/x", INTO)
    assert caught.value.message == (
        f"The remote /x could not be reached: {told}; what is recorded here stays recorded."
    )


def test_a_remote_that_hangs_is_offline_in_time(common: str, tmp_path: Path, git: Run, repo: Path) -> None:
    """The limit holds for the whole group of processes."""
    script = tmp_path / "ssh"
    script.write_text("#!/bin/sh\nsleep 30\n")
    script.chmod(0o755)
    git("config", "core.sshCommand", str(script), cwd=repo)
    begun = time.monotonic()

    with pytest.raises(RemoteError, match=r"no answer within 0\.4 seconds") as caught:
        remotes.fetch(common, "ssh://host/x", INTO, timeout=0.4)
    assert caught.value.code == "offline"
    assert time.monotonic() - begun < 5


def test_the_user_s_settings_and_hooks_do_not_disturb(common: str, hub: Path, repo: Path, git: Run) -> None:
    """Only the one ref moves, whatever push and fetch do by default here."""
    (repo / ".git/hooks").mkdir(exist_ok=True)
    for hook in ("pre-push", "reference-transaction"):
        path = repo / ".git/hooks" / hook
        path.write_text("#!/bin/sh\ntouch fired\nexit 1\n")
        path.chmod(0o755)
    (oid,) = chain(common, 1)
    git("-c", "core.hooksPath=/dev/null", "tag", "-a", "-m", "x", "v1", oid, cwd=repo)
    for key, value in {
        "push.default": "matching",
        "push.followTags": "true",
        "push.gpgSign": "true",
        "push.pushOption": "ci.skip",
        "push.recurseSubmodules": "on-demand",
        "push.useForceIfIncludes": "true",
        "fetch.prune": "true",
        "fetch.recurseSubmodules": "true",
        "remote.origin.tagOpt": "--tags",
        "remote.origin.push": "refs/heads/*:refs/heads/x-*",
        "gc.auto": "1",
        "color.ui": "always",
        "core.askPass": "/bin/false",
    }.items():
        git("config", key, value, cwd=repo)

    assert remotes.push(common, str(hub), oid, BRANCH, None) == "pushed"
    assert remotes.fetch(common, str(hub), INTO).refs == {BRANCH: oid}
    assert git("for-each-ref", "--format=%(refname)", cwd=hub).split() == [BRANCH, "refs/heads/main"]
    assert not list(repo.rglob("fired"))
    assert not list((repo / ".git/objects/pack").glob("*.pack"))


def test_instead_of_applies(common: str, hub: Path, repo: Path, git: Run) -> None:
    """Short forms and rewritten hosts work, once."""
    git("config", f"url.{hub.parent}/.insteadOf", "work:", cwd=repo)
    git("config", "remote.origin.url", "work:hub.git", cwd=repo)
    (oid,) = chain(common, 1)

    url = remotes.push_url(common, "origin")
    assert remotes.push(common, url, oid, BRANCH, None) == "pushed"
    assert remotes.fetch(common, url, INTO).refs == {BRANCH: oid}


def test_an_empty_remote_has_no_branches(common: str, hub: Path, git: Run, tmp_path: Path) -> None:
    """Its first branch would become the default one."""
    git("init", "--quiet", "--bare", "empty.git")

    assert remotes.has_branches(common, str(hub))
    assert not remotes.has_branches(common, str(tmp_path / "empty.git"))
    assert remotes.fetch(common, str(tmp_path / "empty.git"), INTO).refs == {}


def test_push_url(common: str, repo: Path, hub: Path, tmp_path: Path, git: Run) -> None:
    """The push url where there is one, else the first url; relative paths as git sees them."""
    assert remotes.push_url(common, "origin") == str(hub)
    git("config", "remote.origin.pushurl", "git@example.org:a/b.git", cwd=repo)
    assert remotes.push_url(common, "origin") == "git@example.org:a/b.git"
    git("remote", "add", "near", "../hub.git", cwd=repo)
    assert remotes.push_url(common, "near") == str(hub)
    assert remotes.push_url(common, "../hub.git", str(repo)) == str(hub)
    for url in ("https://example.org/x", "host:x/y", str(hub), "work/short"):
        assert remotes.push_url(common, url) == url
    with pytest.raises(UsageError, match="no remote 'orign'") as caught:
        remotes.push_url(common, "orign")
    assert caught.value.code == "unknown-remote"
    assert caught.value.suggestions == ["near", "origin"]


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
    assert remotes.upstream_remote(Place(str(repo / ".git"), str(tmp_path), None)) == "origin"


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


def test_secrets_in_urls_are_not_repeated(common: str) -> None:
    """Errors are pasted into reports."""
    with pytest.raises(RemoteError) as caught:
        remotes.has_branches(common, "http://me:s3cret@127.0.0.1:9/x")
    assert "s3cret" not in caught.value.message
    assert "http://127.0.0.1:9/x" in caught.value.message


@pytest.mark.skipif(os.name == "nt", reason="a shell script stands for ssh")
@pytest.mark.parametrize("own", [False, True])
def test_ssh_never_prompts(common: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: bool) -> None:
    """BatchMode for the plain ssh; a command of the user's own stays as it is."""
    script = tmp_path / "bin" / "ssh"
    script.parent.mkdir()
    script.write_text(
        f'#!/bin/sh\necho "$@" > {tmp_path}/args\necho "$GIT_TERMINAL_PROMPT" >> {tmp_path}/args\nexit 1\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    if own:
        monkeypatch.setenv("GIT_SSH_COMMAND", "ssh -v")

    with pytest.raises(RemoteError):
        remotes.has_branches(common, "ssh://git@host/x")
    args, prompt = (tmp_path / "args").read_text().splitlines()
    assert ("BatchMode=yes" in args) is not own
    assert args.startswith("-v") is own
    assert prompt == "0"
