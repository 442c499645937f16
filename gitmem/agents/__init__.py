"""Agents: who is at work, under which name."""
