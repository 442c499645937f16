"""The index: a SQLite file that is derived from the log and can be deleted at any time. May import log and git."""
