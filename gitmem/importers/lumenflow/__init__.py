"""Import the files of LumenFlow."""
