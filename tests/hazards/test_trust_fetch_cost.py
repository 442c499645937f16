"""A push that costs its readers time, memory or disk: it stops nobody, and nothing of it stays on the disk."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from gitmem.git import plumbing, temporary
from gitmem.git.network import GitNetwork
from gitmem.git.temporary import MIB
from tests.git_on_path import GitOnPath
from tests.hazards.peers import BRANCH, Peer, Town, git
from tests.network.git_over_http import PASSWORD, USER, Server

INTO = "refs/gitmem/remotes/origin/"
LINE = '{{"message":"{}"}}\n'


@pytest.fixture
def two(town: Town) -> tuple[Peer, Peer]:
    """Two clones that have synced, each with a line that the other lacks."""
    a, b = town.clone("a"), town.clone("b")
    a.say("one")
    assert a.sync().code == 0
    assert b.sync().code == 0
    a.say("from a")
    b.say("from b")
    assert b.sync().code == 0
    return a, b


def left_in(path: Path) -> list[str]:
    """What an unfinished fetch left in a clone."""
    found = [str(each) for each in (path / ".git/objects").rglob("tmp_*")]
    return found + [str(each) for each in (path / ".git/objects/pack").glob("*.keep")]


def bomb(town: Town, size: int, name: str = "zeros") -> tuple[str, str]:
    """An outbox with a file of zeros: the ref and the commit."""
    zeros = town.root / "zeros"
    with zeros.open("wb") as file:
        file.truncate(size)
    asked = ["git", "-c", "core.compression=1", "hash-object", "-w", str(zeros)]
    blob = subprocess.run(asked, cwd=town.hub, capture_output=True, text=True, check=True).stdout.strip()
    rows = git("ls-tree", BRANCH, cwd=town.hub) + f"\n100644 blob {blob}\t{name}.jsonl\n"
    oid = town.commit(git("mktree", cwd=town.hub, input=rows.encode()), town.tip())
    return f"refs/gitmem/outbox/{oid}", oid


def valid_outboxes(town: Town, count: int) -> list[str]:
    """Outboxes with a line each, in a pack and in packed refs."""
    tip = town.tip()
    stream = bytearray()
    for number in range(count):
        line = LINE.format(f"flood {number}").encode()
        stream += f"commit refs/flood/x\nmark :{number + 1}\ncommitter M <m@example.org> {number} +0000\ndata 0\n".encode()
        stream += f"from {tip}\nM 100644 inline signals/2026-11-21/gm-{number:08d}.jsonl\ndata {len(line)}\n".encode()
        stream += line + b"\n"
    marks = town.root / "marks"
    git("fast-import", "--quiet", "--force", f"--export-marks={marks}", cwd=town.hub, input=bytes(stream))
    made = [row.split()[1] for row in marks.read_text().splitlines()]
    git("update-ref", "-d", "refs/flood/x", cwd=town.hub)
    git("pack-refs", "--all", cwd=town.hub)
    packed = town.hub / "packed-refs"
    head, *rows = packed.read_text().splitlines()
    names = sorted(
        [*rows, *(f"{oid} refs/gitmem/outbox/{oid}" for oid in made)], key=lambda row: row.partition(" ")[2]
    )
    packed.write_text("\n".join([head, *names]) + "\n")
    return made


SIZES = [260 * MIB, pytest.param(6 * 1024 * MIB, marks=pytest.mark.deep)]


@pytest.mark.parametrize("size", SIZES)
def test_a_file_of_zeros_in_an_outbox_stops_nobody(size: int, town: Town, two: tuple[Peer, Peer]) -> None:
    """6 GiB of zeros are 6 MB on the wire. They are named with the command that removes them, and never unpacked."""
    a, _ = two
    ref, oid = bomb(town, size)
    town.point(ref, oid)

    began = time.monotonic()
    found = a.sync()

    assert time.monotonic() - began < 20, "1 s on an idle machine, however many zeros there are"
    assert (found.code, found.remote["state"], found.remote["safe"]) == (0, "synced", True), found.text
    assert a.messages() >= {"from a", "from b"} and town.messages() >= {"from a", "from b"}
    (left,) = found.remote["left_out"]
    assert (left["ref"], left["commit"], left["kind"]) == (ref, oid, "invalid")
    assert "an object of it has more than 256 MiB" in left["why"]
    assert f"To remove it: git push origin :{ref}" in found.remote["message"]
    assert left_in(a.path) == []

    again = a.sync()
    assert again.code == 0 and [each["ref"] for each in again.remote["left_out"]] == [ref], again.text
    git("push", "--quiet", "origin", f":{ref}", cwd=a.path)
    assert a.sync().remote["left_out"] == []
    assert not list((a.path / ".git/gitmem/refused-commits").iterdir()), "refs are fetched together again"


def test_a_file_of_zeros_on_the_shared_branch_stops_nobody(town: Town, two: tuple[Peer, Peer]) -> None:
    """Lines go on to travel in outboxes, and the repair that is named works."""
    a, b = two
    a.sync()
    _, oid = bomb(town, 260 * MIB)
    town.point(BRANCH, oid)
    a.say("later")

    found = a.sync()

    assert (found.code, found.remote["state"], found.remote["safe"]) == (5, "refused", True), found.text
    assert [left["kind"] for left in found.remote["left_out"]] == ["invalid"]
    b.sync()
    assert "later" in b.messages() and left_in(a.path) == left_in(b.path) == []
    assert found.json["next"][0] == "gitmem sync --repair origin"
    assert a.sync("--repair", "--yes", "origin").code == 0
    assert b.sync().code == 0 and "later" in town.messages()


@pytest.mark.parametrize("count", [230, pytest.param(100_000, marks=pytest.mark.deep)])
def test_a_flood_of_valid_outboxes_stops_nobody(count: int, town: Town, two: tuple[Peer, Peer]) -> None:
    """200 are read in a sync, those that were not read before; own lines go to the shared ref, where they are found."""
    a, b = two
    made = valid_outboxes(town, count)
    b.say("amid the flood")

    began = time.monotonic()
    first = b.sync()
    assert time.monotonic() - began < 60

    assert (first.code, first.remote["safe"], first.remote["outbox"]) == (0, True, None), first.text
    assert "outboxes of origin were not fetched yet" in first.remote["message"]
    assert "amid the flood" in town.messages()
    began = time.monotonic()
    second = a.sync()
    assert time.monotonic() - began < 60
    assert second.remote["safe"] and "amid the flood" in a.messages(), second.text
    assert second.remote["outbox"] in (None, *town.outboxes()), "no crowd is left: it is found there"
    assert second.remote["outbox"] is None or count < 1000
    copies = plumbing.refs_below(str(a.path / ".git"), INTO + "gitmem/outbox/")
    assert 0 < len(copies) <= 2 * 200
    if count > 1000:
        return
    for _ in range(2):
        assert a.sync().code == 0
    assert {f"flood {number}" for number in range(count)} <= a.messages()
    assert not set(made) & {name.rpartition("/")[2] for name in town.outboxes()}, "all were folded"


@pytest.fixture
def random_outbox(town: Town, two: tuple[Peer, Peer]) -> tuple[str, str]:
    """An outbox of 2 MiB that can't be compressed: the ref and the commit."""
    return town.break_with({"signals/x/gm-x.jsonl": os.urandom(2 * MIB)}, box=True)


