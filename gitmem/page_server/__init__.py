"""Serve the page of `gitmem view` on this machine, with live updates."""
