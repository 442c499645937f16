"""A peer who can push breaks a branch or an outbox: nobody loses a line, and everybody else goes on."""

from __future__ import annotations

import pytest

from tests.hazards.peers import BRANCH, Peer, Town, git

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
    a, b = town.clone("a"), town.clone("b")
    a.say("one")
    assert a.sync().code == 0
    b.say("two")
    assert b.sync().code == 0
    assert a.sync().code == 0
    assert a.messages() == b.messages() == town.messages() == {"one", "two"}
    return a, b


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
