"""Import what other tools recorded."""
