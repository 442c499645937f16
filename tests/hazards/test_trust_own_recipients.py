"""Mail that is sent in a clone to a session of that clone, while a peer says that the session is somebody else."""

from __future__ import annotations

import pytest

from .test_trust_senders import Attack, attack, line, now, session_fields, start_of

__all__ = ["attack"]

OTHER = "5a2e0a1f-2222-4333-8444-a55556666777"
EVIL = "evil:x:y"


@pytest.fixture
def sender(attack: Attack) -> dict[str, str]:
    """The variables of a second agent of the same clone."""
    env = {"CLAUDE_CODE_SESSION_ID": OTHER}
    attack.json("session", "start", "--name", "Curie", **env)
    return env


@pytest.mark.parametrize("whole", [True, False])
def test_a_session_id_means_the_session_and_not_the_identity_that_a_peer_gave_it(
    attack: Attack, sender: dict[str, str], whole: bool
) -> None:
    """Or a beginning of the id: the session gets it, and the sender is told."""
    session = start_of(attack)["session_id"]
    attack.forge("session", "sessions", now(1), **session_fields(attack, event="change", agent_identity=EVIL))

    sent = attack.json("signal", "for Planck", "--to", session if whole else session[:14], **sender)
    assert sent["signal"]["recipients"] == [session]
    (warning,) = sent["warnings"]
    assert EVIL in warning and "gitmem doctor" in warning
    assert [each["message"] for each in attack.json("inbox")["signals"]] == ["for Planck"]


def test_a_name_means_the_session_also_where_a_peer_gave_it_an_identity(
    attack: Attack, sender: dict[str, str]
) -> None:
    """With the note of who had the name first the session gets it; without it nothing is sent."""
    session = start_of(attack)["session_id"]
    attack.forge("session", "sessions", now(1), **session_fields(attack, event="change", agent_identity=EVIL))
    attack.json("signal", "noted", "--to", "Planck", **sender)
    assert [each["message"] for each in attack.json("inbox")["signals"]] == ["noted"]

    for pin in (attack.home / ".git" / "gitmem" / "pins").iterdir():
        pin.unlink()
    said = attack("signal", "not noted", "--to", "planck", **sender)
    assert said.status == 2
    assert EVIL in said.err and session in said.err and "gitmem doctor" in said.err
    assert attack.json("inbox")["signals"] == []


def test_a_name_that_a_peer_took_from_a_session_is_refused(attack: Attack, sender: dict[str, str]) -> None:
    """Renamed by a forged line, its name is free for a session of the peer's."""
    session = start_of(attack)["session_id"]
    attack.forge(
        "session",
        "sessions",
        now(1),
        **session_fields(attack, event="change", display_name="Mallory", name_chosen=True),
    )
    attack.push("sessions", line("session", now(2), session_id="sess-evil00000003", event="start", display_name="Planck",
                                 clone_id="elsewhere0"))  # fmt: skip
    for pin in (attack.home / ".git" / "gitmem" / "pins").iterdir():
        pin.unlink()

    taken = attack("signal", "x", "--to", "Planck", **sender)
    assert (taken.status, "sess-evil00000003" in taken.err, session in taken.err) == (2, True, True)
    given = attack("signal", "x", "--to", "Mallory", **sender)
    assert (given.status, session in given.err) == (2, True)


def test_a_published_client_means_the_session_that_was_started_here(
    attack: Attack, sender: dict[str, str]
) -> None:
    """A peer's later session claims the client and the clone."""
    public = start_of(attack)
    attack.forge("session", "sessions", now(5), **session_fields(attack, session_id="sess-evil00000004", event="start",
                 harness_session=public["harness_session"]))  # fmt: skip

    (to,) = attack.json("signal", "x", "--to", public["harness_session"], **sender)["resolved"]
    assert to["address"] == public["session_id"]


def test_nobody_acts_under_an_identity_that_a_peer_gave_to_a_session(attack: Attack) -> None:
    """`--as` chooses no session by what was not written here."""
    session = start_of(attack)["session_id"]
    attack.forge("session", "sessions", now(1), **session_fields(attack, event="change", agent_identity=EVIL))

    sent = attack.json("signal", "x", "--broadcast", "--as", EVIL, GITMEM_SESSION="")["signal"]
    assert sent.get("sender_session") != session
