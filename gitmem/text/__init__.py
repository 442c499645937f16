"""Text: functions from text to text. Imports nothing of gitmem."""
