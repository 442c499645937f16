"""The hook script: what it starts gitmem for, in every layout of a repository and under every shell."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gitmem.agents import edited_paths
from gitmem.clients import client_scope, clients, events

from ...hook_agents import SHELL, note_program, user_state

SHELLS = [
    shell
    for shell in (
        ("dash",),
        ("bash", "--posix"),
        ("bash",),
        ("busybox", "sh"),
        ("zsh", "--emulate", "sh"),
        ("ksh",),
    )
    if shutil.which(shell[0])
] or [("sh",)]
ID = "0b1c2d3e-4f50"
CLIENTS = list(events.EVENTS)


class Place:
    """A repository with a state folder, and a program that notes how it was called."""

    def __init__(self, folder: Path, state: Path) -> None:
        self.folder = folder
        self.state = state
        for name in ("flags", "beats", "spool"):
            (state / name).mkdir(parents=True, exist_ok=True)
        self.calls = state / "calls"
        self.program = Path(os.environ["XDG_STATE_HOME"], "program of the test")
        self.program.parent.mkdir(exist_ok=True)
        self.program.write_text(f'#!/bin/sh\nprintf "%s " "$@" >>"{self.calls}"\ncat >>"{self.calls}"\n')
        self.program.chmod(0o755)
        note_program(state, self.program)

    def run(
        self,
        event: str,
        *,
        client: str = "claude-code",
        shell: tuple[str, ...] = (SHELL,),
        cwd: Path | None = None,
        path: str | None = None,
        input: bytes = b"",
        **env: str,
    ) -> str:
        """What gitmem was asked, or an empty text; the script itself says nothing and ends with 0."""
        self.calls.unlink(missing_ok=True)
        file = self.folder.parent / f"{client}.sh"
        file.write_text(client_scope.script_text(client))
        variable = events.SESSION_VARIABLES.get(client)
        given = {
            "PATH": os.environ["PATH"] if path is None else path,
            "XDG_STATE_HOME": os.environ["XDG_STATE_HOME"],
            **({variable: ID} if variable else {}),
            **env,
        }
        done = subprocess.run(
            [shutil.which(shell[0]) or shell[0], *shell[1:], str(file), event],
            cwd=cwd or self.folder, env=given, input=input, capture_output=True, timeout=30,
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        return self.calls.read_text() if self.calls.exists() else ""

    def flag(self, name: str = ID, content: str = "urgent\n") -> Path:
        path = self.state / "flags" / name
        path.write_text(content)
        return path


@pytest.fixture
def place(repo: Path) -> Place:
    return Place(repo, repo / ".git" / "gitmem")


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@pytest.mark.parametrize("client", CLIENTS)
def test_it_asks_gitmem_only_where_there_is_something(
    place: Place, client: str, shell: tuple[str, ...]
) -> None:
    """Nothing: not a word to gitmem. A flag of this session: gitmem, with the client, the event and the input."""
    (event, *_) = events.names(client, events.TOOL)
    ours = f"{client}.sh" if client == "cline" else event  # its hooks are called by their names
    if client not in events.SESSION_VARIABLES:
        (place.state / "here").mkdir()
        (place.state / "here" / client).write_text(f"sess-other\n{ID}\n")
    if client == "cline":
        place.folder.parent.joinpath("PostToolUse").write_text(client_scope.script_text("cline"))

    def run() -> str:
        if client != "cline":
            return place.run(event, client=client, shell=shell, input=b'{"a":1}')
        place.calls.unlink(missing_ok=True)
        done = subprocess.run(
            [*shell, str(place.folder.parent / "PostToolUse")],
            cwd=place.folder, input=b'{"a":1}', capture_output=True, timeout=30,
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), ours
        return place.calls.read_text() if place.calls.exists() else ""

    assert run() == ""
    place.flag("somebody-else")
    assert run() == ""
    place.flag()
    assert run() == f'hook {client} {event} {{"a":1}}'


@pytest.mark.parametrize("client", CLIENTS)
def test_starts_and_ends_are_always_told(place: Place, client: str) -> None:
    if client == "cline":
        return  # by name alone: see above
    for kind in (events.START, events.END):
        for event in events.names(client, kind):
            assert place.run(event, client=client) == f"hook {client} {event} "


def test_the_end_of_a_turn_waits_for_what_may_interrupt_alone(place: Place) -> None:
    """An empty flag is news for everybody: a tool call takes it along, an agent that is done is left alone."""
    place.flag(content="")

    assert place.run("Stop") == ""
    assert place.run("PostToolUse") == "hook claude-code PostToolUse "
    place.flag()
    assert place.run("Stop") == "hook claude-code Stop "


def test_a_session_that_the_user_named_counts_too(place: Place) -> None:
    place.flag("sess-abcd1234")

    assert place.run("PostToolUse", GITMEM_SESSION="sess-abcd1234") != ""
    assert place.run("PostToolUse", GITMEM_SESSION="../flags/sess-abcd1234") == ""


def test_without_an_id_a_turn_asks_for_any_flag_and_a_tool_for_those_of_the_worktree(
    place: Place,
) -> None:
    """Codex tells its hooks no session: those of another worktree start nothing at every tool call."""
    (place.state / "here").mkdir()
    (place.state / "here" / "codex").write_text("sess-here\n")
    (place.state / "here" / "codex-linked").write_text("sess-there\n")
    place.flag("sess-there")

    assert place.run("PostToolUse", client="codex") == ""
    assert place.run("Stop", client="codex") == "hook codex Stop "
    place.flag("sess-here")
    assert place.run("PostToolUse", client="codex") == "hook codex PostToolUse "


def test_a_prompt_of_a_session_that_nobody_knows_is_told(place: Place) -> None:
    """Once: its start was before the hooks'. A tool call, or the end of a turn, is no time to begin."""
    for client in ("claude-code", "codex"):
        assert (
            place.run(
                "PostToolUse" if client == "codex" else "Stop", client=client, CLAUDE_CODE_SESSION_ID="new"
            )
            == ""
        )
    (place.state / "beats" / "new").unlink()
    assert place.run("UserPromptSubmit", CLAUDE_CODE_SESSION_ID="new") == "hook claude-code UserPromptSubmit "
    assert place.run("UserPromptSubmit", CLAUDE_CODE_SESSION_ID="new") == ""
    assert place.run("UserPromptSubmit", client="codex", input=b"{}") == "hook codex UserPromptSubmit {}"


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_it_has_a_clone_synced_that_is_to_sync_by_itself_when_that_is_due(
    place: Place, shell: tuple[str, ...]
) -> None:
    """So what others wrote comes to an agent that writes nothing; news of this agent come first, and gitmem sees to both."""

    def due(seconds: float) -> None:
        at = time.time() + seconds
        os.utime(place.state / "autosync" / "next", (at, at))

    assert place.run("PostToolUse", shell=shell) == ""  # where it is off
    assert not (place.state / "autosync").exists()

    (place.state / "autosync").mkdir()  # switched off again
    assert place.run("PostToolUse", shell=shell) == ""
    assert [*(place.state / "autosync").iterdir()] == []
    (place.state / "autosync" / "next").touch()
    due(+60)
    assert place.run("PostToolUse", shell=shell) == ""
    due(-60)
    place.run("PostToolUse", shell=shell)
    deadline = time.monotonic() + 30
    while not place.calls.exists() or place.calls.read_text() != "background autosync ":
        assert time.monotonic() < deadline
        time.sleep(0.01)
    place.flag()
    assert place.run("PostToolUse", shell=shell) == "hook claude-code PostToolUse "


