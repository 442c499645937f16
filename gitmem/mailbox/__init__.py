"""Mailboxes: unread signals by reader, the queue of each session, and the delivery lock.

May import agents and the packages below it.
"""
