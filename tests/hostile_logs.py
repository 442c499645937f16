"""Logs that a hostile peer may push: valid lines, as many and as entangled as some megabytes allow.

Each family makes the lines of one shape of attack. `put` writes them with git alone, as a peer would. Ids and times are
counted, so that a family is the same in every run.
"""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from gitmem.log import attestations
from gitmem.log.lines import is_attestation, line_hash
from gitmem.records import ids

from .signing import CLONE, MALLORY, addressed, key_of

LINE_MAX = 256 * 1024
SEGMENT_LINES = 2_000
DAY = 24 * 3600 * 1_000_000

Line = tuple[str, dict[str, object]]  # stream, record without `at`
STREAMS = {
    "signal": "signals",
    "receipt": "receipts",
    "session": "sessions",
    "name": "names",
    "audit": "audits",
    "task": "tasks",
    "task_event": "tasks",
    "claim": "claims",
    "commit": "commits",
}


class Victim:
    """Whose clone reads the log."""

    def __init__(self, session: str, identity: str, now: int, clone: str, commit: str = "f" * 40) -> None:
        self.commit = commit  # of the user's history
        self.session = session
        self.identity = identity
        self.now = now  # microseconds
        self.clone = clone  # its id, which every session of it has published


class Writer:
    """Makes lines until some bytes are used up."""

    def __init__(self, victim: Victim, size: int, *, step: int = 1_000, start: int | None = None) -> None:
        self.victim = victim
        self.left = size
        self.at = victim.now - DAY // 2 if start is None else start
        self.step = step
        self.lines: list[tuple[str, bytes]] = []
        self.count = itertools.count()

    def id(self, prefix: str, number: int | None = None) -> str:
        return f"{prefix}-{next(self.count) if number is None else number:06d}"

    def add(self, kind: str, **fields: object) -> bool:
        """Add a line; False once there is no room."""
        record = {"at": iso(self.at), "kind": kind, "schema_version": "A2A.V1", **fields}
        self.at += self.step
        line = json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()
        assert len(line) <= LINE_MAX, f"{len(line)} bytes are no line"
        self.left -= len(line) + 1
        if self.left > 0:
            self.lines.append((STREAMS.get(kind, "memory"), line))
        return self.left > 0

    def signal(self, id: str, **fields: object) -> bool:
        said = {"sender_identity": "mallory:agent:x", "recipients": [self.victim.identity], "intent": "INFO",
                "message": "m", "origin": "import", **fields}  # fmt: skip  # imported answers need no digest
        return self.add("signal", signal_id=id, **said)

    def node(self, id: str, **fields: object) -> bool:
        said = {"type": "discovery", "lifecycle": "wu", "content": "c", "wu_id": "WU-1",
                "sender_identity": "mallory:agent:x", **fields}  # fmt: skip
        return self.add("node", id=id, **said)

    def patch(self, id: str, nodes: list[str], **fields: object) -> bool:
        said = {"sender_identity": "mallory:agent:x", **fields}
        return self.add("patch", id=id, node_ids=nodes, **said)

    def task(self, id: str, **fields: object) -> bool:
        said = {
            "thread_id": "thread-x",
            "message": "m",
            "sender_identity": "mallory:agent:x",
            "target_role": "a/b",
            **fields,
        }
        return self.add("task", task_id=id, **said)

    def event(self, id: str, task: str, event: str, **fields: object) -> bool:
        return self.add(
            "task_event",
            event_id=id,
            task_id=task,
            event=event,
            **{"sender_identity": "mallory:agent:x", **fields},
        )

    def session(self, id: str, **fields: object) -> bool:
        said = {"event": "start", "display_name": "Planck", "clone_id": "mallorys00", **fields}
        return self.add("session", session_id=id, **said)

    def commit(self, commit: str, number: int, **fields: object) -> bool:
        said = {"action": "commit", "evidence": "environment", "sender_identity": "mallory:agent:x", "patch_id": "e" * 40,
                "authored_at": iso(self.victim.now), **fields}  # fmt: skip
        return self.add("commit", link_id=f"link-{number:012d}", commit=commit, **said)

    def relation(self, id: str, from_id: str, to_id: str, **fields: object) -> bool:
        said = {"type": "blocks", "sender_identity": "mallory:agent:x", **fields}
        return self.add("relation", id=id, from_id=from_id, to_id=to_id, **said)


def iso(micros: int) -> str:
    from gitmem.log.lines import format_at

    return format_at(micros)