def test_the_heart_beats_at_every_call_and_of_one_session_alone(place: Place) -> None:
    """Without a program: a file that is touched. Two sessions that can't be told apart are not said to be alive."""
    beat = place.state / "beats" / ID

    place.run("PostToolUse")
    assert beat.exists()
    os.utime(beat, (1, 1))
    place.run("PostToolUse")
    assert beat.stat().st_mtime > 1_000_000_000

    (place.state / "here").mkdir()
    (place.state / "here" / "codex").write_text("sess-one\n")
    place.run("PostToolUse", client="codex")
    assert (place.state / "beats" / "sess-one").exists()
    (place.state / "here" / "codex").write_text("sess-two\nsess-three\n")
    place.run("PostToolUse", client="codex")
    assert {path.name for path in (place.state / "beats").iterdir()} == {ID, "sess-one"}


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@pytest.mark.parametrize("client", [each for each in CLIENTS if each != "cline"])
def test_a_quiet_hook_renews_claims_of_its_session_when_that_is_due(
    place: Place, client: str, shell: tuple[str, ...]
) -> None:
    """Not before, and not those of others; without a session in the environment for the only one of the worktree."""
    (event, *_) = events.names(client, events.TOOL)
    if client not in events.SESSION_VARIABLES:
        (place.state / "here").mkdir()
        (place.state / "here" / client).write_text(f"{ID}\n")
    due = place.state / "claims" / "due"
    due.mkdir(parents=True)
    for name, at in (("somebody-else", -60), (ID, 60)):
        (due / name).touch()
        os.utime(due / name, (time.time() + at, time.time() + at))
    assert place.run(event, client=client, shell=shell) == ""
    os.utime(due / ID, (time.time() - 60, time.time() - 60))
    assert place.run(event, client=client, shell=shell) == f"hook {client} {event} "


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@pytest.mark.parametrize("client", [each for each in CLIENTS if each != "cline"])
def test_at_the_end_of_a_turn_it_has_edits_noticed_where_somebody_wants_to_know(
    place: Place, client: str, shell: tuple[str, ...]
) -> None:
    """In the background, and not at tool calls."""
    kind = events.PROMPT if client in events.NO_STOP else events.STOP
    (event, *_), (tool, *_) = events.names(client, kind), events.names(client, events.TOOL)
    if kind == events.PROMPT:
        place.run(event, client=client, shell=shell)  # it begins the session
    assert place.run(event, client=client, shell=shell) == ""
    (place.state / "edits").mkdir()
    (place.state / "edits" / "wanted").touch()
    assert place.run(tool, client=client, shell=shell) == ""
    place.run(event, client=client, shell=shell)
    deadline = time.monotonic() + 30
    while not place.calls.exists() or place.calls.read_text() != f"hook {client} {event} edits ":
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@pytest.mark.parametrize(
    "client", [each for each in CLIENTS if events.names(each, events.EDIT) and each != "cline"]
)
def test_in_a_worktree_of_several_sessions_an_edit_keeps_its_input_for_later(
    place: Place, client: str, shell: tuple[str, ...]
) -> None:
    """For this user alone, and no more than its beginning. gitmem starts only once too many are kept."""
    (edit, *_) = events.names(client, events.EDIT)
    asked = {"client": client, "shell": shell, "input": b"{" + b"x" * 100_000}
    assert place.run(edit, **asked, GITMEM_SESSION="sess-1") == ""  # type: ignore[arg-type]
    kept = place.state / "edits" / "inputs" / "in-.git"
    kept.mkdir(parents=True)
    assert place.run(edit, **asked, GITMEM_SESSION="sess-1") == ""  # type: ignore[arg-type]
    assert place.run(edit, **asked, GITMEM_SESSION="../x") == ""  # type: ignore[arg-type]
    names = sorted(each.name.rpartition("+")[0] for each in kept.iterdir())
    assert names == [f"{client}+", f"{client}+sess-1"]
    for each in kept.iterdir():
        assert each.stat().st_mode & 0o777 == 0o600
        assert each.read_bytes() == asked["input"][: edited_paths.INPUT_MAX_BYTES]  # type: ignore[index]
    (place.state / "hook-stuck").touch()
    assert place.run(edit, **asked) == ""  # type: ignore[arg-type]
    assert len(list(kept.iterdir())) == 2
    (place.state / "hook-stuck").unlink()
    for number in range(edited_paths.INPUTS_MAX):
        (kept / f"{number}").touch()
    assert place.run(edit, **asked).startswith(f"hook {client} {edit} {{xxx")  # type: ignore[arg-type]


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_an_edit_is_not_kept_in_what_another_user_has_put_there(place: Place, shell: tuple[str, ...]) -> None:
    """A link would overwrite a file of this user, a pipe that nobody reads would stop the edit: gitmem reads the input instead."""
    kept = place.state / "edits" / "inputs" / "in-.git"
    kept.mkdir(parents=True)
    own, before = place.folder.parent / "own", place.folder.parent / "before.sh"
    own.write_text("mine")
    (edit, *_) = events.names("claude-code", events.EDIT)
    for plant in (f"ln -s '{own}'", f"ln -s '{own}-new'", "mkfifo"):
        before.write_text(f"{plant} '{kept}/claude-code++'$$ && exec {' '.join(shell)} \"$@\"\n")
        assert place.run(edit, shell=("sh", str(before)), input=b"{}") == f"hook claude-code {edit} {{}}"
    assert own.read_text() == "mine" and not os.path.exists(f"{own}-new")
    folder = place.folder.parent / "folder"
    folder.mkdir()
    shutil.rmtree(kept)
    kept.symlink_to(folder)
    assert place.run(edit, shell=shell, input=b"{}") == "" and not list(folder.iterdir())


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@pytest.mark.parametrize("name", [f"beats/{ID}", "autosync/look", f"prompts/{ID}", f"tool-calls/{ID}"])
def test_nothing_is_written_to_what_another_user_has_put_there(
    place: Place, name: str, shell: tuple[str, ...]
) -> None:
    """A link would empty a file of this user, a pipe that nobody reads would stop the agent."""
    own = place.folder.parent / "own"
    own.write_text("mine")
    for folder in ("autosync", "prompts", "tool-calls"):
        (place.state / folder).mkdir(exist_ok=True)
    (place.state / "autosync" / "next").touch()
    (place.state / "checkpoint-every").write_text("9")
    for keeps in (False, True):
        if keeps:
            (place.state / "keep-prompts").touch()
        for plant in (
            lambda path: path.symlink_to(own),
            lambda path: path.symlink_to(f"{own}-new"),
            os.mkfifo,
        ):
            (place.state / name).unlink(missing_ok=True)
            plant(place.state / name)
            for kind in (events.PROMPT, events.TOOL):
                (event, *_) = events.names("claude-code", kind)
                place.run(event, shell=shell, input=b"{}")
    assert own.read_text() == "mine" and not os.path.exists(f"{own}-new")


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@pytest.mark.parametrize("client", [each for each in CLIENTS if each != "cline"])
def test_an_edit_asks_gitmem_only_where_somebody_else_claims(
    place: Place, client: str, shell: tuple[str, ...]
) -> None:
    """Nothing claimed, or only by this worktree's own session: no program starts. Other tools never ask for claims."""
    (event, *_) = events.names(client, events.EDIT) or events.names(client, events.TOOL)
    (tool, *_) = events.names(client, events.TOOL)
    linked = place.folder.parent / "linked of claims"
    git = place.folder / ".git" / "worktrees" / "linked"
    for path in (linked, git):
        path.mkdir(parents=True)
    (linked / ".git").write_text(f"gitdir: {git}\n")
    (git / "commondir").write_text("../..\n")

    def asks(event: str = event, cwd: Path = place.folder) -> bool:
        folder = events.FOLDER_VARIABLES.get(client)
        return (
            place.run(event, client=client, shell=shell, cwd=cwd, **({folder: str(cwd)} if folder else {}))
            != ""
        )

    assert not asks()
    own = place.state / "claims" / "only-own"
    own.mkdir(parents=True)
    (place.state / "claims" / "claimed").touch()
    assert asks() and asks(cwd=linked)
    assert asks(tool) is (event == tool)
    (own / "in-.git").touch()
    assert not asks() and asks(cwd=linked)
    (own / "in-linked").touch()
    assert not asks(cwd=linked)
    (own / "in-.git").unlink()
    (place.state / "hook-stuck").touch()
    assert not asks()


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@pytest.mark.parametrize(
    "client", [each for each in CLIENTS if each != "cline"]
)  # it is called by its name alone
def test_every_so_many_tool_calls_gitmem_saves_a_checkpoint(
    place: Place, client: str, shell: tuple[str, ...]
) -> None:
    """Only while the file says so, with the input, and beside signals; prompts and turns are not counted."""
    (event, *_) = events.names(client, events.TOOL)

    def calls(number: int, event: str = event) -> list[str]:
        return [place.run(event, client=client, shell=shell, input=b"{}") for _ in range(number)]

    assert calls(4) == [""] * 4
    (place.state / "tool-calls").mkdir()
    (place.state / "checkpoint-every").write_text("3\n")
    asked = f"hook {client} {event} checkpoint {{}}"
    assert calls(2) == ["", ""]
    assert calls(2, *events.names(client, events.STOP)[:1]) == ["", ""]
    (place.state / "hook-stuck").touch()  # once a turn is enough
    assert calls(2) == ["", ""]
    (place.state / "hook-stuck").unlink()
    assert calls(4) == [asked, "", "", asked]
    (place.state / "checkpoint-every").unlink()
    assert calls(4) == [""] * 4


