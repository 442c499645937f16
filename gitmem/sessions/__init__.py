"""Sessions: start, change and end them, and list those at work. May import mailbox and the packages below it."""
