"""Agents: who calls, who is meant, and who is here. May import sync and what is below it."""
