"""From the command line: who is one writer, what a lost key costs, and that nobody else writes for a writer."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gitmem.log.lines import is_attestation, writer_of
from gitmem.log.write_ahead import READ_BYTES_MAX
from gitmem.records.ids import new_id
from tests.signing import MALLORY, attest, key_of, named, put_key

from ..hazards.conftest import process
from ..sandbox import committed
from .conftest import Machine, git

BRANCH = "refs/heads/gitmem"
OTHER = key_of(bytes([7]) * 32)


def writers(repo: Path) -> set[str]:
    return {writer_of(line) for line in committed(repo)}


def test_all_clones_of_a_user_on_a_machine_are_one_writer(hub: Path, machine: Callable[..., Machine]) -> None:
    """First use asks nothing, and each line and commit is attested."""
    anna = machine("anna")
    one, two = anna.clone(hub, "one"), anna.clone(hub, "two")
    anna.say(one, "from one")
    anna.sync(one)
    anna.sync(two)
    anna.say(two, "from two")

    lines = committed(two)
    assert len(writers(two)) == 1 and "" not in writers(two)
    assert sum(map(is_attestation, lines)) == 2
    keys = list((anna.top / "state" / "gitmem" / "keys").iterdir())
    assert [key.name for key in keys] == [git(one, "rev-list", "--max-parents=0", "HEAD")]


def test_a_chosen_key_file_makes_another_machine_the_same_writer(
    hub: Path, machine: Callable[..., Machine]
) -> None:
    """By a variable, or by the user's own git configuration; a container has it from the beginning."""
    anna = machine("anna")
    one = anna.clone(hub)
    anna.say(one, "from the first")
    anna.sync(one)
    (key,) = (anna.top / "state" / "gitmem" / "keys").iterdir()
    for name, env in (("container", {"GITMEM_KEY_FILE": "KEY"}), ("laptop", {})):
        there = machine(name, **{each: str(anna.top.parent / name / "key") for each in env})
        shutil.copy(key, there.top / "key")
        if not env:
            git(there.top, "config", "--file", str(there.config), "gitmem.key", str(there.top / "key"))
        clone = there.clone(hub)
        there.sync(clone)
        said = there(clone, "signal", f"from the {name}", "--broadcast", "--json")
        assert said.json["commit"] is not None or not env  # the container may end now
        there(clone, "log")
        assert writers(clone) == writers(one), name
        assert not (there.top / "state" / "gitmem" / "keys").exists()


def test_a_repository_does_not_choose_the_key(hub: Path, machine: Callable[..., Machine]) -> None:
    """Its configuration may come from anywhere."""
    anna = machine("anna")
    repo = anna.clone(hub)
    other = anna.top / "other"
    put_key(other, OTHER)
    git(repo, "config", "gitmem.key", str(other))

    anna.say(repo, "hello")

    (key,) = (anna.top / "state" / "gitmem" / "keys").iterdir()
    assert key.read_bytes() != other.read_bytes()


def test_what_waits_for_a_lost_key_is_kept_named_and_sent_when_it_is_back(
    hub: Path, machine: Callable[..., Machine]
) -> None:
    """A new key is made when the user asks for it; what is written then goes out at once."""
    anna = machine("anna")
    repo = anna.clone(hub)
    anna.say(repo, "before")
    kept = hide_keys(anna)

    assert anna.say(repo, "meanwhile")["commit"] is None
    said = anna.sync(repo)
    found = anna(repo, "doctor", "--json")
    assert "key is missing" in said.out + said.err
    assert "writer-key" in {each["code"] for each in found.json["findings"]}
    age(repo)
    assert findings(anna, repo, "writer-key") and not findings(anna, repo, "wal-waits"), (
        "one cause, one finding"
    )
    assert "A new key was made" in anna(repo, "doctor", "--fix").out
    anna.say(repo, "afterwards")
    anna.sync(repo)
    (found,) = findings(anna, repo, "lost-key")
    assert found["what"].startswith("1 recorded line waits for the key") and found["fixable"]
    age(repo)
    assert findings(anna, repo, "lost-key") and not findings(anna, repo, "wal-waits"), (
        "one cause, one finding"
    )
    assert "meanwhile" in anna.hears(repo)
    bob = machine("bob")
    there = bob.clone(hub)
    bob.sync(there)
    assert "afterwards" in bob.hears(there) and "meanwhile" not in bob.hears(there)

    (new,) = (anna.top / "state" / "gitmem" / "keys").iterdir()
    kept.rename(new.with_name("restored"))
    anna.sync(repo)
    assert not findings(anna, repo, "lost-key")
    bob.sync(there)
    assert "meanwhile" in bob.hears(there)


