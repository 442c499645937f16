"""The merge driver for git: it unites log files in a merge by hand, and is installed in git's config."""
