"""`gitmem gate --ci`: a shallow clone without a key or a session, which checks what the writers that a target branch names have proposed; and the jobs of
docs/recipes/, whose shell steps are run as GitHub and GitLab run them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from gitmem.records.ids import new_id

from ..cli.test_agreement import write
from ..hazards.conftest import Said
from .conftest import Machine, git
from .test_continuation import Person
from .test_other_writers import exchange

MERGE = ("--intent", "propose", "--wu", "WU-7")


class Job(Machine):
    """A job of CI for a pull request."""

    def __init__(self, top: Path, hub: Path) -> None:
        super().__init__(top)
        self.config.unlink()
        git(top, "clone", "--quiet", "--depth=1", "--branch=WU-7", f"file://{hub}", "ci")
        self.repo = top / "ci"
        git(self.repo, "checkout", "--quiet", "--detach")
        self.summary = top / "summary"
        self.summary.touch()
        self.env |= {
            "GITHUB_BASE_REF": "main", "GITHUB_HEAD_REF": "WU-7", "GITHUB_STEP_SUMMARY": str(self.summary)
        }  # fmt: skip

    def fetch(self) -> None:
        for branch in ("main", "WU-7"):
            git(self.repo, "fetch", "-q", "--depth=1", "origin", f"+{branch}:refs/remotes/origin/{branch}")
        said = self(self.repo, "sync")
        assert said.status == 0, said

    def gate(self, *args: str, **env: str) -> Said:
        before, self.env = self.env, self.env | env
        try:
            return self(self.repo, "gate", "--ci", *args)
        finally:
            self.env = before

    def check(self) -> Said:
        self.fetch()
        return self.gate()


def push(person: Person, branch: str, *lines: str, name: str = ".gitmem/signers") -> None:
    """Commit a file on a branch of the hub."""
    path = person.repo / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join((*lines, "")))
    git(person.repo, "add", "--force", name)
    git(person.repo, "commit", "--quiet", "--allow-empty", "-m", "file")
    git(person.repo, "push", "--quiet", "--force", "origin", f"HEAD:refs/heads/{branch}")


@pytest.fixture
def anna(hub: Path, machine: Callable[..., Machine]) -> Person:
    """The file of the target branch names her."""
    found = Person(machine("anna"), hub)
    found("signal", "I am Anna", "--broadcast")
    push(found, "main", f"human:* {found.key}")
    push(found, "WU-7", name="change")
    return found


@pytest.fixture
def bob(hub: Path, anna: Person, machine: Callable[..., Machine]) -> Person:
    """She asks him; the file does not name him."""
    found = Person(machine("bob"), hub, "bob@example.org")
    found("signal", "I am Bob", "--broadcast")
    exchange(anna, found)
    return found


@pytest.fixture
def eve(hub: Path, anna: Person, machine: Callable[..., Machine]) -> Person:
    """Can push, and has Anna's words."""
    found = Person(machine("eve"), hub)
    found("signal", "I am Anna", "--broadcast")
    return found


@pytest.fixture
def job(hub: Path, tmp_path: Path, anna: Person) -> Job:
    return Job(tmp_path / "job", hub)


def ask(sender: Person, to: Person, text: str = "Merge WU-7?", *options: str) -> Any:
    address = f"human:{'bob' if to.user.top.name == 'bob' else 'anna'}@example.org@{to.key}"
    return sender.json("signal", text, "--to", address, *(options or MERGE))["signal"]


def test_it_is_closed_until_all_agree_on_a_known_writers_proposal(
    anna: Person, bob: Person, job: Job
) -> None:
    """In CI and from the records alone; the summary says who is waited for, and CI writes nothing and has no key."""
    asked = ask(anna, bob)
    exchange(anna, bob)
    refs = git(anna.repo, "ls-remote", "origin")

    closed = job.check()

    assert closed.status == 1, closed
    assert closed.out.startswith("merge gate closed: 1 open proposal on WU-7\n")
    assert '0 of 1 recipient agreed on "Merge WU-7?"' in closed.out and "has not answered" in closed.out
    assert closed.next == [f"gitmem thread {asked['thread_id']}"]
    assert closed.out.split("\nnext: ")[0] in job.summary.read_text()
    assert git(anna.repo, "ls-remote", "origin") == refs
    assert not list(job.top.rglob("*.key")) and not (job.top / "state").exists()

    assert bob("reply", asked["signal_id"], "yes", "--agree").status == 0
    exchange(bob)
    opened = job.check()

    assert opened.status == 0, opened
    assert opened.out.startswith("merge gate open: no open proposal on WU-7\nconverged: ")