def hide_keys(user: Machine) -> Path:
    """Let the key of a user be where no process sees it, nor its folder; return its new path."""
    (key,) = (user.top / "state" / "gitmem" / "keys").iterdir()
    return key.parent.rename(user.top / "backup") / key.name


def age(repo: Path) -> None:
    """Let what waits have waited for ten minutes."""
    for each in (repo / ".git/gitmem/wal").iterdir():
        os.utime(each, (time.time() - 600, time.time() - 600))


def findings(user: Machine, repo: Path, code: str) -> list[Any]:
    found = user(repo, "doctor", "--json").json["findings"]
    return [each for each in found if each["code"] == code]


@pytest.mark.parametrize("lost", ["the key", "the home"])
def test_what_waits_for_a_lost_key_is_set_aside_when_the_user_says_so(
    hub: Path, machine: Callable[..., Machine], lost: str
) -> None:
    """A container begins anew with the old .git: its records are in a file, byte for byte, and come back with the key."""
    anna = machine("anna")
    repo = anna.clone(hub)
    anna.say(repo, "before")
    kept = hide_keys(anna)
    if lost == "the home":
        anna = machine("container")
    anna.say(repo, "meanwhile")
    anna(repo, "signal", "and then", "--broadcast")
    fixed = anna(repo, "doctor", "--fix")
    assert "A new key was made" in fixed.out and "2 recorded lines wait" in fixed.out, (
        "nothing is set aside unasked"
    )
    waiting = [line for line in waits(repo) if b"meanwhile" in line or b"and then" in line]
    (found,) = findings(anna, repo, "lost-key")
    assert len(waiting) == 2 and "2 recorded lines wait" in found["what"]
    before_it = repo / ".git" / "gitmem" / "aside" / f"unattested-{writer_of(waiting[0])}.jsonl"
    before_it.parent.mkdir(exist_ok=True)
    before_it.touch()
    os.truncate(before_it, READ_BYTES_MAX + 1)
    anna(repo, "doctor", "--fix")
    assert before_it.stat().st_size == READ_BYTES_MAX + 1, "a file that can't be read whole is not replaced"
    assert set(waiting) <= set(waits(repo))
    before_it.unlink()

    fixed = anna(repo, "doctor", "--fix", "--json")

    (file,) = (repo / ".git" / "gitmem" / "aside").glob("unattested-*.jsonl")
    assert str(file) in found["fix"] and file.stat().st_mode & 0o777 == 0o600
    assert file.read_bytes() == b"".join(line + b"\n" for line in sorted(waiting))
    assert (fixed.status, waits(repo)) == (0, []), fixed.out
    assert anna.sync(repo).status == 0
    assert "meanwhile" not in anna.hears(repo) and "before" in anna.hears(repo)
    assert [each["code"] for each in anna(repo, "doctor", "--json").json["findings"]] == ["set-aside"]

    kept.rename(anna.top / "state" / "gitmem" / "keys" / "restored")
    assert "--fix records them again" in findings(anna, repo, "set-aside")[0]["fix"]
    edited = file.read_bytes() + b"a note of the user\n"
    file.write_bytes(edited)
    anna(repo, "doctor", "--fix")
    assert not file.exists() and not waits(repo)
    (kept_file,) = file.parent.glob("*-unattested-*")
    assert kept_file.read_bytes() == edited
    assert set(waiting) <= set(committed(repo))
    assert anna(repo, "verify").status == 0 and anna(repo, "doctor").status == 0


def waits(repo: Path) -> list[bytes]:
    """The lines in the write-ahead log of a clone."""
    files = sorted((repo / ".git" / "gitmem" / "wal").iterdir())
    return [
        row.partition(b"\t")[2] for file in files for row in file.read_bytes().split(b"\n") if b"\t{" in row
    ]


