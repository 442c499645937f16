"""Install, remove and check the merge driver in git's config; set autosync.

Two files of the common git folder configure the union merge of `gm-*.jsonl`: `config` names the program,
`info/attributes` the paths (it overrides the tree and applies to linked worktrees). Both belong to the user: our lines
are marked, and are added and removed as text, while all other content stays byte for byte. `git config` could add them,
but could not remove them without a trace.
"""

from __future__ import annotations

import os
import shlex
from binascii import crc32

from gitmem import local_files
from gitmem.errors import StoreError, UsageError
from gitmem.git.processes import failure, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gitmem.repo import Repo

# If the program is missing or fails, git's own union runs: not in canonical form, but no line is lost.
ARGUMENTS = " %O %A %B || git merge-file --union -q %A %O %B"

_NAME = b"union of lines"
_TAG = b" # gitmem"
_DRIVER_KEY = b"merge.gitmem.driver\n"
_RULE = b"gm-*.jsonl merge=gitmem"
_NEW_FOLDER = b"; new folder"
_AUTOSYNC = "gitmem.autosync"
_NOT_SET = 5  # git's exit status for a missing key

MARK = b"# gitmem: written by gitmem setup, removed by gitmem remove"
_NEW_FILE = b"; new file"
_NEWLINE = b"; newline added after "


class MarkedBlock:
    """Our lines in one file.

    Args:
        is_ours: Whether a line below the marker is ours; other lines there belong to the user.
        section: The header of the config section on the marker's line; empty in other files.
    """

    def __init__(self, is_ours: Callable[[bytes], bool], section: bytes = b"") -> None:
        self.is_ours = is_ours
        self.section = section
        self.head = section + b" " + MARK if section else MARK

    def add(self, old: bytes | None, body: bytes, note: bytes = b"") -> bytes:
        """Return the text (None: no file) with `body` as our lines at its end, instead of earlier ones."""
        rest, marker = self.extract(old or b"")
        if old is None or _NEW_FILE in marker:
            note += _NEW_FILE
        if rest and not rest.endswith(b"\n"):
            note += _NEWLINE + _sum(_lines(rest)[-1])
            rest += b"\n"
        return rest + self.head + note + b"\n" + body

    def holds(self, text: bytes | None, body: bytes) -> bool:
        """Return whether `body` is unchanged below our marker."""
        _, marked, below = (text or b"").partition(self.head)
        return bool(marked) and below.partition(b"\n")[2].startswith(body)

    def without(self, old: bytes | None) -> bytes | None:
        """Return the text without our lines; None if there would be no file."""
        if old is None:
            return None
        rest, marker = self.extract(old)
        return None if not rest and _NEW_FILE in marker else rest

    def extract(self, text: bytes) -> tuple[bytes, bytes]:
        """Return the text without our lines, and our marker (empty if there is none)."""
        kept: list[bytes] = []
        marker, at, inside = b"", 0, False
        for line in _lines(text):
            if line.startswith(self.head):
                marker, at, inside = line, len(kept), True
            elif not (inside and self.is_ours(line)):
                inside = inside and not line.lstrip().startswith(b"[")
                kept.append(line)
        if marker and self.section and _has_setting(kept[at:]):
            kept.insert(at, self.section + b"\n")  # `git config` added a setting of the user's to our section
        noted = marker.partition(_NEWLINE)[2][:8]
        if noted and kept and at == len(kept) and noted == _sum(kept[-1][:-1]):
            kept[-1] = kept[-1][:-1]
        return b"".join(kept), marker


# A value that `git config` has changed has lost its tag, and belongs to the user.
_SECTION = MarkedBlock(
    lambda line: line.startswith((b"\tname = ", b'\tdriver = "')) and line.rstrip().endswith(_TAG),
    section=b'[merge "gitmem"]',
)
_RULES = MarkedBlock(lambda line: line.rstrip() == _RULE)


def _has_setting(lines: list[bytes]) -> bool:
    """Return whether there is a setting before the next section."""
    for line in lines:
        word = line.lstrip()[:1]
        if word not in (b"", b"#", b";"):
            return word != b"["
    return False


def _lines(text: bytes) -> list[bytes]:
    """Split after each LF alone (`splitlines` also splits at CR)."""
    parts = text.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + [part for part in parts[-1:] if part]


