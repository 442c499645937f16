"""Log: an append-only set of lines on one ref; it does not interpret them. May import git."""