@pytest.mark.parametrize("how", ["unattested", "attested by another", "with the attestation of another line"])
def test_nobody_else_adds_a_line_to_a_writers_own(
    hub: Path, machine: Callable[..., Machine], how: str
) -> None:
    """Whoever can push: such a line is shown to nobody, in no clone, not in that of its writer; doctor counts it."""
    anna, bob = machine("anna"), machine("bob")
    here, there = anna.clone(hub), bob.clone(hub)
    anna.say(here, "I agree to nothing.")
    anna.sync(here)
    lines = committed(here)
    genuine = next(line for line in lines if not is_attestation(line))
    record = {
        **json.loads(genuine),
        "at": "2026-11-28T10:00:00.000000Z",
        "signal_id": new_id("sig", writer_of(genuine)),
        "message": "FORGED",
    }
    forged = json.dumps(record, separators=(",", ":")).encode()
    more = {
        "unattested": [],
        "attested by another": [attest([forged], MALLORY)],
        "with the attestation of another line": [each for each in lines if is_attestation(each)],
    }[how]
    push(hub, [forged, *more])

    for user, clone in ((bob, there), (anna, here)):
        user.sync(clone)
        assert "FORGED" not in user.hears(clone) + user(clone, "inbox").out
        assert "I agree to nothing." in user.hears(clone)
        found = user(clone, "doctor", "--json").json["findings"]
        assert [each["code"] for each in found if each["code"] == "unattested"] == ["unattested"]


def push(hub: Path, lines: list[bytes]) -> None:
    """Add a segment to the shared branch as anybody who can push does."""
    env = {**os.environ, "GIT_INDEX_FILE": str(hub / "index-of-mallory")}

    def run(*args: str, given: bytes = b"") -> str:
        done = subprocess.run(["git", *args], cwd=hub, env=env, input=given, capture_output=True, check=True)
        return done.stdout.decode().strip()

    blob = run("hash-object", "-w", "--stdin", given=b"".join(line + b"\n" for line in sorted(lines)))
    run("read-tree", BRANCH)
    run("update-index", "--add", "--cacheinfo", f"100644,{blob},signals/2026-11/28/gm-mallory0.jsonl")
    who = ("-c", "user.name=mallory", "-c", "user.email=m@b.c")
    commit = run(*who, "commit-tree", run("write-tree"), "-p", BRANCH, "-m", "a segment")
    run("update-ref", BRANCH, commit)


def test_a_key_that_is_chosen_later_counts_from_the_next_commit_on(
    hub: Path, machine: Callable[..., Machine]
) -> None:
    """And the usual one again, when none is chosen any more."""
    anna = machine("anna")
    repo = anna.clone(hub)
    other = anna.top / "other"
    put_key(other, OTHER)
    anna.say(repo, "one")
    git(repo, "config", "--file", str(anna.config), "gitmem.key", str(other))
    anna.say(repo, "two")
    anna.say(repo, "three")
    git(repo, "config", "--file", str(anna.config), "--unset", "gitmem.key")
    anna.say(repo, "four")
    anna.say(repo, "five")

    said = {
        json.loads(line)["message"]: writer_of(line) for line in committed(repo) if b'"kind":"signal"' in line
    }
    assert said["one"] == said["two"] == said["five"] and said["three"] == said["four"] != said["one"]
    assert anna(repo, "verify").status == 0


def test_doctor_makes_no_key_in_place_of_a_chosen_one(hub: Path, machine: Callable[..., Machine]) -> None:
    """It says which file is missing, and what to do; what was chosen is never replaced by another."""
    anna = machine("anna")
    repo, other = anna.clone(hub), anna.top / "other"
    put_key(other, OTHER)
    git(repo, "config", "--file", str(anna.config), "gitmem.key", str(other))
    anna.say(repo, "one")
    other.unlink()

    fixed = anna(repo, "doctor", "--fix", "--json")

    (found,) = [each for each in fixed.json["findings"] if each["code"] == "writer-key"]
    assert (found["state"], fixed.status) == ("needs-you", 1) and str(other) in found["what"]
    assert not other.exists() and not (anna.top / "state" / "gitmem" / "keys").exists()


