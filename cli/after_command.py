"""What every command does at its end for its session: without anything to do it looks at a few files."""

from __future__ import annotations

import os

from .render import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .environment import Environment
    from .unread_notice import UnreadNotice


def note_commits(at: Environment) -> None:
    """Record the commits that were made in this worktree since the last look, if a session runs the command."""
    if at.own_name is not None:
        look_for_commits(at)


def look_for_commits(at: Environment) -> None:
    """Record the commits that were made in this worktree since the last look."""
    from gitmem.agents import commit_stamps

    if commit_stamps.has_news(at.repo):
        from . import commit_notes

        commit_notes.of_command(at)


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
    from . import commit_notes

    return commit_notes.before_answer(at)


def tell_about_claims(at: Environment) -> None:
    """Renew the session's claims and tell it about contested ones. Where it has none, this only tests two files."""
    name = at.own_name or "/"
    paths = (os.path.join(at.repo.state, "claims", each, name) for each in ("due", "notices"))
    if "/" not in name and any(map(os.path.exists, paths)):
        from gitmem.claims import renewals

        caller = at.caller_if_any()
        for line in renewals.at_command(at.store(), caller) if caller is not None else ():
            output.write_error(output.sanitize(line))


def notice(at: Environment, body: Callable[..., int | None]) -> UnreadNotice | None:
    """Return the notice of the caller's unread signals; None without one. Without a flag nothing else is read."""
    name = at.own_name
    if name is None:
        return None
    from gitmem.agents import heartbeats

    if not heartbeats.is_flagged(at.repo.state, name):
        return None
    from . import unread_notice

    return unread_notice.of_command(at, name, body)
