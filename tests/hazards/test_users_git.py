"""The user's repository is the user's: whatever they have set up neither fires for gitmem nor is touched by it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gitmem.git import files as git_files
from gitmem.sync import sync_remotes

from ..conftest import Git
from ..hook_agents import Agent, note_program
from .conftest import ROOT, Desk, Said, waiting

HOOKS = (
    "pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-push", "reference-transaction",
    "post-checkout", "post-merge", "pre-auto-gc", "post-rewrite", "fsmonitor-watchman", "push-to-checkout",
)  # fmt: skip


class Two:
    """A hub, a clone of it with a linked worktree, and a second clone."""

    def __init__(self, root: Path, git: Git, desk: Desk) -> None:
        self.git = git
        self.desk = desk
        self.hub = root / "hub.git"
        self.one = desk.repo
        self.linked = root / "linked"
        self.two = root / "two"
        git("init", "--quiet", "--bare", "--initial-branch=main", str(self.hub))
        git("remote", "add", "origin", str(self.hub), cwd=self.one)
        git("tag", "-a", "v1", "-m", "One", cwd=self.one)
        git("push", "--quiet", "--set-upstream", "origin", "main", cwd=self.one)
        git("worktree", "add", "--quiet", "-b", "side", str(self.linked), cwd=self.one)
        git("clone", "--quiet", str(self.hub), str(self.two))
        git("config", "user.email", "other@example.org", cwd=self.two)

    def session(self) -> None:
        """A whole session: two agents in two clones signal, agree and sync both ways, with nothing unsaid."""
        desk = self.desk
        planck = desk.start("Planck", cwd=self.linked)
        curie = desk.start("Curie", cwd=self.two)
        for where in (self.one, self.two, self.one):
            said = desk("sync", "--publish", "--json", cwd=where)
            assert said.status == 0, said
        sent = desk.send(planck, "Approve?", "--to", "Curie", "--intent", "propose", cwd=self.linked)
        assert sent["commit"], sent
        assert desk("sync", cwd=self.one).status == 0
        assert desk("sync", cwd=self.two).status == 0
        (found,) = desk("inbox", "--json", session=curie, cwd=self.two).json["signals"]
        said = desk(
            "reply", found["signal_id"], "Yes.", "--agree", "--sync", "--json", session=curie, cwd=self.two
        )
        assert said.status == 0 and said.json["pushed"], said
        assert desk("sync", cwd=self.one).status == 0
        assert desk("converged", found["signal_id"], session=planck, cwd=self.linked).status == 0
        assert desk("session", "end", session=planck, cwd=self.linked).status == 0

    def settle(self) -> None:
        """What git itself would refresh by being asked is refreshed before a picture is taken."""
        for where in (self.one, self.linked, self.two):
            self.git("status", "--porcelain", cwd=where)


@pytest.fixture
def two(tmp_path: Path, git: Git, desk: Desk) -> Two:
    return Two(tmp_path, git, desk)


def _files(folder: Path, *, without: tuple[str, ...] = ()) -> dict[str, str]:
    """Every file below a folder by path, with the digest of its content and its mode."""
    found = {}
    for at, folders, files in os.walk(folder):
        folders[:] = [each for each in folders if os.path.join(at, each) not in without]
        for name in files:
            path = os.path.join(at, name)
            if path not in without:
                content = Path(path).read_bytes() if not os.path.islink(path) else os.readlink(path).encode()
                found[path] = f"{os.lstat(path).st_mode:o} {hashlib.sha256(content).hexdigest()}"
    return found


def _picture(where: Path) -> dict[str, str]:
    """All of a clone but objects, refs/gitmem with its logs, and gitmem's own folder: packs may come and go."""
    common = where / ".git"
    ours = ("gitmem", "objects", "refs/gitmem", "logs/refs/gitmem", "packed-refs")
    return _files(where, without=tuple(str(common / each) for each in ours))


def _refs(git: Git, where: Path) -> list[str]:
    rows = git("for-each-ref", "--format=%(refname) %(objectname) %(symref)", cwd=where).splitlines()
    return [row for row in rows if not row.startswith("refs/gitmem/")]


