"""A shared hub, clones with an agent each, and a peer that pushes lines of its own making with git alone."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from gitmem.log.lines import is_attestation, writer_of
from tests import templates
from tests.in_process import gitmem
from tests.sandbox import annas, committed
from tests.signing import MALLORY, addressed, attest, history, own_key

PROGRAM = str(Path(sys.executable).with_name("gitmem"))
LOG = "refs/heads/gitmem"
_NOW = datetime.now(UTC) - timedelta(hours=4)  # a broadcast is news for a day


def hours_later(hours: int) -> str:
    """Return a time after that of forged lines, which is four hours ago."""
    return (_NOW + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


NOW = hours_later(0)


class Answer:
    """What the program answered."""

    def __init__(self, done: subprocess.CompletedProcess[bytes]) -> None:
        self.status = done.returncode
        self.out = done.stdout.decode()
        self.err = done.stderr.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def __repr__(self) -> str:
        return f"exit {self.status}\n{self.out}\n--- err\n{self.err}"


class Clone:
    """A clone of the hub in which one agent works."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.identity = f"test:worker:{name.lower()}"
        self.address = annas(self.identity)
        own_key(path)
        self.session = ""
        with (path / ".git" / "config").open("a") as config:
            config.write(f"[user]\n\tname = {name}\n\temail = {name.lower()}@example.org\n")
        started = self("session", "start", "--name", name, "--agent-identity", self.identity, "--json")
        assert started.status == 0, started
        self.session = started.json["session_id"]

    def __call__(self, *args: str, env: Mapping[str, str] | None = None) -> Answer:
        own = {"GITMEM_SESSION": self.session} if self.session else {}
        done = gitmem(*args, cwd=self.path, env={**own, **(env or {})})
        answer = Answer(done)
        assert "Traceback" not in answer.out + answer.err, answer
        return answer

    def sync(self) -> None:
        answer = self("sync", "--publish", "--json")
        assert answer.status == 0, answer

    def send(self, message: str, *more: str) -> Any:
        answer = self("signal", *more, "--json", "--", message)
        assert answer.status == 0, answer
        return answer.json["signal"]

    def inbox(self, *more: str) -> list[Any]:
        answer = self("inbox", "--json", *more)
        assert answer.status == 0, answer
        found: list[Any] = answer.json["signals"]
        return found


class Hub:
    """A bare repository, and who pushes to it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.path = root / "hub.git"
        templates.copy("hub-of-mallory", root, _make_hub)

    def acquainted(self) -> tuple[Clone, Clone]:
        """The clones of Planck and Curie, who know each other."""

        def meet(root: Path) -> tuple[Clone, Clone]:
            hub = Hub(root)
            planck, curie = hub.clone("Planck"), hub.clone("Curie")
            for each in (planck, curie, planck):
                each.sync()
            return planck, curie

        found = templates.copy("hub-of-acquainted", self.root, meet)
        for each in found:
            each.path = self.root / each.path.name
        return found

    def clone(self, name: str) -> Clone:
        path = self.root / name.lower()
        _git("clone", "--quiet", str(self.path), str(path), cwd=self.root)
        return Clone(path, name)

    def lines(self) -> list[bytes]:
        """Every line of the shared branch."""
        return sorted({*committed(self.path, LOG)})

    def line_of(self, id: str) -> bytes:
        """The lowest line of a signal."""
        return min(line for line in self.lines() if json.loads(line).get("signal_id") == id
                   and json.loads(line)["kind"] == "signal")  # fmt: skip

    def forge(self, *lines: bytes) -> None:
        """Push lines; those without a writer as lines of Mallory's own, attested."""
        theirs = [
            addressed(each, MALLORY) for each in lines if not writer_of(each) and not is_attestation(each)
        ]
        others = [each for each in lines if writer_of(each) or is_attestation(each)]
        self.push(*others, *theirs, *([attest(theirs, MALLORY)] if theirs else []))

    def bring_in(self, *lines: bytes) -> None:
        """Push lines without a writer as what Mallory imported."""
        self.push(*lines, *history(lines))

    def push(self, *lines: bytes) -> None:
        """Put lines on top of the shared branch."""
        by_stream: dict[str, list[bytes]] = {}
        for line in sorted(lines):
            kind = json.loads(line)["kind"]
            stream = {"node": "memory", "patch": "memory"}.get(kind, f"{kind}s")
            by_stream.setdefault(stream, []).append(line)
        head = f"commit {LOG}\ncommitter Test Person <person@example.org> {time.time():.0f} +0000\n"
        rows = [f"{head}data 17\nMallory was here\n\nfrom {LOG}^0\n".encode()]
        for stream, some in by_stream.items():
            content = b"".join(line + b"\n" for line in some)
            name = f"{stream}/{_NOW:%Y-%m/%d}/gm-{hashlib.sha256(content).hexdigest()[:8]}.jsonl"
            rows.append(b"M 100644 inline %b\ndata %d\n%b\n" % (name.encode(), len(content), content))
        _git("fast-import", "--quiet", cwd=self.path, input=b"".join(rows))


def _make_hub(root: Path) -> None:
    first = root / "first"
    _git("init", "--quiet", "--bare", "--initial-branch=main", "hub.git", cwd=root)
    _git("clone", "--quiet", str(root / "hub.git"), str(first), cwd=root)
    _git("commit", "--quiet", "--allow-empty", "-m", "First", cwd=first)
    _git("push", "--quiet", "origin", "HEAD:main", cwd=first)
    shutil.rmtree(first)


def line(kind: str, at: str = NOW, **fields: object) -> bytes:
    """A line in canonical form."""
    whole = {"at": at, "kind": kind, "schema_version": "A2A.V1", **fields}
    return json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()


def changed(original: bytes, **fields: object) -> bytes:
    """A line with some fields replaced; None takes one out. It names no writer, who would have to attest it, and has no salt."""
    record = {**json.loads(original), "writer": None, "salt": None, **fields}
    kept = {name: value for name, value in record.items() if value is not None}
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode()


def digest(of: bytes) -> str:
    """The digest of a line."""
    before, mark, after = of.partition(b',"salt":"')
    of = b'%b,"texts":"%b"}' % (before, hashlib.sha256(after).hexdigest().encode()) if mark else of
    return hashlib.sha256(b"{" + of[36:]).hexdigest()


def _git(*args: str, cwd: Path, input: bytes = b"") -> None:
    done = subprocess.run(["git", *args], cwd=cwd, input=input, capture_output=True, timeout=60)
    assert done.returncode == 0, done


Ring = tuple[Hub, Clone, Clone]


def exchange(*clones: Clone) -> None:
    """Sync clones of one hub until all have everything."""
    for each in (*clones, *clones):
        each.sync()
