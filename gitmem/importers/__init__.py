"""Importers for the records of other tools. May import history and the packages below it."""
