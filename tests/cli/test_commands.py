"""Each command as people and agents use it: what it prints, and what it leaves behind."""

from __future__ import annotations

import io
import json
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.commands.demo import Agent, Sandbox
from gitmem import records
from gitmem.errors import GitmemError

from ..page.test_page_server import data_of
from .conftest import Run

Start = Callable[..., str]
Git = Callable[..., str]


class Stdin:
    """A standard input that holds these bytes."""

    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)

    def isatty(self) -> bool:
        return False


def test_a_roster_of_any_form_names_the_command_for_the_rest(run: Run) -> None:
    """JSON has the same limit as text."""
    for name in "Planck", "Bohr":
        run("session", "start", "--name", name)
    for words in ("roster", "--all"), ("roster", "--all"):
        found = run(*words, "--limit", "1", "--json").json
        assert (len(found["sessions"]), found["more"]) == (1, 1)
        assert found["next"][-1] == " ".join(("gitmem", *words, "--limit", "2"))
        assert "1 more not shown." in run(*words, "--limit", "1").out
        assert len(run(*words, "--limit", "2", "--json").json["sessions"]) == 2


def test_a_session_s_last_line_is_the_export_of_its_id(run: Run) -> None:
    """So that `eval "$(gitmem session start | tail -1)"` works."""
    said = run("session", "start", "--name", "Planck")

    last = said.out.splitlines()[-1]
    assert last.startswith("export GITMEM_SESSION=sess-")
    assert run("whoami", "--json", session=last.rpartition("=")[2]).json["display_name"] == "Planck"


def test_a_session_s_json_has_the_fields_of_its_shape(run: Run) -> None:
    """All of them, null where there is nothing, in that order."""
    found = run("session", "start", "--json").json

    fields = ["session_id", "agent_identity", "display_name", "reader_identity", "worktree", "wu_id", "lane"]
    assert [key for key in found if key in fields] == fields
    assert found["agent_identity"] is None
    assert list(found)[-1] == "next"


def test_an_identity_may_come_from_the_environment(run: Run) -> None:
    """GITMEM_AGENT_IDENTITY stands for the option."""
    assert run("session", "start", "--json", GITMEM_AGENT_IDENTITY="a:b:c").json["agent_identity"] == "a:b:c"


@pytest.mark.parametrize("variable", ["CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID", "GEMINI_SESSION_ID"])
def test_a_harness_session_is_found_again(variable: str, run: Run) -> None:
    """The same harness session is the same session of ours, without GITMEM_SESSION."""
    first = run("session", "start", "--json", **{variable: "harness-1"}).json["session_id"]

    assert run("session", "start", "--json", **{variable: "harness-1"}).json["session_id"] == first
    assert run("whoami", "--json", **{variable: "harness-1"}).json["session_id"] == first
    quickly = run("inbox", "--count", **{variable: "harness-1"})
    assert (quickly.status, quickly.out) == (0, "0\n")


@pytest.mark.usefixtures("commits")
def test_a_signal_travels(run: Run, start: Start) -> None:
    """Sent, shown in its frame, answered, agreed."""
    planck, curie = start("Planck"), start("Curie")
    sent = run("signal", "Shall we?\nReally?", "--to", "Curie", "--intent", "propose", "--requires-ack",
               "--json", session=planck).json  # fmt: skip
    signal_id = sent["signal"]["signal_id"]
    assert sent["commit"] and sent["recorded"]
    assert sent["resolved"][0]["display_name"] == "Curie"

    shown = run("inbox", session=curie)
    head = next(line for line in shown.out.splitlines() if line.startswith("["))
    assert head.startswith("[test:worker:planck · PROPOSE · ")
    assert "| Shall we?\n| Really?\n" in shown.out
    assert f"gitmem reply {signal_id} " in shown.out
    assert run("converged", signal_id).status == 1
    assert run("inbox", "--count", session=curie).out == "0\n"

    assert run("reply", signal_id, "Yes.", "--agree", session=curie).status == 0
    found = run("converged", signal_id, "--json")
    assert found.status == 0
    assert found.json["converged"] is True
    assert found.json["agreed"] == ["test:worker:curie"]
    assert "Shall we?" in run("thread", signal_id).out
    assert "| Shall we?" in run("show", signal_id).out
    assert "Planck → Curie: PROPOSE Shall we?" in run("log").out
    listed = run("roster", "--json").json["sessions"]
    assert {each["display_name"]: each["unread"] for each in listed} == {"Planck": 1, "Curie": 0}


