"""Doctor: check everything that a clone keeps, and fix what can be fixed without losing anything.

May import clients and what is below it.
"""
