"""Send and answer signals, fold threads, read the inbox, check the gate."""