def test_a_message_may_come_from_standard_input(
    run: Run, monkeypatch: pytest.MonkeyPatch, start: Start
) -> None:
    """As it is, newline and all."""
    planck = start("Planck")
    monkeypatch.setattr(sys, "stdin", Stdin("naïve\n→ two\n".encode()))

    assert (
        run("signal", "-", "--broadcast", "--json", session=planck).json["signal"]["message"]
        == "naïve\n→ two\n"
    )


def test_standard_input_that_is_not_utf8_is_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch, start: Start
) -> None:
    """With a sentence, and nothing is written."""
    planck = start("Planck")
    monkeypatch.setattr(sys, "stdin", Stdin(b"na\xefve"))

    said = run("signal", "-", "--broadcast", session=planck)

    assert said.status == 2
    assert "not valid UTF-8" in said.err


def test_an_argument_that_is_not_utf8_is_refused(run: Run, start: Start) -> None:
    """Python hands such bytes on as surrogates."""
    planck = start("Planck")

    assert run("signal", "na\udcefve", "--broadcast", session=planck).status == 2


@pytest.mark.parametrize("args", [["signal", "Hello", "--to", ""], ["signal", "Hello", "--to", "Curie,"]])
def test_an_empty_recipient_is_an_error_and_never_a_broadcast(
    args: list[str], run: Run, start: Start
) -> None:
    """A script with an empty variable must not tell everybody."""
    planck = start("Planck")
    start("Curie")

    assert run(*args, session=planck).status == 2
    assert "Hello" not in run("log").out


def test_quiet_prints_only_the_id(run: Run, start: Start) -> None:
    """For scripts."""
    planck = start("Planck")

    out = run("signal", "Hello", "--broadcast", "-q", session=planck).out

    assert out.startswith("sig-") and len(out.split()) == 1


def test_no_mark_leaves_it_unread(run: Run, start: Start) -> None:
    """And so does a look into somebody else's inbox."""
    planck, curie = start("Planck"), start("Curie")
    run("signal", "Hello", "--to", "Curie", session=planck)

    run("inbox", "--no-mark", session=curie)
    looked = run("inbox", "--for", "Curie", session=planck)

    assert "Nothing is marked" in looked.out
    assert run("inbox", "--count", session=curie).out == "1\n"


def test_count_heeds_the_filters(run: Run, start: Start) -> None:
    """The number of those that would be shown."""
    planck, curie = start("Planck"), start("Curie")
    run("signal", "one", "--to", "Curie", "--wu", "WU-1", session=planck)
    run("signal", "two", "--to", "Curie", "--wu", "WU-2", session=planck)

    assert run("inbox", "--count", "--wu", "WU-2", session=curie).out == "1\n"
    assert run("inbox", "--count", session=curie).out == "2\n"


@pytest.mark.usefixtures("commits")
def test_converged_waits_for_the_last_answer(run: Run, start: Start, repo: Path) -> None:
    """It looks again as the log changes."""
    planck, curie = start("Planck"), start("Curie")
    proposal = run("signal", "Shall we?", "--to", "Curie", "-q", session=planck).out.strip()
    root = Path(__file__).resolve().parents[2]
    code = f"import sys; sys.path.insert(0, {str(root)!r}); from cli.main import main; sys.exit(main())"

    def answer() -> None:
        command = [
            sys.executable,
            "-P",
            "-c",
            code,
            "-C",
            str(repo),
            "--as",
            curie,
            "reply",
            proposal,
            "Yes",
            "--agree",
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=60)

    teller = threading.Timer(0.1, answer)
    teller.start()
    began = time.monotonic()
    said = run("converged", proposal, "--wait", "30s")
    teller.join()

    assert said.status == 0
    assert time.monotonic() - began < 20


