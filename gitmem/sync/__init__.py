"""Exchange lines with remotes, check the lines that arrive, and send what the user agreed to publish.

May import the store and the packages below it.
"""
