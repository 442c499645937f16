"""Hooks of coding agents: what is installed, and the script that asks whether there is anything to say."""

from __future__ import annotations
