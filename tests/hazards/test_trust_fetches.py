"""A peer who can push breaks a branch or an outbox: nobody loses a line, and everybody else goes on."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from gitmem.git import fetch, plumbing
from gitmem.git.fetch import MIB
from gitmem.git.network import GitNetwork

from ..git_on_path import GitOnPath
from ..network.git_over_http import PASSWORD, USER, Server
from .peers import BRANCH, Peer, Town, git

EPOCH = b'{"format":1,"epoch":1,"turn":0,"publish":"refs/heads/gitmem"}\n'
FOREIGN = "projects/" + "f" * 40
BROKEN: dict[str, tuple[dict[str, bytes | None], str]] = {
    "epoch": ({"format": EPOCH}, "its epoch is 1; only 0 is valid"),
    "format 0": ({"format": b'{"format":0}\n'}, "its format is 0; only 1 is valid"),
    "format of no gitmem": ({"format": b'{"format":102}\n'}, "its format is 102; only 1 is valid"),
    "format deleted": ({"format": None}, "its tree has no file `format`"),
    "format unreadable": ({"format": b"[[[["}, "the file `format` of the log cannot be read"),
    "projects deleted": ({"projects": None}, "it has no projects/, which this log had"),
    "projects of another": ({"projects": None, FOREIGN: b""}, "its project ids are those of another project"),
    "newer without projects": (
        {"format": b'{"format":2}\n', "projects": None},
        "its format is 2; only 1 is valid",
    ),
}
NAMES = [
    name
    if name in ("epoch", "projects deleted", "projects of another")
    else pytest.param(name, marks=pytest.mark.deep)
    for name in BROKEN
]


@pytest.fixture
def two(town: Town) -> tuple[Peer, Peer]:
    """Two clones that have exchanged a line each."""

    def day(town: Town) -> None:
        a, b = town.clone("a"), town.clone("b")
        a.say("one")
        assert a.sync().code == 0
        b.say("two")
        assert b.sync().code == 0
        assert a.sync().code == 0
        assert a.messages() == b.messages() == town.messages() == {"one", "two"}

    town.after("exchanged", day)
    return town.peer("a"), town.peer("b")


@pytest.mark.parametrize("name", NAMES)
def test_a_broken_branch_empties_and_stops_nobody(name: str, town: Town, two: tuple[Peer, Peer]) -> None:
    """Both clones keep what they have, and go on exchanging through outboxes."""
    a, b = two
    changes, why = BROKEN[name]
    ref, oid = town.break_with(changes)
    a.say("three")

    found = a.sync()

    assert found.code == 5 and found.remote["state"] == "refused" and found.remote["safe"], found.text
    (left,) = found.remote["left_out"]
    assert (left["ref"], left["commit"], left["kind"]) == (ref, oid, "invalid")
    assert left["author"] == "Mallory <mallory@example.org>" and why in left["why"].replace("The", "the")
    assert oid[:12] in found.remote["message"] and "Mallory" in found.remote["message"]
    assert ".." not in found.remote["message"] and "Nothing was written" not in found.remote["message"]
    assert town.tip() == oid and found.remote["outbox"] in town.outboxes()
    b.say("four")
    assert b.sync().remote["safe"]
    assert b.messages() == {"one", "two", "three", "four"}
    assert a.sync().remote["received"] == 1
    assert a.messages() == b.messages()
    assert a.run("doctor").code in (0, 1)


@pytest.mark.parametrize("name", NAMES)
def test_a_broken_outbox_stops_nobody(name: str, town: Town, two: tuple[Peer, Peer]) -> None:
    """It is named, and the shared branch is read and written as ever."""
    a, b = two
    changes, _ = BROKEN[name]
    ref, oid = town.break_with({**changes, "signals/x/gm-x.jsonl": b"forged\n"}, box=True)
    a.say("three")

    found = a.sync()

    assert found.code == 0 and found.remote["state"] == "synced", found.text
    (left,) = found.remote["left_out"]
    assert (left["ref"], left["commit"]) == (ref, oid) and left["kind"] == "invalid"
    assert b.sync().code == 0
    assert a.messages() == b.messages() == town.messages() == {"one", "two", "three"}


@pytest.mark.deep
@pytest.mark.parametrize("behind", ["the last accepted tip", "an older tip", "this clone has never synced"])
def test_a_branch_with_the_ids_of_another_project_is_repaired(
    behind: str, town: Town, two: tuple[Peer, Peer]
) -> None:
    """It is damage over our own history, whoever looks, and nobody is told to unite it."""
    a, b = two
    old = town.tip()
    if behind == "an older tip":
        a.say("three")
        a.sync()
        git("update-ref", BRANCH, old, cwd=town.hub)
    _, oid = town.break_with({"projects": None, FOREIGN: b""})
    town.break_with({"signals/2026-11/21/gm-f0rged00.jsonl": b'{"message":"forged"}\n'})
    c = town.clone("c", init=False) if behind == "this clone has never synced" else a
    made = c.run("init", "--json")
    c.say("four")

    found = c.sync()

    assert found.code == 5 and found.remote["safe"], found.text
    assert [left["kind"] for left in found.remote["left_out"]] == ["invalid"]
    assert found.json["next"][0] == "gitmem sync --repair origin"
    for answer in (made, found, c.run("doctor")):
        assert "--allow-foreign" not in answer.text, answer.text
    assert b.sync().remote["safe"]
    assert b.messages() >= {"one", "two", "four"} and "forged" not in b.messages()
    assert c.sync("--repair", "origin").code == 0
    assert b.sync().code == 0
    assert "four" in town.messages() and town.tip() != oid
    assert FOREIGN not in git("ls-tree", "-r", "--name-only", BRANCH, cwd=town.hub)


@pytest.mark.deep
@pytest.mark.parametrize("box", [False, True])
def test_an_id_of_another_project_beside_ours_stops_nobody(
    box: bool, town: Town, two: tuple[Peer, Peer]
) -> None:
    """The ids are united; taking ours away later is damage no more, and a sync brings them back."""
    a, b = two
    town.break_with({FOREIGN: b""}, box=box)
    a.say("three")
    assert a.sync().code == 0
    assert b.sync().code == 0
    town.break_with({"projects": None, FOREIGN: b""}, box=box)
    b.say("four")
    assert b.sync().code == 0
    assert a.sync().code == 0
    c = town.clone("c")
    assert c.sync().code == 0
    assert a.messages() == b.messages() == c.messages() == town.messages() == {"one", "two", "three", "four"}
    ids = git("ls-tree", "--name-only", f"{BRANCH}:projects", cwd=town.hub).splitlines()
    assert len(ids) == 2 and "f" * 40 in ids


@pytest.mark.parametrize("box", [False, True])
def test_a_history_of_its_own_is_left_out(box: bool, town: Town, two: tuple[Peer, Peer]) -> None:
    """A tree that looks right on a first commit that is not the one of every log."""
    a, b = two
    orphan = town.commit(town.tree(BRANCH, {"signals/x/gm-x.jsonl": b"forged\n"}))
    town.point(f"refs/gitmem/outbox/{orphan}" if box else BRANCH, orphan)
    a.say("three")
    found = a.sync()
    assert found.code == (0 if box else 5) and found.remote["safe"]
    assert found.remote["left_out"][0]["commit"] == orphan
    b.sync()
    assert a.messages() == b.messages() == {"one", "two", "three"}


def test_an_emptied_branch_is_filled_again(town: Town, two: tuple[Peer, Peer]) -> None:
    """A valid tree without any segment takes nothing away."""
    a, _ = two
    town.break_with({"signals": None})
    assert a.sync().code == 0
    assert a.messages() == town.messages() == {"one", "two"}


def test_a_newer_format_asks_to_upgrade_and_offers_no_repair(town: Town, two: tuple[Peer, Peer]) -> None:
    """It continues our log, so it is nothing to repair."""
    a, _ = two
    _, oid = town.break_with({"format": b'{"format":2,"epoch":0}\n'})
    a.say("three")
    found = a.sync()
    assert found.code == 5 and found.remote["left_out"][0]["kind"] == "newer"
    assert "upgrade gitmem" in found.text and "repair" not in found.text
    assert found.remote["safe"] and town.tip() == oid
    assert a.run("inbox").code == 0


def test_an_outbox_is_taken_in_after_the_branch_was_deleted(town: Town, two: tuple[Peer, Peer]) -> None:
    """Its history goes back to the first commit of every log then, whose tree is empty."""
    one, other = two
    town.break_with({"format": b"nonsense"})
    one.say("written while the branch was broken")
    one.sync()
    assert len(town.outboxes()) == 1
    git("update-ref", "-d", BRANCH, cwd=town.hub)

    answer = other.sync()

    assert answer.remote["left_out"] == []
    assert "written while the branch was broken" in other.messages()


def test_a_fresh_clone_of_a_broken_hub_gets_what_stood_below(town: Town, two: tuple[Peer, Peer]) -> None:
    """Lines of the newest ancestor that passes, and of outboxes."""
    a, _ = two
    town.break_with({"format": EPOCH, "signals": None})
    a.say("three")
    a.sync()
    c = town.clone("c")
    c.say("four")
    assert c.sync().remote["safe"]
    a.sync()
    assert a.messages() == c.messages() == {"one", "two", "three", "four"}


def test_refs_of_a_fork_that_was_only_fetched_are_not_read(town: Town, two: tuple[Peer, Peer]) -> None:
    """`git fetch alice` publishes nothing of hers under the victim's name."""
    a, _ = two
    fork = town.root / "fork.git"
    git("clone", "--quiet", "--bare", str(town.hub), str(fork), cwd=town.root)
    _, oid = town.break_with({"signals/2026-11/21/gm-f0rged00.jsonl": b'{"message":"forged"}\n'}, box=True)
    git("fetch", "--quiet", str(town.hub), f"refs/gitmem/outbox/{oid}:refs/heads/gitmem", "--force", cwd=fork)
    git("update-ref", "-d", f"refs/gitmem/outbox/{oid}", cwd=town.hub)
    git("remote", "add", "alice", str(fork), cwd=a.path)
    git("fetch", "--quiet", "alice", cwd=a.path)
    a.say("three")

    assert a.sync().code == 0

    assert town.messages() == a.messages() == {"one", "two", "three"}
    named = a.sync("alice")
    assert named.remote["received"] == 1
    assert f"1 line from {fork}" in named.remote["message"]
    assert "forged" in a.messages()


