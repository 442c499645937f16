"""The commands that agents repeat, as both ways in call them: the quick one and the typer app.

Values in, exit status out. Nothing but the standard library and the operations.
"""

from __future__ import annotations

from gitmem.errors import UsageError

from . import stdin
from .render import mail, out, show
from .values import duration, moment, number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitmem.operations.signals import Sent

    from .surroundings import Surroundings

SYNC_EVERY_SECONDS = 5.0
MORE_BYTES = 1_000_000


def inbox(
    at: Surroundings,
    *,
    for_: str | None = None,
    wu: str | None = None,
    lane: str | None = None,
    thread: str | None = None,
    intent: Sequence[str] = (),
    from_: str | None = None,
    since: str | None = None,
    all: bool = False,
    no_mark: bool = False,
    count: bool = False,
    limit: str | None = None,
    max_bytes: str | None = None,
) -> int:
    """Show what is unread, and mark as delivered what was shown."""
    from gitmem.operations import delivery
    from gitmem.operations import inbox as operation
    from gitmem.operations.caller import says_nobody
    from gitmem.operations.target import target

    oldest = moment(since) if since is not None else None
    most = number("--limit", limit, operation.LIMIT)
    bytes_most = number("--max-bytes", max_bytes, operation.MAX_BYTES)
    store = at.store()
    caller = at.caller() if for_ is None else at.caller_if_any()
    nobody = for_ is not None and says_nobody(store, at.who())
    filtered = bool(wu or lane or thread or intent or from_ or since or all)
    at.looks = caller is not None and caller.session_id is not None
    if count and not filtered:
        show.say(at.json, operation.count(store, caller, for_=for_, nobody=nobody), mail.count)
        return 0
    whose = target(store, caller, for_, nobody=nobody)
    marks = not (count or no_mark or whose.peek)
    with delivery.turn(store, whose.reader, wait_seconds=delivery.WAIT_SECONDS if marks else None):
        reading = operation.read(
            store, caller, whose=whose, wu=wu, lane=lane, thread=thread, intent=intent, from_=from_,
            since=oldest, all=all, limit=most, max_bytes=bytes_most, via=out.program(),
        )  # fmt: skip
        if count:
            fitting = operation.Count(reading.reader, len(reading.signals) + reading.more)
            show.say(at.json, fitting, mail.count)
            return 0
        if reading.more:
            typed = (("--for", for_), ("--wu", wu), ("--lane", lane), ("--thread", thread),
                     *(("--intent", each) for each in intent), ("--from", from_), ("--since", since),
                     ("--all", all), ("--no-mark", no_mark))  # fmt: skip
            if no_mark or all or not reading.to_mark:  # the same would be shown again
                most, bytes_most = len(reading.signals) + reading.more, max(bytes_most * 2, MORE_BYTES)
                limit, max_bytes = str(most), str(bytes_most)
            reading.next.insert(0, _again(*typed, ("--limit", limit), ("--max-bytes", max_bytes)))
        note_stranger(at, from_)
        was_read = show.say(at.json, reading, mail.inbox)
        if was_read and not no_mark:
            operation.mark(store, reading)
    return 0


def _again(*typed: tuple[str, str | bool | None]) -> str:
    """The inbox once more, with the options that were typed."""
    from gitmem.operations.quoting import command

    words = [[option] if value is True else [option, str(value)] for option, value in typed if value]
    return command("gitmem", "inbox", *(word for pair in words for word in pair))


def note_stranger(at: Surroundings, name: str | None) -> None:
    """Say so where --from names nobody that the log knows: nothing fits, and that is no news of them."""
    from gitmem.operations import near

    if name and not near.is_known(at.store(), name):
        show.note([f"Nobody called {name} is known; `gitmem roster --all` lists everybody."])


def converged(
    at: Surroundings, id: str, *, wait: str | None = None, strict: bool = False, sync: bool = False
) -> int:
    """0 where every recipient of the root agrees, else 1; `wait` looks again until they do."""
    import time

    from gitmem.operations import threads, waking

    from . import autosync

    waker = waking.Waker(at.store(), waking.Never(), events=False)
    deadline = time.monotonic() + (duration(wait) if wait is not None else 0.0)
    sync_at = time.monotonic() if sync or wait is not None else deadline
    failures: list[str] = []
    while True:
        if time.monotonic() >= sync_at:
            if sync:
                failures, _, _ = _sync(at)
            else:
                autosync.start(at, autosync.LOOK)
            sync_at = time.monotonic() + SYNC_EVERY_SECONDS
        seen = waker.stamp()  # before looking: what comes in between is a change
        found = threads.converged(at.store(), id, strict=strict, caller=at.caller_if_any())
        if found.converged or time.monotonic() >= deadline:
            break
        waker.wait(seen, min(deadline, sync_at) - time.monotonic())
    if at.json:
        found.warnings += failures
    else:
        show.note(failures)
    show.say(at.json, found, mail.converged)
    return 0 if found.converged else 1


