"""Fetch the log refs of a remote separately, skip those that break the fetch, and remember their commits.

One damaged or forbidden object behind any ref makes git reject the whole fetch. So the shared refs are fetched first
and alone, then the outboxes in groups, which get smaller when git rejects one. A sync limits the number of git runs for
this; the remaining outboxes wait for the next sync. Git keeps nothing of a rejected fetch.
"""

from __future__ import annotations

import os
import re
import time

from .. import atomic_write, state_files
from ..errors import RemoteError
from . import queries, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    # Runs git on the network with these arguments and this input.
    Ask = Callable[[Sequence[str], bytes], run.Result]

PATTERNS = ("refs/heads/gitmem*", "refs/gitmem/*")
SHARED = ("refs/heads/gitmem", "refs/gitmem/log")
FILE = os.path.join("gitmem", "refused")
REASONS_MAX = 1_000
KEPT_MAX = 100_000
RUNS_MAX = 40
GROUP = 64  # outboxes in the first group
SECONDS_MAX = 4.0
MISSING = "the remote does not have its objects"
NOT_FETCHED = "it was not fetched yet"
_KNOWN = "git refused its objects in an earlier sync"
_OUTBOX = re.compile(r"refs/(heads/gitmem-outbox-|gitmem/outbox/)([0-9a-f]{40}|[0-9a-f]{64})")
_GONE = re.compile(r"couldn't find remote ref (\S+)")
_REASON_CHARS_MAX = 200
_MISSING = ("not our ref", "unable to read", "remote side", "bad object", "bad pack")
_OBJECTS = (
    *(*_MISSING, "error: object", "fsck", "missing", "index-pack", "unpack", "corrupt"),
    *("did not send all necessary objects", "unresolved deltas", "not a valid object", "pack-objects"),
)

_CUT_OFF = ("early EOF", "unexpected disconnect", "hung up", "RPC failed", "transfer closed", "premature end")


class RefusedRef:
    """The commits that broke a fetch, each with the reason. A file of the clone with at most `KEPT_MAX` rows.

    The newest `REASONS_MAX` rows have git's reason, the others only the commit id.
    """

    def __init__(self, common: str) -> None:
        self._path = os.path.join(common, FILE)
        rows = (row.partition(" ") for row in os.fsdecode(state_files.read(self._path)).splitlines())
        self.why = {oid: why or _KNOWN for oid, _, why in rows if len(oid) in (40, 64)}

    def add(self, found: Mapping[str, str], there: Iterable[str]) -> None:
        """Add commits. If there are too many, remove those first that no ref of the remote (`there`) points to.

        If the file cannot be written, they are found again later.
        """
        if not found.items() - self.why.items():
            return
        new = {**{oid: why for oid, why in self.why.items() if oid not in found}, **found}
        if len(new) > KEPT_MAX:
            kept = set(there)
            gone = [oid for oid in new if oid not in kept]
            for oid in [*gone, *(oid for oid in list(new) if oid in kept)][: len(new) - KEPT_MAX]:
                del new[oid]
        self.why = new
        bare = len(new) - REASONS_MAX
        rows = (
            oid if at < bare or why == _KNOWN else f"{oid} {why}" for at, (oid, why) in enumerate(new.items())
        )
        atomic_write.try_replace(self._path, os.fsencode("\n".join(rows) + "\n"))


