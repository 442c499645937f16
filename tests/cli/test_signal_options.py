"""An option of `gitmem signal` reaches the record and the reader, and an answer takes over what it should."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import Run

Start = Callable[..., str]


@pytest.mark.parametrize(
    ("option", "value", "field", "in_text"),
    [
        ("--wu", "WU-7", "wu_id", "WU-7"),
        ("--initiative", "INIT-1", "initiative_id", ""),
        ("--lane", "release", "lane", "release"),
        ("--target-role", "tester", "target_role", "for role tester"),
        ("--delegation-id", "deleg-12", "delegation_id", "delegation deleg-12"),
        ("--artifact", "docs/a.md", "artifact_path", "file docs/a.md"),
        ("--intent", "propose", "intent", "PROPOSE"),
        ("--interrupt", "advisory", "interrupt_class", ""),
        ("--idempotency-key", "deploy-1", "idempotency_key", ""),
    ],
)
def test_an_option_reaches_the_reader(
    run: Run, start: Start, option: str, value: str, field: str, in_text: str
) -> None:
    """In JSON, and in the head of the text if it is one of the fields that text shows."""
    planck, curie = start("Planck"), start("Curie")

    assert run("signal", "hello", "--to", "Curie", option, value, session=planck).status == 0

    (shown,) = run("inbox", "--no-mark", "--json", session=curie).json["signals"]
    assert shown[field].lower() == value.lower()
    assert in_text in run("inbox", session=curie).out


def test_an_answer_takes_over_the_subject_and_not_the_file(run: Run, start: Start) -> None:
    """Work unit, initiative and lane are the thread's; an answer says itself which file it is about."""
    planck, curie = start("Planck"), start("Curie")
    about = ["--wu", "WU-7", "--initiative", "INIT-1", "--lane", "release", "--artifact", "docs/a.md"]
    sent = run("signal", "hello", "--to", "Curie", *about, "--json", session=planck).json["signal"]

    answer = run("reply", sent["signal_id"], "yes", "--json", session=curie).json["signal"]
    other = run(
        "signal", "no", "--reply-to", sent["signal_id"], "--lane", "docs", "--json", session=curie
    ).json["signal"]

    assert [answer[field] for field in ("wu_id", "initiative_id", "lane")] == ["WU-7", "INIT-1", "release"]
    assert "artifact_path" not in answer
    assert (other["wu_id"], other["lane"]) == ("WU-7", "docs")
