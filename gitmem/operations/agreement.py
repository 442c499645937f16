"""Whether the user has agreed to publish, as syncs and the start of a session ask it."""

from __future__ import annotations

from ..errors import UsageError
from ..text.sanitize import sanitize
from . import autosync

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..log.remote import Remote
    from .store import Store


def may_send(store: Store, *, publish: bool) -> Callable[[Remote], bool]:
    """Return the function that says whether the log may be published on a remote.

    Call it before anything is fetched: it carries over what version 0.1 published.

    Args:
        publish: The user agrees to publish on each remote that is asked about.
    """
    from ..log.lines import format_at
    from ..sync import consent

    place, at = store.place, format_at(store.now())
    consent.carry_over(store.log, at)

    def is_agreed(remote: Remote) -> bool:
        if publish:
            consent.give(place, remote.destination, consent.BY_SYNC, at)
        return consent.is_given(place, remote.destination)

    return is_agreed


def remark(store: Store) -> str | None:
    """Return the sentence for a clone that is to sync by itself and may not publish; None for any other."""
    from ..sync import consent
    from .sync import chosen

    if autosync.interval(store.place) is None:
        return None
    try:
        names, _ = chosen(store, (), all=False)
        url = consent.destination(store.place, names[0])
    except UsageError:
        return None
    if consent.is_given(store.place, url):
        return None
    return (
        f"Automatic sync only fetches: nobody has agreed to publish this log to {sanitize(url)}. "
        "Only your user decides that; `gitmem sync --publish` says yes."
    )


def refuse_urls(store: Store, remotes: Sequence[str]) -> None:
    """Refuse what is no name of a configured remote.

    Raises:
        UsageError: `not-configured`.
    """
    from ..log.remote import configured, shown

    known = configured(store.place) if remotes else []
    for name in remotes:
        if name not in known:
            raise UsageError(
                f"Not a configured remote: {shown(name)}; here only those sync, by name: "
                f"{', '.join(known) or 'there are none'}. Nothing was sent.",
                hint="Ask your user to add it: `git remote add NAME URL`.",
                code="not-configured",
                next=["git remote -v"],
                suggestions=known[:3],
            )
