"""Checks of the consent to publish, and messages about it, for syncs and the start of a session."""

from __future__ import annotations

from ..errors import UsageError
from ..outcome import command
from ..text.sanitize import sanitize
from . import autosync

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..store import Store
    from .remote import Remote
    from .sync_result import RemoteResult, SyncResult

UNSENT = (
    "offline",
    "rejected",
    "refused",
    "empty",
)  # states of a remote that did not receive the records of this clone


def may_send(store: Store, *, publish: bool) -> Callable[[Remote], bool]:
    """Return the function that decides whether the log may be published on a remote.

    Args:
        publish: The user agrees to publish on each remote that the function is called with.
    """
    from ..log.lines import format_at
    from . import consent

    repo, at = store.repo, format_at(store.now())

    def is_agreed(remote: Remote) -> bool:
        if publish:
            consent.give_consent(repo, remote.destination, consent.BY_SYNC, at)
        return consent.is_given(repo, remote.destination)

    return is_agreed


def consent_remark(store: Store) -> str | None:
    """Return a remark if this clone syncs automatically but may not publish; else None."""
    from . import consent
    from .remote import choose

    if autosync.interval(store.repo) is None:
        return None
    try:
        names, _ = choose(store, (), all=False)
        url = consent.destination(store.repo, names[0])
    except UsageError:
        return None
    if consent.is_given(store.repo, url):
        return None
    return (
        f"Automatic sync only fetches: nobody has agreed to publish this log to {sanitize(url)}. "
        "Only your user may decide this; `gitmem sync --publish` gives consent."
    )


def init_command(store: Store) -> str:
    """Return the `init` command that installs missing parts and does not change the consent to publish."""
    from . import consent
    from .remote import choose

    try:
        names, _ = choose(store, (), all=False)
        url = consent.destination(store.repo, names[0])
    except UsageError:
        return "gitmem init --no-publish"
    return "gitmem init" if consent.is_given(store.repo, url) else "gitmem init --no-publish"


def reword_for_agent(synced: SyncResult) -> None:
    """Reword a result for an agent: only its user decides whether to publish, so `next` does not propose it."""
    for each in synced.remotes:
        if each.state == "consent-needed":
            own = command("gitmem", "sync", "--publish", each.name)
            does = own if own in synced.next else "gitmem sync --publish"
            each.message += f" Ask your user whether it may be published there; after a yes: `{does}`."
    synced.next = [each for each in synced.next if "--publish" not in each.split()]


def report_consent(store: Store, remotes: Sequence[RemoteResult]) -> None:
    """Add to the messages of remotes that received nothing that consent to publish there was recorded."""
    from . import consent

    for each in remotes:
        if each.state in UNSENT and consent.is_given(store.repo, each.url):
            each.message += (
                f" You have agreed to publish to {sanitize(each.url)}: local records are sent when it is reachable."
                if each.state == "offline"
                else f" You have agreed to publish to {sanitize(each.url)}: the next successful sync sends the local records."
            )
            each.message = each.message.strip()


def reject_unconfigured(store: Store, remotes: Sequence[str]) -> None:
    """Reject names that are not those of a configured remote.

    Raises:
        UsageError: `not-configured`.
    """
    from .remote import configured, display_name

    known = configured(store.repo) if remotes else []
    for name in remotes:
        if name not in known:
            raise UsageError(
                f"Not a configured remote: {display_name(name)}; choose from: "
                f"{', '.join(known) or 'there are none'}. Nothing was sent.",
                hint="Ask your user to add it: `git remote add NAME URL`.",
                code="not-configured",
                next=["git remote -v"],
                suggestions=known[:3],
            )
