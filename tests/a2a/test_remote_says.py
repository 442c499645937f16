"""`gitmem call URL TEXT` hands over what the agent says: in artifacts, messages, questions and errors, as text, JSON, or the name of a file."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from a2a.types import Artifact, Part, StreamResponse, TaskArtifactUpdateEvent, TaskState

from gitmem.calls.a2a_files import Link, RemoteLinks
from gitmem.calls.a2a_remote import RemoteTask
from gitmem.calls.worker import RESULT_MAX_BYTES

from .. import in_process
from .sniffing_server import Sniffer

LARGE = "long " * 30_000
PDF = {
    "raw": base64.b64encode(b"%PDF-").decode(), "filename": "report.pdf", "mediaType": "application/pdf",
}  # fmt: skip
LINK = {"url": "https://example.org/table.csv", "filename": "table.csv", "mediaType": "text/csv"}
RATE = {"data": {"rate": 7}}


def task(state: str, *artifacts: list[Any], said: list[Any] | None = None) -> dict[str, Any]:
    """Return what a server answers: a task with a status message and artifacts of these parts."""
    status: dict[str, Any] = {"state": f"TASK_STATE_{state}"}
    if said:
        status["message"] = {"messageId": "s", "role": "ROLE_AGENT", "parts": said}
    made = [{"artifactId": f"a-{number}", "parts": parts} for number, parts in enumerate(artifacts)]
    return {"task": {"id": "theirs", "contextId": "c", "status": status, "artifacts": made}}


def message(*parts: Any) -> dict[str, Any]:
    """Return what a server answers: a message without a task."""
    return {"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": list(parts)}}


@pytest.fixture
def calling(repo: Path) -> Iterator[Callable[..., Any]]:
    """`calling(result)` calls a server that answers so, and returns its exit status and the answer of a command."""
    started: list[Sniffer] = []

    def run(result: object, *, shown: bool = False) -> tuple[int, Any]:
        started.append(Sniffer("text/plain", result=result))
        words = ["call", started[-1].url, "Is it right?", "--timeout", "20s"]
        done = in_process.gitmem(
            "--as", "human:person@example.org", *([] if shown else ["--json"]), *words, cwd=repo
        )
        return done.returncode, done.stdout.decode() if shown else json.loads(done.stdout)

    yield run
    for each in started:
        each.close()


@pytest.fixture
def repo(repo: Path) -> Path:
    """A repository whose person may call."""
    subprocess.run(["git", "-C", str(repo), "config", "user.email", "person@example.org"], check=True)
    return repo


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (task("COMPLETED", [{"text": "seven"}]), "seven"),
        (task("COMPLETED", said=[{"text": "seven"}]), "seven"),
        (task("COMPLETED", [{"text": "seven"}], said=[{"text": "seven\n"}]), "seven"),
        (task("COMPLETED", [{"text": "the table"}], [LINK], said=[{"text": "Here it is."}]),
         "Here it is.\n\nthe table\n\ntable.csv: https://example.org/table.csv"),
        (task("COMPLETED", [{"text": "as JSON:"}, RATE]), 'as JSON:\n\n{\n "rate": 7\n}'),
        (task("COMPLETED", [PDF]), "report.pdf: application/pdf, 5 bytes"),
        (task("COMPLETED", [{"raw": "AAAA"}]), "file: 3 bytes"),
        (message({"text": "seven"}, PDF), "seven\n\nreport.pdf: application/pdf, 5 bytes"),
    ],
)  # fmt: skip
def test_all_that_a_server_says_is_the_result(calling: Callable[..., Any], result: object, said: str) -> None:
    status, found = calling(result)
    assert (status, found["state"], found["message"]) == (0, "completed", said), found


def test_a_server_that_does_not_answer_or_no_url_of_one_is_a_sentence(repo: Path) -> None:
    """Without the names of classes."""
    words = ("--as", "human:person@example.org", "call")
    said = in_process.gitmem(*words, "http://127.0.0.1:1/", "Right?", cwd=repo)
    assert said.returncode == 1
    assert b"http://127.0.0.1:1/" in said.stdout and b"ResolutionError" not in said.stdout
    said = in_process.gitmem(*words, "ftp://127.0.0.1/", "Right?", cwd=repo)
    assert said.returncode == 2 and b"The URL of an agent is https://" in said.stdout + said.stderr


@pytest.mark.parametrize(
    ("result", "state", "said"),
    [
        (task("FAILED", said=[{"text": "no such price"}]), "failed", "no such price"),
        (task("FAILED", [{"text": "only books"}], said=[{"text": "no such price"}]), "failed", "only books"),
        (task("REJECTED", [{"text": "not mine"}]), "rejected", "not mine"),
        (task("INPUT_REQUIRED", [RATE], said=[{"text": "net or gross?"}]), "input-required", '"rate": 7'),
        (task("INPUT_REQUIRED", said=[{"text": "net or gross?"}, RATE]), "input-required", '"rate": 7'),
    ],
)
def test_what_ends_a_call_otherwise_says_why(
    calling: Callable[..., Any], result: object, state: str, said: str
) -> None:
    """The error, the refusal, or the question, with the artifacts that explain it."""
    status, found = calling(result)
    assert (status, found["state"]) == (1, state), found
    assert said in json.dumps([found["message"], found["error"]]).replace("\\n", "").replace('\\"', '"')


@pytest.mark.parametrize(
    "result",
    [
        task("COMPLETED", [{"text": LARGE}]), task("COMPLETED", [{"data": {"text": LARGE}}]), message({"text": LARGE}),
    ],
)  # fmt: skip
def test_a_text_that_no_record_can_have_is_cut_and_says_so(
    calling: Callable[..., Any], result: object
) -> None:
    """The beginning is there, instead of an error without it."""
    status, found = calling(result)
    assert (status, found["state"]) == (0, "completed"), found
    assert "(cut: the server said " in found["message"]
    assert len(found["message"].encode()) <= RESULT_MAX_BYTES


def test_a_large_file_is_named_with_its_size_and_not_recorded(
    calling: Callable[..., Any], repo: Path
) -> None:
    large = base64.b64encode(b"x" * 100_000).decode()
    status, found = calling(task("COMPLETED", [{"raw": large, "filename": "all.bin"}], [PDF]))
    said = "all.bin: 100000 bytes\n\nreport.pdf: application/pdf, 5 bytes"
    assert (status, found["message"]) == (0, said), found
    shown = in_process.gitmem("task", "show", found["results"][0]["task_id"], cwd=repo).stdout.decode()
    assert "| all.bin: 100000 bytes\n" in shown and "| report.pdf: application/pdf, 5 bytes\n" in shown, shown


def test_a_terminal_gets_no_control_sequence_of_a_server(calling: Callable[..., Any]) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\u202etxt"
    status, shown = calling(
        task("COMPLETED", [{"text": evil}], [{"raw": "AAAA", "filename": evil}], said=[{"text": evil}]), shown=True
    )  # fmt: skip
    assert (status, "owned" in shown) == (0, True)
    assert not {"\x1b", "\x07", "\u202e"} & {*shown}


class Recorded:
    """What a call records of a server's task."""

    task_id = "task-x"

    def __init__(self) -> None:
        self.artifacts: list[Any] = []

    def artifact(self, content: Any, **_: Any) -> None:
        """Note an artifact."""
        self.artifacts.append(content)


