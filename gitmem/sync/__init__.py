"""What may leave this machine, and to which remote."""
