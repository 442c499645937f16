"""Check the clone key, and lines in the name of this clone's sessions: were they written here?"""

from __future__ import annotations

import os
from collections.abc import Iterator

from ... import records
from ...agents import forgeries, heartbeats, unproven_sessions
from ...digests import is_signed
from ...errors import StoreError
from ...log import ledger
from ...signals import history
from ...text.sanitize import sanitize
from ...trust import clone_key
from ..findings import Check, Finding, Fixed, note, problem
from .clone_files import put_aside

TRACED_MAX = 10  # lines whose commit is searched for
NAMED_MAX = 5

DAMAGED, EXPOSED = "clone-key", "clone-key-exposed"


class CloneKey(Check):
    """A key that can't be used, or that others may read."""

    codes = fixes = (DAMAGED, EXPOSED)

    def check(self) -> Iterator[Finding]:
        key = self.store.keys.now()
        if key.damage:
            yield problem(
                DAMAGED,
                f"The clone key can't be used: {key.damage}. Commands that write refuse.",
                key.path,
                "Put it back from a backup if there is one. Else it is moved aside and another one is made: what sessions "
                "that are open now wrote so far is then no longer told from lines that others forge.",
            )
        if key.is_exposed:
            yield problem(
                EXPOSED,
                "Other users of this machine can read the clone key, and with it write lines as the sessions of this clone.",
                key.path,
                f"Its mode becomes {clone_key.mode(key.path):o}.",
            )

    def fix(self) -> Iterator[Fixed]:
        """Move a damaged key aside and create a new one; restrict the mode of an exposed key."""
        key = self.store.keys.now()
        if key.damage:
            where = put_aside(self.store, key.path)
            self.store.keys.for_writing()
            yield DAMAGED, key.path, f"It is {where} now, and a new key was made."
        if key.is_exposed:
            os.chmod(key.path, clone_key.mode(key.path))
            self.store.keys.forget()
            yield EXPOSED, key.path, "Nobody else may read it now."


class ForgedLines(Check):
    """Lines in the name of this clone's sessions that were not written here."""

    codes = ("forged-line",)

    def check(self) -> Iterator[Finding]:
        """Yield each with its file, and some with their commit."""
        for number, each in enumerate(forgeries.all_forged_lines(self.store.db())):
            of = (each.record.get("event") or each.record.get("intent") or "") if each.record else ""
            what = f"{each.kind} {of}".strip()
            brought = self._origin_text(each.line) if number < TRACED_MAX else ""
            yield problem(
                "forged-line",
                f"A line ({what}, {each.at}) says that it is from {each.name}, which belongs to this clone, and was not written "
                f"here. It changes nothing for that session here; other clones count it.{brought}",
                each.where,
                "Somebody who may push to the remote wrote it: find out who with the commit that added the file, and tell the "
                "others. Nothing is taken out of a log.",
                "gitmem log",
            )

    def _origin_text(self, line: bytes) -> str:
        """Return a sentence with the commit that added a line and its author, a name that anybody can choose; or ""."""
        try:
            commit = history.origin_of(self.store, line)
            if commit is None:
                return ""
            author = self.store.git.commit(commit).author
        except StoreError:
            return ""
        return f" Commit {commit[:12]} of {sanitize(f'{author.name} <{author.mail}>')} brought it."


class UnprovenSessions(Check):
    """Sessions that claim to be this clone's without proof."""

    codes = ("not-started-here",)

    def check(self) -> Iterator[Finding]:
        for one in unproven_sessions.list_unproven(self.store):
            yield problem(
                "not-started-here",
                f"The session {one.session_id} ({sanitize(one.name)}) says that it was started in this clone. It has no valid "
                "code, and this clone has no file of it.",
                one.session_id,
                "Nobody acts as it here. Trust what it says no more than any peer; if nobody knows it, tell the others.",
                "gitmem roster --all",
            )


class ReplacedKey(Check):
    """Sessions that this clone started with a key it no longer has: their lines can't be verified."""

    codes = ("clone-key-replaced",)

    def check(self) -> Iterator[Finding]:
        key = self.store.keys.now()
        if key.mac is None and not key.is_missing:
            return  # damaged, which the check of the key reports, or another user's
        ids = self._started()
        if not ids:
            return
        open_here = sorted(ids.intersection(heartbeats.known_sessions(self.store)))
        many = "1 session was" if len(ids) == 1 else f"{len(ids)} sessions were"
        what = (
            f"The clone key was {'lost' if key.mac is None else 'replaced'} after {many} started here: what they wrote can no "
            "longer be told from lines that others forge in their names, and forged ones are not reported."
        )
        put_back = "Put the file back from a backup if there is one."
        if not open_here:
            yield note(
                "clone-key-replaced",
                what,
                key.path,
                f"{put_back} They have all ended: nothing else is to do.",
            )
            return
        yield problem(
            "clone-key-replaced",
            what,
            key.path,
            f"{put_back} Else start each open session anew ({', '.join(open_here[:NAMED_MAX])}): what it writes then is proven.",
            "gitmem session start",
        )

    def _started(self) -> set[str]:
        """Return the sessions of lines that were written here and that the present key did not sign.

        The ledger identifies the lines written here; a peer can't add to it.
        """
        mac = self.store.keys.now().mac
        acknowledged, _ = ledger.acknowledged(self.store.log.repo)
        ids = set()
        for (body,) in self.store.db().execute("SELECT body FROM line WHERE kind = 'session'"):
            line = str(body).encode("utf-8", "surrogatepass")
            if not is_signed(line) or ledger.digest(line) not in acknowledged:
                continue
            record = records.read_kind("session", line)
            if record is None or record["event"] != "start":
                continue
            if mac is None or not mac.is_valid(line):
                ids.add(record["session_id"])
        return ids
