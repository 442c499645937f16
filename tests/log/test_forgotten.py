"""What the log takes for forgotten is what the index does: a log that is written anew says the same, without the texts."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from gitmem import records
from gitmem.git.objects import Draft
from gitmem.index import catch_up
from gitmem.index.index_file import Index
from gitmem.log import forgetting, ledger, log_refs, ref
from gitmem.log.committer import start_log
from gitmem.log.forgetting import FOLDER, Forgotten
from gitmem.log.lines import SALT as SALTED
from gitmem.log.local_log import LocalLog
from tests.index.test_any_order import empty
from tests.index.test_forgotten_folds import rows
from tests.index.test_grants import CAROL, trust
from tests.log.logs import open_log
from tests.signing import ANNA, AT, BOB, SALT, SigningKey, addressed, attest, forget, salted
from tests.tasks.simulated import World


@pytest.fixture
def log(repo: Path) -> LocalLog:
    found = open_log(repo, seed=1)
    found.read = records.read
    start_log(found)
    return found


def put(log: LocalLog, files: dict[str, list[bytes]]) -> log_refs.LogTip:
    """A log with these lines, by path."""
    who = log.signature()
    top = str(log.git.tip(ref.LOG_REF))
    changes = {path: b"".join(sorted(line + b"\n" for line in lines)) for path, lines in files.items()}
    (oid,) = log.git.write([Draft(dict(changes), who, who, "Lines\n")], top)
    return log_refs.read(log, ref.LOG_REF, oid)


def indexed(log: LocalLog, oid: str) -> Index:
    index = empty()
    catch_up.read_commit(index, log, oid)
    return index


def texts(lines: list[bytes]) -> list[bytes]:
    return [line for line in lines if SALTED in line]


def world(seed: int) -> list[bytes]:
    """Lines with texts of Anna and Bob."""
    dice = random.Random(seed)
    made = World(seed, signed={"writer": ANNA.writer, "salt": SALT.decode()})
    made.run()
    found = sorted({line for clone in made.clones for line in clone.lines})
    signals = [
        records.line("signal", AT + number, {"signal_id": f"sig-{number:04}", "sender_identity": "a:b:c", "recipients": ["a:b:d"],
                     "intent": "INFO", "interrupt_class": "advisory", "message": f"secret {number}"})
        for number in range(20)
    ]  # fmt: skip
    return [*found, *(addressed(salted(line), dice.choice([ANNA, BOB])) for line in signals)]


def writer(line: bytes) -> str:
    record = records.read(line)
    return str(record["writer"]) if record is not None else ""


def given(dice: random.Random) -> list[tuple[SigningKey, bytes, bool]]:
    """Grants in a circle of three writers, some of some words, with whose they are, and whether they are attested."""
    found = []
    for giver, taker in ((ANNA, BOB), (BOB, CAROL), (CAROL, ANNA), (BOB, ANNA)):
        if dice.random() < 0.6:
            line = trust(giver, taker, *dice.choice(((), (), ("a:b:c",))))
            found.append((giver, line, dice.random() < 0.8))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_log_and_index_agree_and_no_fold_differs(log: LocalLog, seed: int) -> None:
    """Records by others, of lines that nobody attests, in the name of others, unattested, or attested where no line is read."""
    dice = random.Random(seed)
    every = world(seed)
    attested = [line for line in every if dice.random() < 0.9]
    files = {"s/2026-11/21/gm-a.jsonl": every}
    signed: dict[SigningKey, list[bytes]] = {ANNA: [], BOB: []}
    hidden: list[bytes] = []
    for number in range(6):
        key, other = dice.sample([ANNA, BOB], 2)
        of = other if dice.random() < 0.5 else None
        record = forget(dice.sample(texts(every), 4), key, AT + 100 + number, of).replace(
            b"forget-0001", b"forget-000%d" % number
        )
        if dice.random() < 0.3:
            record = record.replace(b"anna@" + key.writer.encode(), b"anna@" + other.writer.encode())
        assert records.read(record) is not None
        folder = FOLDER if dice.random() < 0.9 else "projects"
        files.setdefault(f"{folder}/2026-11/21/gm-{number}.jsonl", []).append(record)
        signed[key].append(record)
        if dice.random() < 0.2:
            hidden.append(signed[key].pop())
    grants = given(dice)
    files["trust/2026-11/21/gm-t.jsonl"] = [line for _, line, _ in grants]
    for giver, line, is_attested in grants:
        signed.setdefault(giver, []).extend([line] if is_attested else [])
    for key in [key for key in signed if key is not CAROL or signed[key]]:
        lines = [*signed[key], *(line for line in attested if writer(line) == key.writer)]
        files.setdefault("t/2026-11/21/gm-t.jsonl", []).append(attest(lines, key, AT + 200))
        own = [line for line in hidden if writer(line) == key.writer]
        if own:
            files.setdefault("projects/gm-x.jsonl", []).append(attest(own, key, AT + 300))
    tip = put(log, files)

    forgotten = Forgotten(log, [tip.tree])
    index = indexed(log, tip.oid)
    whole = {key for (key,) in index.db.execute("SELECT key FROM whole")}
    held = {bytes(line) for (line,) in index.db.execute("SELECT line FROM held")}
    for line in texts(every):
        if line not in held:
            assert forgotten.covers(line) == (ledger.key(line) in whole)
        else:
            assert not forgotten.covers(line)
    if not forgetting.is_epoch_due(log, tip):
        assert not whole
        return
    new = log_refs.read(log, ref.LOG_REF, forgetting.begin_epoch(log, tip))
    assert not Forgotten(log, [new.tree]).dropped(new.tree, tip.tree)
    assert rows(indexed(log, new.oid)) == rows(index)
    assert forgetting.epoch_problem(log, new, []) == ""
    assert log.git.commit(new.oid).parents == [ref.genesis(new.oid)]
