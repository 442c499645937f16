"""The decay score of a node: `recency × (1 + access) × importance`.

Recency is `exp(−age / half-life)`, with the age since the last change of the content; access is
`log(1 + count) / 10`; importance depends on the priority. (After one half-life recency is 1/e, as in the tool that
the formula comes from.)
"""

from __future__ import annotations

from ..errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..order.node import VersionedNode

DAY_MICROS = 24 * 3600 * 1_000_000
HALF_LIFE_MICROS = 30 * DAY_MICROS
THRESHOLD = 0.1
STALE = 0.5  # factor of the score of a node whose files changed since
IMPORTANCE = {"P0": 2.0, "P1": 1.5, "P2": 1.0, "P3": 0.5}


def recency(touched: int, now: int, half_life: int = HALF_LIFE_MICROS) -> float:
    """Return 1 for a new node, or one dated ahead of the clock; less with age, towards 0. All in microseconds."""
    from math import exp

    return exp(-max(0, now - touched) / half_life)


def access(count: int) -> float:
    """Return the access part of a score: 0 for a node never read, 0.24 after ten accesses."""
    from math import log1p

    return log1p(max(0, count)) / 10


def importance(priority: str | None) -> float:
    """Return the factor of a priority; none counts as P2."""
    return IMPORTANCE.get(priority or "P2", 1.0)


def score_of(
    touched: int, count: int, priority: str | None, *, now: int, half_life: int = HALF_LIFE_MICROS
) -> float:
    """Return the score of a node changed at `touched`, with `count` accesses and a priority."""
    return recency(touched, now, half_life) * (1 + access(count)) * importance(priority)


def score(node: VersionedNode, *, now: int, half_life: int = HALF_LIFE_MICROS) -> float:
    """Return the score of a node at a time, in microseconds since the epoch."""
    return score_of(node.touched, node.accesses, node.priority, now=now, half_life=half_life)


def stale_age(half_life: int = HALF_LIFE_MICROS) -> int:
    """Return the microseconds to add to the age of a stale node when ranking by recency. Equivalent to `STALE`."""
    from math import log

    return int(-log(STALE) * half_life)


def validate(half_life: int, threshold: float = THRESHOLD) -> None:
    """Validate a half-life and a threshold.

    Raises:
        UsageError: A value is not a number above 0.
    """
    if not 0 < half_life < float("inf"):
        raise UsageError("The half-life must be a time above 0. Nothing was written.", code="bad-half-life",
                         hint="Use a form such as 30d (the default).")  # fmt: skip
    if not 0 < threshold < float("inf"):
        raise UsageError("The threshold must be a number above 0. Nothing was written.", code="bad-threshold",
                         hint="Use a number such as 0.1 (the default); a new node without a priority has the score 1.")  # fmt: skip
