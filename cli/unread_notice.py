"""The notice of unread signals: one line on standard error, or the field `notice` of an answer in JSON.

Commands and tools import this module only while the flag of the session is raised (`agents.delivery`).
"""

from __future__ import annotations

from gitmem.agents import delivery
from gitmem.clients.hooks import hook_state
from gitmem.outcome import Outcome
from gitmem.signals.unread_counts import unread_counts

from .render import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gitmem.agents.caller import Caller
    from gitmem.store import Store

    from .environment import Environment

# The functions of commands that show the signals, print a document, or run for another program.
SILENT = frozenset(
    ("inbox", "watch", "gate", "mcp", "demo", "completion", "context", "recover", "export", "upkeep", "commit_waiting", "note_commits")
)  # fmt: skip
INBOX = "gitmem inbox"


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


def of_command(at: Environment, name: str, body: Callable[..., object]) -> UnreadNotice | None:
    """Return the notice for a command; None if it shows signals itself, or if hooks show them after it.

    Args:
        name: The name of the session's flag.
        body: The command's function.
    """
    return None if body.__name__ in SILENT else find(at, name)


def find(at: Environment, name: str) -> UnreadNotice | None:
    """Return the notice for the caller, or None. Never raises: the answer matters more.

    Args:
        name: The name of the session's flag, which is raised.
    """
    try:
        caller = at.caller_if_any()
        if caller is None or hook_state.is_served(at.repo.state, caller.session_id or name):
            return None
        store = at.store()
        unread, asked = store.with_one_snapshot(lambda: _counts(store, caller), exact=True)
        if not unread:
            delivery.clean_queues(store, caller.reader, caller.session_id)
    except Exception:
        return None
    return UnreadNotice(unread, asked) if unread else None


def _counts(store: Store, caller: Caller) -> tuple[int, int]:
    return unread_counts(store.db(), caller.reader, caller.session_id, caller.workspace, store.now())
