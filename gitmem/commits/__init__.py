"""Which session made which commit of the user's history."""
