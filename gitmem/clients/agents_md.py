"""The instructions for agents in AGENTS.md, between two markers in a file of the user's.

Everything outside of the markers stays byte for byte, whatever its encoding and line ends; our lines are ASCII. The
first marker records what removal needs: whether the file is new, which line ends were added before it, and a digest of
the text, so that a text that somebody else has put between the markers is neither replaced nor removed.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from ..errors import GitmemError, UsageError
from ..outcome import Outcome
from ..text.digests import sha256
from . import managed_files
from .clients import CLIENTS, PROJECT
from .managed_files import ManagedFile
from .managed_files import installed_content as packaged

FILE = "AGENTS.md"
FILES = {"claude-code": "CLAUDE.md", "gemini": "GEMINI.md"}  # others read AGENTS.md
READS_AT_HOME = ("claude-code", "codex", "gemini", "opencode")
BEGIN, CLOSE, END = b"<!-- gitmem:begin", b" -->", b"<!-- gitmem:end -->"
_MARKER = b"<!-- gitmem:"
NEW_FILE, NEWLINE, BLANK = b"new-file", b"newline", b"blank"
_BOM = b"\xef\xbb\xbf"
_BEGINS = re.compile(rb"(?:^|\A\xef\xbb\xbf)(%b([^\n]*)-->[^\S\n]*(?:\n|\Z))" % BEGIN, re.MULTILINE)
_ENDS = re.compile(rb"^%b[^\S\n]*$" % END, re.MULTILINE)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from .clients import ClientFolders
    from .managed_files import FileChange


class AgentsMdBlock(Outcome):
    """The instructions in one file.

    Attributes:
        path: The file.
        state: `created`, `added`, `updated` or `unchanged` by setup; `removed` or `deleted` (the file was ours and had
            nothing else) by remove; `current`, `outdated` or `missing` in doctor; `failed` with a problem.
        problem: Why the file can't be read or changed, in a sentence; "" without an error.
    """

    path: str
    state: str
    problem: str = ""


class _Block(NamedTuple):
    """The place of our lines in a text.

    Attributes:
        start: The start of the first marker.
        begin, end: The span of the text between the markers.
        notes: The words in the first marker.
    """

    start: int
    begin: int
    end: int
    notes: list[bytes]


class AgentsMd(ManagedFile):
    """A file of the user's with the instructions between the markers."""

    def has_ours(self, content: bytes | None) -> bool:
        """Return whether there are markers."""
        return content is not None and self._find(content) is not None

    def is_current(self, content: bytes) -> bool:
        """Return whether the instructions are this version's; git may have changed their line ends."""
        found = self._find(content)
        return found is not None and _plain(content[found.begin : found.end]) == _text()

    def with_ours(self, content: bytes | None) -> bytes:
        """Return a content with the instructions between its markers, or at its end."""
        text = content or b""
        found = self._find(text)
        eol = _eol(text[: found.begin] if found else text)
        if found:
            return text[: found.start] + _begin(found.notes, eol) + text[found.end :]
        notes = [] if content is not None else [NEW_FILE]
        before = text
        if text.removeprefix(_BOM) and not text.endswith(b"\n"):
            notes.append(NEWLINE)
            before += eol
        if text.removeprefix(_BOM) and not before.endswith((b"\n\n", b"\n\r\n")):
            notes.append(BLANK)
            before += eol
        return before + _begin(notes, eol) + END + eol

    def without_ours(self, content: bytes) -> bytes | None:
        """Return the content from before the instructions; None if install created the file and nothing else is in it."""
        found = self._find(content)
        assert found is not None
        eol, before = _eol(content[: found.begin]), content[: found.start]
        after = content[found.end :].partition(END)[2].removeprefix(eol)
        if BLANK in found.notes:
            before = before.removesuffix(eol)
        if NEWLINE in found.notes and not after:
            before = before.removesuffix(eol)
        return None if NEW_FILE in found.notes and not before + after else before + after

    def _find(self, text: bytes) -> _Block | None:
        """Return the place of our lines, or None without markers.

        Raises:
            UsageError: `markers` if they are not one pair, or the text between them is not gitmem's; `not-text` if the
                encoding would hide them.
        """
        if b"\0" in text or text.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise UsageError(
                f"{self.path} is not text in UTF-8 or a similar encoding. Nothing was written.",
                hint="Convert it, for example with iconv.",
                code="not-text",
            )
        begins = list(_BEGINS.finditer(text))
        ends = [found.start() for found in _ENDS.finditer(text)]
        if not begins and not ends:
            return None
        if len(begins) != 1 or len(ends) != 1 or begins[0].end() > ends[0]:
            raise UsageError(
                f"The gitmem markers in {self.path} are not a pair ({len(begins) or 'none'} of {BEGIN.decode()}…, "
                f"{len(ends) or 'none'} of {END.decode()}). Nothing was written.",
                hint="Keep one block, or remove all marker lines, then run the command again.",
                code="markers",
            )
        found = _Block(begins[0].start(1), begins[0].end(), ends[0], begins[0][2].split())
        inner = _plain(text[found.begin : found.end])
        if inner.strip() and inner != _text() and _digest(inner) not in found.notes:
            raise UsageError(
                f"The text between the gitmem markers in {self.path} is not gitmem's. Nothing was written.",
                hint="Move your text out of the markers, or remove both marker lines, then run the command again.",
                code="markers",
            )
        return found


