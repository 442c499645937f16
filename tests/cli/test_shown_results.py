"""To be shown a result accepts nothing: it is provisional until whoever asked for it accepts it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

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


@pytest.mark.parametrize("look", [["inbox"], ["inbox", "--json"], ["inbox", "--all"]])
def test_a_result_is_provisional_until_who_asked_accepts_it(
    run: Run, start: Start, office: Office, look: list[str]
) -> None:
    """To show it accepts nothing, and the command that the inbox then proposes does."""
    planck = start("Planck")
    id = office.done(session=planck)
    run("inbox", "--for", "Planck", session=office.bohr)
    assert "12 cases pass" in run(*look, session=planck).out
    assert not office.is_sealed(id)
    said = run("inbox", session=planck).out
    assert f"waits for you: {id} Write it, done, not yet accepted; next: gitmem task accept {id}" in said, (
        said
    )
    accepted = run("task", "accept", id, session=planck)
    assert (accepted.status, "already" in accepted.out) == (0, False), accepted
    assert office.is_sealed(id)
    assert "waits for you" not in run("inbox", session=planck).out


def test_a_release_by_another_session_ends_what_its_writer_wants_canceled(
    run: Run, start: Start, office: Office
) -> None:
    """That session can't report an end, and nobody may take the task: its writer's wish ends it, when the writer sees the release."""
    planck = start("Planck")
    twin = start("Bohr-two", "--agent-identity", "test:worker:bohr")
    id = run("delegate", "Write it", "--to", "Bohr", "-q", session=planck).out.strip()
    run("inbox", session=office.bohr)
    run("task", "take", id, session=office.bohr)
    run("task", "cancel", id, "not needed", session=planck)
    told = run("inbox", session=office.bohr).out
    assert f"Please stop: not needed\nTo give it back: gitmem task release {id}\n" in told, told
    given = run("task", "release", id, session=twin)
    assert "note: It ends as canceled when its writer sees" in given.out
    run("inbox", "--for", "Planck", session=office.bohr)
    assert run("task", "show", id, "--json").json["state"] == "submitted"
    assert "Given back" in run("inbox", session=planck).out
    assert run("task", "show", id, "--json").json["state"] == "canceled"


def test_a_person_accepts_what_the_person_asked(run: Run, office: Office) -> None:
    id = office.done("--as", PERSON)
    assert "12 cases pass" in run("inbox", "--as", PERSON).out
    assert not office.is_sealed(id)
    run("task", "accept", id, "--as", PERSON)
    assert office.is_sealed(id)
