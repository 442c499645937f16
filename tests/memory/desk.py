"""A memory on a real repository, and one that is nothing but lines in an index, for properties."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from gitmem import records, views
from gitmem.agents import lifecycle
from gitmem.agents.caller import Caller, CallerClaims, find
from gitmem.index import catch_up
from gitmem.log.lines import CommitMessage
from gitmem.log.local_log import Appended
from gitmem.memory import edit, stored_nodes
from gitmem.order.node import VersionedNode
from gitmem.repo import Repo
from gitmem.store import Store

from ..empty_index import empty_index
from ..sandbox import START, Clock, acting, open_store
from ..signing import ANNA, addressed

LOG = "refs/gitmem/log"


class Desk:
    """A store with somebody at work in it.

    Its start is committed, so that there is a log. What is written then waits, unless a test uses the fixture `commits`.
    """

    def __init__(self, where: Path, clock: Clock | None = None, **session: Any) -> None:
        self.clock = clock or Clock()
        self.store = open_store(where, self.clock)
        self.session = lifecycle.start(self.store, CallerClaims(), **session)
        self.caller = acting(self.store, self.session)
        self.tip()

    def write(self, content: str, **options: Any) -> str:
        """A new node; its id."""
        return edit.create(self.store, self.caller, content, **options).node.id

    def change(self, *ids: str, **options: Any) -> None:
        edit.change(self.store, self.caller, ids, **options)

    def node(self, id: str) -> VersionedNode:
        return stored_nodes.load_one(self.store.db(), id)

    def tip(self) -> str | None:
        """The log with all that was written."""
        self.store.commit(1.0)
        return self.store.git.tip(LOG)


def raw(store: Store, kind: str, *, at: int | None = None, **fields: Any) -> bytes:
    """A line that no operation writes, as imports, peers and newer versions may."""
    given = {"id": "mem-raw0", "type": "note", "lifecycle": "wu", "content": "raw"} if kind == "node" else {}
    at = store.log.clock.tick() if at is None else at
    whole = {**given, "sender_identity": "test:worker:raw", **fields}
    line = addressed(records.line(kind, at, whole, writer=None), ANNA)
    store.record([(records.STREAMS[kind], line)], CommitMessage("Raw <raw@gitmem>", "raw"))
    return line


class Lines:
    """As much of a store as the upkeep of nodes asks for: an index in memory, and lines that it gets at once."""

    repo = Repo(os.devnull, os.devnull, None)  # without a folder for local files

    def __init__(self, lines: Iterable[bytes] = (), *, now: int = START, seed: int = 1) -> None:
        self.index = empty_index(views.NODES, views.RELATIONS, views.OWN)
        self.value = now
        self.random = random.Random(seed).randbytes
        self.lines: list[bytes] = []
        self.take(lines)

    def take(self, lines: Iterable[bytes]) -> None:
        fresh = [line for line in lines if line not in self.lines]
        self.lines += fresh
        catch_up.insert_lines(self.index, catch_up.OWN_FILE, fresh)

    def now(self) -> int:
        return self.value

    def db(self) -> Any:
        return self.index.db

    def line(self, kind: str, fields: dict[str, Any]) -> tuple[str, bytes]:
        self.value += 1
        return records.STREAMS[kind], records.line(kind, self.value, fields)

    def new_id(self, prefix: str) -> str:
        return f"{prefix}-{self.random(6).hex()}"  # without a writer it is free

    def record(self, lines: Sequence[tuple[str, bytes]], story: Any, *, deferred: bool = False) -> Appended:
        self.take(line for _, line in lines)
        return Appended(f"{len(self.lines):040x}")

    def hidden(self) -> set[str]:
        return {id for (id,) in self.db().execute("SELECT id FROM node WHERE state >= 2")}

    def node(self, id: str) -> VersionedNode:
        return stored_nodes.load_one(self.db(), id)


def somebody() -> Caller:
    """A caller without a session."""
    return Caller("test:worker:one", "One <one@gitmem>", "as")


def me(store: Store) -> Caller:
    """The user at a terminal."""
    found = find(store, CallerClaims(terminal=True))
    assert found
    return found


def blocks(desk: Desk, one: str, other: str, *, remove: bool = False) -> None:
    edit.relate(desk.store, desk.caller, one, "blocks", other, remove=remove)