def install(
    folders: ClientFolders, names: Sequence[str], scope: str, *, dry_run: bool = False
) -> list[AgentsMdBlock]:
    """Write the instructions into the files that the models of these clients read: none twice, and none that imports another."""

    def write(file: AgentsMd) -> str:
        change = file.install()
        state = "updated" if file.has_ours(change.before) else "added"
        _write(change, dry_run=dry_run)
        return "unchanged" if not change.needed else state if change.before is not None else "created"

    every = [path for path in _files(folders, names, scope) if os.path.isdir(os.path.dirname(path))]
    paths = [path for path in every if not any(_is_read(each, [path]) for each in every if each != path)]
    return [_attempt(folders, path, scope, write) for path in paths]


def uninstall(
    folders: ClientFolders,
    names: Sequence[str],
    scope: str,
    *,
    others: Sequence[str] = (),
    dry_run: bool = False,
) -> list[AgentsMdBlock]:
    """Remove the instructions from the files of these clients, except from those that other clients read."""

    def remove(file: AgentsMd) -> str:
        change = file.remove()
        _write(change, dry_run=dry_run)
        return "missing" if not change.needed else "removed" if change.after is not None else "deleted"

    mine, kept = (_files(folders, each, scope) for each in (names, others))
    paths = [path for path in written(folders, scope) if _is_read(path, mine) and not _is_read(path, kept)]
    done = [_attempt(folders, path, scope, remove) for path in paths]
    return [each for each in done if each.state != "missing"]


def check(folders: ClientFolders, name: str, scope: str) -> AgentsMdBlock | None:
    """Return the state of the instructions that one client's model reads; None if it reads none in this scope."""

    def look(file: AgentsMd) -> str:
        content = file.read()
        if content is None or not file.has_ours(content):
            return "missing"
        return "current" if file.is_current(content) else "outdated"

    mine = _files(folders, [name], scope)
    every = [*mine, *(path for path in _files(folders, CLIENTS, scope) if _is_read(path, mine))]
    found = [_attempt(folders, path, scope, look) for path in dict.fromkeys(every)]
    return next((each for each in found if each.state != "missing"), found[0] if found else None)


def written(folders: ClientFolders, scope: str) -> list[str]:
    """Return the files of all clients that have markers of the instructions, none by two names."""
    paths = sorted(_files(folders, CLIENTS, scope), key=os.path.islink, reverse=True)
    top = folders.worktree if scope == PROJECT else None
    return list({os.path.realpath(path): path for path in paths if _MARKER in _content(path, top)}.values())


def _attempt(folders: ClientFolders, path: str, scope: str, step: Callable[[AgentsMd], str]) -> AgentsMdBlock:
    """Take a step with one file; an error with it stops no other."""
    try:
        return AgentsMdBlock(path, step(AgentsMd(path, top=folders.worktree if scope == PROJECT else None)))
    except GitmemError as error:
        return AgentsMdBlock(path, "failed", managed_files.problem_of(error))


def _write(change: FileChange, *, dry_run: bool) -> None:
    if not dry_run:
        managed_files.write_files([change])


def _files(folders: ClientFolders, names: Iterable[str], scope: str) -> list[str]:
    """Return the files in which the models of these clients read instructions."""
    found: list[str] = []
    for name in names:
        folder = folders.worktree if scope == PROJECT else None
        if scope != PROJECT and name in READS_AT_HOME:
            folder = folders.base(CLIENTS[name], scope)
        found += [os.path.join(folder, FILES.get(name, FILE))] if folder is not None else []
    return list(dict.fromkeys(found))


def _is_read(path: str, by: Sequence[str]) -> bool:
    """Return whether a file is one of others, also by a link that leads there, or is imported by one."""
    name, real = os.path.basename(path).encode(), os.path.realpath(path)
    return any(
        os.path.realpath(each) == real
        or any(word in (b"@" + name, b"@./" + name) for word in _content(each).split())
        for each in by
    )


def _content(path: str, top: str | None = None) -> bytes:
    try:
        return managed_files.read_file(path, top) or b""
    except GitmemError:
        return b""


def _text() -> bytes:
    """Return the instructions: less than 500 tokens, because every agent pays for them at every start."""
    return packaged("agents.md").encode()


def _begin(notes: Sequence[bytes], eol: bytes) -> bytes:
    """Return the first marker with its notes, and the instructions."""
    words = [each for each in notes if not each.startswith(b"text=")]
    return b" ".join([BEGIN, *words, _digest(_text())]) + CLOSE + eol + _text().replace(b"\n", eol)


def _digest(text: bytes) -> bytes:
    return b"text=" + sha256(text).hexdigest()[:16].encode()


def _plain(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n")


def _eol(text: bytes) -> bytes:
    """Return the line end of the last complete line."""
    return b"\r\n" if text[: text.rfind(b"\n") + 1].endswith(b"\r\n") else b"\n"
