"""Figures about the work of all agents: how much they say, how long answers take, how tasks end."""
