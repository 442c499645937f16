"""A client's settings file, with our entries among those of others."""

from __future__ import annotations

from ...errors import UsageError
from ...text.shell_quote import command
from ..managed_files import ManagedFile
from . import install_record, settings
from .clients import GROUPS, WAKE
from .json_text import JsonSyntaxError
from .settings import HookEntry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .clients import Client
    from .settings import Ours


class SettingsFile(ManagedFile):
    """A client's settings.

    Attributes:
        record_path: The record of an earlier installation.
        record: The record of the last `with_ours`, or None.
        wake: Whether to add the background hook, too, that wakes an idle session. One that is there stays.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        wanted: Callable[[bool], list[HookEntry]],
        record_path: str,
        *,
        top: str | None,
    ) -> None:
        super().__init__(path, top=top)
        self.client = client
        self.groups = client.form == GROUPS
        self.record_path = record_path
        self.record: install_record.InstallRecord | None = None
        self.wake = False
        self._wanted = wanted

    def has_ours(self, content: bytes | None) -> bool:
        """Return whether there are entries of ours."""
        return bool(self._find(content))

    def is_current(self, content: bytes) -> bool:
        """Return whether our entries are those of this version and scope."""
        present = self._find(content)
        wanted = self._wanted(self.wake or any(f" {WAKE}{settings.END}" in each.command for each in present))
        return {(each.event, each.command) for each in present} == {
            (each.event, each.command) for each in wanted
        }

    def with_ours(self, content: bytes | None) -> bytes:
        """Return the settings with our entries behind all others, and keep the record in `record`."""
        present = self._find(content)
        wanted = self._wanted(self.wake or any(f" {WAKE}{settings.END}" in each.command for each in present))
        before = self.without_ours(content) if content is not None and present else content
        with _SentenceForBrokenSettings(self):
            text, self.record = settings.add_entries(
                None if before is None else self._text(before), wanted,
                comments=self.client.comments, extra=self.client.extra,
            )  # fmt: skip
        return text.encode()

    def without_ours(self, content: bytes) -> bytes | None:
        """Return the settings without our entries; None for no file."""
        with _SentenceForBrokenSettings(self):
            rest = settings.remove_entries(
                self._text(content), install_record.read(self.record_path), [event for event, _ in self.client.events],
                groups=self.groups, comments=self.client.comments, extra=self.client.extra,
            )  # fmt: skip
        return None if rest is None else rest.encode()

    def ours(self) -> list[Ours]:
        """Return our entries.

        Raises:
            UsageError: The settings can't be parsed.
        """
        return self._find(self.read())

    def is_named(self) -> bool:
        """Return whether the file names our script, even if it can't be parsed."""
        return settings.SCRIPT.encode() in (self.read() or b"")

    def check(self) -> None:
        """Raise the UsageError that install would raise for these settings."""
        content = self.read()
        with _SentenceForBrokenSettings(self):
            settings.add_entries(
                None if content is None else self._text(content),
                [HookEntry(event, {}, "") for event, _ in self.client.events],
                comments=self.client.comments, extra=self.client.extra,
            )  # fmt: skip

    def _find(self, content: bytes | None) -> list[Ours]:
        if not content or settings.SCRIPT.encode() not in content:
            return []  # a broken file without our entries must not stop the other clients
        with _SentenceForBrokenSettings(self):
            _, hooks = settings.read(self._text(content), comments=self.client.comments)
        return settings.found(hooks, groups=self.groups)

    def _text(self, content: bytes) -> str:
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise UsageError(
                f"{self.path} is not UTF-8 (byte {error.start + 1}); nothing was written.",
                hint="Save it as UTF-8.",
                code="broken-settings",
            ) from None


class _SentenceForBrokenSettings:
    """Turn errors of settings that are not JSON, or not the client's JSON, into a UsageError with the position."""

    def __init__(self, file: SettingsFile) -> None:
        self.file = file

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (JsonSyntaxError, settings.FormatError)):
            what = "this is not valid JSON: " if isinstance(error, JsonSyntaxError) else ""
            raise UsageError(
                f"{self.file.path}, line {error.line}, column {error.column}: {what}{error.what}; nothing was written.",
                hint=f"{self.file.client.title} can't read its hooks from such a file. Correct it, then run the command again.",
                code="broken-settings",
                next=[command("gitmem", "hooks", "status")],
            ) from None
