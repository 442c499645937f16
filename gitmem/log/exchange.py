"""Exchange with one remote: fetch, settle, push without force, and again where somebody was faster."""

from __future__ import annotations

import time

from ..errors import GitmemError, RemoteError, StoreError, UsageError
from ..git import remotes
from ..git.port import Draft, Signature
from . import places, ref, settle, trees
from .start import start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .log import Log
    from .places import Tip

ATTEMPTS_MAX = 4
PAUSE_SECONDS = 0.2  # the first pause is at most this; each later one at most twice the one before


class Remote:
    """A remote and what became of the exchange with it.

    Attributes:
        state: synced, up-to-date, offline, rejected, refused or empty.
        received: Lines that came from there.
        sent: Lines that it did not have.
        attempts: How often it was fetched.
        tip: The commit that it has where the log is published, as far as known.
        message: A sentence about it; empty where all is as usual.
    """

    def __init__(self, log: Log, name: str) -> None:
        self.log = log
        self.name = name
        self.url = remotes.push_url(log.place.common, name, log.place.worktree)
        self.prefix = f"{ref.REMOTES_PREFIX}{remotes.encode(name)}/"
        self.state = ""
        self.received = 0
        self.sent = 0
        self.attempts = 0
        self.tip: str | None = None
        self.message = ""
        self.refs: dict[str, str] = {}
        self.tips: list[Tip] = []

    def place(self, name: str) -> str:
        """Our copy of one of its refs."""
        return self.prefix + name.removeprefix("refs/")

    def fetch(self, timeout: float) -> None:
        """Bring its refs. Raises: RemoteError."""
        self.attempts += 1
        fetched = remotes.fetch(self.log.place.common, self.url, self.prefix, timeout)
        self.refs = {self.place(name): oid for name, oid in fetched.refs.items() if places.is_place(name)}

    def remember(self) -> None:
        """Take what it had when it was last fetched."""
        refs = self.log.git.refs(self.prefix)
        self.refs = {name: oid for name, oid in refs.items() if places.is_place(name)}

    def say(self, sentence: str) -> None:
        if sentence not in self.message:
            self.message = f"{self.message} {sentence}".strip()

    def end(self, state: str, sentence: str = "") -> None:
        self.state = state
        if sentence:
            self.say(sentence)