def reply_cycle(w: Writer) -> None:
    """A thread in which each signal answers the next one, and the last the first."""
    count = w.left // 300
    for at in range(count):
        w.signal(w.id("sig", at), thread_id="thread-x", reply_to=w.id("sig", (at + 1) % count), wu_id="WU-1",
                 intent="PROPOSE", requires_ack=True)  # fmt: skip


def agree_chain(w: Writer) -> None:
    """A proposal, and AGREEs that each come after the one before, of the victim and of others."""
    w.signal("sig-000000", thread_id="thread-x", intent="PROPOSE", wu_id="WU-1",
             recipients=[w.victim.identity, "b:c:d"])  # fmt: skip
    for at in itertools.count(1):
        by = (w.victim.identity, "b:c:d", "mallory:agent:x")[at % 3]
        if not w.signal(w.id("sig", at), thread_id="thread-x", intent="AGREE", sender_identity=by,
                        reply_to="sig-000000", after=[w.id("sig", at - 1)]):  # fmt: skip
            return


def deep_replies(w: Writer) -> None:
    """Each signal answers the one before: a chain that is longer than Python's stack. It is told backwards in time."""
    count = w.left // 300
    for at in reversed(range(count)):
        w.signal(w.id("sig", at), thread_id="thread-x", intent="COUNTER", wu_id="WU-1", requires_ack=True,
                 **({"reply_to": w.id("sig", at - 1)} if at else {}))  # fmt: skip


def dense_after(w: Writer) -> None:
    """Half of the bytes are short signals, the rest lines that name all of them and each other."""
    small = w.left // 2 // 260
    ids = [w.id("sig", at) for at in range(small)]
    for id in ids:
        w.signal(id, thread_id="thread-x", intent="PROPOSE", wu_id="WU-1")
    most = (LINE_MAX - 1_000) // 13
    large = [w.id("sig", small + at) for at in range(200)]
    names = [*large, *ids]
    for at, id in enumerate(large):
        if not w.signal(
            id, thread_id="thread-x", intent="AGREE", after=names[:most], sender_identity=f"a:b:{at}"
        ):
            return


