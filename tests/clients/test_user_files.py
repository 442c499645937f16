"""The one way in which files of the user's are changed: all of several or none, and only what can be read at once."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from gitmem.clients import agents_md, git_hook, managed_files
from gitmem.clients.agents_md import AgentsMd, AgentsMdBlock
from gitmem.clients.clients import CLIENTS, PROJECT, USER, ClientFolders, HookEntry
from gitmem.clients.managed_files import FileChange, ManagedFile, OwnFile, read_record
from gitmem.clients.settings import SettingsFile
from gitmem.errors import StoreError, UsageError
from gitmem.repo import Repo

from ..profiles import up_to
from .hooks.test_settings import styles


def state(folder: Path) -> dict[str, object]:
    return {
        str(path): (path.read_bytes(), path.stat().st_mode) if path.is_file() else None
        for path in folder.rglob("*")
    }


def test_an_error_undoes_the_changes_before_it(tmp_path: Path) -> None:
    """Contents, modes and folders; also of a file that was removed."""
    for name, mode in (("changed", 0o640), ("removed", 0o751), ("refused", 0o600)):
        (tmp_path / name).write_bytes(b"theirs")
        (tmp_path / name).chmod(mode)
    before = state(tmp_path)

    with pytest.raises(StoreError) as caught:
        managed_files.write_files(
            [
                FileChange(str(tmp_path / "a" / "b" / "new"), None, b"ours", True),
                FileChange(str(tmp_path / "changed"), b"theirs", b"ours"),
                FileChange(str(tmp_path / "removed"), b"theirs", None),
                FileChange(str(tmp_path / "refused"), b"somebody was faster", b"ours"),
            ]
        )

    assert caught.value.code == "changed-meanwhile"
    assert state(tmp_path) == before


def test_nobody_else_reads_a_private_file_while_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings may hold keys; a run that is killed leaves the temporary file behind."""
    path, modes = tmp_path / "settings.json", []
    path.write_bytes(b"secret")
    path.chmod(0o600)
    monkeypatch.setattr(
        os,
        "fsync",
        lambda handle: modes.append([each.stat().st_mode & 0o777 for each in tmp_path.glob("*settings*")]),
    )

    managed_files.write_files([FileChange(str(path), b"secret", b"secret and ours")])

    assert modes == [[0o600, 0o600]]


def test_a_file_that_is_too_large_or_none_is_refused_at_once(tmp_path: Path) -> None:
    """A repository may have anything in a client's place; reading a pipe would never end."""
    large, pipe = tmp_path / "large", tmp_path / "pipe"
    with large.open("wb") as file:
        file.truncate(1 << 40)
    os.mkfifo(pipe)

    for path, code in ((large, "too-large"), (pipe, "unreadable-file"), (tmp_path, "unreadable-file")):
        with pytest.raises(StoreError) as caught:
            managed_files.read_file(str(path))
        assert caught.value.code == code


def test_a_large_file_in_the_place_of_ours_is_somebody_elses(tmp_path: Path) -> None:
    """A compiled hook, say."""
    path = tmp_path / "pre-push"
    path.write_bytes(b"\x7fELF" + b"\0" * managed_files.SIZE_MAX)

    with pytest.raises(UsageError) as caught:
        OwnFile(str(path), "ours").install()

    assert caught.value.code == "foreign-file"
    assert not OwnFile(str(path), "ours").remove().needed


# The lines of AGENTS.md: added, kept up to date and taken out, and nobody else's byte is touched.

