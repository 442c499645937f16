"""Agents: who is at work, under which name, and who calls."""
