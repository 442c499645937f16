"""LoCoMo, a public set of ten long conversations with questions (github.com/snap-research/locomo), as retrieval tasks.

Each turn is a node `Speaker: text` at the time of its session. A question has the turns that answer it. Questions of
category 5, which no turn answers, are left out.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from datetime import UTC, datetime
from typing import Any

from .retrieval_task import DAY, Task

# The ranking was tuned on these conversations alone; the others tell how good it is.
TUNED_ON = ("26", "41", "43", "47", "49")
UNANSWERABLE = 5
_SESSION = re.compile("session_([0-9]+)")
_TURN = re.compile("D:?([0-9]+):0*([0-9]+)")  # evidence also reads `D8:6; D9:17`, `D:11:26` and `D30:05`
_NUMBER = re.compile("[0-9]+")


def tasks(path: str) -> dict[str, Task]:
    """Return a task for each conversation, by its number.

    Args:
        path: `locomo10.zip` with a file for each conversation, or a JSON file with all or one of them.
    """
    found = {_NUMBER.findall(name)[-1]: _task(*_parts(value)) for name, value in _conversations(path)}
    return dict(sorted(found.items()))


def _conversations(path: str) -> list[tuple[str, Any]]:
    """Return the name and the JSON value of each conversation."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith(".json")]
            files = [(os.path.basename(name), json.loads(archive.read(name))) for name in names]
    else:
        with open(path, encoding="utf-8") as file:
            files = [(os.path.basename(path), json.load(file))]
    return [
        (str(each.get("sample_id", name)), each)
        for name, value in files
        for each in (value if isinstance(value, list) else [value])
    ]


def _parts(value: Any) -> tuple[Any, Any]:
    """Return the sessions and the questions of a conversation, in either form of the set."""
    return value.get("conversation", value), value["qa"]


def _task(sessions: Any, questions: Any) -> Task:
    task = Task("LoCoMo", asked_after=DAY)
    number_of: dict[tuple[int, int], int] = {}
    for number in sorted(int(each[1]) for each in map(_SESSION.fullmatch, sessions) if each):
        at = _micros(sessions[f"session_{number}_date_time"])
        for turn in sessions[f"session_{number}"]:
            for key in _turns(turn["dia_id"]):
                number_of[key] = len(task.texts)
            task.add(f"{turn['speaker']}: {turn['text']}", at, session=f"sess-locomo{number}")
    for each in questions:
        turns = {key for text in each["evidence"] for key in _turns(text)}
        meant = frozenset(number_of[key] for key in turns if key in number_of)
        if meant and each["category"] != UNANSWERABLE:
            task.questions.append((each["question"], meant))
    return task


def _turns(text: str) -> list[tuple[int, int]]:
    return [(int(session), int(turn)) for session, turn in _TURN.findall(text)]


def _micros(text: str) -> int:
    """Return the microseconds since the epoch of a time such as `1:56 pm on 8 May, 2023`."""
    at = datetime.strptime(text.strip(), "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    return int(at.timestamp()) * 1_000_000
