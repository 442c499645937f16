"""Index: a SQLite file derived from the log, deleted and rebuilt at any time. May import log and git."""
