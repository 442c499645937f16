"""The whole way of an agreement over three machines, as docs/recorded-run.md shows it: commands, and Codex as it is."""

from __future__ import annotations

import os
import re
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitmem.agents import waking
from tests.real_clients.clients import CLIENTS
from tests.real_clients.conftest import installed
from tests.real_clients.desk import Desk, Home, until
from tests.real_clients.model import Asked
from tests.real_clients.test_waking import opened
from tests.real_clients.wire import Step, strings
from tests.trust.test_merge_gate import INSTALLS, load

pytestmark = pytest.mark.clients

TRANSCRIPT = "GITMEM_TEST_TRANSCRIPT"  # a file for the page
CODEX = next(each for each in CLIENTS if each.name == "codex")
WANTED = os.environ.get(TRANSCRIPT)  # each test has an environment without it
ABOUT = f"""\
Written by `tests/real_clients/test_recorded_run.py`, which checks it; run it with `{TRANSCRIPT}=FILE` for another one. `desk`, `laptop` and `ci` are
three home folders on one machine, the first two with keys of their own, and a bare repository is between them. Off means that nothing of it runs.
Codex is the real one (`{CODEX.package}`), in a terminal and in its sandbox; its model follows a script. `ci` runs the steps of [the job for GitHub
Actions](recipes/github-actions.yml), except for the installation. Paths, and the lines that say what to run next, are left out."""
ARCHITECT, PRICES = "claude:architect:shop", "codex:implementer:prices"
BRANCH = "lane/wu-7-prices"
BEGIN = 'eval "$(gitmem session start {} | grep ^export)"'
ASKED = "Merge WU-7? Prices are in cents."
ANSWER = "Agreed, cents it is."
NEXT = re.compile(r"^next: |^note: not sent yet|^\d+ unread: gitmem inbox$")


class Tape:
    """What was run where, and what it answered."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.text = ""

    def says(self, title: str, remark: str, *shown: str) -> None:
        """What comes now, a remark, and what somebody was shown."""
        texts = (textwrap.indent(self.clean(each), "    ") + "\n\n" for each in shown)
        self.text += f"**{title}.** {remark}\n\n{''.join(texts)}"

    def clean(self, text: str) -> str:
        """The text without paths of this machine, and without the lines that say what to run next."""
        text = re.sub(
            r"(file://)?(/tmp/gitmem-\d+/\w+|" + re.escape(str(self.root)) + r"[\w./-]*)", "…", text
        )
        return "\n".join(line for line in text.split("\n") if not NEXT.search(line)).rstrip()

    def run(self, who: str, at: Home, *commands: str, status: int = 0) -> str:
        """Commands of a shell, of which the last one ends with that status: what they print."""
        said = []
        for command in commands:
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command], cwd=at.work, env=at.env, timeout=120,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            )  # fmt: skip
            said.append(self.clean(done.stdout))
            assert done.returncode == (status if command == commands[-1] else 0), f"{command}: {done.stdout}"
            self.text += f"```console\n{who}$ {command}\n{said[-1]}".rstrip() + "\n"
            self.text += f"exit status {status}\n```\n\n" if done.returncode else "```\n\n"
        return "\n".join(said)

    def keep(self, title: str, remark: str) -> None:
        """Write the page, if somebody wants it."""
        if WANTED:
            page = f"# {title}\n\n{remark}\n\n{self.text}".replace("```\n\n```console\n", "")
            Path(WANTED).write_text(page.rstrip() + "\n", encoding="utf-8")


class Laptop(Desk):
    """The machine of the reader, whose client is real; whoever writes to it is elsewhere."""

    def __init__(self, root: Path, gitmem: Path, program: Path) -> None:
        root.mkdir()
        Home.__init__(self, root / "home", root / "shop", gitmem)
        self.client = CODEX
        self.program = program
        self.peer = ""
        self.env |= {"XDG_STATE_HOME": str(self.home / "state"), "GITMEM_AGENT_IDENTITY": PRICES}


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    found = tmp_path / "shop.git"
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(found)], check=True)
    return found


@pytest.fixture
def desk_of_architect(tmp_path: Path, gitmem: Path, hub: Path) -> Home:
    (tmp_path / "desk").mkdir()
    found = Home(tmp_path / "desk" / "home", tmp_path / "desk" / "shop", gitmem)
    (found.work / "prices.py").write_text('CURRENCY = "EUR"\n')
    found.git("add", "prices.py")
    found.git("commit", "--quiet", "-m", "Sell things")
    found.git("remote", "add", "origin", str(hub))
    found.git("push", "--quiet", "--set-upstream", "origin", "main")
    found.gitmem("setup", "--git", "post-commit")
    return found


@pytest.fixture
def laptop(
    tmp_path: Path, gitmem: Path, hub: Path, cache: Path, alone: None, desk_of_architect: Home
) -> Iterator[Laptop]:
    found = Laptop(tmp_path / "laptop", gitmem, installed(CODEX, cache))
    found.git("remote", "add", "origin", str(hub))
    found.git("fetch", "--quiet")
    found.git("reset", "--quiet", "--hard", "origin/main")
    found.git("branch", "--quiet", "--set-upstream-to=origin/main")
    found.gitmem("setup", "--client", "codex")
    yield found
    found.clear()


class Agent:
    """The model of the reader's Codex: in the turn of the wake it agrees to what the hook shows, and keeps what it read."""

    def __init__(self, there: Laptop) -> None:
        self.there = there
        self.command = ""
        self.line = ""
        self.news = ""
        self.answer = ""

    def woken(self, asked: Asked) -> Step:
        (self.line,) = {each for each in asked.text.split("\n") if each.startswith(waking.LINE)}
        (self.news,) = {each for each in strings(asked.request) if ASKED in each}
        (signal,) = set(re.findall(r"gitmem reply (sig-\w+)", self.news))
        self.command = f"gitmem reply {signal} '{ANSWER}' --agree"
        return self.there.client.shell(self.command)

    def ran(self, asked: Asked) -> Step:
        self.answer = (
            str(asked.request["input"][-1]["output"]).partition("Output:\n")[2].partition("warning: ")[0]
        )
        return Step("I have agreed.")