BLOCK = AgentsMd("").with_ours(None).replace(b" new-file", b"")
THEIRS = {
    "nothing": b"",
    "one line": b"# Rules\n",
    "no newline at its end": b"# Rules\nBe kind.",
    "a blank line at its end": b"# Rules\n\n",
    "CRLF": b"# Rules\r\n\r\nBe kind.\r\n",
    "CRLF without the last": b"# Rules\r\nBe kind.",
    "mixed": b"one\r\ntwo\nthree",
    "BOM": b"\xef\xbb\xbf# Rules\n",
    "BOM alone": b"\xef\xbb\xbf",
    "Latin-1": b"# R\xe8gles\n",
    "a form feed": b"# Rules\x0c\n\x0b\x85 \xe2\x80\xa8",
    "the name of a marker": b"The marker is `<!-- gitmem:begin` at the beginning.\n",
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "AGENTS.md"


def folders(file: Path) -> ClientFolders:
    """A work tree with this file."""
    top = str(file.parent)
    return ClientFolders(worktree=top, main=None, state=None, user=top, home=top, moved={}, programs={})


def write(file: Path) -> AgentsMdBlock:
    (found,) = agents_md.install(folders(file), ["codex"], PROJECT)
    return found


def remove(file: Path) -> AgentsMdBlock:
    found = agents_md.uninstall(folders(file), ["codex"], PROJECT)
    return found[0] if found else AgentsMdBlock(str(file), "missing")


def check(file: Path) -> AgentsMdBlock:
    found = agents_md.check(folders(file), "codex", PROJECT)
    assert found is not None
    return found


@pytest.mark.parametrize("theirs", THEIRS.values(), ids=list(THEIRS))
def test_what_was_there_stays_and_comes_back(file: Path, theirs: bytes) -> None:
    """Before our lines stands every byte of before; without them there is nothing else."""
    file.write_bytes(theirs)

    assert write(file).state == "added"
    written = file.read_bytes()
    assert written.startswith(theirs)
    assert check(file).state == "current"
    assert write(file).state == "unchanged"
    assert file.read_bytes() == written
    assert remove(file).state == "removed"

    assert file.read_bytes() == theirs


@given(
    theirs=st.lists(st.sampled_from([b"a", b"\n", b"\r\n", b"\r", b" ", b"\xff", b"\xc3\xa9", b"-->"])).map(
        b"".join
    )
)
def test_any_text_comes_back(tmp_path_factory: pytest.TempPathFactory, theirs: bytes) -> None:
    """Whatever its line ends."""
    file = tmp_path_factory.mktemp("any") / "AGENTS.md"
    file.write_bytes(theirs)

    write(file)
    remove(file)

    assert file.read_bytes() == theirs


def test_a_file_that_it_made_goes_again(file: Path) -> None:
    """One that was empty before does not."""
    assert write(file).state == "created"
    assert file.read_bytes().replace(b" new-file", b"") == BLOCK

    assert remove(file).state == "deleted"
    assert not file.exists()
    assert remove(file).state == "missing"


def test_what_was_written_into_the_new_file_stays(file: Path) -> None:
    """It is theirs by then."""
    write(file)
    file.write_bytes(b"# Ours\n\n" + file.read_bytes() + b"\nMore.\n")

    assert remove(file).state == "removed"

    assert file.read_bytes() == b"# Ours\n\n\nMore.\n"


def test_only_what_is_between_the_markers_is_replaced(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older version's lines, with text around them that came later."""
    file.write_bytes(b"# Rules\r\n")
    with monkeypatch.context() as patch:
        patch.setattr(agents_md, "_text", lambda: b"Older lines.\n")
        write(file)
    file.write_bytes(file.read_bytes() + b"After.\r\n")

    assert check(file).state == "outdated"
    assert write(file).state == "updated"
    assert (
        file.read_bytes()
        == b"# Rules\r\n\r\n"
        + BLOCK.replace(b"begin", b"begin blank").replace(b"\n", b"\r\n")
        + b"After.\r\n"
    )

    remove(file)
    assert file.read_bytes() == b"# Rules\r\nAfter.\r\n"


@pytest.mark.parametrize(
    "begin", [b"<!-- gitmem:begin -->", BLOCK.partition(b"\n")[0]], ids=["theirs", "ours"]
)
def test_a_text_of_the_users_between_the_markers_stays(file: Path, begin: bytes) -> None:
    """It is neither replaced nor removed, and the answer says what to do."""
    theirs = b"# Rules\n" + begin + b"\nMine alone.\n<!-- gitmem:end -->\n"
    file.write_bytes(theirs)
    for verb in (write, remove, check):
        assert verb(file).state == "failed" and "Move your text out of the markers" in verb(file).problem
    assert file.read_bytes() == theirs


def test_line_ends_that_git_changed_are_no_change(file: Path) -> None:
    """`core.autocrlf` on another machine."""
    write(file)
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))

    assert check(file).state == "current"
    assert write(file).state == "unchanged"


def test_markers_that_somebody_put_are_filled(file: Path) -> None:
    """Where they want the lines to stand."""
    file.write_bytes(b"# Rules\n<!-- gitmem:begin -->\n<!-- gitmem:end -->\nMore.\n")

    assert write(file).state == "updated"

    assert file.read_bytes() == b"# Rules\n" + BLOCK + b"More.\n"


