"""Who wrote each line of a history that people and agents rewrite, of which two other tools know a part."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path

import pytest

from gitmem.history import why

from .people import Somebody, git, install_hook, store_at
from .vendors import annotate, append, authorship, trace

FILES, LINES = 6, 40
OURS, GIT_AI, TRACE, PERSON = "bohr", "cursor", "windsurf", "person"


class Town:
    """One repository, one git identity. Each line begins with who wrote it, so that the files say what is true whatever rewrites them."""

    def __init__(self, repo: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.repo = repo
        self.made = 0
        self.ways: Counter[str] = Counter()
        (repo / ".git" / "info").mkdir(exist_ok=True)
        (repo / ".git" / "info" / "exclude").write_text("/.agent-trace\n")
        for number in range(FILES):
            (repo / f"f{number}").write_text("".join(f"{PERSON} f{number} {at}\n" for at in range(LINES)))
        git(repo, "add", "-A")
        git(repo, "commit", "--quiet", "-m", "files", GIT_COMMITTER_DATE="@1790000000 +0000")
        install_hook(repo)
        self.agent = Somebody(OURS, repo, store_at(repo))

    def git(self, *args: str, who: str = PERSON, **env: str) -> str:
        return git(self.repo, *args, **(self.agent.env if who == OURS else {}), **env)

    def commit(self, who: str, file: int, *, top: bool = False) -> None:
        """One to three new lines, and what the tool of whoever wrote them notes about the commit."""
        where = self.repo / f"f{file}"
        lines = where.read_text().splitlines(keepends=True)
        at = self.random.randint(0, 4) if top else self.random.randint(20, len(lines))
        new = [f"{who} {self.made} {number}\n" for number in range(self.random.randint(1, 3))]
        where.write_text("".join([*lines[:at], *new, *lines[at:]]))
        self.git("commit", "--quiet", "-a", "-m", f"{who} {self.made}", who=who)
        self.made += 1
        if who in (GIT_AI, TRACE):
            commit = self.git("rev-parse", "HEAD").strip()
            if who == GIT_AI:
                annotate(self.repo, commit, authorship(commit, {f"f{file}": f"{at + 1}-{at + len(new)}"}))
            else:
                append(self.repo, trace(commit, f"f{file}", [(at + 1, at + len(new))]))

    def who(self) -> str:
        return self.random.choice([OURS, OURS, GIT_AI, TRACE, PERSON])

    def step(self) -> None:
        """A branch of one to four commits, while main goes on, and one of the ways to join it."""
        way, topic = (
            self.random.choice(["rebase", "squash", "fixup", "pick", "merge", "forward"]),
            f"t{self.made}",
        )
        file, one = self.random.randrange(FILES), self.random.choice([OURS, PERSON, PERSON])
        self.ways[way] += 1
        self.git("checkout", "--quiet", "-b", topic)
        for _ in range(self.random.randint(1, 4)):
            self.commit(self.who(), file)
        if way != "forward":
            self.git("checkout", "--quiet", "main")
            self.commit(self.who(), self.random.choice([file, (file + 1) % FILES]), top=True)
        if way in ("rebase", "fixup"):
            self.git("checkout", "--quiet", topic)
            more = [] if way == "rebase" else ["-i"]
            self.git(
                "rebase", "--quiet", *more, "main", who=one, GIT_SEQUENCE_EDITOR="sed -i -e '2s/pick/fixup/'"
            )
            self.git("checkout", "--quiet", "main")
        if way == "squash":
            self.git("merge", "--quiet", "--squash", topic, who=one)
            self.git("commit", "--quiet", "-m", f"squashed {self.made}", who=one)
        elif way == "pick":
            self.git("cherry-pick", f"main..{topic}", who=one)
        elif way == "merge":
            self.git("merge", "--quiet", "--no-ff", "-m", f"merged {self.made}", topic, who=one)
        else:
            self.git("checkout", "--quiet", "main")
            self.git("merge", "--quiet", "--ff-only", topic)
        if self.random.random() < 0.5:
            self.git("branch", "--quiet", "-D", topic)
        self.made += way in ("squash", "merge")
        if self.random.random() < 0.5:
            self.agent.look()

    def score(self) -> tuple[Counter[str], list[str]]:
        """How many lines are attributed, missed, attributed wrongly, and rightly nobody's; and those that are not right."""
        store, found, odd = self.agent.store, Counter[str](), []
        assert store is not None
        for number in range(FILES):
            lines = (self.repo / f"f{number}").read_text().splitlines()
            named: dict[int, set[str]] = {at: set() for at in range(1, len(lines) + 1)}
            waiting = [(first, min(first + 23, len(lines))) for first in range(1, len(lines) + 1, 24)]
            while waiting:
                first, last = waiting.pop()
                answer = why.why(store, f"f{number}:{first}-{last}", folder=str(self.repo))
                if answer.more:  # it does not explain as many commits at once
                    middle = (first + last) // 2
                    waiting += [(first, middle), (middle + 1, last)]
                    continue
                for story in answer.commits:
                    rows = [(OURS, each.lines) for each in story.made_by]
                    rows += [(str(each.client), each.lines) for each in story.said]
                    for name, ranges in rows:
                        for start, end in ranges:
                            for at in range(start, end + 1):
                                named[at].add(name)
            for at, text in enumerate(lines, 1):
                truth = {text.split()[0]} - {PERSON}
                kind = (
                    ("right" if truth else "nobody")
                    if named[at] == truth
                    else "missed"
                    if not named[at]
                    else "wrong"
                )
                found[kind] += 1
                if kind in ("missed", "wrong"):
                    commit = re.split(
                        r"\s", git(self.repo, "blame", "-l", f"-L{at},{at}", "--", f"f{number}")
                    )[0]
                    odd.append(
                        f"{kind} f{number}:{at} {text!r} {named[at]} {git(self.repo, 'log', '-1', '--oneline', commit.lstrip('^'))!r}"
                    )
        return found, odd


@pytest.mark.deep
@pytest.mark.parametrize(("commits", "seed"), [(30, 1), (500, 2)])
def test_lines_of_a_rewritten_history_keep_who_wrote_them(commits: int, seed: int, repo: Path) -> None:
    """At least 98 of 100 lines of agents name whoever wrote them, of whichever tool; none names anybody else, and none of people an agent."""
    town = Town(repo, seed)
    while town.made < commits:
        town.step()
    for _ in range(2):
        town.agent.look()
    found, odd = town.score()
    print(f"seed {seed}: {town.made} commits, {dict(town.ways)}, lines: {dict(found)}")
    assert found["wrong"] == 0, odd
    assert found["right"] >= 0.98 * (found["right"] + found["missed"]), odd
    assert found["right"] > commits / 3 and found["nobody"] > FILES * LINES