def _sum(line: bytes) -> bytes:
    return b"%08x" % crc32(line)


def read(path: str) -> bytes | None:
    """Return the content of a file; None if it does not exist.

    Raises:
        StoreError: the file cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"Cannot read {path} ({error.strerror}). Nothing was changed.") from error


def edit(path: str, change: Callable[[bytes | None], bytes | None], like: str) -> str | None:
    """Change a file atomically, under git's own lock for it.

    Args:
        change: Returns the new text for the old text; None stands for no file. It may be called twice.
        like: A file whose permissions a new file gets.

    Returns:
        `path`, or None if there was nothing to change.

    Raises:
        StoreError: the file is locked or cannot be written; it is unchanged.
    """
    old = read(path)
    new = change(old)
    if new == old:
        return None
    target = os.path.realpath(path)  # a symbolic link stays, and its target is changed
    lock = target + ".lock"
    try:
        local_files.make_dirs(os.path.dirname(target))
        descriptor = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        raise StoreError(
            f"{path} is locked by another process ({lock} exists). The file is unchanged.",
            hint="Try again; if no git process is running in this repository, remove that lock file.",
            code="locked",
        ) from None
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        with open(descriptor, "wb") as file:
            now = read(path)
            new = new if now == old else change(now)
            file.write(new or b"")
            file.flush()
            os.fsync(file.fileno())
        if new is None:
            os.unlink(target)
        else:
            model = like if now is None else target
            if os.path.exists(model):
                os.chmod(lock, os.stat(model).st_mode & 0o777)
            local_files.adjust(lock, private=True)
            os.replace(lock, target)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        if os.path.lexists(lock):
            os.unlink(lock)
    return path


def _unwritable(path: str, error: OSError) -> StoreError:
    return StoreError(
        f"Cannot write {path} ({error.strerror}). The file is unchanged.",
        hint="Check the permissions of that file and its folder, and the free disk space.",
    )


class Status:
    """The state of the driver's installation.

    Attributes:
        driver: The command that git would run, from any config; None if there is none.
        ours: Whether that is the line that `install` wrote.
        attributes: Whether git would use the driver for the log's files.
        program: The program in our line; None if the driver is not ours.
        runnable: Whether that program exists and is executable.
    """

    def __init__(self, driver: str | None, ours: bool, attributes: bool, program: str | None) -> None:
        self.driver = driver
        self.ours = ours
        self.attributes = attributes
        self.program = program
        self.runnable = program is not None and os.path.isfile(program) and os.access(program, os.X_OK)

    @property
    def installed(self) -> bool:
        """Whether everything is installed and the program can be run."""
        return self.ours and self.attributes and self.runnable


def install(repo: Repo, program: str) -> list[str]:
    """Make git merge the log's files by union, in every worktree of this repository.

    A `merge.gitmem.driver` from another source in the repository's config is left unchanged.

    Args:
        program: Absolute path of the console script `gitmem-merge`. Never `python -m`, which would run a folder
            `gitmem` of the worktree.

    Returns:
        The changed files; empty if the same was installed before.

    Raises:
        UsageError: `program` is not an absolute path, or has control characters.
        StoreError: a file is locked or cannot be read or written; it is unchanged.
    """
    if not os.path.isabs(program) or any(ord(char) < 32 for char in program):
        raise UsageError(
            f"Invalid program path: {program!r}; it must be absolute and free of control characters. Nothing was changed."
        )
    config, attributes = _config(repo), _attributes(repo)
    note = b"" if os.path.isdir(os.path.dirname(attributes)) else _NEW_FOLDER
    # The driver first: an attribute with a missing driver produces conflict markers.
    changed = [
        edit(config, lambda old: _with_section(repo, old, program), like=config),
        edit(attributes, lambda old: _with_rule(old, note), like=config),
    ]
    return [path for path in changed if path]


def uninstall(repo: Repo, *, dry_run: bool = False) -> list[str]:
    """Remove exactly what `install` added, and return the changed files; in a dry run those that would be changed.

    Raises:
        StoreError: a file is locked or cannot be read or written; it is unchanged.
    """
    config, attributes = _config(repo), _attributes(repo)
    marker = _RULES.extract(read(attributes) or b"")[1]
    steps = ((attributes, _RULES.without), (config, _SECTION.without))
    if dry_run:
        return [path for path, change in steps if change(before := read(path)) != before]
    changed = [edit(path, change, like=config) for path, change in steps]
    if _NEW_FOLDER in marker:
        try:
            os.rmdir(os.path.dirname(attributes))
        except OSError:
            pass  # the folder has other files now
    return [path for path in changed if path]


def set_autosync(repo: Repo, value: str | None) -> list[str]:
    """Write `gitmem.autosync` to the repository's config, or remove it (None), and return the changed files.

    Raises:
        StoreError: the file is locked or cannot be written; it is unchanged.
    """
    config = _config(repo)
    before = read(config)
    args = ["--replace-all", _AUTOSYNC, value] if value is not None else ["--unset-all", _AUTOSYNC]
    done = run(repo.common, ["config", "--file", config, *args], check=False)
    if done.code not in (0, _NOT_SET):
        raise failure(["config"], done)
    return [config] if read(config) != before else []


def files(repo: Repo) -> list[str]:
    """Return the files that `install` changes."""
    return [_config(repo), _attributes(repo)]


def status(repo: Repo) -> Status:
    """Return the driver's state as git sees it.

    Raises:
        StoreError: git cannot be asked.
    """
    sample = "signals/2026-11/21/gm-x.jsonl"
    attribute = run(repo.common, ["check-attr", "-z", "merge", "--", sample]).out.split(b"\0")[2]
    answer = run(repo.common, ["config", "-z", "--get", "merge.gitmem.driver"], check=False)
    driver = os.fsdecode(answer.out[:-1]) if answer.code == 0 else None
    program = _program(driver or "")
    ours = program is not None and _SECTION.holds(read(_config(repo)), _lines_of(program))
    return Status(driver, ours, attribute == b"gitmem", program if ours else None)


def _config(repo: Repo) -> str:
    return os.path.join(repo.common, "config")


def _attributes(repo: Repo) -> str:
    return os.path.join(repo.common, "info", "attributes")


def _driver(program: str) -> str:
    """Return the command for git, which replaces its %-letters and passes it to `sh`."""
    return shlex.quote(program).replace("%", "%%") + ARGUMENTS


def _program(driver: str) -> str | None:
    """Return the program of a command made by `_driver`, or None for other commands."""
    try:
        words = shlex.split(driver.removesuffix(ARGUMENTS).replace("%%", "%"))
    except ValueError:
        return None
    return words[0] if words and _driver(words[0]) == driver else None


def _lines_of(program: str) -> bytes:
    """Return the lines of our config section, without its header."""
    value = os.fsencode(_driver(program).replace("\\", "\\\\").replace('"', '\\"'))
    return b"\tname = " + _NAME + _TAG + b'\n\tdriver = "' + value + b'"' + _TAG + b"\n"


def _with_section(repo: Repo, old: bytes | None, program: str) -> bytes | None:
    body = _lines_of(program)
    if _SECTION.holds(old, body):
        return old
    theirs = _settings(repo, _SECTION.extract(old or b"")[0])
    if any(setting.startswith(_DRIVER_KEY) for setting in theirs):
        return old
    new = _SECTION.add(old, body)
    ours = [b"merge.gitmem.name\n" + _NAME, _DRIVER_KEY + os.fsencode(_driver(program))]
    if _settings(repo, new) != theirs + ours:
        raise StoreError(
            f"Cannot add a section to {_config(repo)}: git would misread it at the end of this file. Nothing was changed.",
            hint="Check the last lines of that file; `git config --local --list` shows what git reads.",
        )
    return new


def _with_rule(old: bytes | None, note: bytes) -> bytes | None:
    if _RULES.holds(old, _RULE + b"\n"):
        return old
    marker = _RULES.extract(old or b"")[1]
    return _RULES.add(old, _RULE + b"\n", _NEW_FOLDER if _NEW_FOLDER in marker else note)


def _settings(repo: Repo, config: bytes) -> list[bytes]:
    """Return every setting of a config as git reads it, `key LF value`, in order."""
    return run(
        repo.common, ["config", "--file", "-", "--no-includes", "--list", "-z"], input=config
    ).out.split(b"\0")[:-1]
