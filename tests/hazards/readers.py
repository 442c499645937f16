"""A reader with flags, for the hazards of delivery: what its hook would show, and what lies in its folders."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from gitmem.agents import caller, delivery, heartbeats, lifecycle, mailbox
from gitmem.agents.caller import Caller, CallerClaims
from gitmem.repo import find
from gitmem.signals import inbox
from gitmem.signals import send as signals
from gitmem.store import Store

from ..sandbox import annas
from .faults import open_store

HARNESS = "7d0c2f5e-5f0a-4f4e-9d3c-0a1b2c3d4e5f"
CURIE = annas("test:worker:curie")


class Reader:
    """Curie, whose session was started by a harness in a repository, and Planck, who writes to her."""

    def __init__(self, repo: Path) -> None:
        self.repo = repo
        self.paper = repo.parent / "paper"  # what was printed, whoever died afterwards
        self.state = os.path.join(find(str(repo)).common, "gitmem")
        store = open_store(repo)
        self.planck = lifecycle.start(store, CallerClaims(), name="Planck").session_id
        who = CallerClaims(client_session=("CLAUDE_CODE_SESSION_ID", HARNESS))
        self.session = lifecycle.start(store, who, name="Curie", agent_identity=CURIE).session_id
        store.close()

    def send(self, text: str, store: Store | None = None, *, to: Sequence[str] = (CURIE,)) -> str:
        """A signal from Planck; its id."""
        own = store or open_store(self.repo)
        sent = signals.send(own, self.caller(own, self.planck), text, to=to, broadcast=not to)
        if store is None:
            own.close()
        return str(sent.signal["signal_id"])

    def look(self) -> None:
        """What any later command does first."""
        store = open_store(self.repo)
        store.db()
        store.close()

    def caller(self, store: Store, session: str | None = None) -> Caller:
        found = caller.find(store, CallerClaims(session=session or self.session))
        assert found
        return found

    def drain(self, store: Store | None = None, *, session: str | None = None) -> list[str]:
        """What a hook shows now: the messages."""
        own = store or open_store(self.repo)
        try:
            who = self.caller(own, session)
            with delivery.delivery_lock(own, who.reader) as mine:
                if not mine:
                    return []
                reading = inbox.read(own, who, limit=1000, max_bytes=1_000_000)
                shown = [str(fields["message"]) for fields in reading.signals]
                with self.paper.open("a") as paper:
                    paper.writelines(f"{text}\n" for text in shown)
                inbox.mark(own, reading)
            return shown
        finally:
            if store is None:
                own.close()

    def printed(self) -> list[str]:
        return self.paper.read_text().splitlines() if self.paper.exists() else []

    @property
    def flag(self) -> Path:
        return Path(heartbeats.flag(self.state, HARNESS))

    def unread(self) -> set[str]:
        """What the log says."""
        store = open_store(self.repo)
        found = {id for _, id in mailbox.unread_ids(store.db(), CURIE, self.session, None, store.now())}
        store.close()
        return found

    def receipts(self) -> list[str]:
        """The messages that have a receipt, each as often as the log has one."""
        store = open_store(self.repo)
        rows = store.db().execute("SELECT body FROM line WHERE kind = 'receipt'").fetchall()
        texts = dict(
            store.db().execute(
                "SELECT s.signal_id, json_extract(l.body, '$.message') FROM signal s JOIN line l ON l.id = s.line"
            )
        )
        store.close()
        import json

        return sorted(texts[json.loads(body)["signal_id"]] for (body,) in rows)

    def is_told(self) -> bool:
        """Whether the flags stand, under both names, just where something waits that was not shown."""
        flags = {Path(heartbeats.flag(self.state, name)).exists() for name in (HARNESS, self.session)}
        return flags == {bool(self.unread())}
