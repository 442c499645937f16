"""What the project must reach, measured: `python -m benchmarks`. See README.md beside this file."""
