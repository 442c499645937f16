"""The check of what `mem search` finds runs anywhere. What it finds is not tested."""

from __future__ import annotations

import subprocess
from pathlib import Path

from benchmarks import retrieval


def test_every_ranking_is_measured(repo: Path) -> None:
    """On docstrings of the standard library and on the commits of any repository."""
    message = "Drop tabs in the parser\n\nThe lexer counted them twice, which nobody had noticed before.\n\nCloses: 7"
    subprocess.run(["git", "commit", "-q", "--allow-empty", "-m", message], cwd=repo, check=True)
    found = retrieval.docstrings(["json", "is_not_installed"])

    for task in (retrieval.by_name(found), retrieval.by_first_line(found), retrieval.by_subject(str(repo))):
        assert task.questions, task.name
        rankings = retrieval.measure(task)
        assert len(rankings) == 5
        assert all(0 <= recall <= 1 and 0 <= rank <= 1 for _, recall, rank in rankings)


def test_a_question_is_not_in_the_text_that_it_is_about(repo: Path) -> None:
    found = [("read_all_lines", "Calls read_all_lines until the end."), ("other", "Reads.")]

    task = retrieval.by_name(found)

    assert task.questions == [("read all lines", 0)]
    assert "read_all_lines" not in task.texts[0]
