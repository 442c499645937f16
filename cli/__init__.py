"""The command line. No other package reads the environment or prints."""

from __future__ import annotations

COMPLETION = "_GITMEM_COMPLETE"  # the variable of a shell that asks typer for completions
