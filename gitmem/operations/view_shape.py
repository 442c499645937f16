"""The shape of the index with the views of `views`, as a number that costs no import of them.

An inbox with nothing new asks the index as it is. It has to know that the tables are those of this version, and
needs none of the code that fills them.
"""

from __future__ import annotations

SHAPE = 130025634  # `Index.version` of `views.VIEWS`; tests/operations/test_store.py has the value when it changes
