"""What is declared of a kind or a field in one place is found wherever a record goes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FIELD = """    if_late: ShortLine | None = optional(
        "What happens if nobody answers.",
        head="else {}",
        option=Option("What happens if nobody answers.", metavar="TEXT"),
    )
"""
KIND = '''

class Lesson(Record):
    """What somebody has learnt."""

    KIND = "lesson"
    STREAM = "lessons"

    lesson_id: Annotated[str, id_form("lesson", "lesson")] = required("The id of this lesson.")
    text: Message = required("What was learnt.")
    wu_id: WorkUnit | None = optional("The work unit.")
'''
RECORD = """
from gitmem import records
from gitmem.api import log
from gitmem.log.lines import CommitMessage
store = log.open(".").store
store.record(
    [store.line("lesson", {"lesson_id": "lesson-0001", "text": "Measure first.", "wu_id": "WU-7"})],
    CommitMessage("gitmem <gitmem@localhost>", "a lesson"),
)
"""
TOOL = """
import json
from cli.mcp import server
print(json.dumps(server.Server(*server.groups(None, None, None))._ours["signal"].parameters["properties"]["if_late"]))
"""
Do = Callable[..., Any]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with one more field of signals and one more kind, each declared in `kinds.py` alone."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("gitmem", "cli", "merge_driver", "tools"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "docs").mkdir()
    shutil.copy(ROOT / "docs/records.md", folder / "docs")
    kinds = folder / "gitmem/records/kinds.py"
    before, heading, after = kinds.read_text(encoding="utf-8").partition("\n\nclass Receipt(Record):")
    others, rest, end = after.partition("\n\n# They contain no vocabulary")
    kinds.write_text(before + FIELD + heading + others + KIND + rest + end, encoding="utf-8")
    for tool in ("compile_kinds.py", "compile_shape.py", "compile_parser.py"):
        subprocess.run([sys.executable, folder / "tools" / tool], check=True, timeout=60)
    return folder


@pytest.fixture
def do(project: Path, repo: Path) -> Do:
    """`do("signal", "hello", as_="a:b:c")`: the JSON that the copy's command answers; `do(code=…)` runs Python in it."""

    def run(*args: str, code: str = "", as_: str = "", status: int = 0) -> Any:
        command = ["-c", code or "import sys; from cli.main import main; sys.exit(main())", *args]
        options = [*(["--json"] if args and "--text" not in args else []), *(["--as", as_] if as_ else [])]
        done = subprocess.run(
            [sys.executable, *[each for each in command if each != "--text"], *options],
            cwd=repo, env={**os.environ, "PYTHONPATH": str(project)}, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == status, done.stderr
        return json.loads(done.stdout or done.stderr or "null") if options[:1] == ["--json"] else done.stdout

    return run


def test_a_field_of_signals_is_declared_in_one_place(project: Path, do: Do) -> None:
    for identity in ("a:a:a", "b:b:b"):
        do("session", "start", "--agent-identity", identity)
    sent = ("signal", "Deploy?", "--to", "b:b:b", "--idempotency-key", "k")
    made = do(*sent, "--if-late", "we lose a day", as_="a:a:a")["signal"]
    assert made["if_late"] == "we lose a day"

    (read,) = do("inbox", "--no-mark", as_="b:b:b")["signals"]
    assert read["if_late"] == "we lose a day"
    assert "else we lose a day" in do("inbox", "--text", as_="b:b:b")

    again = do(*sent, "--if-late", "nothing happens", as_="a:a:a", status=2)
    assert again["error"]["code"] == "idempotency-conflict"
    assert do(*sent, "--if-late", "we lose a day", as_="a:a:a")["signal"] == made

    assert do("schema", "signal")["properties"]["if_late"]["description"] == "What happens if nobody answers."
    assert json.loads(do(code=TOOL))["description"] == "What happens if nobody answers."
    page = (project / "docs/records.md").read_text(encoding="utf-8")
    assert "\n| `if_late` | short line | What happens if nobody answers. |\n" in page


def test_a_kind_is_declared_in_one_place(project: Path, do: Do) -> None:
    """What becomes of a thing of its kind, a reducer, needs the table of entities."""
    do(code=RECORD)

    (entry,) = do("log")["entries"]
    assert (entry["kind"], entry["text"], entry["wu_id"]) == ("lesson", "Measure first.", "WU-7")
    assert "records a lesson" in do("log", "--text")
    shown = do("show", "lesson-0001")
    assert (shown["kind"], shown["record"]["lesson_id"]) == ("lesson", "lesson-0001")
    assert do("schema", "lesson")["properties"]["kind"]["const"] == "lesson"
    done = do("doctor")
    assert (done["healthy"], done["checked"]["lines"]) == (True, 1)
    page = (project / "docs/records.md").read_text(encoding="utf-8")
    assert "### lesson (stream `lessons`)\n\nWhat somebody has learnt.\n" in page
