"""Which events of a flooded task are read, of which peers wrote any number: by the lines alone, so every clone reads the same ones.

A writer chooses times and names. So no part of the events takes room from another, within a part senders take turns, and what the parties
of the task wrote or named comes first. docs/format.md section 15 has the rule.
"""

from __future__ import annotations

from . import READ_MAX, TERMINAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeVar

    from .task_facts import Sender, TaskEvent

    Event = TypeVar("Event", TaskEvent, "EventRow")

_NO_MARKS = str.maketrans("", "", '[]"')


class EventRow:
    """An event by the columns that the choice needs, without the rest of its line.

    Args:
        named: The ids that its line names, as JSON; None unless the caller wrote it.
        is_own: Whether this clone has surely written it.
    """

    __slots__ = ("event", "id", "is_own", "is_terminal", "named", "number", "sender", "take")

    def __init__(
        self, number: int, event: str, sender: str, session: str | None, id: str, take: str | None, state: str | None,
        named: str | None, is_own: int,
    ) -> None:  # fmt: skip
        self.number = number
        self.event = event
        self.sender: Sender = (sender, session or None)
        self.id = id
        self.take = id if event == "take" else take
        self.is_terminal = event == "status" and state in TERMINAL
        # They need no decoder: the models allow only letters, digits and dashes in ids.
        self.named = set(named.translate(_NO_MARKS).split(",")) if named else set()
        self.is_own = bool(is_own)


def choose(
    events: Sequence[Event],
    caller: Sender,
    agent: str | None,
    is_own: Callable[[Event], bool] | None = None,
    most: int = READ_MAX,
) -> list[Event]:
    """Return the events that are read.

    Args:
        events: All events, by `(at, bytes)`.
        caller: The writer of the task.
        agent: Its addressee.
        is_own: Whether this clone has surely written an event; its takes come first for what this clone does.
        most: The greatest number of events of each part.
    """
    if len(events) <= most:
        return list(events)

    kinds: dict[str, list[Event]] = {}
    for each in events:
        kinds.setdefault(_part_of(each, caller), []).append(each)

    def by_party(each: Event) -> bool:
        return each.sender[0] == caller[0] or _is_by(each, agent)

    parts: list[list[Event]] = [kinds.get("seal", [])[:most], _in_turn(kinds.get("close", ()))[:most]]
    parts.append(_first(_in_turn(kinds.get("message", ())), by_party)[:most])
    named = {id for part in parts for each in part if each.sender[0] == caller[0] for id in each.named}
    takes_of_named = {each.take for each in events if each.id in named}

    def is_known(each: Event) -> bool:
        return each.id in takes_of_named or _is_by(each, agent)

    takes: list[Event] = _first(_in_turn(kinds.get("take", ())), is_known)
    takes = (_first(takes, is_own) if is_own is not None else takes)[:most]
    parts.append(takes)
    places: dict[object, int] = {}
    for place, take in enumerate(takes):
        for who in take.sender, take.sender[0]:
            places.setdefault((take.id, who), place)

    def place_of(each: Event) -> int | None:
        """Return the place of the take under which its taker wrote an event; None for other events."""
        return places.get((each.take, each.sender[0] if each.event == "release" else each.sender))

    rest = kinds.get("", [])
    for kind in "report", "renew":
        under: list[Event] = []
        for each in kinds.get(kind, ()):
            (under if place_of(each) is not None else rest).append(each)
        under.reverse()
        parts.append(_rounds(sorted(under, key=_rank), place_of)[:most])
    parts.append(_in_turn(rest)[:most])
    return [each for part in parts for each in part]


def _is_by(event: TaskEvent | EventRow, agent: str | None) -> bool:
    return agent is not None and agent in event.sender  # a sender may have no session


def _part_of(event: Event, caller: Sender) -> str:
    kind, (identity, _) = event.event, event.sender
    if kind in ("message", "cancel") or (kind == "status" and event.take is None):
        return "message"
    if kind in ("status", "release", "artifact"):
        return "report"
    if kind == "seal" and event.sender != caller:
        return ""
    if kind == "close" and identity != caller[0] and not identity.startswith("human:"):
        return ""
    return kind if kind in ("seal", "close", "take", "renew") else ""


def _rank(event: TaskEvent | EventRow) -> int:
    """Return where an event stands among those of a take, of which the last one is the first: its end, release, other reports, artifacts."""
    if event.event == "artifact":
        return 3
    return 2 if event.event == "status" and not event.is_terminal else int(event.event == "release")


def _first(events: Iterable[Event], is_first: Callable[[Event], bool]) -> list[Event]:
    return sorted(events, key=lambda each: not is_first(each))


def _in_turn(events: Iterable[Event]) -> list[Event]:
    """Return the first event of each identity, then the second of each; so of an identity its sessions."""
    by_session = _rounds(events, lambda each: each.sender)
    return _rounds(by_session, lambda each: each.sender[0])


def _rounds(events: Iterable[Event], of: Callable[[Event], object]) -> list[Event]:
    counts: dict[object, int] = {}
    placed = []
    for each in events:
        who = of(each)
        counts[who] = count = counts.get(who, 0) + 1
        placed.append((count, each))
    placed.sort(key=lambda pair: pair[0])  # stable
    return [each for _, each in placed]
