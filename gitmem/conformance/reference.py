"""The contract as a simple program, a bus in memory: `--adapter gitmem.conformance.reference:Reference`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from ..agents import vocabulary
from .adapter import Refused
from .definitions import descriptor_of, holds
from .reference_signals import SignalReference
from .work_adapter import Claim, Descriptor, Task

Event = Mapping[str, Any]


class Reference(SignalReference):
    """One place of the bus: signals, roles, tasks and claims."""

    def role(self, session: str, role: str) -> Descriptor | None:
        """State a session's role."""
        found = descriptor_of(role)
        self.records.sessions[session] = {**self.records.sessions[session], "role": found}
        return found

    def delegate(
        self, session: str, message: str, *, to: str, role: str | None = None, paths: Sequence[str] = ()
    ) -> Task:
        """Record a task, and send it to whom it is for."""
        stated = (each.get("role") for each in self.records.sessions.values() if to in each.values())
        asked = (
            descriptor_of(role)
            if role
            else next(filter(None, stated), descriptor_of(vocabulary.builtin().default_lifecycle))
        )
        if asked is None:
            raise Refused("A delegation names a role.")
        kinds = vocabulary.builtin().lifecycle_roles.get(asked["lifecycle_role"], ())
        scope = {"responsibility_kinds": [*kinds], "paths": [*paths]}
        wanted = to.removeprefix("role:") if to.startswith("role:") else None
        task = self._record(
            session,
            message,
            agent=None if wanted else self.address(to, False),
            wanted=wanted,
            role=asked,
            scope=scope,
            handed=[],
        )
        told = [each for each in self.records.sessions.values() if wanted and holds(each, wanted)]
        if told or not wanted:
            self.send(
                session, message, to=[to], delegation_id=task["task_id"], intent="PROPOSE", requires_ack=True
            )
        return task

    def handoff(self, session: str, task_ids: Sequence[str], to: str) -> Task:
        """Record a task that hands others over."""
        for id in task_ids:
            if self._holder(id) != session:
                raise Refused(f"{id} is not yours.")
        return self._record(
            session,
            "handoff",
            agent=self.address(to, False),
            wanted=None,
            role=None,
            scope={"responsibility_kinds": []},
            handed=[*task_ids],
        )

    def work(self, session: str, task_id: str, event: str, text: str = "") -> Task:
        """Record an event of a task, and of a taken handoff one of each task that it hands over."""
        task, shown = self.records.tasks[task_id], self.task(task_id)
        is_caller = task["session"] == session
        if event == "seal":
            if not is_caller or shown["confirmed"] or shown["result"] is None:
                raise Refused("Only the session that asked accepts an end, once.")
        elif shown["state"] in ("completed", "canceled"):
            raise Refused(f"It is {shown['state']}.")
        elif event == "take":
            self._check_take(session, task, shown)
        elif event in ("message", "cancel"):
            if not is_caller:
                raise Refused("Somebody else asked for it.")
        elif self._holder(task_id) != session and session not in [
            each["session"] for each in self._held(task_id)
        ]:
            raise Refused("You have not taken it.")
        ended = next((each["id"] for each in self._ends(task_id)), None)
        for id in (task_id, *(task["handed"] if event == "take" else ())):
            self._add(id, session, event, text, ended)
        return self.task(task_id)

    def task(self, task_id: str) -> Task:
        """Return a task with what its events make of it."""
        task, events = self.records.tasks[task_id], self._events(task_id)
        seal = next((each for each in events if each["event"] == "seal"), None)
        end = next(
            (each for each in self._ends(task_id) if seal is None or each["id"] == seal["ended"]), None
        )
        held = self._held(task_id)
        holder = held[0] if held else None
        actual = holder["role"] if holder else None
        is_canceled = any(each["event"] == "cancel" for each in events) and not held
        state = "completed" if end else "canceled" if is_canceled else self._open_state(events, holder)
        asked = task["role"]
        return {
            "task_id": task_id, "message": task["message"], "sender_identity": task["sender"], "agent": task["agent"],
            "state": state, "requested_role": asked, "requested_ownership_scope": task["scope"],
            "holder": holder["by"] if holder else None, "actual_role": actual,
            "role_mismatch": bool(asked and actual and _parts(asked) != _parts(actual)), "conflict": len(held) > 1,
            "result": end["text"] if end else None, "confirmed": seal is not None or is_canceled,
        }  # fmt: skip

    def claim(self, session: str, paths: Sequence[str]) -> Claim:
        """Record a claim on paths that nobody else claims."""
        who, stands = self.reader(session), self.claims()
        if any(each["owner"] != who and self.overlap(each["paths"], paths) for each in stands):
            raise Refused("Somebody else claims one of these paths.")
        id = f"claim-{self._new()}"
        seen = [*self.records.claims]
        self.records.claims[id] = {"claim_id": id, "owner": who, "paths": [*paths], "seen": seen}
        return self._shown(id)

    def unclaim(self, session: str, claim_id: str) -> None:
        """Record that a claim has ended."""
        self.records.unclaimed.add(claim_id)

    def claims(self) -> list[Claim]:
        """Return the claims that have not ended."""
        return [self._shown(id) for id in sorted(self.records.claims) if id not in self.records.unclaimed]

    @staticmethod
    def overlap(some: Iterable[str], others: Sequence[str]) -> bool:
        """Return whether two lists of paths have a file in common. Of two patterns one must be a path without `*`."""
        return any(_covers(one, other) or _covers(other, one) for one in some for other in others)

    def _shown(self, id: str) -> Claim:
        one = self.records.claims[id]
        contested = any(
            other["owner"] != one["owner"]
            and self.overlap(other["paths"], one["paths"])
            and id not in other["seen"]
            and name not in one["seen"]
            and name not in self.records.unclaimed
            for name, other in self.records.claims.items()
        )
        return {"claim_id": id, "owner": one["owner"], "paths": [*one["paths"]], "contested": contested}

    def _record(self, session: str, message: str, **fields: Any) -> Task:
        id = f"task-{self._new()}"
        self.records.tasks[id] = {
            "session": session,
            "sender": self.reader(session),
            "message": message,
            **fields,
        }
        return self.task(id)

    def _add(self, task_id: str, session: str, event: str, text: str, ended: str | None) -> None:
        id = f"tev-{self._new()}"
        self.records.events[id] = {
            "id": id, "task": task_id, "event": event, "by": self.reader(session), "session": session, "text": text,
            "at": self._now(), "ended": ended, "seen": [each["id"] for each in self._events(task_id)],
            "role": self.records.sessions[session].get("role"),
        }  # fmt: skip

    def _check_take(self, session: str, task: Mapping[str, Any], shown: Task) -> None:
        """Raise Refused if somebody else has a task, or it is for somebody else."""
        if task["agent"] not in (None, self.reader(session)):
            raise Refused(f"It is for {task['agent']}.")
        if shown["holder"]:
            raise Refused(f"{shown['holder']} has it.")

    def _events(self, task_id: str) -> list[Event]:
        found = [each for each in self.records.events.values() if each["task"] == task_id]
        return sorted(found, key=lambda each: (each["at"], each["id"]))

    def _held(self, task_id: str) -> list[Event]:
        """Return the takes that nobody had seen who took it later, and that their takers have not given back."""
        events = self._events(task_id)
        takes = [each for each in events if each["event"] == "take"]
        given_back = {each["session"]: each["seen"] for each in events if each["event"] == "release"}
        return [
            each
            for each in takes
            if each["id"] not in given_back.get(each["session"], ())
            and not any(each["id"] in later["seen"] for later in takes)
        ]

    def _holder(self, task_id: str) -> str | None:
        held = self._held(task_id)
        return str(held[0]["session"]) if held else None

    def _ends(self, task_id: str) -> list[Event]:
        return [each for each in self._events(task_id) if each["event"] == "done"]

    @staticmethod
    def _open_state(events: Sequence[Event], holder: Event | None) -> str:
        said = [each["event"] for each in events if each["event"] in ("take", "ask", "message", "release")]
        if holder is None:
            return "submitted"
        return {"ask": "input-required", "message": "submitted"}.get(said[-1], "working")


def _covers(pattern: str, path: str) -> bool:
    return path == pattern or path.startswith(f"{pattern}/") or fnmatchcase(path, pattern)


def _parts(role: Mapping[str, Any]) -> tuple[str, str]:
    return role["lifecycle_role"], role["specialty_profile"]
