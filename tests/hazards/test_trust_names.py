"""Names that read like an address, an id or a word for a group: nobody may take one, and none gets mail."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from gitmem import records, views
from gitmem.agents import broadcasts, mailbox
from gitmem.index import catch_up, index_file
from gitmem.index import entities as rows_of
from gitmem.log.lines import format_at, line_hash
from gitmem.records import ids

from ..sandbox import annas
from ..signing import ANNA, MALLORY, addressed, attest, salted
from .forging import Answer, Clone, Hub, changed, exchange, hours_later, line

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
    """For itself or later; nothing is recorded."""
    for name in (RESERVED if kind == "reserved" else HIDDEN)[:: 1 if kind == "hidden" else 4]:
        refused(planck, "bad-name", "session", "start", f"--name={name}")
    for name in ("all", BOB, HIDDEN[0]):
        refused(planck, "bad-name", "session", "set", f"--name={name}")


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
        refused(planck, code, "signal", "hello", f"--to={name}")
    for name in ("all", BOB, HASH):
        refused(planck, "unknown-session", "signal", "hello", f"--as={name}")
    sent = planck.send("hello", "--to", BOB, "--allow-unseen")
    assert sent["recipients"] == [BOB]


@pytest.mark.deep
def test_a_session_without_a_writer_takes_no_name_and_no_role(tmp_path: Path) -> None:
    hub = Hub(tmp_path)
    planck, curie = hub.acquainted()
    hub.bring_in(
        line("session", at="1970-01-01T00:00:01.000000Z", session_id="sess-zzzz", event="start", agent_identity=curie.identity,
             display_name="Curie", clone_id="x", lifecycle_role="reviewer"),
        line("session", at=hours_later(4), session_id="sess-zzzz", event="change", display_name="Curie", clone_id="x"),
    )  # fmt: skip
    bohr = hub.clone("Bohr")
    exchange(planck, bohr)
    assert bohr.send("Hi.", "--to", "Curie")["recipients"] == [curie.identity]
    assert bohr("signal", "--to", "role:reviewer", "Hi.").status == 2
    roster = bohr("roster", "--all", "--json").json["sessions"]
    assert {"Curie", "Curie-2"} <= {each["display_name"] for each in roster}  # it is displayed


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


# What a local process calls its session is nobody else's address.

CLIENT = "CLAUDE_CODE_SESSION_ID"
UUID = "0f8fad5b-d9cb-469f-a165-70867728950e"
OPENCODE = "ses_3f9d2c1b7ffeQ4mZx0LkT8vWya"


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


# Broadcasts from clocks that are days behind, to readers who were away, and with `seen` lists that were made up.

START = 1_793_000_000_000_000
DAY = broadcasts.BACKLOG_MICROS
CPU_SECONDS = 4  # of processor time for what a peer pushed


def broadcast(id: str, at: str, seen: list[str] | None, message: str) -> bytes:
    whole = line(
        "signal",
        at,
        signal_id=id,
        sender_identity="test:worker:slow",
        recipients=[],
        message=message,
        seen=seen,
    )
    return changed(whole)


def hash_of(line: bytes) -> str:
    """The hash of a line of Mallory's."""
    return line_hash(addressed(line, MALLORY)).hex()


def test_a_broadcast_from_a_clock_that_is_days_behind_reaches_who_was_there(hub: Hub) -> None:
    """The reader's own first line did not know it; one that comes later knows it, and is spared."""
    planck = hub.clone("Planck")
    sent = planck.send("first")["signal_id"]
    planck.sync()
    known = line_hash(hub.line_of(sent)).hex()
    hub.forge(broadcast("sig-slow00000001", "2020-01-01T00:00:00.000000Z", [known], "from a slow clock"))
    planck.sync()
    assert [each["message"] for each in planck.inbox()] == ["from a slow clock"]
    assert planck.inbox() == []

    curie = hub.clone("Curie")
    first = next(
        json.loads(each) for each in _lines(curie) if b'"kind":"session"' in each and b"curie" in each
    )
    assert first["seen"] == [line_hash(hub.line_of("sig-slow00000001")).hex()]
    assert [each["message"] for each in curie.inbox()] == ["first"]


IMPORTANT_KEY = "deploy"


