"""What a clone knows about its own agents: who they are, and what they have not read, whoever forged what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gitmem import records
from gitmem.agents import broadcasts, caller, mailbox
from gitmem.agents.caller import CallerClaims
from gitmem.doctor import clone_files
from gitmem.errors import UsageError
from gitmem.index import catch_up, index_file
from gitmem.log.lines import is_attestation, line_hash
from gitmem.signals import inbox
from gitmem.store import Store

from .agent_actions import agents
from .world import Clone, World


def differs_anew(world: World, clone: Clone, store: Store) -> list[str]:
    """Return what the index of a clone says otherwise than one that is built anew with the same key."""
    problem = store.writers.problem()
    if problem:
        return [f"the key of {clone.name} is damaged: {problem}"]
    fresh = index_file.in_memory(store.views, records.read)
    catch_up.catch_up(fresh, store.log)
    wrong = [
        f"the table {table} of {clone.name} differs from one that is built anew"
        for table in clone_files.differing(store.index, fresh, but=clone_files.ARRIVAL)
    ]
    for (agent,) in store.db().execute("SELECT reader FROM reader").fetchall():
        ours, anew = (
            sorted(mailbox.unread_ids(db, agent, None, None, store.now()))
            for db in (store.index.db, fresh.db)
        )
        if ours != anew:
            wrong.append(f"{clone.name} says {ours} is unread by {agent}, and built anew {anew}")
    fresh.close()
    return wrong


def own_sessions(world: World, clone: Clone, store: Store) -> list[str]:
    """Return where a session is not who it was here, or does not get what it has not read."""
    wrong = []
    sent = _read(world.acknowledged)
    # A process that was killed may have recorded its receipt before it could say so.
    begun = _read(world.begun)
    log = [str(body).encode() for (body,) in store.db().execute("SELECT body FROM line")]
    began_here = {
        record["session_id"] for record in sent if record["kind"] == "session" and record.get("writer")
    }
    for agent in agents(clone):
        session = clone.sessions.get(agent)
        if session not in began_here:
            continue
        try:
            found = caller.find(store, CallerClaims(session=session))
        except UsageError as error:
            wrong.append(f"{session} of {clone.name} can't act: {error.message}")
            continue
        if found is None or (found.reader, found.session_id) != (agent, session):
            wrong.append(f"{session} of {clone.name} was {agent} and is {found and found.ids}")
            continue
        shown = inbox.read(store, found, limit=10_000, max_bytes=100_000_000).signals
        own = {found.reader, str(session)}
        wanted = _sent_to(own, sent) | _sent_to_all(found.reader, own, begun, log)
        missing = wanted - _done_by(own, begun) - {str(each["signal_id"]) for each in shown}
        wrong += [f"{agent} does not get {signal_id} in {clone.name}" for signal_id in sorted(missing)]
    return wrong


def _read(lines: Iterable[bytes]) -> list[Any]:
    """Return what lines record; an attestation records nothing."""
    return [
        record for line in lines if not is_attestation(line) and (record := records.read(line)) is not None
    ]


def _sent_to(own: set[str], sent: Iterable[Mapping[str, Any]]) -> set[str]:
    """The directed signals to a reader."""
    signals = (record for record in sent if record["kind"] == "signal")
    return {str(each["signal_id"]) for each in signals if own.intersection(each.get("recipients") or ())}


def _sent_to_all(
    agent: str, own: set[str], begun: Iterable[Mapping[str, Any]], log: Iterable[bytes]
) -> set[str]:
    """The broadcasts of others that are not before the first line that the agent itself wrote."""
    found = {line_hash(line).hex(): record for line in log for record in _read([line])}
    there = {(record["at"], record.get("writer")) for record in found.values()}
    first = min(
        (
            record
            for record in begun
            if (record["at"], record.get("writer")) in there
            and record["kind"] in broadcasts.READER_KINDS
            and agent in broadcasts.reader_of(record)
        ),
        key=lambda record: str(record["at"]),
    )
    every = {
        hash: record
        for hash, record in found.items()
        if record["kind"] == "signal" and not record.get("recipients")
    }
    reached: set[str] = set()
    following = list(first.get("seen") or ())
    while following:
        hash = following.pop()
        if hash in every and hash not in reached:
            reached.add(hash)
            following += (every[hash].get("seen") or ())[: broadcasts.SEEN_MAX]
    oldest, is_tracked = broadcasts.day_before(first["at"]), first.get("seen") is not None
    return {
        str(each["signal_id"])
        for hash, each in every.items()
        if not own & {each["sender_identity"], each.get("sender_session")}
        and (each["at"] >= oldest or (is_tracked and each.get("seen") is not None and hash not in reached))
    }


def _done_by(own: set[str], begun: Iterable[Mapping[str, Any]]) -> set[str]:
    """The signals that a reader wrote, answered, or has a receipt for."""
    done = set()
    for record in begun:
        if record["kind"] == "receipt" and record["reader_identity"] in own:
            done.add(str(record["signal_id"]))
        elif record["kind"] == "signal" and own & {record["sender_identity"], record.get("sender_session")}:
            done.update((str(record["signal_id"]), str(record.get("reply_to"))))
    return done
