"""The commands `gitmem mem …`, which write and read the memory."""
