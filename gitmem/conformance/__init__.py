"""The A2A.V1 contract as test cases for any bus, see docs/conformance.md.

`pytest --pyargs gitmem.conformance --adapter module:factory`. The package needs pytest, and no other package of gitmem
imports it.
"""