def test_nothing_of_the_user_s_is_touched(tmp_path: Path, git: Git, two: Two) -> None:
    """After a whole session HEAD, index, work tree, branches, config, stash and shallowness are as before to the byte."""
    (two.one / "stashed").write_text("for later\n")
    git("add", "stashed", cwd=two.one)
    git("stash", "--quiet", cwd=two.one)
    (two.one / "staged").write_text("staged\n")
    git("add", "staged", cwd=two.one)
    (two.one / "README").write_text("changed\n")
    (two.one / "untracked").write_text("untracked\n")
    (two.linked / "README").write_text("changed here\n")
    two.settle()
    before = _picture(two.one), _picture(two.two), _files(two.linked)
    refs = _refs(git, two.one), _refs(git, two.two)
    status = [git("status", "--porcelain=v2", cwd=where) for where in (two.one, two.linked, two.two)]
    two.session()
    assert (_picture(two.one), _picture(two.two), _files(two.linked)) == before
    assert (_refs(git, two.one), _refs(git, two.two)) == refs
    assert [git("status", "--porcelain=v2", cwd=where) for where in (two.one, two.linked, two.two)] == status
    assert git("stash", "list", cwd=two.one).count("\n") == 1
    assert not (two.one / ".git" / "FETCH_HEAD").exists()
    for where in (two.one, two.two, two.hub):
        assert git("fsck", "--strict", "--full", cwd=where) == ""


def test_the_hub_has_one_branch_more(git: Git, two: Two) -> None:
    """On the remote the branch `gitmem` is added, and no tag, no other ref; HEAD and config are as they were."""
    head, config = (two.hub / "HEAD").read_bytes(), (two.hub / "config").read_bytes()
    before = set(git("for-each-ref", "--format=%(refname) %(objectname)", cwd=two.hub).splitlines())
    two.session()
    after = set(git("for-each-ref", "--format=%(refname) %(objectname)", cwd=two.hub).splitlines())
    assert before <= after
    assert [row.split()[0] for row in after - before] == ["refs/heads/gitmem"]
    assert (head, config) == ((two.hub / "HEAD").read_bytes(), (two.hub / "config").read_bytes())
    fresh = two.hub.parent / "fresh"
    git("clone", "--quiet", str(two.hub), str(fresh))
    assert git("branch", "--show-current", cwd=fresh) == "main\n"


@pytest.mark.parametrize("by_path", [False, True], ids=["in .git/hooks", "by core.hooksPath"])
def test_no_hook_of_the_user_fires(tmp_path: Path, git: Git, two: Two, by_path: bool) -> None:
    """Hooks that fail, of every kind, neither stop gitmem nor run."""
    ran = tmp_path / "ran"
    for where in (two.one, two.two):
        hooks = tmp_path / f"hooks-{where.name}" if by_path else where / ".git" / "hooks"
        hooks.mkdir(exist_ok=True)
        for name in HOOKS:
            (hooks / name).write_text(f"#!/bin/sh\necho {name} >> '{ran}'\nexit 1\n")
            (hooks / name).chmod(0o755)
        if by_path:
            git("config", "core.hooksPath", str(hooks), cwd=where)
    two.session()
    assert not ran.exists(), ran.read_text()
    refused = subprocess.run(["git", "commit", "--allow-empty", "-qm", "x"], cwd=two.one, capture_output=True)
    assert refused.returncode != 0 and ran.exists(), "the hooks of this test must be able to fire"


