"""Mailboxes: who has not read what, the queue of each session, and the delivery lock.

May import agents and what is below it.
"""
