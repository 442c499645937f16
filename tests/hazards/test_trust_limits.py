"""A peer pushes more than a clone should take in at once: no file, count or commit of theirs costs anybody the day."""

from __future__ import annotations

import json
import resource
import subprocess
import sys

import pytest

from tests.hazards.peers import BRANCH, Answer, Peer, Town, git

WHO = "Mallory <mallory@example.org> 1795000000 +0000"
CPU_SECONDS_MAX = 8.0  # for up to 24 MB; the promise of 5 s is for 5 MB (test_trust_cost.py)


@pytest.fixture
def a(town: Town) -> Peer:
    """A clone that has published a line."""
    found = town.clone("a")
    found.say("one")
    assert found.sync().code == 0
    return found


def numbers(first: int, count: int) -> bytes:
    return b"".join(b'{"n":%d}\n' % number for number in range(first, first + count))


def push(town: Town, *commits: dict[str, bytes], message: bytes = b"By hand\n") -> list[str]:
    """Commits on the branch, each with files of its own."""
    base = town.tip()
    rows = [b"feature done\n"]
    for files in commits:
        rows.append(b"commit %s\ncommitter %s\n" % (BRANCH.encode(), WHO.encode()))
        rows.append(b"data %d\n%s" % (len(message), message))
        rows.append(b"from %s\n" % base.encode() if files is commits[0] else b"")
        for path, content in files.items():
            rows.append(b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(content), content))
    git("fast-import", "--quiet", cwd=town.hub, input=b"".join([*rows, b"done\n"]))
    return git("rev-list", "--reverse", f"{base}..{BRANCH}", cwd=town.hub).splitlines()


def outboxes(town: Town, count: int, message: bytes = b"") -> None:
    """Outboxes with a line each."""
    base, rows = town.tip(), [b"feature done\n"]
    for number in range(count):
        text = b"%04d\n" % number + message
        rows.append(b"commit refs/x/%d\ncommitter %s\n" % (number, WHO.encode()))
        rows.append(b"data %d\n%s\n" % (len(text), text))
        content = b'{"message":"box %d"}\n' % number
        rows.append(b"from %s\nM 100644 inline signals/x/gm-%d.jsonl\n" % (base.encode(), number))
        rows.append(b"data %d\n%s\n" % (len(content), content))
    git("fast-import", "--quiet", cwd=town.hub, input=b"".join([*rows, b"done\n"]))
    made = git("for-each-ref", "--format=%(objectname) %(refname)", "refs/x/", cwd=town.hub).splitlines()
    moves = [
        f"create refs/gitmem/outbox/{oid} {oid}\ndelete {name}\n"
        for oid, name in (row.split() for row in made)
    ]
    git("update-ref", "--stdin", cwd=town.hub, input="".join(moves).encode())


