"""The network: what is fetched, pushed and deleted, and what every kind of refusal is called."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.errors import RemoteError, StoreError, UsageError
from gitmem.git import config, plumbing
from gitmem.git import packs as packing
from gitmem.git.fetch import Incoming
from gitmem.git.network import GitNetwork
from gitmem.git.objects import Draft, Signature
from gitmem.git.port import Git as PlumbingGit
from gitmem.repo import Repo, find

from ..git_on_path import GitOnPath

Run = Callable[..., str]
REF = "refs/gitmem/log"
BRANCH = "refs/heads/gitmem"
INTO = "refs/gitmem/remotes/origin/"
AGENT = Signature("Planck", "planck@gitmem", 1_795_000_000)


def chain(common: str, count: int, name: str = "a", onto: str | None = None) -> list[str]:
    """A few commits in a repository, without a ref."""
    port = PlumbingGit(common)
    return port.write([Draft({f"{name}{n}": b"x"}, AGENT, AGENT, f"{name}{n}\n") for n in range(count)], onto)


def fetched(common: str, url: str | Path) -> dict[str, str]:
    """What a fetch brings, by the names that it has on the remote."""
    GitNetwork(common).fetch(str(url), INTO)
    return {"refs/" + ref.removeprefix(INTO): oid for ref, oid in plumbing.refs_below(common, INTO).items()}


def test_a_fetch_follows_rewinds_and_deletions_and_takes_nothing_else(
    common: str, hub: Path, git: Run, repo: Path
) -> None:
    """Remote tips are a picture of the remote, without tags, other branches or its own pictures of others."""
    first, second = chain(common, 2)
    for ref in (BRANCH, "refs/heads/gitmem-x", "refs/gitmem/remotes/b/heads/gitmem", "refs/gitmem/outbox/1"):
        git("push", "--quiet", str(hub), f"{second}:{ref}", cwd=repo)
    git("tag", "v1", second, cwd=hub)
    git("update-ref", "refs/gitmem/remotes/upstream/heads/gitmem", first, cwd=repo)
    assert set(fetched(common, hub)) == {
        BRANCH,
        "refs/heads/gitmem-x",
        "refs/gitmem/outbox/1",
    }
    assert git("tag", cwd=repo) == ""

    git("update-ref", BRANCH, first, cwd=hub)
    git("update-ref", "-d", "refs/heads/gitmem-x", cwd=hub)
    git("update-ref", "-d", "refs/gitmem/outbox/1", cwd=hub)
    assert fetched(common, hub) == {BRANCH: first}
    assert plumbing.tip_of(common, "refs/gitmem/remotes/upstream/heads/gitmem") == first


def test_a_remote_that_moved_on_is_rejected(common: str, hub: Path, git: Run, repo: Path) -> None:
    """Moved, made, rewound or deleted in between: nothing is overwritten, and the caller looks again."""
    base, ours = chain(common, 2)
    (theirs,) = chain(common, 1, "b", base)
    git("push", "--quiet", str(hub), f"{theirs}:{BRANCH}", cwd=repo)

    assert GitNetwork(common).push(str(hub), ours, BRANCH, base) == "rejected"
    assert GitNetwork(common).push(str(hub), ours, BRANCH, None) == "rejected"
    assert git("rev-parse", BRANCH, cwd=hub).strip() == theirs
    git("update-ref", "-d", BRANCH, cwd=hub)
    assert GitNetwork(common).push(str(hub), ours, BRANCH, base) == "rejected"
    with pytest.raises(StoreError, match="does not contain") as caught:
        GitNetwork(common).push(str(hub), ours, BRANCH, theirs)
    assert caught.value.code == "not-fast-forward"
    assert git("for-each-ref", "refs/heads/gitmem", cwd=hub) == ""


def test_deleting_takes_what_is_still_where_it_was(common: str, hub: Path, git: Run, repo: Path) -> None:
    """What moved stays, what is gone is gone, and neither is an error."""
    first, second = chain(common, 2)
    names = {f"refs/gitmem/outbox/{name}": first for name in ("kept", "moved", "gone", "branch")}
    names["refs/heads/gitmem-outbox-branch"] = names.pop("refs/gitmem/outbox/branch")
    for name, oid in names.items():
        git("push", "--quiet", str(hub), f"{oid}:{name}", cwd=repo)
    git("push", "--quiet", str(hub), f"{second}:refs/gitmem/outbox/moved", cwd=repo)
    git("update-ref", "-d", "refs/gitmem/outbox/gone", cwd=hub)

    GitNetwork(common).delete(str(hub), names)
    left = git("for-each-ref", "--format=%(refname)", "refs/gitmem", "refs/heads/gitmem*", cwd=hub)
    assert left.split() == ["refs/gitmem/outbox/moved"]
    GitNetwork(common).delete(str(hub), names)


def test_a_remote_that_lets_nothing_be_deleted_refuses(common: str, hub: Path, git: Run, repo: Path) -> None:
    """By a setting, or as a whole; a lock that somebody holds is no refusal."""
    (oid,) = chain(common, 1)
    name = "refs/heads/gitmem-outbox-1"
    git("push", "--quiet", str(hub), f"{oid}:{name}", cwd=repo)
    (hub / (name + ".lock")).touch()
    GitNetwork(common).delete(str(hub), {name: oid})
    (hub / (name + ".lock")).unlink()

    git("config", "receive.denyDeletes", "true", cwd=hub)
    with pytest.raises(RemoteError, match="deletion prohibited") as caught:
        GitNetwork(common).delete(str(hub), {name: oid})
    assert caught.value.code == "refused"
    with pytest.raises(RemoteError) as caught:
        GitNetwork(common).delete("/nowhere/hub.git", {name: oid})
    assert caught.value.code == "offline"
    assert git("rev-parse", name, cwd=hub).strip() == oid


def test_what_is_there_already_is_pushed(common: str, hub: Path) -> None:
    """A copied clone, or a reply that was lost: of one name there is one content."""
    (oid,) = chain(common, 1)
    for _ in range(2):
        assert GitNetwork(common).push(str(hub), oid, f"refs/gitmem/outbox/{oid}", None) == "pushed"


def test_a_refusing_hook_s_words_are_told_without_secrets(common: str, hub: Path) -> None:
    """They are not obeyed either: no escapes for the terminal."""
    path = hub / "hooks" / "pre-receive"
    path.write_text("#!/bin/sh\nprintf '\\033[31mSee https://me:s3cret@localhost/rules\\n' >&2\nexit 1\n")
    path.chmod(0o755)
    (oid,) = chain(common, 1)

    with pytest.raises(RemoteError, match=r"hook declined.*See https://localhost/rules") as caught:
        GitNetwork(common).push(str(hub), oid, BRANCH, None)
    assert (caught.value.code, caught.value.status) == ("refused", 5)
    assert "s3cret" not in caught.value.message and "\x1b" not in caught.value.message


def test_a_hidden_ref_refuses(common: str, hub: Path, git: Run) -> None:
    """A forge that keeps a namespace for itself."""
    git("config", "receive.hideRefs", "refs/gitmem", cwd=hub)
    (oid,) = chain(common, 1)

    with pytest.raises(RemoteError, match="hidden ref") as caught:
        GitNetwork(common).push(str(hub), oid, REF, None)
    assert caught.value.code == "refused"


@pytest.mark.parametrize(
    "url", ["/nowhere/hub.git", "file:///nowhere", "http://127.0.0.1:9/x", "ssh://127.0.0.1:9/x"]
)
def test_a_remote_that_is_not_there_is_offline(common: str, url: str, hub: Path) -> None:
    """Every way to ask says so with git's reason, and the refs are as they were."""
    (oid,) = chain(common, 1)
    GitNetwork(common).push(str(hub), oid, BRANCH, None)
    GitNetwork(common).fetch(str(hub), INTO)
    asks: list[Callable[[], object]] = [
        lambda: GitNetwork(common).fetch(url, INTO),
        lambda: GitNetwork(common).push(url, oid, BRANCH, None),
        lambda: GitNetwork(common).has_branches(url),
    ]
    for ask in asks:
        with pytest.raises(RemoteError, match=r"Cannot reach the remote .*are kept") as caught:
            ask()
        assert (caught.value.code, caught.value.status) == ("offline", 5)
        assert "`git fetch` must work" in caught.value.hint and caught.value.next == ["gitmem sync"]
        assert ".;" not in caught.value.message
        assert "Could not read from remote repository" not in caught.value.message
    assert plumbing.tip_of(common, INTO + "heads/gitmem") == oid


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("fatal: '/x' does not appear to be a git repository\nfatal: Could not read from remote repository.\n\n"
         "Please make sure you have the correct access rights\nand the repository exists.\n",
         "fatal: '/x' does not appear to be a git repository"),
        ("fatal: Could not read from remote repository.\n", "fatal: Could not read from remote repository"),
    ],
)  # fmt: skip
def test_what_git_says_first_is_told(
    common: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, told: str
) -> None:
    """The reason, not the advice below it; and one sentence sign at its end."""
    GitOnPath(tmp_path, monkeypatch).says(128, err=said, to="fetch")
    with pytest.raises(RemoteError) as caught:
        GitNetwork(common).fetch("/x", INTO)
    assert caught.value.message == (f"Cannot reach the remote /x: {told}. Local records are kept.")


