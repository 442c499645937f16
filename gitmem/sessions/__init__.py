"""Sessions: start, change and end them, and list who is at work."""
