"""The instructions for agents in AGENTS.md, between two markers in a file of the user's.

Everything outside of the markers stays byte for byte, whatever its encoding and line ends; our lines are ASCII. The
first marker records what removal needs: whether the file is new, and which line ends were added before it.
"""

from __future__ import annotations

import os
import re

from ..errors import GitmemError, UsageError
from ..outcome import Outcome, command
from . import managed_files
from .clients import CLIENTS, PROJECT
from .managed_files import ManagedFile
from .managed_files import installed_content as packaged

FILE = "AGENTS.md"
FILES = {"claude-code": "CLAUDE.md", "gemini": "GEMINI.md"}  # others read AGENTS.md
READS_AT_HOME = ("claude-code", "codex", "gemini", "opencode")
BEGIN, CLOSE, END = b"<!-- gitmem:begin", b" -->", b"<!-- gitmem:end -->"
NEW_FILE, NEWLINE, BLANK = b"new-file", b"newline", b"blank"
_BOM = b"\xef\xbb\xbf"
_BEGINS = re.compile(rb"(?:^|\A\xef\xbb\xbf)%b[^\n]*-->[^\S\n]*(?:\n|\Z)" % BEGIN, re.MULTILINE)
_ENDS = re.compile(rb"^%b[^\S\n]*$" % END, re.MULTILINE)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .clients import Client, ClientFolders


class AgentsMdBlock(Outcome):
    """The instructions, and the result of the operation on them.

    Attributes:
        path: The file; None if the text is only shown.
        state: `shown`; `created`, `added`, `updated` or `unchanged` after a write; `removed`, `deleted` (the file was
            ours and had nothing else) or `missing` after a removal; `current`, `outdated` or `missing` after a check.
        text: The text, if it is only shown.
        remarks: Further advice.
    """

    path: str | None
    state: str
    text: str | None = None
    remarks: list[str] = []
    next: list[str] = []


def show() -> AgentsMdBlock:
    """Return the text with its markers, as `write` would write it to a file."""
    found = AgentsMdBlock(None, "shown")
    found.text = (BEGIN + CLOSE + b"\n").decode() + _text() + END.decode() + "\n"
    found.next = ["gitmem agents-md --write"]
    return found


def default(worktree: str | None) -> str:
    """Return the path of the AGENTS.md of a work tree.

    Raises:
        UsageError: There is no work tree, or AGENTS.md is a link that leads out of it.
    """
    if worktree is None:
        raise UsageError(
            "This repository has no worktree and no AGENTS.md. Nothing was written.",
            hint="Name the file.",
            code="no-worktree",
        )
    path = os.path.join(worktree, FILE)
    managed_files.resolve_inside(path, worktree)
    return path


def refuse_outside(path: str, worktree: str | None, *, writes: bool) -> None:
    """Refuse a path that leads out of the work tree by a link and, to write, any path outside of it.

    Raises:
        UsageError: `outside`.
    """
    if worktree is None:
        return
    written, top = os.path.abspath(path), os.path.realpath(worktree)
    folder, name = os.path.split(written)
    here = (written, os.path.join(os.path.realpath(folder), name))
    if any(each.startswith(os.path.join(top, "")) for each in here):
        managed_files.resolve_inside(path, top)
    elif writes:
        raise UsageError(
            f"{path} is outside of the work tree {top}. Nothing was written.",
            hint="Name a file of the work tree, or run the command in the folder of that file.",
            code="outside",
            next=["gitmem agents-md --write"],
        )


