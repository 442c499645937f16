"""Artifacts of tasks: pieces in order, from their holder alone, and whatever a peer may have written."""

from __future__ import annotations

from pathlib import Path

import pytest

import gitmem
from gitmem.errors import UsageError
from gitmem.work import task_rules, task_work

IDENTITY = "codex:worker:one"


def test_pieces_of_an_artifact_are_joined_and_a_later_one_replaces_it(repo: Path) -> None:
    """By its id; artifacts without one stand apart."""
    with gitmem.open(str(repo), identity=IDENTITY) as log:
        log.sessions.start(name="Curie", role="implementer/test")
        task = log.tasks.delegate("Write", to=IDENTITY, wu="WU-1", role="implementer/test").task["task_id"]
        log.tasks.take(task)
        log.tasks.artifact(task, "a", artifact_id="x", last_chunk=False)
        log.tasks.artifact(task, [{"text": "b"}, {"data": {"n": 1}}], artifact_id="x", append=True)
        log.tasks.artifact(task, {"url": "https://example.org/f"}, name="file")
        folded = task_work.folded_artifacts(task_rules.require(log.store, task))
        assert [each["parts"] for each in folded] == [
            [{"text": "a"}, {"text": "b"}, {"data": {"n": 1}}], [{"url": "https://example.org/f"}],
        ]  # fmt: skip
        log.tasks.artifact(task, "new", artifact_id="x")
        assert task_work.folded_artifacts(task_rules.require(log.store, task))[0]["parts"] == [
            {"text": "new"}
        ]


def test_an_artifact_without_content_too_large_or_by_somebody_else_is_refused(repo: Path) -> None:
    """And nothing is written."""
    with gitmem.open(str(repo), identity=IDENTITY) as log:
        log.sessions.start(name="Curie", role="implementer/test")
        task = log.tasks.delegate("Write", to=IDENTITY, wu="WU-1", role="implementer/test").task["task_id"]
        with pytest.raises(UsageError) as refused:
            log.tasks.artifact(task, "x")
        assert refused.value.code == "not-the-holder"
        log.tasks.take(task)
        for content, code in (({}, "bad-artifact"), ([], "bad-artifact"), ("x" * 40_000, "large-artifact")):
            with pytest.raises(UsageError) as refused:
                log.tasks.artifact(task, content)
            assert refused.value.code == code
        assert task_work.folded_artifacts(task_rules.require(log.store, task)) == []
