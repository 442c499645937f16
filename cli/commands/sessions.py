"""`gitmem session`, `roster`, `whoami` and `role`."""

from __future__ import annotations

from functools import partial

from gitmem.errors import UsageError
from gitmem.outcome import command

from ..environment import Environment
from ..render import output, sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    from .options import (
        MODEL,
        PLAIN,
        ActualRole,
        ActualScope,
        Argument,
        Capabilities,
        Client,
        Done,
        Everyone,
        Flag,
        Identity,
        Lane,
        Milestone,
        Model,
        Name,
        Option,
        RosterLimit,
        Summary,
        Wu,
    )


def start(
    at: Environment,
    agent_identity: Identity = None,
    name: Name = None,
    wu: Wu = None,
    lane: Lane = None,
    client: Client = None,
    role: ActualRole = None,
    scope: ActualScope = None,
    model: Model = None,
    capabilities: Capabilities = None,
) -> None:
    """Start a session in this worktree, with a display name that others can send to."""
    from gitmem.agents import lifecycle
    from gitmem.sync import sync_remotes

    started = lifecycle.start(
        at.store(), at.who(), agent_identity=agent_identity, name=name, wu=wu, lane=lane,
        client=client, role=role, scope=scope, model=model, capabilities=capabilities,
    )  # fmt: skip
    started.add_remark(sync_remotes.consent_remark(at.store()))
    acting = at.caller_if_any()
    if acting is None or acting.session_id != started.session_id:  # as for a person in a terminal
        where = "In this terminal" if acting is not None and acting.source == "terminal" else "Here"
        still = (
            f"{where} you are still {acting.name or acting.reader}" if acting else "Here you are nobody yet"
        )
        started.add_remark(f"{still}; to act as {started.display_name}: {started.next[0]}")
        # Without --as they would act as somebody else until the export.
        acts_as = f"gitmem --as {started.session_id} session set"
        started.next = [
            each.replace("gitmem session set", acts_as)
            for each in started.next
            if not each.startswith("gitmem inbox")
        ]
    if at.json:
        at.answer(started, sessions.session)
    else:
        output.write_lines(sessions.started(started))


def change(
    at: Environment,
    agent_identity: Identity = None,
    name: Name = None,
    wu: Wu = None,
    lane: Lane = None,
    role: ActualRole = None,
    scope: ActualScope = None,
) -> None:
    """Change the name, work unit, lane, role or scope of your session; an empty value of all but the name clears it."""
    from gitmem.agents import lifecycle

    changed = lifecycle.change(
        at.store(),
        at.caller(),
        agent_identity=agent_identity,
        name=name,
        wu=wu,
        lane=lane,
        role=role,
        scope=scope,
    )
    at.answer(changed, partial(sessions.session, head="" if at.as_ else "You are "))


def note(
    at: Environment,
    text: Annotated[str, Argument("TEXT", "Your current activity in one line; '' clears it."), PLAIN],
    milestone: Milestone = False,
) -> None:
    """Set your current activity; the roster and your signals show it."""
    from gitmem.signals import announcements

    changed = announcements.change_session(at.store(), at.caller(), activity=text, milestone=milestone)
    at.answer(changed, partial(sessions.session, head="" if at.as_ else "You are "))


def end(
    at: Environment,
    summary: Summary = None,
    done: Done = False,
    anyway: Annotated[
        str | None, Option("--anyway", "REASON", "Pass the checkpoint gate; it is recorded.")
    ] = None,
) -> None:
    """End your session and release its name."""
    from gitmem.work import give_handoff

    ended = give_handoff.end_session(at.store(), at.caller(), summary=summary, done=done, reason=anyway)
    if at.session is None:
        ended.next.remove("unset GITMEM_SESSION")
    at.answer(ended, sessions.ended)


