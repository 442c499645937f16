"""The command line: it alone reads the environment, and it alone prints."""
