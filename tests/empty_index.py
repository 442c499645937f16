"""Indexes in memory whose tables are made once in a process: properties and references ask for thousands of them."""

from __future__ import annotations

import functools

from gitmem import records
from gitmem.index import index_file
from gitmem.index.entities import View
from gitmem.index.index_file import Index


def empty_index(*views: View) -> Index:
    """An index in memory with the tables of these views, as `reshape` makes them."""
    index = index_file.in_memory(views, records.read)
    index.db.deserialize(_tables(views))
    return index


@functools.cache
def _tables(views: tuple[View, ...]) -> bytes:
    index = index_file.in_memory(views, records.read)
    index.reshape()
    found = index.db.serialize()
    index.close()
    return found
