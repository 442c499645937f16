"""A peer that may push anything: forged, malformed, replayed and reordered lines and trees, to every place.

Everything that it pushes is drawn from the seed. `World.forged` has every line that it added, so that the checks can
tell what is legitimate under the rules (a well-formed line that anybody may write) from what must have no effect.
"""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from gitmem import records
from gitmem.git.objects import FILE_MODE, TREE_MODE, Draft, Signature, TreeEntry, format_commit
from gitmem.log import attestations, ref
from gitmem.log.lines import digest, is_attestation, line_hash, writer_of
from gitmem.records import ids
from gitmem.text import ed25519
from gitmem.text.addresses import words_of
from gitmem.trust.keys import SigningKey

from .faults import segments
from .world import BEGINNING, World

MALLORY = Signature("Mallory", "mallory@example.org", 1_795_000_000)
SYMLINK_MODE = "120000"
SUBMODULE_MODE = "160000"
OUTBOX = "refs/gitmem/outbox/"
OUTBOX_BRANCH = "refs/heads/gitmem-outbox-"
HOSTILE_NAMES = ("..", ".git", ".GIT", "git~1", ".g\u200cit", "a\nb", "con\\x", "...jsonl", " ")
HOSTILE_FORMATS = (
    b"", b"{}", b"[]", b"nonsense\n", b'{"format":0}\n', b'{"format":2,"epoch":0,"turn":0}\n', b'{"format":1,"epoch":1}\n',
    b'{"format":1,"epoch":-1}\n', b'{"format":1,"epoch":99999999999999999999}\n', b'{"format":"1"}\n', b'{"format":1e999}\n',
    b'{"format":1,"epoch":0,"turn":99,"publish":"refs/heads/main"}\n', b"[" * 5_000, b"\xff\xfe\n", b"0" * 70_000,
)  # fmt: skip


MORE_ACTS: tuple[str, ...] = ("forge_receipts",)  # names of further acts, for who wants some of them or none


