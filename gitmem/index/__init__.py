"""Answers without reading git: a SQLite file derived from the log, deleted and rebuilt at will."""
