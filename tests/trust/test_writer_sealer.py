"""The chain of a clone's attestations goes on from the last one that is in the log, whatever else is there."""

from __future__ import annotations

from pathlib import Path

from gitmem.log import attestations, ref
from gitmem.log.lines import CommitMessage, LogEntry, line_hash
from gitmem.trust.keys import SigningKey
from gitmem.trust.writer_sealer import WriterSealer
from tests.mailbox.test_mailbox_view import signal
from tests.signing import ANNA, AT, BOB, attest, named

TOKEN = "7d2kq0ze"


class OneKey:
    """The keys of a user who is Anna."""

    def writer(self) -> str:
        return ANNA.writer

    def find(self, writer: str) -> SigningKey | None:
        return ANNA if writer == ANNA.writer else None


def entry(number: int) -> LogEntry:
    line = named(signal(number, number, "a:b:anna", ["a:b:bob"]), ANNA)
    return LogEntry([("signals", line)], CommitMessage("a <a@b>", "said"), token=TOKEN)


def sealer(state: Path, clone: str = "here") -> WriterSealer:
    return WriterSealer(OneKey(), str(state), clone, lambda: AT)  # type: ignore[arg-type]


def sealed(
    state: Path, number: int, log: dict[str, bytes], *, commits: bool = True
) -> attestations.Attestation:
    """Attest a line; put it into the log if it is committed."""
    (made,) = sealer(state).seal([entry(number)], lambda path: log.get(path, b""))
    ((stream, line),) = made.lines
    if commits:
        path = ref.segment_path(stream, line, TOKEN)
        log[path] = b"\n".join(sorted([*log.get(path, b"").split(b"\n")[:-1], line])) + b"\n"
    found = attestations.read(line)
    assert found is not None
    return found


def test_each_attestation_names_the_one_before(tmp_path: Path) -> None:
    log: dict[str, bytes] = {}
    first, second = sealed(tmp_path, 1, log), sealed(tmp_path, 2, log)
    assert (first.number, second.number, second.before) == (1, 2, first.digest)


def test_what_was_not_committed_is_not_counted(tmp_path: Path) -> None:
    """A process may end before the ref has moved."""
    log: dict[str, bytes] = {}
    first = sealed(tmp_path, 1, log)
    sealed(tmp_path, 2, log, commits=False)
    again = sealed(tmp_path, 3, log)
    assert (again.number, again.before) == (2, first.digest)


def test_lines_of_others_do_not_end_the_chain(tmp_path: Path) -> None:
    """Neither a forged attestation with a later time, nor a valid one of another clone."""
    log: dict[str, bytes] = {}
    first = sealed(tmp_path, 1, log)
    (path,) = log
    false = (
        b'{"at":"9999-12-31T23:59:59.999999Z","kind":"attestation","writer":"%b","x":1}'
        % ANNA.writer.encode()
    )
    log[path] += false + b"\n" + attest([b"x"], ANNA, at=AT + 1) + b"\n"
    second = sealed(tmp_path, 2, log)
    assert (second.number, second.before) == (2, first.digest)


def test_a_key_that_is_not_here_attests_nothing(tmp_path: Path) -> None:
    assert sealer(tmp_path).lacks("0123456789abcdef") and not sealer(tmp_path).lacks(ANNA.writer)
    other = named(signal(1, 1, "a:b:c", []), BOB)
    said = LogEntry([("signals", other)], CommitMessage("a <a@b>", "said"), token=TOKEN)
    assert sealer(tmp_path).seal([said], lambda path: b"") == []


def test_what_names_no_writer_is_attested_by_who_is_in_force(tmp_path: Path) -> None:
    """Somebody imports it; it waits while that key is missing."""
    line = signal(1, 1, "a:b:c", [])
    said = LogEntry([("signals", line)], CommitMessage("a <a@b>", "imported"), token=TOKEN)
    assert not sealer(tmp_path).lacks("")
    (made,) = sealer(tmp_path).seal([said], lambda path: b"")
    found = attestations.read(made.lines[0][1])
    assert found is not None
    assert (found.writer, found.digests) == (ANNA.writer, {line_hash(line)})
