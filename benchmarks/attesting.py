"""What it costs a clone that reads a log for the first time that its lines are attested."""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Iterator
from functools import partial

from gitmem.log import attestations
from gitmem.log.lines import parse_at
from gitmem.text import ed25519
from gitmem.trust.keys import SigningKey

from . import workbench as workbenches
from .measure import Figure, Timed, cpu_of, in_turn
from .workbench import Workbench

EACH = 10  # lines of a commit
ROUNDS = 7


def first_look(workbench: Workbench) -> list[Figure]:
    """Measure a command that makes the index of a log with attestations, against one of the same lines without writers."""
    count = workbench.size.many
    looks = [_look(workbench, f"attested-{attests}", count, attests=attests) for attests in (True, False)]
    got, base = in_turn(min(ROUNDS, workbench.size.rounds), *looks)
    what = f"first command in a clone of {count:,} lines that {count // EACH:,} commits attest, CPU"
    return [Figure(what, "the same lines without writers", got, base, 1.5, "ms")]


def _look(workbench: Workbench, name: str, count: int, *, attests: bool) -> Timed:
    where = workbench.repository(name)
    workbenches.start(where, "Caller")
    workbenches.publish(where, lines(count, attests=attests), commits=20)
    look = cpu_of([workbench.program("gitmem"), "log", "-n", "1"], where, workbench.environment)

    def once() -> float:
        for path in glob.glob(os.path.join(where, ".git", "gitmem", "index-*")):
            os.unlink(path)
        return look()

    return once


def lines(count: int, *, attests: bool) -> Iterator[tuple[str, bytes]]:
    """Yield lines; if they are attested, in the name of a writer, and after those of each commit their attestation."""
    seed = bytes(32)
    public = ed25519.public_of(seed)
    key = SigningKey(attestations.writer_id(public), public, seed)
    left = itertools.islice(workbenches.history(count, writer=key.writer if attests else ""), count)
    last = None
    while some := list(itertools.islice(left, EACH)):
        yield from some
        if attests:
            stream, line = some[-1]
            at = partial(int, parse_at(line[7:34].decode()) + 1)
            (made,) = attestations.seal(key, [line for _, line in some], at, "elsewhere0", last)
            last = ((last[0] if last else 0) + 1, attestations.line_digest(made).hex())
            yield stream, made