class Exchange:
    """One sync of this clone's log with one or more remotes, the one that history follows first.

    Args:
        timeout: Seconds for each run of git on the network; no new attempt starts after as many.
        allow_foreign: Whether to unite with a log of other projects. That can't be undone.
    """

    def __init__(
        self,
        log: Log,
        *,
        timeout: float,
        allow_foreign: bool = False,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.log = log
        self.timeout = timeout
        self.allow_foreign = allow_foreign
        self.pause = pause
        self.before: list[str] = []

    def run(self, names: Sequence[str], *, push: bool = True, leads: bool = True) -> list[Remote]:
        """Exchange with these remotes.

        Args:
            push: Whether to send; without it lines are only brought.
            leads: Whether history follows the first of them.

        Raises:
            UsageError: `unknown-remote`; `foreign-log`, where the only remote has the log of another project.
            StoreError: Our own log can't be read or moved. A remote's troubles are in its state.
        """
        log = self.log
        found = [Remote(log, name) for name in names]
        settle.drain(log)
        tip = log.git.tip(ref.LOG_REF)
        if tip is not None:
            self.before = [settle.own_tip(log, tip).tree]
        for remote in found:
            self._fetch(remote)
        foreign = [remote for remote in found if not remote.state and not self._judge(remote)]
        if foreign and len(found) == 1:
            raise UsageError(
                foreign[0].message,
                hint="Where it is right nevertheless, `--allow-foreign` unites them for good.",
                code="foreign-log",
                next=["gitmem doctor"],
            )
        for remote in found:
            usable = remote.state in ("", "offline")
            follow = remote is found[0] and leads and usable
            self._one(remote, push=push and not remote.state, follow=follow, everything=found)
        return found

    def _fetch(self, remote: Remote) -> None:
        try:
            remote.fetch(self.timeout)
        except RemoteError as error:
            remote.end("refused" if error.code == "refused" else "offline", error.message)
            remote.remember()

    def _judge(self, remote: Remote) -> bool:
        """Read what the remote has. False where it is the log of another project."""
        log = self.log
        remote.tips, others = places.logs(log, remote.refs, self._trusted())
        for name, why in others.items():
            there = "refs/" + name.removeprefix(remote.prefix)
            remote.say(f"{there} of {remote.name} is not read: {why}.")
        newest = max(remote.tips, key=lambda tip: tip.format.format, default=None)
        if newest is not None:
            try:
                newest.format.refuse_newer()
            except StoreError as error:
                remote.tips = []
                remote.end("refused", f"{remote.name}: {error.message} {error.hint}")
                return True
        ours = self._projects()
        for tip in remote.tips:
            if not self.allow_foreign and not self._is_related(ours, tip):
                remote.tips = []
                remote.end(
                    "refused",
                    f"The log on {remote.name} is of another project than this repository's; nothing was read of it.",
                )
                return False
            ours = ours | tip.projects
        return True

    def _trusted(self) -> list[str]:
        git = self.log.git
        return [oid for name in (ref.PUBLISHED_REF, ref.LOG_REF) if (oid := git.tip(name)) is not None]

    def _projects(self) -> set[str]:
        git = self.log.git
        tip = git.tip(ref.LOG_REF)
        return ref.project_ids(git, git.tree(git.commit(tip).tree)) if tip is not None else set()

    def _is_related(self, ours: set[str], tip: Tip) -> bool:
        if ours and places.related(ours, tip.projects):
            return True
        return places.related(ours | places.own_projects(self.log), tip.projects)

    def _one(self, remote: Remote, *, push: bool, follow: bool, everything: Sequence[Remote]) -> None:
        """Settle with what is known, and push until it is there, at most `ATTEMPTS_MAX` times."""
        log, began = self.log, time.monotonic()
        while True:
            shared = self._shared(remote) if follow else None
            tip = settle.settle(log, shared, self._all_tips(remote, everything))
            if remote.attempts == 1 or not remote.received:
                remote.received = self._count_received(remote)
            if not push or remote.state:
                self._close(remote)
                return
            try:
                if self._push(remote, tip, follow=follow):
                    return
            except RemoteError as error:
                remote.end("refused" if error.code == "refused" else "offline", error.message)
                return
            if remote.attempts >= ATTEMPTS_MAX or time.monotonic() - began > self.timeout:
                remote.end(
                    "rejected",
                    f"Others were faster {remote.attempts} times; what is recorded here stays recorded.",
                )
                return
            self.pause(PAUSE_SECONDS * 2 ** (remote.attempts - 1) * log.random(1)[0] / 255)
            self._fetch(remote)
            if not remote.state:
                self._judge(remote)

    def _close(self, remote: Remote) -> None:
        remote.tip = remote.refs.get(remote.place(self._publish_place()))
        if not remote.state:
            remote.state = "synced" if remote.received else "up-to-date"

    def _publish_place(self) -> str:
        git = self.log.git
        tip = git.tip(ref.LOG_REF)
        return settle.own_tip(self.log, tip).format.publish if tip is not None else ref.BRANCH

    def _shared(self, remote: Remote) -> Tip | None:
        """The tip that history follows: where the log is published, else another place of the remote."""
        best = max((tip.format.rank for tip in remote.tips), default=None)
        for tip in remote.tips:
            if tip.format.rank == best:
                wanted = remote.refs.get(remote.place(tip.format.publish))
                return next((other for other in remote.tips if other.oid == wanted), tip)
        return None

    def _all_tips(self, remote: Remote, everything: Sequence[Remote]) -> list[Tip]:
        """Every log that may be united: of these remotes, and under the other names that this clone has."""
        tips = {tip.oid: tip for other in (remote, *everything) for tip in other.tips}
        fetched = tuple(other.prefix for other in everything)
        rest = {
            name: oid
            for name, oid in places.known(self.log).items()
            if oid not in tips and not (name.startswith(fetched) and not remote.state == "offline")
        }
        found, _ = places.logs(self.log, rest, [*tips, *self._trusted()])
        ours = self._projects().union(*(tip.projects for tip in tips.values()))
        for tip in found:
            if tip.format.format > ref.FORMAT:
                remote.say(f"{tip.name} needs a newer gitmem and was not read.")
            elif self.allow_foreign or self._is_related(ours, tip):
                tips[tip.oid] = tip
                ours |= tip.projects
            else:
                remote.say(f"{tip.name} is the log of another project and was not read.")
        return list(tips.values())
