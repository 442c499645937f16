"""Exchange with remotes: what may be taken from them, and what may be sent to them."""