def cpu(peer: Peer, *args: str) -> tuple[Answer, float]:
    """Run the program; the CPU seconds of it and of what it started."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    answer = peer.run(*args)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return answer, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def test_a_commit_with_more_files_than_one_sync_takes_is_left_out(town: Town, a: Peer) -> None:
    """It names the option that takes them; what is recorded here goes to an outbox."""
    blob = town.blob(b"1\n")
    rows = b"".join(b"100644 blob %s\tgm-%05d.jsonl\n" % (blob.encode(), number) for number in range(20_001))
    inner = git("mktree", cwd=town.hub, input=rows)
    root = git("ls-tree", BRANCH, cwd=town.hub) + f"\n040000 tree {inner}\tmany\n"
    oid = town.commit(git("mktree", cwd=town.hub, input=root.encode()), town.tip())
    town.point(BRANCH, oid)
    a.say("two")

    found = a.sync()

    (left,) = found.remote["left_out"]
    assert (left["kind"], left["commit"]) == ("large", oid) and "20,000" in left["why"], found.text
    assert "gitmem sync --allow-large" in found.remote["message"] and found.remote["safe"]
    assert found.code == 5 and found.remote["received"] == 0 and ".." not in found.remote["message"]
    assert a.messages() == {"one", "two"}


@pytest.mark.deep
def test_more_lines_than_one_sync_takes_come_in_steps(town: Town, a: Peer) -> None:
    """Each sync says how it goes on, and in the end everybody has everything."""
    push(town, *({f"signals/x/gm-{number}.jsonl": numbers(number * 100_000, 90_000)} for number in range(3)))
    a.say("two")

    first = a.sync()

    assert first.code == 5 and first.remote["received"] == 180_000, first.text
    assert first.remote["left_out"][0]["kind"] == "large" and first.remote["safe"]
    assert first.json["next"][0] == "gitmem sync origin"
    second = a.sync()
    assert second.code == 0 and second.remote["received"] == 90_000, second.text
    assert a.tip() == town.tip() and town.messages() >= {"one", "two"}


@pytest.mark.deep
@pytest.mark.parametrize("box", [False, True])
def test_all_of_it_is_taken_in_where_the_user_says_so(box: bool, town: Town, a: Peer) -> None:
    """A single commit above the limits has no steps."""
    ref, oid = town.break_with({"signals/x/gm-x.jsonl": numbers(0, 200_001)}, box=box)
    left = a.sync()
    assert [each["ref"] for each in left.remote["left_out"]] == [ref] and left.remote["received"] == 0
    if not box:
        assert left.json["next"][0] == "gitmem sync --allow-large origin", "a sync without it gets no further"
    assert a.sync("--allow-large").remote["received"] == 200_001
    found = a.sync()
    assert found.code == 0 and not found.remote["left_out"], found.text
    git("merge-base", "--is-ancestor", oid, "refs/gitmem/log", cwd=a.path, check=not box)


EPOCH = b'{"format":1,"epoch":1}\n'
FULL: dict[str, dict[str, bytes | None]] = {
    "lines": {"format": EPOCH, "signals/a.jsonl": b"".join(b"%d\n" % number for number in range(199_985))},
    "bytes": {"format": EPOCH, "signals/a.jsonl": b"x" * (24 * 1024 * 1024 - 5_000)},
    "a file format without lines": {"format": b"[" * 199_999},
    "a file format with lines": {"format": b"[\n" * 99_995},
}


@pytest.mark.parametrize(
    "what",
    [
        name if name == "a file format without lines" else pytest.param(name, marks=pytest.mark.deep)
        for name in FULL
    ],
)
def test_a_branch_that_is_left_out_takes_no_room_from_outboxes(what: str, town: Town, a: Peer) -> None:
    """As much as a sync takes in, in a branch that nobody reads: what is said meanwhile arrives."""
    b = town.clone("b")
    assert b.sync().code == 0
    for number in range(12):
        a.say(f"number {number}")
    _, oid = town.break_with(FULL[what])

    sent, found = a.sync(), b.sync()

    assert sent.remote["safe"] and "which every sync reads" in sent.remote["message"], sent.text
    assert [(each["commit"], each["kind"]) for each in found.remote["left_out"]] == [(oid, "invalid")]
    assert b.messages() == a.messages() == {"one", *(f"number {number}" for number in range(12))}


@pytest.mark.deep
@pytest.mark.parametrize("what", ["epoch", "orphan"])
def test_a_branch_that_is_bad_and_too_large_is_repaired_by_what_the_answer_names(
    what: str, town: Town, a: Peer
) -> None:
    """With and without the option that lifts the limits: nothing of the branch has to be taken in for it."""
    b = town.clone("b")
    many = numbers(0, 200_001)
    if what == "epoch":
        town.break_with({"format": EPOCH, "signals/x/gm-x.jsonl": many})
    else:
        town.point(BRANCH, town.commit(town.tree(BRANCH, {"signals/x/gm-x.jsonl": many})))
    a.say("two")
    for options in ([], ["--allow-large"]):
        found = a.sync(*options)
        assert [each["kind"] for each in found.remote["left_out"]] == ["invalid"], found.text
        assert found.json["next"][0] == "gitmem sync --repair origin", found.text

    answer = a.sync("--repair", "origin")

    if what == "orphan":
        assert answer.code == 2 and answer.json["next"] == ["gitmem sync --repair --yes origin"], answer.text
        large = a.sync("--repair", "--allow-large", "origin")
        assert large.json["next"] == ["gitmem sync --repair --yes --allow-large origin"], large.text
        answer = a.sync("--repair", "--yes", "origin")
    assert answer.code == 0 and "Repaired" in answer.text, answer.text
    assert b.sync().code == 0
    assert a.messages() == b.messages() == town.messages() == {"one", "two"}


@pytest.mark.deep
def test_a_history_that_no_commit_on_top_can_mend_is_replaced(town: Town, a: Peer) -> None:
    """A commit below has a message above the limit, so every clone would leave out what stands on it."""
    push(town, {"signals/x/gm-a.jsonl": b"1\n"}, message=b"x" * (33 * 1024 * 1024) + b"\n")
    tip = push(town, {"signals/x/gm-b.jsonl": b"2\n"})[-1]
    assert a.sync().json["next"][0] == "gitmem sync --repair origin"
    asked = a.sync("--repair", "origin")
    assert asked.code == 2 and town.tip() == tip, asked.text
    answer = a.sync("--repair", "--yes", "origin")
    assert answer.code == 0 and "Repaired" in answer.text, answer.text
    assert town.messages() == {"one"}


@pytest.mark.deep
def test_a_file_above_the_limit_is_taken_in_where_the_user_says_so(town: Town, a: Peer) -> None:
    """Nothing else takes it."""
    _, oid = town.break_with({"signals/x/gm-x.jsonl": b"x" * (33 * 1024 * 1024) + b"\n"})
    left = a.sync()
    assert "33,554,432" in left.remote["left_out"][0]["why"] and "--allow-large" in left.text
    assert a.sync("--allow-large").code == 0
    assert a.tip() == oid


@pytest.mark.deep
def test_a_commit_below_the_tip_with_a_large_message_is_left_out_unread(town: Town, a: Peer) -> None:
    """Histories are looked at before their messages are read."""
    text = b"x" * (33 * 1024 * 1024) + b"\n"
    push(town, {"signals/x/gm-a.jsonl": b"1\n"}, message=text)
    tip = push(town, {"signals/x/gm-b.jsonl": b"2\n"})[-1]
    found = a.sync()
    (left,) = found.remote["left_out"]
    assert left["commit"] == tip and "33,554,432" in left["why"]


@pytest.mark.deep
def test_outboxes_beyond_what_one_sync_reads_are_read_by_the_next(town: Town, a: Peer) -> None:
    """Which ones is drawn by lot; it says how many are left, and the next sync reads them."""
    outboxes(town, 230)
    found = a.sync()
    assert found.remote["received"] == 200, found.text
    assert "30 outboxes of origin were not fetched yet: the next sync continues" in found.remote["message"]
    second = a.sync()
    assert second.remote["received"] == 30 and "not fetched yet" not in second.text, second.text
    a.sync()
    assert a.messages() == town.messages() == {"one", *(f"box {number}" for number in range(230))}
    assert not town.outboxes()


@pytest.mark.deep
@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells how much memory a process had at most")
def test_messages_of_outboxes_count_together(town: Town, a: Peer) -> None:
    """Each is allowed by itself: they take neither memory nor the room of what others say."""
    outboxes(town, 24, b"x\n" * 6_000_000)
    outboxes(town, 3)
    code = (
        "import re, sys; from gitmem_cli.main import main; sys.argv[1:] = ['sync', '--json', '--publish']\n"
        "try:\n    main()\nfinally:\n"
        "    print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=a.path, capture_output=True, text=True, timeout=120
    )
    (found,) = json.loads(done.stdout)["remotes"]
    assert {each["kind"] for each in found["left_out"]} == {"large"}, found
    assert a.messages() >= {"one", *(f"box {number}" for number in range(3))}
    assert int(done.stderr.splitlines()[-1]) < 300 * 1024, done.stderr


def signals(count: int, size: int) -> bytes:
    """Signals that compress well."""
    line = (
        '{"at":"2026-11-21T20:00:%02d.%06dZ","kind":"signal","schema_version":"A2A.V1","signal_id":"sig-%012d",'
        '"sender_identity":"codex:implementer:host42","recipients":[],"thread_id":"thread-%012d","intent":"INFO",'
        '"interrupt_class":"advisory","message":"%s","origin":"local"}\n'
    )
    return b"".join((line % (n // 1_000_000, n % 1_000_000, n, n, "x" * size)).encode() for n in range(count))


@pytest.mark.deep
@pytest.mark.parametrize("what", ["signals", "short lines", "commits", "outboxes"])
def test_what_one_sync_takes_in_costs_a_few_seconds(what: str, town: Town, a: Peer) -> None:
    """As much as the limits allow, of each kind."""
    if what == "signals":
        content = signals(87_000, 5)
        assert 23 * 1024 * 1024 < len(content) < 24 * 1024 * 1024, len(content)
        push(town, {"signals/2026-11/21/gm-x.jsonl": content})
    elif what == "short lines":
        push(town, {"signals/2026-11/21/gm-x.jsonl": numbers(0, 199_000)})
    elif what == "commits":
        push(town, *({"signals/2026-11/21/gm-x.jsonl": b"%d\n" % number} for number in range(20_000)))
    else:
        outboxes(town, 200)
    for args in (["sync", "--json"], ["inbox"], ["sync", "--json"]):
        answer, seconds = cpu(a, *args)
        assert answer.code == 0, answer.text
        assert seconds < CPU_SECONDS_MAX, (args, seconds)
