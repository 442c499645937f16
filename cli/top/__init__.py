"""`gitmem top`: a live screen in the terminal, on Textual. Nothing else imports Textual, and this only if it is asked for."""
