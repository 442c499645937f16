"""Answers of the memory as text."""
