"""Speaks with git: the union of lines for a human who merges by hand, and its place in git's config."""