LIMITED = {
    "disk": (temporary.Limits(pack_bytes=MIB, outbox_bytes=MIB), "fetching it takes more than 1 MiB"),
    "time": (
        temporary.Limits(all_seconds=0.001, outbox_seconds=0.001),
        "fetching it takes more than 0.001 seconds",
    ),
}


@pytest.mark.parametrize("what", LIMITED)
def test_what_is_too_much_is_named_and_remembered(
    what: str, town: Town, two: tuple[Peer, Peer], random_outbox: tuple[str, str]
) -> None:
    """It is killed while it grows, nothing of it stays, and it is fetched again only without limits."""
    a, _ = two
    ref, oid = random_outbox
    network = GitNetwork(str(a.path / ".git"))
    network.limits, why = LIMITED[what]

    assert network.fetch(str(town.hub), INTO) == {ref: (oid, why)}

    copies = plumbing.refs_below(network.common, INTO)
    assert copies[INTO + "heads/gitmem"] == town.tip() and INTO + ref.removeprefix("refs/") not in copies
    assert left_in(a.path) == []
    found = a.sync()
    assert found.code == 0 and [each["kind"] for each in found.remote["left_out"]] == ["large"], found.text
    assert "To try it again: gitmem sync --allow-large --timeout 10m origin" in found.remote["message"]
    network.unlimited = True
    assert network.fetch(str(town.hub), INTO) == {}
    assert not list((a.path / ".git/gitmem/refused-commits").iterdir())


