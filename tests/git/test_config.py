"""git's configuration from a cache: a change in any file that git reads is seen at once, and nobody else's cache counts."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import gitmem
from gitmem.errors import StoreError
from gitmem.git import config, files, processes
from gitmem.git import config as cached_config
from gitmem.git.config import CachedConfig, GitConfig

from ..conftest import Git
from ..git_on_path import GitOnPath

Change = Callable[[Path, Git], object]


def later() -> int:
    """A clock by which no file has changed lately."""
    return time.time_ns() + 60_000_000_000


class Clone:
    """A repository with a state folder, and what its configuration says to one process after the other."""

    def __init__(self, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.common = repo / ".git"
        self.state = self.common / "gitmem"
        self.state.mkdir()
        self.cache = self.state / f"config-{os.geteuid()}"
        self.now = later
        self.asked: list[list[str]] = []
        original = processes.run

        def counted(common: str, args: list[str], **options: object) -> object:
            self.asked.append(args)
            return original(common, args, **options)  # type: ignore[arg-type]  # handed on as they came

        monkeypatch.setattr(processes, "run", counted)

    def open(self, git_dir: str | None = None) -> CachedConfig:
        return CachedConfig(str(self.common), str(self.state), self.now, git_dir=git_dir)

    def read(self, git_dir: str | None = None) -> GitConfig:
        """What another process reads, and in `asked` what it asked git for."""
        self.asked.clear()
        return self.open(git_dir).read()

    def values(self, git_dir: str | None = None) -> dict[str, str]:
        return self.read(git_dir).values


@pytest.fixture
def clone(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clone:
    """One whose user has a home folder with a configuration, and whose system has another."""
    home = tmp_path / "home"
    (home / ".config" / "git").mkdir(parents=True)
    (home / ".gitconfig").write_text("[user]\n\tname = Home\n\temail = home@example.org\n")
    (tmp_path / "system").write_text("[gitmem]\n\tcheckpointEvery = 3\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", str(tmp_path / "system"))
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name)
    return Clone(repo, monkeypatch)


def write(name: str, text: str) -> Change:
    def change(tmp_path: Path, git: Git) -> None:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    return change


def remove(name: str) -> Change:
    return lambda tmp_path, git: (tmp_path / name).unlink()


HEADLINE = "[gitmem]\n\theadline = {}\n"
INCLUDE = "[include]\n\tpath = {}\n"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    {
        "home changed": ([], write("home/.gitconfig", "[user]\n\temail = new@example.org\n"),
                         {"user.email": "new@example.org", "gitmem.checkpointevery": "3"}),
        "home removed": ([], remove("home/.gitconfig"), {"user.name": None}),
        "home linked": ([], lambda tmp_path, git: (
            (tmp_path / "home/.gitconfig").unlink(), (tmp_path / "dot").write_text(HEADLINE.format("name")),
            (tmp_path / "home/.gitconfig").symlink_to(tmp_path / "dot")), {"gitmem.headline": "name"}),
        "xdg created": ([], write("home/.config/git/config", HEADLINE.format("name")), {"gitmem.headline": "name"}),
        "xdg removed": ([write("home/.config/git/config", HEADLINE.format("name"))],
                        remove("home/.config/git/config"), {"gitmem.headline": None}),
        "system changed": ([], write("system", "[gitmem]\n\tcheckpointEvery = 4\n"), {"gitmem.checkpointevery": "4"}),
        "system removed": ([], remove("system"), {"gitmem.checkpointevery": None}),
        "system created": ([remove("system")], write("system", HEADLINE.format("name")), {"gitmem.headline": "name"}),
        "local changed": ([], write("repo/.git/config", HEADLINE.format("prompt")), {"gitmem.headline": "prompt"}),
        "local moved into place": ([], lambda tmp_path, git: (
            (tmp_path / "new").write_text(HEADLINE.format("name")), (tmp_path / "new").replace(
                tmp_path / "repo/.git/config")), {"gitmem.headline": "name"}),
        "worktree created": ([lambda tmp_path, git: git("config", "extensions.worktreeConfig", "true", cwd=tmp_path / "repo")],
                             write("repo/.git/config.worktree", HEADLINE.format("name")), {"gitmem.headline": "name"}),
        "include added": ([write("more", HEADLINE.format("name"))],
                          lambda tmp_path, git: git("config", "include.path", "../../more", cwd=tmp_path / "repo"),
                          {"gitmem.headline": "name"}),
        "included changed": ([write("more", HEADLINE.format("name")), write("repo/.git/config", INCLUDE.format("../../more"))],
                             write("more", HEADLINE.format("prompt")), {"gitmem.headline": "prompt"}),
        "included created": ([write("repo/.git/config", INCLUDE.format("~/more"))],
                             write("home/more", HEADLINE.format("name")), {"gitmem.headline": "name"}),
        "included removed": ([write("more", HEADLINE.format("name")), write("repo/.git/config", INCLUDE.format("../../more"))],
                             remove("more"), {"gitmem.headline": None}),
        "included by an included one": (
            [write("more", INCLUDE.format("deep")), write("repo/.git/config", INCLUDE.format("../../more"))],
            write("deep", HEADLINE.format("name")), {"gitmem.headline": "name"}),
    }.values(),
    ids=lambda value: None,
)  # fmt: skip
def test_a_file_that_changes_is_seen_by_the_next_process(
    clone: Clone,
    tmp_path: Path,
    git: Git,
    before: list[Change],
    after: Change,
    expected: dict[str, str | None],
) -> None:
    """Changed, created, removed or linked: until then git is not asked again."""
    for change in before:
        change(tmp_path, git)
    old = clone.values()
    assert clone.cache.exists()
    assert (clone.values(), clone.asked) == (old, [])

    after(tmp_path, git)

    new = clone.values()
    assert {key: new.get(key) for key in expected} == expected != {key: old.get(key) for key in expected}
    assert (clone.values(), clone.asked) == (new, [])


def test_a_change_that_keeps_size_and_time_is_seen(clone: Clone, tmp_path: Path) -> None:
    """An editor may set the old time again: the time of the inode's change is the system's own."""
    path = tmp_path / "home" / ".gitconfig"
    old = path.stat()
    assert clone.values()["user.name"] == "Home"

    path.write_text(path.read_text().replace("Home", "Some"))
    os.utime(path, ns=(old.st_atime_ns, old.st_mtime_ns))

    assert path.stat().st_size == old.st_size
    assert clone.values()["user.name"] == "Some"


@pytest.mark.parametrize("field", ["st_mtime_ns", "st_ctime_ns", "st_size", "st_ino", "st_dev"])
def test_each_part_of_a_stamp_counts(clone: Clone, monkeypatch: pytest.MonkeyPatch, field: str) -> None:
    """A file system may keep any of them while another one changes."""

    class Other:
        def __init__(self, found: os.stat_result) -> None:
            self.found = found

        def __getattr__(self, name: str) -> int:
            return int(getattr(self.found, name)) + (name == field)

    path = str(clone.common / "config")
    before = cached_config.stamps([path])
    found = os.stat(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", lambda path: Other(found))
        after = cached_config.stamps([path])
    assert after != before


def test_a_process_that_lives_on_sees_a_change(clone: Clone, git: Git, repo: Path) -> None:
    """Without git as long as nothing has changed, also where the files are too young for a cache."""
    clone.now = time.time_ns
    config = clone.open()
    assert not config.read().has_remote
    clone.asked.clear()
    assert not config.read().has_remote
    assert clone.asked == []

    git("remote", "add", "origin", "https://example.org/a.git", cwd=repo)
    assert config.read().has_remote
    git("remote", "remove", "origin", cwd=repo)
    assert not config.read().has_remote
    git("config", "--file", "more", "remote.other.url", "https://example.org/b.git", cwd=repo)
    git("config", "include.path", "../more", cwd=repo)
    assert config.read().has_remote


def test_sending_often_asks_git_for_its_config_once(clone: Clone, repo: Path) -> None:
    """A library that lives on starts no process for each signal."""
    with gitmem.open(str(repo)) as mine:
        mine.signals.send("first")
        clone.asked.clear()
        for at in range(5):
            mine.signals.send(f"number {at}")

    assert [args for args in clone.asked if "config" in args] == []


def test_what_is_kept_is_what_git_says(clone: Clone, repo: Path, git: Git) -> None:
    """Any bytes in a value; the last of several; keys without a value; no URL, which may have a password in it."""
    git("config", "gitmem.Sources", 'a\nb = \\ "c" ü', cwd=repo)
    git("config", "--add", "gitmem.Sources", "", cwd=repo)
    git("remote", "add", "origin", "https://user:secret@example.org/a.git", cwd=repo)
    with (repo / ".git" / "config").open("ab") as file:
        file.write(
            b"[gitmem]\n\tautosync\n\tlatin = \xfcber\n\ttext = a\\nb \xe2\x86\x92\n[other]\n\tkey = secret\n"
        )

    asked, kept = clone.read(), clone.read()

    assert clone.asked == []
    assert kept.has_remote and asked.has_remote
    assert kept.values == asked.values == {
        "user.name": "Home", "user.email": "home@example.org", "gitmem.checkpointevery": "3", "gitmem.sources": "",
        "gitmem.autosync": "true", "gitmem.latin": "\N{REPLACEMENT CHARACTER}ber", "gitmem.text": "a\nb →",
    }  # fmt: skip
    assert b"secret" not in clone.cache.read_bytes()
    assert stat.S_IMODE(clone.cache.stat().st_mode) == 0o600


def test_a_long_lived_process_sees_a_conditional_include_change(
    clone: Clone, repo: Path, tmp_path: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file has no stamp: git is asked again after a second."""
    write("more", HEADLINE.format("name"))(tmp_path, git)
    git("config", "includeIf.gitdir:**.path", str(tmp_path / "more"), cwd=repo)
    config = clone.open()
    assert config.read().values["gitmem.headline"] == "name"
    write("more", HEADLINE.format("work"))(tmp_path, git)
    assert config.read().values["gitmem.headline"] == "name"

    now = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: now() + 2 * cached_config.AGAIN_SECONDS)
    assert config.read().values["gitmem.headline"] == "work"


