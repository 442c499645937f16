"""What a local process calls its session is nobody else's address, and forged ends and names hide no session here."""

from __future__ import annotations

from pathlib import Path

import pytest

from .forging import Answer, Clone, Hub, line
from .test_trust_names import now, refused

CLIENT = "CLAUDE_CODE_SESSION_ID"
UUID = "0f8fad5b-d9cb-469f-a165-70867728950e"
OPENCODE = "ses_3f9d2c1b7ffeQ4mZx0LkT8vWya"


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    """A hub whose clones run the installed program."""
    return Hub(tmp_path)


@pytest.fixture
def planck(hub: Hub) -> Clone:
    return hub.clone("Planck")


def as_client(clone: Clone, value: str, *args: str) -> Answer:
    """A command of a client whose session has this id, and which has started no session of gitmem."""
    return clone(*args, env={"GITMEM_SESSION": "", CLIENT: value})


@pytest.mark.parametrize("form", ["identity", "name", "folded name"])
def test_a_client_whose_id_is_somebodys_address_gets_none_of_their_mail(
    hub: Hub, planck: Clone, form: str
) -> None:
    """Before and after it spoke, the words mean the agent of the other clone."""
    curie = hub.clone("Curie")
    curie.sync()
    planck.sync()
    value = {"identity": curie.identity, "name": "Curie", "folded name": "curie"}[form]
    assert as_client(planck, value, "signal", "hello", "--broadcast").status == 0

    assert planck.send("secret", "--to", value)["recipients"] == [curie.identity]
    said = as_client(planck, value, "inbox", "--json")
    assert "secret" not in [each["message"] for each in said.json["signals"]]
    planck.sync()
    curie.sync()
    assert "secret" in [each["message"] for each in curie.inbox()]


def test_a_client_whose_id_is_a_persons_address_is_not_that_person(planck: Clone) -> None:
    """Also where the log has not seen the person: then nobody gets it unless that is asked for."""
    person = "human:hb@example.org"
    assert as_client(planck, person, "signal", "hello", "--broadcast").status == 0

    refused(planck, "unknown-recipient", "signal", "x", "--to", person)
    assert planck.send("secret", "--to", person, "--allow-unseen")["recipients"] == [person]


@pytest.mark.parametrize("value", ["Noether", "a:b:c", "x@example.org", "sess-abcdef123456", "thread-7"])
def test_what_could_be_a_name_or_an_address_never_means_a_client(planck: Clone, value: str) -> None:
    """Somebody may be called so whom this clone has not heard of yet."""
    assert as_client(planck, value, "signal", "hello", "--broadcast").status == 0

    refused(planck, "unknown-recipient", "signal", "secret", "--to", value)
    refused(planck, "unknown-session", "signal", "secret", "--broadcast", "--as", value)


@pytest.mark.parametrize("value", [UUID, UUID.upper(), OPENCODE])
def test_the_ids_that_clients_give_their_sessions_still_mean_them(planck: Clone, value: str) -> None:
    """As recipient and as caller, before the client has a session of gitmem."""
    said = as_client(planck, value, "signal", "hello", "--broadcast", "--json")
    reader = said.json["signal"]["sender_identity"]
    assert reader.startswith("h-")

    assert planck.send("for the client", "--to", value)["recipients"] == [reader]
    done = planck("signal", "mine", "--broadcast", "--as", value, "--json")
    assert done.json["signal"]["sender_identity"] == reader


def test_as_means_the_session_that_a_client_started_under_its_id(planck: Clone) -> None:
    """As `--to` does, and the id itself is not published."""
    started = as_client(planck, UUID, "session", "start", "--name", "Noether", "--json").json

    done = planck("signal", "mine", "--broadcast", "--as", UUID, "--json")
    assert done.json["signal"]["sender_session"] == started["session_id"]
    assert planck.send("for it", "--to", UUID)["recipients"] == [started["session_id"]]
    assert UUID not in planck("log", "--json").out
    assert planck("session", "end", "--as", UUID).status == 0
    refused(planck, "unknown-session", "signal", "late", "--broadcast", "--as", UUID)


def test_somebody_who_is_called_like_a_clients_id_comes_before_it(hub: Hub, planck: Clone) -> None:
    """A name may have the form of OpenCode's ids."""
    assert as_client(planck, OPENCODE, "signal", "hello", "--broadcast").status == 0
    curie = hub.clone("Curie")
    assert curie("session", "set", "--name", OPENCODE).status == 0
    planck.sync()
    curie.sync()
    planck.sync()

    assert planck.send("secret", "--to", OPENCODE)["recipients"] == [curie.identity]


