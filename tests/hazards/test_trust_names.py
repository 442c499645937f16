"""Names that read like an address, an id or a word for a group: nobody may take one, and none gets mail."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from gitmem.log.lines import format_at

from .forging import Answer, Clone, Hub, line

BOB = "human:bob@example.org"
HASH = "h-" + "abcdefghijklmnopqrstuvwxyz"
RESERVED = (
    BOB, "bob@example.org", "wu:WU-7", "role:reviewer", "a:b:c", "human\uff1abob", "human\ua789bob",
    HASH, "H-Planck", "sess-abcdef12", "SESS-abcdef12", "sess_abcdef12", "sig-abcdef", "0f8fad5b-d9cb-469f-a165-70867728950e",
    "all", "ALL", "All-2", "everybody", "Everyone", "anyone", "nobody", "broadcast", "me", "self", "human", "gitmem",
    "--all", "*", "a,b",
)  # fmt: skip
HIDDEN = (
    "Curie\ufe0f",
    "Cu\u034frie",
    "Curie\u3164",
    "\u115fCurie",
    "Cu\u00adrie",
    "Curie\U000e0101",
    "Curie\u2800",
)
PLAIN = ("Alle", "Meg", "H", "H-2", "Sigrid", "Hannah", "planck 2", "audit-bot", "hall", "dev-1", "Émilie")


def now(seconds: float) -> str:
    return format_at(time.time_ns() // 1000 + int(seconds * 1_000_000))


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    """A hub whose clones run the installed program."""
    return Hub(tmp_path)


@pytest.fixture
def planck(hub: Hub) -> Clone:
    return hub.clone("Planck")


def tip(clone: Clone) -> bytes:
    return subprocess.check_output(["git", "rev-parse", "refs/gitmem/log"], cwd=clone.path)


def refused(clone: Clone, code: str, *args: str) -> Answer:
    """Run a command, which must exit with 2 and this code and record nothing."""
    before = tip(clone)
    answer = clone(*args, "--json")
    assert answer.status == 2 and answer.json["error"]["code"] == code, (args, answer)
    assert tip(clone) == before, args
    return answer


def forge_names(hub: Hub, names: Sequence[str]) -> list[str]:
    """Push a live session of Mallory's for each name; their identities."""
    made = [f"evil:worker:w{number}" for number in range(len(names))]
    hub.forge(
        *(
            line("session", now(-60), session_id=f"sess-evil{number:04d}", event="start", agent_identity=made[number],
                 display_name=name, name_chosen=True, clone_id="x" * 10)
            for number, name in enumerate(names)
        )
    )  # fmt: skip
    return made


@pytest.mark.parametrize("kind", ["reserved", pytest.param("hidden", marks=pytest.mark.deep)])
def test_nobody_can_take_a_name_that_reads_like_another(kind: str, planck: Clone) -> None:
    """For itself, later, or into the pool; nothing is recorded."""
    for name in (RESERVED if kind == "reserved" else HIDDEN)[:: 1 if kind == "hidden" else 4]:
        refused(planck, "bad-name", "session", "start", f"--name={name}")
    for name in ("all", BOB, HIDDEN[0]):
        refused(planck, "bad-name", "session", "set", f"--name={name}")
        refused(planck, "bad-name", "name", "add", "Fine", name)


@pytest.mark.deep
def test_an_identity_with_a_character_that_is_not_seen_is_refused(planck: Clone) -> None:
    """Also one that starts like a person's address, and as a recipient that nobody has seen."""
    for identity in ("codex:impl:a\ufe0f", "co\u3164dex:impl:a", "Human:impl:a", "\uff48uman:impl:a"):
        refused(planck, "bad-identity", "session", "start", "--agent-identity", identity)
        refused(planck, "bad-identity", "session", "set", "--agent-identity", identity)
    refused(planck, "unknown-recipient", "signal", "hello", "--to", "codex:impl:a\ufe0f", "--allow-unseen")


@pytest.mark.deep
def test_a_peer_that_is_called_like_an_address_gets_nobodys_mail(hub: Hub, planck: Clone) -> None:
    """The sessions are shown; none of these words means one of them, and nobody acts as one of them."""
    planck.sync()
    names = [each for each in RESERVED if "," not in each]
    made = forge_names(hub, names)
    planck.sync()
    shown = {each["agent_identity"] for each in planck("roster", "--json").json["sessions"]}
    assert shown >= set(made)

    for name in names[::3]:
        code = "no-role-holder" if name.startswith("role:") else "unknown-recipient"
        refused(planck, code, "signal", "hello", f"--to={name}", "--fuzzy")
    for name in ("all", BOB, HASH):
        refused(planck, "unknown-session", "signal", "hello", f"--as={name}")
    sent = planck.send("hello", "--to", BOB, "--allow-unseen")
    assert sent["recipients"] == [BOB]


@pytest.mark.deep
def test_a_word_that_a_peer_uses_as_its_address_means_nobody(hub: Hub, planck: Clone) -> None:
    """Nor does a name that somebody has mean a peer whose identity or client is called so."""
    curie = hub.clone("Curie")
    curie.sync()
    planck.sync()
    start = {"event": "start", "clone_id": "x" * 10}
    hub.forge(
        *(
            line("signal", now(-50), signal_id=f"sig-evil{number}", sender_identity=word, recipients=[], intent="INFO",
                 interrupt_class="advisory", message="x", origin="local")
            for number, word in enumerate(("all", "everybody", "Curie"))
        ),
        line("session", now(-60), session_id="sess-evil0001", agent_identity="evil:x:one", display_name="Mallory",
             harness_session="Curie", **start),
        line("session", now(-60), session_id="sess-evil0002", agent_identity="evil:x:two", display_name="Mallet",
             harness_session="all", **start),
        line("session", now(-60), session_id="sess-evil0003", agent_identity="evil:x:three", display_name="Malone",
             harness_session=BOB, **start),
    )  # fmt: skip
    planck.sync()

    for word in ("all", "everybody"):
        refused(planck, "unknown-recipient", "signal", "hello", "--to", word)
    refused(planck, "unknown-recipient", "signal", "hello", "--to", BOB)
    assert planck.send("hello", "--to", "Curie")["recipients"] == [curie.identity]


def test_a_name_enters_the_pool_only_where_it_is_clear_who_adds_it(planck: Clone) -> None:
    """Two agents work here, and nothing says which of them calls."""
    assert planck("session", "start", "--name", "Noether").status == 0
    for verb in ("add", "remove"):
        answer = planck(
            "name", verb, "Curie" if verb == "remove" else "Zorba", "--json", env={"GITMEM_SESSION": ""}
        )
        assert answer.status == 2 and answer.json["error"]["code"] == "which-session", answer
    assert planck("name", "add", "Zorba").status == 0
    (said,) = (row for row in log_lines(planck) if b'"kind":"name"' in row)
    assert planck.session.encode() in said


def log_lines(clone: Clone) -> list[bytes]:
    listed = subprocess.check_output(
        ["git", "ls-tree", "-r", "--format=%(objectname) %(path)", "refs/gitmem/log"],
        cwd=clone.path,
        text=True,
    )
    found: list[bytes] = []
    for oid, path in (row.split(" ", 1) for row in listed.splitlines()):
        if path.endswith(".jsonl"):
            found += subprocess.check_output(["git", "cat-file", "blob", oid], cwd=clone.path).splitlines()
    return found