def important() -> bytes:
    """A broadcast of a colleague's from three days ago, whose id everybody can compute before."""
    sender = annas("test:worker:slow")
    return salted(line("signal", now(-3 * DAY / 1_000_000), writer=ANNA.writer, signal_id=ids.own_id("sig", ANNA.writer, sender, IMPORTANT_KEY),
                       sender_identity=sender, recipients=[], idempotency_key=IMPORTANT_KEY, message="important", seen=[]))  # fmt: skip


def of_stranger(seen: list[str]) -> bytes:
    return broadcast("sig-mall00000001", hours_later(1), seen, "x")


def is_unread_by(curie: Clone) -> bool:
    curie.sync()
    return "important" in [each["message"] for each in curie.inbox("--no-mark")]


def test_a_further_line_of_an_id_does_not_hide_what_came_later(hub: Hub) -> None:
    """The reader's first line names the line that it had, not what a stranger makes of the same id afterwards."""
    hub.clone("Planck").sync()
    stranger, late = of_stranger([]), important()
    hub.forge(stranger)
    curie = hub.clone("Curie")
    hub.push(late, attest([late], ANNA))
    assert is_unread_by(curie)

    hub.forge(of_stranger([line_hash(late).hex()]))

    assert is_unread_by(curie)
    assert hash_of(stranger).encode() in b"".join(each for each in _lines(curie) if b"curie" in each)


def test_a_broadcast_whose_id_can_be_computed_is_not_hidden_before_it_exists(hub: Hub) -> None:
    """A stranger names the id that the key of a colleague's broadcast will give it."""
    hub.clone("Planck").sync()
    late = important()
    hub.forge(of_stranger([json.loads(late)["signal_id"]]))
    curie = hub.clone("Curie")
    hub.push(late, attest([late], ANNA))

    assert is_unread_by(curie)


def _lines(clone: object) -> list[bytes]:
    import subprocess

    path = clone.path  # type: ignore[attr-defined]  # a Clone
    found = subprocess.run(
        ["git", "grep", "-h", "", "refs/gitmem/log", "--", "*.jsonl"],
        cwd=path,
        capture_output=True,
        check=True,
    )
    return found.stdout.splitlines()


def test_broadcasts_to_who_was_away_wait(hub: Hub) -> None:
    """Whoever has a first line gets every later broadcast, whatever `seen` says; without the field the clock decides."""
    planck = hub.clone("Planck")
    planck.sync()
    own = json.loads(next(each for each in hub.lines() if b'"kind":"session"' in each))
    old = [
        broadcast(f"sig-old{number:09}", f"2026-01-0{number}T00:00:00.000000Z", [], str(number))
        for number in (1, 2)
    ]
    third = broadcast("sig-third0000001", "2026-01-03T00:00:00.000000Z", ["0" * 32], "3")
    hub.forge(*old, broadcast("sig-plain0000001", "2026-01-01T00:00:00.000000Z", None, "without seen"), third,
              broadcast("sig-fourth000001", "2026-01-04T00:00:00.000000Z", [hash_of(third), "1" * 32], "4"))  # fmt: skip
    planck.sync()
    assert own["seen"] == []
    assert [each["message"] for each in planck.inbox()] == ["1", "2", "3", "4"]


@pytest.mark.deep
@pytest.mark.parametrize("shape", ["chain", "wide", "one id"])
def test_no_list_of_names_makes_the_index_slow(shape: str) -> None:
    """Megabytes of broadcasts that name each other, thousands of readers: seconds at most, and each inbox is quick."""
    count, readers = 6_000, 4_000
    lines: list[bytes] = []
    for number in range(count):
        id = "sig-one0" if shape == "one id" else f"sig-{number:04}"
        named = [line_hash(each).hex() for each in lines[-1 if shape == "chain" else -16 :]]
        lines.append(records.line("signal", START - 9 * DAY + number, {
            "schema_version": "A2A.V1", "signal_id": id, "sender_identity": "a:b:c", "recipients": [],
            "message": str(number), "seen": named,
        }))  # fmt: skip
    lines += [
        records.line("session", START + number, {
            "schema_version": "A2A.V1", "session_id": f"sess-{number:04}", "event": "start", "clone_id": "clone",
            "display_name": f"N{number}", "seen": [line_hash(lines[count - 1]).hex()] if number % 2 else [],
        })
        for number in range(readers)
    ]  # fmt: skip
    index = index_file.in_memory([views.MAIL, *views.VIEWS[1:]], records.read)
    index.reshape()
    rows = [rows_of.LineRow(number, each, records.read(each) or {}) for number, each in enumerate(lines, 1)]
    index.db.executemany(
        "INSERT INTO line VALUES (?, 1, ?, ?, ?, ?)",
        [(row.id, str(row.id), row.at, row.record["kind"], row.line.decode()) for row in rows],
    )
    begun = time.process_time()
    mailbox.add(index.db, rows_of.Rows(rows))
    for number in (0, 1, readers - 1):
        mailbox.unread_ids(index.db, f"sess-{number:04}", None, None, START)
    assert time.process_time() - begun < CPU_SECONDS