def checked(tape: Tape, hub: Path, runner: Home, status: int) -> str:
    """The shell of the job in docs/recipes, in a new clone of one commit; gitmem is there already."""
    runner.work = runner.home / f"build-{status}"
    runner.git(
        "clone", "--quiet", "--depth=1", "--branch=main", f"file://{hub}", str(runner.work), cwd=runner.home
    )
    runner.env |= {"GITHUB_BASE_REF": "main", "GITHUB_HEAD_REF": BRANCH}
    steps = [
        each["run"] for each in load("github-actions.yml")["jobs"]["agreement"]["steps"] if "run" in each
    ]
    return tape.run("ci", runner, *(each for each in steps if not INSTALLS.search(each)), status=status)


def meet(tape: Tape, desk: Home, laptop: Laptop) -> None:
    """Each agent has been at work once, and the main branch names the writers of both."""
    tape.run("laptop", laptop, f"{BEGIN.format('--name Curie')}; gitmem sync --publish; gitmem session end")
    begin = BEGIN.format(f"--name Planck --agent-identity {ARCHITECT} --wu WU-7")
    desk.env["GITMEM_SESSION"] = tape.run("desk", desk, f"{begin}; echo $GITMEM_SESSION")
    tape.run("desk", desk, "gitmem sync --publish")
    file = desk.work / ".gitmem" / "signers"
    file.parent.mkdir(exist_ok=True)
    writers = [at.gitmem("trust")["writer"] for at in (desk, laptop)]
    file.write_text(f"claude:*:* {writers[0]}\ncodex:*:* {writers[1]}\n")
    tape.run(
        "desk",
        desk,
        "cat .gitmem/signers",
        "git add .gitmem && git commit -q -m 'Say whose agents count' && git push -q",
    )
    tape.run("laptop", laptop, "git pull -q && gitmem sync")