def test_converged_gives_up_in_time(run: Run, start: Start) -> None:
    """And says what there is."""
    planck, _ = start("Planck"), start("Curie")
    proposal = run("signal", "Shall we?", "--to", "Curie", "-q", session=planck).out.strip()

    said = run("converged", proposal, "--wait", "0.1s", "--json")

    assert said.status == 1
    assert said.json["pending"] == ["test:worker:curie"]


def test_sync_says_what_became_of_each_remote(
    run: Run, start: Start, repo: Path, git: Git, tmp_path: Path
) -> None:
    """Its shape is the same when it fails, with exit status 5."""
    start("Planck")
    assert run("sync", "--json").json["error"]["code"] == "no-remote"
    git("init", "--quiet", "--bare", str(tmp_path / "hub.git"))
    git("remote", "add", "origin", str(tmp_path / "hub.git"), cwd=repo)
    git("push", "--quiet", "origin", "main", cwd=repo)

    good = run("sync", "--publish", "--json")
    assert good.status == 0
    assert list(good.json["remotes"][0]) == [
        "name",
        "state",
        "received",
        "sent",
        "safe",
        "outbox",
        "attempts",
        "rejections",
        "tip",
        "left_out",
        "message",
        "url",
        "unpublished",
        "kinds",
        "records",
    ]
    assert good.json["remotes"][0]["state"] == "synced"
    git("remote", "set-url", "origin", str(tmp_path / "gone.git"), cwd=repo)
    bad = run("sync", "--json")
    assert bad.status == 5
    assert bad.json["remotes"][0]["state"] in ("offline", "refused")


@pytest.mark.usefixtures("commits")
def test_a_signal_is_kept_though_its_sync_fails(
    run: Run, start: Start, repo: Path, git: Git, tmp_path: Path
) -> None:
    """What was recorded is no failure: a retry would say it twice."""
    planck = start("Planck")
    git("remote", "add", "origin", str(tmp_path / "gone.git"), cwd=repo)

    said = run("signal", "Hello", "--broadcast", "--sync", "--json", session=planck)

    assert said.status == 0
    assert said.json["pushed"] is False
    assert said.json["commit"]
    assert any("Not synced" in warning for warning in said.json["warnings"])


