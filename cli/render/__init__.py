"""Outcomes as text or JSON. Only this package writes to standard output."""