@pytest.mark.parametrize(
    "what",
    ["young", "conditional", "values", "count", "parameters", "path", "home", "device", "many", "large"],
)
def test_what_stamps_do_not_tell_is_not_kept(  # noqa: C901  (one case after the other)
    clone: Clone, repo: Path, tmp_path: Path, git: Git, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Files that changed just now, conditions, values of the environment, a git or a home that is not plain."""
    if what == "young":
        clone.now = time.time_ns
    elif what == "conditional":
        git("config", "includeIf.onbranch:main.path", "../../more", cwd=repo)
    elif what == "values":
        for name, value in ("COUNT", "1"), ("KEY_0", "gitmem.headline"), ("VALUE_0", "name"):
            monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    elif what == "count":  # git reads no value then, but one is there
        monkeypatch.setenv("GIT_CONFIG_COUNT", "0")
        monkeypatch.setenv("GIT_CONFIG_VALUE_0", "secret")
    elif what == "parameters":
        monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'gitmem.headline'='name'")
    elif what == "path":
        monkeypatch.setenv("PATH", f"bin{os.pathsep}{os.environ['PATH']}")
    elif what == "home":
        monkeypatch.delenv("HOME")
    elif what == "device":
        (tmp_path / "home" / ".gitconfig").unlink()
        (tmp_path / "home" / ".gitconfig").symlink_to(os.devnull)
    elif what == "many":
        included = "".join(INCLUDE.format(tmp_path / f"more-{n}") for n in range(config.FILES_MAX))
        with (clone.common / "config").open("a") as file:
            file.write(included)
    elif what == "large":
        git("config", "gitmem.sources", "a" * cached_config.BYTES_MAX, cwd=repo)

    values = clone.values()

    assert not clone.cache.exists()
    if what in ("values", "parameters"):
        assert values["gitmem.headline"] == "name"


@pytest.mark.parametrize("name", ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "HOME", "XDG_CONFIG_HOME",
                                  "GIT_CONFIG_COUNT", "PATH"])  # fmt: skip
def test_another_environment_has_another_answer(
    clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """What one process kept does not count for one that reads other files, or whose git may do so."""
    (tmp_path / ".gitconfig").write_text(HEADLINE.format("name"))
    (tmp_path / "git").mkdir()
    (tmp_path / "git" / "config").write_text(HEADLINE.format("name"))
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexport GIT_CONFIG_GLOBAL={tmp_path}/.gitconfig\nexec {_git()} "$@"\n')
    program.chmod(0o755)
    clone.values()
    config = str(tmp_path / ".gitconfig")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "gitmem.headline")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "name")
    if name != "GIT_CONFIG_COUNT":
        monkeypatch.delenv("GIT_CONFIG_KEY_0")
        monkeypatch.delenv("GIT_CONFIG_VALUE_0")
    values = {"GIT_CONFIG_GLOBAL": config, "GIT_CONFIG_SYSTEM": config, "GIT_CONFIG_NOSYSTEM": "true",
              "GIT_CONFIG_COUNT": "1", "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}  # fmt: skip
    monkeypatch.setenv(name, values.get(name, str(tmp_path)))

    found = clone.values()

    assert found.get("gitmem.headline") == "name" or (name, found) == (
        "GIT_CONFIG_NOSYSTEM", {"user.name": "Home", "user.email": "home@example.org"},
    )  # fmt: skip


def _git() -> str:
    folders = os.environ["PATH"].split(os.pathsep)
    return next(path for path in (os.path.join(folder, "git") for folder in folders) if os.path.exists(path))


def test_git_says_where_the_file_of_the_system_is(
    clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is there, and one that is not; of an empty one only a newer git says it."""
    common = str(clone.common)
    assert config._system_file(common) == str(tmp_path / "system")
    (tmp_path / "system").unlink()
    assert config._system_file(common) == str(tmp_path / "system")
    monkeypatch.delenv("GIT_CONFIG_SYSTEM")
    assert config._system_file(common).startswith("/")
    clone.values()
    assert b"/gitconfig\0" in clone.cache.read_bytes()


def test_a_young_file_of_the_system_is_not_kept(clone: Clone, tmp_path: Path) -> None:
    """It may have no entry yet, so that git's list does not name it."""
    (tmp_path / "system").write_text("")
    os.utime(tmp_path / "system", ns=(0, later() + 60_000_000_000))
    clone.values()
    assert not clone.cache.exists()


def test_a_file_that_changes_while_git_reads_is_not_kept(
    clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it is one that git always reads, or one that another includes."""
    more = tmp_path / "more"
    with (clone.common / "config").open("a") as file:
        file.write(INCLUDE.format(more))
    program = GitOnPath(tmp_path, monkeypatch)
    for changed in (more, tmp_path / "home" / ".gitconfig"):
        program.does(f'"$git" "$@"; rm "{changed}"', to="--list")
        more.write_text(HEADLINE.format("name"))
        clone.values()
        assert not clone.cache.exists()


def test_a_bad_configuration_is_told_and_never_kept(clone: Clone, repo: Path) -> None:
    """As git refuses every command, so does each of ours, until it is right again."""
    old = (repo / ".git" / "config").read_bytes()
    assert clone.values()["user.name"] == "Home"
    (repo / ".git" / "config").write_bytes(old + b"[gitmem\n")
    for _ in range(2):
        with pytest.raises(StoreError) as caught:
            clone.values()
        assert caught.value.code == "bad-config"
    (repo / ".git" / "config").write_bytes(old)
    assert clone.values()["user.name"] == "Home"


def forged(clone: Clone, stamps: dict[str, str]) -> bytes:
    """A cache that says what no file says."""
    key = cached_config.ConfigSources(str(clone.common), str(clone.common)).key
    return cached_config.encode(key, stamps, GitConfig({"user.name": "Mallory"}, True))


def test_a_cache_without_the_stamps_of_all_files_does_not_count(clone: Clone, tmp_path: Path) -> None:
    """It came with the repository: whoever packed it can't know the stamps that files get here."""
    clone.values()
    usual = cached_config.ConfigSources(str(clone.common), str(clone.common)).files
    right = cached_config.stamps(usual)
    for stamps in ({}, {"/nowhere": "missing"}, dict.fromkeys(usual, "missing"), {**right, usual[1]: "1 2 3 4 5"},
                   {**right, str(tmp_path): ""}):  # fmt: skip
        clone.cache.write_bytes(forged(clone, stamps))
        assert clone.values()["user.name"] == "Home", stamps
    clone.cache.write_bytes(forged(clone, right))
    assert clone.values()["user.name"] == "Mallory"  # so the others were refused for their stamps


@pytest.mark.parametrize("how", ["owner", "group", "others", "link", "fifo", "folder", "large"])
def test_a_cache_that_others_may_have_written_does_not_count(
    clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """One of another user, of any length, or no plain file at all; git is asked, and no command waits or fails."""
    clone.values()
    content = forged(
        clone, cached_config.stamps(cached_config.ConfigSources(str(clone.common), str(clone.common)).files)
    )
    path = clone.cache
    path.unlink()
    if how == "owner":
        another = os.geteuid() + 1
        monkeypatch.setattr(os, "geteuid", lambda: another)
        path = clone.cache = clone.state / f"config-{os.geteuid()}"
    if how == "link":
        (tmp_path / "elsewhere").write_bytes(content)
        path.symlink_to(tmp_path / "elsewhere")
    elif how == "fifo":
        os.mkfifo(path)
    elif how == "folder":
        path.mkdir()
    else:
        path.write_bytes(content + b"\0" * (cached_config.BYTES_MAX if how == "large" else 0))
        path.chmod({"group": 0o660, "others": 0o602}.get(how, 0o600))

    assert clone.values()["user.name"] == "Home"
    assert clone.asked


def test_a_damaged_cache_costs_one_question(clone: Clone) -> None:
    """Cut short at any place, or any byte of it another one."""
    values = clone.values()
    whole = clone.cache.read_bytes()
    for at in range(len(whole)):
        for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]):
            clone.cache.write_bytes(damaged)
            path, sources = (
                str(clone.cache),
                cached_config.ConfigSources(str(clone.common), str(clone.common)),
            )
            assert cached_config._load(path, sources) is None, at
    clone.cache.write_bytes(whole[:-1])
    assert (clone.values(), len(clone.asked)) == (values, 1)
    assert (clone.values(), clone.asked) == (values, [])


def test_a_state_folder_that_can_not_be_written_asks_each_time(clone: Clone) -> None:
    """And none is made for a cache alone."""
    clone.state.rmdir()
    assert clone.values()["user.name"] == "Home"
    assert not clone.state.exists()
    clone.state.write_text("A file.\n")
    assert clone.values()["user.name"] == "Home"


def test_a_shared_repository_has_a_private_cache(clone: Clone, repo: Path, git: Git) -> None:
    """Each user has a configuration of their own."""
    git("config", "core.sharedRepository", "group", cwd=repo)
    clone.values()
    assert stat.S_IMODE(clone.cache.stat().st_mode) == 0o600


def test_a_linked_worktree_s_own_configuration_counts_there(
    clone: Clone, repo: Path, tmp_path: Path, git: Git
) -> None:
    """As git reads it: in each worktree its own, from caches that don't replace each other."""
    linked = tmp_path / "linked"
    git("worktree", "add", "--quiet", "-b", "side", str(linked), cwd=repo)
    places = [str(clone.common), str(clone.common / "worktrees" / "linked")]
    shared = [clone.values(), clone.values(places[1])]
    assert shared[0] == shared[1] and clone.asked == []  # one cache serves both

    git("config", "extensions.worktreeConfig", "true", cwd=repo)
    lives_on = clone.open(places[1])
    assert lives_on.read().values["user.name"] == "Home"
    git("config", "--worktree", "user.name", "Linked", cwd=linked)
    assert lives_on.read().values["user.name"] == "Linked"
    names = [clone.values(each)["user.name"] for each in places]
    assert names == ["Home", "Linked"]
    for each, name in zip(places, names, strict=True):
        assert (clone.values(each)["user.name"], clone.asked) == (name, [])

    (Path(places[1]) / "config.worktree").unlink()
    git("config", "--worktree", "user.name", "Main", cwd=repo)
    for each, name in zip(places, ["Main", "Home"], strict=True):
        assert clone.values(each)["user.name"] == name
        assert (clone.values(each)["user.name"], clone.asked) == (name, [])


# What kind of repository it is, read from its files without git.

REF = "refs/gitmem/log"


@pytest.mark.parametrize(
    ("config", "length", "promising"),
    [
        ("", 40, []),
        ("[extensions]\n\tobjectFormat = SHA256\n", 64, []),
        ("[Extensions]\nobjectformat=sha1", 40, []),
        ("# extensions.objectformat = sha256, promisor\n", 40, []),
        ("[extensions]\n\tpartialClone = origin\n", 40, ["origin"]),
        ('[remote "a.b"]\n\tpromisor\n[remote "c"]\n\tpromisor = false\n', 40, ["a.b"]),
        ('[remote "a"]\n\tpromisor = true\n\tpartialclonefilter = tree:0\n', 40, ["a"]),
        ("".join(f'[remote "{no}"]\n\tpromisor = {no}\n' for no in ("", "No", "off", "0", "FALSE")), 40, []),
        ('[remote "a"]\n\tpartialCloneFilter = blob:none\n[branch "b"]\n\tpromisor = true\n', 40, ["a"]),
    ],
)
def test_the_config_says_of_which_kind_it_is(
    tmp_path: Path, config: str, length: int, promising: list[str]
) -> None:
    """As git reads it; a word in a comment is none."""
    (tmp_path / "config").write_text(config)

    assert files.id_length(str(tmp_path)) == length
    assert files.promisors(str(tmp_path)) == promising


def test_where_nothing_is_said_it_is_a_usual_one(tmp_path: Path) -> None:
    """No config that can be read, no cut, nothing borrowed, refs in files."""
    there = str(tmp_path)

    assert (files.id_length(there), files.promisors(there), files.shallow_commits(there)) == (
        40,
        [],
        frozenset(),
    )
    assert files.tables(there) is None


def test_where_a_history_was_cut_is_told(tmp_path: Path) -> None:
    """As a shallow clone keeps it: a commit a line."""
    cuts = ["a1" * 20, "b2" * 20]
    (tmp_path / "shallow").write_text("\n".join(cuts) + "\n")

    assert files.shallow_commits(str(tmp_path)) == set(cuts)


def test_what_was_remembered_of_a_reftable_counts_for_that_state_alone(tmp_path: Path) -> None:
    """Another list, a torn file and a repository without tables say nothing; a file of the ref's name never counts."""
    common = str(tmp_path)
    (tmp_path / "reftable").mkdir()
    (tmp_path / "gitmem").mkdir()
    (tmp_path / "refs/gitmem").mkdir(parents=True)
    (tmp_path / REF).write_text("0" * 40 + "\n")
    listed = tmp_path / "reftable/tables.list"
    listed.write_text("one.ref\ntwo.ref\n")
    known = tmp_path / files.REMEMBERED
    whole = f"one.ref\ntwo.ref\n\n{'a' * 64} {REF}\n"
    known.write_text(whole)

    assert files.plain_tip(common, REF) == "a" * 64
    assert files.plain_tip(common, REF + "2") is None
    for text in (whole[:-1], whole[:40], "", "one.ref\n\n" + whole.partition("\n\n")[2]):
        known.write_text(text)
        assert files.plain_tip(common, REF) is None, text
    known.write_text(whole)
    listed.write_text("one.ref\nthree.ref\n")
    assert files.plain_tip(common, REF) is None
    listed.unlink()
    assert files.plain_tip(common, REF) == "0" * 40


def test_only_a_run_that_is_to_use_the_network_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the user allows protocols; online these stay the user's."""
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "https:ssh")

    offline, online = processes.environment(), processes.environment(online=True)

    assert (offline["GIT_ALLOW_PROTOCOL"], offline["GIT_NO_LAZY_FETCH"]) == ("none", "1")
    assert online["GIT_ALLOW_PROTOCOL"] == os.environ["GIT_ALLOW_PROTOCOL"]
    assert "GIT_NO_LAZY_FETCH" not in online
