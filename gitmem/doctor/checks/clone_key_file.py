"""Check and repair the clone key."""

from __future__ import annotations

import os

from ... import records
from ...agents import heartbeats
from ...digests import is_signed
from ...log import ledger
from ...trust import clone_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...store import Store
    from ..findings import Findings
    from ..fixes.fix_result import FixResult

DAMAGED, EXPOSED, REPLACED = "clone-key", "clone-key-exposed", "clone-key-replaced"
NAMED_MAX = 5
CODES = (DAMAGED, EXPOSED)


def check(store: Store, found: Findings) -> None:
    """Report a key that can't be used, or that others may read."""
    key = store.keys.now()
    if key.damage:
        found.problem(
            DAMAGED,
            f"The clone key can't be used: {key.damage}. Commands that write refuse.",
            key.path,
            "Put it back from a backup if there is one. Else it is moved aside and another one is made: what sessions "
            "that are open now wrote so far is then no longer told from lines that others forge.",
            mends=True,
        )
    if key.is_exposed:
        found.problem(
            EXPOSED,
            "Other users of this machine can read the clone key, and with it write lines as the sessions of this clone.",
            key.path,
            f"Its mode becomes {clone_key.mode(key.path):o}.",
            mends=True,
        )


def check_sessions(store: Store, found: Findings) -> None:
    """Report sessions that this clone started with a key it no longer has: their lines can't be verified.

    The ledger identifies the lines written here; a peer can't add to it.
    """
    key = store.keys.now()
    if key.mac is None and not key.is_missing:
        return  # damaged, which `check` reports, or another user's
    acknowledged, _ = ledger.acknowledged(store.log.place)
    ids = set()
    for (body,) in store.db().execute("SELECT body FROM line WHERE kind = 'session'"):
        line = str(body).encode("utf-8", "surrogatepass")
        if not is_signed(line) or ledger.digest(line) not in acknowledged:
            continue
        record = records.read_kind("session", line)
        if record is None or record["event"] != "start":
            continue
        if key.mac is None or not key.mac.is_valid(line):
            ids.add(record["session_id"])
    if not ids:
        return
    open_here = sorted(ids.intersection(heartbeats.known_sessions(store)))
    many = "1 session was" if len(ids) == 1 else f"{len(ids)} sessions were"
    what = (
        f"The clone key was {'lost' if key.mac is None else 'replaced'} after {many} started here: what they wrote can no "
        "longer be told from lines that others forge in their names, and forged ones are not reported."
    )
    put_back = "Put the file back from a backup if there is one."
    if not open_here:
        found.note(REPLACED, what, key.path, f"{put_back} They have all ended: nothing else is to do.")
        return
    found.problem(
        REPLACED,
        what,
        key.path,
        f"{put_back} Else start each open session anew ({', '.join(open_here[:NAMED_MAX])}): what it writes then is proven.",
        "gitmem session start",
    )


def fix(store: Store, done: FixResult) -> None:
    """Move a damaged key aside and create a new one; restrict the mode of an exposed key."""
    from ..put_aside import put_aside

    key = store.keys.now()
    if key.damage:
        where = put_aside(store, key.path)
        store.keys.for_writing()
        done.say(DAMAGED, key.path, f"It is {where} now, and a new key was made.")
    if key.is_exposed:
        os.chmod(key.path, clone_key.mode(key.path))
        store.keys.forget()
        done.say(EXPOSED, key.path, "Nobody else may read it now.")
