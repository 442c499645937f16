"""What other tools say of who wrote lines: git-ai's notes and agent-trace records. Nobody has signed it, and all of it is text of strangers."""

from __future__ import annotations

import os
import re
from bisect import bisect_left, bisect_right
from itertools import islice
from typing import NamedTuple

from .. import local_files
from ..errors import StoreError
from ..git.history import read_tail
from ..log.ref import lookup
from ..text import strict_json
from ..text.sanitize import sanitize, within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from ..git.objects import TreeEntry
    from ..store import Store

    Span = tuple[int, int]
    Claim = tuple[list[Span], "Word"]


GIT_AI, AGENT_TRACE = "git-ai", "agent-trace"
NOTES = "refs/notes/"
REFS = {GIT_AI: f"{NOTES}ai", AGENT_TRACE: f"{NOTES}agent-trace"}
FOLDER, ENDING = ".agent-trace", ".jsonl"  # in the work tree
AUTHORSHIP, TRACE = "authorship/3.0.0", "0.1.0"
AI, HUMAN, KINDS = "ai", "human", ("ai", "human", "mixed", "unknown")

NOTE_MAX = 4 * 1024 * 1024
TREE_MAX = 8 * 1024 * 1024  # of one level of a notes ref
FILES_MAX, FILE_MAX = 20, 16 * 1024 * 1024  # of each file the end
ALL_FILES_MAX = 64 * 1024 * 1024  # of all files together
ROWS_MAX = 2_000  # records about one commit
SPANS_MAX = 20_000  # of one note about one file
MISSING_MAX = 500
WORDS_MAX = 5  # about a whole commit
TEXT_COLUMNS = 120
REMARKS_MAX = 5

_REVISION = re.compile(rb'"revision"\s*:\s*"([0-9a-f]{40}(?:[0-9a-f]{24})?)"')
_SPAN = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", re.ASCII)
_FOLDER_MODE = "40000"


class Word(NamedTuple):
    """Who wrote lines of a commit, as a tool says.

    Attributes:
        tool: `git-ai` or `agent-trace`: whose word it is.
        kind: `ai`, `human`, `mixed` or `unknown`.
        client, model, session: The coding agent, its model, and its own id of the conversation.
        person: Who typed it.
    """

    tool: str
    commit: str
    kind: str
    client: str | None = None
    model: str | None = None
    session: str | None = None
    person: str | None = None


class LeftOutError(ValueError):
    """Something of another tool that is not read; the argument says why, as the end of a sentence."""


