"""The command that clients' hooks run: `gitmem hook CLIENT EVENT`, called by the script of `gitmem setup`."""

from __future__ import annotations
