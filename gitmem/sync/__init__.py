"""Sync: exchange lines with remotes, check what comes from them, and send what the user agreed to.

May import the store and what is below it.
"""