class OtherTools:
    """The notes and records of other tools in a repository, each read when somebody asks.

    Attributes:
        remarks: What was left out, a sentence each.
    """

    def __init__(self, store: Store) -> None:
        self._git = store.git
        self._remarks: dict[str, None] = {}
        self._trees: dict[str, dict[str, TreeEntry]] = {}
        self._claims: dict[tuple[str, str, str | None], list[Claim]] = {}
        self._lines: dict[str, list[bytes]] | None = None
        self._files: list[str] = []
        self._roots: dict[str, str] = {}
        folder = os.path.join(store.repo.worktree or "", FOLDER)
        if store.repo.worktree is not None and os.path.isdir(folder) and not os.path.islink(folder):
            names = [each for each in local_files.names_in(folder) if each.endswith(ENDING)]
            self._files = [os.path.join(folder, each) for each in sorted(names)]
        try:
            refs = self._git.refs(NOTES)
        except StoreError:
            refs = {}
            self._remark(f"{NOTES}* cannot be read: what other tools have noted there is left out.")
        self._tips: dict[str, str] = {tool: refs[ref] for tool, ref in REFS.items() if ref in refs}

    def __bool__(self) -> bool:
        """Whether another tool has anything here."""
        return bool(self._tips or self._files)

    @property
    def remarks(self) -> list[str]:
        """See the class."""
        more = len(self._remarks) - REMARKS_MAX
        return list(self._remarks)[:REMARKS_MAX] + ([f"{more} more are left out."] if more > 0 else [])

    def knows(self, commit: str) -> bool:
        """Return whether a tool says anything of a commit."""
        return commit in self._records() or any(self.has_note(tool, commit) for tool in list(self._tips))

    def look_for_missing(self) -> None:
        """Remark how many records are about commits that are not here."""
        named = list(self._records())[:MISSING_MAX]
        if missing := len(named) - len(self._git.heads(named)):
            are = "record is about a commit" if missing == 1 else "records are about commits"
            self._remark(f"{missing:,} {AGENT_TRACE} {are} that this clone does not have.")

    def words(self, commit: str, path: str | None, numbers: Sequence[int]) -> dict[int, list[Word]]:
        """Return what each tool says of lines of a file in a commit: of what one says of one line the last.

        Args:
            path: The file in that commit; None for the whole commit, which has the number 0.
            numbers: The lines, in ascending order.
        """
        found: dict[int, list[Word]] = {}
        for tool in REFS:
            if (tool, commit, path) not in self._claims:
                self._claims[tool, commit, path] = self._read(tool, commit, path)
            claims = self._claims[tool, commit, path]
            if path is None:
                found.setdefault(0, []).extend(list(dict.fromkeys(word for _, word in claims))[:WORDS_MAX])
                continue
            left = list(numbers)
            for ranges, word in reversed(claims):
                for first, last in ranges:
                    start, end = bisect_left(left, first), bisect_right(left, last)
                    for number in left[start:end]:
                        found.setdefault(number, []).append(word)
                    del left[start:end]
        return {number: some for number, some in found.items() if some}

    def note(self, tool: str, commit: str) -> bytes | None:
        """Return a tool's note about a commit; None if it has none, or one that is left out."""
        try:
            entry = self._entry(tool, commit)
            return self._sized(entry.oid, "blob", NOTE_MAX) if entry is not None else None
        except (KeyError, ValueError) as error:
            self._leave_out(tool, commit, error)
            return None

    def _read(self, tool: str, commit: str, path: str | None) -> list[Claim]:
        note = self.note(tool, commit)
        rows = self._records().get(commit, []) if tool == AGENT_TRACE else []
        if len(rows) > ROWS_MAX:
            self._remark(
                f"{tool} has {len(rows):,} records about {commit[:12]}: only the last {ROWS_MAX:,} are read."
            )
            rows = rows[-ROWS_MAX:]
        found: list[Claim] = []
        for data in [*rows, *([note] if note is not None else [])]:
            try:
                some, outside = (_authorship if tool == GIT_AI else _trace)(data, commit, path)
            except (ValueError, RecursionError) as error:
                self._leave_out(tool, commit, error)
                continue
            found += some
            if outside:
                self._remark(
                    f"{tool} names a path outside of the repository ({sanitize(outside)}) in {commit[:12]}: that is left out."
                )
        last = max((end for ranges, _ in found for _, end in ranges), default=0)
        count = self._line_count(commit, path) if last and path is not None else None
        if count is not None and last > count:
            self._remark(
                f"{tool} names line {last} of {sanitize(path or '')} in {commit[:12]}, which has {count}: its word on that file is left out."
            )
            return []
        return found

    def _records(self) -> dict[str, list[bytes]]:
        """Return the lines of agent-trace's files by the commit that they name."""
        if self._lines is None:
            self._lines = {}
            left = ALL_FILES_MAX
            for path in self._files[:FILES_MAX]:
                if not left:
                    self._remark(f"{FOLDER} is large: only {ALL_FILES_MAX >> 20} MiB of it are read.")
                    break
                most = min(FILE_MAX, left)
                data, start = read_tail(path, most)
                left -= len(data)
                if start:
                    self._remark(
                        f"{FOLDER}/{sanitize(os.path.basename(path))} is large: only its last {most >> 20} MiB are read."
                    )
                for line in data.split(b"\n"):
                    named = _REVISION.search(line)
                    if named is not None:
                        self._lines.setdefault(named[1].decode("ascii"), []).append(line)
            if len(self._files) > FILES_MAX:
                self._remark(f"{FOLDER} has {len(self._files):,} files: only the first {FILES_MAX} are read.")
        return self._lines

    def has_note(self, tool: str, commit: str) -> bool:
        """Return whether a tool has a note about a commit, also one that is left out."""
        return self._entry(tool, commit) is not None

    def _entry(self, tool: str, commit: str) -> TreeEntry | None:
        """Return where a note is: git puts notes into folders of two digits each, as many as it likes."""
        if tool not in self._tips:
            return None
        try:
            if tool not in self._roots:
                head = self._sized(self._tips[tool], "commit", NOTE_MAX)
                self._roots[tool] = head[5:].split(b"\n", 1)[0].decode("ascii", "replace")
            tree, rest = self._roots[tool], commit
            while rest:
                entries = self._tree(tree)
                if rest in entries:
                    return entries[rest]
                found = entries.get(rest[:2])
                if found is None or found.mode != _FOLDER_MODE:
                    return None
                tree, rest = found.oid, rest[2:]
        except (KeyError, ValueError) as error:
            why = str(error) if isinstance(error, LeftOutError) else "it is damaged"
            self._remark(f"{REFS[tool]} is left out: {why}.")
            del self._tips[tool]
        return None

    def _tree(self, oid: str) -> dict[str, TreeEntry]:
        if oid not in self._trees:
            self._sized(oid, "tree", TREE_MAX, read=False)
            self._trees[oid] = self._git.tree(oid)
        return self._trees[oid]

    def _sized(self, oid: str, kind: str, most: int, *, read: bool = True) -> bytes:
        """Return an object, once it is known to be of a kind and not too large.

        Raises:
            KeyError: It is missing, or of another kind.
            LeftOutError: It is too large.
        """
        found, size = self._git.heads([oid])[oid]
        if found != kind:
            raise KeyError(oid)
        if size > most:
            raise LeftOutError(f"it has {size:,} bytes, and at most {most:,} are read")
        return self._git.read(oid)[1] if read else b""

    def _line_count(self, commit: str, path: str) -> int | None:
        """Return the number of lines of a file in a commit; None if it cannot be told."""
        try:
            found = lookup(self._git, self._git.commit(commit).tree, path)
            if found is None:
                return None
            data = self._sized(found.oid, "blob", FILE_MAX)
        except (KeyError, ValueError):
            return None
        return data.count(b"\n") + (not data.endswith(b"\n") and bool(data))

    def _leave_out(self, tool: str, commit: str, error: Exception) -> None:
        why = str(error) if isinstance(error, LeftOutError) else "it cannot be read"
        what = "note" if tool == GIT_AI else "record"
        self._remark(f"{tool}'s {what} about {commit[:12]} is left out: {why}.")

    def _remark(self, text: str) -> None:
        self._remarks.setdefault(text)