@pytest.mark.parametrize(
    ("row", "outcome"),
    [
        ("*\tHERE:THERE\t[new branch]", "pushed"),
        ("=\tHERE:THERE\t[up to date]", "pushed"),
        ("!\tHERE:THERE\t[rejected] (needs force)", "rejected"),
        ("!\tHERE:THERE\t[remote rejected] (failed to update ref)", "rejected"),
        ("!\tHERE:THERE\t[remote rejected] (a hook declined)", "refused"),
        ("*\tHERE:THERE\t[new branch]", "refused"),  # as it says, and git ended as a failure
        ("*\tHERE:elsewhere\t[new branch]", "offline"),
        ("Done", "offline"),
    ],
)
def test_what_a_push_reports_is_understood(
    common: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: str, outcome: str
) -> None:
    """It counts as pushed only where git says so of this very ref."""
    (oid,) = chain(common, 1)
    out = f"To /x\n{row.replace('THERE', BRANCH)}\n"
    code = 0 if outcome == "pushed" else 1
    GitOnPath(tmp_path, monkeypatch).says(code, out, "error: failed to push", to="push")

    if outcome in ("pushed", "rejected"):
        assert GitNetwork(common).push("/x", oid, BRANCH, None) == outcome
    else:
        with pytest.raises(RemoteError) as caught:
            GitNetwork(common).push("/x", oid, BRANCH, None)
        assert caught.value.code == outcome


