"""Sessions: start, change and end them, and list who is at work. May import mailbox and what is below it."""
