"""The library: what `gitmem.open` returns."""
