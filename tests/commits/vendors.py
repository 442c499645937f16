"""What other tools leave in a repository about who wrote lines, in the forms of git-ai and agent-trace."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from .people import git

TRACES = ".agent-trace/traces.jsonl"


def session_key(client: str, session: str) -> str:
    return f"s_{sha256(f'{client}:{session}'.encode()).hexdigest()[:14]}"


def authorship(
    commit: str, files: Mapping[str, str], *, client: str = "cursor", session: str = "talk-1", **more: Any
) -> str:
    """A note of git-ai: `files` are ranges such as `1-4,9` by path."""
    key = session_key(client, session)
    head = [line for path, ranges in files.items() for line in (path, f"  {key}::t_9f8e7d6c5b4a32 {ranges}")]
    metadata = {
        "schema_version": "authorship/3.0.0", "git_ai_version": "1.6.24", "base_commit_sha": commit, "prompts": {},
        "sessions": {key: {"agent_id": {"tool": client, "id": session, "model": "gpt-5"}}}, **more,
    }  # fmt: skip
    return "\n".join([*head, "---", json.dumps(metadata, indent=2)])


def annotate(repo: Path, commit: str, note: str | bytes, ref: str = "ai") -> None:
    where = repo / ".git" / "a-note"
    where.write_bytes(note.encode() if isinstance(note, str) else note)
    blob = git(repo, "hash-object", "-w", "--", str(where)).strip()
    git(repo, "notes", f"--ref={ref}", "add", "-f", "-C", blob, commit)


def trace(
    commit: str,
    path: str,
    ranges: Sequence[tuple[int, int]],
    *,
    client: str = "windsurf",
    version: str = "0.1.0",
) -> dict[str, Any]:
    """A record of agent-trace."""
    spans = [{"start_line": first, "end_line": last} for first, last in ranges]
    talk = {
        "url": "https://example.org/talk",
        "contributor": {"type": "ai", "model_id": "openai/gpt-5"},
        "ranges": spans,
    }
    return {
        "version": version, "id": str(uuid.UUID(int=7)), "timestamp": "2026-11-01T10:00:00Z", "vcs": {"type": "git", "revision": commit},
        "tool": {"name": client}, "files": [{"path": path, "conversations": [talk]}],
    }  # fmt: skip


def append(repo: Path, *records: Any) -> Path:
    where = repo / TRACES
    where.parent.mkdir(exist_ok=True)
    with where.open("a") as file:
        file.writelines(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in records)
    return where
