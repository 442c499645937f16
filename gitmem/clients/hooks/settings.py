"""A client's settings file, with our entries behind those of others.

There are two forms:

- `groups`: `{"hooks": {EVENT: [{"matcher": …, "hooks": [{"command": …}]}]}}`
- `flat`: `{"hooks": {EVENT: [{"command": …}]}}`

Only the command line identifies an entry of ours: clients drop unknown keys when they write their settings. Our entries
come last, so no other entry changes its position.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from ...errors import UsageError
from ...outcome import command
from ..managed_files import InstallRecord, ManagedFile, read_record
from .clients import END, GROUPS, SCRIPT, WAKE
from .json_text import BOM, JsonNode, JsonSyntaxError, Style, cuts, parse, splice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from .clients import Client, HookEntry

COMMANDS = ("command", "bash")  # the keys of a command line in clients' settings
HOOKS = "hooks"


class OwnEntry(NamedTuple):
    """An entry of ours in a file.

    Attributes:
        group, handler: Its position: the index in the event's array, and in the group's.
    """

    event: str
    command: str
    group: int
    handler: int


def is_ours(command: str | None) -> bool:
    """Return whether a gitmem has written a command line."""
    return command is not None and command.endswith(END) and SCRIPT in command


class SettingsFile(ManagedFile):
    """A client's settings.

    Args:
        wanted: Returns the entries of this version, with the background hook that wakes an idle session or without.
        record_path: The record of an earlier installation.

    Attributes:
        record: The record of the last `with_ours`.
        wake: Whether to add the background hook; one that is there stays.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        wanted: Callable[[bool], Sequence[HookEntry]],
        record_path: str,
        *,
        top: str | None = None,
    ) -> None:
        super().__init__(path, top=top)
        self.client = client
        self.record_path = record_path
        self.record = InstallRecord()
        self.wake = False
        self._wanted = wanted

    def ours(self) -> list[OwnEntry]:
        """Return our entries, in the order of the file.

        Raises:
            UsageError: The settings can't be parsed.
        """
        return self._ours(self.read())

    def has_ours(self, content: bytes | None) -> bool:
        """Return whether there are entries of ours."""
        return bool(self._ours(content))

    def is_current(self, content: bytes) -> bool:
        """Return whether our entries are those of this version and scope."""
        return {each[:2] for each in self._ours(content)} == {each[:2] for each in self._entries(content)}

    def with_ours(self, content: bytes | None) -> bytes:
        """Return the settings with our entries behind all others, and keep the record."""
        before = self.without_ours(content) if content is not None and self.has_ours(content) else content
        text, self.record = self.add(None if before is None else self._text(before), self._entries(content))
        return text.encode()

    def without_ours(self, content: bytes) -> bytes | None:
        """Return the settings without our entries; None for no file."""
        rest = self.remove_from(self._text(content), read_record(self.record_path))
        return None if rest is None else rest.encode()

    def check(self) -> None:
        """Raise the UsageError that install would raise for these settings."""
        text = self._text(self.read() or b"")
        _, hooks = self._parse(text) if text.strip().strip(BOM) else (None, None)
        for name, _ in self.client.events:
            self._array(hooks, name)

    def add(self, text: str | None, entries: Sequence[HookEntry]) -> tuple[str, InstallRecord]:
        """Return a text with entries added, and the record to remove them by.

        Args:
            text: The file, without entries of ours; None for no file. An empty one becomes an object.

        Raises:
            UsageError: `broken-settings`.
        """
        wanted: dict[str, list[object]] = {}
        for entry in entries:
            wanted.setdefault(entry.event, []).append(entry.value)
        made = [HOOKS, *(f"{HOOKS}.{name}" for name in wanted)]
        if text is None or not text.strip().strip(BOM):
            whole = _layout({**dict(self.client.extra), HOOKS: wanted})
            return InstallRecord(text is None, made=made).insert(text or "", [(len(text or ""), whole)])
        root, hooks = self._parse(text)
        style = Style(root)
        members: list[tuple[str | None, object]] = [
            pair for pair in self.client.extra if root.get(pair[0]) is None
        ]
        edits: list[tuple[int, str]] = []
        if hooks is None:
            members.append((HOOKS, wanted))
        else:
            there = {name: event for name in wanted if (event := self._array(hooks, name)) is not None}
            made = [f"{HOOKS}.{name}" for name in wanted if name not in there]
            edits += style.append(hooks, [(name, wanted[name]) for name in wanted if name not in there])
            for name, event in there.items():
                edits += style.append(event, [(None, value) for value in wanted[name]])
        return InstallRecord(made=made).insert(text, sorted([*edits, *style.append(root, members)]))

    def remove_from(self, text: str, record: InstallRecord | None) -> str | None:
        """Return a text without our entries, or None if install created the file and nothing else is in it.

        Where the parts that install inserted are still there, exactly they go. Otherwise our entries go, with their
        commas and the containers that install made, as far as these are empty.

        Args:
            record: What install noted, or None, as in another clone.
        """
        if record is not None and not record.after:
            record = None  # of an install that left the settings as they were
        if record is not None:
            cut = record.cut(text)
            if cut is not None or (cut := self._without(text, record.inserted)) is not None:
                return None if record.is_new and not cut else cut
        root, hooks = self._parse(text)
        assert hooks is not None
        made = record.made if record is not None else self._made(root, hooks)
        rest = splice(text, self._edits(root, hooks, made))
        is_new = record.is_new if record is not None else _is_as_created(text)
        return None if is_new and set(self._parse(rest)[0].names()) <= set(dict(self.client.extra)) else rest

    def _without(self, text: str, parts: Sequence[str]) -> str | None:
        """Return a text without the parts that install inserted; None if they are not there, or not all of ours."""
        for part in parts:
            if text.count(part) != 1:
                return None
            text = text.replace(part, "")
        if not text.strip().strip(BOM):
            return text
        try:
            self._parse(text)
            return None if self._ours(text.encode()) else text
        except UsageError:
            return None

    def _made(self, root: JsonNode, hooks: JsonNode) -> list[str]:
        """Return the containers that install has probably made: it appends them after all others, in its order."""
        order = [name for name, _ in self.client.events]
        made: list[str] = []
        before = len(order)
        for name, event in reversed(list(zip(hooks.names(), hooks.items, strict=True))):
            place = order.index(name) if name in order else before - 1
            if place >= before or not self._event_goes(event, []):
                return made
            made.append(f"{HOOKS}.{name}")
            before = place
        return [*made, HOOKS] if root.names()[-1] == HOOKS else made

    def _edits(self, root: JsonNode, hooks: JsonNode, made: Container[str]) -> list[tuple[int, int, str]]:
        """Return the edits that remove our entries, and the containers in `made` that are empty afterwards."""
        edits: list[tuple[int, int, str]] = []
        emptied = [
            index
            for index, (name, event) in enumerate(zip(hooks.names(), hooks.items, strict=True))
            if self._event_goes(event, edits, may_go=f"{HOOKS}.{name}" in made)
        ]
        if emptied and len(emptied) == len(hooks.items) and HOOKS in made:
            return [*edits, *cuts(root, [root.items.index(hooks)])]
        return [*edits, *cuts(hooks, emptied)]

    def _event_goes(self, event: JsonNode, edits: list[tuple[int, int, str]], *, may_go: bool = True) -> bool:
        """Return whether an event goes as a whole; otherwise add the edits that remove what is ours in it."""
        gone = []
        for index, item in enumerate(event.items if event.kind == "array" else ()):
            handlers = self._handlers(item)
            ours = [at for at, handler in enumerate(handlers) if is_ours(_command(handler))]
            if ours and len(ours) == len(handlers):
                gone.append(index)
            elif ours and (group := item.get(HOOKS)) is not None:
                edits += cuts(group, ours)
        if gone and len(gone) == len(event.items) and may_go:
            return True
        edits += cuts(event, gone)
        return False

    def _ours(self, content: bytes | None) -> list[OwnEntry]:
        if not content or SCRIPT.encode() not in content:
            return []  # a broken file without our entries must not stop the other clients
        _, hooks = self._parse(self._text(content))
        return [
            OwnEntry(name, line, group, index)
            for name, event in (zip(hooks.names(), hooks.items, strict=True) if hooks is not None else ())
            for group, item in enumerate(event.items if event.kind == "array" else ())
            for index, handler in enumerate(self._handlers(item))
            if (line := _command(handler)) is not None and is_ours(line)
        ]

    def _handlers(self, item: JsonNode) -> list[JsonNode]:
        """Return the handlers of an item of an event: those of a group, or the item itself."""
        group = item.get(HOOKS) if self.client.form == GROUPS else None
        return group.items if group is not None and group.kind == "array" else [item]

    def _entries(self, content: bytes | None) -> Sequence[HookEntry]:
        wakes = any(f" {WAKE}{END}" in each.command for each in self._ours(content))
        return self._wanted(self.wake or wakes)

    def _parse(self, text: str) -> tuple[JsonNode, JsonNode | None]:
        """Return the root of a text, and its hooks.

        Raises:
            UsageError: `broken-settings` if it is not JSON, or not of the client's format.
        """
        try:
            root = parse(text, comments=self.client.comments)
        except JsonSyntaxError as error:
            raise self._broken(error, "this is not valid JSON: ") from None
        hooks = root.get(HOOKS)
        for node, name in ((root, "the whole"), (hooks, f'"{HOOKS}"')):
            if node is not None and node.kind != "object":
                raise self._broken(JsonSyntaxError(f"{name} is not an object", text, node.start))
        return root, hooks

    def _array(self, hooks: JsonNode | None, name: str) -> JsonNode | None:
        """Return the array of an event, or None if there is none."""
        event = hooks.get(name) if hooks is not None else None
        if event is not None and event.kind != "array":
            raise self._broken(JsonSyntaxError(f'"{HOOKS}.{name}" is not an array', event.text, event.start))
        return event

    def _broken(self, error: JsonSyntaxError, what: str = "") -> UsageError:
        return UsageError(
            f"{self.path}, line {error.line}, column {error.column}: {what}{error.what}. Nothing was written.",
            hint=f"{self.client.title} cannot read hooks from this file. Correct it, then run the command again.",
            code="broken-settings",
            next=[command("gitmem", "hooks", "status")],
        )

    def _text(self, content: bytes) -> str:
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise UsageError(
                f"{self.path} is not UTF-8 (byte {error.start + 1}). Nothing was written.",
                hint="Save it as UTF-8.",
                code="broken-settings",
            ) from None


def _command(handler: JsonNode) -> str | None:
    lines = [handler.get(key) for key in COMMANDS]
    return next((node.string() for node in lines if node is not None and node.kind == "string"), None)


def _layout(value: object) -> str:
    """Return a value as in a file that install creates."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _is_as_created(text: str) -> bool:
    """Return whether a text has the layout of a file that install creates."""
    try:
        return _layout(json.loads(text)) == text
    except (ValueError, RecursionError):  # it has comments, or is nested too deeply
        return False