def test_pieces_of_an_artifact_are_one_text_with_the_spaces_between_them(tmp_path: Path) -> None:
    """Models stream single words, and spaces alone."""
    recorded = Recorded()
    remote = RemoteTask(recorded, RemoteLinks(str(tmp_path)), Link(), ())  # type: ignore[arg-type]
    for number, text in enumerate(("Hello", " ", "world", "\n", "!")):
        artifact = Artifact(artifact_id="a", parts=[Part(text=text)])
        update = TaskArtifactUpdateEvent(
            task_id="t", context_id="c", artifact=artifact, append=number > 0, last_chunk=text == "!"
        )
        remote.add(StreamResponse(artifact_update=update))
    remote.state = TaskState.TASK_STATE_COMPLETED
    assert remote.result() == "Hello world\n!"
    assert len(recorded.artifacts) == 5


def test_an_object_that_goes_on_in_another_piece_is_not_all_of_the_result(tmp_path: Path) -> None:
    remote = RemoteTask(Recorded(), RemoteLinks(str(tmp_path)), Link(), ())  # type: ignore[arg-type]
    data = Part()
    data.data.struct_value.update({"rate": 7})
    for part, append in ((data, False), (Part(text=" per cent"), True)):
        artifact = Artifact(artifact_id="a", parts=[part])
        update = TaskArtifactUpdateEvent(task_id="t", context_id="c", artifact=artifact, append=append)
        remote.add(StreamResponse(artifact_update=update))
    remote.state = TaskState.TASK_STATE_COMPLETED
    assert remote.result() == '{\n "rate": 7\n} per cent'
