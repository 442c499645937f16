"""Who shows under which name is what docs/format.md says, in any order of arrival, and quick however many ask for it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import pytest

from gitmem import records, views
from gitmem.index import catch_up
from gitmem.order.session import HOLD_MICROS, HeldNames
from gitmem.records.ids import is_of_somebody, new_id
from gitmem.text.name_matching import fold, strip_numbers

from ..empty_index import empty_index
from ..sandbox import annas
from ..signing import ANNA

HOLD = HOLD_MICROS
HOUR = 3600 * 1_000_000
START = 1_795_000_000_000_000
Event = tuple[int, str, str, str]  # time, session, event or "signal", name
Shown = set[tuple[str, int, int, str]]  # session, beginning, end, name as it shows


def _naive(events: Sequence[Event]) -> Shown:
    """The names of section 10, for each session and each tenure by itself."""
    tenures: list[tuple[int, Event, int, str]] = []  # beginning, the record that claims, end, name
    for session in {each[1] for each in events if each[2] != "signal"}:
        own = sorted(each for each in events if each[1] == session and each[2] != "signal")
        ends = [place for place, each in enumerate(own) if each[2] == "end"]
        own = own[: ends[0] + 1] if ends else own
        claims = [own[0]]
        for each in own[1:]:
            if each[2] != "end" and each[3] != claims[-1][3]:
                claims.append(each)
        last = own[-1][0] if ends else 1 << 62
        found = []
        for claim, end in zip(claims, [*(each[0] for each in claims[1:]), last], strict=True):
            for begin, until in _alive(each[0] for each in events if each[1] == session):
                if max(claim[0], begin) < min(end, until):
                    found.append((max(claim[0], begin), claim, min(end, until), claim[3]))
        tenures += found or [(claims[-1][0], claims[-1], claims[-1][0], claims[-1][3])]
    shown: Shown = set()
    held: list[tuple[int, str, str]] = []  # end, root, name
    for begin, claim, until, name in sorted(tenures, key=lambda each: (_is_free(each[1][1]), each)):
        taken = {
            fold(other) for end, base, other in held if end > begin and base == strip_numbers(fold(name))
        }
        free = (f"{name}-{number}" for number in range(2, 1 << 30))
        now = name if fold(name) not in taken else next(each for each in free if fold(each) not in taken)
        held.append((until, strip_numbers(fold(name)), now))
        shown.add((claim[1], begin, until, now))
    return shown


def _is_free(session: str) -> bool:
    return not is_of_somebody("sess", session)


def _alive(times: Iterable[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for at in sorted(times):
        if found and at <= found[-1][1]:
            found[-1] = (found[-1][0], at + HOLD)
        else:
            found.append((at, at + HOLD))
    return found


class _Table:
    """The tables of sessions, fed with events in portions."""

    def __init__(self) -> None:
        index = empty_index(views.SESSIONS)
        self.index, self.db = index, index.db

    def add(self, events: Sequence[Event]) -> None:
        lines = []
        for at, session, event, name in events:
            if event == "signal":
                fields = {"signal_id": f"sig-{at:04}", "message": "x", "sender_identity": annas("a:b:c"), "sender_session": session,
                          "recipients": ["a:b:d"], "intent": "INFO", "workspace_id": "w"}  # fmt: skip
            else:
                fields = {
                    "session_id": session,
                    "event": event,
                    "display_name": name,
                    "clone_id": "c000000000",
                }
            kind = "signal" if event == "signal" else "session"
            lines.append(records.line(kind, at, fields, writer=ANNA.writer))
        catch_up.insert_lines(self.index, catch_up.OWN_FILE, lines)

    def shown(self) -> Shown:
        return set(self.db.execute("SELECT session_id, claimed, until, shown FROM tenure"))


def _random_events(draw: random.Random) -> list[Event]:
    names = draw.choice((("Planck", "Curie"), ("Planck", "planck-2", "Planck-3", "Planck-2-2", "PLANCK")))
    step = draw.choice((HOUR, 20 * HOUR, 60 * HOUR))
    sessions = [
        draw.choice((f"sess-{at:04}", new_id("sess", ANNA.writer, draw.randbytes)))
        for at in range(draw.randint(1, 9))
    ]
    found = {}
    for _ in range(draw.randint(1, 30)):
        at = START + draw.randrange(40) * step
        session, event = draw.choice(sessions), draw.choice(("start", "change", "change", "end", "signal"))
        found[at, session] = (at, session, event, draw.choice(names))
    return list(found.values())


def _check(seed: int) -> None:
    draw = random.Random(seed)
    events = _random_events(draw)
    wanted = _naive(events)
    draw.shuffle(events)
    table = _Table()
    while events:
        some = draw.randint(1, len(events))
        table.add(events[:some])
        del events[:some]
    assert table.shown() == wanted, seed


def test_names_are_those_of_a_naive_reference() -> None:
    """With numbers that are asked for and taken, names that become free, and lines that come in any order."""
    for seed in range(200):
        _check(seed)


@pytest.mark.deep
def test_names_of_many_histories_are_those_of_a_naive_reference() -> None:
    """The same for more histories."""
    for seed in range(200, 1_500):
        _check(seed)


def test_thousands_who_ask_for_one_name_are_quick() -> None:
    """Each looks at few numbers, however many are taken."""
    looks = 0

    class Counting(dict[str, int]):
        def __contains__(self, key: object) -> bool:
            nonlocal looks
            looks += 1
            return super().__contains__(key)

    held = HeldNames([])
    held._count = Counting()
    for at in range(5_000):
        held.end(at)
        held.take("Planck", at + 4_000)

    assert looks < 5 * 5_000
