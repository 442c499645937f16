"""Identify the caller, the recipients and the sessions at work. May import sync and the packages below it."""
