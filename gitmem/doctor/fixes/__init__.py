"""Mending: what doctor finds and what can be put right without losing anything."""