def test_it_opens_once_as_many_agree_as_the_proposal_needs(
    anna: Person, bob: Person, eve: Person, job: Job
) -> None:
    """Who may veto among them; another one's REJECT keeps nothing closed."""
    exchange(eve, anna)
    he, she = f"human:bob@example.org@{bob.key}", f"human:anna@example.org@{eve.key}"
    asked = anna.json("signal", "Merge WU-7?", "--to", f"{he},{she}", *MERGE, "--need", "1", "--veto", he)[
        "signal"
    ]
    exchange(anna, bob, eve)
    assert eve("reply", asked["signal_id"], "no", "--reject").status == 0
    exchange(eve)
    closed = job.check()
    assert closed.status == 1 and "0 of 2 agreed, needs 1; waits for " in closed.out, closed
    assert bob("reply", asked["signal_id"], "yes", "--agree").status == 0
    exchange(bob)
    opened = job.check()

    assert opened.status == 0 and "1 of 2 agreed on" in opened.out, opened


def test_a_strangers_quorum_does_not_overrule_a_known_writers_counter(
    anna: Person, bob: Person, eve: Person, job: Job
) -> None:
    """She asks for one of two, and the other one is hers, too; Anna can still agree."""
    exchange(eve, bob, anna)
    both = f"human:bob@example.org@{bob.key},human:anna@example.org@{anna.key}"
    asked = eve.json("signal", "Merge WU-7?", "--to", both, *MERGE, "--need", "1")["signal"]["signal_id"]
    exchange(eve, anna, bob)
    assert anna("reply", asked, "Not so", "--counter").status == 0
    assert bob("reply", asked, "yes", "--agree").status == 0
    exchange(anna, bob)

    closed = job.check()

    assert closed.status == 1 and "is open all the same" in closed.out, closed
    assert anna("reply", asked, "yes", "--agree").status == 0
    exchange(anna)
    assert job.check().status == 0


def test_a_strangers_proposal_neither_blocks_nor_lets_through(
    anna: Person, bob: Person, eve: Person, job: Job
) -> None:
    """Whatever words it has as a sender; its agreement is not that of whoever was asked."""
    exchange(eve, bob)
    stop = ask(eve, bob, "Stop ```\n# all")
    exchange(eve, bob, anna)
    passed = job.check()

    assert passed.status == 0, passed
    assert passed.out.count("\n") == 2
    assert (
        'not counted: "Stop ``` # all" (' in passed.out
        and "origin/main does not name its writer for " in passed.out
    )

    own = ("--reply-to", stop["signal_id"], "--intent", "counter")  # in a thread in which nobody asked her
    assert anna("signal", "I would not", *own).status == 0
    exchange(anna)
    assert job.check().status == 0

    asked = ask(anna, bob)
    exchange(anna, eve)
    eve("reply", asked["signal_id"], "yes", "--agree")
    eve("reply", asked["signal_id"], "Or this", "--counter")
    exchange(eve)
    assert job.check().status == 1


def test_who_is_asked_can_not_end_it_by_another_proposal(anna: Person, bob: Person, job: Job) -> None:
    """Nor by one on another work unit; who asked can, by taking it back."""
    asked = ask(anna, bob)
    exchange(anna, bob)
    counter = ("--reply-to", asked["signal_id"], "--intent", "counter", "--wu", "WU-8")
    assert bob("signal", "Later", *counter).status == 0
    exchange(bob, anna)
    found = job.check()
    assert (found.status, "WU-7" in found.out) == (1, True), found

    assert anna("reply", asked["signal_id"], "I take it back", "--reject").status == 0
    exchange(anna)
    found = job.check()
    assert (found.status, found.out.count('not counted: "Later"')) == (0, 1), found


