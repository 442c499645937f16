"""Text handling that knows nothing of the rest of gitmem."""
