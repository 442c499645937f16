"""Indexes in memory whose tables are made once in a process: properties and references ask for thousands of them."""

from __future__ import annotations

import functools

from gitmem import records, views
from gitmem.index import catch_up, index_file
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


def index_of(*batches: list[bytes]) -> Index:
    """An index that these lines arrived in, batch by batch."""
    index = empty_index(*views.VIEWS)
    for batch in batches:
        catch_up.insert_lines(index, catch_up.OWN_FILE, batch)
    return index
