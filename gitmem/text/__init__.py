"""Functions from text to text. Imports nothing of gitmem."""
