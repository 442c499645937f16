"""Trust: which lines this clone wrote, and in whose name. May import index and what is below it."""
