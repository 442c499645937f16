"""A line of ours in the files of others: in a hook script of the user's, or in the settings of lefthook.

The line starts the script that `gitmem hooks install --git` keeps in the git folder. Where that has not been done, it does nothing, so a
line that is committed is harmless to others. Each line of ours ends with the same remark, by which it is found and removed. It also keeps
a CR at the end of the line from being read.
"""

from __future__ import annotations

import json
import os
import re

from ...errors import UsageError
from ..managed_files import ManagedFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

FOLDER = "git-hooks"  # in the repository's state
_ENDS = ("yml", "yaml", "toml", "json", "jsonc")
LEFTHOOK_FILES = [f"{start}lefthook.{end}" for end in _ENDS for start in ("", ".", ".config/")]
_RUNS = {"pre-push": "gitmem gate --pre-push", "pre-commit": "gitmem gate --pre-commit"}
_SHELL = re.compile(rb"#!.*[/ \t](ba|da|z|k|a|mk)?sh\b")
_HUSKY_8 = re.compile(rb"\. .*/husky\.sh\b")
_PLAIN = re.compile(r"\s*(#.*)?\s*")  # after a key of YAML: its value is on the next lines


def line(name: str, arguments: str = '"$@"') -> str:
    """Return the line of a hook. Only the status 1 of our script ends the hook: not that of a script that can't run."""
    find = f"gitmem_hook=$(git rev-parse --git-common-dir)/gitmem/{FOLDER}/{name}"
    run = f'[ ! -r "$gitmem_hook" ] || sh "$gitmem_hook" {arguments} || [ $? -ne 1 ] || exit 1'
    return f"{find}; {run} {_remark(name)}"


def lefthook_lines(name: str) -> list[str]:
    """Return the entry of a hook for `lefthook.yml`, without our remarks."""
    return [f"{name}:", "  commands:", "    gitmem:", "      run: |", f"        {line(name, '{0}')}"]


def is_shell(content: bytes) -> bool:
    """Return whether a hook is a shell script, which git and husky also take one without a first line `#!` for."""
    return b"\0" not in content and (not content.startswith(b"#!") or _SHELL.match(content) is not None)


def _remark(name: str) -> str:
    return f"# gitmem: added by gitmem hooks install --git {name}"


class _LineOfOurs(ManagedFile):
    """A file of others with lines of ours.

    Attributes:
        name: The hook.
    """

    def __init__(self, path: str, name: str, *, top: str | None, runs: bool = False) -> None:
        super().__init__(path, top=top, runs=runs and not os.path.lexists(path))
        self.name = name
        self._end = _remark(name).encode()

    def is_ours(self, line: bytes) -> bool:
        """Return whether a line is ours."""
        return line.rstrip(b"\r\n").endswith(self._end)

    def has_ours(self, content: bytes | None) -> bool:
        """Return whether our line is there, perhaps within a longer one of the user's, which is not removed."""
        return content is not None and self._end in content


class HookScript(_LineOfOurs):
    """A hook script of the user's, or one that consists of our line. Without `#!`, a CR does no harm."""

    @property
    def line(self) -> str:
        """The line that calls our script."""
        return line(self.name)

    def is_current(self, content: bytes) -> bool:
        """Return whether the line is that of this version."""
        return self.line.encode() in content.splitlines()

    def with_ours(self, content: bytes | None) -> bytes:
        """Return the script with our line before its first command.

        Raises:
            UsageError: It is not a shell script.
        """
        if content is None:
            return f"{_remark(self.name)}\n{self.line}\n".encode()
        if not is_shell(content):
            raise refusal(f"{self.path} is not a shell script", self)
        lines = [each for each in content.splitlines(keepends=True) if not self.is_ours(each)]
        # The shell's name stays first, and husky 8, which runs the hook once more.
        before = [
            at
            for at, each in enumerate(lines)
            if (at == 0 and each.startswith(b"#!")) or _HUSKY_8.match(each)
        ]
        at = before[-1] + 1 if before and lines[before[-1]].endswith(b"\n") else 0
        return b"".join([*lines[:at], self.line.encode() + b"\n", *lines[at:]])

    def without_ours(self, content: bytes) -> bytes | None:
        """Return the script without our line; None if install created it, and nothing else is in it."""
        rest = b"".join(each for each in content.splitlines(keepends=True) if not self.is_ours(each))
        return rest if rest or not content.startswith(self._end) else None


