"""What records say of who wrote lines, in the forms of other tools: git-ai's notes, and agent-trace records."""

from __future__ import annotations

import json
import uuid
from hashlib import sha256

from .. import __version__
from ..errors import UsageError
from ..git import history
from ..log.lines import format_at
from ..outcome import Outcome, command
from ..text.sanitize import sanitize
from .commits import SECOND
from .line_authors import runs
from .other_tools import (
    AGENT_TRACE,
    AUTHORSHIP,
    GIT_AI,
    REFS,
    TRACE,
    OtherTools,
    is_inside,
    parse_authorship,
    spans,
)
from .why import client_word, tell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ..store import Store
    from .why import Told

    Keys = dict[str, set[int]]


FORMS = (GIT_AI, AGENT_TRACE)
US = "gitmem"
LINES_MAX = 1_000_000  # that a note of ours names
UNKNOWN = "unknown"


class Exported(Outcome):
    """What was exported.

    Attributes:
        form: `git-ai` or `agent-trace`.
        ref: The ref that was written; None for agent-trace.
        commits: The commits with something of sessions.
        records: The records of agent-trace, one for each of these commits.
        remarks: What was left out.
    """

    form: str
    ref: str | None = None
    commits: list[str] = []
    records: list[dict[str, Any]] = []
    remarks: list[str] = []
    next: list[str] = []


def export(store: Store, text: str, form: str, *, folder: str) -> Exported:
    """Write or return what records of sessions say of lines. What only other tools say is theirs to tell.

    Args:
        text: `FILE`, `FILE:LINE` or `FILE:FIRST-LAST`.
        form: One of `FORMS`. `git-ai` writes notes, and none over another tool's.
        folder: The current folder: paths are relative to it.

    Raises:
        UsageError: There is no such form, file or line.
        StoreError: git failed, or did not end in time.
    """
    if form not in FORMS:
        raise UsageError(
            f"Unknown form: {sanitize(form)[:80]}; valid are {' and '.join(FORMS)}.",
            code="bad-export",
            next=[command("gitmem", "why", text, "--export", AGENT_TRACE)],
        )
    with store.one_look():
        answer, told = tell(store, text, folder=folder)
        if answer.path is None:
            raise UsageError(
                "Only lines of a file are exported, not a commit.",
                hint="Use FILE, FILE:LINE or FILE:10-20.",
                code="bad-export",
            )
        found = Exported(form, REFS[GIT_AI] if form == GIT_AI else None)
        if answer.more:
            found.remarks.append(f"{answer.more} more commits are left out: export fewer lines at a time.")
        tools = OtherTools(store)
        for each in told:
            made = {path: keys for path, lines in each.wrote.items() if (keys := _by_session(lines.items()))}
            if not made:
                continue
            if form == AGENT_TRACE:
                found.records.append(_record(store, each, made))
            elif not _write_note(store, tools, each, made, found.remarks):
                continue
            found.commits.append(each.story.commit)
    if not found.commits and not found.remarks:
        found.remarks.append("No record of a session names these lines: there is nothing to export.")
    if form == GIT_AI and found.commits:
        found.next.append(command("git", "notes", f"--ref={REFS[GIT_AI]}", "show", found.commits[0]))
    return found


def _by_session(lines: Iterable[tuple[int, Any]]) -> Keys:
    """Return the lines of each session; a line of several, of which nobody knows whose it is, is left out."""
    found: Keys = {}
    for number, author in lines:
        if len(author.made) == 1 and author.is_certain:
            found.setdefault(next(iter(author.made)), set()).add(number)
    return found


def _agent(store: Store, session: str, told: Told) -> tuple[str, str | None]:
    """Return the coding agent and the model of a session."""
    from ..agents import presence

    one = presence.get(store, session)
    record: Mapping[str, str] = one.record if one is not None else {}
    maker = next(each for each in told.story.made_by if session in (each.session_id, each.agent))
    return client_word(record.get("client") or maker.agent.partition(":")[0]) or US, record.get("model")


