"""What every command does at its end for its session: without anything to do it looks at a few files.

It records the commits of its worktree, renews claims and tells of contested ones, and gives notice of unread signals: one line on standard
error, or the field `notice` of an answer in JSON.
"""

from __future__ import annotations

import os
import time

from gitmem.errors import GitmemError
from gitmem.outcome import Outcome

from .render import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gitmem.agents.caller import Caller
    from gitmem.history.commits import Clues
    from gitmem.store import Store

    from .environment import Environment

# The functions of commands that show the signals, print a document, or run for another program.
SILENT = frozenset(
    ("inbox", "watch", "gate", "mcp", "demo", "completion", "context", "recover", "export", "upkeep", "commit_waiting", "note_commits")
)  # fmt: skip
INBOX = "gitmem inbox"
COMMIT_SECONDS = 5.0
ANSWER_SECONDS, PAUSE_SECONDS = 1.0, 0.1  # each look runs git


def note_commits(at: Environment) -> None:
    """Record the commits that were made in this worktree since the last look, if a session runs the command."""
    if at.own_name is not None:
        look_for_commits(at)


def look_for_commits(at: Environment) -> None:
    """Record the commits that were made in this worktree since the last look."""
    from gitmem.agents import commit_stamps

    if commit_stamps.has_news(at.repo):
        from gitmem.history import commits

        commits.try_note(at.store(), _clues(at), seconds=COMMIT_SECONDS)


def look_before_answer(at: Environment) -> bool:
    """Record the new commits of this worktree before an answer that depends on them.

    Without a session it does so only with git's hook: else a session's next command may say more of them.

    Returns:
        Whether the answer may lack some, because their notes are still on the way.
    """
    from gitmem.agents import commit_stamps

    at.store()
    if not commit_stamps.has_news(at.repo) or (at.own_name is None and not commit_stamps.has_hook(at.repo)):
        return False
    return _wait_for_commits(at)


def _wait_for_commits(at: Environment) -> bool:
    """Record the commits of a command's worktree; wait a moment for another process that does so, and for the note of git's hook.

    Returns:
        Whether some may still be missing.
    """
    from gitmem.agents import commit_stamps
    from gitmem.history import commits

    until = time.monotonic() + ANSWER_SECONDS
    while at.repo.worktree is not None:
        try:
            commits.note(at.store(), _clues(at), seconds=ANSWER_SECONDS)
        except (GitmemError, OSError, ValueError, KeyError):
            return False  # they can't be recorded here, now or later
        if not commit_stamps.has_news(at.repo):
            return False
        if time.monotonic() >= until:
            return True
        time.sleep(PAUSE_SECONDS)
    return False


def _clues(at: Environment) -> Clues:
    """Return what tells of whom the commits are. An agent's own command runs in the turn of its session."""
    from gitmem.history.commits import Clues

    return Clues(at.caller_if_any(), in_turn=at.client_session is not None)


def tell_about_claims(at: Environment) -> None:
    """Renew the session's claims and tell it about contested ones. Where it has none, this only tests two files."""
    name = at.own_name or "/"
    paths = (os.path.join(at.repo.state, "claims", each, name) for each in ("due", "notices"))
    if "/" not in name and any(map(os.path.exists, paths)):
        from gitmem.work import claim_work

        caller = at.caller_if_any()
        for line in claim_work.at_command(at.store(), caller) if caller is not None else ():
            output.write_error(output.sanitize(line))


def notice(at: Environment, body: Callable[..., int | None]) -> UnreadNotice | None:
    """Return the notice of the caller's unread signals; None without one, or if the command shows them. Without a flag nothing else is read."""
    name = at.own_name
    if name is None:
        return None
    from gitmem.agents import heartbeats

    if not heartbeats.is_flagged(at.repo.state, name):
        return None
    return None if body.__name__ in SILENT else unread_notice(at, name)


class UnreadNotice(Outcome):
    """How many signals wait for a session, and the command that shows them."""

    def __init__(self, unread: int, wants_answer: int) -> None:
        self.unread = unread
        self.wants_answer = wants_answer
        self.next = output.with_options([INBOX])

    @property
    def line(self) -> str:
        """The notice in one line."""
        wants = "wants" if self.wants_answer == 1 else "want"
        asked = f" ({self.wants_answer} {wants} an answer)" if self.wants_answer else ""
        return f"{self.unread} unread{asked}: {self.next[0]}"


def unread_notice(at: Environment, name: str) -> UnreadNotice | None:
    """Return the notice for the caller, or None. Never raises: the answer matters more.

    Args:
        name: The name of the session's flag, which is raised.
    """
    from gitmem.agents import heartbeats

    try:
        caller = at.caller_if_any()
        if caller is None or heartbeats.is_served(at.repo.state, caller.session_id or name):
            return None
        store = at.store()
        unread = asked = 0
        # A command that did without the latest signals counts without them; only where it knows none, something was new.
        for exact in (True,) if store.was_exact else (False, True):
            unread, asked = store.with_one_snapshot(lambda: _unread_counts(store, caller), exact=exact)
            if unread:
                break
        else:
            from gitmem.agents import delivery

            delivery.clean_queues(store, caller.reader, caller.session_id)
    except Exception:
        return None
    return UnreadNotice(unread, asked) if unread else None


def _unread_counts(store: Store, caller: Caller) -> tuple[int, int]:
    from gitmem.signals.unread_counts import unread_counts

    return unread_counts(store.db(), caller.reader, caller.session_id, caller.workspace, store.now())
