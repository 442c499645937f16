"""`gitmem mem …`: what agents write down for whoever comes later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import nodes

if TYPE_CHECKING:
    from collections.abc import Callable

# In the order in which one meets them.
COMMANDS: tuple[tuple[str, Callable[..., int]], ...] = (
    ("create", nodes.create),
    ("update", nodes.update),
    ("relate", nodes.relate),
)