def test_an_inbox_with_nothing_new_looks_at_nothing_old() -> None:
    """The cursor of a reader that comes to a long log stands behind all that it knows."""
    lines: list[bytes] = []
    for number in range(500):
        lines.append(records.line("signal", START - 9 * DAY + number, {
            "schema_version": "A2A.V1", "signal_id": f"sig-{number:04}", "sender_identity": "a:b:c", "recipients": [],
            "message": "old", "seen": [line_hash(each).hex() for each in lines[-1:]],
        }))  # fmt: skip
    index = index_file.in_memory(views.VIEWS, records.read)
    index.reshape()
    catch_up.insert_lines(index, catch_up.OWN_FILE, lines)
    assert broadcasts.latest_broadcasts(index.db) == [line_hash(lines[-1]).hex()]
    first = records.line("session", START, {
        "schema_version": "A2A.V1", "session_id": "sess-0001", "event": "start", "clone_id": "clone",
        "display_name": "Planck", "seen": broadcasts.latest_broadcasts(index.db),
    })  # fmt: skip
    catch_up.insert_lines(index, catch_up.OWN_FILE, [first])
    assert broadcasts.BroadcastStart(index.db, "sess-0001", None).cursor == 500
    assert mailbox.unread_ids(index.db, "sess-0001", None, None, START) == []


# Mail for a session of another clone, after a peer wrote in its name that it is somebody else.

EVIL = "evil:x:y"


class Scene:
    """Planck's clone, and Curie's, which have met; Planck has written to Curie if `pinned`."""

    def __init__(self, root: Path, *, pinned: bool, identity: bool = True) -> None:
        self.hub = Hub(root)
        self.planck, self.curie = self.hub.acquainted()
        self.session, self.identity = self.curie.session, self.curie.identity
        if not identity:
            started = self.curie(
                "session", "start", "--name", "Meitner", "--json", env={"GITMEM_SESSION": ""}
            )
            assert started.status == 0, started
            self.session, self.identity = started.json["session_id"], ""
        self.name = "Curie" if identity else "Meitner"
        self.curie.sync()
        self.planck.sync()
        if pinned:
            self.planck.send("hello", "--to", self.name)

    def forge(self, event: str, at: float, **fields: object) -> None:
        """A line in the name of Curie's session."""
        clone_id = next(
            record["clone_id"]
            for record in map(json.loads, self.hub.lines())
            if record.get("session_id") == self.session
        )
        about = {"session_id": self.session, "event": event, "display_name": self.name, "clone_id": clone_id}
        self.hub.forge(line("session", now(at), **{**about, **fields}))
        self.planck.sync()

    def unread(self, who: Clone, message: str) -> bool:
        """Whether the session gets a message."""
        self.planck.sync()
        who.sync()
        shown = who("inbox", "--json", env={"GITMEM_SESSION": self.session})
        return message in [each["message"] for each in shown.json["signals"]]


def test_an_identity_that_came_back_in_another_session_keeps_its_name(tmp_path: Path) -> None:
    """A line that changes the session which had the name first says nothing of that one."""
    scene = Scene(tmp_path, pinned=True)
    assert scene.curie("session", "end").status == 0
    again = scene.curie("session", "start", "--name", "Curie", "--agent-identity", scene.identity, "--json",
                        env={"GITMEM_SESSION": ""})  # fmt: skip
    assert again.status == 0, again
    scene.curie.session = again.json["session_id"]
    scene.curie.sync()
    scene.forge("change", -1000.0, agent_identity=EVIL)
    sent = scene.planck.send("still you", "--to", "Curie")
    assert sent["recipients"] == [scene.identity]