@pytest.mark.parametrize(
    "broken",
    [
        b"<!-- gitmem:begin -->\nno end\n",
        b"no begin\n<!-- gitmem:end -->\n",
        b"<!-- gitmem:end -->\n<!-- gitmem:begin -->\n",
        b"no end\n<!-- gitmem:begin -->",
        BLOCK + BLOCK,
        BLOCK.replace(b"<!-- gitmem:end -->", b"") + BLOCK,
    ],
    ids=["no end", "no begin", "turned round", "no newline", "two blocks", "one and a half"],
)
def test_broken_markers_are_refused(file: Path, broken: bytes) -> None:
    """Nobody knows which lines are ours: a sentence, and not a byte is changed."""
    file.write_bytes(broken)

    for verb in (write, remove, check):
        assert verb(file).state == "failed" and "are not a pair" in verb(file).problem

    assert file.read_bytes() == broken


@pytest.mark.parametrize(
    ("encoding", "text"),
    [("utf-16", "規則"), ("utf-16-be", "Rules"), ("utf-32", "規則")],
    ids=ascii,
)
def test_a_text_of_another_kind_is_refused(file: Path, encoding: str, text: str) -> None:
    """Our bytes would be rubbish in it."""
    file.write_bytes(text.encode(encoding))

    assert "is not text in UTF-8" in write(file).problem

    assert file.read_bytes() == text.encode(encoding)


def test_a_link_stays_a_link_and_modes_stay(tmp_path: Path, file: Path) -> None:
    """AGENTS.md is often a link to CLAUDE.md."""
    real = tmp_path / "CLAUDE.md"
    real.write_bytes(b"# Rules\n")
    real.chmod(0o640)
    file.symlink_to("CLAUDE.md")

    assert write(file).state == "added"
    assert file.is_symlink() and real.read_bytes().startswith(b"# Rules\n")
    assert real.stat().st_mode & 0o777 == 0o640
    assert remove(file).state == "removed"
    assert file.is_symlink() and real.read_bytes() == b"# Rules\n"


def test_a_link_out_of_the_work_tree_is_not_followed(tmp_path: Path) -> None:
    """Who wrote a repository must not choose which file of the user's is written."""
    tree = tmp_path / "tree"
    tree.mkdir()
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine\n")
    (tree / "AGENTS.md").symlink_to(victim)

    assert "outside of the work tree" in write(tree / "AGENTS.md").problem
    assert victim.read_bytes() == b"mine\n"


def test_a_file_that_cannot_be_written_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sentence; and nothing is left beside it."""
    file = tmp_path / "AGENTS.md"
    file.write_bytes(b"# Rules\n")

    def full(old: str, new: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)

    assert "No space left on device" in write(file).problem

    assert [path.name for path in tmp_path.glob("AGENTS*")] == ["AGENTS.md"]
    assert file.read_bytes() == b"# Rules\n"


# Every kind of file of the user's: install, let the user edit around what is ours, uninstall; only the edit is left.

TEXTS = st.lists(st.sampled_from(["a", "\n", "\r\n", "\r", " ", "é", "-->", "<!-- gitmem"])).map("".join)
BYTES = TEXTS.map(str.encode) | st.binary(max_size=20).filter(lambda text: b"\0" not in text[:2])
JSON_CLIENTS = [client for client in CLIENTS.values() if client.form in ("groups", "flat")]


def settings_file(name: str, folder: Path) -> SettingsFile:
    client = CLIENTS[name]

    def wanted() -> list[HookEntry]:
        return client.entries(USER, "hooks/signal-received.sh", b"")

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
    file = AgentsMd(str(tmp_path_factory.mktemp("block") / "AGENTS.md"))

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
    """Somebody's hook, which is changed while our line is in it; one that is not of the shell stays as it is."""
    common = tmp_path_factory.mktemp("common")
    hook = git_hook.Hook(Repo(str(common), str(common), str(common / "tree")), None, git_hook.PRE_PUSH)
    path = Path(hook.path)
    path.parent.mkdir()
    path.write_bytes(before)
    path.chmod(mode)
    with contextlib.suppress(UsageError):
        git_hook.install(hook)
    path.write_bytes(path.read_bytes() + edit)

    git_hook.uninstall(hook)

    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (before + edit, mode)
    assert os.listdir(hook.folder) == ["pre-push"]


def test_a_record_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    """It may be cut short, or somebody else's."""
    for content in (b"", b"{}", b"[1]", b'{"is_new": true, "inserted": [], "made": [], "folders": []}'):
        (tmp_path / "record").write_bytes(content)
        assert read_record(str(tmp_path / "record")) is None
