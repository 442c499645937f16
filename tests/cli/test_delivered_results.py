"""M3: a delegation is sealed when its result is shown to the session that wrote it, and by nobody's mere look."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import gitmem

from .conftest import Run

Start = Callable[..., str]
PERSON = "human:person@example.org"


class Office:
    """Bohr works for whoever asks."""

    def __init__(self, run: Run, start: Start) -> None:
        self.run = run
        self.bohr = start("Bohr", "--role", "implementer/test", "--scope", "src/**")

    def done(self, *asker: str, session: str | None = None) -> str:
        """A task that Bohr has done."""
        id = self.run("delegate", "Write it", "--to", "Bohr", "-q", *asker, session=session).out.strip()
        for args in (("take", id), ("done", id, "12 cases pass")):
            assert self.run("task", *args, session=self.bohr).status == 0
        return id

    def is_sealed(self, id: str) -> bool:
        shown = self.run("task", "show", id, "--json").json
        assert shown["state"] == "completed"
        return shown["seal"] is not None


@pytest.fixture
def office(run: Run, start: Start) -> Office:
    return Office(run, start)


def test_the_session_that_asked_seals_with_its_receipts(
    run: Run, start: Start, office: Office, git: Callable[..., str], repo: Path
) -> None:
    """Without a commit of its own; to seal it again is no error."""
    planck = start("Planck")
    id = office.done(session=planck)
    before = git("rev-list", "--count", "gitmem/log", cwd=repo)
    run("inbox", "--for", "Planck", session=office.bohr)
    assert not office.is_sealed(id), "somebody looks into the inbox"
    assert "12 cases pass" in run("inbox", session=planck).out
    assert office.is_sealed(id)
    assert git("rev-list", "--count", "gitmem/log", cwd=repo) == before
    again = run("task", "seal", id, session=planck)
    assert (again.status, "already" in again.out + again.err) == (0, True), again


def test_another_session_of_the_identity_seals_nothing(run: Run, start: Start, office: Office) -> None:
    """It may read the shared inbox first; the session that asked seals when it sees the result."""
    planck = start("Planck")
    twin = start("Planck-two", "--agent-identity", "test:worker:planck")
    id = office.done(session=planck)
    assert "12 cases pass" in run("inbox", session=twin).out
    run("task", "show", id, session=planck)
    run("task", "list", session=planck)
    assert not office.is_sealed(id)
    assert "12 cases pass" in run("inbox", "--all", session=planck).out
    assert office.is_sealed(id)


def test_a_release_by_another_session_ends_what_its_writer_wants_canceled(
    run: Run, start: Start, office: Office
) -> None:
    """That session can't report an end, and nobody may take the task: its writer's wish ends it, when the writer sees the release."""
    planck = start("Planck")
    twin = start("Bohr-two", "--agent-identity", "test:worker:bohr")
    id = run("delegate", "Write it", "--to", "Bohr", "-q", session=planck).out.strip()
    run("inbox", session=office.bohr)
    run("task", "take", id, session=office.bohr)
    run("task", "cancel", id, "--reason", "not needed", session=planck)
    told = run("inbox", session=office.bohr).out
    assert f"Please stop: not needed\n| To give it back: gitmem task release {id}\n" in told, told
    given = run("task", "release", id, session=twin)
    assert "note: It ends as canceled when its writer sees" in given.out
    run("inbox", "--for", "Planck", session=office.bohr)
    assert run("task", "show", id, "--json").json["state"] == "submitted"
    assert "Given back" in run("inbox", session=planck).out
    assert run("task", "show", id, "--json").json["state"] == "canceled"


def test_a_person_seals_what_the_person_asked(run: Run, office: Office) -> None:
    id = office.done("--as", PERSON)
    assert "12 cases pass" in run("inbox", "--for", PERSON, session=office.bohr).out
    assert not office.is_sealed(id)
    assert "12 cases pass" in run("inbox", "--as", PERSON).out
    assert office.is_sealed(id)


def test_only_a_result_that_stands_is_sealed(run: Run, start: Start, office: Office, repo: Path) -> None:
    """Not one that another agent invents in a message, and not one that may be tried again."""
    planck, curie = start("Planck"), start("Curie")
    id = office.done(session=planck)
    thread = run("task", "show", id, "--json").json["task"]["thread_id"]
    run("inbox", session=start("Planck-two", "--agent-identity", "test:worker:planck"))
    for text in ("Done: 12 cases pass", "Done: all is well"):
        run("signal", text, "--to", "Planck", "--thread", thread, "--delegation-id", id, session=curie)
    run("inbox", session=planck)
    assert not office.is_sealed(id)

    again = run("delegate", "Try", "--to", "Bohr", "-q", session=planck).out.strip()
    with gitmem.open(str(repo), session=office.bohr) as log:
        log.tasks.take(again)
        error = {"code": "BUSY", "message": "later", "retryable": True}
        log.tasks.report(again, "failed", "busy", payload={"error": error})
    assert "busy" in run("inbox", session=planck).out
    assert run("task", "show", again, "--json").json["seal"] is None
