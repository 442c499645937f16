"""How much a node still matters: `recency × (1 + access) × importance`.

Recency is `exp(−age / half-life)` with the age since a node was last said; access is `ln(1 + count) / 10`;
importance is that of its priority. (At one half-life recency is 1/e, as in the tool that the rule comes from.)
"""

from __future__ import annotations

from ..errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .node import Node

DAY_MICROS = 24 * 3600 * 1_000_000
HALF_LIFE_MICROS = 30 * DAY_MICROS
THRESHOLD = 0.1
STALE = 0.5  # what the score of a node is multiplied by whose files moved on
IMPORTANCE = {"P0": 2.0, "P1": 1.5, "P2": 1.0, "P3": 0.5}


def recency(touched: int, now: int, half_life: int = HALF_LIFE_MICROS) -> float:
    """From 1 for what was just said, or lies ahead of the clock, towards 0. All in microseconds."""
    from math import exp

    return exp(-max(0, now - touched) / half_life)


def access(count: int) -> float:
    """0 for what nobody read, 0.24 after ten readings."""
    from math import log1p

    return log1p(max(0, count)) / 10


def importance(priority: str | None) -> float:
    """What a priority multiplies by; none counts as P2."""
    return IMPORTANCE.get(priority or "P2", 1.0)


def of(
    touched: int, count: int, priority: str | None, *, now: int, half_life: int = HALF_LIFE_MICROS
) -> float:
    """The score of what was last said at `touched`, read `count` times, with that priority."""
    return recency(touched, now, half_life) * (1 + access(count)) * importance(priority)


def score(node: Node, *, now: int, half_life: int = HALF_LIFE_MICROS) -> float:
    """The score of a node at a time, in microseconds since the epoch."""
    return of(node.touched, node.accesses, node.priority, now=now, half_life=half_life)


def stale_age(half_life: int = HALF_LIFE_MICROS) -> int:
    """Microseconds by which a stale node counts as older, where order is by recency: the same as `STALE`."""
    from math import log

    return int(-log(STALE) * half_life)


def checked(half_life: int, threshold: float = THRESHOLD) -> None:
    """UsageError where a half-life or a threshold is not above 0, or is no number."""
    if not 0 < half_life < float("inf"):
        raise UsageError("The half-life must be a time above 0; nothing was written.", code="bad-half-life",
                         hint="Such as 30d, the default.")  # fmt: skip
    if not 0 < threshold < float("inf"):
        raise UsageError("The threshold must be a number above 0; nothing was written.", code="bad-threshold",
                         hint="Such as 0.1, the default; new nodes of no priority have 1.")  # fmt: skip
