"""Check automatic sync: its setting, the result of the last sync, and outboxes that it has left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...agents import role_list, vocabulary
from ...errors import UsageError
from ...log import log_refs, ref, tree_union
from ...outcome import command
from ...sync import autosync, consent_messages, remote, whereabouts
from ..findings import SYNC, Check, Finding, note, problem

OFF = (autosync.OFF, "false", "no", "0", "")
MAY_PASS = ("offline", "rejected", "timeout", "empty")

FILE, UNKNOWN = "roles-file", "unknown-role"
COMMAND = "gitmem role check"


class Autosync(Check):
    """An invalid setting, one that can't publish, and the failure of the last sync."""

    codes = ("autosync-setting", "autosync-only-fetches", "sync-failed")

    def check(self) -> Iterator[Finding]:
        text = autosync.configured_interval(self.store.repo)
        if text is not None and text.lower() not in OFF and autosync.seconds(text) is None:
            yield note(
                "autosync-setting",
                f"Invalid interval in {autosync.KEY}: {text!r}. Automatic sync is off.",
                autosync.KEY,
                "Set it again.",
                "gitmem init --autosync 30s",
            )
        remark = consent_messages.consent_remark(self.store)
        if remark is not None:
            yield note(
                "autosync-only-fetches",
                remark,
                autosync.KEY,
                "An agent must ask its user whether others may read this log there, and must not consent for the user.",
            )
        trouble = autosync.last_failure(self.store.repo)
        if trouble is None:
            return
        finding = note if trouble.code in MAY_PASS else problem
        is_on = autosync.interval(self.store.repo) is not None
        again = " It is retried automatically within a few minutes." if is_on else ""
        yield finding(
            "sync-failed",
            f"{trouble.what}, at {trouble.at}: {trouble.message}",
            "",
            f"Local records are kept. Shown until a sync succeeds.{again}",
            self._step(trouble.message),
        )

    def _step(self, message: str) -> str:
        """Return the command that goes on after a failed sync: the repair that its message names, else a sync."""
        try:
            repair = command("gitmem", "sync", "--repair", remote.default_remote(self.store.repo))
        except UsageError:
            return SYNC
        return repair if repair in message else SYNC


class UnreadFetch(Check):
    """Records that the user's git has fetched and no sync has read."""

    codes = ("fetched-unread",)

    def check(self) -> Iterator[Finding]:
        found = whereabouts.unread(self.store)
        if found:
            yield note("fetched-unread", f"{found}.", "", "A sync checks and reads them.", SYNC)


class LeftOutboxes(Check):
    """Outboxes of the last sync without lines that the shared log lacks."""

    codes = ("outbox-left",)

    def check(self) -> Iterator[Finding]:
        left = self._left()
        if left:
            one = len(left) == 1
            yield note(
                "outbox-left",
                f"{len(left)} outbox{'' if one else 'es'} of a remote {'has' if one else 'have'} no lines that the log lacks.",
                left[0],
                "The next sync deletes those that still exist.",
                "gitmem sync",
            )

    def _left(self) -> list[str]:
        git = self.store.git
        shared = git.tip(ref.PUBLISHED_REF)
        if shared is None:
            return []
        left = []
        for name, oid in git.refs(ref.REMOTES_PREFIX).items():
            try:
                if not log_refs.is_outbox(name) or not name.endswith(oid):
                    continue
                if not tree_union.new_lines(git, git.commit(oid).tree, [git.commit(shared).tree]):
                    left.append(name)
            except KeyError:
                continue  # reported by the check of the copies of remote refs
        return left


class RoleFiles(Check):
    """Entries of `.gitmem/roles.toml` and agent files of clients that do not count: one finding for all."""

    codes = (FILE,)

    def check(self) -> Iterator[Finding]:
        problems = role_list.check(self.store).problems
        if problems:
            yield note(
                FILE,
                _first([each.text for each in problems]),
                problems[0].path,
                "This entry or file does not count; everything else does. Correct it.",
                COMMAND,
            )


class UnknownRoles(Check):
    """Sessions whose role or responsibility is not in the vocabulary here, or whose alias has another role now."""

    codes = (UNKNOWN,)

    def check(self) -> Iterator[Finding]:
        found = role_list.check(self.store).unknown
        if found:
            yield note(
                UNKNOWN,
                _first(found),
                vocabulary.FILE,
                f"It is kept and shown. If it is meant, add it to {vocabulary.FILE}.",
                COMMAND,
            )


def _first(found: Sequence[str]) -> str:
    """Return the first sentence with the number of others."""
    return found[0] + (f" {len(found) - 1} more." if found[1:] else "")