ATTACKS: dict[str, Callable[[Any], dict[str, object]]] = {
    "an earlier proposal in the thread": lambda root: {},
    "an earlier one that replaces another": lambda root: {"intent": "COUNTER", "reply_to": root["signal_id"]},
    "an earlier one with the id of the root": lambda root: {"signal_id": root["signal_id"]},
    "recorded by the session of the proposer": lambda root: {"via": root["sender_session"]},
    "in the name of the session of the proposer": lambda root: {
        "sender_identity": root["sender_session"],
        "sender_session": root["sender_session"],
        "recipients": ["mallory:agent:y"],
    },
    "with an id of nobody": lambda root: {"signal_id": "sig-" + "0" * 22},
}


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize(("agreed", "thread"), [(False, ()), (True, ()), (True, ("--thread", "release-1"))])
def test_another_writer_changes_nothing_of_what_was_agreed(
    hub: Path, machine: Callable[..., Machine], attack: str, agreed: bool, thread: tuple[str, ...]
) -> None:
    """With a key and an attestation of its own, back-dated, it has no part in a thread that it did not begin."""
    anna, bob = machine("anna"), machine("bob")
    here, there = anna.clone(hub), bob.clone(hub)
    sessions = {}
    for user, clone, name in ((anna, here, "codex:planner:one"), (bob, there, "claude:reviewer:two")):
        started = user(clone, "session", "start", "--agent-identity", name, "--json")
        user.env["GITMEM_SESSION"] = sessions[user] = started.json["session_id"]
        user.sync(clone)
    anna.sync(here)
    asked = anna(
        here, "signal", "Shall we?", "--to", "claude:reviewer:two", "--intent", "PROPOSE", *thread, "--json"
    )
    root = asked.json["signal"]
    anna.sync(here)
    bob.sync(there)
    assert root["thread_id"].partition("@")[0] == (thread[1] if thread else f"thread-{root['signal_id'][4:]}")
    if agreed:
        assert bob(there, "reply", root["signal_id"], "Yes.", "--agree", "--json").status == 0
    bob.sync(there)
    anna.sync(here)
    before = [asking(user, clone, root) for user, clone in ((anna, here), (bob, there))]
    assert before[0] == before[1] and before[0]["root"] == root["signal_id"]
    assert before[0]["converged"] is agreed

    made = {
        "at": "2026-01-01T00:00:00.000000Z", "kind": "signal", "schema_version": "A2A.V1",
        "signal_id": new_id("sig", MALLORY.writer), "sender_identity": "mallory:agent:x", "sender_session": None,
        "via": None, "recipients": ["mallory:agent:y"], "thread_id": root["thread_id"], "intent": "PROPOSE",
        "message": "FORGED", "origin": "local", **ATTACKS[attack](root),
    }  # fmt: skip
    fields = {name: value for name, value in made.items() if value is not None}
    line = named(json.dumps(fields, separators=(",", ":")).encode(), MALLORY)
    push(hub, [line, attest([line], MALLORY)])
    for user, clone in ((bob, there), (anna, here)):
        user.sync(clone)
    assert [asking(user, clone, root) for user, clone in ((anna, here), (bob, there))] == before


def asking(user: Machine, clone: Path, root: Any) -> Any:
    """What a clone says of the agreement, without what each clone is told to do next."""
    found = user(clone, "converged", root["thread_id"], "--json").json
    return {
        name: value for name, value in found.items() if name not in ("next", "warnings", "commit", "notice")
    }


