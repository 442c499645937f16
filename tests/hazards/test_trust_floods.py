"""A peer pushes thousands of refs that git refuses to fetch: everybody else goes on exchanging lines."""

from __future__ import annotations

import resource

import pytest

from tests.hazards.peers import BRANCH, Answer, Peer, Town, git

WHO = "Mallory <mallory@example.org>"


@pytest.fixture
def two(town: Town) -> tuple[Peer, Peer]:
    """Two clones that have synced, and have a line each that the other lacks."""
    a, b = town.clone("a"), town.clone("b")
    a.say("one")
    assert a.sync().code == 0
    assert b.sync().code == 0
    a.say("from a")
    b.say("from b")
    return a, b


def bad_commits(town: Town, count: int) -> list[str]:
    """Commits on the branch whose tree has a folder `.git`."""
    inner = town.object("tree", b"100644 x\0" + bytes.fromhex(town.blob(b"x")))
    rows = git("ls-tree", BRANCH, cwd=town.hub) + f"\n040000 tree {inner}\t.git\n"
    root = git("mktree", cwd=town.hub, input=rows.encode())
    folder = town.root / "commits"
    folder.mkdir()
    for number in range(count):
        text = f"tree {root}\nparent {town.tip()}\nauthor {WHO} {number} +0000\ncommitter {WHO} {number} +0000\n\nx\n"
        (folder / str(number)).write_text(text)
    names = "".join(f"{folder / str(number)}\n" for number in range(count))
    return git(
        "hash-object", "-t", "commit", "-w", "--stdin-paths", cwd=town.hub, input=names.encode()
    ).splitlines()


def flood(town: Town, count: int) -> list[str]:
    """Outboxes that git refuses."""
    made = bad_commits(town, count)
    moves = "".join(f"create refs/gitmem/outbox/{oid} {oid}\n" for oid in made)
    git("update-ref", "--stdin", cwd=town.hub, input=moves.encode())
    git("pack-refs", "--all", cwd=town.hub)
    return made


def cpu(peer: Peer) -> tuple[Answer, float]:
    """Sync; the CPU seconds of the program and of what it started."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    answer = peer.sync()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return answer, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def remembered(peer: Peer) -> list[str]:
    """The rows of what the next sync does not fetch again."""
    (file,) = (peer.path / ".git/gitmem/refused-commits").iterdir()
    return file.read_text().splitlines()


@pytest.mark.deep
def test_a_flood_of_refused_outboxes_stops_no_exchange(town: Town, two: tuple[Peer, Peer]) -> None:
    """Each clone's first sync sends and brings lines, in seconds; the answer names some refs and the number of the rest."""
    a, b = two
    made = flood(town, 2_500)

    for peer in (a, b):
        answer, seconds = cpu(peer)
        assert answer.remote["state"] == "synced" and answer.code == 0, answer.text
        assert seconds < 5 * 2, seconds  # 2 s on an idle machine
        left = answer.remote["left_out"]
        assert left and {each["commit"] for each in left} <= set(made) and len(left) <= 20
        said = answer.remote["message"]
        assert f"To remove it: git push origin :{left[0]['ref']}" in said and len(said) < 4_000
        assert "outboxes of origin were not fetched yet" in said and "author unknown (not fetched)" in said
    assert b.messages() >= {"one", "from a", "from b"}
    a.sync()
    assert a.messages() >= {"one", "from a", "from b"}
    assert len(remembered(a)) > 20, "the second sync goes on"


@pytest.mark.deep
def test_an_honest_outbox_among_refused_ones_is_taken_in(town: Town, two: tuple[Peer, Peer]) -> None:
    """In the end every ref was tried once, and what git refused is not tried again."""
    a, _ = two
    made = flood(town, 60)
    line = b'{"message":"waiting"}\n'
    _, honest = town.break_with({"signals/2026-11-21/gm-7d2kq0ze.jsonl": line}, box=True)

    answers = [a.sync() for _ in range(6)]

    assert "waiting" in a.messages()
    assert not town.tip(f"refs/gitmem/outbox/{honest}"), "it was folded"
    assert "not fetched yet" not in answers[-1].text and "55 more" in answers[-1].remote["message"]
    assert sorted(row.partition(" ")[0] for row in remembered(a)) == sorted(made)


def test_a_name_that_only_ends_like_a_place_is_none(town: Town, two: tuple[Peer, Peer]) -> None:
    """Names that nobody's gitmem makes neither stop a sync nor bring lines."""
    a, _ = two
    (bad,) = bad_commits(town, 1)
    town.point("refs/gitmem/$(touch x)/heads/gitmem".replace(" ", "-"), bad)
    tree = town.tree(BRANCH, {"signals/2026-11-21/gm-7d2kq0ze.jsonl": b'{"message":"smuggled"}\n'})
    town.point("refs/gitmem/x/gitmem/log", town.commit(tree, town.tip()))

    answer = a.sync()

    assert answer.code == 0 and answer.remote["left_out"] == [], answer.text
    assert "smuggled" not in a.messages() and "from a" in town.messages()


@pytest.mark.parametrize("kind", ["tag", "tree", "blob"])
def test_a_place_at_no_commit_is_called_what_it_is(kind: str, town: Town, two: tuple[Peer, Peer]) -> None:
    """With the command that removes it, which works."""
    a, _ = two
    oid = {
        "tag": lambda: town.object("tag", f"object {town.tip()}\ntype commit\ntag x\ntagger {WHO} 1 +0000\n\nx\n".encode()),
        "tree": lambda: town.tree(BRANCH, {}),
        "blob": lambda: town.blob(b"x\n"),
    }[kind]()  # fmt: skip
    ref = f"refs/gitmem/outbox/{oid}"
    town.point(ref, oid)

    answer = a.sync()

    (left,) = answer.remote["left_out"]
    assert (left["ref"], left["why"]) == (ref, f"it is a {kind}, not a commit"), answer.text
    assert f"git push origin :{ref}" in answer.remote["message"]
    git("push", "--quiet", "origin", f":{ref}", cwd=a.path)
    assert a.sync().remote["left_out"] == []
    assert "from a" in town.messages()
