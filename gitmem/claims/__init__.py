"""Claims on paths: who is about to change what, and until when. May import tasks and the packages below it."""
