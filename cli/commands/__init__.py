"""The commands: each function reads its options, calls one operation, and renders the outcome."""