def test_a_new_clone_does_not_adopt_the_log_of_a_fork(town: Town, two: tuple[Peer, Peer]) -> None:
    """Only what git fetched from the default remote counts."""
    fork = town.root / "fork.git"
    git("clone", "--quiet", "--bare", str(town.hub), str(fork), cwd=town.root)
    c = town.clone("c", init=False)
    git("update-ref", "-d", "refs/remotes/origin/gitmem", cwd=c.path)
    git("remote", "add", "alice", str(fork), cwd=c.path)
    git("fetch", "--quiet", "alice", cwd=c.path)
    c.say("mine")
    assert c.messages() == {"mine"}


def raw(*entries: tuple[str, bytes, str]) -> bytes:
    """A tree object with these entries, whatever they are."""
    return b"".join(mode.encode() + b" " + name + b"\0" + bytes.fromhex(oid) for mode, name, oid in entries)


def forge(town: Town, what: str) -> str:
    """A commit on the branch whose folder `signals` has a forbidden entry, with a line in it."""
    blob = town.blob(b'{"message":"forged"}\n')
    below = town.object("tree", raw(("100644", b"gm-x.jsonl", blob)))
    inner = {
        "dotdot": raw(("40000", b"..", below)),
        "dot": raw(("40000", b".", below)),
        "git": raw(("40000", b".git", below)),
        "git upper": raw(("40000", b".GIT", below)),
        "git ntfs": raw(("40000", b"git~1", below)),
        "git ntfs stream": raw(("40000", b".git::$INDEX_ALLOCATION", below)),
        "git hfs": raw(("40000", ".g\u200cit".encode(), below)),
        "slash": raw(("100644", b"a/b.jsonl", blob)),
        "backslash": raw(("100644", b"a\\b.jsonl", blob)),
        "newline": raw(("100644", b"a\nb.jsonl", blob)),
        "empty": raw(("100644", b"", blob)),
        "duplicate": raw(("100644", b"a.jsonl", blob), ("100644", b"a.jsonl", blob)),
        "case": raw(("100644", b"A.jsonl", blob), ("100644", b"a.jsonl", blob)),
        "symlink": raw(("120000", b"gm-x.jsonl", town.blob(b"/etc/passwd"))),
        "gitlink": raw(("160000", b"gm-x.jsonl", "ab" * 20)),
        "file that is a folder": raw(("100644", b"gm-x.jsonl", below)),
        "folder that is a file": raw(("40000", b"x", blob)),
        "missing": raw(("100644", b"gm-x.jsonl", "ab" * 20)),
        "cut": raw(("100644", b"gm-x.jsonl", blob))[:-3],
    }[what]
    rows = git("ls-tree", BRANCH, cwd=town.hub).splitlines()
    entries = [(row.split()[0].lstrip("0"), row.split("\t")[1].encode(), row.split()[2]) for row in rows]
    bad = town.object("tree", inner)
    root = town.object(
        "tree", raw(*(e if e[1] != b"signals" else ("40000", b"signals", bad) for e in entries))
    )
    who = "Mallory <mallory@example.org> 1795000000 +0000"
    text = f"tree {root}\nparent {town.tip()}\nauthor {who}\ncommitter {who}\n\nForged\n"
    return town.object("commit", text.encode())