def test_calls_that_run_at_once_are_all_counted(place: Place) -> None:
    """Each hook is a process of its own: of forty with thirty to count, one or those of the same moment save."""
    (place.state / "tool-calls").mkdir()
    (place.state / "checkpoint-every").write_text("30")
    place.run("PostToolUse")
    script_file = place.folder.parent / "claude-code.sh"
    env = {
        "PATH": os.environ["PATH"],
        "XDG_STATE_HOME": os.environ["XDG_STATE_HOME"],
        "CLAUDE_CODE_SESSION_ID": ID,
    }
    for size, saved in ((28, False), (1, True)):
        started = [
            subprocess.Popen(
                [SHELL, str(script_file), "PostToolUse"], cwd=place.folder, env=env, stdin=subprocess.DEVNULL
            )
            for _ in range(size)
        ]
        assert [each.wait(30) for each in started] == [0] * size
        assert place.calls.exists() == saved
    assert (place.state / "tool-calls" / ID).read_bytes() == b""


HOSTILE = [
    b"\n",
    b"\nx" * 2_000,
    b"\0" * 500,
    b"$(touch evil)a[$(touch evil)]`touch evil`",
    b"\xff\xfe" * 40,
    b"9" * 200_000,
]


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_no_content_of_the_counters_is_evaluated_or_read_twice(place: Place, shell: tuple[str, ...]) -> None:
    """Whatever is in the files: no word, no command, at most one needless start; then it counts as usual."""
    counter = place.state / "tool-calls" / ID
    counter.parent.mkdir()
    every = place.state / "checkpoint-every"
    for content in (b"", b"0x", b"-1", b"1e3", b"10000", b"a[$(touch evil)]", b"30 -o 1", *HOSTILE):
        every.write_bytes(content)
        assert place.run("PostToolUse", shell=shell) == "", content
        assert not counter.exists(), content
    every.write_text("30\n")
    for content in HOSTILE:
        counter.write_bytes(content)
        seen = [place.run("PostToolUse", shell=shell) for _ in range(31)]
        assert 1 <= len([each for each in seen if each]) <= 2, content
        assert counter.stat().st_size < 31, content
    assert not list(place.folder.rglob("evil"))