def _authorship(data: bytes, commit: str, path: str | None) -> tuple[list[Claim], str]:
    """Return what a note of git-ai says of a file, and a path in it that is outside of the repository, or "".

    Args:
        path: The file; None for all, without ranges.

    Raises:
        ValueError: It is not of the form, or of another version.
    """
    head, metadata = parse_authorship(data)
    found: list[Claim] = []
    name, outside = "", ""
    left = SPANS_MAX
    for line in head:
        if not line.startswith("  "):
            name = line[1:-1] if len(line) > 1 and line[0] == line[-1] == '"' else line
            outside = outside or ("" if is_inside(name) else name)
            continue
        key, _, ranges = line[2:].partition(" ")
        word = _word(key, metadata, commit) if is_inside(name) and path in (None, name) else None
        if word is not None:
            some = [] if path is None else list(islice(spans(ranges), left + 1))
            left -= max(1, len(some))
            _check(left)
            found.append((some, word))
    return found, outside


def _check(left: int) -> None:
    if left < 0:
        raise LeftOutError(f"it has more than {SPANS_MAX:,} ranges of one file")


def parse_authorship(data: bytes) -> tuple[list[str], dict[str, Any]]:
    """Return the lines about files of a note of git-ai, and its metadata.

    Raises:
        LeftOutError, ValueError: It is not of the form, or of another version.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise LeftOutError("it is not UTF-8") from None
    head, divider, rest = f"\n{text}".partition("\n---\n")
    if not divider:
        raise LeftOutError("it has no line `---`")
    metadata = strict_json.read(rest.strip())
    version = metadata.get("schema_version") if isinstance(metadata, dict) else None
    if version != AUTHORSHIP:
        raise LeftOutError(f"it is of the version {_text(version) or 'none'}, not {AUTHORSHIP}")
    return [line.rstrip() for line in head.split("\n") if line.strip()], metadata


def _word(key: str, metadata: dict[str, Any], commit: str) -> Word | None:
    """Return who a key of a note means."""
    name = key.partition("::")[0]
    kind = "sessions" if key.startswith("s_") else "humans" if key.startswith("h_") else "prompts"
    record = _dict(_dict(metadata.get(kind)).get(name))
    if not record:
        return None
    if kind == "humans":
        return Word(GIT_AI, commit, HUMAN, person=_text(record.get("author")))
    agent = _dict(record.get("agent_id"))
    return Word(
        GIT_AI, commit, AI, _text(agent.get("tool")), _text(agent.get("model")), _text(agent.get("id"))
    )


def spans(text: str) -> Iterator[Span]:
    """Yield the ranges of lines that a note of git-ai names, such as `1-4,9`.

    Raises:
        LeftOutError: They are not of the form.
    """
    for part in text.split(","):
        found = _SPAN.fullmatch(part)
        if found is None or not 1 <= int(found[1]) <= int(found[2] or found[1]):
            raise LeftOutError(f"it has the lines {_text(part) or '(none)'}")
        yield int(found[1]), int(found[2] or found[1])


def _trace(data: bytes, commit: str, path: str | None) -> tuple[list[Claim], str]:
    """Return the same of records of agent-trace.

    Raises:
        ValueError: They are not of the form, or of another version.
    """
    try:
        value = strict_json.read(data.decode("utf-8").strip())
    except UnicodeDecodeError:
        raise LeftOutError("it is not UTF-8") from None
    found: list[Claim] = []
    outside = ""
    for record in map(_dict, value if isinstance(value, list) else [value]):
        version, vcs = _text(record.get("version")), _dict(record.get("vcs"))
        if version is None or version.split(".")[:2] != TRACE.split(".")[:2]:
            raise LeftOutError(f"it is of the version {version or 'none'}, not {TRACE}")
        if vcs.get("type", "git") != "git" or vcs.get("revision", commit) != commit:
            continue
        client = _text(_dict(record.get("tool")).get("name"))
        for file in map(_dict, _list(record.get("files"))):
            name = file.get("path")
            if not isinstance(name, str) or not is_inside(name):
                outside = outside or _text(name) or "(none)"
            elif path in (None, name):
                for talk in map(_dict, _list(file.get("conversations"))):
                    found += islice(_of_talk(talk, client, commit), SPANS_MAX + 1)
                    _check(SPANS_MAX - len(found))
    return found if path is not None else [([], word) for _, word in found], outside


def _of_talk(talk: dict[str, Any], client: str | None, commit: str) -> Iterator[Claim]:
    for each in map(_dict, _list(talk.get("ranges"))):
        who = _dict(each.get("contributor") or talk.get("contributor"))
        first, last = each.get("start_line"), each.get("end_line")
        if type(first) is not int or type(last) is not int or not 1 <= first <= last:
            raise LeftOutError(f"it has the lines {_text(str(first))}-{_text(str(last))}")
        kind = who.get("type") if who.get("type") in KINDS else "unknown"
        model, url = _text(who.get("model_id")), _text(talk.get("url"))
        yield [(first, last)], Word(AGENT_TRACE, commit, str(kind), client, model, url)


def is_inside(path: str) -> bool:
    """Return whether a path is one of a repository: relative, and not above its top."""
    parts = path.replace("\\", "/").split("/")
    return bool(path) and ".." not in parts and parts[0] != "" and not re.match("[A-Za-z]:", parts[0])


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> Iterable[Any]:
    return value if isinstance(value, list) else ()


def _text(value: object) -> str | None:
    """Return a text that is safe to show: shortened, and without invalid characters."""
    if not isinstance(value, str) or not value:
        return None
    return within(value[: 4 * TEXT_COLUMNS].encode("utf-8", "replace").decode("utf-8"), TEXT_COLUMNS)
