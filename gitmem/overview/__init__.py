"""Who works on what now, and what of it concerns a caller."""
