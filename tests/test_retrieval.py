"""The check of what `mem search` finds runs anywhere. What it finds is not tested."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path

from benchmarks import locomo, retrieval
from benchmarks.retrieval_task import OURS, SHOWN, Score, measure

TURNS = [("Noether", "D1:1", "I planted the oak."), ("Curie", "D1:2", "And I the birch, near the oak.")]
CONVERSATION = {
    "session_1_date_time": "1:56 pm on 8 May, 2023",
    "session_1": [{"speaker": who, "dia_id": id, "text": text} for who, id, text in TURNS],
    "session_2_date_time": "12:00 am on 9 May, 2023",
    "session_2": [{"speaker": "Noether", "dia_id": "D2:1", "text": "The oak has leaves."}],
    "session_3_date_time": "12:00 am on 10 May, 2023",  # the set has times of sessions without turns
    "session_1_summary": "Noether and Curie planted trees.",
}
QUESTIONS = [
    {"question": "Who planted the oak?", "evidence": ["D1:1"], "category": 4},
    {"question": "What of the oak?", "evidence": ["D1:1; D:2:01", "D9:9"], "category": 1},
    {"question": "Who planted the elm?", "evidence": ["D1:2"], "category": 5},
    {"question": "And what then?", "evidence": [], "category": 3},
]


def test_every_ranking_is_measured(repo: Path) -> None:
    """On docstrings of the standard library and on the commits of any repository."""
    message = "Drop tabs in the parser\n\nThe lexer counted them twice, which nobody had noticed before.\n\nCloses: 7"
    subprocess.run(["git", "commit", "-q", "--allow-empty", "-m", message], cwd=repo, check=True)
    found = retrieval.docstrings(["json", "is_not_installed"])

    for task in (retrieval.by_name(found), retrieval.by_first_line(found), retrieval.by_subject(str(repo))):
        assert task.questions, task.name
        scores = measure(task)
        assert len(scores) == 6
        assert all(0 <= score.recall <= 1 and 0 <= score.rank <= 1 for score in scores.values())


def test_a_question_is_not_in_the_text_that_it_is_about(repo: Path) -> None:
    found = [("read_all_lines", "Calls read_all_lines until the end."), ("other", "Reads.")]

    task = retrieval.by_name(found)

    assert task.questions == [("read all lines", {0})]
    assert "read_all_lines" not in task.texts[0]


def test_conversations_are_read_in_both_forms_of_the_set(tmp_path: Path) -> None:
    (tmp_path / "all.json").write_text(
        json.dumps([{"sample_id": "conv-26", "conversation": CONVERSATION, "qa": QUESTIONS}])
    )
    with zipfile.ZipFile(tmp_path / "one.zip", "w") as archive:
        archive.writestr("data/locomo10_v2/", "")
        archive.writestr("data/locomo10_v2/26.json", json.dumps(CONVERSATION | {"qa": QUESTIONS}))

    for name in ("all.json", "one.zip"):
        ((key, task),) = locomo.tasks(str(tmp_path / name)).items()
        assert key == "26"
        assert task.texts == [
            "Noether: I planted the oak.", "Curie: And I the birch, near the oak.", "Noether: The oak has leaves.",
        ]  # fmt: skip
        assert task.questions == [("Who planted the oak?", {0}), ("What of the oak?", {0, 2})]
        assert len(set(task.sessions)) == 2 and task.sessions[0] == task.sessions[1]
        assert task.times[0] == 1_683_554_160_000_000


def test_a_conversation_is_measured(tmp_path: Path) -> None:
    (tmp_path / "30.json").write_text(json.dumps(CONVERSATION | {"qa": QUESTIONS}))

    ((name, texts, scores),) = retrieval.measure_conversations(str(tmp_path / "30.json"))

    assert (name, texts) == ("LoCoMo, the others", 3)
    assert scores[OURS].questions == 2 and scores[OURS].recall == 1


def test_the_control_differs_only_in_the_sessions() -> None:
    task = retrieval.by_name([(f"read_line_{number}", f"Text {number}.") for number in range(100)])

    alone, grouped = (retrieval.control(task, in_sessions=each) for each in (False, True))

    assert (alone.texts, alone.times, alone.questions) == (grouped.texts, grouped.times, grouped.questions)
    assert sorted(alone.texts) == sorted(task.texts) and alone.texts != task.texts
    assert set(alone.sessions) == {None} and len(set(grouped.sessions)) == 2
    for (asked, meant), (before, about) in zip(alone.questions, task.questions, strict=True):
        assert asked == before
        assert [alone.texts[number] for number in meant] == [task.texts[number] for number in about]


def test_a_score_is_the_share_of_what_is_meant() -> None:
    score = Score()

    score.add([5, 1, 2, 3, 4, 0], {1, 0})
    score.add(list(range(SHOWN)), {0})

    assert score.recall == (0.5 + 1) / 2
    assert score.rank == (0.5 + 1) / 2
    assert score.recall_sessions is None


def test_a_session_counts_at_the_place_of_its_first_text() -> None:
    """Sessions are counted apart from texts: five of them can have many more texts than five."""
    score, sessions = Score(), [f"session {number // 2}" for number in range(14)]

    score.add([0, 1, 2, 3, 4, 6, 8, 10], {9, 13}, sessions)

    assert score.recall == 0
    assert score.recall_sessions == 0.5