def test_a_task_that_ended_does_not_settle_what_another_has_proposed(
    anna: Person, bob: Person, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is asked answers by a proposal that names a task of his own."""
    asked = ask(anna, bob)
    exchange(anna, bob)
    task = bob.json("delegate", "x", "--to", f"human:bob@example.org@{bob.key}")["task"]["task_id"]
    assert bob("task", "cancel", task).status == 0
    counter = {
        "signal_id": new_id("sig", bob.key), "thread_id": asked["thread_id"], "reply_to": asked["signal_id"], "intent": "COUNTER",
        "message": "Or this", "sender_identity": "human:bob@example.org", "recipients": [asked["sender_identity"]],
        "task_id": task,
    }  # fmt: skip
    with monkeypatch.context() as patch:
        for name, value in bob.user.env.items():
            patch.setenv(name, value)
        write(bob.repo, [counter])
    exchange(bob)
    found = job.check()
    assert found.status == 1 and "is open all the same" in found.out, found


def test_a_proposal_that_asks_nobody_waits_for_nobody(anna: Person, job: Job) -> None:
    anna.json("signal", "Merge WU-7?", "--broadcast", *MERGE)
    exchange(anna)

    found = job.check()

    assert found.status == 0 and "nobody was asked" in found.out, found


def test_only_the_file_of_the_target_branch_counts(anna: Person, bob: Person, eve: Person, job: Job) -> None:
    """Not that of the branch to merge, nor that of the work tree."""
    ask(anna, bob)
    exchange(anna, eve)
    ask(eve, anna)
    exchange(eve)
    push(anna, "WU-7", f"human:* {eve.key}")
    git(job.repo, "fetch", "-q", "--depth=1", "origin", "WU-7")
    git(job.repo, "checkout", "--quiet", "FETCH_HEAD")

    found = job.check()

    assert (found.status, found.out.count("not counted")) == (1, 1), found
    push(anna, "main", f"codex:* {anna.key}", f"human:* {eve.key}")
    assert job.check().out.count("not counted") == 1


def test_what_it_cannot_check_is_status_2_and_a_sentence(anna: Person, bob: Person, job: Job) -> None:
    """A gate that opens because something is missing would be none."""

    def code(said: Said) -> str:
        assert said.status == 2, said
        return str(said.error["code"])

    assert code(job.gate("--json")) == "no-target"  # not fetched
    for name in (
        "../../heads/WU-7",
        "-x",
        "main~1",
        "main@{0}",
        "main^{tree}",
        "a..b",
        "$(touch pwned)",
        "ma\nin",
        "x" * 5000,
    ):
        assert code(job.gate("--json", GITHUB_BASE_REF=name)) == "no-target"
    assert code(job.gate("--json", GITHUB_BASE_REF="")) == "no-target"
    git(job.repo, "fetch", "-q", "--depth=1", "origin", "+main:refs/remotes/origin/main")
    assert code(job.gate("--json")) == "no-log"
    exchange(anna)
    job.fetch()
    unknown = job.gate("--json", "--wu", "WU-99")
    assert code(unknown) == "unknown-work-unit" and not any(
        "session" in each for each in unknown.json["next"]
    )
    assert job.gate("README").status == 2  # claims on paths are another question
    assert code(job.gate("--json", "--wu", "WU 7")) == "bad-work-unit"
    for name, content in (
        ("link", ""),
        ("empty", "# nobody\n"),
        ("large", "#" * (1 << 20) + "\n"),
        ("binary", "\0"),
    ):
        path = anna.repo / ".gitmem/signers"
        path.unlink()
        if name == "link":
            path.symlink_to("../change")
        else:
            path.write_text(content)
        git(anna.repo, "add", "--force", ".gitmem/signers")
        git(anna.repo, "commit", "--quiet", "-m", name)
        git(anna.repo, "push", "--quiet", "origin", "HEAD:main")
        job.fetch()
        assert code(job.gate("--json")) == "no-signers", name
    git(anna.repo, "rm", "--quiet", "-r", ".gitmem")
    git(anna.repo, "commit", "--quiet", "-m", "none")
    git(anna.repo, "push", "--quiet", "origin", "HEAD:main")
    job.fetch()
    assert code(job.gate("--json")) == "no-signers"
    assert not (job.repo / "pwned").exists() and job.summary.read_text() == ""


def test_a_branch_without_a_work_unit_has_no_proposal(anna: Person, bob: Person, job: Job) -> None:
    """Whatever it is called; the answer says that none was looked for."""
    exchange(anna, bob)
    ask(anna, bob)
    exchange(anna)
    job.fetch()
    for name in ("typo", "x;touch pwned", "$(touch pwned)", "`touch pwned`", "\x1b[2Jx", "-rf"):
        found = job.gate(GITHUB_HEAD_REF=name)
        assert found.status == 0 and "names no work unit of the log" in found.out, found
        assert "\x1b" not in found.out and not (job.repo / "pwned").exists()
    for name in ("fix/wu-7-retry", "WU-7"):
        assert job.gate(GITHUB_HEAD_REF=name).status == 1
    gitlab = {"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main", "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "WU-7"}
    assert job.gate(GITHUB_BASE_REF="", GITHUB_HEAD_REF="x", **gitlab).status == 1


def test_a_summary_that_is_no_file_is_told_and_changes_nothing(anna: Person, bob: Person, job: Job) -> None:
    """A pipe, a folder, a link, nothing, no place; and a text in it can't leave its block."""
    exchange(anna, bob)
    ask(anna, bob, "Merge ``` <img src=x> ````?")
    exchange(anna)
    job.fetch()
    os.mkfifo(job.top / "pipe")
    (job.top / "link").symlink_to(job.summary)
    for name in ("pipe", "link", "missing", ".", "summary/x"):
        found = job.gate(GITHUB_STEP_SUMMARY=str(job.top / name))
        assert found.status == 1 and "GITHUB_STEP_SUMMARY was not written: it " in found.err, found
    assert job.summary.read_text() == "" and not (job.top / "missing").exists()

    assert job.gate(FORCE_COLOR="1").status == 1

    text = job.summary.read_text()
    fence = text.split("\n")[1]
    assert fence == "`````text" and text.count("`````") == 2 and text.endswith("\n`````\n")
    assert "\x1b" not in text and "<img" not in text.split("`````")[0]


def test_ssh_keys_that_are_not_verified_close_it(anna: Person, bob: Person, job: Job) -> None:
    """Where ssh-keygen is missing nobody knows whose proposals count."""
    path = anna.user.top / "ssh"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    git(anna.repo, "config", "gpg.format", "ssh")
    git(anna.repo, "config", "user.signingkey", f"{path}.pub")
    anna.json("trust", "--sign")
    push(anna, "main", f"human:* {Path(f'{path}.pub').read_text().strip()}")
    exchange(anna, bob)
    ask(anna, bob)
    exchange(anna)
    assert job.check().status == 1

    programs = job.top / "programs"
    programs.mkdir()
    (programs / "git").symlink_to(shutil.which("git") or "")
    found = job.gate("--json", PATH=str(programs))
    assert (found.status, found.error["code"]) == (2, "no-signers") and "ssh-keygen" in found.error["message"]


ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "docs" / "recipes"
INSTALLS = re.compile(r"pipx? install (--quiet )?gitmem-coord")
Recipe = Callable[[], subprocess.CompletedProcess[str]]


def load(name: str) -> Any:
    return yaml.safe_load((RECIPES / name).read_text(encoding="utf-8"))


@pytest.fixture
def runner(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """A machine of CI: its home is new, and gitmem was installed."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "gitmem").write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m cli "$@"\n')
    (programs / "gitmem").chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if name.startswith(("GIT_CONFIG", "LANG"))}

    def run(folder: Path, script: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        home = {
            "HOME": str(folder.parent),
            "PATH": f"{programs}:{os.environ['PATH']}",
            "GIT_TERMINAL_PROMPT": "0",
        }
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script], cwd=folder, env={**kept, **home, **env},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    return run


def cloned(hub: Path, top: Path, branch: str) -> Path:
    """As runners do: one commit, no branch."""
    folder = top / "build"
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet")
    git(folder, "remote", "add", "origin", f"file://{hub}")
    oid = git(hub, "rev-parse", branch)
    git(folder, "fetch", "--quiet", "--no-tags", "--depth=1", "origin", oid)
    git(folder, "checkout", "--quiet", "--detach", "FETCH_HEAD")
    return folder


@pytest.fixture(params=["github-actions.yml", "gitlab-ci.yml"])
def recipe(request: pytest.FixtureRequest, hub: Path, tmp_path: Path, runner: Any) -> Recipe:
    """Run the whole job for the branch WU-7, in a new clone each time."""
    runs: list[Path] = []
    declared = load(request.param)

    def github(top: Path) -> subprocess.CompletedProcess[str]:
        folder = cloned(hub, top, "main")  # `pull_request_target` checks out the branch to merge into
        summary = top / "summary"
        summary.touch()
        env = {"GITHUB_BASE_REF": "main", "GITHUB_HEAD_REF": "WU-7", "GITHUB_STEP_SUMMARY": str(summary)}
        for step in declared["jobs"]["agreement"]["steps"]:
            done = (
                runner(folder, step["run"], env)
                if "run" in step and not INSTALLS.search(step["run"])
                else None
            )
            if done is not None and done.returncode:
                break
        assert done is not None and done.stdout.split("\nnext: ")[0].strip() in summary.read_text()
        return done

    def gitlab(top: Path) -> subprocess.CompletedProcess[str]:
        folder = cloned(hub, top, "WU-7")
        env = {"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main", "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "WU-7"}
        found = declared["agreement"]
        lines = [each for each in (*found["before_script"], *found["script"]) if not INSTALLS.search(each)]
        return runner(folder, "\n".join(lines), env)

    def run() -> subprocess.CompletedProcess[str]:
        top = tmp_path / f"runner-{len(runs)}"
        runs.append(top)
        before = git(hub, "for-each-ref")
        done = (github if "jobs" in declared else gitlab)(top)
        assert "Traceback" not in done.stdout + done.stderr and git(hub, "for-each-ref") == before
        assert not list(top.rglob("*.key"))
        return done

    return run


@pytest.mark.deep
def test_a_job_fails_while_a_known_proposal_is_open(
    anna: Person, bob: Person, eve: Person, recipe: Recipe
) -> None:
    """It passes when all have agreed, and what a stranger proposes is shown and does not count."""
    asked = ask(anna, bob)
    exchange(anna, bob)
    done = recipe()
    assert done.returncode == 1 and "merge gate closed: 1 open proposal on WU-7" in done.stdout, done

    bob("reply", asked["signal_id"], "yes", "--agree")
    exchange(bob, eve)
    ask(eve, bob, "Stop")
    exchange(eve)
    done = recipe()
    assert done.returncode == 0 and "merge gate open: no open proposal on WU-7" in done.stdout, done
    assert 'not counted: "Stop"' in done.stdout


@pytest.mark.deep
def test_a_job_fails_where_nothing_can_be_checked(anna: Person, recipe: Recipe) -> None:
    """As before anybody has published the log."""
    done = recipe()
    assert done.returncode not in (0, 1), done


def test_the_jobs_are_well_formed() -> None:
    """Actions by their commit, rights to read alone, an end in time, and no value of a pull request within a script."""
    github = load("github-actions.yml")
    workflow = github["jobs"]["agreement"]
    assert github[True] == "pull_request_target" and github["permissions"] == {"contents": "read"}
    assert workflow["timeout-minutes"] and "ref" not in str(workflow["steps"][0].get("with"))
    for step in workflow["steps"]:
        assert "run" in step or re.fullmatch(r"actions/checkout@[0-9a-f]{40}", step["uses"])
    for name in ("github-actions.yml", "gitlab-ci.yml"):
        assert "${{" not in (RECIPES / name).read_text()
    gitlab = load("gitlab-ci.yml")["agreement"]
    assert gitlab["timeout"] and gitlab["rules"] == [{"if": '$CI_PIPELINE_SOURCE == "merge_request_event"'}]