def test_a_session_goes_on_under_its_own_key_alone(hub: Path, machine: Callable[..., Machine]) -> None:
    """A lost key ends it, for the agent whose variable names it and for the one whose client does."""
    anna = machine("anna")
    repo = anna.clone(hub)
    started = anna(repo, "session", "start", "--name", "Planck", "--wu", "WU-7", "--json")
    client = {"CLAUDE_CODE_SESSION_ID": "0b9d3b0e-7a52-4a5c-9e55-0c3f5a7e9b11"}
    anna.env.update(client)
    hooked = anna(repo, "session", "start", "--name", "Curie", "--wu", "WU-8", "--json")
    (key,) = (anna.top / "state" / "gitmem" / "keys").iterdir()
    key.rename(anna.top / "backup")
    assert "A new key was made" in anna(repo, "doctor", "--fix").out

    before = committed(repo)
    for args in (("signal", "x", "--broadcast"), ("session", "end"), ("claim", "docs")):
        said = process(*args, "--json", cwd=repo, env={**anna.env, "GITMEM_SESSION": started.json["session_id"],
                                                       "CLAUDE_CODE_SESSION_ID": ""})  # fmt: skip
        assert said.status == 2 and said.json["error"]["code"] == "another-key", said
    again = anna(repo, "session", "start", "--json").json
    assert again["session_id"] != hooked.json["session_id"]
    assert again["wu_id"] == "WU-8"  # the name is that of the lost one, until it is forgotten
    sent = anna.say(repo, "goes on")
    assert sent["signal"]["sender_session"] == again["session_id"]
    assert len(committed(repo)) > len(before)


def test_a_session_of_another_key_is_offered_to_nobody(hub: Path, machine: Callable[..., Machine]) -> None:
    """Neither to go on as it, nor to end it, nor to insist on its decision."""
    anna, bob = machine("anna"), machine("bob")
    here, there = anna.clone(hub), bob.clone(hub)
    curie = anna(here, "session", "start", "--name", "Curie", "--json").json["session_id"]
    anna.sync(here)
    bob.sync(there)
    bob.env["GITMEM_SESSION"] = bob(there, "session", "start", "--name", "Bohr", "--json").json["session_id"]
    asked = bob(there, "signal", "Split it?", "--to", "Curie", "--intent", "PROPOSE", "--json").json["signal"]
    refused = [bob(there, "session", "start", "--name", "Curie", "--json")]
    agree = ("reply", asked["signal_id"], "yes", "--agree", "--as", "Curie", "--json")
    refused += [bob(there, *agree, *more) for more in ((), ("--insist",))]
    codes = [each.json["error"]["code"] for each in refused]
    assert codes == ["name-in-use", "another-key", "another-key"]
    for each in refused:
        assert "another key" in each.out and "gitmem session start" in each.out
        assert (
            f"GITMEM_SESSION={curie}" not in each.out
            and "session end" not in each.out
            and "--insist" not in each.out
        )


def test_nobody_writes_as_a_session_of_somebody_else(hub: Path, machine: Callable[..., Machine]) -> None:
    """Its inbox can be read, which marks nothing; whatever would name it as its writer is refused and nothing is written."""
    anna, bob = machine("anna"), machine("bob")
    here, there = anna.clone(hub), bob.clone(hub)
    planck = anna(here, "session", "start", "--name", "Planck", "--json").json["session_id"]
    anna.sync(here)
    bob.sync(there)
    own = bob(there, "session", "start", "--name", "Bohr", "--json").json["session_id"]
    bob.env["GITMEM_SESSION"] = own
    assert bob(there, "signal", "Are you there?", "--to", "Planck", "--json").status == 0

    before = bob(there, "log", "--json").out
    for name in ("Planck", planck):
        for args in (("signal", "x", "--broadcast"), ("claim", "docs"), ("session", "end")):
            said = bob(there, *args, "--as", name, "--json")
            why = said.json["error"]
            assert said.status == 2 and "made under another key" in f"{why['message']} {why['hint']}", said
        read = bob(there, "inbox", "--as", name, "--json").json
        assert [each["message"] for each in read["signals"]] == ["Are you there?"]
    assert bob(there, "log", "--json").out == before
    bob.sync(there)
    anna.sync(here)
    env = {**anna.env, "GITMEM_SESSION": planck}
    assert "Are you there?" in process("inbox", cwd=here, env=env).out


def test_a_key_of_before_the_first_commit_is_that_of_the_project_afterwards(
    tmp_path: Path, machine: Callable[..., Machine]
) -> None:
    """So the user's second clone is the same writer."""
    anna = machine("anna")
    first, bare = anna.top / "new", tmp_path / "new.git"
    git(anna.top, "init", "--quiet", str(first))
    anna.say(first, "before")
    git(
        first,
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b.c",
        "commit",
        "--quiet",
        "--allow-empty",
        "-m",
        "begin",
    )
    git(anna.top, "clone", "--quiet", "--bare", str(first), str(bare))
    git(first, "remote", "add", "origin", str(bare))
    assert anna.sync(first).status == 0
    second = anna.clone(bare, "second")
    anna.sync(second)
    anna.say(second, "after")

    assert len(writers(first) | writers(second)) == 1
    assert "after" in anna.hears(second) and anna(second, "verify").status == 0


