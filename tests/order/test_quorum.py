"""Agreement by need and veto as a fold: whatever arrived first, and only a change of mind undoes a yes."""

from __future__ import annotations

import json
import random
from typing import Any

from gitmem.order.thread import FoldedThread, ThreadSignal

PARTIES = ("anna", "bob", "carl", "dora", "emil")
INTENTS = ("AGREE", "AGREE", "AGREE", "AGREE", "REJECT", "COUNTER", "PROPOSE", "INFO")


def said(id: str, by: str, intent: str, **fields: Any) -> ThreadSignal:
    record: Any = {"at": "2026-11-21T20:00:00.000000Z", "signal_id": id, "sender_identity": by, "intent": intent, "recipients": [],
                   "message": id, **fields}  # fmt: skip
    return ThreadSignal(record, [json.dumps(record, separators=(",", ":")).encode()])


def random_votes(seed: int) -> dict[str, ThreadSignal]:
    """A proposal to four, and up to twenty answers to it and to each other, some of them by somebody who was not asked."""
    draw = random.Random(seed)
    veto = draw.sample(PARTIES[1:], draw.choice((0, 0, 1, 2)))
    ids = [f"sig-{place:04}" for place in range(draw.randint(2, 21))]
    found = {
        ids[0]: said(
            ids[0], "anna", "PROPOSE", recipients=PARTIES[1:], need=str(draw.randint(1, 4)), veto=veto
        )
    }
    for place, id in enumerate(ids[1:], 1):
        seen = draw.sample(ids[:place], min(place, draw.randint(1, 3)))
        own = [each for each in ids[:place] if draw.random() < 0.3]
        found[id] = said(
            id,
            draw.choice((*PARTIES, "mallory")),
            draw.choice(INTENTS),
            reply_to=seen[0],
            after=[*seen, *own],
        )
    return found


def closed(thread: dict[str, ThreadSignal], ids: list[str]) -> dict[str, ThreadSignal]:
    """What a clone has that has these signals: also all that their writers had seen."""
    had, todo = {next(iter(thread))}, list(ids)
    while todo:
        id = todo.pop()
        if id not in had:
            had.add(id)
            todo += thread[id].named
    return {id: each for id, each in thread.items() if id in had}


def test_only_who_agreed_undoes_an_agreement() -> None:
    """Of 3,000 random threads a clone that lacks some signals says yes to nothing else, unless one of those whom it counted has said more."""
    yes = undone = 0
    for seed in range(3_000):
        thread, draw = random_votes(seed), random.Random(seed)
        whole = FoldedThread("thread-x", thread)
        ids = draw.sample([*thread], len(thread))
        shuffled = FoldedThread("thread-x", {id: thread[id] for id in ids})
        assert (whole.agreed_on, {*whole.in_force}, {*whole.awaited}) == (
            shuffled.agreed_on,
            {*shuffled.in_force},
            {*shuffled.awaited},
        )
        had = closed(thread, ids[: draw.randint(1, len(ids))])
        part = FoldedThread("thread-x", had)
        if part.agreed_on is None or part.agreed_on is whole.agreed_on:
            yes += part.agreed_on is not None
            continue
        agreeing = part.agreeing(part.agreed_on.id)
        more = {
            each.record["sender_identity"]
            for id, each in thread.items()
            if id not in had and each.intent != "INFO"
        }
        assert more.intersection(agreeing), seed
        undone += 1
    assert yes > 100 and undone > 20  # so that it has looked at something


def test_who_can_still_change_it_is_asked() -> None:
    """Whoever owes an answer could bring the agreement, or has to; once it is there nobody owes one."""
    for seed in range(3_000):
        found = FoldedThread("thread-x", random_votes(seed))
        owing = [each for each in PARTIES if any(found.owes([each], id) for id in found.in_force)]
        if found.agreed_on is not None:
            assert owing == []
        elif len(found.in_force) == 1:
            (id,) = found.in_force
            agreeing = {*found.agreeing(id)}
            assert agreeing.isdisjoint(owing)
            if found.consents(id) >= found.need:
                assert {*owing} <= {*found.lacks(id)}


def test_an_ambiguous_answer_counts_for_nobody_and_stops_nobody() -> None:
    """Whoever signs two texts with one id can't undo what enough others agree to."""
    votes = {each.id: each for each in (
        said("sig-root", "anna", "PROPOSE", recipients=PARTIES[1:], need="2"),
        said("sig-bob", "bob", "AGREE", reply_to="sig-root"), said("sig-carl", "carl", "AGREE", reply_to="sig-root"),
        said("sig-dora", "dora", "AGREE", reply_to="sig-root"),
    )}  # fmt: skip
    for unclear, is_agreed in (("sig-dora", True), ("sig-root", False)):
        one = votes[unclear]
        both = ThreadSignal(
            one.record,
            [*one.lines, *(line.replace(b'"message":"sig', b'"message":"gis') for line in one.lines)],
        )
        found = FoldedThread("thread-x", {**votes, unclear: both})
        assert (found.agreed_on is not None) == is_agreed
    one = votes["sig-carl"]
    both = ThreadSignal(
        one.record, [*one.lines, *(line.replace(b'"message":"sig', b'"message":"gis') for line in one.lines)]
    )
    without_dora = {id: each for id, each in votes.items() if id != "sig-dora"}
    assert FoldedThread("thread-x", {**without_dora, "sig-carl": both}).agreed_on is None


def test_a_flood_of_parties_is_counted_in_time() -> None:
    """5,000 recipients, all with a veto, of whom each is looked at."""
    crowd = [f"party{number}" for number in range(5_000)]
    root = said("sig-root", "anna", "PROPOSE", recipients=crowd, need="5000", veto=crowd)
    answers = {f"sig-{name}": said(f"sig-{name}", name, "AGREE", reply_to="sig-root") for name in crowd[:-1]}
    found = FoldedThread("thread-x", {"sig-root": root, **answers})

    assert [each for each in crowd if found.owes([each], "sig-root")] == crowd[-1:]
    assert (found.consents("sig-root"), found.lacks("sig-root")) == (4_999, crowd[-1:])
