"""Performance measurements and their limits: `python -m benchmarks`. See README.md in this folder."""