def key_of_project(user: Machine) -> Path:
    (found,) = (each for each in (user.top / "state" / "gitmem" / "keys").iterdir() if each.is_file())
    return found


def test_a_clone_adopts_the_key_that_another_clone_has_made(
    hub: Path, machine: Callable[..., Machine]
) -> None:
    """Only when the user says so, and the other clone goes on; the key that doctor has moved aside still signs."""
    anna = machine("anna")
    a, b = anna.clone(hub, "a"), anna.clone(hub, "b")
    anna.say(a, "before")
    old = anna(a, "trust", "--json").json["writer"]
    kept = key_of_project(anna).rename(anna.top / "backup")
    anna.say(b, "a new key")
    content = key_of_project(anna).read_bytes()
    new = anna(b, "trust", "--json").json["writer"]
    anna(a, "signal", "waits", "--broadcast")
    (found,) = findings(anna, a, "writer-key")
    assert f"the key of {new}" in found["what"] and new in found["fix"] and found["fixable"]
    assert anna(a, "trust", "--json").json["writer"] == old != new, "nothing in silence"

    anna(a, "doctor", "--fix")

    assert key_of_project(anna).read_bytes() == content
    for each in (a, b):
        assert anna(each, "trust", "--json").json["writer"] == new
        assert not findings(anna, each, "writer-key")
        assert anna.say(each, "goes on")["commit"] is not None
    (found,) = findings(anna, a, "lost-key")
    assert old in found["what"] and b"waits" in b"".join(waits(a))
    aside = key_of_project(anna).parent / "aside"
    aside.mkdir()
    kept.rename(aside / "20261128T000000Z-key")
    anna.sync(a)
    assert not findings(anna, a, "lost-key") and any(b'"waits"' in line for line in committed(a))


def test_a_key_of_another_clone_that_others_may_read_is_neither_adopted_nor_replaced(
    hub: Path, machine: Callable[..., Machine]
) -> None:
    """Doctor says what to do first."""
    anna = machine("anna")
    a, b = anna.clone(hub, "a"), anna.clone(hub, "b")
    anna.say(a, "before")
    key_of_project(anna).unlink()
    anna.say(b, "a new key")
    new = anna(b, "trust", "--json").json["writer"]
    key = key_of_project(anna)
    key.chmod(0o644)
    content = key.read_bytes()

    fixed = anna(a, "doctor", "--fix", "--json")

    (found,) = [each for each in fixed.json["findings"] if each["code"] == "writer-key"]
    assert f"chmod 600 {key}" in found["fix"] and found["state"] == "needs-you"
    assert key.read_bytes() == content and anna(a, "trust", "--json").json["writer"] != new
    key.chmod(0o600)
    anna(a, "doctor", "--fix")
    assert anna(a, "trust", "--json").json["writer"] == new


def test_a_lost_key_stops_what_records_and_nothing_that_reads(
    hub: Path, machine: Callable[..., Machine]
) -> None:
    """As a named one does; what is recorded would be seen by nobody else."""
    anna = machine("anna")
    repo = anna.clone(hub)
    anna.say(repo, "before")
    key = key_of_project(anna)
    key.unlink()

    for args in (("signal", "lost", "--broadcast"), ("mem", "create", "lost")):
        said = anna(repo, *args, "--json")
        assert (said.status, said.json["error"]["code"]) == (4, "key-file"), said
        assert f"is missing: {key}. Nothing was written." in said.json["error"]["message"]
        assert said.json["next"] == ["gitmem doctor"]
    for args in (("inbox",), ("log",), ("roster",), ("whoami",), ("trust",)):
        said = anna(repo, *args)
        assert said.status == 0, said
    assert "lost" not in anna.hears(repo)
    assert "A new key was made" in anna(repo, "doctor", "--fix").out
    assert anna.say(repo, "found")["commit"] is not None


