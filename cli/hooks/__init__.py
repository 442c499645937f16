"""What the hooks of coding agents run: `gitmem hook CLIENT EVENT`, started by the script that `hooks install` writes."""

from __future__ import annotations
