"""Importers for the records of other tools. May import memory and the packages below it."""