def test_an_outbox_that_was_slow_is_fetched_again_after_growing_pauses(
    town: Town, two: tuple[Peer, Peer], random_outbox: tuple[str, str]
) -> None:
    """It is named all the time. A pause doubles up to a day; a clock that is set back prolongs none; in the end it arrives."""
    ref, oid = random_outbox
    network, now, tries = GitNetwork(str(two[0].path / ".git")), 1_800_000_000.0, []
    network.limits, why = LIMITED["time"]
    network.clock = lambda: now
    for _ in range(9):
        assert network.fetch(str(town.hub), INTO) == {ref: (oid, why)}
        (file,) = (two[0].path / ".git/gitmem/refused-commits").iterdir()
        before = file.read_text()
        pause = int(before.split()[-1])
        tries.append(pause)
        now += pause - 1
        assert network.fetch(str(town.hub), INTO) == {ref: (oid, why)} and file.read_text() == before
        now += 1

    assert tries == [600 * 2**n for n in range(8)] + [86_400]
    network.limits = temporary.LIMITS
    now -= 1
    assert network.fetch(str(town.hub), INTO) == {ref: (oid, why)}, "it is not its time yet"
    now -= 2 * 86_400
    assert network.fetch(str(town.hub), INTO) == {}
    assert not file.exists()


