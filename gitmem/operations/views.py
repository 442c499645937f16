"""The views that the index keeps for these operations."""

from __future__ import annotations

from . import mail, tenure

VIEWS = (mail.VIEW, tenure.VIEW)
