"""Decide which lines were written by this clone, and in whose name."""
