"""Every kind of file of the user's: install, let the user edit around what is ours, uninstall; only the edit is left."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from gitmem.clients import git_hook, managed_files
from gitmem.clients.agents_md import AgentsMd
from gitmem.clients.clients import CLIENTS, USER, HookEntry
from gitmem.clients.managed_files import ManagedFile, read_record
from gitmem.clients.settings import SettingsFile
from gitmem.repo import Repo
from tests.clients.hooks.test_settings import styles
from tests.profiles import up_to

TEXTS = st.lists(st.sampled_from(["a", "\n", "\r\n", "\r", " ", "é", "-->", "<!-- gitmem"])).map("".join)
BYTES = TEXTS.map(str.encode) | st.binary(max_size=20).filter(lambda text: b"\0" not in text[:2])
JSON_CLIENTS = [client for client in CLIENTS.values() if client.form in ("groups", "flat")]


def settings_file(name: str, folder: Path) -> SettingsFile:
    client = CLIENTS[name]

    def wanted(wake: bool) -> list[HookEntry]:
        return client.entries(USER, "hooks/signal-received.sh", b"", wake=wake)

    return SettingsFile(client, str(folder / "settings.json"), wanted, str(folder / "record"))


def edited(content: bytes, at: int, edit: bytes) -> bytes:
    return content[:at] + edit + content[at:]


def shifted(at: int, before: bytes, parts: list[bytes], after: bytes) -> int:
    """Where a place of the original is in the content that has our parts."""
    for part in parts:
        start = after.index(part)
        at += len(part) if start < at else 0
    return at


def come_and_gone(file: ManagedFile, before: bytes, at: int, edit: bytes) -> bytes | None:
    """The content after an install, an edit at a place of the original, and an uninstall."""
    path = Path(file.path)
    path.write_bytes(before)
    path.chmod(0o640)
    managed_files.write_files([file.install()])
    after = path.read_bytes()
    parts = [after[len(before) :]]
    if isinstance(file, SettingsFile):
        parts = [part.encode() for part in file.record.inserted]
        Path(file.record_path).write_bytes(file.record.encode())
    assert not file.install().needed
    path.write_bytes(edited(after, shifted(at, before, parts, after), edit))
    managed_files.write_files([file.remove()])
    assert not file.remove().needed
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o640
    return path.read_bytes()


@given(before=BYTES, edit=BYTES, data=st.data())
@hypothesis_settings(max_examples=up_to(200))
def test_a_block_in_a_text(
    before: bytes, edit: bytes, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Any bytes, with any bytes put in before ours; but not into the line of our marker."""
    assume(before.removeprefix(b"\xef\xbb\xbf"))
    at = data.draw(st.integers(0, len(before) - 1))
    assume(b"<!-- gitmem:" not in edited(before, at, edit))
    assume(not edited(before, at, edit).startswith((b"\xff\xfe", b"\xfe\xff")) and b"\0" not in before + edit)
    file = AgentsMd(str(tmp_path_factory.mktemp("block") / "AGENTS.md"), "AGENTS.md")

    assert come_and_gone(file, before, at, edit) == edited(before, at, edit)


@given(style=styles(), name=st.sampled_from([each.name for each in JSON_CLIENTS]), data=st.data())
@hypothesis_settings(max_examples=up_to(200))
def test_entries_in_settings(
    style: tuple[dict[str, object], str],
    name: str,
    data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Settings in any style, with a space or a line put in anywhere between what is theirs."""
    text = style[1]
    at = data.draw(st.integers(0, len(text)))
    edit = data.draw(st.sampled_from([" ", "\n", "\r\n", "\t  "]))
    hooks = style[0].get("hooks", {})
    events = [event for event, _ in CLIENTS[name].events]
    assume(isinstance(hooks, dict) and all(isinstance(hooks.get(event, []), list) for event in events))
    after = text[:at] + edit + text[at:]
    try:  # where it changes nothing of what the settings say of hooks
        assume(json.loads(after.removeprefix("\ufeff")).get("hooks") == style[0].get("hooks"))
    except ValueError:
        assume(False)
    file = settings_file(name, tmp_path_factory.mktemp("settings"))

    found = come_and_gone(file, text.encode(), len(text[:at].encode()), edit.encode())

    assert found == after.encode()


@given(before=BYTES, edit=BYTES, mode=st.sampled_from([0o644, 0o751, 0o700]))
@hypothesis_settings(max_examples=up_to(50))
def test_a_git_hook(before: bytes, edit: bytes, mode: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Somebody's hook in any language, which is changed while it runs behind ours."""
    common = tmp_path_factory.mktemp("common")
    hook = git_hook.find_hook(Repo(str(common), str(common), str(common / "tree")), None)
    path = Path(hook.path)
    path.parent.mkdir()
    path.write_bytes(before)
    path.chmod(mode)
    git_hook.install(hook)
    Path(hook.kept).write_bytes(before + edit)

    git_hook.uninstall(hook)

    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (before + edit, mode)
    assert os.listdir(hook.folder) == ["pre-push"]


def test_a_record_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    """It may be cut short, or somebody else's."""
    for content in (b"", b"{}", b"[1]", b'{"is_new": true, "inserted": [], "made": [], "folders": []}'):
        (tmp_path / "record").write_bytes(content)
        assert read_record(str(tmp_path / "record")) is None