UNUSABLE: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a link to nothing": lambda path: (path.unlink(), path.symlink_to("nothing")),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
    "other content": lambda path: path.write_text("ssh-ed25519 AAAA\n"),
}


@pytest.mark.parametrize("spoil", UNUSABLE)
def test_a_named_key_that_can_t_be_used_is_said_before_anything_is_recorded(
    hub: Path, machine: Callable[..., Machine], spoil: str
) -> None:
    """By `trust` and `whoami`, as `signal` refuses; none of them makes a key."""
    anna = machine("anna")
    repo, key = anna.clone(hub), anna.top / "named"
    put_key(key, OTHER)
    UNUSABLE[spoil](key)
    if key.is_file():
        os.utime(key, (0, 0))
    anna.env["GITMEM_KEY_FILE"] = str(key)

    for args in (("trust",), ("whoami",)):
        said = anna(repo, *args)
        assert str(key) in said.out and "must be" in said.out, said
        assert "none yet" not in said.out
    assert anna(repo, "trust", "--json").json["key_problem"]
    assert anna(repo, "signal", "x", "--broadcast").status == 4
    assert not (anna.top / "state" / "gitmem" / "keys").exists()


def test_a_choice_of_a_key_that_does_not_count_is_said(hub: Path, machine: Callable[..., Machine]) -> None:
    """That of the repository never, that of the user from the next commit on; one that is missing is a problem."""
    anna = machine("anna")
    repo, other = anna.clone(hub), anna.top / "other"
    put_key(other, OTHER)
    assert "remark" in anna(repo, "trust", "--json").json and not findings(anna, repo, "unheeded-key")
    git(repo, "config", "gitmem.key", str(other))
    anna.say(repo, "one")
    own = anna(repo, "trust", "--json").json
    assert "not heeded" in own["remark"] and str(other) in own["remark"]
    assert anna(repo, "trust").out.count("not heeded") == 1
    (found,) = findings(anna, repo, "unheeded-key")
    assert "git config --global gitmem.key PATH" in found["what"]
    git(repo, "config", "--unset", "gitmem.key")
    git(repo, "config", "--file", str(anna.config), "gitmem.key", str(other))
    said = anna(repo, "trust", "--json").json
    assert said["writer"] == own["writer"] and f"the key of {OTHER.writer}: it counts" in said["remark"]
    anna.say(repo, "two")
    assert anna(repo, "trust", "--json").json["remark"] is None
    git(repo, "config", "--file", str(anna.config), "gitmem.key", str(anna.top / "nowhere"))
    (found,) = findings(anna, repo, "writer-key")
    assert str(anna.top / "nowhere") in found["what"] and "--make-key" in found["what"]
    assert not found["fixable"] and "nowhere" in anna(repo, "trust").out


def test_a_key_is_made_for_a_container_and_never_replaced(hub: Path, machine: Callable[..., Machine]) -> None:
    """Also without a repository; the answer says how to use it."""
    anna = machine("anna")
    repo, key = anna.clone(hub), anna.top / "for-ci"
    before = os.umask(0)
    try:
        made = anna(anna.top, "trust", "--make-key", "for-ci", "--json")
    finally:
        os.umask(before)
    assert made.status == 0 and f"GITMEM_KEY_FILE={key}" in made.json["remark"], made
    assert key.stat().st_mode & 0o777 == 0o600 and made.json["key_file"] == str(key)
    content = key.read_bytes()
    link = anna.top / "link"
    link.symlink_to("nothing")
    for path in (key, anna.top, link):
        said = anna(repo, "trust", "--make-key", str(path), "--json")
        assert (said.status, said.json["error"]["code"]) == (2, "key-exists"), said
    said = anna(repo, "trust", "--make-key", str(anna.top / "no" / "key"), "--json")
    assert (said.status, said.json["error"]["code"]) == (4, "key-file")
    assert anna(repo, "trust", "0" * 16, "--make-key", "x").status == 2
    assert key.read_bytes() == content and not (anna.top / "nothing").exists()
    anna.env["GITMEM_KEY_FILE"] = str(key)
    anna.say(repo, "from the container")
    assert writers(repo) == {made.json["writer"]}
