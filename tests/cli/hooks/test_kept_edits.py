"""Inputs of edits that the hook script keeps in a worktree with several sessions: who edited what, at the end of a turn."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pytest

from cli.hooks import tool_use
from gitmem.agents.edited_paths import INPUT_MAX_BYTES
from gitmem.clients import events

from ...hook_agents import editing, said
from .conftest import Hook

CLIENTS = [each for each in events.EVENTS if events.names(each, events.EDIT) and each != "cline"]
LONG = 'é\\"\n' * INPUT_MAX_BYTES


class Kept:
    """A worktree with two sessions and the inputs that its hook script has kept."""

    def __init__(self, hook: Hook, client: str) -> None:
        self.hook, self.client = hook, client
        hook.start("codex", session="other")
        self.session = hook.start(client)
        self.folder = hook.state / "edits" / "inputs" / "in-.git"
        assert self.folder.is_dir()

    def input(self, path: str, **more: object) -> bytes:
        event = events.names(self.client, events.EDIT)[0]
        return json.dumps(
            said(self.client, event, "h-1", self.hook.repo, **editing(self.client, path), **more)
        ).encode()

    def keep(self, data: bytes, name: str = "+1") -> None:
        (self.folder / f"{self.client}{name}").write_bytes(data[:INPUT_MAX_BYTES])

    def noted(self, session: str | None = None) -> list[str]:
        """The paths that are noted for a session after the end of a turn."""
        self.hook(self.client, events.names(self.client, events.STOP)[0], words=["edits"])
        assert self.hook.error() == "" and list(self.folder.iterdir()) == []
        path = self.hook.state / "edits" / "by" / (session or self.session)
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def kept(hook: Hook) -> Callable[..., Kept]:
    return lambda client="claude-code": Kept(hook, client)


@pytest.mark.parametrize("client", [each for each in CLIENTS if events.names(each, events.STOP)])
def test_what_a_session_has_edited_is_noted_at_the_end_of_a_turn(
    kept: Callable[..., Kept], client: str
) -> None:
    place = kept(client)
    place.keep(place.input("src/a.py"))
    place.keep(place.input("docs/b.md"), "+2")
    assert sorted(place.noted()) == ["docs/b.md", "src/a.py"]


def test_an_input_that_is_cut_still_names_its_path(kept: Callable[..., Kept]) -> None:
    """Clients name the path before the content; where an escape or a key is cut does not matter."""
    place = kept()
    call = said("claude-code", "PreToolUse", "h-1", place.hook.repo, tool_name="Write")
    call["tool_input"] = {"file_path": "src/long.py", "content": LONG}
    for cut in range(20):
        place.keep(json.dumps(call).encode()[: INPUT_MAX_BYTES - cut], f"+{cut}")
    assert place.noted() == ["src/long.py"]


@pytest.mark.parametrize(
    "more",
    ['"content": "', '"content"', '"con', '"content": tr', '"content": [{"a": 1}, ', '"x": "\\u00', ""],
)
def test_wherever_an_input_is_cut_its_beginning_is_read(more: str) -> None:
    text = '{"session_id": "h-1", "tool_input": {"file_path": "a\\"b.py", ' + more
    assert tool_use.beginning(text.encode())["tool_input"]["file_path"] == 'a"b.py'  # type: ignore[index]


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[1", b"\xff\xfe", b"{" * 16_000, b'"' * 16_000, b"[" * 16_000, b"nul"]
)
def test_what_is_no_input_is_removed(kept: Callable[..., Kept], data: bytes) -> None:
    place = kept()
    place.keep(data)
    assert place.noted() == []


def test_a_kept_input_of_a_session_by_variable_is_its_own(
    kept: Callable[..., Kept], start: Callable[..., str]
) -> None:
    """Of a session that no client has started; the name of a client's session, or of none, counts for nothing."""
    place = kept()
    named = start("Bohr")
    data = place.input("src/a.py").replace(b'"h-1"', b'"unknown"')
    for name in (named, place.session, "nobody", "..", ""):
        place.keep(data, f"+{name}+1")
    assert place.noted() == []
    assert place.noted(named) == ["src/a.py"]


def test_files_of_others_in_the_folder_name_nobody(kept: Callable[..., Kept]) -> None:
    """A pipe without a writer, a client that does not exist, and paths out of the repository."""
    place = kept()
    os.mkfifo(place.folder / "claude-code+pipe+1")
    (place.folder / "nobody++1").write_bytes(place.input("src/a.py"))
    place.keep(place.input("/etc/passwd"), "++3")
    place.keep(place.input("../other/x.py"), "++4")
    assert place.noted() == []


def test_a_link_in_the_place_of_the_folder_is_not_followed(kept: Callable[..., Kept]) -> None:
    """Another user of the repository may have put it there: no file of this user is read, written or removed."""
    place = kept()
    own = place.hook.repo.parent / "own"
    own.mkdir()
    (own / "claude-code++1").write_bytes(place.input("src/a.py"))
    place.folder.rmdir()
    place.folder.symlink_to(own)
    gone = place.folder.with_name("in-gone")
    gone.symlink_to(own)
    place.hook("claude-code", events.names("claude-code", events.STOP)[0], words=["edits"])
    place.hook.start("claude-code", session="third")
    place.hook.start("codex", session="fourth")
    assert [each.name for each in own.iterdir()] == ["claude-code++1"]
    assert not list((place.hook.state / "edits" / "by").iterdir())


def test_what_was_kept_in_a_worktree_goes_with_it(kept: Callable[..., Kept]) -> None:
    """The beginning of what somebody has written does not stay in the git folder."""
    place = kept()
    gone = place.folder.with_name("in-gone")
    gone.mkdir()
    (gone / "claude-code++1").write_bytes(place.input("src/a.py"))
    place.keep(place.input("src/b.py"))
    place.hook.start("codex", session="third")
    assert [each.name for each in place.folder.parent.iterdir()] == ["in-.git"]
    assert place.noted() == ["src/b.py"]
