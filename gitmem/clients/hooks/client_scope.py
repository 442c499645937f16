"""One client in one scope: our installed files and entries, and the changes of install and uninstall."""

from __future__ import annotations

import os

from ...digests import sha256
from ...errors import GitmemError, UsageError
from ...text.shell_quote import command
from .. import user_files
from ..user_files import FileChange
from . import install_record, marked_files, script, settings
from .clients import FLAT, GROUPS, PROJECT, WAKE
from .json_text import JsonSyntaxError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .clients import Client, ClientFolders
    from .install_record import InstallRecord
    from .settings import HookEntry, Ours

INSTALLED, OUTDATED, INCOMPLETE, ABSENT, BROKEN = (
    "installed",
    "outdated",
    "incomplete",
    "not installed",
    "broken",
)
RECORD = ".gitmem-hooks"  # in the client's folder; for a project in the repository's state


class ClientScope:
    """A client in a scope. It reads files only when a method needs them.

    Attributes:
        base: The client's folder.
        settings: Its settings file, or None if it has none that names hooks.
    """

    def __init__(self, client: Client, scope: str, places: ClientFolders, base: str) -> None:
        self.client = client
        self.scope = scope
        self.places = places
        self.base = base
        has_settings = client.form in (GROUPS, FLAT)
        self.settings = os.path.join(base, *client.settings.split("/")) if has_settings else None
        self.top = os.path.dirname(base) if scope == PROJECT else None  # no link may lead out of it
        self.record_path = os.path.join(base, RECORD)
        if scope == PROJECT:
            assert places.state is not None
            name = f"{client.name}-{sha256(os.fsencode(base)).hexdigest()[:16]}"
            self.record_path = os.path.join(places.state, "hooks", name)

    @property
    def groups(self) -> bool:
        """Whether the settings have the form `groups`."""
        return self.client.form == GROUPS

    def script(self) -> str:
        """Return the path of our script, whether it exists or not.

        Raises:
            UsageError: Files of others have both of its possible names.
        """
        paths = marked_files.scripts(self.client, self.base)
        for path in paths:
            content = self._read(path)
            if content is None or marked_files.is_marked(content):
                return path
        raise self._foreign(paths[-1])

    def wanted(self, *, wake: bool) -> list[HookEntry]:
        """Return the entries that the settings should contain.

        Args:
            wake: Whether to include the background hook that wakes an idle session, if the client has one.
        """
        root = os.path.dirname(self.base)
        path = self.client.in_command(self.scope, self.script(), root, self.places.home)
        if not path.isascii() or not path.isprintable():
            try:
                path.encode()
            except UnicodeEncodeError:
                raise UsageError(f"{self.base} is not UTF-8; nothing was written.", code="not-utf8") from None
        return self.client.entries(self.scope, path, script.text(self.client.name).encode(), wake=wake)

    def _read(self, path: str) -> bytes | None:
        return user_files.read(path, self.top)

    def text(self) -> str | None:
        """Return the settings as text, or None if the file does not exist.

        Raises:
            UsageError: They are not UTF-8.
        """
        assert self.settings is not None
        content = self._read(self.settings)
        try:
            return None if content is None else content.decode()
        except UnicodeDecodeError as error:
            raise UsageError(
                f"{self.settings} is not UTF-8 (byte {error.start + 1}); nothing was written.",
                hint="Save it as UTF-8.",
                code="broken-settings",
            ) from None

    def ours(self, text: str | None) -> list[Ours]:
        """Return our entries in the settings.

        Raises:
            UsageError: The settings can't be parsed.
        """
        if not text or settings.SCRIPT not in text:
            return []  # a broken file without our entries must not stop the other clients
        with _SentenceForBrokenSettings(self):
            _, hooks = settings.read(text, comments=self.client.comments)
        return settings.found(hooks, groups=self.groups)

    def put_in(self, *, wake: bool) -> tuple[list[FileChange], InstallRecord | None]:
        """Return the changes of an install, and the record to write; None if the settings stay unchanged."""
        changes = self.own_changes()
        if self.settings is None:
            return changes, None
        text = self.text()
        present = {(each.event, each.command) for each in self.ours(text)}
        wanted = self.wanted(wake=wake or any(f" {WAKE}{settings.END}" in line for _, line in present))
        if present == {(each.event, each.command) for each in wanted}:
            return changes, None
        with _SentenceForBrokenSettings(self):
            before = self.before(text)
            new, kept = settings.add_entries(
                before, wanted, comments=self.client.comments, extra=self.client.extra
            )
        return [*changes, FileChange(self.settings, _bytes(text), new.encode(), top=self.top)], kept

    def own_changes(self) -> list[FileChange]:
        """Return the changes that write our whole files.

        Raises:
            UsageError: A file of somebody else has the same name.
        """
        wanted = marked_files.others(self.client, self.base)
        if self.client.has_script:
            wanted.insert(0, marked_files.OwnFile(self.script(), script.text(self.client.name), True))
        changes = []
        for each in wanted:
            content = self._read(each.path)
            if content is not None and not marked_files.is_marked(content):
                raise self._foreign(each.path)
            changes.append(FileChange(each.path, content, each.content, each.runs, top=self.top))
        return changes

    def take_out(self) -> list[FileChange]:
        """Return the changes of an uninstall."""
        changes = []
        if self.settings is not None:
            text = self.text()
            if self.ours(text):
                before = self.before(text)
                changes.append(FileChange(self.settings, _bytes(text), _bytes(before), top=self.top))
        return [
            *changes,
            *(FileChange(path, self._read(path), None, top=self.top) for path in self.own_paths()),
        ]

    def own_paths(self) -> list[str]:
        """Return those of our whole files that exist."""
        paths = marked_files.scripts(self.client, self.base) if self.client.has_script else []
        paths += [each.path for each in marked_files.others(self.client, self.base)]
        return [path for path in paths if marked_files.is_marked(self._read(path))]

    def before(self, text: str | None) -> str | None:
        """Return the settings without our entries; None for no file."""
        if text is None or not self.ours(text):
            return text
        client = self.client
        return settings.remove_entries(
            text, install_record.read(self.record_path), [event for event, _ in client.events],
            groups=self.groups, comments=client.comments, extra=client.extra,
        )  # fmt: skip

    def state(self) -> str:
        """Return whether it is installed, as one of the constants of this module.

        Raises:
            UsageError: A file can't be read or parsed.
        """
        own = self.own_paths()
        present: set[tuple[str, str]] = set()
        if self.settings is not None:
            text = self.text()
            present = {(each.event, each.command) for each in self.ours(text)}
            self._check(text)
        if not own and not present:
            return ABSENT
        changes, _ = self.put_in(wake=False)
        if self.settings is not None and not present:
            return INCOMPLETE
        if any(change.before is None for change in changes if change.needed):
            return INCOMPLETE
        return OUTDATED if any(change.needed for change in changes) else INSTALLED

    def seen(self) -> list[str]:
        """Return the files with anything of ours, even if they can't be parsed."""
        try:
            there = self.own_paths()
            content = self._read(self.settings) if self.settings is not None else None
        except GitmemError:
            return []
        has_ours = content is not None and settings.SCRIPT.encode() in content
        return [*there, *([self.settings] if self.settings is not None and has_ours else [])]

    def _check(self, text: str | None) -> None:
        """Raise the UsageError that install would raise for these settings."""
        entries = self.client.entries(self.scope, "", b"", wake=False)
        with _SentenceForBrokenSettings(self):
            settings.add_entries(text or "", entries, comments=self.client.comments, extra=self.client.extra)

    def _foreign(self, path: str) -> UsageError:
        return UsageError(
            f"{path} is somebody else's file; nothing was written.",
            hint=f"gitmem needs that name for {self.client.title}: move the file, or leave this client out.",
            code="foreign-file",
            next=[command("gitmem", "hooks", "status")],
        )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def bare(error: GitmemError) -> str:
    """Return an error's message without "nothing was written", for a report on several clients."""
    return error.message.replace("; nothing was written.", ".")


class _SentenceForBrokenSettings:
    """Turn errors of settings that are not JSON, or not the client's JSON, into a UsageError with the position."""

    def __init__(self, target: ClientScope) -> None:
        self.target = target

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        target = self.target
        if isinstance(error, (JsonSyntaxError, settings.FormatError)):
            place = f"{target.settings}, line {error.line}, column {error.column}"
            what = "this is not valid JSON: " if isinstance(error, JsonSyntaxError) else ""
            raise UsageError(
                f"{place}: {what}{error.what}; nothing was written.",
                hint=f"{target.client.title} can't read its hooks from such a file. Correct it, then run the command again.",
                code="broken-settings",
                next=[command("gitmem", "hooks", "status")],
            ) from None
