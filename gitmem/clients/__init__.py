"""Clients: hooks and instructions in the files of coding agents.

May import importers and what is below it.
"""
