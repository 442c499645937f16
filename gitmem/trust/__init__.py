"""Decide which lines this clone wrote, and in whose name. May import index and the packages below it."""
