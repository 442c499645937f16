"""Who calls: an agent that is silent for a while, or reads through a pipe, never becomes the person."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cli.environment import MARKERS

from ..conftest import SESSION_VARIABLES, Git
from ..in_process import gitmem
from .forging import Hub
from .peers import Town
from .peers import git as git_of

PROGRAM = shutil.which("gitmem", path=str(Path(sys.executable).parent)) or "gitmem"

# The program with another clock: what an agent did some time ago.
EARLIER = (
    "import sys, time; real = time.time_ns; ago = int(sys.argv.pop(1)) * 10**9;"
    " time.time_ns = lambda: real() - ago; sys.argv[0] = 'gitmem';"
    " from gitmem_cli.main import main; sys.exit(main())"
)
MINUTE, HOUR = 60, 3600
PERSON = "human:person@example.org"


class Said:
    """What the program answered."""

    def __init__(self, done: subprocess.CompletedProcess[bytes]) -> None:
        self.status, self.out, self.err = done.returncode, done.stdout.decode(), done.stderr.decode()
        assert "Traceback" not in self.err, self.err

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def __repr__(self) -> str:
        return f"exit {self.status}\n{self.out}\n--- err\n{self.err}"


class Place:
    """A worktree, and the program in it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(
        self,
        *args: str,
        ago: int = 0,
        typed: bool = False,
        session: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Said:
        """Run a command; its standard output is a pipe always.

        Args:
            ago: By how many seconds its clock is slow.
            typed: Whether standard input is a terminal.
            session: GITMEM_SESSION.
        """
        if not ago and not typed:
            own = {"GITMEM_SESSION": session} if session else {}
            return Said(gitmem(*args, cwd=self.path, env={**own, **(env or {})}))
        words = [sys.executable, "-c", EARLIER, str(ago)] if ago else [PROGRAM]
        given = {**os.environ, **({"GITMEM_SESSION": session} if session else {}), **(env or {})}
        ends = os.openpty() if typed else ()
        try:
            done = subprocess.run(
                [*words, *args],
                cwd=self.path,
                env=given,
                stdin=ends[1] if ends else subprocess.DEVNULL,
                capture_output=True,
                timeout=60,
            )
        finally:
            for end in ends:
                os.close(end)
        return Said(done)

    def start(self, name: str, *more: str, ago: int = 0) -> str:
        """Start a session; its id."""
        said = self("session", "start", "--name", name, *more, "--json", ago=ago)
        assert said.status == 0, said
        return str(said.json["session_id"])

    def who(self, **options: Any) -> str:
        """Who the program takes its caller for, or the code of its refusal."""
        said = self("whoami", "--json", **options)
        found = said.json
        return str(found["error"]["code"] if said.status else found["reader_identity"])


@pytest.fixture
def here(repo: Path, git: Git) -> Place:
    """The main worktree of a repository whose user is Test Person."""
    git("config", "user.name", "Test Person", cwd=repo)
    git("config", "user.email", "person@example.org", cwd=repo)
    return Place(repo)


@pytest.fixture
def side(here: Place, tmp_path: Path, git: Git) -> Place:
    """Another worktree of the same clone."""
    git("worktree", "add", "--quiet", "--detach", str(tmp_path / "side"), cwd=here.path)
    return Place(tmp_path / "side")


def test_an_agent_that_was_silent_for_long_is_still_itself(here: Place, side: Place) -> None:
    """After an hour its inbox has its mail, its gate is closed, and what it sends is its own."""
    curie = here.start("Curie", "--wu", "WU-7", ago=HOUR)
    planck = side.start("Planck")
    assert side("signal", "Wait", "--to", "Curie", "--wu", "WU-7", session=planck).status == 0

    assert here.who() == curie
    assert here("gate", "--wu", "WU-7").status == 1
    assert here("signal", "Mine", "--json").json["signal"]["sender_identity"] == curie
    shown = here("inbox", "--json")
    assert [each["message"] for each in shown.json["signals"]] == ["Wait"]


@pytest.mark.parametrize("ago", [25 * HOUR, 5 * 24 * HOUR])
def test_an_agent_that_was_silent_for_days_is_refused_and_not_the_person(here: Place, ago: int) -> None:
    """It can't be chosen any more, and it must not act as the user of the clone."""
    curie = here.start("Curie", ago=ago)
    for command in (["signal", "Mine"], ["inbox"], ["gate", "--wu", "WU-7"], ["mem", "create", "A note"]):
        said = here(*command)
        assert (said.status, said.out) == (2, ""), said
        assert curie in said.err and f"--as {PERSON}" in said.err and "export GITMEM_SESSION=ID" in said.err
    assert here.who(session=curie) == curie


def test_two_silent_agents_of_a_worktree_are_a_refusal_with_both(here: Place) -> None:
    """Whether they were seen lately or hours ago; commands that only show something answer."""
    one, other = here.start("Curie", ago=2 * HOUR), here.start("Planck")
    said = here("signal", "Mine", "--json")

    assert (said.status, said.json["error"]["code"]) == (2, "which-session")
    candidates = said.json["error"]["suggestions"]
    assert [each.partition(" ")[0] for each in candidates] == [other, one]
    for command in (["roster"], ["log"], ["mem", "list"], ["mem", "search", "tabs"]):
        assert here(*command).status == 0, command


def test_an_agent_in_a_worktree_without_sessions_is_not_the_person(here: Place, side: Place) -> None:
    """Sessions of the clone that were seen within a day are reason enough to ask; older ones of elsewhere are not."""
    here.start("Curie", ago=23 * HOUR)
    assert side.who() == "which-session"
    assert side("inbox", "--as", PERSON, "--json").json["reader"] == PERSON


def test_sessions_of_other_worktrees_are_forgotten_after_a_day(here: Place, side: Place) -> None:
    """A script there is its user's again."""
    here.start("Curie", ago=25 * HOUR)
    assert side.who() == PERSON


def test_a_clone_without_sessions_is_its_users(here: Place) -> None:
    """A script that signals from cron needs nothing."""
    said = here("signal", "The build is broken", "--json")
    assert said.json["signal"]["sender_identity"] == PERSON


def test_a_pipe_changes_nobody(here: Place) -> None:
    """At a terminal it is the person who types, though the output goes to a pipe; the agent's mail stays unread."""
    curie = here.start("Curie")
    here("signal", "For the agent", "--to", "Curie", "--as", PERSON)

    assert here.who(typed=True) == PERSON
    assert here("inbox", "--json", typed=True).json["reader"] == PERSON
    assert here("inbox", "--count", session=curie).out == "1\n"


def test_at_a_terminal_a_session_variable_decides_first(here: Place) -> None:
    """GITMEM_SESSION, and the id that a client gives."""
    curie = here.start("Curie")
    assert here.who(typed=True, session=curie) == curie
    assert here.who(typed=True, env={"CLAUDE_CODE_SESSION_ID": "0190-abcd"}).startswith("h-")


@pytest.mark.parametrize("marker", [name for name, _ in MARKERS])
def test_a_clients_marker_says_that_no_person_types(here: Place, marker: str) -> None:
    """Clients run commands at pseudo-terminals, too."""
    assert here.who(typed=True, env={marker: "1"}) == "which-session"


def test_a_client_without_a_session_is_nobody(here: Place) -> None:
    """Not even in a clone without sessions is it the person; it may look, and act once it has a session."""
    agent: dict[str, Any] = {"typed": True, "env": {"GEMINI_CLI": "1"}}
    assert here("signal", "Mine", **agent).status == 2
    assert here("roster", **agent).status == 0
    curie = here.start("Curie")
    assert here.who(**agent) == curie


def test_every_marker_is_one_that_the_tests_take_away() -> None:
    """Whoever runs the tests from a client gets the same answers; the page on clients lists them."""
    page = (Path(__file__).parents[2] / "docs" / "clients.md").read_text()
    for name, _ in MARKERS:
        assert name in SESSION_VARIABLES and f"`{name}`" in page


def test_a_client_is_not_taken_for_the_session_of_another(here: Place) -> None:
    """Of two sessions it is the one of that client; a foreign one alone is none."""
    here.start("Curie", "--client", "claude-code")
    assert here.who(env={"GEMINI_CLI": "1"}) == "which-session"
    planck = here.start("Planck", "--client", "gemini")
    assert here.who(env={"GEMINI_CLI": "1"}) == planck


def test_a_look_by_nobody_in_particular_marks_nothing(here: Place, side: Place) -> None:
    """Where sessions exist, `--for` shows a mailbox and leaves it unread."""
    curie, planck = here.start("Curie"), here.start("Planck")
    here("signal", "Wait", "--to", "Curie", session=planck)
    for place in (here, side):
        said = place("inbox", "--for", "Curie", "--json")
        assert [each["message"] for each in said.json["signals"]] == ["Wait"]
    assert here("inbox", "--count", session=curie).out == "1\n"


def test_a_look_where_no_session_could_be_the_caller_marks_nothing(tmp_path: Path) -> None:
    """`--for` names whose mail to show, not who looks; in the clone's own person's mail it is the same one."""
    town = Town(tmp_path)
    a, b = town.clone("a"), town.clone("b")
    start = ("session", "start", "--json", "--name")
    curie = a.run(*start, "Curie", "--agent-identity", "test:worker:curie").json["session_id"]
    planck = a.run(*start, "Planck").json["session_id"]
    for whom in (["--to", "Curie"], ["--broadcast"]):
        assert a.run("signal", "Wait", *whom, "--as", planck).code == 0
    assert a.sync().code == b.sync().code == 0

    for reader in ("Curie", curie, "test:worker:curie"):
        for _ in range(2):
            assert "Nothing is marked as delivered" in b.run("inbox", "--for", reader).text
            assert len(b.run("inbox", "--for", reader, "--json").json["signals"]) == 2
    own = "human:" + git_of("config", "user.email", cwd=b.path)
    for there in (1, 0):
        assert len(b.run("inbox", "--for", own, "--json").json["signals"]) == there
    assert b.sync().code == a.sync().code == 0
    assert a.run("inbox", "--count", "--as", curie).text == "2\n"


def test_a_push_asks_for_every_session_of_the_last_day(here: Place, git: Git) -> None:
    """Git gives its hook no terminal, so an agent that was silent for an hour is asked for as well."""
    curie = here.start("Curie", ago=2 * HOUR)
    here.start("Planck", ago=HOUR)
    here("signal", "Wait", "--to", "Curie", "--wu", "WU-7", "--as", PERSON)
    git("checkout", "--quiet", "-b", "wu-7", cwd=here.path)
    said = here("gate", "--hook", "pre-push")
    assert said.status == 1 and f"--as {curie}" in said.out


def test_a_name_that_somebody_claims_afterwards_gets_no_mail(
    here: Place, side: Place, tmp_path: Path, git: Git
) -> None:
    """A pushed session says that it has been Planck for 46 hours: every log shows it so, and the mail goes where it went."""
    planck = here.start("Planck")
    curie = side.start("Curie")
    sent = side("signal", "Mind the tabs", "--to", "Planck", "--json", session=curie)
    assert sent.json["signal"]["recipients"] == [planck]

    hub = tmp_path / "hub.git"
    git("clone", "--quiet", "--bare", str(here.path), str(hub))
    git("clone", "--quiet", str(hub), str(tmp_path / "away"))
    mallory = Place(tmp_path / "away")
    claimed = mallory.start("Planck", ago=46 * HOUR)
    git("push", "--quiet", "origin", "refs/gitmem/log:refs/heads/gitmem", cwd=mallory.path)
    git("remote", "add", "origin", str(hub), cwd=here.path)
    here("sync", "--as", planck)
    rows = {
        each["session_id"]: each["display_name"]
        for each in here("roster", "--all", "--json").json["sessions"]
    }
    assert rows[claimed] == "Planck"

    for place, name in ((side, "Planck"), (here, "planck")):
        sent = place("signal", "The key is in the safe", "--to", name, "--json", session=curie)
        assert sent.json["signal"]["recipients"] == [planck], sent
        assert any(claimed in each for each in sent.json["warnings"])
    assert here.who(session=None) == planck
    assert here("whoami", "--as", "Planck", "--json").json["reader_identity"] == planck


@pytest.mark.deep
def test_senders_at_once_pin_a_name_alike(here: Place) -> None:
    """Each writes the whole small file in one step; none is torn, and nothing is left beside them."""
    planck, curie = here.start("Planck"), here.start("Curie")
    folder = here.path / ".git" / "gitmem" / "pins"
    for file in folder.iterdir():
        file.unlink()
    words = [PROGRAM, "signal", "Hello", "--to", "Planck", "-q"]
    at_once = [
        subprocess.Popen(
            words, cwd=here.path, env={**os.environ, "GITMEM_SESSION": curie}, stdout=subprocess.PIPE
        )
        for _ in range(12)
    ]
    assert all(each.wait(60) == 0 for each in at_once)
    for each in at_once:
        assert each.stdout is not None
        each.stdout.close()
    (file,) = folder.iterdir()
    assert file.read_text() == f"Planck\n{planck}\n\n"


def proposal(here: Place) -> tuple[str, str, str, str]:
    """Planck proposes to Curie: both sessions, the signal and the thread."""
    planck, curie = here.start("Planck"), here.start("Curie")
    words = ("--to", "Curie", "--intent", "PROPOSE", "--requires-ack", "--json")
    signal = here("signal", "Shall we split the parser?", *words, session=planck).json["signal"]
    return planck, curie, str(signal["signal_id"]), str(signal["thread_id"])


@pytest.mark.parametrize(
    ("intent", "as_"),
    [("--agree", "Curie"), ("--reject", "id"), ("--counter", PERSON),
     *(pytest.param(*each, marks=pytest.mark.deep)
       for each in (("--agree", "id"), ("--agree", PERSON), ("--reject", "Curie"), ("--counter", "Curie")))],
)  # fmt: skip
def test_nobody_decides_for_another(here: Place, intent: str, as_: str) -> None:
    """The proposer's own session with `--as` of the one who was asked, or of the user: refused, and nothing is written."""
    planck, curie, id, thread = proposal(here)
    tip = (here.path / ".git" / "refs" / "gitmem" / "log").read_text()
    said = here("--as", curie if as_ == "id" else as_, "reply", id, "fine", intent, "--json", session=planck)

    assert (said.status, said.json["error"]["code"]) == (2, "another-identity"), said
    assert planck in said.json["error"]["message"] and "--insist" in said.json["error"]["hint"]
    assert (here.path / ".git" / "refs" / "gitmem" / "log").read_text() == tip
    assert here("converged", thread).status == 1
    assert here("--as", as_, "reply", id, "a remark", session=planck).status in (0, 2)  # it is no decision


def test_the_only_session_of_a_worktree_acts_for_no_other_one_without_a_variable_either(
    here: Place, git: Git, tmp_path: Path
) -> None:
    """No `GITMEM_SESSION`: a decision for the agent of another worktree is refused, and its inbox only shown."""
    planck = here.start("Planck")
    git("worktree", "add", "-q", str(tmp_path / "prices"), cwd=here.path)
    there = Place(tmp_path / "prices")
    curie = there.start("Curie")
    asked = there("signal", "Shall we?", "--to", "Planck", "--intent", "PROPOSE", "--json").json["signal"]
    id, thread = str(asked["signal_id"]), str(asked["thread_id"])

    said = there("reply", id, "yes", "--agree", "--as", "Planck", "--json")
    assert (said.status, said.json["error"]["code"]) == (2, "another-identity"), said
    assert curie in said.json["error"]["message"], said
    assert f"export GITMEM_SESSION={planck}" in said.json["error"]["hint"], said
    looked = there("inbox", "--as", "Planck")
    assert id in looked.out and "you are Curie. Nothing is marked as delivered" in looked.out, looked
    insisted = there("reply", id, "yes", "--agree", "--as", "Planck", "--insist", "--json")
    assert insisted.json["signal"]["via"] == curie, insisted
    assert there("converged", thread).status == 1

    assert there("inbox", "--as", "Planck", "--count", session=planck).out == "1\n"
    assert id in here("inbox", "--as", "Planck").out  # its own worktree
    assert there("inbox", "--as", "Planck", "--count", session=planck).out == "0\n"
    assert there("reply", id, "typed", "--agree", "--as", "Planck", typed=True).status == 0  # a person
    there.start("Noether")
    assert there("reply", id, "a script", "--agree", "--as", "Planck").status == 0  # who calls is unclear
    assert here("converged", thread).status == 0


def test_a_decision_that_was_insisted_on_counts_for_nothing_where_its_session_proposed(here: Place) -> None:
    """It is recorded, shown with the session in `via`, and the thread goes on waiting for who was asked."""
    planck, curie, id, thread = proposal(here)
    said = here("reply", id, "agreed", "--agree", "--insist", "--as", "Curie", "--json", session=planck)
    assert said.json["signal"]["via"] == planck, said

    assert here("converged", thread, "--json").json["pending"] == [curie]
    assert (
        f"recorded by {planck} in the sender's name, which has proposed here itself"
        in here("thread", thread).out
    )
    waits = here("mem", "recover", session=curie)
    assert id in waits.out, waits
    assert here("reply", id, "agreed", "--agree", session=curie).status == 0
    assert here("converged", thread).status == 0


def test_a_decision_that_a_third_one_insisted_on_is_the_senders(here: Place) -> None:
    """A person who runs agents decides for one of them: that is on record."""
    _, _, id, thread = proposal(here)
    third = here.start("Noether")
    refused = here("reply", id, "agreed", "--agree", "--as", "Curie", session=third)
    assert refused.status == 2
    said = here("reply", id, "agreed", "--agree", "--as", "Curie", "--insist", "--json", session=third)
    assert said.json["signal"]["via"] == third
    assert here("converged", thread).status == 0
    body = subprocess.run(
        ["git", "log", "-1", "--format=%B", "gitmem/log"], cwd=here.path, capture_output=True
    )
    assert f"Via: {third}" in body.stdout.decode()


def test_who_acts_as_itself_decides(here: Place) -> None:
    """By its id, name or identity, and a person at a terminal as any of its agents: none of that is another's decision."""
    planck, curie, id, thread = proposal(here)
    for as_ in (curie, "Curie"):
        said = here("reply", id, "agreed", "--agree", "--as", as_, "--json", session=curie)
        assert said.status == 0 and "via" not in said.json["signal"], said
    for typed in (True, False):  # a person, or a script that speaks for several agents in turn
        said = here("reply", id, "agreed", "--agree", "--as", "Curie", "--json", typed=typed)
        assert said.status == 0 and "via" not in said.json["signal"], said
    assert here("converged", thread).status == 0 and planck


def test_an_ended_session_in_the_variable_decides_for_nobody(here: Place) -> None:
    """To end one's session makes no other of one."""
    planck, _, id, _ = proposal(here)
    here("session", "end", session=planck)
    assert here("reply", id, "agreed", "--agree", "--as", "Curie", session=planck).status == 2


# Nobody agrees with itself: by a new session, in another's name, or to a proposal that it made in another's name.

__all__ = ["here"]
CLIENT = "CLAUDE_CODE_SESSION_ID"
PLANCK = "codex:planner:one"
VOID = "has no effect"


def propose(here: Place, to: str, *words: str, **who: Any) -> tuple[str, str]:
    """Ask for a decision on WU-7; the signal and the thread."""
    asks = ("--to", to, "--intent", "PROPOSE", "--requires-ack", "--wu", "WU-7", "--json", *words)
    said = here("signal", "Shall we split the parser?", *asks, **who)
    assert said.status == 0, said
    return str(said.json["signal"]["signal_id"]), str(said.json["signal"]["thread_id"])


def agree(here: Place, id: str, *words: str, **who: Any) -> Said:
    said = here("reply", id, "agreed", "--agree", *words, "--json", **who)
    assert said.status == 0, said
    return said


def assert_void(here: Place, thread: str, said: Said, waits: str) -> None:
    """The decision is in the log, marked, and the thread waits for the one in whose name it stands."""
    found = here("converged", thread, "--json")
    assert (found.status, found.json["pending"]) == (1, [waits]), found
    assert any(VOID in each for each in said.json["warnings"]), said
    shown = here("thread", thread, "--json").json["signals"]
    assert [each.get("decides") for each in shown] == [None, False]
    assert VOID in here("thread", thread).out


@pytest.mark.parametrize("known_by", ["identity", "client", "both"])
def test_a_new_session_of_the_proposer_agrees_for_nobody(here: Place, known_by: str) -> None:
    """Planck proposes to Curie, ends its session, begins another one, and agrees as Curie."""
    own = ("--agent-identity", PLANCK) if known_by != "client" else ()
    client = {CLIENT: "0b9c1f2e-77aa-4d01-9a55-3f0e8d2c4b61"} if known_by != "identity" else {}
    curie = here.start("Curie")
    first = here("session", "start", "--name", "Planck", *own, "--json", env=client).json["session_id"]
    id, thread = propose(here, "Curie", env={**client, "GITMEM_SESSION": first})
    here("session", "end", env={**client, "GITMEM_SESSION": first})
    second = here("session", "start", "--name", "Bohr", *own, "--json", env=client).json["session_id"]
    assert second != first

    said = agree(here, id, "--as", "Curie", "--insist", env={**client, "GITMEM_SESSION": second})
    assert said.json["signal"]["via"] == second
    assert_void(here, thread, said, curie)
    agree(here, id, session=curie)
    assert here("converged", thread).status == 0


def test_a_client_without_a_session_of_its_own_agrees_for_nobody(here: Place) -> None:
    """After the end of its session the client still is who has proposed."""
    client = {CLIENT: "0b9c1f2e-77aa-4d01-9a55-3f0e8d2c4b61"}
    curie = here.start("Curie")
    here("session", "start", "--name", "Planck", env=client)
    id, thread = propose(here, "Curie", env=client)
    here("session", "end", env=client)
    said = agree(here, id, "--as", "Curie", "--insist", env=client)
    assert said.json["signal"]["via"].startswith("h-")
    assert_void(here, thread, said, curie)


@pytest.mark.parametrize("asker", ["Noether", PERSON])
@pytest.mark.parametrize("decides", ["itself", "its next session", "as Curie"])
def test_what_a_session_proposed_in_anothers_name_it_does_not_agree_to(
    here: Place, asker: str, decides: str
) -> None:
    """Planck proposes as Noether, or as the user: neither its own decision counts nor one that it records for Curie."""
    identity = ("--agent-identity", PLANCK)
    planck, curie, _ = here.start("Planck", *identity), here.start("Curie"), here.start("Noether")
    to = "Curie" if decides == "as Curie" else planck
    id, thread = propose(here, to, "--as", asker, session=planck)
    if decides == "its next session":
        here("session", "end", session=planck)
        planck = here.start("Planck", *identity)
    words = ("--as", "Curie", "--insist") if decides == "as Curie" else ()
    waits = curie if decides == "as Curie" else PLANCK
    assert_void(here, thread, agree(here, id, *words, session=planck), waits)


def test_a_proposal_as_the_user_is_not_agreed_to_as_the_user(here: Place) -> None:
    """Planck asks the user in the user's name, and agrees in the user's name, from its next session."""
    identity = ("--agent-identity", PLANCK)
    first = here.start("Planck", *identity)
    id, thread = propose(here, PERSON, "--as", PERSON, session=first)
    here("session", "end", session=first)
    said = agree(here, id, "--as", PERSON, "--insist", session=here.start("Planck", *identity))
    assert any(VOID in each for each in said.json["warnings"]), said
    agree(here, id, typed=True)  # the user, at a terminal
    found = here("converged", thread)
    assert (found.status, "nobody was asked" in found.out) == (1, True), found


def test_an_own_proposal_opens_no_gate(here: Place) -> None:
    """What Planck asked itself as Noether still blocks its gate, although it has agreed to it."""
    planck, _ = here.start("Planck", "--wu", "WU-7"), here.start("Noether")
    id, _ = propose(here, "Planck", "--as", "Noether", session=planck)
    here("inbox", session=planck)
    assert here("gate", "--wu", "WU-7", session=planck).status == 1
    agree(here, id, session=planck)
    found = here("gate", "--wu", "WU-7", "--json", session=planck)
    assert (found.status, found.json["unanswered"]) == (1, 1), found


@pytest.mark.parametrize("who", ["another agent for Curie", "Curie", "the user as Curie"])
def test_others_decide_on_a_proposal_in_anothers_name(here: Place, who: str) -> None:
    """Planck proposes as Noether to Curie: whoever is not Planck decides, and may record what Curie said."""
    planck, curie = here.start("Planck", "--agent-identity", PLANCK), here.start("Curie")
    here.start("Noether")
    bohr = here.start("Bohr", "--agent-identity", "codex:planner:two")
    id, thread = propose(here, "Curie", "--as", "Noether", session=planck)
    if who == "Curie":
        said = agree(here, id, session=curie)
    elif who == "the user as Curie":
        said = agree(here, id, "--as", "Curie", typed=True)
    else:
        said = agree(here, id, "--as", "Curie", "--insist", session=bohr)
    assert said.json["warnings"] == []
    assert here("converged", thread).status == 0
    assert "decides" not in here("thread", thread, "--json").json["signals"][1]
    assert here("gate", "--wu", "WU-7", session=curie).status == 0 or who == "another agent for Curie"


def test_every_clone_decides_alike(tmp_path: Path) -> None:
    """Another clone, which knows Planck's sessions from their records alone, counts its agreement for nobody, either."""
    hub = Hub(tmp_path)
    planck, curie = hub.clone("Planck"), hub.clone("Curie")
    curie.sync()
    planck.sync()
    asks = ("--to", curie.session, "--intent", "PROPOSE", "--json")
    signal = planck("signal", "Shall we?", *asks).json["signal"]
    planck("session", "end")
    started = planck("session", "start", "--agent-identity", planck.identity, "--json")
    planck.session = started.json["session_id"]
    answer = planck(
        "reply", signal["signal_id"], "ok", "--agree", "--insist", "--as", curie.identity, "--json"
    )
    assert answer.json["signal"]["via"] == planck.session, answer
    planck.sync()
    curie.sync()
    found = [each("converged", signal["thread_id"], "--json").json for each in (planck, curie)]
    assert [each["pending"] for each in found] == [[curie.identity]] * 2


# A session that acts with `--as` of another: whose mail is read, and what shows who it was.


@pytest.fixture
def sessions(here: Place) -> tuple[str, str, str]:
    """Planck, Curie and Noether."""
    return here.start("Planck"), here.start("Curie"), here.start("Noether")


def ask(here: Place, session: str, to: str) -> str:
    words = ("--to", to, "--intent", "PROPOSE", "--requires-ack", "--json")
    return str(here("signal", "Shall we?", *words, session=session).json["signal"]["signal_id"])


@pytest.mark.parametrize("answer", [("ok", "--agree", "--insist"), ("hm",)])
def test_an_answer_in_anothers_name_reads_nothing_for_it(
    here: Place, sessions: tuple[str, str, str], answer: tuple[str, ...]
) -> None:
    """An answered question stays in the inbox of whoever was asked, and still blocks its push."""
    planck, curie, noether = sessions
    id = ask(here, planck, "Curie")
    said = here("reply", id, *answer, "--as", "Curie", "--json", session=noether)
    assert said.json["signal"]["via"] == noether, said
    assert here("inbox", "--count", session=curie).out == "1\n"
    assert [each["signal_id"] for each in here("inbox", "--json", session=curie).json["signals"]] == [id]
    assert here("inbox", "--count", session=curie).out == "0\n"


@pytest.mark.parametrize("as_", ["Curie", PERSON])
def test_every_signal_in_anothers_name_says_who_recorded_it(
    here: Place, sessions: tuple[str, str, str], as_: str
) -> None:
    """A proposal and a plain word too, and the reader sees it in its inbox, in the thread and in a watch."""
    planck, _, noether = sessions
    for words in (("--intent", "PROPOSE"), ()):
        said = here("signal", "As you like", "--to", "Planck", *words, "--as", as_, "--json", session=noether)
        assert said.json["signal"]["via"] == noether, said
    mark = f"recorded by {noether} in the sender's name"
    assert here("inbox", "--for", "Planck", session=noether).out.count(mark) == 2
    assert here("thread", said.json["signal"]["signal_id"], session=planck).out.count(mark) == 1
    assert here("inbox", session=planck).out.count(mark) == 2


def test_reading_as_another_only_looks(here: Place, sessions: tuple[str, str, str]) -> None:
    """A session that a variable names sees the mail of another, is told so, and leaves it unread."""
    planck, curie, noether = sessions
    ask(here, planck, "Curie")
    for as_ in ("Curie", curie):
        said = here("inbox", "--as", as_, session=noether)
        assert "Shall we?" in said.out and "Noether. Nothing is marked as delivered." in said.out, said
    assert here("inbox", "--count", session=curie).out == "1\n"
    assert "Shall we?" in here("inbox", "--as", "Curie", session=curie).out  # itself
    assert here("inbox", "--count", session=curie).out == "0\n"


def test_without_a_variable_as_says_who_reads(here: Place, sessions: tuple[str, str, str]) -> None:
    """A script that works for several agents in turn names each of them."""
    planck, curie, _ = sessions
    ask(here, planck, "Curie")
    assert "a look" not in here("inbox", "--as", curie).out
    assert here("inbox", "--count", session=curie).out == "0\n"
