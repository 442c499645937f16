"""Agents and people who commit in worktrees of one clone, and what each of them has made.

Each commit adds a file that is named for who made it, so that the tree says who has made a commit, whatever rewrites it later.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random

from gitmem import repo as place
from gitmem.agents import heartbeats, lifecycle
from gitmem.agents.caller import CallerClaims
from gitmem.clients import git_hook
from gitmem.git import history
from gitmem.git.port import DulwichGit
from gitmem.history import commits
from gitmem.history.commits import Clues
from gitmem.open_store import DOMAIN
from gitmem.store import Store, wall_clock
from tests.sandbox import acting

EDITOR = {"GIT_EDITOR": "true", "GIT_MERGE_AUTOEDIT": "no"}


def git(folder: Path, *args: str, check: bool = True, **env: str) -> str:
    done = subprocess.run(
        ["git", *args],
        cwd=folder,
        env={**os.environ, **EDITOR, **env},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0 or not check, f"git {' '.join(args)}: {done.stderr}"
    return done.stdout


def store_at(folder: Path, now: Callable[[], int] = wall_clock) -> Store:
    found = place.find(str(folder))
    return Store(found, DulwichGit(found.common), DOMAIN, machine="test", now=now)


class Somebody:
    """A person, or an agent with a session, at work in a worktree."""

    def __init__(self, name: str, folder: Path, store: Store | None = None) -> None:
        self.name = name
        self.folder = folder
        self.store = store
        self.count = 0
        self.env: dict[str, str] = {}
        self.session = ""
        if store is not None:
            started = lifecycle.start(store, CallerClaims(), agent_identity=f"claude:worker:{name}")
            self.session = started.session_id
            self.env = {"GITMEM_SESSION": self.session}

    def git(self, *args: str, check: bool = True, **env: str) -> str:
        return git(self.folder, *args, check=check, **self.env, **env)

    def write(self) -> None:
        self.count += 1
        (self.folder / f"{self.name}-{self.count}").write_text(f"{self.name} {self.count}\n" * 3)
        self.git("add", "-A")

    def commit(self, *options: str) -> str:
        self.write()
        self.git("commit", "--quiet", "-m", f"{self.name} {self.count}", *options)
        return self.head()

    def head(self) -> str:
        return self.git("rev-parse", "HEAD").strip()

    def look(self) -> int:
        assert self.store is not None
        return commits.note(self.store, Clues(acting(self.store, self.session)))

    def makers(self, commit: str | None = None) -> set[str]:
        """The sessions that records say have made a commit."""
        return set(self.found(commit).made)

    def found(self, commit: str | None = None) -> commits.Makers:
        """What records say of who has made a commit."""
        assert self.store is not None
        commit = commit or self.head()
        facts = history.facts_of(self.store.repo.common, [commit], 9.0)[commit]
        patch = history.patch_ids(self.store.repo.common, [commit], 9.0).get(commit)
        return commits.find_makers(
            self.store.db(), commit, commits.MadeHere(self.store.repo),
            patch_id=patch, authored=facts.authored, committed=facts.committed,
        )  # fmt: skip


def install_hook(folder: Path) -> None:
    found = place.find(str(folder))
    hook = git_hook.Hook(found, None, git_hook.POST_COMMIT)
    assert hook is not None
    git_hook.install(hook)
    heartbeats.set_commit_hook(found.state, installed=True)


class History:
    """A seeded history: agents a and b in one worktree, c in another, people in both, and in a clone that is fetched."""

    def __init__(self, repo: Path, linked: Path, far: Path, seed: int) -> None:
        self.random = Random(seed)
        git(repo, "commit", "--quiet", "--amend", "--no-edit", GIT_COMMITTER_DATE="@1790000000 +0000")
        git(repo, "branch", "other")
        git(repo, "worktree", "add", "--quiet", str(linked), "other")
        git(repo.parent, "clone", "--quiet", str(repo), str(far))
        git(repo, "remote", "add", "far", str(far))
        install_hook(repo)
        here, there = store_at(repo), store_at(linked)
        self.stores = [here, there]
        self.agents = [Somebody("a", repo, here), Somebody("b", repo, here), Somebody("c", linked, there)]
        self.people = [Somebody("p", repo), Somebody("q", linked)]
        self.far = Somebody("f", far)
        self.made = 0

    def run(self, commits: int) -> None:
        actions = [
            (self.plain, 10), (self.amend, 3), (self.rebase, 2), (self.squash, 2), (self.cherry_pick, 2), (self.fetched, 1),
            (self.merge, 2), (self.forward, 1), (self.revert, 1), (self.look, 4),
        ]  # fmt: skip
        names, weights = zip(*actions, strict=True)
        while self.made < commits:
            self.random.choices(names, weights)[0]()
        for each in self.agents:
            each.look()
        for each in self.agents:  # a note may come a moment after its commit
            each.look()

    def who(self) -> Somebody:
        return self.random.choice([*self.agents, *self.agents, *self.people])

    def plain(self) -> None:
        self.who().commit()
        self.made += 1

    def amend(self) -> None:
        one = self.who()
        if one.git("log", "-1", "--format=%s").startswith("Revert"):
            return  # what it removes is not named for who made it
        if " " in one.git("log", "-1", "--format=%P").strip():  # a merge keeps the name of who made it
            one.git("commit", "--quiet", "--amend", "--no-edit")
            return
        if self.random.random() < 0.5:
            one.write()
        one.git("commit", "--quiet", "--amend", "-m", f"{one.name} amended {self.made}")
        self.made += 1

    def topic(self, one: Somebody) -> tuple[str, str]:
        """A branch of two or three commits of anybody in the same worktree, and the branch that it left."""
        base = one.git("rev-parse", "--abbrev-ref", "HEAD").strip()
        topic = f"topic-{self.made}"
        one.git("checkout", "--quiet", "-b", topic)
        here = [each for each in (*self.agents, *self.people) if each.folder == one.folder]
        for _ in range(self.random.randint(2, 3)):
            self.random.choice(here).commit()
            self.made += 1
        return topic, base

    def rebase(self) -> None:
        one = self.who()
        topic, base = self.topic(one)
        one.git("checkout", "--quiet", base)
        one.commit()
        one.git("checkout", "--quiet", topic)
        one.git("rebase", "--quiet", base)
        one.git("checkout", "--quiet", base)
        one.git("merge", "--quiet", topic)
        self.made += 3

    def squash(self) -> None:
        one = self.who()
        topic, base = self.topic(one)
        word = self.random.choice(["squash", "fixup"])
        one.git("rebase", "--quiet", "-i", base, GIT_SEQUENCE_EDITOR=f"sed -i -e '2s/pick/{word}/'")
        one.git("checkout", "--quiet", base)
        one.git("merge", "--quiet", topic)
        self.made += 1

    def cherry_pick(self) -> None:
        one = self.who()
        topic, base = self.topic(one)
        one.git("checkout", "--quiet", base)
        one.commit()
        one.git("cherry-pick", f"{base}..{topic}")
        one.git("branch", "--quiet", "-D", topic)
        self.made += 3

    def merge(self) -> None:
        one = self.who()
        topic, base = self.topic(one)
        one.git("checkout", "--quiet", base)
        one.commit()
        if self.random.random() < 0.3:
            one.git("merge", "--quiet", "--squash", topic)  # makes no commit
            one.git("reset", "--quiet", "--hard")
        how = self.random.choice([["merge"], ["merge", "--no-ff"], ["pull", "--no-rebase", "."]])
        if how[0] == "merge":
            how += ["-m", f"{one.name} merged {self.made}"]
            one.git(*how, "--quiet", topic)
        else:
            one.git(*how, "--quiet", "--no-edit", topic)
            one.git("commit", "--quiet", "--amend", "-m", f"{one.name} pulled {self.made}")
        self.made += 2

    def forward(self) -> None:
        one, other = self.who(), self.who()
        topic, base = self.topic(one)
        if other.folder != one.folder:
            return
        other.git("checkout", "--quiet", base)
        other.git("merge", "--quiet", "--ff-only", topic)

    def revert(self) -> None:
        one = self.who()
        one.commit()
        one.git("revert", "--no-edit", "HEAD")
        self.made += 2

    def fetched(self) -> None:
        one = self.who()
        if self.far.git("rev-parse", "--abbrev-ref", "HEAD").strip() != "main":
            return
        self.far.commit()
        one.git("fetch", "--quiet", "far")
        one.git("merge", "--quiet", "-m", f"{one.name} merged {self.made}", "far/main", check=False)
        self.made += 2

    def look(self) -> None:
        self.random.choice(self.agents).look()

    def score(self) -> tuple[int, int, int, int, list[str]]:
        """How many commits in the end have something of sessions; found; with a wrong session; and of people alone, but attributed."""
        sessions = {each.name: each.session for each in self.agents}
        wanted = found = wrong = people = 0
        missed = []
        for folder, one in ((self.agents[0].folder, self.agents[0]), (self.agents[2].folder, self.agents[2])):
            for line in git(folder, "log", "--format=%H %p:%s").splitlines():
                commit, _, rest = line.partition(" ")
                parents, _, subject = rest.partition(":")
                if " " in parents:
                    names = [f"{subject[0]}-merged"]
                else:
                    names = git(folder, "show", "--format=", "--name-only", "--diff-filter=A", commit).split()
                truth = {sessions[name[0]] for name in names if name[0] in sessions and "-" in name}
                if subject.startswith("Revert"):
                    continue
                makers = one.makers(commit)
                wrong += bool(truth and makers - truth)
                people += bool(not truth and makers)
                wanted += bool(truth)
                found += bool(truth and truth <= makers)
                if truth - makers or makers - truth:
                    missed.append(f"{subject}: {names} {truth} {makers}")
        return wanted, found, wrong, people, missed
