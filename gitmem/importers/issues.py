"""Make tasks of the issues of another tracker: the same issue is the same task, on every clone.

Nobody in particular is asked to do such a task: whoever wants it takes it. Its lines have no writer, the times of the issue, and ids that follow from
the tracker and from the id there, so the same issues give the same lines everywhere. What is in the log is never rewritten: an issue that has
changed adds an event with its whole text, and one that was closed a seal, unless its task has an outcome already.
"""

from __future__ import annotations

import json
from graphlib import CycleError, TopologicalSorter

from .. import records
from ..log.lines import format_at, parse_at
from ..outcome import Struct
from ..records import ids
from ..text.sanitize import first_of, sanitize
from ..work import LINKS_MAX, stored_tasks
from .imported import ImportRun

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ..store import Store
    from .imported import Imported


COUNTED = ("read", "imported", "updated", "present", "left", "repeated", "bad")
ID_MAX = 100  # characters
TEXT_MAX = 60_000  # bytes of the text of a task
KEPT_MAX = 32_000  # bytes of the further fields of an issue
COMMENTS_MAX, UPDATES_MAX = 50, 100  # of one issue: one sender has at most 200 events of a task
NAMED = 5  # issues of a circle that are named
CUT = "…"


class Tracker(Struct):
    """Where issues come from.

    Attributes:
        name: Its name, also in the payload, which has what has no field.
        title: Its name for people.
        has_past: Whether issues that ended before they were here become tasks, too.
    """

    name: str
    title: str
    has_past: bool

    @property
    def sender(self) -> str:
        """Who asks for the tasks."""
        return f"{self.name}:import:issues"

    def task_id(self, id: str) -> str:
        """Return the id of the task of an issue."""
        return ids.keyed_id("task", self.sender, id)


class Issue(Struct, kw_only=True):
    """An issue in the words of this log. Times are microseconds since the epoch.

    Attributes:
        id: What the tracker calls it.
        texts: Its title, and what else it says.
        unit: Its id as a work unit.
        initiative: The issue that it is a part of.
        blocked_by, references: The ids of other issues.
        comments: Author, time and text of each, oldest first.
        ended: State, time and reason.
        is_deleted: Whether the tracker keeps no more than its id.
        kept: Its other fields.
    """

    id: str
    texts: list[str]
    created: int
    updated: int
    unit: str
    priority: str | None = None
    initiative: str = ""
    blocked_by: list[str] = []
    references: list[str] = []
    comments: list[tuple[str, int, str]] = []
    ended: tuple[str, int, str] | None = None
    is_deleted: bool = False
    kept: dict[str, object] = {}


class _Made(Struct):
    """An issue as lines: of its task, of its comments, and of its end; `number` is its line in the file."""

    number: int
    issue: Issue
    task_id: str
    text: str
    line: bytes
    comments: list[bytes]
    end: bytes | None


