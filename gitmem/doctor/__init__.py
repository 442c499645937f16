"""Check all data of a clone, and repair damage without loss.

May import clients and the packages below it.
"""
