"""What LumenFlow left in its files, brought into the log."""
