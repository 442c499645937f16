"""Memory: nodes that agents write for whoever comes later. May import signals and what is below it."""
