"""The log: an append-only set of lines on one ref. It does not interpret records. May import git."""
