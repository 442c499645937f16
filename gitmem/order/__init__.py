"""What the writers of facts had seen, and reducers: the lines of an entity to its state.

Nothing here reads the index or the clock: the same lines give the same state on every clone, in whatever order they arrived.
"""