@pytest.mark.parametrize("kind", ["link", "folder", "pipe", "no folder"])
def test_a_counter_that_is_not_a_file_counts_nothing(place: Place, tmp_path: Path, kind: str) -> None:
    """A link would have another file emptied, a pipe would hold the agent."""
    counter = place.state / "tool-calls" / ID
    (place.state / "checkpoint-every").write_text("1")
    other = tmp_path / "other"
    other.write_text("of the user")
    if kind != "no folder":
        counter.parent.mkdir()
    if kind == "link":
        counter.symlink_to(other)
    elif kind == "folder":
        counter.mkdir()
    elif kind == "pipe":
        os.mkfifo(counter)

    assert place.run("PostToolUse") == ""
    assert other.read_text() == "of the user"


def test_what_a_sandbox_left_is_a_reason_wherever_it_is(place: Place, tmp_path: Path) -> None:
    """In one of the folders outside; receipts are none, nor is an empty generation; once a turn where it failed."""
    outside = tmp_path / "left outside"
    outside.mkdir()
    (place.state / "wal-folders").write_text(f"{tmp_path}/none\n{outside}\n")
    assert place.run("PostToolUse") == ""

    for name in ("00000000000000001.wal1", "00000000000000003.wal1"):
        (outside / "00000000000000001.deferred1").write_text("receipts\n")
        (outside / "00000000000000002.wal1").touch()
        assert place.run("PostToolUse") == ""
        waiting = outside / name
        waiting.write_text("lines\n")
        assert place.run("PostToolUse") == "hook claude-code PostToolUse "
        for mark in ("hook-stuck", "hook-left"):
            (place.state / mark).touch()
            assert place.run("PostToolUse") == ""
            assert place.run("Stop") == "hook claude-code Stop "
            (place.state / mark).unlink()
        waiting.unlink()