def watch(at: Surroundings, **options: str | None) -> int:
    """Show signals as they come; a watch lives long, and starts light."""
    from . import watching

    return watching.watch(at, **options)


def roster(at: Surroundings, query: str | None = None, *, all: bool = False) -> int:
    """Who is at work."""
    from gitmem.operations import roster as operation

    from .render import people

    found = operation.roster(at.store(), query, all=all, caller=at.caller_if_any())
    show.say(at.json, found, people.roster)
    return 0


def signal(
    at: Surroundings,
    message: str,
    *,
    to: Sequence[str] = (),
    broadcast: bool = False,
    wu: str | None = None,
    initiative: str | None = None,
    lane: str | None = None,
    intent: str | None = None,
    requires_ack: bool = False,
    reply_to: str | None = None,
    thread: str | None = None,
    interrupt: str | None = None,
    artifact: str | None = None,
    idempotency_key: str | None = None,
    sync: bool = False,
    allow_unseen: bool = False,
    fuzzy: bool = False,
    allow_secret: bool = False,
    insist: bool = False,
    quiet: bool = False,
) -> int:
    """Record a signal."""
    from gitmem.operations import signals

    text = stdin.text("message") if message == "-" else message
    sent = signals.send(
        at.store(), at.caller(), text, to=to, broadcast=broadcast, wu=wu, initiative=initiative, lane=lane,
        intent=intent, requires_ack=requires_ack, reply_to=reply_to, thread=thread, interrupt=interrupt,
        artifact=artifact, idempotency_key=idempotency_key, allow_unseen=allow_unseen, fuzzy=fuzzy,
        allow_secret=allow_secret, insist=insist,
    )  # fmt: skip
    if sync:
        _publish(at, sent)
    if sent.queued:
        sent.warnings += waiting(at)
    if quiet and not at.json:
        show.say_lines([str(sent.signal["signal_id"])])
    else:
        show.say(at.json, sent, mail.sent)
    return 0


def reply(
    at: Surroundings,
    id: str,
    message: str,
    *,
    agree: bool = False,
    reject: bool = False,
    counter: bool = False,
    to: Sequence[str] = (),
    requires_ack: bool = False,
    idempotency_key: str | None = None,
    sync: bool = False,
    allow_secret: bool = False,
    insist: bool = False,
    quiet: bool = False,
) -> int:
    """Answer a signal; the short form of `signal --reply-to`."""
    decisions = [
        name for name, wanted in (("AGREE", agree), ("REJECT", reject), ("COUNTER", counter)) if wanted
    ]
    if len(decisions) > 1:
        raise UsageError("--agree, --reject and --counter exclude each other; nothing was written.")
    return signal(
        at, message, reply_to=id, intent=decisions[0] if decisions else None, to=to, requires_ack=requires_ack,
        idempotency_key=idempotency_key, sync=sync, allow_secret=allow_secret, insist=insist, quiet=quiet,
    )  # fmt: skip


def _publish(at: Surroundings, sent: Sent) -> None:
    """Sync after a signal. The signal is recorded whatever becomes of it, so that is no failure of the command."""
    from gitmem.operations import history

    failures, sent.pushed, again = _sync(at)
    sent.warnings += failures
    sent.next = [command for command in sent.next if command != "gitmem sync"]
    if sent.pushed:
        one = history.show(at.store(), str(sent.signal["signal_id"]))
        sent.commit, sent.queued = one.commit, one.queued
    elif again:
        sent.next.insert(0, again)


def _sync(at: Surroundings) -> tuple[list[str], bool, str]:
    """Sync with the usual remote, without agreeing to anything.

    Returns: What went wrong, as sentences; whether our lines are there all the same; the command to run if not, or "".
    """
    from gitmem.errors import GitmemError
    from gitmem.operations import agreement, sync

    from .syncing import is_agent

    try:
        synced = sync.sync(at.store())
    except GitmemError as error:
        return [f"Not synced: {error.message}"], False, "gitmem sync"
    good = ("synced", "up-to-date")
    again = synced.next[0] if synced.status == 2 else "gitmem sync"
    if is_agent(at) and synced.status == 2:
        agreement.ask_user(synced)
        again = ""  # its user decides
    failures = [
        f"Not synced with {each.name}: {each.message}" for each in synced.remotes if each.state not in good
    ]
    return failures, all(each.safe for each in synced.remotes), again


def waiting(at: Surroundings) -> list[str]:
    """Where accepted lines wait for a commit, as sentences."""
    folders = [spool.folder for spool in at.store().log.spools if spool.names()]
    where = " or ".join(folders)
    return [f"It waits in {where}: a command that may write to the git folder commits it."] if where else []