class _Fetch:
    """One fetch of one remote: its refs, the rejected ones, and git's errors."""

    def __init__(self, common: str, ask: Ask, head: Sequence[str], url: str, into_prefix: str) -> None:
        self._common = common
        self._ask = ask
        self._head = [*head, "--stdin", "--", url]
        self._prefix = into_prefix
        self.there: dict[str, str] = {}
        self.bad: dict[str, str] = {}

    def into(self, name: str) -> str:
        return self._prefix + name.removeprefix("refs/")

    def names(self, names: Sequence[str]) -> str | None:
        """Fetch these refs together, without those that the remote no longer has. Return None, or git's errors."""
        while names := [name for name in names if name in self.there]:
            given = "".join(f"+{name}:{self.into(name)}\n" for name in names)
            for attempt in range(3):
                done = self._ask(self._head, os.fsencode(given))
                if done.code == 0:
                    return None
                if "cannot lock ref" not in done.err:  # else another sync of this clone is fetching: retry
                    break
                time.sleep(0.05 * attempt)
            gone = _GONE.search(done.err)
            if gone is None or self.there.pop(gone[1], None) is None:
                return done.err
        return None

    def shared(self) -> str | None:
        """Fetch the shared refs. Return git's errors if the remote cannot be reached, else None."""
        names = [name for name in SHARED if name in self.there and name not in self.bad]
        err = self.names(names)
        if err is None:
            return None
        for name in names:
            err = self.names([name])
            if err is not None and not is_about_objects(err):
                return err
            if err is not None:
                self.bad[name] = reason(err)
        return None

    def outboxes(self, names: Sequence[str]) -> None:
        """Fetch outboxes in groups.

        After a rejected group the next is a quarter as large, after a successful one twice as large.
        """
        until = time.monotonic() + SECONDS_MAX
        waiting, size, runs = list(names), GROUP, 0
        while waiting and runs < RUNS_MAX and time.monotonic() < until:
            runs += 1
            group = waiting[:size]
            try:
                err = self.names(group)
            except RemoteError:  # timeout
                return
            if err is None:
                size *= 2
            elif not is_about_objects(err):
                return
            elif len(group) > 1:
                size = max(1, len(group) // 4)
                continue
            else:
                self.bad[group[0]] = reason(err)
            waiting = waiting[len(group) :]

    def prune(self, copies: Iterable[str]) -> None:
        """Delete local copies of refs that the remote no longer has.

        This comes before the fetch, because their names may conflict with new ones.
        """
        have = {self.into(name) for name in self.there}
        gone = [f"delete {name}\n" for name in copies if name not in have and self._is_copy(name)]
        if gone:
            run.run(self._common, ["update-ref", "--stdin"], input=os.fsencode("".join(gone)), check=False)

    def _is_copy(self, name: str) -> bool:
        return name.removeprefix(self._prefix).startswith(("heads/", "gitmem/"))


def fetch(
    common: str, ask: Ask, head: Sequence[str], url: str, into_prefix: str
) -> tuple[dict[str, tuple[str, str]], str | None]:
    """Fetch those log refs of a remote that can be fetched.

    Outboxes that this call did not reach have the reason `NOT_FETCHED`. Their order is random, so that nobody can put
    another clone's outbox last.

    Args:
        ask: Runs git.
        head: Arguments of a fetch, before the URL.
        into_prefix: Prefix of the local copies of the remote's refs.

    Returns:
        Commit and reason by ref, for refs that were not fetched; and git's errors if the remote is offline, else None.
    """
    done = ask(["ls-remote", "--quiet", "--refs", "--", url, *PATTERNS], b"")
    if done.code != 0:
        return {}, done.err
    rows = (line.partition("\t") for line in done.out.decode("utf-8", "surrogateescape").splitlines())
    step = _Fetch(common, ask, head, url, into_prefix)
    step.there = {name: oid for oid, _, name in rows if name in SHARED or _OUTBOX.fullmatch(name)}
    copies = queries.refs_below(common, into_prefix)
    step.prune(copies)
    refused = RefusedRef(common)
    step.bad = {name: refused.why[oid] for name, oid in step.there.items() if oid in refused.why}
    words = step.shared()
    if words is not None:
        return {}, words
    outboxes = [
        name
        for name, oid in step.there.items()
        if name not in SHARED and name not in step.bad and copies.get(step.into(name)) != oid
    ]
    if outboxes:
        import random

        random.SystemRandom().shuffle(outboxes)
        step.outboxes(outboxes)
    found = {step.there[name]: why for name, why in step.bad.items() if why != MISSING}
    refused.add(found, step.there.values())
    have = queries.refs_below(common, into_prefix) if outboxes else {}
    late = [name for name in outboxes if name in step.there and name not in step.bad]
    left = {name: NOT_FETCHED for name in late if have.get(step.into(name)) != step.there[name]}
    return {
        name: (step.there[name], why) for name, why in (step.bad | left).items() if name in step.there
    }, None


def is_about_objects(err: str) -> bool:
    """Return whether a fetch failed because of a ref's objects; a lost connection does not count."""
    return any(words in err for words in _OBJECTS) and not any(words in err for words in _CUT_OFF)


def reason(err: str) -> str:
    """Return in a few words why git rejected a ref."""
    if any(words in err for words in _MISSING):
        return MISSING
    lines = [line for line in err.splitlines() if "error: object" in line or "fsck" in line]
    return run.summary_line("\n".join(lines[:1]) or err)[:_REASON_CHARS_MAX]