class AgentsMd(ManagedFile):
    """A file of the user's with the instructions between the markers.

    Args:
        path: The file; its folder must exist.
        named: The file as commands name it.
    """

    def __init__(self, path: str, named: str) -> None:
        super().__init__(path)
        self.named = named

    def has_ours(self, content: bytes | None) -> bool:
        """Return whether there are markers."""
        return content is not None and self._find(content) is not None

    def is_current(self, content: bytes) -> bool:
        """Return whether the instructions are this version's; git may have changed their line ends."""
        begin, end = self._find(content) or (0, 0)
        return content[begin:end].replace(b"\r\n", b"\n") == _text().encode()

    def with_ours(self, content: bytes | None) -> bytes:
        """Return a content with the instructions between its markers, or at its end."""
        text = content or b""
        found = self._find(text)
        eol = _eol(text[: found[0]] if found else text)
        body = _text().encode().replace(b"\n", eol)
        if found:
            return text[: found[0]] + body + text[found[1] :]
        notes = [BEGIN] if content is not None else [BEGIN, NEW_FILE]
        before = text
        if text.removeprefix(_BOM) and not text.endswith(b"\n"):
            notes.append(NEWLINE)
            before += eol
        if text.removeprefix(_BOM) and not before.endswith((b"\n\n", b"\n\r\n")):
            notes.append(BLANK)
            before += eol
        return before + b" ".join(notes) + CLOSE + eol + body + END + eol

    def without_ours(self, content: bytes) -> bytes | None:
        """Return the content from before the instructions; None if install created the file and nothing else is in it."""
        begin, end = self._find(content) or (0, 0)
        before, start, notes = content[:begin].rpartition(BEGIN)
        assert start
        eol = _eol(content[:begin])
        after = content[end:].partition(END)[2].removeprefix(eol)
        if BLANK in notes:
            before = before.removesuffix(eol)
        if NEWLINE in notes and not after:
            before = before.removesuffix(eol)
        return None if NEW_FILE in notes and not before + after else before + after

    def _find(self, text: bytes) -> tuple[int, int] | None:
        """Return the start and end of the text between the markers, or None without markers.

        Raises:
            UsageError: `markers` if they are not one pair, `not-text` if the encoding would hide them.
        """
        if b"\0" in text or text.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise UsageError(
                f"{self.named} is not text in UTF-8 or a similar encoding. Nothing was written.",
                hint="Convert it, for example with iconv.",
                code="not-text",
            )
        begins = [found.end() for found in _BEGINS.finditer(text)]
        ends = [found.start() for found in _ENDS.finditer(text)]
        if not begins and not ends:
            return None
        if len(begins) != 1 or len(ends) != 1 or begins[0] > ends[0]:
            raise UsageError(
                f"The gitmem markers in {self.named} are not a pair ({len(begins) or 'none'} of {BEGIN.decode()}…, "
                f"{len(ends) or 'none'} of {END.decode()}). Nothing was written.",
                hint="Keep one block, or remove all marker lines, then run the command again.",
                code="markers",
            )
        return begins[0], ends[0]


def write(path: str, named: str, *, typed: bool = True) -> AgentsMdBlock:
    """Write the instructions to a file, or update those in it.

    Args:
        path: The file; it need not exist, but its folder must.
        named: The file as commands name it.
        typed: Whether the user named it; otherwise it is the default of these commands.

    Raises:
        UsageError, StoreError: `markers`, `no-such-folder`, `not-text`, or no access. The file is unchanged.
    """
    done, change = preview(path, named), AgentsMd(path, named).install()
    if not os.path.isdir(os.path.dirname(os.path.realpath(path))):  # a mistyped name must not create folders
        raise UsageError(f"The folder of {path} does not exist. Nothing was written.", code="no-such-folder")
    managed_files.write_files([change])
    done.remarks = _imports(path)
    done.next = ["gitmem hooks status"] if done.state == "unchanged" else [command("git", "add", named)]
    return done


def files_of(folders: ClientFolders, names: Sequence[str], scope: str) -> list[str]:
    """Return the files in which the models of these clients read instructions: none twice, and none that imports another."""
    found = [path for name in names if (path := _file_of(folders, CLIENTS[name], scope)) is not None]
    every = [path for path in dict.fromkeys(found) if os.path.isdir(os.path.dirname(path))]
    return [path for path in every if not any(_reads(path, other) for other in every if other != path)]


