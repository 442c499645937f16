"""Installation and removal of hooks for coding agents, and the script that the hooks run."""

from __future__ import annotations