def _record(store: Store, told: Told, made: Mapping[str, Keys]) -> dict[str, Any]:
    """Return the record of agent-trace about a commit: the same for the same lines."""
    story = told.story
    related = [("agreement", each.thread_id) for each in story.threads if each.agreed_then or each.agreed_on]
    related += [("task", story.task.task_id)] if story.task is not None else []
    related += [("memory", each.id) for each in story.nodes if each.known_then]
    files = []
    for path, sessions in made.items():
        talks = []
        for session, numbers in sessions.items():
            model = _agent(store, session, told)[1]
            who = {"type": "ai", **({"model_id": model[:250]} if model else {})}
            talks.append({
                "url": f"{US}:{session}", "contributor": who,
                "ranges": [{"start_line": first, "end_line": last} for first, last in runs(sorted(numbers))],
                "related": [{"type": kind, "url": f"{US}:{id}"} for kind, id in related],
            })  # fmt: skip
        files.append({"path": path, "conversations": talks})
    name = json.dumps([story.commit, files])
    return {
        "version": TRACE, "id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{US}:{name}")), "timestamp": format_at(told.facts.committed * SECOND),
        "vcs": {"type": "git", "revision": story.commit}, "tool": {"name": US, "version": __version__}, "files": files,
    }  # fmt: skip


def _write_note(
    store: Store, tools: OtherTools, told: Told, made: Mapping[str, Keys], remarks: list[str]
) -> bool:
    """Write the note of git-ai about a commit, with what a note of ours has already; return False if another tool's stays."""
    commit = told.story.commit
    files: dict[str, Keys] = {}
    sessions: dict[str, Any] = {}
    if tools.has_note(GIT_AI, commit):
        try:
            _read_ours(tools.note(GIT_AI, commit) or b"", files, sessions)
        except (ValueError, RecursionError):
            remarks.append(f"The note of another tool about {commit[:12]} stays as it is.")
            return False
    for path, keys in made.items():
        if not is_inside(path) or '"' in path or not path.isprintable():
            remarks.append(f"git-ai cannot name the file {json.dumps(path)}: it is left out.")
            continue
        mine = files.setdefault(path, {})
        for session, numbers in keys.items():
            client, model = _agent(store, session, told)
            name = f"s_{_hash(f'{client}:{session}')}"
            sessions[name] = {"agent_id": {"tool": client, "id": session, "model": model or UNKNOWN}}
            for others in mine.values():
                others -= numbers
            mine.setdefault(f"{name}::t_{_hash(commit + session)}", set()).update(numbers)
    lines: list[str] = []
    for path, keys in sorted(files.items()):
        some = [f"  {key} {_format(numbers)}" for key, numbers in keys.items() if numbers]
        lines += [f'"{path}"' if " " in path else path, *some] if some else []
    if not lines:
        return False
    metadata = {
        "schema_version": AUTHORSHIP, "git_ai_version": f"{US}/{__version__}", "base_commit_sha": commit, "prompts": {}, "sessions": sessions,
    }  # fmt: skip
    note = "\n".join([*lines, "---", json.dumps(metadata, indent=2)])
    history.write_note(store.repo.common, REFS[GIT_AI], commit, note.encode())
    return True


def _read_ours(data: bytes, files: dict[str, Keys], sessions: dict[str, Any]) -> None:
    """Add what a note of ours has.

    Raises:
        ValueError: It is not ours, or cannot be read.
    """
    head, metadata = parse_authorship(data)
    if not str(metadata.get("git_ai_version")).startswith(f"{US}/"):
        raise ValueError("another tool's")
    if isinstance(metadata.get("sessions"), dict):
        sessions.update(metadata["sessions"])
    keys: Keys = {}
    count = 0
    for line in head:
        if not line.startswith("  "):
            keys = files.setdefault(line.strip('"'), {})
            continue
        key, _, text = line[2:].partition(" ")
        for first, last in spans(text):
            count += last - first + 1
            if count > LINES_MAX:
                raise ValueError("too many lines")
            keys.setdefault(key, set()).update(range(first, last + 1))


def _format(numbers: Iterable[int]) -> str:
    return ",".join(
        str(first) if first == last else f"{first}-{last}" for first, last in runs(sorted(numbers))
    )


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:14]
