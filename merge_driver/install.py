"""Install, remove and check the merge driver in git's config; set autosync.

Two files of the common git folder configure the union merge of `gm-*.jsonl`: `config` names the program,
`info/attributes` the paths (it overrides the tree and applies to linked worktrees). Both belong to the user: our lines
are marked, and are added and removed as text, while all other content stays byte for byte. `git config` could add them,
but could not remove them without a trace.
"""

from __future__ import annotations

import os
import shlex

from gitmem.errors import StoreError, UsageError
from gitmem.git.run import failure, run

from .marked import MarkedBlock, edit, read

TYPE_CHECKING = False
if TYPE_CHECKING:
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
# A value that `git config` has changed has lost its tag, and belongs to the user.
_SECTION = MarkedBlock(
    lambda line: line.startswith((b"\tname = ", b'\tdriver = "')) and line.rstrip().endswith(_TAG),
    section=b'[merge "gitmem"]',
)
_RULES = MarkedBlock(lambda line: line.rstrip() == _RULE)


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


def uninstall(repo: Repo) -> list[str]:
    """Remove exactly what `install` added, and return the changed files.

    Raises:
        StoreError: a file is locked or cannot be read or written; it is unchanged.
    """
    config, attributes = _config(repo), _attributes(repo)
    marker = _RULES.extract(read(attributes) or b"")[1]
    changed = [
        edit(attributes, _RULES.without, like=config),
        edit(config, _SECTION.without, like=config),
    ]
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
