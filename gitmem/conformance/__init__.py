"""The A2A.V1 contract as cases that any bus can be tried against: see docs/conformance.md.

`pytest --pyargs gitmem.conformance --adapter module:factory`. It needs pytest, and nothing of gitmem needs it.
"""
