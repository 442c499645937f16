"""Hooks of coding agents: install and remove them, and the script that they run."""

from __future__ import annotations
