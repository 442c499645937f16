"""Signals: what came before what in a thread, and how its graph is searched."""
