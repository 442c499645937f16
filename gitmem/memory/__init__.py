"""Memory: nodes that agents write for later readers. May import signals and the packages below it."""
