"""`gitmem gate` on the command line, and as git's hook calls it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Git

from .conftest import Run

Start = Callable[..., str]


@pytest.fixture
def asked(run: Run, start: Start) -> dict[str, str]:
    """Planck asks Curie something on WU-7, and says something on it."""
    planck = start("Planck")
    curie = start("Curie", "--wu", "WU-7")
    ids = {"planck": planck, "curie": curie}
    for name, words in {
        "question": ["Shall we?", "--requires-ack", "--intent", "propose"],
        "remark": ["By the way \x1b[2J"],
    }.items():
        said = run("signal", *words, "--to", "Curie", "--wu", "WU-7", "--json", session=planck)
        ids[name] = said.json["signal"]["signal_id"]
    return ids


def test_a_closed_gate_is_status_1_and_says_what_to_do(run: Run, asked: dict[str, str]) -> None:
    """Who wants what, and the commands; not what they say, which stays unread."""
    found = run("gate", session=asked["curie"])

    assert found.status == 1, found
    head, *rest = found.out.splitlines()
    assert head == "gate closed: 2 unread signals on WU-7 for test:worker:curie"
    assert rest[0].startswith(f"{asked['question']} · PROPOSE · from Planck (test:worker:planck) · WU-7 · ")
    assert rest[0].endswith(" · unread · needs AGREE or REJECT")
    assert rest[1].startswith("  gitmem inbox --thread ")
    assert "gitmem reply" not in found.out, "nobody answers what it has not read"
    assert rest[-1] == "next: gitmem inbox --wu WU-7"
    assert "Shall we" not in found.out
    assert run("inbox", "--count", session=asked["curie"]).out == "2\n"


def test_an_open_gate_is_status_0(run: Run, asked: dict[str, str]) -> None:
    """For another work unit, for another reader, and when all is read and answered."""
    run("signal", "WU-70 begins", "--broadcast", "--wu", "WU-70", session=asked["planck"])
    for args, session in ((["--wu", "WU-70"], "curie"), (["--wu", "WU-7"], "planck")):
        found = run("gate", *args, session=asked[session])
        assert (found.status, found.out.splitlines()[0][:10]) == (0, "gate open:"), found
    run("inbox", session=asked["curie"])
    assert run("gate", session=asked["curie"]).status == 1
    run("reply", asked["question"], "yes", "--agree", session=asked["curie"])

    assert run("gate", "--wu", "WU-7", session=asked["curie"]).status == 0


@pytest.mark.usefixtures("commits")
def test_as_json_it_has_the_fields_of_its_shape(run: Run, asked: dict[str, str]) -> None:
    """One line; `next` is last; commands act as the one that --as names."""
    found = run("gate", "--as", "Curie", "--wu", "WU-7", "--json")

    assert found.status == 1
    assert list(found.json) == [
        "open", "reader", "wu_id", "initiatives", "unread", "unanswered", "signals", "more", "passed",
        "audit_id", "commit", "recorded", "warnings", "next",
    ]  # fmt: skip
    first = found.json["signals"][0]
    assert (first["signal_id"], first["requires_ack"], first["why"]) == (asked["question"], True, "unread")
    assert all("--as Curie" in command for command in [*first["commands"], *found.json["next"]])


@pytest.mark.usefixtures("commits")
def test_a_reason_goes_past_and_both_logs_tell(run: Run, asked: dict[str, str], git: Git, repo: Path) -> None:
    """Status 0, also the next time: the reason counts for these signals."""
    found = run("gate", "--anyway", "handled in paired review", session=asked["curie"])

    assert found.status == 0, found
    assert found.out.startswith("gate passed: 2 unread signals on WU-7 for test:worker:curie · audit-")
    told = "Curie passes the gate of WU-7 with 2 signals: handled in paired review"
    assert told in run("log").out
    assert "passes the gate of WU-7 with 2 unread" in git(
        "log", "-1", "--format=%s", "gitmem/log", "--", cwd=repo
    )
    (shows,) = (line for line in found.out.splitlines() if line.startswith("next: gitmem show"))
    assert "reason: handled in paired review" in run("show", shows.split()[-1]).out
    assert run("gate", session=asked["curie"]).status == 0


@pytest.mark.parametrize(
    "args",
    [
        ["--anyway", ""],
        ["--anyway", "  "],
        ["--hook", "pre-push", "--wu", "WU-7"],
        ["--hook", "post-commit"],
        ["--ci", "src"],
        ["--wu", ""],
        ["--wu", "WU 7"],
        ["--wu", "WU-77"],
    ],
)
def test_what_is_asked_wrongly_is_status_2_and_records_nothing(
    run: Run, asked: dict[str, str], args: list[str]
) -> None:
    """A reason is needed, and a known work unit."""
    found = run("gate", *args, session=asked["curie"])

    assert found.status == 2, found
    assert "passes the gate" not in run("log").out


def test_a_secret_in_a_reason_is_refused(run: Run, asked: dict[str, str]) -> None:
    """As in every text that is pushed."""
    reason = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"

    found = run("gate", "--anyway", reason, session=asked["curie"])

    assert found.status == 2
    assert "seems to contain" in found.err


def test_before_a_push_the_branch_says_which_work_unit(
    run: Run, asked: dict[str, str], git: Git, repo: Path
) -> None:
    """Where there is none the answer says that nothing was checked; silent where nothing stands in the way."""
    for branch, after in (("main", "gitmem gate --help"), ("lane/wu-8-other", "git config gitmem.wu WU-8")):
        git("checkout", "--quiet", "-B", branch, cwd=repo)
        unchecked = run("gate", "--hook", "pre-push", session=asked["curie"])
        assert unchecked.status == 0 and "not checked" in unchecked.out, unchecked
        assert branch in unchecked.out and f"next: {after}\n" in unchecked.out
        answer = run("gate", "--hook", "pre-push", "--json", session=asked["curie"]).json
        assert answer["open"] is True and answer["wu_id"] is None and answer["reason"]
    git("checkout", "--quiet", "-b", "lane/wu-7-prices", cwd=repo)

    closed = run("gate", "--hook", "pre-push", session=asked["curie"])

    assert closed.status == 1
    assert "next: gitmem gate --wu WU-7 --anyway 'why they may wait'" in closed.out
    run("inbox", session=asked["curie"])
    run("reply", asked["question"], "no", "--reject", session=asked["curie"])
    quiet = run("gate", "--hook", "pre-push", session=asked["curie"])
    assert (quiet.status, quiet.out, quiet.err) == (0, "", "")


def test_who_went_past_the_gate_may_push_and_what_comes_later_holds_the_next_push(
    run: Run, asked: dict[str, str], git: Git, repo: Path
) -> None:
    """Whoever pushes gives git's hook no reason, so it uses the reason that the log has, for the work unit of the setting `gitmem.wu`."""
    git("config", "gitmem.wu", "WU-7", cwd=repo)
    past = ("gate", "--wu", "WU-7", "--anyway", "paired")
    assert run(*past, session=asked["curie"]).status == 0

    pushes = [run("gate", "--hook", "pre-push", session=asked["curie"]).status]
    asks_again = run("gate", "--wu", "WU-7", session=asked["curie"]).status
    run("signal", "One more thing", "--to", "Curie", "--wu", "WU-7", session=asked["planck"])
    pushes.append(run("gate", "--hook", "pre-push", session=asked["curie"]).status)

    assert (pushes, asks_again) == ([0, 1], 0)


