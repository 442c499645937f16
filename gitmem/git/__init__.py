"""The only room that knows git: one small port, two implementations, and the remotes."""
