"""The command line. No other package reads the environment or prints."""