def test_a_shared_branch_that_is_too_much_is_no_reason_to_repair(town: Town, two: tuple[Peer, Peer]) -> None:
    """Our lines go to an outbox; the next command is a sync without limits, which reads it."""
    a, b = two
    a.sync()
    name = "signals/2026-11-21/gm-7d2kq0ze.jsonl"
    _, oid = town.break_with(
        {name: b"".join(b'{"message":"%s"}\n' % os.urandom(400).hex().encode() for _ in range(2000))}
    )
    network = GitNetwork(str(a.path / ".git"))
    network.limits = temporary.Limits(pack_bytes=MIB // 2)
    assert network.fetch(str(town.hub), INTO) == {BRANCH: (oid, "fetching it takes more than 0 MiB")}
    a.say("later")

    found = a.sync()

    assert (found.code, found.remote["state"], found.remote["safe"]) == (5, "refused", True), found.text
    assert "--repair" not in found.text and found.json["next"][0] == "gitmem sync --allow-large origin"
    assert a.sync("--allow-large", "origin").code == 0
    b.sync()
    assert "later" in b.messages()


def test_a_shared_branch_that_was_slow_once_is_fetched_again(
    town: Town, two: tuple[Peer, Peer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network that stalls for a moment must not cut a clone off from the log until the branch moves."""
    a, _ = two
    stalled = GitOnPath(tmp_path, monkeypatch)
    stalled.does("exec sleep 20", to="fetch")
    network = GitNetwork(str(a.path / ".git"))
    network.limits = temporary.Limits(all_seconds=0.2)
    found = network.fetch(str(town.hub), INTO, timeout=1.5)
    assert found == {BRANCH: (town.tip(), "fetching it takes more than 1.5 seconds")}
    stalled.does('exec "$git" "$@"')

    later = a.sync()

    assert (later.code, later.remote["left_out"]) == (0, []), later.text
    assert "from b" in a.messages()


def test_a_fetch_that_times_out_leaves_nothing(town: Town, two: tuple[Peer, Peer]) -> None:
    """The server stops in the middle of a pack: exit 5, and no byte of it stays in the clone."""
    a, _ = two
    town.break_with({"signals/x/gm-x.jsonl": os.urandom(2 * MIB)})
    server = Server(town.root)
    server.leaving = lambda request: time.sleep(6) if request.command == "POST" else None
    address = server.url.replace("http://", f"http://{USER}:{PASSWORD.replace(' ', '%20')}@")
    try:
        git("remote", "set-url", "origin", f"{address}/{town.hub.name}", cwd=a.path)
        before = size_of(a.path)
        found = a.sync("--timeout", "2s", "origin")
    finally:
        server.end()

    assert found.code == 5, found.text
    assert left_in(a.path) == [] and size_of(a.path) - before < 100_000
    assert found.remote["safe"] is False and PASSWORD not in found.text


def size_of(path: Path) -> int:
    return sum(each.stat().st_size for each in (path / ".git").rglob("*") if each.is_file())


def test_a_killed_fetch_is_cleaned_up_by_a_later_one(town: Town, two: tuple[Peer, Peer]) -> None:
    """Its folder is that of no running process once it is an hour old; another one may be at work now."""
    a, _ = two
    objects = a.path / ".git/objects"
    old, new = objects / f"{temporary.INCOMING_PREFIX}1-1", objects / f"{temporary.INCOMING_PREFIX}1-2"
    for folder in (old, new):
        (folder / "objects/pack").mkdir(parents=True)
        (folder / "objects/pack/tmp_pack_x").write_bytes(b"x" * 1000)
    os.utime(old, (time.time() - 7200,) * 2)
    assert a.sync().code == 0
    assert not old.exists() and new.exists()


def test_outboxes_without_their_objects_are_named(town: Town, two: tuple[Peer, Peer]) -> None:
    """The host lost them: everybody else's lines arrive."""
    a, _ = two
    for digit in "12":
        oid = digit * 40
        with (town.hub / "packed-refs").open("a") as file:
            file.write(f"{oid} refs/gitmem/outbox/{oid}\n")

    found = a.sync()

    assert {each["commit"] for each in found.remote["left_out"]} == {"1" * 40, "2" * 40}, found.text
    assert "from b" in a.messages() and "the remote does not have its objects" in found.text


STATUS = {
    401: ("refused", "HTTP 401", "credential helper"),
    403: ("refused", "HTTP 403", "credential helper"),
    404: ("refused", "no such repository", "git remote -v"),
    407: ("refused", "proxy", "http.proxy"),
    500: ("offline", "HTTP 500", "later sync"),
    503: ("offline", "HTTP 503", "later sync"),
}


@pytest.mark.parametrize("status", STATUS)
def test_a_status_of_the_server_is_said_for_what_it_is(
    status: int, town: Town, two: tuple[Peer, Peer]
) -> None:
    """Only what may pass by itself is called offline, and nothing is lost."""
    a, _ = two
    state, what, remedy = STATUS[status]
    server = Server(town.root)
    head = {"WWW_Authenticate": 'Basic realm="x"'} if status == 401 else {}
    server.meddle = lambda request: request.say(status, b"no\n", **head) or True
    address = server.url.replace("http://", f"http://{USER}:{PASSWORD.replace(' ', '%20')}@")
    try:
        git("remote", "set-url", "origin", f"{address}/{town.hub.name}", cwd=a.path)
        found = a.sync()
    finally:
        server.end()
    assert (found.code, found.remote["state"]) == (5, state), found.text
    assert what in found.remote["message"] and remedy in found.remote["message"], found.remote["message"]
    assert "Local records are kept" in found.remote["message"] and PASSWORD not in found.text
    assert ("when it is reachable" in found.text) == (state == "offline")
    assert "from a" in a.messages()


def test_a_rule_of_the_forge_names_the_hidden_ref(town: Town, two: tuple[Peer, Peer]) -> None:
    """A ruleset refuses the branch: the command that is named publishes where it does not apply."""
    a, b = two
    hook = town.hub / "hooks/update"
    hook.write_text(
        '#!/bin/sh\ncase "$1" in refs/heads/*)\necho "error: GH013: Repository rule violations found for $1." >&2; exit 1;; esac\n'
    )
    hook.chmod(0o755)

    found = a.sync()

    assert found.code == 5 and found.remote["state"] == "refused", found.text
    assert "gitmem init --publish hidden" in found.remote["message"]
    assert a.run("init", "--publish", "hidden").code == 0
    assert a.sync().code == 0
    assert b.sync().code == 0 and "from a" in b.messages()