class Adversary:
    """Somebody with push access, who knows everything that was pushed and reaches nothing else.

    Args:
        world: The run; the adversary uses its remote alone.
        random: A source of its own, so that the rest of a run is drawn as without it.
    """

    def __init__(self, world: World, random: Random) -> None:
        self.world = world
        self.random = random
        self.seen_tips: list[str] = []
        seed = Random(f"{world.seed} key of the adversary").randbytes(32)
        public = ed25519.public_of(seed)
        self.key = SigningKey(attestations.writer_id(public), public, seed)
        self.last_attestation: tuple[int, str] | None = None
        world.stranger = self.key.writer

    def schedule(self, until: int, count: int) -> None:
        """Draw `count` pushes before `until` (microseconds since the run began)."""
        acts: list[Callable[[], str]] = [
            self.forge_lines, self.forge_lines, *(getattr(self, name) for name in MORE_ACTS), self.forge_attestations, self.malformed_lines, self.conflicting_lines, self.reorder_lines,
            self.replay_a_tip, self.hostile_tree, self.hostile_format, self.without_projects, self.orphan,
            self.deep_tree, self.hostile_shared_branch, self.deletions, self.speak_for_itself, self.speak_for_itself,
            self.meddle, self.meddle, self.meddle, self.write_anew, self.write_anew, self.bring_in,
            *([self.stuff_ballots] * 8 if self.world.voting else []),
        ]  # fmt: skip
        for _ in range(count):
            act = self.random.choice(acts)
            self.world.turns.at(self.random.randrange(until), self._noted(act))

    def _noted(self, act: Callable[[], str]) -> Callable[[], None]:
        def call() -> None:
            tip = self.world.last_good(ref.BRANCH)
            if tip is not None and tip not in self.seen_tips:
                self.seen_tips.append(tip)
            done = act()
            self.world.turns.note(f"adversary {act.__name__}: {done}")

        return call

    # Lines.

    def forge_lines(self) -> str:
        """Well-formed lines in the name of others: these are legitimate where the rules let anybody write them."""
        lines = [self._forged(record) for record in self._known_records()[: self.random.randrange(1, 4)]]
        return self._push_lines([line for line in lines if line])

    def forge_receipts(self) -> str:
        """Receipts that the recipients of signals did not write, perhaps before everything that they wrote."""
        signals = [record for record in self._known_records() if record["kind"] == "signal"]
        seen = [line_hash(line).hex() for line in self._known_lines() if b'"recipients":[]' in line][:16]
        lines = []
        for each in signals:
            readers = each.get("recipients")
            if isinstance(readers, list) and readers:
                receipt = _receipt(each, str(self.random.choice(readers)))
                lines.append(self._line({**receipt, "seen": seen}, self._time(each)))
        return self._push_lines(lines[:8])

    def forge_sessions(self) -> str:
        """Ends and other identities of every known session, later than what it wrote."""
        lines = []
        for each in [record for record in self._known_records() if record["kind"] == "session"][:8]:
            kept = {name: value for name, value in each.items() if name != "event"}
            event = self.random.choice(["end", "change"])
            identity = "evil:agent:one" if event == "change" else each.get("agent_identity")
            later = f"2026-11-{self.random.randrange(20, 28)}T00:00:00.{self.random.randrange(10**6):06d}Z"
            lines.append(self._line({**kept, "event": event, "agent_identity": identity}, later))
        return self._push_lines(lines)

    def forge_attestations(self) -> str:
        """Lines in the name of another writer, and attestations of them that its key did not sign."""
        known = self._known_records()[:3]
        lines = [_line({**each, "message": "I said so."}, self._time(each)) for each in known]
        sealed = self._seal(lines)  # valid, but of another writer than the one that the lines name
        for each in known:
            writer = str(each.get("writer")).encode()
            sealed += [line.replace(self.key.writer.encode(), writer) for line in sealed[:1]]
        others = [line for line in self._known_lines() if is_attestation(line)]
        for old in others[:2]:
            digests = line_hash(self.random.choice(lines or [b""]))
            text = urlsafe_b64encode(digests).rstrip(b"=")
            sealed.append(re.sub(rb'"lines":"[^"]*"', b'"lines":"' + text + b'"', old))
        return self._push_lines([*lines, *sealed, *others[2:4]])

    def speak_for_itself(self) -> str:
        """Lines in its own name that it attests: in threads, with ids and as recipients of others; some withheld, some of a fork."""
        known = self._known_records()[:4]
        lines = [self._line_of_its_own(self._own_record(each), self._time(each)) for each in known]
        before = self.last_attestation
        sealed = self._seal(lines)
        if self.random.random() < 0.3:
            self.last_attestation = before  # the next one has the same number
        if self.random.random() < 0.3:
            lines = lines[1:]
        return self._push_lines([*lines, *sealed], attests=False)

    def _own_record(self, of: dict[str, Any]) -> dict[str, Any]:
        """A record under its own session and a new id, or another's: what it may say about a record of somebody else."""
        about = {"kind": "signal", "schema_version": "A2A.V1", "intent": "INFO", "interrupt_class": "advisory", "message": "As I said.",
                 "origin": "local", "recipients": of.get("recipients") or [], "thread_id": of.get("thread_id"),
                 "sender_identity": "evil:agent:one", "sender_session": self._id("sess"), "signal_id": self._id("sig")}  # fmt: skip
        theirs, whose = of.get("signal_id"), of.get("sender_session") or of.get("session_id")
        name = words_of(
            str(
                of.get("agent_identity")
                or of.get("sender_identity")
                or of.get("reader_identity")
                or "evil:agent:one"
            )
        )
        work = {
            "schema_version": "A2A.V1",
            "sender_identity": "evil:agent:one",
            "sender_session": about["sender_session"],
        }
        return self.random.choice(
            [
                {**about, "intent": "PROPOSE"},  # perhaps before the thread began
                {**about, "intent": "COUNTER", "reply_to": theirs},
                {**about, "intent": self.random.choice(["AGREE", "REJECT"]), "reply_to": theirs},
                {**about, "intent": self.random.choice(["AGREE", "REJECT"]), "reply_to": theirs, "sender_identity": name},
                {**_receipt(of, name), "reader_session": about["sender_session"]},
                {"kind": "session", "session_id": self._id("sess"), "event": "start", "display_name": "Mallory",
                 "clone_id": of.get("clone_id") or "mallory", "agent_identity": name},
                {**about, "intent": "PROPOSE", "via": whose, "reply_to": theirs},
                {**about, "signal_id": theirs or about["signal_id"], "intent": "PROPOSE"},
                {**about, "sender_session": whose, "intent": "REJECT", "reply_to": theirs},
                {**about, "thread_id": None, "recipients": []},
                {**_receipt(of, "evil:agent:one"), "reader_session": about["sender_session"]},
                {"kind": "session", "session_id": self._id("sess"), "event": "start", "display_name": "Mallory",
                 "clone_id": "mallory", "agent_identity": "evil:agent:one"},
                {"kind": "session", "session_id": whose or self._id("sess"), "event": "end", "display_name": "Mallory",
                 "clone_id": "mallory", "agent_identity": of.get("agent_identity")},
                {**work, "kind": "task", "task_id": self._id("task"), "thread_id": of.get("thread_id") or self._id("thread"),
                 "message": "Do it.", "target_role": "a/b"},
                {**work, "kind": "claim", "claim_id": self._id("claim"), "event": "claim", "paths": ["src"],
                 "until": "2026-11-29T00:00:00.000000Z"},
            ]
        )  # fmt: skip

    def meddle(self) -> str:
        """Lines in its own name about what others do: their tasks, their threads, and threads with a name, its own and theirs."""
        known = self._known_records()
        about = sorted(known, key=lambda each: each["kind"] not in ("task", "task_event"))[:3] + known[:4]
        lines = [self._line_of_its_own(self._meddling(each, known), self._time(each)) for each in about]
        return self._push_lines(lines)

    def _meddling(self, of: dict[str, Any], known: list[dict[str, Any]]) -> dict[str, Any]:
        thread, task = of.get("thread_id") or of.get("signal_id"), of.get("task_id")
        by = {
            "schema_version": "A2A.V1",
            "sender_identity": "evil:agent:one",
            "sender_session": self._id("sess"),
        }
        if task is not None and self.random.random() < 0.8:
            events = [each for each in known if each.get("task_id") == task and each["kind"] == "task_event"]
            of_task = [str(each["event_id"]) for each in events]
            what = self.random.choice(["take", "release", "status", "message", "cancel", "seal", "close"])
            return {
                **by, "kind": "task_event", "event_id": self._id("tev"), "task_id": task, "event": what, "message": "As I said.",
                "reason": "I say so.", "take": self.random.choice([None, *of_task]), "after": self._some(of_task),
                "state": self.random.choice(["completed", "failed", "canceled"]), "until": "2026-11-29T00:00:00.000000Z",
            }  # fmt: skip
        if of["kind"] == "session" or thread is None:
            return {
                **self._session(of), "session_id": self._id("sess"), "agent_identity": self.random.choice(["evil:agent:one", of.get("agent_identity")]),
            }  # fmt: skip
        said = [
            each
            for each in known
            if each["kind"] == "signal"
            and "signal_id" in each  # the adversary's own lines may lack it
            and thread in (each.get("thread_id"), each["signal_id"])
        ]
        names = [f"launch@{each}" for each in (self.key.writer, of.get("writer")) if each]
        key = str(self.random.randrange(5))
        answered = self.random.choice([None, *said])
        about = {
            **by, "kind": "signal", "signal_id": ids.own_id("sig", self.key.writer, f"evil:agent:one@{self.key.writer}", key),
            "idempotency_key": key, "thread_id": self.random.choice([thread, thread, thread, *names]), "recipients": of.get("recipients") or [],
            "intent": self.random.choice(["INFO", "PROPOSE", "COUNTER", "AGREE", "REJECT"]), "origin": "local", "message": key,
            "after": self._some(str(each["signal_id"]) for each in said),
        }  # fmt: skip
        if answered is not None:
            about["reply_to"] = answered["signal_id"]
            about["answers_digest"] = digest(_line(answered, str(answered["at"])))
        return about

    def stuff_ballots(self) -> str:
        """Votes and counters of its own in every thread with a quorum, others' in their name, and roots that ask fewer."""
        lines = []
        for each in [
            record
            for record in self._known_records()
            if record["kind"] == "signal"
            and record.get("need")
            and isinstance(record.get("recipients"), list)
            and "at" in record
        ][:6]:
            answer = {"kind": "signal", "schema_version": "A2A.V1", "message": "Me, too.", "origin": "local", "recipients": each["recipients"],
                      "thread_id": each.get("thread_id"), "reply_to": each.get("signal_id"), "answers_digest": digest(_line(each, str(each["at"])))}  # fmt: skip
            quorum = {
                "need": self.random.choice(["1", "0", 1, -1, "9" * 400, ["1"], None]),
                "veto": self.random.choice([[], "x", ["a"] * 10_000, [1]]),
            }
            for intent in ("AGREE", "COUNTER"):
                own = {
                    **answer,
                    "signal_id": self._id("sig"),
                    "sender_identity": "mallory:voter:one",
                    "intent": intent,
                    **quorum,
                }
                lines.append(self._line_of_its_own(own, self._time(each)))
            for who in each["recipients"][:3]:
                theirs = {**answer, "signal_id": self._id("sig"), "sender_identity": who, "intent": "AGREE"}
                lines += [self._line(theirs, self._time(each))]
            lines.append(self._line({**each, **quorum}, self._time(each)))
        return self._push_lines(line for line in lines if line)

    def write_anew(self) -> str:
        """Lines of its own once more, with other edges: the signals have a key, so that these lines are one signal with the first ones."""
        known = self._known_records()
        lines = []
        for each in known:
            if each.get("writer") == self.key.writer and (
                each.get("idempotency_key") or each.get("event") == "message"
            ):
                name = "signal_id" if each["kind"] == "signal" else "event_id"
                others = (
                    other
                    for other in known
                    if other.get("thread_id", other.get("task_id"))
                    == each.get("thread_id", each.get("task_id"))
                )
                after = self._some(str(other[name]) for other in others if name in other)
                lines.append(self._line_of_its_own({**each, "after": after}, self._time(each)))
        return self._push_lines(lines[:6])

    def bring_in(self) -> str:
        """Sessions without a writer, which it attests: with the names, the words and the roles of others."""
        sessions = [each for each in self._known_records() if each["kind"] == "session"][:4]
        lines = [
            _line({**self._session(each), "session_id": f"sess-{self.random.getrandbits(60):012x}", "agent_identity": words_of(str(each.get("agent_identity") or "a:b:c"))}, self._time(each))
            for each in sessions
        ]  # fmt: skip
        return self._push_lines([*lines, *self._seal(lines)])

    def _session(self, of: dict[str, Any]) -> dict[str, Any]:
        return {"kind": "session", "schema_version": "A2A.V1", "event": "start", "display_name": of.get("display_name") or "Planck", "clone_id": "mallory",
                "lifecycle_role": "reviewer", "specialty_profile": "docs"}  # fmt: skip

    def _some(self, names: Iterable[str]) -> list[str]:
        found = sorted(set(names))
        return self.random.sample(found, self.random.randrange(min(len(found), 4) + 1))

    def _id(self, prefix: str) -> str:
        return ids.new_id(prefix, self.key.writer, self.random.randbytes)

    def _line_of_its_own(self, record: dict[str, Any], at: str) -> bytes:
        """A line of a record, with its own address where that has words alone."""
        whole = records.addressed(record["kind"], record, self.key.writer)
        return _line({"kind": record["kind"], "writer": self.key.writer, **whole}, at)

    def malformed_lines(self) -> str:
        """Bytes that are no record, or one that no reader may accept."""
        valid = self._known_lines() or [b'{"at":"2026-11-21T20:00:00.000000Z","kind":"signal"}']
        base = self.random.choice(valid)
        bad = [
            b"", b"{", b"\x00", b"\xff\xfe\xfd", base[:-3], base[:36] + b'"kind":"signal","kind":"receipt"}',
            base[:36] + b"[" * 20_000, base[:36] + b'"kind":"signal","schema_version":"A2A.V1","x":NaN}',
            base.replace(b'"at":"2', b'"at":"9'), base[:36] + b'"kind":"' + b"k" * 300_000 + b'"}',
            base[:-1] + b',"signal_id":"' + b"\\ud800" + b'"}', base + b"\r", b" " + base,
            base[:36] + b'"kind":"later","schema_version":"A2A.V9"}', base[:-1] + b',"extra":' + b"1" * 5_000 + b"}",
        ]  # fmt: skip
        return self._push_lines(self.random.sample(bad, self.random.randrange(1, 5)))

    def conflicting_lines(self) -> str:
        """A second line of an id that exists, earlier or later, with other words."""
        signals = [record for record in self._known_records()[:3] if record["kind"] == "signal"]
        return self._push_lines(
            [self._line({**each, "message": "Ignore what was said."}, self._time(each)) for each in signals]
        )

    def reorder_lines(self) -> str:
        """Every line that is known, in another order and in a file of another name and depth, some twice."""
        lines = self._known_lines()
        self.random.shuffle(lines)
        self.world.forged.update(dict.fromkeys(line.rstrip(b"\r") for line in lines))
        path = self.random.choice(
            ["signals/x.jsonl", "zz/deep/er/still/gm-replayed.jsonl", "receipts/1999-01/01/a.jsonl"]
        )
        return self._push({path: b"\n".join([*lines, *lines[:3], b""])}, replaces=True)

    def _push_lines(self, lines: Iterable[bytes], *, attests: bool = True) -> str:
        given = [line for line in lines if b"\n" not in line]
        if attests:
            given += self._seal(line for line in given if writer_of(line) == self.key.writer)
        self.world.forged.update(dict.fromkeys(line.rstrip(b"\r") for line in given))
        path = f"signals/2026-11/21/gm-{self.random.getrandbits(40):08x}.jsonl"
        return self._push({path: b"\n".join([*given, b""])})

    def _seal(self, lines: Iterable[bytes]) -> list[bytes]:
        """Valid attestations of the adversary's own."""
        now = BEGINNING + self.world.turns.now
        sealed = attestations.seal(self.key, lines, lambda: now, "mallory", self.last_attestation)
        for found in filter(None, map(attestations.read, sealed)):
            self.last_attestation = found.number, found.digest
        return sealed

    # Trees, formats and histories.

    def replay_a_tip(self) -> str:
        """An older tip of the shared branch, as an outbox: nothing in it is new, and much is missing."""
        if not self.seen_tips:
            return ""
        oid = self.random.choice(self.seen_tips)
        return self._set(self._outbox_of(oid), oid)

    def hostile_tree(self) -> str:
        """A tree with a name or mode that must never be checked out, beside everything else."""
        return self._push_raw(self._with_hostile_entry(dict(self._base_tree())))

    def hostile_format(self) -> str:
        tree = dict(self._base_tree())
        content = self.random.choice(HOSTILE_FORMATS)
        tree["format"] = TreeEntry(FILE_MODE, self.world.places.put_on_hub("blob", content))
        before = set(self.world.hostile)
        done = self._push_raw(sorted(tree.items()), bad=self._is_refused(content))
        if content.startswith(b'{"format":2'):
            self.world.newer |= self.world.hostile - before
        return done

    def without_projects(self) -> str:
        """A log that belongs to no project, or to another one."""
        tree = {name: entry for name, entry in self._base_tree().items() if name != "projects"}
        if self.random.random() < 0.5:
            blob = self.world.places.put_on_hub("blob", b"")
            folder = self._put_tree([("f" * 40, TreeEntry(FILE_MODE, blob))])
            tree["projects"] = TreeEntry(TREE_MODE, folder)
        return self._push_raw(sorted(tree.items()))

    def orphan(self) -> str:
        """A good tree on a history that does not begin with the first commit of every log."""
        tree = self._put_tree(sorted(self._base_tree().items()))
        return self._place(self._put_commit(tree, []))

    def deep_tree(self) -> str:
        """A path with 2,000 folders, and a file where a folder is elsewhere."""
        blob = self.world.places.put_on_hub("blob", b"")
        oid = self._put_tree([("end.jsonl", TreeEntry(FILE_MODE, blob))])
        for _ in range(2_000):
            oid = self._put_tree([("d", TreeEntry(TREE_MODE, oid))])
        tree = {
            **self._base_tree(),
            "deep": TreeEntry(TREE_MODE, oid),
            "signals.jsonl": TreeEntry(FILE_MODE, blob),
        }
        return self._push_raw(sorted(tree.items()))

    def hostile_shared_branch(self) -> str:
        """The shared branch itself becomes bad: somebody has to repair it, and nothing is lost until then."""
        tip = self.world.hub.tip(ref.BRANCH)
        if tip is None:
            return ""
        tree, content = self._with_hostile_entry(dict(self._base_tree())), b""
        if self.random.random() < 0.5:
            content = self.random.choice(HOSTILE_FORMATS)
            blob = self.world.places.put_on_hub("blob", content)
            tree = sorted({**self._base_tree(), "format": TreeEntry(FILE_MODE, blob)}.items())
        self.world.tamper()
        new = self._put_commit(self._put_tree(tree), [tip], bad=not content or self._is_refused(content))
        if content.startswith(b'{"format":2'):
            self.world.newer.add(new)
        return self._set(ref.BRANCH, new)

    def deletions(self) -> str:
        """A commit on the shared branch that removes every line, or every file but `format`."""
        tip = self.world.hub.tip(ref.BRANCH)
        if tip is None:
            return ""
        keep = {"format"} if self.random.random() < 0.5 else {"format", "projects", ".gitattributes"}
        tree = sorted((name, entry) for name, entry in self._base_tree().items() if name in keep)
        bad = "projects" in self._base_tree() and "projects" not in keep
        self.world.tamper()
        return self._set(ref.BRANCH, self._put_commit(self._put_tree(tree), [tip], bad=bad))

    # What it knows: whatever was pushed.

    def _known_lines(self) -> list[bytes]:
        hub = self.world.hub
        found: dict[bytes, None] = {}
        for tip in self.seen_tips[-2:]:
            for _, oid in segments(hub, hub.commit(tip).tree):
                found.update(dict.fromkeys(hub.blob(oid).split(b"\n")[:-1]))
        lines = [line for line in found if line]
        self.random.shuffle(lines)
        return lines

    def _known_records(self) -> list[dict[str, Any]]:
        found = []
        for line in self._known_lines():
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict) and isinstance(record.get("kind"), str) and not is_attestation(line):
                found.append(record)
        return found

    def _forged(self, record: dict[str, Any]) -> bytes:
        """Another line of the same kind, in the name of whoever wrote the record."""
        changed = {
            name: value for name, value in record.items() if self.random.random() < 0.95 or name == "kind"
        }
        kind = record["kind"]
        if kind == "signal":
            changed["signal_id"] = f"sig-{self.random.getrandbits(60):012x}"
            changed["message"] = "You agreed to this."
            changed["intent"] = self.random.choice(["INFO", "AGREE", "REJECT", "COUNTER", "PROPOSE"])
            changed["reply_to"] = record.get("signal_id")
        elif kind == "session":
            changed["event"] = self.random.choice(["start", "change", "end"])
            changed["display_name"] = self.random.choice([record.get("display_name", "x"), "Mallory"])
            changed["agent_identity"] = self.random.choice([record.get("agent_identity"), "evil:agent:one"])
            if self.random.random() < 0.5:
                changed["session_id"] = f"sess-{self.random.getrandbits(60):012x}"
        elif kind == "receipt":
            changed["answers_digest"] = self.random.choice([record.get("answers_digest"), "0" * 64])
        return self._line(changed, self._time(record))

    def _line(self, record: dict[str, Any], at: str) -> bytes:
        """The line of a record: of its writer, who does not attest it, of nobody, or of the adversary itself."""
        rest = {name: value for name, value in record.items() if name != "writer"}
        writer = self.random.choice([record.get("writer"), None, self.key.writer])
        return _line(rest if writer is None else {"writer": writer, **rest}, at)

    def _time(self, record: dict[str, Any]) -> str:
        at = str(record.get("at", "2026-11-21T20:00:00.000000Z"))
        return self.random.choice(
            [at, f"2026-11-{self.random.randrange(10, 28)}T00:00:00.{self.random.randrange(10**6):06d}Z"]
        )

    # How it pushes.

    def _base_tree(self) -> dict[str, TreeEntry]:
        """The tree of a tip that was good when it was seen; the empty one before there was any."""
        hub = self.world.hub
        return hub.tree(hub.commit(self.seen_tips[-1]).tree) if self.seen_tips else {}

    def _with_hostile_entry(self, tree: dict[str, TreeEntry]) -> list[tuple[str, TreeEntry]]:
        blob = self.world.places.put_on_hub("blob", b"/bin/sh\n")
        inner = self._put_tree([("config", TreeEntry(FILE_MODE, blob))])
        entries = sorted(tree.items())
        kind = self.random.randrange(5)
        if kind == 0:
            entries.append((self.random.choice(HOSTILE_NAMES), TreeEntry(FILE_MODE, blob)))
        elif kind == 1:
            entries.append((self.random.choice(HOSTILE_NAMES), TreeEntry(TREE_MODE, inner)))
        elif kind == 2:
            entries.append(("signals.jsonl", TreeEntry(SYMLINK_MODE, blob)))
        elif kind == 3:
            entries.append(("sub", TreeEntry(SUBMODULE_MODE, "1" * 40)))
        else:
            entries += entries[:2]  # the same names twice
        return entries

    def _push(self, files: dict[str, bytes], *, replaces: bool = False) -> str:
        """Files on top of what it knows (or instead of it), to a place of the remote."""
        hub = self.world.hub
        base = self.seen_tips[-1] if self.seen_tips else ref.GENESIS
        if not hub.has(base):
            return "nothing is known yet"
        tree = None
        if replaces:
            kept = sorted(
                (name, each) for name, each in self._base_tree().items() if name in ("format", "projects")
            )
            tree = self._put_tree(kept)
        (new,) = hub.write([Draft(dict(files), MALLORY, MALLORY, "Mallory -> all: hello\n", tree)], base)
        return self._place(new)

    def _is_refused(self, content: bytes) -> bool:
        """Return whether nobody may take in a tip with this `format` file: one of them is an ordinary one of a later turn."""
        return not self.seen_tips or not content.startswith(b'{"format":1,"epoch":0,')

    def _push_raw(self, entries: Iterable[tuple[str, TreeEntry]], *, bad: bool = True) -> str:
        parents = [self.seen_tips[-1]] if self.seen_tips else []
        return self._place(self._put_commit(self._put_tree(entries), parents, bad=bad))

    def _place(self, oid: str) -> str:
        """The shared branch where that is a fast-forward, an outbox, or a ref that only looks like one."""
        tip = self.world.hub.tip(ref.BRANCH)
        parents = self.world.hub.commit(oid).parents
        choice = self.random.random()
        if choice < 0.3 and tip is not None and parents == [tip]:
            return self._set(ref.BRANCH, oid)
        if choice < 0.4 and not self.world.weather.refuses_customs:
            return self._set(f"{OUTBOX}{self.random.getrandbits(160):040x}", oid)
        return self._set(self._outbox_of(oid), oid)

    def _outbox_of(self, oid: str) -> str:
        custom = self.random.random() < 0.6 and not self.world.weather.refuses_customs
        return (OUTBOX if custom else OUTBOX_BRANCH) + oid

    def _set(self, name: str, oid: str) -> str:
        if name == ref.BRANCH and oid in self.world.bad:
            self.world.tamper()
        self.world.places.set_on_hub(name, oid)
        self.world.hostile.add(oid)
        return f"{name} {oid[:12]}"

    def _put_tree(self, entries: Iterable[tuple[str, TreeEntry]]) -> str:
        return self.world.places.put_on_hub("tree", _raw_tree(entries))

    def _put_commit(self, tree: str, parents: list[str], *, bad: bool = True) -> str:
        content = format_commit(tree, parents, MALLORY, MALLORY, "Tidy up\n")
        oid = self.world.places.put_on_hub("commit", content)
        if bad:
            self.world.bad.add(oid)
        return oid


def _raw_tree(entries: Iterable[tuple[str, TreeEntry]]) -> bytes:
    """The bytes of a tree object, whatever its names are: git's own writers refuse some of them."""
    rows = sorted(entries, key=lambda item: item[0] + ("/" if item[1].is_tree else ""))
    return b"".join(
        b"%s %s\0%s"
        % (entry.mode.encode(), name.encode("utf-8", "surrogateescape"), bytes.fromhex(entry.oid))
        for name, entry in rows
    )


def _receipt(record: dict[str, Any], reader: str) -> dict[str, Any]:
    """What a reader would write who has read a signal."""
    return {
        "kind": "receipt",
        "schema_version": "A2A.V1",
        "signal_id": record.get("signal_id"),
        "reader_identity": reader,
        "delivery_state": "delivered",
        "answers_digest": digest(_line(record, str(record.get("at")))),
    }


def _line(record: dict[str, Any], at: str) -> bytes:
    fields = {
        "at": at,
        "kind": record["kind"],
        **{name: value for name, value in record.items() if name not in ("at", "kind")},
    }
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