FORGED = (
    *(
        "dotdot",
        "dot",
        "git",
        "git upper",
        "git ntfs",
        "git ntfs stream",
        "git hfs",
        "slash",
        "backslash",
        "newline",
    ),
    *("empty", "duplicate", "case", "symlink", "gitlink", "file that is a folder", "folder that is a file"),
    *("missing", "cut"),
)


@pytest.mark.parametrize("box", [False, True])
@pytest.mark.parametrize(
    "what",
    [
        name if name in ("git upper", "newline") else pytest.param(name, marks=pytest.mark.deep)
        for name in FORGED
    ],
)
def test_a_tree_with_a_forbidden_entry_is_left_out(
    what: str, box: bool, town: Town, two: tuple[Peer, Peer]
) -> None:
    """Git's own check refuses some of them, and ours the rest; lines go on past it."""
    a, b = two
    oid = forge(town, what)
    ref = f"refs/gitmem/outbox/{oid}" if box else BRANCH
    (town.hub / ref).parent.mkdir(parents=True, exist_ok=True)
    (town.hub / ref).write_text(oid + "\n")  # as a hub that checks nothing has it
    a.say("three")

    found = a.sync()

    assert [(each["ref"], each["commit"]) for each in found.remote["left_out"]] == [(ref, oid)], found.text
    assert found.remote["safe"] and found.code == (0 if box else 5)
    b.say("four")
    assert b.sync().remote["safe"]
    a.sync()
    assert a.messages() == b.messages() == {"one", "two", "three", "four"}
    refs = git("for-each-ref", "--format=%(objectname)", cwd=a.path).splitlines()
    assert oid not in refs, "what is left out stays behind no ref"


