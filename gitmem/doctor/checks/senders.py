"""Check the clone key, and lines in the name of this clone's sessions: were they written here?"""

from __future__ import annotations

import os
from collections.abc import Iterator

from ... import records
from ...agents import forgeries, heartbeats, roster
from ...digests import is_signed
from ...errors import StoreError
from ...log import ledger
from ...signals import history
from ...text.sanitize import sanitize
from ...trust import clone_key
from ..findings import Check, Finding, Fixed, note, problem
from .clone_files import move_aside

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
                f"Cannot use the clone key: {key.damage}. Commands that write fail.",
                key.path,
                "Restore it from a backup if there is one. Otherwise --fix moves it aside and creates a new key: records that sessions "
                "open now have written can then not be distinguished from forged records.",
            )
        if key.is_exposed:
            yield problem(
                EXPOSED,
                "Other users of this machine can read the clone key and use it to write records as sessions of this clone.",
                key.path,
                f"--fix sets its mode to {clone_key.mode(key.path):o}.",
            )

    def fix(self) -> Iterator[Fixed]:
        """Move a damaged key aside and create a new one; restrict the mode of an exposed key."""
        key = self.store.keys.now()
        if key.damage:
            where = move_aside(self.store, key.path)
            self.store.keys.for_writing()
            yield DAMAGED, key.path, f"Moved to {where}; a new key was created."
        if key.is_exposed:
            os.chmod(key.path, clone_key.mode(key.path))
            self.store.keys.forget()
            yield EXPOSED, key.path, "Other users can no longer read it."


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
                f"A record ({what}, {each.at}) claims to be from {each.name} of this clone but was not written "
                f"here. It has no effect here; other clones count it.{brought}",
                each.where,
                "Somebody with push access to the remote wrote it: find the author with the commit that added the file, and inform the "
                "others. Records cannot be removed from a log.",
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
        return f" Commit {commit[:12]} of {sanitize(f'{author.name} <{author.mail}>')} added it."


class UnprovenSessions(Check):
    """Sessions that claim to be this clone's without proof."""

    codes = ("not-started-here",)

    def check(self) -> Iterator[Finding]:
        for one in roster.list_unproven(self.store):
            yield problem(
                "not-started-here",
                f"Session {one.session_id} ({sanitize(one.name)}) claims to have been started in this clone. It has no valid "
                "authentication code and no local file.",
                one.session_id,
                "No process here can act as it. Trust it no more than any peer; if it is unknown to your team, inform the others.",
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
            f"The clone key was {'lost' if key.mac is None else 'replaced'} after {many} started here: their records can no "
            "longer be distinguished from forged ones, and forged ones are not reported."
        )
        put_back = "Restore the file from a backup if there is one."
        if not open_here:
            yield note(
                "clone-key-replaced",
                what,
                key.path,
                f"{put_back} All of them have ended: no other action is needed.",
            )
            return
        yield problem(
            "clone-key-replaced",
            what,
            key.path,
            f"{put_back} Otherwise restart each open session ({', '.join(open_here[:NAMED_MAX])}): its new records are then signed.",
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
