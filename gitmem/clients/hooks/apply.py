"""Write one client's changes: all of them or none."""

from __future__ import annotations

import os

from ... import atomic_write
from ...errors import GitmemError
from .. import user_files
from ..user_files import FileChange
from . import install_record
from .clients import PROJECT
from .install_record import InstallRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .client_result import ClientHooks
    from .client_scope import ClientScope


class Plan:
    """The planned changes for one client.

    Attributes:
        said: The result to report.
        target: The client in its scope; None if there is no file that we could write.
        changes: The changes of files.
        kept: The record to write; None if the settings stay unchanged.
        error: Why the plan failed, or None.
    """

    __slots__ = ("changes", "error", "kept", "said", "target")

    def __init__(self, said: ClientHooks, target: ClientScope | None) -> None:
        self.said = said
        self.target = target
        self.changes: list[FileChange] = []
        self.kept: InstallRecord | None = None
        self.error: GitmemError | None = None


class _Done:
    """The changes written so far, for a rollback."""

    def __init__(self, record_path: str) -> None:
        self.changes: list[FileChange] = []
        self.folders: list[str] = []
        self.note = FileChange(record_path, _read(record_path), None)

    def apply(self, change: FileChange) -> bool:
        """Write a change; return whether there was anything to do."""
        if not user_files.apply(change, self.folders):
            return False
        self.changes.append(change)
        return True

    def take_back(self) -> list[str]:
        """Undo the changes, the last first; return the paths where that failed."""
        left = []
        back = [
            FileChange(each.path, each.after, each.before, top=each.top) for each in reversed(self.changes)
        ]
        for each in [*back, FileChange(self.note.path, _read(self.note.path), self.note.before)]:
            try:
                user_files.apply(each, [])
            except GitmemError:
                left.append(each.path)
        user_files.remove_folders(self.folders)
        return left


def write_install(plan: Plan) -> None:
    """Write the changes of a planned install. After an error every file and folder is unchanged."""
    target, said = plan.target, plan.said
    if target is None:
        said.state = "advised"
        return
    is_update = any(
        change.before is not None for change in plan.changes if change.needed and _is_ours(change, target)
    )
    done = _Done(target.record_path)
    try:
        _write(plan, target, done)
    except BaseException as error:
        left = done.take_back()
        if left and isinstance(error, GitmemError):
            error.message += f" What this run had written before could not be taken back: {', '.join(left)}."
        raise
    said.files = [each.path for each in done.changes]
    if said.files:
        said.state = "updated" if is_update else "installed"


def _write(plan: Plan, target: ClientScope, done: _Done) -> None:
    """Write our own files, then the install record, and last the settings, which name the other files."""
    old = install_record.read(target.record_path)
    own = [change for change in plan.changes if change.path != target.settings]
    for change in own:
        done.apply(change)
    made = list(done.folders)
    kept = plan.kept or (old if old is not None else InstallRecord())
    if done.changes or plan.kept is not None:
        if target.scope == PROJECT:
            _make_quietly(os.path.dirname(target.record_path), done.folders)
        kept.folders = list(dict.fromkeys([*(old.folders if old is not None else []), *made]))
        _remember(target.record_path, kept)
    for change in plan.changes:
        if change not in own:
            done.apply(change)


def write_uninstall(plan: Plan) -> None:
    """Write the changes of a planned uninstall."""
    target, said = plan.target, plan.said
    said.state = "absent"
    if target is None:
        return
    old = install_record.read(target.record_path)
    said.files = [change.path for change in plan.changes if user_files.apply(change, [])]
    try:
        os.unlink(target.record_path)
    except OSError:
        pass  # it did not exist
    if said.files:
        said.state = "removed"
        user_files.remove_folders(old.folders if old is not None else _usual_folders(target, said.files))


def _is_ours(change: FileChange, target: ClientScope) -> bool:
    return change.path != target.settings or bool(target.ours(target.text()))


def _make_quietly(folder: str, made: list[str]) -> None:
    try:
        user_files.make_folders(folder, made)
    except OSError:
        return  # without a record, uninstall reconstructs the original from our entries


def _read(path: str) -> bytes | None:
    try:
        return user_files.read(path)
    except GitmemError:
        return None


def _remember(path: str, kept: InstallRecord) -> None:
    try:
        atomic_write.replace(path, kept.encode())
    except OSError:
        return


def _usual_folders(target: ClientScope, removed: Sequence[str]) -> list[str]:
    """Return the folders that git or an install created for the files that were removed."""
    found = {target.base}
    for path in removed:
        folder = os.path.dirname(path)
        while folder.startswith(os.path.join(target.base, "")):
            found.add(folder)
            folder = os.path.dirname(folder)
    return list(found)