def test_what_the_user_says_is_kept_for_this_user_alone(place: Place) -> None:
    """By the variable, or by the id in the JSON; gitmem reads the same input afterwards."""
    os.umask(0o022)
    (place.state / "keep-prompts").touch()
    prompt = b'{"session_id":"%s","prompt":"Fix the \\"parser\\""}' % ID.encode()
    place.run("UserPromptSubmit", input=prompt)
    place.run("UserPromptSubmit", client="codex", input=prompt.replace(ID.encode(), b"codex-1"))
    kept = place.state / "prompts"

    assert (kept / ID).read_bytes() == prompt
    assert (kept / "codex-1").read_bytes() == prompt.replace(ID.encode(), b"codex-1")
    assert {(path.name, path.stat().st_mode & 0o777) for path in kept.iterdir()} == {
        (ID, 0o600),
        ("codex-1", 0o600),
    }
    place.flag()
    assert (
        place.run("UserPromptSubmit", input=prompt) == f"hook claude-code UserPromptSubmit {prompt.decode()}"
    )


@pytest.mark.parametrize("client", ["claude-code", "codex"])
def test_what_the_user_says_is_not_stored_unless_it_is_wanted(place: Place, client: str) -> None:
    """At most that something was said; gitmem still reads the input, and what an older script stored is emptied."""
    secret = b'{"session_id":"%s","prompt":"a private matter"}' % ID.encode()
    place.flag()

    assert place.run("UserPromptSubmit", client=client, input=secret).endswith(secret.decode())

    assert not [path for path in place.state.rglob("*") if path.is_file() and b"private" in path.read_bytes()
                and path != place.calls]  # fmt: skip


