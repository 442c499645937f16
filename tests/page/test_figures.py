"""`gitmem stats`: each figure, and what is left out of it."""

from __future__ import annotations

from pathlib import Path

from cli.render import repository as render
from gitmem.history import figures

from .conftest import NOW, SIGNALS
from .test_page_data import HOUR, data_of, opened, publish, records_digest, signal


def test_the_figures_are_those_of_the_page_and_of_the_log(page_log: Path) -> None:
    """Days add up; an agreement takes until the last one agrees; what was never asked is not measured."""
    data = data_of(page_log)
    with opened(page_log) as log:
        found = figures.stats(log.store)
        few = figures.stats(log.store, most=10)

    shown = {
        name: value
        for name, value in found.as_json().items()
        if name not in ("ahead", "older", "remark", "next")
    }
    assert shown == data["statistics"]
    assert sum(each["signals"] for each in found.days) == SIGNALS and found.older == 0
    assert sum(found.tasks.values()) == len(data["tasks"]) and found.tasks["open"] == len(
        data["board"]["open_tasks"]
    )
    assert found.unanswered == sum(
        each["what"] in ("answer", "take") and "signal" in each for each in data["board"]["owed"]
    )
    assert (few.older, few.days) == (SIGNALS - 10, found.days)
    assert few.first_answer["n"] < found.first_answer["n"]
    assert found.agreement["n"] == sum(each["state"] == "converged" for each in data["threads"])


def test_times_are_measured_from_the_question(repo: Path) -> None:
    """The first answer of somebody else counts, and the last agreement."""
    with opened(repo, NOW) as log:
        log.sessions.start(name="Curie", agent_identity="x:y:one")
    thread: dict[str, object] = {"thread_id": "thread-measured", "wu_id": "WU-1"}
    asked = signal(
        "a", NOW - 9 * HOUR, "May I?", recipients=["x:y:one", "x:y:two"], intent="PROPOSE", **thread
    )
    more: dict[str, object] = {
        "reply_to": "sig-0000000a",
        "answers_digest": records_digest(asked[1]),
        "after": ["sig-0000000a"],
        **thread,
    }
    lines = [
        signal("b", NOW - 9 * HOUR + 1_000_000, "I forgot: today?", **more),  # its own sender's
        signal("c", NOW - 8 * HOUR, "Yes", sender_identity="x:y:one", intent="AGREE", recipients=["x:y:mallory"], **more),
        signal("d", NOW - 5 * HOUR, "Yes", sender_identity="x:y:two", intent="AGREE", recipients=["x:y:mallory"], **more),
        signal("e", NOW - 2 * HOUR, "Read this", recipients=["x:y:one"], thread_id="thread-another1"),
    ]  # fmt: skip
    publish(repo, asked, *lines)

    with opened(repo, NOW) as log:
        found = figures.stats(log.store)
        none = figures.stats(log.store, wu="WU-2")

    hour = HOUR // 1_000
    assert found.first_answer == {"n": 1, "median_ms": hour, "p90_ms": hour}
    assert found.agreement == {"n": 1, "median_ms": 4 * hour, "p90_ms": 4 * hour}
    assert found.unread_age == {"n": 1, "median_ms": 2 * hour, "p90_ms": 2 * hour}
    assert found.unanswered == 0
    assert (none.days, none.first_answer, none.tasks) == ([], {"n": 0}, {})


def test_days_that_have_not_come_take_no_place_of_others(repo: Path) -> None:
    """Four hundred lines of a peer would hide the whole history; clocks that are a little ahead still count."""
    with opened(repo, NOW) as log:
        log.sessions.start(name="Curie", agent_identity="x:y:one")
    forged = (
        signal(f"{number}", NOW + (2 + number) * 24 * HOUR, "m", thread_id=f"thread-{number:08}")
        for number in range(figures.DAYS_MAX)
    )
    publish(repo, signal("today", NOW, "m"), signal("soon", NOW + HOUR, "m"), *forged)

    with opened(repo, NOW) as log:
        found = figures.stats(log.store)

    assert sum(each["signals"] for each in found.days) == 2
    assert found.ahead == figures.DAYS_MAX
    assert "400 signals with a date more than a day ahead; no day counts them" in render.stats(found)
