"""The views that the index keeps for these operations."""

from __future__ import annotations

from . import mail, tenure
from .memory import view as memory

VIEWS = (mail.VIEW, tenure.VIEW, memory.VIEW)
