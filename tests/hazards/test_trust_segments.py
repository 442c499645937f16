"""A peer has written to the very file that a clone writes its next lines to: nobody loses a line, no place is left out."""

from __future__ import annotations

import json

import pytest

from gitmem.log.committer import next_token
from gitmem.log.ref import SEGMENT_BYTES_MAX, UNION_BYTES_MAX

from .peers import BRANCH, Town, git

LINE = b'{"at":"2026-11-21T20:00:00.%06dZ","message":"%s"}\n'


def filled(size: int) -> bytes:
    """Return lines of at least so many bytes, which compress well."""
    one = LINE % (0, b"x" * 4000)
    return b"".join(LINE % (number, b"x" * 4000) for number in range(size // len(one) + 1))


def segments(town: Town) -> list[str]:
    names = git("ls-tree", "-r", "--name-only", BRANCH, "signals", cwd=town.hub).splitlines()
    return [name for name in names if name.endswith(".jsonl")]


@pytest.mark.deep
@pytest.mark.parametrize(
    ("which", "what"), [("own", "full"), ("own", "not JSON"), ("next", "full"), ("next", "a folder")]
)
def test_a_segment_that_a_peer_has_filled_takes_no_line_with_it(town: Town, what: str, which: str) -> None:
    """The open segment of a clone, and the one that follows it: both names are public."""
    a, b = town.clone("a"), town.clone("b")
    a.say("one")
    assert a.sync().code == 0 and b.sync().code == 0
    (own,) = segments(town)
    token = own.rpartition("/gm-")[2].removesuffix(".jsonl")
    path = own if which == "own" else own.replace(token, next_token(token))
    before = git("cat-file", "blob", f"{BRANCH}:{own}", cwd=town.hub).encode() + b"\n"
    kept = before if which == "own" else b""
    content = {
        "full": kept + filled(SEGMENT_BYTES_MAX),
        "a folder": b"{}\n",
        "not JSON": kept + b"\xff\x00 no JSON\n",
    }[what]
    changes: dict[str, bytes | None] = {path: content}
    if what == "a folder":
        changes = {path: None, f"{path}/x.jsonl": content} if which == "own" else {f"{path}/x.jsonl": content}
    if which == "next" and what != "a folder":  # so that the next lines go on there
        changes[own] = before + filled(SEGMENT_BYTES_MAX)
    town.break_with(changes)

    said = {"one"}
    a.say("from a")
    b.say("from b")
    said |= {"from a", "from b"}
    for each in (a, b, a):
        answer = each.sync()
        assert answer.code in (0, 5), answer.text
        assert not answer.remote["left_out"] or what == "a folder", answer.remote["left_out"]

    for each in (a, b):
        shown = each.run("log", "-n", "100", "--json")
        told = {entry.get("message") for entry in shown.json["entries"]}
        assert said <= told, (said - told, shown.text[:500])
    largest = git("ls-tree", "-r", "-l", "refs/gitmem/log", cwd=a.path).splitlines()
    assert max(int(row.split()[3]) for row in largest) <= UNION_BYTES_MAX
    assert json.loads(a.run("doctor", "--json").text.splitlines()[0])