@pytest.mark.parametrize("of", [("--wu", "WU-7"), ("--initiative", "INIT-1")])
def test_words_behind_a_reason_open_no_gate(run: Run, asked: dict[str, str], of: tuple[str, str]) -> None:
    """A reason without quotes leaves paths, which nobody claims."""
    found = run("gate", *of, "--anyway", "they", "may", "wait", session=asked["curie"])
    assert (found.status, "Nothing was checked" in found.err) == (2, True)
    assert run("gate", "--wu", "WU-7", session=asked["curie"]).status == 1


def test_where_several_sessions_are_live_and_none_says_that_it_pushes_all_count(
    run: Run, asked: dict[str, str], git: Git, repo: Path
) -> None:
    """A tool that pushes without a session is not let through by that; a person at a terminal is a person."""
    git("config", "gitmem.wu", "WU-7", cwd=repo)

    found = run("gate", "--hook", "pre-push")

    assert found.status == 1
    assert "for test:worker:curie" in found.out
    assert "--as test:worker:curie" in found.out
    assert "planck: " not in found.out


def test_where_nobody_can_be_written_to_a_push_goes_on(
    run: Run, git: Git, repo: Path, monkeypatch: Any
) -> None:
    """No session, and no name in git's config."""
    git("config", "--unset", "user.email", cwd=repo)
    git("config", "gitmem.wu", "WU-7", cwd=repo)

    found = run("gate", "--hook", "pre-push")

    assert found.status == 0
    assert found.out.startswith("gate: not checked on WU-7: no session and no user.email"), found
