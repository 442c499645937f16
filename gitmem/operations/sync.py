"""Sync: exchange lines with remotes. Nothing else uses the network, but `init` once."""

from __future__ import annotations

from ..errors import UsageError
from ..log import exchange
from ..log.remote import configured, usual
from .outcome import Outcome
from .quoting import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..log.remote import Remote
    from .store import Store

FAILED = ("offline", "rejected", "refused")


class RemoteState(Outcome):
    """What became of the exchange with one remote.

    Attributes:
        state: `synced`, `up-to-date`, `offline`, `rejected` (others pushed first, several times),
            `refused`, or `empty` (it has no branch yet, and a log must not become its default one).
        received: Lines that came from there; they count even where sending failed.
        sent: Lines that it did not have.
        attempts: How often it was asked.
        tip: The commit of the log there, as far as known.
        message: What there is to say about it, or "".
    """

    __slots__ = ("name", "state", "received", "sent", "attempts", "tip", "message")

    def __init__(self, remote: Remote) -> None:
        self.name = remote.shown_name
        self.state = remote.state
        self.received = remote.received
        self.sent = remote.sent
        self.attempts = remote.attempts
        self.tip = remote.tip
        self.message = remote.message


class Synced(Outcome):
    """What became of each remote."""

    __slots__ = ("remotes", "next")

    def __init__(self, remotes: Sequence[RemoteState], next: Sequence[str]) -> None:
        self.remotes = list(remotes)
        self.next = list(next)

    @property
    def status(self) -> int:
        """Exit status: 5 where a remote could not be reached, or refused; nothing is lost then."""
        return 5 if any(remote.state in FAILED for remote in self.remotes) else 0


def sync(
    store: Store,
    remotes: Sequence[str] = (),
    *,
    all: bool = False,
    allow_foreign: bool = False,
    timeout: float = 30.0,
) -> Synced:
    """Bring what remotes have, and send them what they lack.

    Args:
        remotes: Names of remotes; none for the usual one (the branch's upstream, `origin`, or the only one).
            History follows the usual one; another gets its lines in a commit on its own tip.
        all: Every configured remote.
        allow_foreign: Unite with the log of another project too. That can't be undone.
        timeout: Seconds that a remote may keep us waiting each time.

    Raises:
        UsageError: `no-remote`, `which-remote`, `unknown-remote`; nothing was sent.
        StoreError: Our own log can't be read or written; it is as it was.
    """
    names, leads = chosen(store, remotes, all=all)
    store.log.committer = store.log.committer or store.committer()
    found = exchange.exchange(store.log, names, timeout=timeout, leads=leads, allow_foreign=allow_foreign)
    store.refresh()
    states = [RemoteState(remote) for remote in found]
    return Synced(states, _next(states))


def chosen(store: Store, remotes: Sequence[str], *, all: bool) -> tuple[list[str], bool]:
    """The remotes to sync with, and whether history follows the first of them."""
    place = store.place
    try:
        primary: str | None = usual(place)
    except UsageError:
        if not remotes and not all:
            raise
        primary = None
    names = list(dict.fromkeys([*remotes, *(configured(place) if all else ())]))
    if not names and primary is None:
        raise UsageError(
            "This repository has no remote; nothing was sent, and what is recorded stays recorded.",
            hint="`git remote add origin URL` adds one.",
            code="no-remote",
        )
    if primary is not None and (primary in names or not names):
        return [primary, *(name for name in names if name != primary)], True
    return names, primary is None


def _next(states: Sequence[RemoteState]) -> list[str]:
    found = []
    for remote in states:
        if remote.state in ("offline", "rejected"):
            found.append(command("gitmem", "sync", remote.name))
        elif remote.state == "empty":
            found.append(command("git", "push", remote.name, "HEAD"))
        elif remote.state == "refused":
            found.append("gitmem doctor")
    if any(remote.received for remote in states):
        found.append("gitmem inbox")
    return list(dict.fromkeys(found or ["gitmem log"]))[:3]