@pytest.mark.parametrize("id", ["../../x", "a b", ".hidden", "", "sess\n", 'x"y', "{}"])
def test_an_odd_id_names_no_file(place: Place, id: str) -> None:
    """Neither a flag nor a beat nor a prompt: whatever the input says, nothing is written elsewhere."""
    before = sorted(place.folder.parent.rglob("*"))
    prompt = json.dumps({"session_id": id, "prompt": "p"}, separators=(",", ":")).encode()
    (place.state / "keep-prompts").touch()
    before.append(place.state / "keep-prompts")

    place.run("UserPromptSubmit", client="codex", input=prompt)
    assert place.run("PostToolUse", CLAUDE_CODE_SESSION_ID=id) == ""

    new = set(place.folder.parent.rglob("*")) - set(before)
    assert {path.name for path in new} <= {"prompts", "codex.sh", "claude-code.sh", "calls"}


@pytest.mark.parametrize("layout", ["main", "sub-folder", "linked", "submodule", "GIT_DIR", "GIT_COMMON_DIR",
                                    "symlink", "inside"])  # fmt: skip
@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
@pytest.mark.parametrize("name", ["plain", "with  spaces'\nand a line"])
def test_every_layout_of_a_repository_is_found(
    tmp_path: Path, layout: str, shell: tuple[str, ...], name: str
) -> None:
    """As git finds it, without git: where it looks is where the program of the test is."""
    top = tmp_path / name / "repo"
    git_folder = top / ".git"
    (top / "src" / "deep").mkdir(parents=True)
    cwd, env, state = top, {}, git_folder
    if layout == "sub-folder":
        cwd = top / "src" / "deep"
    elif layout == "linked":
        cwd = tmp_path / name / "other tree"
        own = git_folder / "worktrees" / "other"
        own.mkdir(parents=True)
        (own / "commondir").write_text("../..\n")
        cwd.mkdir()
        (cwd / ".git").write_text(f"gitdir: {own}\n")
    elif layout == "submodule":
        cwd = top / "src"
        state = git_folder / "modules" / "src"
        state.mkdir(parents=True)
        (state / "HEAD").touch()
        (cwd / ".git").write_text("gitdir: ../.git/modules/src\r\n")
    elif layout == "GIT_DIR":
        cwd, env = tmp_path, {"GIT_DIR": str(git_folder)}
    elif layout == "GIT_COMMON_DIR":
        state = tmp_path / "common"
        env = {"GIT_COMMON_DIR": str(state)}
    elif layout == "symlink":
        cwd = tmp_path / "link"
        cwd.symlink_to(top / "src")
    elif layout == "inside":
        cwd = git_folder
    for folder in ("objects", "refs"):
        (git_folder / folder).mkdir(parents=True)
    (git_folder / "HEAD").write_text("ref: refs/heads/main\n")
    place = Place(tmp_path / name / "repo", state / "gitmem")
    place.flag()

    assert place.run("PostToolUse", shell=shell, cwd=cwd, **env) == "hook claude-code PostToolUse "
    assert place.run("PostToolUse", shell=shell, cwd=cwd, PWD="/", **env) != ""
    if layout != "GIT_DIR":
        assert place.run("PostToolUse", shell=shell, cwd=Path("/"), CLAUDE_PROJECT_DIR=str(cwd), **env) != ""


