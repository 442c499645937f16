"""Decide which lines this clone wrote, and in which name. May import index and the packages below it."""