CONFIGS = {
    "signing without a key": [
        ("commit.gpgsign", "true"), ("tag.gpgsign", "true"), ("push.gpgSign", "true"), ("gpg.program", "/no/such/gpg"),
        ("user.signingkey", "DEADBEEF"), ("gpg.format", "openpgp"),
    ],
    "a template": [("commit.template", "/no/such/template"), ("commit.cleanup", "strip"), ("commit.verbose", "true")],
    "push": [
        ("push.default", "matching"), ("push.followTags", "true"), ("push.autoSetupRemote", "true"),
        ("remote.origin.push", "refs/heads/*:refs/heads/pushed-*"), ("push.recurseSubmodules", "on-demand"),
        ("push.useForceIfIncludes", "true"), ("push.pushOption", "ci.skip"),
    ],
    "fetch": [
        ("fetch.prune", "true"), ("fetch.pruneTags", "true"), ("remote.origin.tagOpt", "--tags"), ("fetch.all", "true"),
        ("fetch.recurseSubmodules", "true"), ("fetch.writeCommitGraph", "true"), ("fetch.fsckObjects", "true"),
        ("transfer.fsckObjects", "true"), ("fetch.output", "compact"), ("fetch.parallel", "0"),
    ],
    "work tree": [
        ("core.autocrlf", "true"), ("core.eol", "crlf"), ("core.safecrlf", "true"), ("core.fsmonitor", "/no/such/monitor"),
        ("core.untrackedCache", "true"), ("core.ignoreCase", "true"), ("core.quotePath", "false"),
        ("core.precomposeUnicode", "true"),
    ],
    "words": [
        ("i18n.commitEncoding", "ISO-8859-1"), ("i18n.logOutputEncoding", "ISO-8859-1"), ("log.showSignature", "true"),
        ("log.decorate", "full"), ("log.date", "relative"), ("log.follow", "true"), ("color.ui", "always"),
        ("core.pager", "/no/such/pager"), ("core.editor", "/no/such/editor"), ("core.commentChar", "S"),
        ("format.pretty", "oneline"), ("core.abbrev", "4"), ("trailer.separators", "#"), ("status.short", "true"),
    ],
    "identity": [("user.useConfigOnly", "true"), ("author.name", "Somebody"), ("committer.email", "c@example.org")],
    "storage": [
        ("gc.auto", "1"), ("gc.autoDetach", "false"), ("maintenance.auto", "true"), ("core.compression", "0"),
        ("core.logAllRefUpdates", "false"), ("core.sharedRepository", "group"), ("core.fsync", "none"),
        ("gc.reflogExpire", "now"), ("pack.writeReverseIndex", "true"), ("core.packedRefsTimeout", "0"),
        ("transfer.hideRefs", "refs/gitmem"), ("index.version", "4"), ("feature.manyFiles", "true"),
    ],
    "merge": [("merge.ff", "only"), ("pull.rebase", "true"), ("merge.union.driver", "false"), ("rerere.enabled", "true")],
    "aliases": [("alias.fetch", "!false"), ("alias.push", "!false"), ("alias.commit", "!false")],
}  # fmt: skip


@pytest.mark.parametrize("settings", CONFIGS.values(), ids=CONFIGS.keys())
def test_the_user_s_settings_change_nothing(git: Git, two: Two, settings: list[tuple[str, str]]) -> None:
    """Whatever is in the user's config, agents are heard, the log says the same, and only the log is pushed."""
    for where in (two.one, two.two):
        for key, value in settings:
            git("config", key, value, cwd=where)
    before = _refs(git, two.one), _refs(git, two.two), _refs(git, two.hub)
    config = (two.one / ".git" / "config").read_bytes()
    two.session()
    assert config == (two.one / ".git" / "config").read_bytes()
    assert (_refs(git, two.one), _refs(git, two.two)) == before[:2]
    assert [row for row in _refs(git, two.hub) if not row.startswith("refs/heads/gitmem ")] == before[2]
    plain = git("-c", "core.commentChar=#", "log", "--no-color", "--format=%s", "gitmem", "--", cwd=two.hub)
    assert "Planck → Curie: PROPOSE Approve?" in plain.splitlines()
    assert "gpgsig" not in git("cat-file", "commit", "gitmem", cwd=two.hub)
    said = two.desk("log", "--json", cwd=two.two).json["entries"]
    assert [each["message"] for each in said if "message" in each] == ["Approve?", "Yes."]


def test_url_rewriting_applies(tmp_path: Path, git: Git, two: Two) -> None:
    """`url.*.insteadOf` and `pushInsteadOf` hold for gitmem as for git."""
    git("config", "remote.origin.url", "hub:hub.git", cwd=two.one)
    git("config", f"url.{tmp_path}/.insteadOf", "hub:", cwd=two.one)
    git("config", "remote.origin.url", "fetch:hub.git", cwd=two.two)
    git("config", f"url.{tmp_path}/.insteadOf", "fetch:", cwd=two.two)
    two.session()
    assert "refs/heads/gitmem" in git("for-each-ref", cwd=two.hub)