@pytest.mark.deep
@pytest.mark.parametrize("box", [False, True])
def test_a_file_that_is_too_large_is_left_out_unread(box: bool, town: Town, two: tuple[Peer, Peer]) -> None:
    """32 MiB is the limit; `--allow-large` takes it in."""
    a, _ = two
    line = b'{"at":"2026-11-21T20:00:00.123456Z","kind":"x","n":%08d}\n'
    large = b"".join(line % number for number in range(33 * 1024 * 1024 // len(line % 0)))
    ref, _oid = town.break_with({"signals/2026-11/21/gm-1arge000.jsonl": large}, box=box)
    a.say("three")

    found = a.sync()

    (left,) = found.remote["left_out"]
    assert left["ref"] == ref and "33554432" in left["why"].replace(",", "") and found.remote["safe"]
    assert a.messages() == {"one", "two", "three"}


@pytest.mark.parametrize("box", [False, True])
def test_a_ref_of_the_hub_at_a_missing_commit_is_named(box: bool, town: Town, two: tuple[Peer, Peer]) -> None:
    """The hub lost an object: it is not offline, and the command that removes the ref is given."""
    a, b = two
    oid = "ab" * 20
    ref = f"refs/gitmem/outbox/{oid}" if box else BRANCH
    (town.hub / ref).parent.mkdir(parents=True, exist_ok=True)
    (town.hub / ref).write_text(oid + "\n")
    a.say("three")

    found = a.sync()

    assert found.remote["state"] == "refused" and found.code == 5, found.text
    assert [(each["ref"], each["commit"]) for each in found.remote["left_out"]] == [(ref, oid)]
    assert f"git update-ref -d {ref} {oid}" in found.remote["message"]
    git("update-ref", "-d", ref, oid, cwd=town.hub)
    assert a.sync().code == 0
    assert b.sync().code == 0
    assert a.messages() == b.messages() == town.messages() == {"one", "two", "three"}


@pytest.mark.parametrize(
    "kind", ["epoch", pytest.param("format", marks=pytest.mark.deep), "projects", "orphan", "dotdot"]
)
def test_the_command_that_the_answer_names_repairs_the_branch(
    kind: str, town: Town, two: tuple[Peer, Peer]
) -> None:
    """By a commit on top; what has another history, or can't be fetched, is replaced once the user agrees."""
    a, b = two
    if kind == "epoch":
        _, oid = town.break_with({"format": EPOCH})
    elif kind == "format":
        _, oid = town.break_with({"format": b'{"format":99999999999999999999999999999999}\n'})
    elif kind == "projects":
        _, oid = town.break_with({"projects": None, FOREIGN: b""})
    elif kind == "orphan":
        oid = town.commit(town.tree(BRANCH, {}))
    else:
        oid = forge(town, kind)
    (town.hub / BRANCH).write_text(oid + "\n")
    a.say("three")
    found = a.sync()
    assert "gitmem sync --repair origin" in found.remote["message"], found.text
    assert found.json["next"][0] == "gitmem sync --repair origin"

    answer = a.sync("--repair", "origin")

    if kind in ("orphan", "dotdot"):
        assert answer.code == 2, answer.text
        assert town.tip() == oid and oid[:12] in answer.text, "no forced push without an agreement"
        assert answer.json["next"] == ["gitmem sync --repair --yes origin"]
        answer = a.sync("--repair", "--yes", "origin")
    assert answer.code == 0 and "Repaired" in answer.text, answer.text
    assert b.sync().code == 0
    assert a.sync().code == 0
    assert a.messages() == b.messages() == town.messages() == {"one", "two", "three"}
    if kind in ("epoch", "format", "projects"):
        git("merge-base", "--is-ancestor", oid, BRANCH, cwd=town.hub)


def test_a_repair_without_an_agreement_to_publish_names_the_command_that_agrees(
    town: Town, two: tuple[Peer, Peer]
) -> None:
    """It pushes. The advice to repair alone would lead back to itself."""
    _, oid = town.break_with({"format": EPOCH})
    c = town.clone("c", init=False)

    answer = c.run("sync", "--repair", "origin", "--json")

    assert "gitmem sync --publish --repair origin" in answer.remote["message"], answer.text
    assert town.tip() == oid
    assert c.run("sync", "--publish", "--repair", "origin").code == 0
    assert two[0].sync().code == 0
    assert town.messages() == two[0].messages() == {"one", "two"}


# A push that costs its readers time, memory or disk: it stops nobody, and nothing of it stays on the disk.

INTO = "refs/gitmem/remotes/origin/"
LINE = '{{"message":"{}"}}\n'


@pytest.fixture
def two_clones(town: Town) -> tuple[Peer, Peer]:
    """Two clones that have synced, each with a line that the other lacks."""

    def day(town: Town) -> None:
        a, b = town.clone("a"), town.clone("b")
        a.say("one")
        assert a.sync().code == 0
        assert b.sync().code == 0
        a.say("from a")
        b.say("from b")
        assert b.sync().code == 0

    town.after("apart", day)
    return town.peer("a"), town.peer("b")


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


SIZES = [260 * MIB, pytest.param(4200 * MIB, marks=pytest.mark.deep)]  # above 32 bits


@pytest.mark.parametrize("size", SIZES)
def test_a_file_of_zeros_in_an_outbox_stops_nobody(
    size: int, town: Town, two_clones: tuple[Peer, Peer]
) -> None:
    """6 GiB of zeros are 6 MB on the wire. They are named with the command that removes them, and never unpacked."""
    a, _ = two_clones
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


def test_a_file_of_zeros_on_the_shared_branch_stops_nobody(town: Town, two_clones: tuple[Peer, Peer]) -> None:
    """Lines go on to travel in outboxes, and the repair that is named works."""
    a, b = two_clones
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


@pytest.mark.parametrize("count", [230, pytest.param(30_000, marks=pytest.mark.deep)])
def test_a_flood_of_valid_outboxes_stops_nobody(
    count: int, town: Town, two_clones: tuple[Peer, Peer]
) -> None:
    """200 are read in a sync, those that were not read before; own lines go to the shared ref, where they are found."""
    a, b = two_clones
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
def random_outbox(town: Town, two_clones: tuple[Peer, Peer]) -> tuple[str, str]:
    """An outbox of 2 MiB that can't be compressed: the ref and the commit."""
    return town.break_with({"signals/x/gm-x.jsonl": os.urandom(2 * MIB)}, box=True)


LIMITED = {
    "disk": (fetch.Limits(pack_bytes=MIB, outbox_bytes=MIB), "fetching it takes more than 1 MiB"),
    "time": (
        fetch.Limits(all_seconds=0.001, outbox_seconds=0.001),
        "fetching it takes more than 0.001 seconds",
    ),
}


@pytest.mark.parametrize("what", LIMITED)
def test_what_is_too_much_is_named_and_remembered(
    what: str, town: Town, two_clones: tuple[Peer, Peer], random_outbox: tuple[str, str]
) -> None:
    """It is killed while it grows, nothing of it stays, and it is fetched again only without limits."""
    a, _ = two_clones
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
    town: Town, two_clones: tuple[Peer, Peer], random_outbox: tuple[str, str]
) -> None:
    """It is named all the time. A pause doubles up to a day; a clock that is set back prolongs none; in the end it arrives."""
    ref, oid = random_outbox
    network, now, tries = GitNetwork(str(two_clones[0].path / ".git")), 1_800_000_000.0, []
    network.limits, why = LIMITED["time"]
    network.clock = lambda: now
    for _ in range(9):
        assert network.fetch(str(town.hub), INTO) == {ref: (oid, why)}
        (file,) = (two_clones[0].path / ".git/gitmem/refused-commits").iterdir()
        before = file.read_text()
        pause = int(before.split()[-1])
        tries.append(pause)
        now += pause - 1
        assert network.fetch(str(town.hub), INTO) == {ref: (oid, why)} and file.read_text() == before
        now += 1

    assert tries == [600 * 2**n for n in range(8)] + [86_400]
    network.limits = fetch.LIMITS
    now -= 1
    assert network.fetch(str(town.hub), INTO) == {ref: (oid, why)}, "it is not its time yet"
    now -= 2 * 86_400
    assert network.fetch(str(town.hub), INTO) == {}
    assert not file.exists()


def test_a_shared_branch_that_is_too_much_is_no_reason_to_repair(
    town: Town, two_clones: tuple[Peer, Peer]
) -> None:
    """Our lines go to an outbox; the next command is a sync without limits, which reads it."""
    a, b = two_clones
    a.sync()
    name = "signals/2026-11-21/gm-7d2kq0ze.jsonl"
    _, oid = town.break_with(
        {name: b"".join(b'{"message":"%s"}\n' % os.urandom(400).hex().encode() for _ in range(2000))}
    )
    network = GitNetwork(str(a.path / ".git"))
    network.limits = fetch.Limits(pack_bytes=MIB // 2)
    assert network.fetch(str(town.hub), INTO) == {BRANCH: (oid, "fetching it takes more than 0 MiB")}
    a.say("later")

    found = a.sync()

    assert (found.code, found.remote["state"], found.remote["safe"]) == (5, "refused", True), found.text
    assert "--repair" not in found.text and found.json["next"][0] == "gitmem sync --allow-large origin"
    assert a.sync("--allow-large", "origin").code == 0
    b.sync()
    assert "later" in b.messages()


def test_a_shared_branch_that_was_slow_once_is_fetched_again(
    town: Town, two_clones: tuple[Peer, Peer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network that stalls for a moment must not cut a clone off from the log until the branch moves."""
    a, _ = two_clones
    stalled = GitOnPath(tmp_path, monkeypatch)
    stalled.does("exec sleep 20", to="fetch")
    network = GitNetwork(str(a.path / ".git"))
    network.limits = fetch.Limits(all_seconds=0.2)
    found = network.fetch(str(town.hub), INTO, timeout=1.5)
    assert found == {BRANCH: (town.tip(), "fetching it takes more than 1.5 seconds")}
    stalled.does('exec "$git" "$@"')

    later = a.sync()

    assert (later.code, later.remote["left_out"]) == (0, []), later.text
    assert "from b" in a.messages()


def test_a_fetch_that_times_out_leaves_nothing(town: Town, two_clones: tuple[Peer, Peer]) -> None:
    """The server stops in the middle of a pack: exit 5, and no byte of it stays in the clone."""
    a, _ = two_clones
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


def test_a_killed_fetch_is_cleaned_up_by_a_later_one(town: Town, two_clones: tuple[Peer, Peer]) -> None:
    """Its folder is that of no running process once it is an hour old; another one may be at work now."""
    a, _ = two_clones
    objects = a.path / ".git/objects"
    old, new = objects / f"{fetch.INCOMING_PREFIX}1-1", objects / f"{fetch.INCOMING_PREFIX}1-2"
    for folder in (old, new):
        (folder / "objects/pack").mkdir(parents=True)
        (folder / "objects/pack/tmp_pack_x").write_bytes(b"x" * 1000)
    os.utime(old, (time.time() - 7200,) * 2)
    assert a.sync().code == 0
    assert not old.exists() and new.exists()


def test_outboxes_without_their_objects_are_named(town: Town, two_clones: tuple[Peer, Peer]) -> None:
    """The host lost them: everybody else's lines arrive."""
    a, _ = two_clones
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
    status: int, town: Town, two_clones: tuple[Peer, Peer]
) -> None:
    """Only what may pass by itself is called offline, and nothing is lost."""
    a, _ = two_clones
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


def test_a_rule_of_the_forge_names_the_hidden_ref(town: Town, two_clones: tuple[Peer, Peer]) -> None:
    """A ruleset refuses the branch: the command that is named publishes where it does not apply."""
    a, b = two_clones
    hook = town.hub / "hooks/update"
    hook.write_text(
        '#!/bin/sh\ncase "$1" in refs/heads/*)\necho "error: GH013: Repository rule violations found for $1." >&2; exit 1;; esac\n'
    )
    hook.chmod(0o755)

    found = a.sync()

    assert found.code == 5 and found.remote["state"] == "refused", found.text
    assert "gitmem setup --ref hidden" in found.remote["message"]
    assert a.run("setup", "--ref", "hidden").code == 0
    assert a.sync().code == 0
    assert b.sync().code == 0 and "from a" in b.messages()
