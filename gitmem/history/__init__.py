"""What happened in the user's history and in the log: commits and who made them, why a line is as it is, open work, branches that conflict, figures."""