def roster(
    at: Environment,
    query: Annotated[
        str | None, Argument("QUERY", "A name or part of one; similar names match."), PLAIN
    ] = None,
    all: Everyone = False,
    limit: RosterLimit = None,
) -> None:
    """List active sessions with their work, worktree and last activity."""
    from gitmem.agents import roster as operation
    from gitmem.work import handoffs

    from ..values import number

    most = number("--limit", limit, operation.SHOWN)
    at.store().asks_once = True
    found = operation.roster(at.store(), query, all=all, caller=at.caller_if_any(), limit=most)
    handoffs.add_to(at.store(), found)
    if found.more:
        words = [*([query] if query else []), *(["--all"] if all else [])]
        found.next.append(
            command("gitmem", "roster", *words, "--limit", str(len(found.sessions) + found.more))
        )
    at.answer(found, sessions.roster)


def whoami(at: Environment) -> None:
    """Show your session, identity and display name."""
    from gitmem.agents import roster as operation

    at.store().asks_once = True
    at.answer(operation.whoami(at.store(), at.caller()), sessions.whoami)


def trust(
    at: Environment,
    writer: Annotated[
        str | None, Argument("WRITER", "Another key, as this command shows it on its machine.")
    ] = None,
    only: Annotated[
        list[str] | None,
        Option(
            "--only",
            "WORDS",
            "An agent or person of yours that it may write as (default: all); may be repeated.",
        ),
    ] = None,
    accept: Annotated[
        bool, Flag("--accept", "Go on here as WRITER, which lets you; never let it act as you.")
    ] = False,
    yes: Annotated[bool, Flag("--yes", "Do not ask.")] = False,
    sign: Annotated[
        bool, Flag("--sign", "Let git's SSH signing key vouch for the key here; see .gitmem/signers.")
    ] = False,
    make_key: Annotated[
        str | None, Option("--make-key", "PATH", "Only make a key file there, for a container or a CI.")
    ] = None,
) -> None:
    """Show which key writes here. With WRITER: let that key act as you. With --accept: go on here as WRITER, which lets you.

    Run it first where you are already known, with the key of the new machine; then there with --accept and the key that you are known under.
    """
    from gitmem.agents import other_keys as operation

    from .. import syncing
    from ..values import words

    if make_key is not None:
        if writer or only or accept or sign:
            raise _misused("--make-key goes with no writer and no other option.")
        import os

        from gitmem.trust import keys

        at.answer(keys.make_key_file(make_key, os.urandom), sessions.made_key)
        return
    if sign and (writer or only or accept):
        raise _misused("--sign is about the key here: give it without WRITER, --only and --accept.")
    if (only or accept) and writer is None:
        raise _misused(f"{'--only' if only else '--accept'} needs a writer.")
    store = at.store()
    if sign:
        step = operation.endorsement(store)
    elif writer is None:
        at.answer(operation.listing(store), sessions.trust)
        return
    else:
        step = operation.step(store, writer, only or (), accept=accept)
        if step.event and not yes:
            options = words({"--only": only, "--accept": accept})
            refused = f"{step.question} Nothing was written, because nobody was asked."
            error = UsageError(
                refused,
                hint="Add --yes if you want that.",
                code="not-confirmed",
                next=[command("gitmem", "trust", writer, *options, "--yes")],
            )
            syncing.confirm(at, step.question, error)
    at.answer(operation.record(store, at.caller_if_any(), step), sessions.trust)


def _misused(what: str) -> UsageError:
    return UsageError(f"{what} Nothing was written.", code="usage", next=["gitmem trust --help"])


def role(
    at: Environment,
    role: Annotated[
        str | None, Argument("[ROLE]", "A role, an alias or the beginning of one."), MODEL
    ] = None,
    check: Annotated[
        bool, Flag("--check", "Exit 1 if roles of the project, of clients' files or of sessions are wrong.")
    ] = False,
) -> int:
    """List the roles, who holds them, and the names that mean them; or show one."""
    from gitmem.agents import roster

    if role is not None and check:
        raise UsageError("--check checks all roles; leave out the role. Nothing was written.")
    if role is not None:
        at.answer(roster.role(at.store(), role), sessions.role)
        return 0
    if not check:
        at.answer(roster.roles(at.store()), sessions.roles)
        return 0
    found = roster.role_check(at.store())
    at.answer(found, sessions.role_checked)
    return 1 if found.problems or found.unknown else 0
