"""Outcomes as text or JSON. This room alone writes to standard output."""