def test_setup_and_remove_leave_the_config_as_it_was(
    run: Run, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Byte for byte; and the program is named by its absolute path."""
    before = (repo / ".git" / "config").read_bytes()
    program = tmp_path / "bin" / "gitmem-merge"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "bin" / "gitmem")])

    said = run("setup", "--json")
    assert said.status == 0
    assert str(program) in (repo / ".git" / "config").read_text()
    assert run("setup").status == 0

    assert run("remove").status == 0
    assert (repo / ".git" / "config").read_bytes() == before


@pytest.mark.usefixtures("commits")
def test_doctor_says_what_to_do_about_each_finding(
    run: Run, start: Start, repo: Path, git: Callable[..., str]
) -> None:
    """Exit status 0 with notes alone."""
    start("Planck")
    run("log")  # commits
    git("branch", "gitmem", "refs/gitmem/log", cwd=repo)  # may be merged by hand, without our driver

    said = run("doctor", "--json")

    assert said.status == 0, said
    assert {"code", "what", "where", "fix"} <= set(said.json["findings"][0])
    assert "do: gitmem setup" in run("doctor").out


def test_schemas_are_json_schema(run: Run, tmp_path: Path) -> None:
    """One of a kind, or all by kind, with the objects in them."""
    one = run("schema", "signal", cwd=tmp_path)
    assert "message" in json.loads(one.out)["properties"]
    assert set(json.loads(run("schema", cwd=tmp_path).out)) == {*records.KINDS, *records.OBJECTS}
    assert run("schema", "nonsense", cwd=tmp_path).status == 2
    assert all(kind in run("schema", "--help").out for kind in records.KINDS)


@pytest.mark.deep
def test_the_demo_plays_to_its_end(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside any repository, with no identity; it stays in the one folder that it names, and the next command shows it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    said = run("demo", cwd=tmp_path)

    assert said.status == 0, said
    assert "converged: thread-" in said.out
    assert "(exit 1)" in said.out
    assert "Gauss was asked as reviewer/general and works as implementer/general" in said.out
    assert "The commit was stopped: others claim paths that you change" in said.out
    call = said.out.rpartition("$ gitmem call rules ")[2]
    handed = "handed over: memory 1,"
    assert "]: Round once per line, as invoices do\n" in call.partition(handed)[0] and handed in call
    assert "* " in said.out.rpartition("git log --graph")[2]
    (folder,) = tmp_path.glob("gitmem-demo-*")
    page = folder / "page.html"
    assert f"All of it in one page, for your browser: {page}" in said.out
    assert f"Look around in {folder}, and delete it when you like." in said.out
    assert run("-C", str(folder / "project"), "log").status == 0
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    data = data_of(page.read_bytes())
    assert len(data["signals"]) == 8 and {each["state"] for each in data["tasks"]} == {"working", "completed"}


def test_every_command_has_help_and_takes_the_common_options(run: Run) -> None:
    """--json, -C and --as everywhere."""
    from cli.app import build

    def commands(group: object, *path: str) -> list[tuple[str, ...]]:
        found = []
        for name, command in group.commands.items():  # type: ignore[attr-defined]
            if hasattr(command, "commands"):
                found += commands(command, *path, name)
            else:
                found.append((*path, name))
                assert command.help
                options = {option for each in command.params for option in each.opts}
                assert {"--json", "-C", "--as"} <= options, name
        return found

    named = commands(build())

    assert len(named) >= 20
    assert run(*named[0], "--help").status == 0


def test_of_a_long_thread_the_first_and_the_last_signals_are_shown(
    run: Run, start: Callable[..., str]
) -> None:
    """201 signals were 33 KB in an agent's context."""
    planck, curie = start("Planck"), start("Curie")
    root = run("signal", "root", "--to", "Curie", "--json", session=planck).json["signal"]
    for number in range(5):
        run("reply", root["signal_id"], f"reply {number}", session=curie)

    said = run("thread", root["signal_id"], "--limit", "3").out

    assert said.startswith(f"{root['thread_id']} · 6 signals\n\n[Planck ")
    assert [line[2:] for line in said.splitlines() if line.startswith("| ")] == ["root", "reply 3", "reply 4"]
    assert said.index("| root") < said.index("\n3 more not shown; use --limit N\n") < said.index("| reply 3")
    assert len(run("thread", root["signal_id"], "--json").json["signals"]) == 6
    assert run("thread", root["signal_id"], "--limit", "2", "--json").json["more"] == 4
    assert run("thread", root["signal_id"], "--limit", "1").out.count("| ") == 1


def test_the_log_since_a_time(run: Run, start: Start) -> None:
    """An ISO time includes the record of that time; a duration counts back from now."""
    start("Planck")
    said = [run("signal", text, "--broadcast", "--json").json["signal"] for text in ("one", "two")]
    ids = [each["signal_id"] for each in said]

    found = run("log", "--since", said[1]["created_at"], "--json").json["entries"]

    assert [each["signal_id"] for each in found] == ids[1:]
    assert {*ids} <= {each.get("signal_id") for each in run("log", "--since", "1h", "--json").json["entries"]}
    assert run("log", "--since", "2999-01-01").out.startswith("No records match.\n")
    refused = run("log", "--since", "soon")
    assert refused.status == 2
    assert "Invalid time: 'soon'" in refused.err


@pytest.mark.parametrize(
    ("where", "next_command"), [("project", "gitmem -C {} doctor"), (".", "gitmem demo")]
)
def test_a_demo_that_fails_names_a_command_that_runs(tmp_path: Path, where: str, next_command: str) -> None:
    """Before its project is there, nothing can be looked at."""
    (tmp_path / where).mkdir(exist_ok=True)
    with pytest.raises(GitmemError) as error:
        Sandbox(str(tmp_path), lambda lines: None).run(Agent("."), "git no-such-command")
    assert error.value.next == [next_command.format(tmp_path / "project")]