class IssueRun(ImportRun):
    """One import of issues.

    Args:
        file: The file or the place that they come from.
    """

    def __init__(self, store: Store, found: Imported, tracker: Tracker, file: str) -> None:
        super().__init__(store, found, {"issues": file, "memories": file}, tracker.title)
        self.tracker = tracker
        self.counts = found.counts["issues"]
        self.every: dict[str, _Made] = {}

    def read(self, number: int, make: Callable[[], Issue]) -> None:
        """Convert the issue in a line. A bad one is counted and reported; of a repeated id the one that was updated last counts."""
        self.counts["read"] += 1
        made = self.tried("issues", number, lambda: self._made(number, make()))
        if made is None:
            return
        before = self.every.get(made.issue.id)
        self.counts["repeated"] += before is not None
        if before is None or before.issue.updated <= made.issue.updated:
            self.every[made.issue.id] = made

    def settle(self) -> None:
        """Add the lines that the log lacks."""
        self._tell_circles()
        every = list(self.every.values())
        states = stored_tasks.decided(self.db, [each.task_id for each in every])
        here = self.here(line for each in every for line in (each.line, *each.comments))
        texts = self._texts([each.task_id for each in every if each.task_id in states])
        for each in every:
            is_known, decided_by = each.task_id in states, states.get(each.task_id)
            if not is_known and (each.issue.is_deleted or (each.end and not self.tracker.has_past)):
                self.counts["left"] += 1
                continue
            more = [line for line in each.comments if line not in here]
            if not is_known:
                more.insert(0, each.line)
            elif each.end is None and (text := self._update(each, texts.get(each.task_id, []))) is not None:
                more.append(text)
            if each.end is not None and decided_by is None:
                more.append(each.end)
            if each.end is None and decided_by == "seal":
                self.remark(
                    "issues",
                    each.number,
                    f"{each.issue.id} is open again, but its task has ended and stays so",
                )
            self.counts["imported" if not is_known else "updated" if more else "present"] += 1
            self.lines += [(records.STREAMS["task"], line) for line in more]

    def _made(self, number: int, issue: Issue) -> _Made:
        task_id = self.tracker.task_id(issue.id)
        text = _joined(issue.texts)
        words = {"wu_id": issue.unit, "initiative_id": issue.initiative, "priority": issue.priority}
        fields: dict[str, object] = {
            "task_id": task_id,
            "thread_id": f"thread-{task_id[5:]}",
            "purpose": "delegation",
            "message": text,
            "sender_identity": self.tracker.sender,
            "blocked_by": self._tasks(issue.blocked_by),
            "references": self._tasks(issue.references),
            "payload": {self.tracker.name: {"id": issue.id, **self._kept(number, issue.kept)}},
            **{name: value for name, value in words.items() if value and records.fits("task", name, value)},
        }
        comments = [
            self._event(
                task_id,
                ("comment", author, format_at(at), said),
                at,
                {"event": "message", "message": f"{author}: {said}"},
            )
            for author, at, said in issue.comments[-COMMENTS_MAX:]
        ]
        end = None
        if issue.ended is not None:
            state, at, reason = issue.ended
            content = {"event": "seal", "state": state, "reason": sanitize(" ".join(reason.split()))[:1_000]}
            end = self._event(task_id, ("seal",), at, content)
        line = records.line("task", issue.created, fields, allow_secret=self.allow_secret)
        return _Made(number, issue, task_id, text, line, comments, end)

    def _event(self, task_id: str, key: tuple[str, ...], at: int, content: Mapping[str, object]) -> bytes:
        """Return the line of an event whose id follows from its key."""
        fields = {
            "event_id": ids.keyed_id("tev", self.tracker.sender, task_id, *key),
            "task_id": task_id,
            "sender_identity": self.tracker.sender,
            **content,
        }
        return records.line("task_event", at, fields, allow_secret=self.allow_secret)

    def _tasks(self, issues: Iterable[str]) -> list[str]:
        return [self.tracker.task_id(each) for each in dict.fromkeys(issues)][:LINKS_MAX]

    def _kept(self, number: int, kept: dict[str, object]) -> dict[str, object]:
        if len(json.dumps(kept)) <= KEPT_MAX:
            return kept
        self.remark("issues", number, "its further fields are too large; they are left out")
        return {}

    def _texts(self, task_ids: list[str]) -> dict[str, list[tuple[int, str]]]:
        """Return the time and text that each task has now, after those of earlier updates."""
        found: dict[str, list[tuple[int, str]]] = {}
        for task_id, event, record in stored_tasks.messages(self.db, task_ids):
            known = found.setdefault(task_id, [])
            is_ours = (
                self.tracker.name in (record.get("payload") or ())
                and record["sender_identity"] == self.tracker.sender
            )
            if is_ours if event == "message" else not known:
                known.append((parse_at(record["at"]), str(record.get("message"))))
        return found

    def _update(self, made: _Made, known: list[tuple[int, str]]) -> bytes | None:
        """Return the event with the text of a known issue, if that has changed."""
        last, text = known[-1] if known else (0, "")
        if text == made.text:
            return None
        if len(known) > UPDATES_MAX:
            self.remark(
                "issues",
                made.number,
                f"{made.issue.id} has changed {UPDATES_MAX} times; its text is not updated any more",
            )
            return None
        at = max(made.issue.updated, last + 1)
        content = {
            "event": "message",
            "message": made.text,
            "payload": {self.tracker.name: {"id": made.issue.id}},
        }
        return self._event(made.task_id, ("text", format_at(at), made.text), at, content)

    def _tell_circles(self) -> None:
        """Remark that open issues wait for each other in a circle."""
        waits = {
            id: sorted(
                other
                for other in made.issue.blocked_by
                if other in self.every and self.every[other].end is None
            )
            for id, made in self.every.items()
            if made.end is None
        }
        try:
            TopologicalSorter(waits).prepare()
        except CycleError as error:
            circle = sorted({*error.args[1]})
            named = first_of([*map(sanitize, circle)], NAMED)
            self.remark(
                "issues",
                self.every[circle[0]].number,
                f"issues wait for each other in a circle: {named}; each can be taken all the same",
            )


def _joined(texts: list[str]) -> str:
    """Return texts as paragraphs, cut to what a task may have."""
    whole = "\n\n".join(text for each in texts if (text := each.strip()))
    content = whole.encode()
    if len(content) <= TEXT_MAX:
        return whole
    return content[:TEXT_MAX].decode("utf-8", "ignore") + CUT
