"""`gitmem hook CLIENT EVENT`, run in this process with a client's input."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from cli import main as front

from ...hook_agents import handed, said
from ..conftest import Run, Said, let_wait

Start = Callable[..., str]


class Hook:
    """Runs hooks of agents in one repository; `hook("codex", "PostToolUse", session="c-1")`."""

    def __init__(
        self,
        repo: Path,
        monkeypatch: pytest.MonkeyPatch,
        capfdbinary: pytest.CaptureFixture[bytes],
        request: pytest.FixtureRequest,
    ) -> None:
        self.repo = repo
        self.state = repo / ".git" / "gitmem"
        self._patch = monkeypatch
        self._capture = capfdbinary
        self._request = request

    def __call__(
        self,
        client: str,
        event: str,
        session: str = "h-1",
        *,
        raw: bytes | None = None,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
        words: Sequence[str] = (),
        **more: object,
    ) -> Said:
        """The exit status and what was printed. Standard error must stay empty: some clients read it."""
        data = (
            json.dumps(said(client, event, session, cwd or self.repo, **more)).encode()
            if raw is None
            else raw
        )
        with self._patch.context() as patch:
            patch.chdir(cwd or self.repo)
            let_wait(self._request, patch)
            for name, value in (env or {}).items():
                patch.setenv(name, value)
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
            self._capture.readouterr()
            status = front.main(["hook", client, event, *words])
            out, err = self._capture.readouterr()
        assert status == 0 and err == b"", err
        return Said(status, out.decode(), err.decode())

    def reads(self, client: str, event: str, session: str = "h-1", **more: object) -> str:
        """The text that reaches the model, or an empty one; the client's schema is checked."""
        out = self(client, event, session, **more).out  # type: ignore[arg-type]
        return handed(client, event, out) if out else ""

    def start(self, client: str, session: str = "h-1", **more: object) -> str:
        """A session of the client begins; the id of ours."""
        event = {"cline": "TaskStart", "opencode": "session.created", "cursor": "sessionStart",
                 "copilot": "sessionStart"}.get(client, "SessionStart")  # fmt: skip
        before = set(self.sessions())
        self(client, event, session, **more)  # type: ignore[arg-type]
        (new,) = set(self.sessions()) - before
        return new

    def sessions(self) -> list[str]:
        """The sessions that have not ended here."""
        folder = self.state / "sessions"
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []

    def flags(self) -> set[str]:
        return (
            {path.name for path in (self.state / "flags").iterdir()}
            if (self.state / "flags").is_dir()
            else set()
        )

    def error(self) -> str:
        path = self.state / "hook-error"
        return path.read_text() if path.exists() else ""


@pytest.fixture
def hook(
    run: Run,
    repo: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
    request: pytest.FixtureRequest,
) -> Hook:
    """Hooks in a repository where somebody has begun a log."""
    assert run("setup").status == 0
    return Hook(repo, monkeypatch, capfdbinary, request)
