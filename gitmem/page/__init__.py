"""The page of `gitmem view`: what happened in the log, in one file for a browser."""
