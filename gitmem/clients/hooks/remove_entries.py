"""Remove our entries from a settings file: restore an unchanged file byte for byte, otherwise remove only ours."""

from __future__ import annotations

import re
from itertools import combinations

from . import settings
from .json_text import BOM, JsonNode, JsonSyntaxError
from .settings import HOOKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .settings import HookEntry

_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_SPACE = " \t\r\n"


def without(
    text: str,
    *,
    groups: bool,
    comments: bool = False,
    may_go: Callable[[str], bool] = lambda name: True,
    extra: Sequence[str] = (),
) -> str:
    """Return a text without our entries.

    Args:
        may_go: Whether to remove a container (`hooks`, `hooks.EVENT`, a name of `extra`) that is empty afterwards.
        extra: Members of the root to remove with the hooks if nothing else is left.
    """
    root, hooks = settings.read(text, comments=comments)
    if hooks is None:
        return text
    cuts: list[tuple[int, int]] = []
    emptied = []
    for index, (name, event) in enumerate(zip(hooks.names(), hooks.items, strict=True)):
        if event.kind != "array":
            continue
        gone = _own_items(event, groups, cuts)
        if gone and len(gone) == len(event.items) and may_go(f"{HOOKS}.{name}"):
            emptied.append(index)
        else:
            cuts += _cuts(event, gone)
    if emptied and len(emptied) == len(hooks.items) and may_go(HOOKS):
        names = root.names()
        last = len(names) - 1 - names[::-1].index(HOOKS)
        also = {last} | {index for index, name in enumerate(names) if name in extra and may_go(name)}
        cuts += _cuts(root, sorted(also if len(also) == len(names) else {last}))
    else:
        cuts += _cuts(hooks, emptied)
    return _cut(text, cuts)


def _own_items(event: JsonNode, groups: bool, cuts: list[tuple[int, int]]) -> list[int]:
    """Return the items of an event that are only ours; add our handlers in others' groups to `cuts`."""
    every: dict[int, list[int]] = {}
    ours: dict[int, list[int]] = {}
    for group, handler, command in settings.handlers(event, groups=groups):
        every.setdefault(group, []).append(handler)
        if settings.is_ours(command):
            ours.setdefault(group, []).append(handler)
    for group, mine in ours.items():
        inner = event.items[group].get(HOOKS)
        if len(mine) < len(every[group]) and inner is not None:
            cuts += _cuts(inner, mine)
    return [group for group, mine in ours.items() if len(mine) == len(every[group])]


def _cuts(node: JsonNode, gone: Sequence[int]) -> list[tuple[int, int]]:
    """Return the spans that remove these items with their commas, but without anybody's comment."""
    cuts: list[tuple[int, int]] = []
    text, taken = node.text, set(gone)
    firsts = [index for index in gone if index - 1 not in taken]
    for first in firsts:
        last = first
        while last + 1 in taken:
            last += 1
        start, end = node.whole(first)[0], node.items[last].end
        if first:
            comma = _comma(text, node.items[first - 1].end)
            before = start
            while before > comma + 1 and text[before - 1] in _SPACE:
                before -= 1
            if text[comma + 1 : before].strip(_SPACE):  # a comment: the text after it keeps its own line
                before = start
            cuts += [(comma, comma + 1), (before, end)]
        elif last + 1 < len(node.items):
            after = _comma(text, end) + 1
            while text[after] in _SPACE:
                after += 1
            cuts += [(start, end), (_comma(text, end), after)]
        else:
            cuts += _cut_all(node, start, end)
    return cuts


def _cut_all(node: JsonNode, start: int, end: int) -> list[tuple[int, int]]:
    """Return the spans that remove all items of a node."""
    text = node.text
    if not text[node.start + 1 : start].strip(_SPACE) and not text[end : node.end - 1].strip(_SPACE + ","):
        return [(node.start + 1, node.end - 1)]
    rest = _COMMENT.sub(lambda found: " " * len(found[0]), text[end : node.end - 1])
    comma = rest.find(",")
    return [(start, end), *([(end + comma, end + comma + 1)] if comma >= 0 else [])]


def _comma(text: str, at: int) -> int:
    """Return the offset of the comma after an item, skipping white space and comments."""
    while text[at] != ",":
        comment = _COMMENT.match(text, at)
        at = comment.end() if comment else at + 1
    return at


def _cut(text: str, cuts: Sequence[tuple[int, int]]) -> str:
    parts, at = [], 0
    for start, end in sorted(cuts):
        parts.append(text[at:start])
        at = max(at, end)
    return "".join([*parts, text[at:]])


def reconstruct(
    text: str,
    entries: Sequence[HookEntry],
    *,
    groups: bool,
    comments: bool = False,
    extra: Sequence[tuple[str, object]] = (),
) -> str | None:
    """Reconstruct the text from before our entries, if no record has it; return None for no file.

    Try candidates: a text to which `put` adds our entries with this very result was the original, as far as can be
    known. Otherwise remove our entries, and containers that are then empty.
    """

    def becomes(before: str) -> bool:
        try:
            return settings.add_entries(before, entries, comments=comments, extra=extra).text == text
        except (JsonSyntaxError, settings.FormatError):
            return False

    if becomes(""):
        return None
    added = [key for key, _ in extra]
    bare = without(text, groups=groups, comments=comments)
    names = list(dict.fromkeys(f"{HOOKS}.{entry.event}" for entry in entries))
    for with_extra in ([], added):
        for count in range(len(names) + 1):
            for stay in combinations((HOOKS, *names), count):
                go = {HOOKS, *names, *added}.difference(stay)
                found = without(
                    text, groups=groups, comments=comments, may_go=go.__contains__, extra=with_extra
                )
                if becomes(found):
                    return found
    return bare


def is_bare(text: str, *, comments: bool, extra: Sequence[tuple[str, object]]) -> bool:
    """Return whether a file contains only the members that `put` writes to a new one."""
    if not text.strip().strip(BOM):
        return True
    root, _ = settings.read(text, comments=comments)
    return set(root.names()) <= {key for key, _ in extra}
