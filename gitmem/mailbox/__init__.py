"""Mailboxes: who has not read what, the queue of each session, and the lock under which mail is shown."""
