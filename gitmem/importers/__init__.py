"""Importers: records of other tools. May import memory and what is below it."""