def many_recipients(w: Writer) -> None:
    """A proposal to as many as a line holds, of whom each decides twice while proposals go on."""
    count = min((LINE_MAX - 1_000) // 10, w.left // 900)
    names = [f"r{at:06d}" for at in range(count)]
    w.signal(
        "sig-000000",
        thread_id="thread-x",
        intent="PROPOSE",
        recipients=[w.victim.identity, *names],
        wu_id="WU-1",
    )
    last = "sig-000000"
    for turn, at in itertools.product(range(3), range(count)):
        id = w.id("sig", 1 + turn * count + at)
        intent = ("AGREE", "PROPOSE", "AGREE")[turn]
        if not w.signal(id, thread_id="thread-x", intent=intent, sender_identity=names[at], after=[last],
                        reply_to="sig-000000", recipients=[]):  # fmt: skip
            return
        last = id


def wide_recipients(w: Writer) -> None:
    """Every signal goes to as many as a line holds."""
    count = min((LINE_MAX - 1_000) // 10, w.left // 25)
    for at in itertools.count():
        names = [f"{at % 40:02d}{each:05d}" for each in range(count)]
        if not w.signal(w.id("sig", at), thread_id="thread-x", recipients=[w.victim.identity, *names]):
            return


def one_id(w: Writer) -> None:
    """Lines of one signal id that all differ, in the threads of fifty other signals."""
    for at in range(50):
        w.signal(w.id("sig", at), thread_id=f"thread-{at}", requires_ack=True, wu_id="WU-1", intent="PROPOSE")
    for at in itertools.count():
        if not w.signal("sig-zzzz", thread_id=f"thread-{at % 50}", message=f"m{at}", requires_ack=True):
            return


def keyed_id(w: Writer) -> None:
    """The same with an idempotency key, so that contents are compared and not digests."""
    id = ids.keyed_id("sig", "mallory:agent:x", "k")
    for at in itertools.count():
        if not w.signal(id, thread_id="thread-x", message=f"m{at}", idempotency_key="k", wu_id="WU-1"):
            return


def receipts_of_one(w: Writer) -> None:
    """One signal to the victim, and receipts for it of thousands of readers with as many digests."""
    w.signal("sig-000000", thread_id="thread-x", intent="PROPOSE", wu_id="WU-1")
    w.signal("sig-000001", thread_id="thread-x", reply_to="sig-000000", sender_identity="b:c:d")
    for at in itertools.count():
        reader = w.victim.identity if at % 2 else f"r{at}"
        if not w.add("receipt", signal_id="sig-000000", reader_identity=reader, delivery_state="delivered",
                     answers_digest=f"{at:064x}"):  # fmt: skip
            return


def broadcasts_and_readers(w: Writer) -> None:
    """Broadcasts without end from long ago and from today, and readers who have each read one of them."""
    count = w.left // 520
    for at in range(count):
        w.signal(w.id("sig", at), recipients=[], sender_identity=f"s{at}")
    for at in range(count):
        w.add("receipt", signal_id=w.id("sig", at), reader_identity=f"r{at}", delivery_state="delivered",
              answers_digest=f"{at:064x}")  # fmt: skip


def old_broadcasts(w: Writer) -> None:
    """The same, from a year before anybody was here."""
    w.at -= 365 * DAY
    count = w.left // 520
    for at in range(count):
        w.signal(w.id("sig", at), recipients=[], sender_identity="s")
    w.at = w.victim.now - DAY // 2
    for at in range(count):
        w.add("receipt", signal_id=w.id("sig", at), reader_identity=f"r{at}", delivery_state="delivered",
              answers_digest=f"{at:064x}")  # fmt: skip


def seen_broadcasts(w: Writer) -> None:
    """Broadcasts that each name as many earlier ones as count, and a session that has seen the last ones."""
    seen: list[str] = []
    for _ in range(w.left // 900):
        w.signal(w.id("sig"), recipients=[], seen=seen)
        seen = [line_hash(addressed(w.lines[-1][1], MALLORY)).hex(), *seen][:16]
    w.session("sess-zzzz", seen=seen)


def broadcasts_and_sessions(w: Writer) -> None:
    """As many broadcasts as live sessions, of whom nobody has read any."""
    w.at = w.victim.now - 600_000_000
    count = w.left // 400
    for at in range(count // 2):
        w.session(w.id("sess", at), agent_identity=f"a:b:{at}")
    for at in range(count):
        w.signal(w.id("sig", at), recipients=[])


def _sessions(w: Writer, field: str | None, value: str = "") -> None:
    w.at = w.victim.now - 800_000_000
    for at in itertools.count():
        if not w.session(w.id("sess", at), **({field: value} if field else {})):
            return


def sessions_of_one_name(w: Writer) -> None:
    """Thousands of live sessions that ask for the victim's name."""
    _sessions(w, None)


def sessions_of_one_harness(w: Writer) -> None:
    """Thousands of live sessions with the harness's id of one."""
    _sessions(w, "harness_session", "harness-1")


def sessions_of_one_identity(w: Writer) -> None:
    """Thousands of live sessions of the victim's identity."""
    _sessions(w, "agent_identity", w.victim.identity)


def sessions_of_this_clone(w: Writer) -> None:
    """Live sessions that say that they were started in the victim's clone, and broadcasts that none of them has read."""
    w.at = w.victim.now - 800_000_000
    count = w.left // 600
    for at in range(count):
        w.session(w.id("sess", at), clone_id=w.victim.clone, harness_session="harness-1")
    for at in range(count):
        w.signal(w.id("sig", at), recipients=[w.id("sess", at)] if at % 2 else [])


def numbered_names(w: Writer) -> None:
    """Thousands of live sessions with names that take each other's numbers."""
    w.at = w.victim.now - 800_000_000
    for at in itertools.count():
        name = ("Planck", f"Planck-{at // 2 + 2}")[at % 2]
        if not w.session(w.id("sess", at), display_name=name, harness_session=f"h{at}"):
            return


def names_that_end(w: Writer) -> None:
    """Sessions that ask for one name and end in the order in which they came, so that numbers become free."""
    w.at = w.victim.now - DAY
    w.step = 1_000
    count = w.left // 420
    for at in range(count):
        w.session(w.id("sess", at))
        if at > count // 2:
            w.session(w.id("sess", at - count // 2), event="end")


def one_session(w: Writer) -> None:
    """One session that comes back every three days for decades, each time with another name."""
    w.at, w.step = 0, 3 * DAY
    for at in itertools.count():
        w.at %= w.victim.now
        if not w.session("sess-zzzz", display_name=f"Name{at % 7}", event="change"):
            return


def one_session_speaks(w: Writer) -> None:
    """Signals of a session over decades, and of the victim's."""
    w.at, w.step = 0, 3 * DAY
    w.session("sess-zzzz")
    for at in itertools.count():
        w.at %= w.victim.now
        if not w.signal(w.id("sig", at), sender_session="sess-zzzz", recipients=[]):
            return


def long_names(w: Writer) -> None:
    """Sessions with names, identities and places as long as they may be, for whoever looks for similar ones."""
    w.at = w.victim.now - 800_000_000
    for at in itertools.count():
        name = f"{at:06d}" + "Planck ф́" * 7
        if not w.session(w.id("sess", at), display_name=name, agent_identity=f"{at}:{'b' * 100}:{'c' * 100}",
                         worktree="w" * 200, lane="l" * 200, activity="a" * 200):  # fmt: skip
            return


def identities(w: Writer) -> None:
    """Thousands of writers whom nobody knows, each with an identity as long as it may be."""
    for at in itertools.count():
        if not w.signal(w.id("sig", at), sender_identity=f"{at}:{'b' * 100}:{'c' * 100}", recipients=[]):
            return


def patch_cycle(w: Writer) -> None:
    """Patches of one node that each come after the next one."""
    w.node("mem-000000")
    count = w.left // 260
    for at in range(count):
        w.patch(w.id("patch", at), ["mem-000000"], after=[w.id("patch", (at + 1) % count)], priority="P1",
                lane=f"l{at % 50}", metadata={f"k{at % 500}": at})  # fmt: skip


def patch_chain(w: Writer) -> None:
    """Patches of one node in a chain, told backwards."""
    w.node("mem-000000")
    count = w.left // 230
    for at in reversed(range(count)):
        w.patch(w.id("patch", at), ["mem-000000"], content=f"c{at}", metadata={f"k{at}": at},
                **({"after": [w.id("patch", at - 1)]} if at else {}))  # fmt: skip


def patches_of_all(w: Writer) -> None:
    """Patches that each name thousands of nodes, and all patches."""
    nodes = [w.id("mem", at) for at in range(w.left // 2 // 220)]
    for id in nodes:
        w.node(id, lifecycle="project")
    nodes = nodes[: (LINE_MAX - 5_000) // 2 // 13]
    patches = [w.id("patch", at) for at in range(400)]
    for id in patches:
        if not w.patch(id, nodes, after=patches, lane="l", priority="P2"):
            return


def dense_patches(w: Writer) -> None:
    """As many patches as nodes, and each names nearly all of both, so that no two nodes have the same patches."""
    count = int((w.left / 2 / 14) ** 0.5)
    nodes = [w.id("mem", at) for at in range(count)]
    patches = [w.id("patch", at) for at in range(count)]
    for id in nodes:
        w.node(id)
    for at, id in enumerate(patches):
        if not w.patch(
            id, nodes[: at % count] + nodes[at % count + 1 :], after=patches, lane=f"l{at}", tags=["t"]
        ):
            return


def forged_patches(w: Writer) -> None:
    """Patches in the name of the victim's session that each name thousands of nodes, half of them its checkpoints."""
    by = {"sender_identity": w.victim.identity, "sender_session": w.victim.session}
    nodes = [w.id("mem", at) for at in range(w.left // 2 // 280)]
    for at, id in enumerate(nodes):
        w.node(id, session_id=w.victim.session, **({"type": "checkpoint", **by} if at % 2 else {}))
    patches = [w.id("patch", at) for at in range(400)]
    for id in patches:
        if not w.patch(id, nodes[: (LINE_MAX - 10_000) // 13], after=patches, lane="l", **by):
            return


def _most_nodes(w: Writer, share: float) -> list[str]:
    """Write as many small nodes as a share of the bytes holds."""
    nodes = [w.id("mem", at) for at in range(int(w.left * share) // 200)]
    for id in nodes:
        w.node(id, type="note")
    return nodes


def _in_patches(w: Writer, nodes: list[str], **fields: object) -> None:
    """Patch all nodes with the same fields, in as few lines as possible."""
    rest = LINE_MAX - 1_000 - len(json.dumps(fields, ensure_ascii=False).encode())
    for start in range(0, len(nodes), rest // 13):
        w.patch(w.id("patch"), nodes[start : start + rest // 13], **fields)


def bulk_values(w: Writer) -> None:
    """Patches that give thousands of tags, paths and entries, or a long text, to thousands of nodes each."""
    nodes = _most_nodes(w, 0.7)
    count = min(60_000, w.left // 16) // 12
    names = [f"{at:06d}" for at in range(count)]
    for fields in (
        {"tags": names},
        {"paths": names},
        {"metadata": dict.fromkeys(names, 1)},
        {"content": "word " * count},
    ):
        _in_patches(w, nodes, **fields)


def bulk_small_values(w: Writer) -> None:
    """Patches that give each of as many nodes as possible the most that a patch of several may give."""
    nodes = _most_nodes(w, 0.85)
    letters = [chr(ord("a") + at) for at in range(7)]
    _in_patches(w, nodes, tags=letters, paths=letters)
    _in_patches(w, nodes, content="a b " * 32, metadata=dict.fromkeys(letters[:5], 1))


def dense_metadata(w: Writer) -> None:
    """As many patches as nodes, each of nearly all nodes, with entries of the metadata that no other patch has."""
    count = int((w.left / 15) ** 0.5)
    nodes = _most_nodes(w, count * 200 / w.left)
    for at in range(len(nodes)):
        keys = {f"{at:03x}{each:x}": 1 for each in range(4)}
        if not w.patch(w.id("patch", at), nodes[: at % count] + nodes[at % count + 1 :], metadata=keys):
            return


def metadata_keys(w: Writer) -> None:
    """Patches of one node that all set and clear thousands of keys."""
    w.node("mem-000000", metadata={"k": 1})
    keys = {f"{at:05d}": 1 for at in range(min((LINE_MAX - 1_000) // 10, w.left // 60))}
    for at in itertools.count():
        w.patch(w.id("patch", 2 * at), ["mem-000000"], clear=["metadata"])
        if not w.patch(w.id("patch", 2 * at + 1), ["mem-000000"], metadata=keys):
            return


def clears_and_keys(w: Writer) -> None:
    """Thousands of patches that clear all metadata, and thousands that set a key each."""
    w.node("mem-000000")
    for at in itertools.count():
        w.patch(w.id("patch", 2 * at), ["mem-000000"], clear=["metadata"])
        if not w.patch(w.id("patch", 2 * at + 1), ["mem-000000"], metadata={f"k{at}": 1}):
            return


def one_node(w: Writer) -> None:
    """Lines of one node id that all differ."""
    for at in itertools.count():
        if not w.node("mem-000000", content=f"c{at}", tags=[f"t{at}"]):
            return


def tags_and_paths(w: Writer) -> None:
    """Nodes with as many tags and paths as a line holds."""
    count = min(LINE_MAX - 2_000, w.left // 2) // 24
    for at in itertools.count():
        tags, paths = (
            [f"{at}-{each:05d}" for each in range(count)],
            [f"p/{each:04d}" for each in range(count)],
        )
        if not w.node(w.id("mem", at), tags=tags, paths=paths):
            return


def block_graph(w: Writer) -> None:
    """Nodes that all block each other."""
    count = int((w.left / 240) ** 0.5)
    for at in range(count):
        w.node(w.id("mem", at))
    for number, (one, other) in enumerate(itertools.permutations(range(count), 2)):
        if not w.relation(w.id("rel", number), w.id("mem", one), w.id("mem", other)):
            return


def block_chain(w: Writer) -> None:
    """A chain of nodes that block the next one, long as it may be, and closes into a circle."""
    count = w.left // 420
    for at in range(count):
        w.node(w.id("mem", at), **({"wu_id": "WU-1"} if at < 2 else {"wu_id": "WU-2"}))
        w.relation(w.id("rel", at), w.id("mem", (at + 1) % count), w.id("mem", at))


def one_relation(w: Writer) -> None:
    """Thousands of words on one relation, in a cycle."""
    w.node("mem-000000")
    w.node("mem-000001")
    count = w.left // 240
    for at in range(count):
        w.relation(w.id("rel", at), "mem-000000", "mem-000001", after=[w.id("rel", (at + 1) % count)],
                   **({"removed": True} if at % 2 else {}))  # fmt: skip


def two_successors(w: Writer) -> None:
    """Two nodes, one with many patches, that supersede the same ids."""
    w.node("mem-000000")
    w.node("mem-000001", content="another")
    for at in range(min(400, w.left // 1_000)):
        w.patch(w.id("patch", at), ["mem-000000"], tags=[f"t{at}"])
    for at in itertools.count():
        w.relation(w.id("rel", 2 * at), "mem-000000", w.id("mem", at + 2), type="supersedes")
        if not w.relation(w.id("rel", 2 * at + 1), "mem-000001", w.id("mem", at + 2), type="supersedes"):
            return


def summary_chain(w: Writer) -> None:
    """Nodes that each say that the next one, at last the first, has what they say."""
    count = w.left // 280
    for at in range(count):
        w.node(
            w.id("mem", at),
            type="summary",
            summarized_into=w.id("mem", (at + 1) % count),
            lifecycle="project",
        )


def accesses(w: Writer) -> None:
    """Accesses that each name as many nodes as a line holds."""
    count = min((LINE_MAX - 1_000) // 13, w.left // 26)
    ids = [w.id("mem", at) for at in range(count)]
    for id in ids[:2_000]:
        w.node(id)
    for at in itertools.count():
        if not w.add("access", id=w.id("access", at), node_ids=ids, reader_identity="m"):
            return


def many_nodes(w: Writer) -> None:
    """Thousands of nodes of one work unit with anchors and commits that nobody has."""
    for at in itertools.count():
        if not w.node(w.id("mem", at), paths=[f"src/{at}.py"], head=f"{at:040x}", content=f"find {at}"):
            return


def long_texts(w: Writer) -> None:
    """Nodes and signals with texts as long as they may be: angle brackets, marks, dashes, one letter."""
    texts = ["<" * 60_000, "— from session " * 3_500, "a" * 65_000, "e" + "\u0301" * 30_000, "<|" * 30_000,
             "</" * 30_000, "\u200b" * 20_000, "\n" * 60_000, "a-" * 30_000, "'\"" * 30_000, "|" * 60_000,
             "-----BEGIN " * 5_000, "&lt;" * 15_000, "\\u003c" * 10_000, "` " * 30_000, "~~~\n" * 15_000]  # fmt: skip
    for at in itertools.count():
        text = texts[at % len(texts)]
        w.signal(
            w.id("sig", at),
            message=text,
            wu_id="WU-1",
            intent="PROPOSE",
            sender_headline=text[:300].strip() or "x",
        )
        if not w.node(w.id("mem", at), content=text, wu_id="WU-1"):
            return


def audits(w: Writer) -> None:
    """Audits in the victim's name that name thousands of signals."""
    count = min((LINE_MAX - 1_000) // 13, w.left // 30)
    ids = [w.id("sig", at) for at in range(count)]
    for at in itertools.count():
        if not w.add("audit", audit_id=w.id("audit", at), action="gate", reason="r", reader_identity=w.victim.identity,
                     signal_ids=ids, wu_id="WU-1", sender_identity="m"):  # fmt: skip
            return


def short_lines(w: Writer) -> None:
    """Lines that are no records."""
    for at in itertools.count():
        if not w.add("x", n=at):
            return


def wrong_lines(w: Writer) -> None:
    """Lines that look like signals and break a rule, so that the models are asked."""
    for at in itertools.count():
        if not w.signal(w.id("sig", at), recipients=["a b", 3, None] * 5, after="no"):
            return


def own_threads(w: Writer) -> None:
    """Thousands of signals to the victim, each a thread of two."""
    for at in itertools.count():
        w.signal(
            w.id("sig", 2 * at), requires_ack=True, thread_id=f"thread-{at}", wu_id="WU-1", intent="PROPOSE"
        )
        if not w.signal(
            w.id("sig", 2 * at + 1), thread_id=f"thread-{at}", reply_to=w.id("sig", 2 * at), wu_id="WU-1"
        ):
            return


def own_answers(w: Writer) -> None:
    """Decisions of others and in the name of the victim's agent, each of which answers and names others, in circles."""
    w.at, w.step = w.victim.now, 1
    count = w.left // 460
    for at in range(count):
        w.signal(w.id("sig", at), thread_id="thread-x", intent=("PROPOSE", "AGREE", "COUNTER")[at % 3],
                 sender_identity=("mallory:agent:x", w.victim.identity)[at % 2],
                 reply_to=w.id("sig", (at * 7_919 + 1) % count),
                 after=sorted({w.id("sig", (at * each * 31 + each) % count) for each in range(1, 9)}))  # fmt: skip


def old_own_answers(w: Writer) -> None:
    """Lines of one id that all differ, and as many answers to it in the name of the victim's agent, from before it came."""
    w.step = 1
    for at in itertools.count():
        w.signal("sig-zzzz", thread_id="thread-x", message=f"m{at}")
        if not w.signal(w.id("sig", at), thread_id="thread-x", intent="AGREE", reply_to="sig-zzzz",
                        sender_identity=w.victim.identity):  # fmt: skip
            return


def many_units(w: Writer) -> None:
    """Nodes and sessions of thousands of work units and lanes."""
    for at in itertools.count():
        w.node(
            w.id("mem", at), wu_id=f"WU-{at}", lane=f"l{at}", type="checkpoint", session_id=f"sess-{at:06d}"
        )
        if not w.session(w.id("sess", at), wu_id=f"WU-{at}", initiative_id=f"i{at}", lane=f"l{at}"):
            return


def one_task(w: Writer) -> None:
    """A task with thousands of takes, ends, renewals and seals that each know two others, and a few of the victim's."""
    w.task("task-000000", sender_identity=w.victim.identity, sender_session=w.victim.session)
    for at in itertools.count():
        take = w.id("tev", at - at % 4)
        more = {"take": take, "state": "failed"} if at % 4 else {}
        if not w.event(w.id("tev", at), "task-000000", ("take", "status", "renew", "seal")[at % 4], until=iso(w.at),
                       after=[w.id("tev", max(at - 1, 0)), w.id("tev", at // 2)], **more):  # fmt: skip
            return


def task_handoffs(w: Writer) -> None:
    """Tasks that one agent has taken, and thousands of handoffs of all of them, each accepted."""
    ids = [w.id("task", at) for at in range(50)]
    for at, id in enumerate(ids):
        w.task(id)
        w.event(w.id("tev", at), id, "take")
    takes = [w.id("tev", at) for at in range(50)]
    for at in itertools.count(50):
        w.task(w.id("task", at), purpose="handoff", handoff_tasks=ids, handoff_takes=takes)
        if not w.event(
            w.id("tev", at), w.id("task", at), "take", sender_identity=f"a:b:{at % 99}", after=takes
        ):
            return


def replaced_tasks(w: Writer) -> None:
    """Tasks that replace and block each other, in circles."""
    count = w.left // 700
    for at in range(count):
        others = [w.id("task", (at * each + each) % count) for each in range(1, 9)]
        w.task(w.id("task", at), supersedes=others, blocked_by=others)


def one_claim(w: Writer) -> None:
    """Thousands of records of one claim."""
    for at in itertools.count():
        if not w.add("claim", claim_id="claim-000000", event=("claim", "renew", "release")[at % 3], paths=["src"], until=iso(w.at),
                     sender_identity=f"a:b:{at % 7}"):  # fmt: skip
            return


def one_commit(w: Writer) -> None:
    """Thousands of sessions that say that they made one commit, each with another task, and all commits of its patch id."""
    for at in itertools.count():
        commit = w.victim.commit if at % 2 else f"{at:040x}"
        if not w.commit(commit, at, sender_session=w.id("sess", at), task_id=w.id("task", at), wu_id="WU-1"):
            return


def commit_circles(w: Writer) -> None:
    """Commits that nobody has, each made of sixteen others, in circles from one that exists, all with the same changes."""
    ids = [w.victim.commit, *(f"{at:040x}" for at in range(1, 2_000))]
    for at in itertools.count():
        sources = [ids[(at * 7 + each) % len(ids)] for each in range(16)]
        action = ("rebase", "squash", "cherry-pick", "amend")[at % 4]
        if not w.commit(
            ids[at % len(ids)],
            at,
            action=action,
            sources=sources,
            parts=["d" * 40],
            sender_session=w.id("sess", at),
        ):
            return


def wide_commits(w: Writer) -> None:
    """Commits with as many sources and as long a branch as a line holds."""
    many = [f"{at:040x}" for at in range(1_000)]
    for at in itertools.count():
        commit = w.victim.commit if at % 9 == 0 else f"{at:040x}"
        if not w.commit(
            commit,
            at,
            action="squash",
            sources=many,
            parts=many[:400],
            branch="b" * 200,
            sender_session=w.id("sess", at),
        ):
            return


def small_attestations(w: Writer) -> None:
    """Thousands of valid attestations of one line each, which nobody has written: signatures to verify."""
    _attest(w, 1)


def full_attestations(w: Writer) -> None:
    """As many digests of lines that never arrive as some megabytes hold."""
    _attest(w, attestations.DIGESTS_MAX)


def _attest(w: Writer, each: int) -> None:
    clock = itertools.count(w.at)
    last = None
    for at in itertools.count():
        lines = (b"%d %d" % (at, number) for number in range(each))
        (line,) = attestations.seal(MALLORY, lines, lambda: next(clock), CLONE, last)
        last = at + 1, line_hash(line).hex()
        w.left -= len(line) + 1
        if w.left <= 0:
            return
        w.lines.append(("signals", line))


def grants_of_many(w: Writer) -> None:
    """Thousands of keys that let each other write as them, in chains, circles and by words, and lines that speak for these and for the victim."""
    first = key_of(b"\0" * 32)
    before, half = first, [first]
    for number in itertools.count(1):
        key = key_of(number.to_bytes(32, "big"))
        half.append(key)
        of = half[number // 2]
        made: list[tuple[str, dict[str, object]]] = [
            ("trust", {"trust_id": w.id("trust"), "event": "grant", "other": each.writer, **more})
            for each, more in (
                (before, {}),
                (first, {}),
                (key, {}),
                (of, {"words": [f"a:b:c{number}", "a:b:d"]}),
            )
        ]
        made += [
            ("signal", {"signal_id": w.id("sig"), "sender_identity": name, "message": "m"})
            for name in (
                f"a:b:c{number}@{of.writer}",
                f"a:b:e@{before.writer}",
                f"{w.victim.identity}@{first.writer}",
            )
        ]
        lines = []
        for kind, fields in made:
            record = {
                "at": iso(w.at),
                "kind": kind,
                "writer": key.writer,
                "schema_version": "A2A.V1",
                **fields,
            }
            w.at += w.step
            lines.append((STREAMS.get(kind, kind), json.dumps(record, separators=(",", ":")).encode()))
        clock = itertools.count(w.at)
        (proof,) = attestations.seal(key, [line for _, line in lines], clock.__next__, CLONE, None)
        lines.append(("seals", proof))
        w.left -= sum(len(line) + 1 for _, line in lines)
        if w.left <= 0:
            return
        w.lines += lines
        before = key


Family = Callable[[Writer], None]
FAMILIES: dict[str, Family] = {
    each.__name__: each
    for each in (
        reply_cycle, agree_chain, deep_replies, dense_after, many_recipients, wide_recipients, one_id, keyed_id,
        receipts_of_one, broadcasts_and_readers, old_broadcasts, seen_broadcasts, broadcasts_and_sessions, sessions_of_one_name,
        sessions_of_one_harness, sessions_of_one_identity, numbered_names, sessions_of_this_clone, names_that_end, one_session,
        one_session_speaks, long_names, identities, patch_cycle, patch_chain, patches_of_all,
        dense_patches, forged_patches, bulk_values, bulk_small_values, dense_metadata, metadata_keys, clears_and_keys, one_node, tags_and_paths, block_graph, block_chain,
        one_relation, two_successors, summary_chain, accesses, many_nodes, long_texts, audits, short_lines,
        wrong_lines, own_threads, own_answers, old_own_answers, many_units, one_task, task_handoffs, replaced_tasks, one_claim,
        one_commit, commit_circles, wide_commits, small_attestations, full_attestations, grants_of_many,
    )
}  # fmt: skip


def lines(family: Family, victim: Victim, size: int) -> list[tuple[str, bytes]]:
    """Return (stream, line) of a family, of about `size` bytes."""
    writer = Writer(victim, size)
    family(writer)
    return writer.lines


def put(repo: Path, ref: str, found: list[tuple[str, bytes]]) -> None:
    """Commit lines on top of a log with `git fast-import`; those that are no attestations in Mallory's name."""
    found = [(stream, line if is_attestation(line) else addressed(line, MALLORY)) for stream, line in found]
    theirs = [line for _, line in found if not is_attestation(line)]
    clock = itertools.count(1)
    seals = attestations.seal(MALLORY, theirs, lambda: next(clock), CLONE, None)
    found += [("seals", line) for line in seals]
    done = subprocess.run(
        ["git", "fast-import", "--quiet", "--force"], cwd=repo, input=b"".join(_stream(ref, found)),
        capture_output=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode(errors="replace")


def _stream(ref: str, found: list[tuple[str, bytes]]) -> Iterator[bytes]:
    yield b"commit %s\ncommitter Mallory <m@example.org> 1795000000 +0000\n" % ref.encode()
    yield b"data 5\nmore\n\nfrom %s^0\n" % ref.encode()
    streams: dict[str, list[bytes]] = {}
    for stream, line in found:
        streams.setdefault(stream, []).append(line)
    for stream, of in streams.items():
        for start in range(0, len(of), SEGMENT_LINES):
            content = b"".join(line + b"\n" for line in sorted(of[start : start + SEGMENT_LINES]))
            yield b"M 100644 inline %s/gm-%08d.jsonl\n" % (stream.encode(), start)
            yield b"data %d\n%s\n" % (len(content), content)