def test_variables_of_a_hook_do_not_lead_a_sync_astray(
    tmp_path: Path, git: Git, two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the variables that git sets for hooks and aliases everything goes to the right repository."""
    decoy = tmp_path / "decoy"
    git("init", "--quiet", str(decoy))
    planck = two.desk.start("Planck")
    two.desk("sync", "--publish")
    two.settle()
    before = _picture(two.one)
    monkeypatch.setenv("GIT_DIR", str(two.one / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(decoy / "index"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(decoy / ".git" / "objects"))
    monkeypatch.setenv("GIT_QUARANTINE_PATH", str(decoy / ".git" / "objects"))
    monkeypatch.setenv("GIT_PREFIX", "sub/")
    monkeypatch.setenv("GIT_NAMESPACE", "other")
    monkeypatch.setenv("GIT_REFLOG_ACTION", "evil")
    monkeypatch.setenv("GIT_LITERAL_PATHSPECS", "1")
    sent = two.desk("signal", "hi", "--sync", "--json", session=planck)
    for name in [each for each in os.environ if each.startswith("GIT_") and each.isupper()]:
        if name not in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"):
            monkeypatch.delenv(name)
    assert sent.status == 0 and sent.json["pushed"], sent
    assert _picture(two.one) == before
    assert git("count-objects", cwd=decoy).startswith("0 ")
    assert sent.json["commit"] in git("rev-list", "gitmem", cwd=two.hub)


def test_names_that_hide_the_log_in_git_log(git: Git, two: Two) -> None:
    """A branch, tag or folder called gitmem is the user's, and is left alone."""
    git("tag", "gitmem", "main", cwd=two.one)
    git("branch", "gitmem/log", "main", cwd=two.one)
    (two.one / "gitmem").mkdir()
    (two.one / "gitmem" / "log").write_text("mine\n")
    before = _refs(git, two.one)
    two.session()
    assert _refs(git, two.one) == before
    assert (two.one / "gitmem" / "log").read_text() == "mine\n"


def test_a_branch_gitmem_that_is_no_log_is_left_alone(git: Git, two: Two) -> None:
    """A user's own branch `gitmem` on the remote is never overwritten; sync says so and local work goes on."""
    git("push", "--quiet", "origin", "main:refs/heads/gitmem", cwd=two.one)
    before = git("rev-parse", "gitmem", cwd=two.hub)
    planck = two.desk.start("Planck")
    said = two.desk("sync", "--publish", "--json")
    assert said.status == 5, said
    (remote,) = said.json["remotes"]
    assert remote["state"] == "refused" and remote["message"]
    assert said.json["next"]
    assert git("rev-parse", "gitmem", cwd=two.hub) == before
    assert two.desk("signal", "hi", session=planck).status == 0


def test_the_first_push_never_makes_a_default_branch(tmp_path: Path, git: Git, desk: Desk) -> None:
    """To a remote without branches nothing is pushed: a forge would make the log its default branch."""
    empty = tmp_path / "empty.git"
    git("init", "--quiet", "--bare", str(empty))
    git("remote", "add", "origin", str(empty), cwd=desk.repo)
    desk.start("Planck")
    said = desk("sync", "--publish", "--json")
    assert (said.status, said.json["remotes"][0]["state"]) == (2, "empty")
    assert said.json["next"] == ["git push origin HEAD"]
    again = desk("sync", "--json")
    assert (again.status, again.json["next"]) == (2, ["git push origin HEAD"])
    wrong = desk("sync", "orign", "--json")
    assert wrong.status == 2 and wrong.json["next"] == ["gitmem sync origin"]
    assert git("for-each-ref", cwd=empty) == ""


@pytest.mark.parametrize("when", ["as they are listed", "as they are read"])
@pytest.mark.parametrize("by", ["a look", "the port"])
def test_refs_that_are_packed_meanwhile_are_seen(
    desk: Desk, git: Git, monkeypatch: pytest.MonkeyPatch, when: str, by: str
) -> None:
    """The user's `git pack-refs` takes a ref out of one file and into another: it is never in neither."""
    desk.start("Planck")
    common = str(desk.repo / ".git")
    module = sync_remotes if by == "a look" else git_files

    def seen() -> dict[str, str] | None:
        return (
            sync_remotes.refs_of(common)
            if by == "a look"
            else git_files.plain_refs_below(common, "refs/gitmem/")
        )

    before = seen()
    assert before
    holder, name = (os, "walk") if when == "as they are listed" else (module, "loose_tip")
    real = getattr(holder, name)

    def packing(*args: str) -> object:
        git("pack-refs", "--all", cwd=desk.repo)
        return real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(holder, name, packing)
        assert seen() in (before, None)
    assert seen() == before


# The guard of commits while git merges, reverts, picks or rebases: only what the committer changes itself counts.


class MergingTwo:
    """Ada on main, who claims a.txt, and Ben on a branch of his own; their b.txt conflict."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self.repo = desk, desk.repo
        desk("setup")
        self.commit("Base", ada=None, **{"a.txt": "1\n", "b.txt": "1\n", "c.txt": "1\n"})
        self.git("branch", "-M", "main")
        note_program(self.repo / ".git" / "gitmem", SCRIPTS / "gitmem")
        desk("setup", "--git", "pre-commit")
        self.ada, self.ben = desk.start("Ada"), desk.start("Ben")
        self.git("switch", "-qc", "ben")
        self.commit("Ben's", ada=False, **{"b.txt": "ben\n"})
        self.git("switch", "-q", "main")
        assert desk("claim", "a.txt", session=self.ada).status == 0
        self.commit("Ada's", ada=True, **{"a.txt": "ada\n", "b.txt": "ada\n"})

    def git(
        self, *args: str, ada: bool | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        who = {} if ada is None else {"GITMEM_SESSION": self.ada if ada else self.ben}
        env = {**os.environ, **who, "GIT_EDITOR": "true"}
        return subprocess.run(
            ["git", *args], cwd=self.repo, env=env, check=check, capture_output=True, text=True
        )

    def commit(self, subject: str, *, ada: bool | None, **files: str) -> None:
        for name, content in files.items():
            (self.repo / name).write_text(content)
        self.git("add", "--all")
        self.git("commit", "-qm", subject, ada=ada)

    def resolve(self, **more: str) -> None:
        for name, content in {"b.txt": "both\n", **more}.items():
            (self.repo / name).write_text(content)
        self.git("add", "--all")


@pytest.fixture
def merging_two(desk: Desk) -> MergingTwo:
    return MergingTwo(desk)


def merge(merging_two: MergingTwo) -> tuple[str, ...]:
    merging_two.git("switch", "-q", "ben")
    merging_two.git("merge", "main", check=False)
    return ("commit", "--no-edit")


def pick(merging_two: MergingTwo) -> tuple[str, ...]:
    merging_two.git("switch", "-q", "ben")
    merging_two.git("cherry-pick", "main", check=False)
    return ("cherry-pick", "--continue")


def pick_and_commit(merging_two: MergingTwo) -> tuple[str, ...]:
    pick(merging_two)
    return ("commit", "--no-edit")


def revert(merging_two: MergingTwo) -> tuple[str, ...]:
    merging_two.commit("Ada's second", ada=True, **{"b.txt": "ada 2\n"})
    merging_two.git("revert", "--no-edit", "HEAD~1", check=False)
    return ("revert", "--continue")


def rebase(merging_two: MergingTwo) -> tuple[str, ...]:
    """Ben puts a commit that has a.txt, as he got it from Ada before, on main without it."""
    merging_two.git("switch", "-qc", "other", "main~1")
    merging_two.commit("Other", ada=False, **{"b.txt": "other\n"})
    merging_two.git("switch", "-qc", "moved", "main")
    merging_two.git("rebase", "--onto", "other", "main~1", "moved", check=False)
    return ("rebase", "--continue")


def rebase_and_commit(merging_two: MergingTwo) -> tuple[str, ...]:
    rebase(merging_two)
    return ("commit", "--no-edit")


@pytest.mark.parametrize("begin", [merge, pick, pick_and_commit, revert, rebase, rebase_and_commit])
def test_what_comes_from_another_side_is_nobody_s_change(
    merging_two: MergingTwo, begin: Callable[[MergingTwo], tuple[str, ...]]
) -> None:
    go_on = begin(merging_two)
    assert "b.txt" in merging_two.git("diff", "--name-only", "--diff-filter=U").stdout
    assert "a.txt" in merging_two.git("diff", "--cached", "--name-only").stdout
    merging_two.resolve()

    done = merging_two.git(*go_on, ada=False, check=False)

    assert done.returncode == 0, done
    assert not merging_two.git("status", "--porcelain").stdout


@pytest.mark.parametrize(
    "begin", [merge, pick, revert, rebase_and_commit]
)  # `rebase --continue` runs no hook
def test_a_claimed_path_that_the_committer_changes_then_is_refused(
    merging_two: MergingTwo, begin: Callable[[MergingTwo], tuple[str, ...]]
) -> None:
    """The pass that it proposes names that path, not the first one of the commit."""
    go_on = begin(merging_two)
    merging_two.resolve(**{"a.txt": "ben was here\n", "0.txt": "mine\n"})

    refused = merging_two.git(*go_on, ada=False, check=False)

    assert refused.returncode == 1, refused
    (proposed,) = [line for line in refused.stderr.splitlines() if "--anyway" in line]
    assert "gate a.txt" in proposed and "0.txt" not in proposed
    words = proposed.partition("gitmem ")[2].split()
    assert merging_two.desk(*words, session=merging_two.ben).status == 0
    assert merging_two.git(*go_on, ada=False, check=False).returncode == 0


def test_in_a_linked_worktree(merging_two: MergingTwo, tmp_path: Path) -> None:
    merging_two.git("worktree", "add", "-q", str(tmp_path / "linked"), "ben")
    merging_two.repo = tmp_path / "linked"
    merging_two.git("merge", "main", check=False)
    merging_two.resolve()
    assert merging_two.git("commit", "--no-edit", ada=False, check=False).returncode == 0
    assert Path(merging_two.repo, "a.txt").read_text() == "ada\n"


# A project whose PYTHONPATH has modules named as Python's: no entry of gitmem runs them.

# Installed as users have it; the wheel and an editable installation both have these scripts.
SCRIPTS = Path(sys.executable).parent
OURS = (
    "gitmem",
    "dulwich",
    "pydantic",
    "typer",
    "filelock",
    "rapidfuzz",
    "cryptography",
    "mcp",
    "watchfiles",
)


class Project:
    """A repository with `src/`, on the PYTHONPATH of its user."""

    def __init__(self, desk: Desk, top: Path) -> None:
        self.repo, self.src, self.marks = desk.repo, desk.repo / "src", top / "marks"
        self.src.mkdir()
        self.marks.mkdir()
        loaded = (
            "import sys; print(*sys.modules)"  # by the interpreter and its .pth files, before any program
        )
        early = subprocess.run(
            [sys.executable, "-c", loaded], capture_output=True, text=True, check=True
        ).stdout.split()
        for name in {*sys.stdlib_module_names, *OURS} - set(early):
            text = f"open({str(self.marks)!r} + '/{name}-' + __name__, 'w').close()\nraise ImportError('taken')\n"
            (self.src / f"{name}.py").write_text(text)
        self.env = {**os.environ, "PYTHONPATH": str(self.src), "GITMEM_COMMIT_AFTER": "0.05"}
        self.run(sys.executable, "-c", "")
        for mark in self.ran():  # what the interpreter imports itself, before any program can prevent it
            (self.src / f"{mark.partition('-')[0]}.py").unlink()
            (self.marks / mark).unlink()

    def run(self, *command: str, cwd: Path | None = None, given: bytes = b"", **env: str) -> Said:
        done = subprocess.run(
            command,
            cwd=cwd or self.repo,
            env={**self.env, **env},
            input=given,
            capture_output=True,
            timeout=60,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def gitmem(self, *args: str, **env: str) -> Said:
        found = self.run(str(SCRIPTS / "gitmem"), *args, **env)
        assert found.status == 0, found
        return found

    def ran(self) -> list[str]:
        """The modules of the project that were run."""
        return sorted(os.listdir(self.marks))


@pytest.fixture
def project(desk: Desk, tmp_path: Path) -> Project:
    made = Project(desk, tmp_path)
    made.gitmem("setup")
    return made


def test_the_trap_works(project: Project) -> None:
    assert project.run(sys.executable, "-c", "import csv").status == 1
    assert project.ran() == ["csv-csv"]


@pytest.mark.parametrize("path", ["src", "{src}", "src:", "other:src/", "src:{python}"])
def test_commands_and_the_processes_that_they_start(project: Project, path: str) -> None:
    env = {"PYTHONPATH": path.format(src=project.src, python=os.pathsep.join(sys.path))}
    session = project.gitmem("session", "start", "--name", "Ada", "--json", **env).json["session_id"]
    project.gitmem("signal", "Tabs?", "--to", "Ada", **env, GITMEM_SESSION=session)
    deadline = time.monotonic() + 30
    while waiting(project.repo):  # the committer is a process of its own
        assert time.monotonic() < deadline
        time.sleep(0.05)
    project.gitmem("log", **env)
    project.gitmem("background", "autosync", **env)
    project.gitmem("--help", **env)

    assert project.ran() == []


@pytest.mark.parametrize("module", ["cli", "gitmem_cli"])
def test_python_m_in_the_folder_itself(project: Project, module: str) -> None:
    found = project.run(
        sys.executable, "-m", module, "roster", cwd=project.src, PYTHONPATH=f"{ROOT}{os.pathsep}{project.src}"
    )

    assert (found.status, project.ran()) == (0, []), found


def test_hooks_of_clients_and_git(project: Project, desk: Desk) -> None:
    note_program(desk.repo / ".git" / "gitmem", SCRIPTS / "gitmem")
    for hook in ("pre-commit", "pre-push", "post-commit"):
        project.gitmem("setup", "--git", hook)
    claude = Agent("claude-code", "claude-1", desk.repo, **project.env)
    claude.reads("SessionStart")
    (here,) = os.listdir(desk.repo / ".git" / "gitmem" / "sessions")
    other = project.gitmem("session", "start", "--name", "Ben", "--json").json["session_id"]
    project.gitmem("claim", "src/", GITMEM_SESSION=other)
    project.gitmem("signal", "Tabs?", "--to", here, GITMEM_SESSION=other)
    assert "Tabs?" in claude.reads("PostToolUse")
    (project.src / "own.py").write_text("1\n")
    project.run("git", "add", "src/own.py")
    refused = project.run("git", "commit", "-qm", "Own", CLAUDE_CODE_SESSION_ID="claude-1")
    assert refused.status == 1 and "Ben" in refused.err, refused
    project.run("git", "commit", "-qm", "Own", "--no-verify", CLAUDE_CODE_SESSION_ID="claude-1")
    project.run("git", "push", "-q", str(desk.repo), "HEAD:refs/heads/other")
    time.sleep(1)  # post-commit leaves a process behind

    assert project.ran() == []


def test_workers_but_not_what_they_run(project: Project) -> None:
    """A worker imports nothing of the project; the program that it runs for a task has the user's PYTHONPATH."""
    session = project.gitmem("session", "start", "--name", "Ada", "--json").json["session_id"]
    worker = subprocess.Popen(
        [SCRIPTS / "gitmem", "serve-agent", "bot", "--exec", "printenv PYTHONPATH"],
        cwd=project.repo, env=project.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 30
        while "bot" not in project.gitmem("roster").out and time.monotonic() < deadline:
            time.sleep(0.1)
        found = project.gitmem("call", "bot", "Go", "--timeout", "40s", "--json", GITMEM_SESSION=session)
    finally:
        worker.terminate()
        worker.communicate()

    assert str(project.src) in found.out
    assert project.ran() == []


def test_the_mcp_server_and_the_merge_driver(project: Project, tmp_path: Path) -> None:
    pytest.importorskip("mcp")
    hello = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }  # fmt: skip
    told = project.run(str(SCRIPTS / "gitmem"), "mcp", given=json.dumps(hello).encode() + b"\n")
    assert '"serverInfo"' in told.out, told
    for name in ("base", "ours", "theirs"):
        (tmp_path / name).write_text("")
    merged = project.run(
        str(SCRIPTS / "gitmem-merge"), *(str(tmp_path / name) for name in ("base", "ours", "theirs"))
    )
    assert merged.status == 0, merged

    assert project.ran() == []
