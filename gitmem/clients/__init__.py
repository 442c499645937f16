"""Coding agents' programs: what gitmem installs for them, and what their hooks may start."""