def test_elsewhere_it_is_as_if_it_were_not_there(repo: Path, tmp_path: Path) -> None:
    """No repository, no log, a folder that is gone, a broken .git: nothing is said, made or started."""
    odd = tmp_path / "odd"
    odd.mkdir()
    (odd / ".git").write_text("nonsense\n")
    (tmp_path / "empty" / ".git").mkdir(parents=True)
    state = tmp_path / "state"
    state.mkdir()
    place = Place(repo, state)

    for cwd in (repo, tmp_path, odd, tmp_path / "empty", Path("/")):
        for event in (
            "SessionStart",
            "PostToolUse",
            "UserPromptSubmit",
            "Stop",
            "SessionEnd",
            "Nonsense",
            "",
        ):
            assert place.run(event, cwd=cwd) == ""
    assert place.run("PostToolUse", CLAUDE_PROJECT_DIR=str(tmp_path / "gone")) == ""
    assert not (repo / ".git" / "gitmem").exists()


def test_a_state_folder_that_cannot_be_written_is_no_trouble(place: Place) -> None:
    """The beat and the prompt are lost, the news is not."""
    place.flag()
    for folder in (place.state / "beats", place.state):
        folder.chmod(0o500)
    try:
        (place.state.parent / "gitmem" / "beats").chmod(0o500)
        assert place.run("PostToolUse") != "" or os.getuid()
    finally:
        for folder in (place.state, place.state / "beats"):
            folder.chmod(0o700)
    shutil.rmtree(place.state / "beats")
    (place.state / "beats").write_text("a file")
    (place.state / "prompts").write_text("a file")
    assert place.run("UserPromptSubmit", input=b"{}") == "hook claude-code UserPromptSubmit {}"


@pytest.mark.parametrize(
    "left", ["nothing", "a folder", "no interpreter", "fails", "is killed", "ends with 2"]
)
def test_a_program_that_is_broken_is_silence(place: Place, tmp_path: Path, left: str) -> None:
    """Its Python is gone, it crashes, it is killed: exit 0 and not a word. `gitmem` on the PATH stands in for it."""
    place.flag()
    texts = {"no interpreter": "#!/no/such/python\n", "fails": "#!/bin/sh\necho no >&2\nexit 1\n",
             "is killed": "#!/bin/sh\nkill -9 $$\n", "ends with 2": "#!/bin/sh\necho no >&2\nexit 2\n"}  # fmt: skip
    place.program.unlink()
    if left == "a folder":
        place.program.mkdir()
    elif left in texts:
        place.program.write_text(texts[left])
        place.program.chmod(0o755)
    assert place.run("PostToolUse") == ""

    bin = tmp_path / "bin"
    bin.mkdir()
    other = bin / "gitmem"
    other.write_text(f'#!/bin/sh\nprintf "%s " "$@" >"{place.calls}"\n')
    other.chmod(0o755)
    asked = place.run("PostToolUse", path=f"{bin}:{os.environ['PATH']}")
    assert asked == (
        "hook claude-code PostToolUse " if left in ("nothing", "a folder", "no interpreter") else ""
    )


def test_a_program_of_the_work_tree_is_never_run(place: Place) -> None:
    """A relative path would be one."""
    place.flag()
    evil = place.folder / "evil"
    evil.write_text(f'#!/bin/sh\necho evil >"{place.calls}"\n')
    evil.chmod(0o755)
    (place.state / "program").write_text("evil\n")

    assert place.run("PostToolUse") == ""


@pytest.mark.parametrize("wrong", ["not listed", "only its beginning", "a list of others", "a folder of others",
                                   "an empty variable", "no list"])  # fmt: skip