def test_an_identity_that_reads_like_an_id_or_a_group_is_refused(planck: Clone) -> None:
    """Also as a recipient that nobody has seen. Words inside of an identity are fine."""
    for identity in ("sess-a:b:c", "SESS-a:b:c", "h-x:y:z", "h-2:y:z", "sig-x:y:z", "all:all:all", "*:-:all"):
        refused(planck, "bad-identity", "session", "start", f"--agent-identity={identity}")
        refused(planck, "unknown-recipient", "signal", "x", "--allow-unseen", "--to", identity)
    refused(planck, "bad-identity", "session", "set", "--agent-identity=all:all:all")
    for identity in ("gitmem:all:x", "me:coder:all", "hannah:a:b"):
        assert planck("session", "start", "--agent-identity", identity).status == 0


def pins(clone: Clone) -> list[Path]:
    return list((clone.path / ".git" / "gitmem" / "pins").iterdir())


def forge_end(hub: Hub, clone: Clone, *names: str, session: str | None = None) -> None:
    """Push lines that rename a session of a clone, by default that of its agent, and then end it; the clone syncs."""
    clone.sync()
    start = {"session_id": session or clone.session, "clone_id": "x" * 10, "agent_identity": clone.identity}
    renamed = [
        line("session", now(1 + number), event="change", display_name=name, name_chosen=True, **start)
        for number, name in enumerate(names)
    ]
    hub.forge(*renamed, line("session", now(9), event="end", display_name=(*names, "Planck")[-1], **start))
    clone.sync()


@pytest.mark.parametrize("pinned", [True, False])
@pytest.mark.parametrize("names", [(), ("Mallory",)])
def test_a_session_that_a_peer_ended_is_still_called_as_it_calls_itself(
    hub: Hub, planck: Clone, names: tuple[str, ...], pinned: bool
) -> None:
    """As caller, recipient and identity; each answer says what was forged."""
    assert planck("session", "start", "--name", "Noether").status == 0
    forge_end(hub, planck, *names)
    for pin in pins(planck):
        if not pinned:
            pin.unlink()

    for who in ("Planck", planck.identity):
        own = planck("signal", "mine", "--broadcast", "--json", "--as", who)
        assert own.status == 0 and own.json["signal"]["sender_session"] == planck.session, own
        assert "FORGED" in planck("whoami", "--as", who).err
        if not pinned:
            for pin in pins(planck):
                pin.unlink()
    sent = planck("signal", "for Planck", "--to", "Planck", "--json", "--as", "Noether")
    assert sent.status == 0 and sent.json["signal"]["recipients"] == [planck.identity], sent
    (warning,) = sent.json["warnings"]
    assert "FORGED" in warning and "has ended" in warning and planck.session in warning
    assert [each["message"] for each in planck.inbox() if "for" in each["message"]] == ["for Planck"]


def test_a_party_whose_session_a_peer_ended_is_still_waited_for(hub: Hub, planck: Clone) -> None:
    """It has no identity, so that its session is the party."""
    noether = planck("session", "start", "--name", "Noether", "--json").json["session_id"]
    asked = planck("signal", "Tabs?", "--to", "Noether", "--intent", "propose", "--json", "--as", "Planck")
    forge_end(hub, planck, session=noether)

    told = planck("converged", asked.json["signal"]["signal_id"], "--as", "Planck")
    assert "has ended" not in told.out + told.err and "--wait" in told.out, told
    assert planck("session", "end", "--as", noether).status == 0
    assert f"({noether}) has ended" in str(planck("converged", asked.json["signal"]["signal_id"]))


def test_a_name_that_only_forged_lines_gave_is_refused_with_the_reason(hub: Hub, planck: Clone) -> None:
    forge_end(hub, planck, "Mallory")

    said = refused(planck, "unknown-recipient", "signal", "x", "--to", "Mallory")
    assert "FORGED" in str(said.json) and "gitmem doctor" in str(said.json)
    refused(planck, "unknown-session", "signal", "x", "--broadcast", "--as", "Mallory")


def test_the_roster_says_which_session_a_peer_ended(hub: Hub, planck: Clone) -> None:
    """It shows what all clones show, and a warning beside it, here alone."""
    assert "FORGED" not in planck("roster").out
    forge_end(hub, planck)

    shown = planck("roster", "--json").json
    assert planck.session not in [each["session_id"] for each in shown["sessions"]]
    assert "FORGED" in shown["remark"] and planck.session in shown["remark"]
    assert planck("session", "end").status == 0
    assert "FORGED" not in str(planck("roster", "--json").json["remark"])
