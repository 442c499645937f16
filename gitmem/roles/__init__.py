"""Roles of agents: the vocabulary in `.gitmem/roles.toml`, and the agent files of clients. May import text, records and files."""