@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_a_program_that_the_user_has_never_run_is_not_started(
    place: Place, tmp_path: Path, wrong: str, shell: tuple[str, ...]
) -> None:
    """The git folder may come from a stranger. The `gitmem` on the PATH is the user's own choice, and is asked instead."""
    place.flag()
    folder, known = Path(user_state()), Path(user_state(), "programs")
    env = {}
    assert place.run("PostToolUse", shell=shell) == "hook claude-code PostToolUse "
    if wrong == "not listed":
        known.write_text("/bin/other\n")
    elif wrong == "only its beginning":
        known.write_text(f"{place.program} and more\n{str(place.program)[:-1]}\n")
    elif wrong == "a list of others":
        known.chmod(0o620)
    elif wrong == "a folder of others":
        folder.chmod(0o702)
    elif wrong == "an empty variable":
        env = {"XDG_STATE_HOME": "", "HOME": "/nowhere"}
    else:
        known.unlink()

    assert place.run("PostToolUse", shell=shell, **env) == ""
    assert clients.is_listed(str(folder), str(place.program)) is (wrong == "an empty variable")

    bin = tmp_path / "bin"
    bin.mkdir()
    (bin / "gitmem").symlink_to(place.program)
    asked = place.run("PostToolUse", shell=shell, path=f"{bin}:{os.environ['PATH']}", **env)
    assert asked == "hook claude-code PostToolUse "


def test_no_folder_of_a_relative_path_is_searched_for_gitmem(place: Place) -> None:
    """A PATH with `.` or an empty part would find a file of the work tree."""
    place.flag()
    Path(user_state(), "programs").unlink()
    (place.folder / "gitmem").symlink_to(place.program)

    for path in (f".:{os.environ['PATH']}", f":{os.environ['PATH']}"):
        assert place.run("PostToolUse", path=path) == ""


def test_sourced_by_the_line_in_the_settings_it_does_the_same(place: Place) -> None:
    """`sh -c '. "$0"' SCRIPT EVENT`: one shell in all, also where the caller stops at errors."""
    place.flag()
    file = place.folder.parent / "claude-code.sh"
    file.write_text(client_scope.script_text("claude-code"))
    bin = place.folder.parent / "bin"
    bin.mkdir()
    (bin / "gitmem").symlink_to(place.program)

    for options in ("", "-u", "-e", "-eu"):
        place.calls.unlink(missing_ok=True)
        done = subprocess.run(
            [SHELL, *([options] if options else []), "-c", '[ ! -r "$0" ] || . "$0"', str(file), "PostToolUse", "gitmem"],
            cwd=place.folder, env={**os.environ, "PATH": f"{bin}:{os.environ['PATH']}", "CLAUDE_CODE_SESSION_ID": ID},
            capture_output=True, timeout=30,
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        assert place.calls.read_text() == "hook claude-code PostToolUse "
        if options == "-e":  # and what fails on the way is no end: `gitmem` on the PATH is asked instead
            (place.state / "program").rename(bin / "gone")


def test_claudes_script_leaves_when_copilot_runs_it(place: Place) -> None:
    """Copilot runs the hooks of .claude/settings.json too, and has its own: everything would come twice."""
    place.flag()

    assert place.run("PostToolUse", COPILOT_CLI="1") == ""
    # But what Copilot's agent starts is not Copilot's hook.
    assert place.run("PostToolUse", COPILOT_CLI="1", COPILOT_AGENT_SESSION_ID="c-1") != ""


def test_the_script_is_marked_the_same_everywhere_and_clean() -> None:
    """No path of this machine, the mark on the second line, nothing that only some shells know."""
    for client in CLIENTS:
        text = client_scope.script_text(client)
        assert text.split("\n")[:2] == ["#!/bin/sh", "# gitmem: written by gitmem setup"]
        assert sys.prefix not in text and "/home" not in text and "@" not in text.replace('"$@"', "")
        assert "\r" not in text and text.endswith("\nexit 0\n")
        checker = shutil.which("shellcheck")
        if checker:
            done = subprocess.run(
                [checker, "-s", "sh", "-"], input=text, capture_output=True, text=True, timeout=60
            )
            assert done.stdout == ""


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_new_commits_start_gitmem_once(place: Place, shell: tuple[str, ...]) -> None:
    """Only where commits are recorded, and only while the reflog or a note is newer than what was read."""
    log, seen = place.folder / ".git" / "logs" / "HEAD", place.state / "commits" / "in-.git"
    asked = "hook claude-code PostToolUse "

    def run() -> str:
        return place.run("PostToolUse", shell=shell)

    assert run() == ""
    seen.parent.mkdir()
    seen.touch()
    os.utime(seen, (1, 1))
    assert run() == asked
    os.utime(log, (5, 5))
    os.utime(seen, (5, 5))
    assert run() == ""
    (seen.parent / "by-.git").touch()
    assert run() == asked
