"""Hooks and instructions in the files of clients.

This package may import `importers` and the packages below it.
"""
