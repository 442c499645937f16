"""Memory: what agents write down for whoever comes later, and what becomes of it."""