def propose(tape: Tape, desk: Home) -> str:
    """Change the prices on a branch, and ask for its merge: the signal."""
    tape.run(
        "desk",
        desk,
        f"git switch -q -c {BRANCH}; echo 'UNIT = \"cent\"' >> prices.py; git commit -q -a -m 'Say cents'; git push -q origin {BRANCH}",
    )
    said = tape.run(
        "desk", desk, f"gitmem signal '{ASKED}' --intent propose --to {PRICES} --wu WU-7", "gitmem sync"
    )
    return said.split(" ", 1)[0]


def wake(tape: Tape, laptop: Laptop, signal: str) -> None:
    """Codex begins, waits for its user, is woken by the sync that brings the signal, and agrees."""
    agent = Agent(laptop)
    with opened(laptop, [agent.woken, agent.ran]) as (model, shown):
        assert "wakes: yes, by `codex queue`" in tape.run("laptop", laptop, "gitmem roster")
        assert len(model.asked) == 1 and signal not in model.asked[0].text
        tape.run("laptop", laptop, "gitmem sync")
        assert until(lambda: len(model.asked) == 3), b"".join(shown)[-3000:]
        if "bwrap: " in agent.answer:  # of the sandbox
            pytest.skip(
                "the sandbox of Codex does not work on this machine, or not below this folder for temporary files"
            )
        assert until(lambda: "AGREE" in str(laptop.gitmem("thread", signal))), agent.answer
        tape.says(
            "Codex takes a turn, though nobody types anything to it",
            "The line by `codex queue`, and what the hook adds, as its model reads them; the model's tool call. The sandbox keeps the git folder from it: a hook records the reply.",
            agent.line,
            agent.news,
        )
        tape.text += f"```console\ncodex$ {agent.command}\n{tape.clean(agent.answer)}\n```\n\n"
        said = tape.run("laptop", laptop, f"gitmem receipts {signal}", "gitmem sync")
        assert re.search(r"stored .* · woken .* · shown .* · answered", said)


def test_an_agreement_from_a_laptop_that_was_off_to_the_merged_line(
    hub: Path, tmp_path: Path, gitmem: Path, desk_of_architect: Home, laptop: Laptop
) -> None:
    desk, tape = desk_of_architect, Tape(tmp_path)
    runner = Home(tmp_path / "runner", tmp_path / "unused", gitmem)

    tape.says("The agents have met", "The main branch says whose proposals count in CI.")
    meet(tape, desk, laptop)

    tape.says("The laptop is off, and a merge is proposed", "The step of CI is closed.")
    signal = propose(tape, desk)
    assert "merge gate closed: 1 open proposal on WU-7" in checked(tape, hub, runner, 1)

    tape.says(
        "The laptop is on",
        "Its Codex has had a turn, and waits for its user; the session has another name, and the identity that was asked. The next sync brings the message.",
    )
    wake(tape, laptop, signal)

    tape.says("The agreement is signed", "By two writers, which the main branch names.")
    said = tape.run(
        "desk",
        desk,
        "gitmem sync",
        f"gitmem converged {signal}",
        f"gitmem verify {signal.replace('sig-', 'thread-')}",
    )
    assert "converged: " in said and "2 attested lines of 2 writers" in said and f"known for {PRICES}" in said
    assert ANSWER in str(desk.gitmem("thread", signal))

    tape.says("CI lets the merge through", "The same step, in a new clone.")
    assert "merge gate open: no open proposal on WU-7" in checked(tape, hub, runner, 0)

    tape.says(
        "A person merges, and the line says why it is there",
        "Without a session: the commits were the agent's.",
    )
    del desk.env["GITMEM_SESSION"]
    tape.run(
        "desk",
        desk,
        f"git switch -q main && git merge -q --squash {BRANCH} && git commit -q -m 'Prices in cents' && git push -q",
    )
    assert until(lambda: ARCHITECT in str(desk.gitmem("why", "prices.py:2")))
    why = tape.run("desk", desk, "gitmem why prices.py:2")
    assert f"made by Planck ({ARCHITECT})" in why and "work unit WU-7" in why
    assert f": Planck proposed {signal}: {ASKED} (agreed: " in why and "agreed in thread-" in why
    tape.keep("A recorded run", ABOUT)