class LefthookSettings(_LineOfOurs):
    """The settings of lefthook with a command of ours."""

    @property
    def line(self) -> str:
        """The entry that calls our script."""
        run = json.dumps(line(self.name, "{0}"))  # text of JSON is also one of YAML and TOML
        if self.path.endswith(".toml"):
            return f"{self.name}.commands.gitmem.run = {run}"
        return f'"{self.name}": {{"commands": {{"gitmem": {{"run": {run}}}}}}}'

    def is_current(self, content: bytes) -> bool:
        """Return whether the command calls our script, in whatever form the user has added it."""
        return f"/gitmem/{FOLDER}/{self.name}".encode() in content

    def with_ours(self, content: bytes | None) -> bytes:
        """Return the settings with our command first in its hook.

        Raises:
            UsageError: They have a form that is not edited here.
        """
        before = self.without_ours(content) if content is not None else b""
        lines = [each.decode(errors="replace") for each in before.splitlines(keepends=True)]
        place = self._place(lines) if self.path.endswith((".yml", ".yaml")) else None
        if content is None or place is None or not "".join(["\n", *lines[: place[0]]]).endswith("\n"):
            raise refusal(f"{self.path} has a form that gitmem does not edit", self)
        at, indents = place
        end = "\r\n" if b"\r\n" in before else "\n"
        words = [each.strip() for each in lefthook_lines(self.name)][-len(indents) :]
        for number, word in enumerate(words):
            remark = "" if self.is_ours(word.encode()) else f" {_remark(self.name)}"
            words[number] = f"{indents[number]}{word}{remark}{end}"
        whole = before.splitlines(keepends=True)
        return b"".join([*whole[:at], *map(str.encode, words), *whole[at:]])

    def _place(self, lines: Sequence[str]) -> tuple[int, list[str]] | None:
        """Return before which line ours go, and the indents of ours; None if the text has another form than a plain one."""
        keys = [at for at, each in enumerate(lines) if re.match(rf"""["']?{self.name}["']?[ \t]*:""", each)]
        starts = [at for at, each in enumerate(lines) if each.startswith("---")]
        odd = any(each.startswith(("\t", "...", "%", "{", "[", "- ", "?", "\ufeff")) for each in lines)
        if odd or len(keys) > 1 or len(starts) > 1:
            return None
        if not keys:
            first = starts[0] + 1 if starts else 0
            before = [each for each in lines[:first] if each.strip() and each[0] not in "#-"]
            return None if before else (first, ["", "  ", "    ", "      ", "        "])
        return self._within(lines, keys[0])

    def _within(self, lines: Sequence[str], key: int) -> tuple[int, list[str]] | None:
        """Return the same within the hook's own lines, which begin at `key`."""
        if not _PLAIN.fullmatch(lines[key].partition(":")[2]):
            return None
        inner = []
        for at, each in enumerate(lines[key + 1 :], key + 1):
            if each.strip() and each[0] not in " #":
                break
            if each.strip() and not each.lstrip().startswith("#"):
                inner.append((at, len(each) - len(each.lstrip(" ")), each))
        step = inner[0][1] if inner else 2
        children = [(at, each) for at, indent, each in inner if indent == step]
        if any(re.match(r" *[<?]", each) for _, each in children) or (
            inner and inner[0][2].lstrip()[0] == "-"
        ):
            return None
        named = [(at, each) for at, each in children if re.match(r""" *["']?commands["']?[ \t]*:""", each)]
        if not named:
            return key + 1, [" " * step * depth for depth in (1, 2, 3, 4)]
        at, text = named[0]
        more = next((indent - step for place, indent, _ in inner if place > at and indent > step), 2)
        if not _PLAIN.fullmatch(text.partition(":")[2]) or len(named) > 1:
            return None
        return at + 1, [" " * (step + more * depth) for depth in (1, 2, 3)]

    def without_ours(self, content: bytes) -> bytes:
        """Return the settings without our command. A key that we have added stays, without our remark, if the user has put something below it."""
        kept: list[bytes] = []
        for each in reversed(content.splitlines(keepends=True)):
            if not self.is_ours(each):
                kept.append(each)
                continue
            after = next((other for other in reversed(kept) if other.strip()), b"")
            key = each[: each.index(self._end)].rstrip()
            if key.endswith(b":") and _indent(after) > _indent(each):
                kept.append(key + each[len(each.rstrip(b"\r\n")) :])
        return b"".join(reversed(kept))


def _indent(line: bytes) -> int:
    return len(line) - len(line.lstrip(b" "))


def refusal(what: str, file: HookScript | LefthookSettings, code: str = "hook-by-hand") -> UsageError:
    """Return the error that says what to add by hand, where we don't write."""
    return UsageError(
        f"{what}. It was not changed, and nothing calls gitmem's {file.name} hook yet.",
        hint=f"It runs `{_RUNS.get(file.name, 'gitmem note-commits')}`. Add this to {file.path} yourself: {file.line}",
        code=code,
        next=["gitmem hooks status"],
    )