def test_what_is_not_there_is_asked_for_once(
    common: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is offline waits for one answer and not for three."""
    program = GitOnPath(tmp_path, monkeypatch)
    with pytest.raises(RemoteError):
        GitNetwork(common).fetch("/nowhere", INTO)
    assert len([args for _, args in program.started if "/nowhere" in args]) == 1


def test_a_lock_that_git_left_hinders_no_fetch(common: str, hub: Path, repo: Path, git: Run) -> None:
    """What is new comes in; what the remote has no more is forgotten another time."""
    old, new = chain(common, 2)
    git("push", "--quiet", str(hub), f"{old}:{BRANCH}-outbox-1", cwd=repo)
    assert fetched(common, hub) == {f"{BRANCH}-outbox-1": old}
    git("update-ref", "-d", f"{BRANCH}-outbox-1", cwd=hub)
    git("push", "--quiet", str(hub), f"{new}:{BRANCH}", cwd=repo)
    git("config", "core.packedRefsTimeout", "0", cwd=repo)
    lock = repo / ".git" / "packed-refs.lock"
    lock.touch()

    assert fetched(common, hub) == {f"{BRANCH}-outbox-1": old, BRANCH: new}
    lock.unlink()
    assert fetched(common, hub) == {BRANCH: new}


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

    assert GitNetwork(common).push(str(hub), oid, BRANCH, None) == "pushed"
    assert fetched(common, hub) == {BRANCH: oid}
    assert git("for-each-ref", "--format=%(refname)", cwd=hub).split() == [BRANCH, "refs/heads/main"]
    assert not list(repo.rglob("fired"))
    packs = {path.stem for path in (repo / ".git/objects/pack").glob("*.pack")}
    assert packs == set(packing.own_packs(common)), "a gc has run"


def test_instead_of_applies(common: str, hub: Path, repo: Path, git: Run) -> None:
    """Short forms and rewritten hosts work, once."""
    git("config", f"url.{hub.parent}/.insteadOf", "work:", cwd=repo)
    git("config", "remote.origin.url", "work:hub.git", cwd=repo)
    (oid,) = chain(common, 1)

    url = config.push_urls(common, "origin")[0]
    assert GitNetwork(common).push(url, oid, BRANCH, None) == "pushed"
    assert fetched(common, url) == {BRANCH: oid}


def test_what_ci_configures_for_the_git_folder_alone_applies(
    common: str, hub: Path, repo: Path, git: Run, tmp_path: Path
) -> None:
    """Actions of GitHub keep credentials so; git fetches in a folder of ours, for which the condition does not hold."""
    (oid,) = chain(common, 1)
    git("push", "--quiet", str(hub), f"{oid}:{BRANCH}", cwd=repo)
    for name, folder in (("this", Path(common)), ("other", tmp_path / "other")):
        (tmp_path / name).write_text(f'[url "{hub}"]\n\tinsteadOf = {name}:hub\n')
        git("config", f"includeIf.gitdir:{folder.resolve()}.path", str(tmp_path / name), cwd=repo)

    assert fetched(common, "this:hub") == {BRANCH: oid}
    with pytest.raises(RemoteError):
        fetched(common, "other:hub")


@pytest.mark.parametrize(
    ("name", "is_one"), [("gitmem", False), ("gitmem-outbox-1", False), ("gitmem2", True), ("a/gitmem", True)]
)
def test_a_log_s_own_branches_are_none(
    common: str, git: Run, repo: Path, tmp_path: Path, name: str, is_one: bool
) -> None:
    """The user's first branch is still to come, and is to become the default one."""
    git("init", "--quiet", "--bare", "empty.git")
    git("push", "--quiet", str(tmp_path / "empty.git"), f"main:refs/heads/{name}", cwd=repo)

    assert GitNetwork(common).has_branches(str(tmp_path / "empty.git")) is is_one


def test_secrets_in_urls_are_not_repeated(common: str) -> None:
    """Errors are pasted into reports."""
    with pytest.raises(RemoteError) as caught:
        GitNetwork(common).has_branches("http://me:s3cret@127.0.0.1:9/x")
    assert "s3cret" not in caught.value.message
    assert "http://127.0.0.1:9/x" in caught.value.message


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
        GitNetwork(common).has_branches("ssh://git@host/x")
    args, prompt = (tmp_path / "args").read_text().splitlines()
    assert ("BatchMode=yes" in args) is not own
    assert args.startswith("-v") is own
    assert prompt == "0"


def behind(common: str, hub: Path, tmp_path: Path, git: Run) -> tuple[str, Path]:
    """A commit that is new here, where the hub has a log that this clone has not seen the end of.

    It stands on forty commits that both have. The hub keeps what arrives from now on as packs.
    """
    *_, shared = chain(common, 40)
    assert GitNetwork(common).push(str(hub), shared, BRANCH, None) == "pushed"
    git("clone", "--quiet", "--branch=gitmem", str(hub), "other")
    git("commit", "--quiet", "--allow-empty", "-m", "Of another clone", cwd=tmp_path / "other")
    git("push", "--quiet", "origin", "gitmem", cwd=tmp_path / "other")
    git("config", "receive.unpackLimit", "1", cwd=hub)
    return chain(common, 1, "mine", shared)[0], hub / "objects" / "pack"


def objects_in(packs: Path) -> int:
    """How many objects the packs of a repository have: the last entry of the table that an index begins with."""
    return sum(int.from_bytes(each.read_bytes()[8 + 1020 : 8 + 1024], "big") for each in packs.glob("*.idx"))


def test_an_outbox_sends_what_the_remote_lacks_and_no_more(
    common: str, hub: Path, tmp_path: Path, git: Run
) -> None:
    """Also where the remote's refs have gone on since the last fetch: both sides find out what they share."""
    new, packs = behind(common, hub, tmp_path, git)

    assert GitNetwork(common).push(str(hub), new, f"refs/gitmem/outbox/{new}", None) == "pushed"

    assert 0 < objects_in(packs) <= 3


def test_a_remote_that_cannot_negotiate_gets_the_push_all_the_same(
    common: str, hub: Path, tmp_path: Path, git: Run, repo: Path
) -> None:
    """The protocol before 2 has no negotiation for pushes. A refusal there is explained by its own reason."""
    new, packs = behind(common, hub, tmp_path, git)
    git("config", "protocol.version", "0", cwd=repo)

    assert GitNetwork(common).push(str(hub), new, f"refs/gitmem/outbox/{new}", None) == "pushed"
    assert objects_in(packs) > 40
    (hub / "hooks" / "pre-receive").write_text("#!/bin/sh\necho 'not here' >&2\nexit 1\n")
    (hub / "hooks" / "pre-receive").chmod(0o755)
    with pytest.raises(RemoteError) as caught:
        GitNetwork(common).push(str(hub), new, "refs/gitmem/outbox/again", None)
    assert caught.value.code == "refused"
    assert "not here" in caught.value.message and "negotiat" not in caught.value.message
    with pytest.raises(RemoteError) as caught:
        GitNetwork(common).push(str(tmp_path / "gone.git"), new, "refs/gitmem/outbox/again", None)
    assert caught.value.code == "offline" and "negotiat" not in caught.value.message


def test_a_remote_that_prints_without_end_is_no_error(
    common: str, hub: Path, git: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its hooks and its transport print is not git's answer: the push and the fetch succeed, and only its end is kept."""
    loud = f"#!/bin/sh\nyes {'x' * 200} | head -c 5000000 >&2\necho the last words >&2\n"
    (hub / "hooks" / "pre-receive").write_text(loud)
    (hub / "hooks" / "pre-receive").chmod(0o755)
    first, second = chain(common, 2)
    assert GitNetwork(common).push(str(hub), first, REF, None) == "pushed"
    (hub / "ssh").write_text(f'{loud}for last; do :; done\nexec sh -c "$last"\n')
    monkeypatch.setenv("GIT_SSH_COMMAND", f"sh {hub / 'ssh'}")
    assert fetched(common, f"ssh://example.org{hub}") == {REF: first}
    (hub / "hooks" / "pre-receive").write_text(f"{loud}exit 1\n")
    with pytest.raises(RemoteError, match="the last words") as refused:
        GitNetwork(common).push(str(hub), second, REF, first)
    assert refused.value.code == "refused"


def test_a_remote_with_more_branches_than_are_read_has_branches(common: str, hub: Path, git: Run) -> None:
    """Its answer has a limit, and what is not read is not empty."""
    (oid,) = chain(common, 1)
    assert GitNetwork(common).push(str(hub), oid, REF, None) == "pushed"
    flood = "".join(f"{oid} refs/heads/gitmem-{number:060}\n" for number in range(40_000))
    (hub / "packed-refs").write_text(f"# pack-refs with: peeled fully-peeled sorted \n{flood}")
    assert GitNetwork(common).has_branches(str(hub))
    with pytest.raises(RemoteError, match="wrote more than 4,194,304 bytes"):
        GitNetwork(common).names(str(hub), 60.0, "--heads")


# A first fetch that was made before anybody asked for it is not made twice.

OTHER = "refs/gitmem/remotes/other/"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Every fetch that is really made: its url, and where it goes."""
    made: list[tuple[str, str]] = []
    fetch = GitNetwork._fetch_into

    def counted(self: GitNetwork, into: Incoming, url: str, prefix: str, timeout: float) -> object:
        assert timeout == 30
        made.append((url, prefix))
        return fetch(self, into, url, prefix, timeout)

    monkeypatch.setattr(GitNetwork, "_fetch_into", counted)
    return made


def test_only_the_first_and_the_same_question_is_answered_by_it(
    common: str, hub: Path, git: Run, asked: list[tuple[str, str]]
) -> None:
    """Whoever asks again wants to know what is there by then."""
    git("branch", "gitmem", "main", cwd=hub)
    network = GitNetwork(common)
    assert network.fetch_ahead(str(hub), INTO, 30)
    assert list(plumbing.refs_below(common, INTO)) == [INTO + "heads/gitmem"]

    network.fetch(str(hub), INTO, 30)
    assert asked == [(str(hub), INTO)]
    network.fetch(str(hub), INTO, 30)
    assert asked == [(str(hub), INTO)] * 2


def test_another_question_is_asked(common: str, hub: Path, git: Run, asked: list[tuple[str, str]]) -> None:
    """Of another remote, or for another place; and what was fetched first is old then."""
    git("branch", "gitmem", "main", cwd=hub)
    network = GitNetwork(common)
    assert network.fetch_ahead(str(hub), INTO, 30)
    network.fetch(str(hub), OTHER, 30)
    assert list(plumbing.refs_below(common, OTHER)) == [OTHER + "heads/gitmem"]
    network.fetch(str(hub), INTO, 30)
    assert asked == [(str(hub), INTO), (str(hub), OTHER), (str(hub), INTO)]


def test_what_failed_is_told_to_who_asks_and_then_tried_again(
    common: str, hub: Path, tmp_path: Path, asked: list[tuple[str, str]]
) -> None:
    """A remote that is back by then is reached."""
    away = tmp_path / "away.git"
    network = GitNetwork(common)
    assert not network.fetch_ahead(str(away), INTO, 30)
    with pytest.raises(RemoteError):
        network.fetch(str(away), INTO, 30)
    assert len(asked) == 1

    hub.rename(away)
    network.fetch(str(away), INTO, 30)
    assert len(asked) == 2


# Remotes: which one is meant, where it is, and its name as a part of a ref.


def test_push_url(common: str, repo: Path, hub: Path, tmp_path: Path, git: Run) -> None:
    """The push url where there is one, else the first url; relative paths as git sees them."""
    assert config.push_urls(common, "origin")[0] == str(hub)
    git("config", "remote.origin.pushurl", "git@example.org:a/b.git", cwd=repo)
    assert config.push_urls(common, "origin")[0] == "git@example.org:a/b.git"
    git("remote", "add", "near", "../hub.git", cwd=repo)
    assert config.push_urls(common, "near")[0] == str(hub)
    assert config.push_urls(common, "../hub.git", str(repo))[0] == str(hub)
    for url in ("https://example.org/x", "host:x/y", "host:x", str(hub), "work/short"):
        assert config.push_urls(common, url)[0] == url
    with pytest.raises(UsageError, match="Unknown remote: 'orign'") as caught:
        config.push_urls(common, "orign")[0]
    assert caught.value.code == "unknown-remote"
    assert caught.value.suggestions == ["near", "origin"]


def test_a_path_is_told_from_a_host_as_git_does(common: str, tmp_path: Path, repo: Path) -> None:
    """A colon before the first slash ends a host's name; one behind it is of a folder's name."""
    for name in ("a/b:c/d", "host:x/y:z/e"):
        (repo / name).mkdir(parents=True)

    assert config.push_urls(common, "a/b:c/d", str(repo))[0] == str(repo / "a/b:c/d")
    assert config.push_urls(common, "host:x/y:z/e", str(repo))[0] == "host:x/y:z/e"


def test_a_remote_whose_name_is_no_text(common: str, repo: Path, git: Run) -> None:
    """A config that was written by hand, in the letters of another time."""
    with open(repo / ".git/config", "ab") as file:
        file.write(b'[remote "caf\xe9"]\n\turl = /x\n[branch "main"]\n\tremote = caf\xe9\n')

    assert config.remotes(common) == ["caf\udce9"]
    assert config.push_urls(common, "caf\udce9")[0] == "/x"
    assert config.upstream_remote(find(str(repo))) == "caf\udce9"
    git("check-ref-format", f"refs/gitmem/remotes/{config.encode_remote(chr(0xE9))}/heads/gitmem")


def test_where_no_remote_is_the_way_to_one_is_told(common: str, repo: Path) -> None:
    """Each of these errors ends with what to do."""
    with pytest.raises(UsageError) as caught:
        config.push_urls(common, "orign")[0]
    assert (caught.value.code, caught.value.next) == ("unknown-remote", [])
    assert "git remote add NAME URL" in caught.value.hint
    with pytest.raises(UsageError) as caught:
        config.upstream_remote(find(str(repo)))
    assert "git remote add origin URL" in caught.value.hint


def test_a_config_that_git_can_not_read_is_git_s_own_error(common: str, repo: Path) -> None:
    """It is not taken for one without remotes."""
    with open(repo / ".git/config", "a") as file:
        file.write("[remote\n")

    asks: list[Callable[[], str]] = [
        lambda: config.push_urls(common, "origin")[0],
        lambda: config.upstream_remote(find(str(repo))),
    ]
    for ask in asks:
        with pytest.raises(StoreError, match=r"^git cannot read its configuration: bad config") as caught:
            ask()
        assert caught.value.code == "bad-config"


def test_the_default_remote(repo: Path, tmp_path: Path, git: Run) -> None:
    """The upstream of this worktree's branch, else origin, else the only one, else a question."""
    place = find(str(repo))
    with pytest.raises(UsageError) as caught:
        config.upstream_remote(place)
    assert (caught.value.code, caught.value.status) == ("no-remote", 2)

    git("remote", "add", "hub", "x", cwd=repo)
    assert config.upstream_remote(place) == "hub"
    git("remote", "add", "fork", "x", cwd=repo)
    with pytest.raises(UsageError, match="fork, hub") as caught:
        config.upstream_remote(place)
    assert caught.value.code == "which-remote"
    assert caught.value.next == ["gitmem sync fork", "gitmem sync hub"]
    git("remote", "add", "origin", "x", cwd=repo)
    assert config.upstream_remote(place) == "origin"
    git("config", "branch.main.remote", ".", cwd=repo)
    assert config.upstream_remote(place) == "origin"

    git("worktree", "add", "--quiet", "-b", "a/B.c", str(tmp_path / "linked"), cwd=repo)
    git("config", "branch.a/B.c.remote", "fork", cwd=repo)
    assert config.upstream_remote(place) == "origin"
    assert config.upstream_remote(find(str(tmp_path / "linked"))) == "fork"
    git("checkout", "--quiet", "--detach", cwd=tmp_path / "linked")
    assert config.upstream_remote(find(str(tmp_path / "linked"))) == "origin"
    assert config.upstream_remote(Repo(str(repo / ".git"), str(tmp_path), None)) == "origin"


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
    assert config.encode_remote(remote) == encoded
    git("check-ref-format", f"refs/gitmem/remotes/{encoded}/heads/gitmem")


def test_a_long_url_still_fits_a_file_name(git: Run) -> None:
    """And two long ones stay apart."""
    one, two = (config.encode_remote("https://example.org/" + "é/" * 200 + end) for end in "ab")

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
    assert config.without_credentials(url) == shown
    assert config.scrubbed(f"fatal: '{url}' not found") == f"fatal: '{shown}' not found"


def test_where_a_push_ends(common: str, repo: Path, git: Run) -> None:
    """The url after git's own rewriting, as git does it for a url that is given to it."""
    git("config", "remote.origin.url", "short:a/b", cwd=repo)
    assert config.push_urls(common, "origin") == ("short:a/b", "short:a/b")
    git("config", "url.https://me:secret@one.example/.insteadOf", "short:", cwd=repo)
    assert config.push_urls(common, "origin") == ("short:a/b", "https://one.example/a/b")
    git("config", "url.https://two.example/.insteadOf", "short:a", cwd=repo)
    assert config.push_urls(common, "origin")[1] == "https://two.example//b"
    git("config", "url.https://three.example/.pushInsteadOf", "short:", cwd=repo)
    assert config.push_urls(common, "origin")[1] == "https://three.example/a/b"