def written(folders: ClientFolders, scope: str) -> list[str]:
    """Return the files of all clients that have the instructions."""
    every = [_file_of(folders, client, scope) for client in CLIENTS.values()]
    paths = [path for path in dict.fromkeys(every) if path is not None and not os.path.islink(path)]
    return [path for path in paths if _has_marker(path)]


def _has_marker(path: str) -> bool:
    try:
        return BEGIN in (managed_files.read_file(path) or b"")
    except GitmemError:
        return False


def _file_of(folders: ClientFolders, client: Client, scope: str) -> str | None:
    """Return the file in which a client's model reads instructions; None if it reads none there."""
    name = FILES.get(client.name, FILE)
    if scope == PROJECT:
        return os.path.join(folders.worktree, name) if folders.worktree is not None else None
    folder = folders.base(client, scope) if client.name in READS_AT_HOME else None
    return os.path.join(folder, name) if folder is not None else None


def _reads(path: str, other: str) -> bool:
    """Return whether a file is another one, by a link that leads there, or imports it."""
    try:
        if os.path.islink(path) and os.path.realpath(path) == os.path.realpath(other):
            return True
        text = managed_files.read_file(path) or b""
    except GitmemError:
        return False
    name = os.path.basename(other).encode()
    return any(word in (b"@" + name, b"@./" + name) for word in text.split())


def preview(path: str, named: str) -> AgentsMdBlock:
    """Return what `write` would do, without writing."""
    file = AgentsMd(path, named)
    change = file.install()
    state = "updated" if file.has_ours(change.before) else "added"
    return AgentsMdBlock(
        path, "unchanged" if not change.needed else state if change.before is not None else "created"
    )


def check(path: str, named: str, *, typed: bool = True) -> AgentsMdBlock:
    """Return whether a file contains this version's instructions, without writing."""
    file = AgentsMd(path, named)
    content = file.read()
    done = AgentsMdBlock(path, "missing")
    if content is not None and file.has_ours(content):
        done.state = "current" if file.is_current(content) else "outdated"
        done.remarks = _imports(path)
    done.next = ["gitmem hooks status"] if done.state == "current" else [_again(named, typed)]
    return done


def remove(path: str, named: str, *, typed: bool = True) -> AgentsMdBlock:
    """Remove the instructions: restore the file's content from before them, or remove a file that `write` created.

    Raises:
        UsageError, StoreError: As in `write`. The file is unchanged.
    """
    change = AgentsMd(path, named).remove()
    removed = "deleted" if change.after is None else "removed"
    done = AgentsMdBlock(path, removed if change.needed else "missing")
    managed_files.write_files([change])
    done.next = [_again(named, typed)]
    return done


def _text() -> str:
    """Return the instructions: less than 500 tokens, because every agent pays for them at every start."""
    return packaged("agents.md")


def _again(named: str, typed: bool) -> str:
    return command("gitmem", "agents-md", "--write", *([named] if typed else []))


def _eol(text: bytes) -> bytes:
    """Return the line end of the last complete line."""
    return b"\r\n" if text[: text.rfind(b"\n") + 1].endswith(b"\r\n") else b"\n"


def _imports(path: str) -> list[str]:
    """Return advice for Claude Code, which reads only CLAUDE.md: one sentence, or none."""
    folder, name = os.path.split(path)
    seen = None
    for claude in ("CLAUDE.md", os.path.join(".claude", "CLAUDE.md")):
        other = os.path.join(folder, claude)
        if os.path.realpath(other) == os.path.realpath(path):
            return []
        try:
            text = managed_files.read_file(other, folder)
        except GitmemError:
            continue
        if text is None:
            continue
        if BEGIN in text:
            return []
        if any(word.startswith(b"@") and word.endswith(name.encode()) for word in text.split()):
            return []
        seen = seen or claude
    if seen is None or name in ("CLAUDE.md", "CLAUDE.local.md"):
        return []
    return [f"Claude Code reads only {seen}, which does not import this file: add the line @{name} to it."]
