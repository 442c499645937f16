"""Branches and worktrees that change the same files, and those that conflict."""
