"""What a person answers in the page: one operation of the library each, on exactly what the page has shown."""

from __future__ import annotations

from ..agents import caller as callers
from ..calls import SERVER
from ..errors import UsageError
from ..history import open_work
from ..order.task import SUBMITTED
from ..outcome import command
from ..records.ids import is_id
from ..signals import reply, send
from ..work import handoffs, task_decisions, task_rules, task_work
from .board import millis_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypedDict

    from ..agents.caller import Caller, CallerClaims
    from ..history.open_work import Wait
    from ..store import Store

    Form = dict[str, str | int]  # what the page sends

    class Recorded(TypedDict):
        """What was recorded: the id of a signal or an event, and sentences about it."""

        id: str
        warnings: list[str]


ANSWER = "answer"  # to the question about a task
BAD_FORM = "bad-form"
ALL_WAITS = 10_000
TEXTS, NUMBERS = ("do", "id", "text"), ("since",)


def ways(wait: Wait) -> list[str]:
    """Return the names of the answers by which whoever owes something can give it in the page."""
    if wait.what == open_work.ACCEPTANCE:
        return ["accept"]
    if wait.what == open_work.ANSWER:
        return ["agree", "reject", "reply"] if wait.thread_id else [ANSWER]
    return ["take", "refuse"] if wait.state == SUBMITTED else []


def record(store: Store, who: CallerClaims, form: object) -> Recorded:
    """Record an answer as the caller.

    Args:
        who: The caller of the command that serves the page.
        form: What the page sent: `do`, one of `ways`; `id`, of the signal or task; `since`, when the waiting began, as the page has shown it;
            `text`, the words.

    Raises:
        GateError: A rule of the project refuses it. Nothing was written.
        UsageError: `bad-form`: the form is invalid; `not-awaited`: nothing waits for the caller, or no longer; other codes are those of the operation.
        StoreError: It can't be recorded.
    """
    found = _form(form)
    way, id, text = str(found["do"]), str(found["id"]), str(found["text"]).strip()
    with store.one_look():
        caller = callers.find(store, who)
        assert caller is not None  # `find` raises
        if way in ("agree", "reject"):
            _refuse_void(store, caller, id, way.upper())
        _require_awaited(store, caller, way, id, found["since"])
    return _WAYS[way](store, caller, id, text)


def _form(form: object) -> Form:
    """Return a form of which every field is there and nothing else."""
    if not isinstance(form, dict) or set(form) != {*TEXTS, *NUMBERS}:
        raise _bad_form(f"an object with {', '.join((*TEXTS, *NUMBERS))} is valid")
    if not all(type(form[each]) is str for each in TEXTS) or type(form["since"]) is not int:
        raise _bad_form("since is a number, the others are texts")
    if form["do"] not in _WAYS or not any(is_id(kind, form["id"]) for kind in ("sig", "task")):
        raise _bad_form(f"do is one of {', '.join(_WAYS)}, id that of a signal or task")
    return form


def _bad_form(valid: str) -> UsageError:
    return UsageError(f"The answer is not in the form of this page: {valid}. Nothing was written.", code=BAD_FORM)  # fmt: skip


def _refuse_void(store: Store, caller: Caller, id: str, intent: str) -> None:
    """Raise UsageError for a decision that would not count, such as on a proposal that another one has replaced meanwhile."""
    _, why = reply.look_ahead(store, caller, id, intent)
    if why:
        raise _not_awaited(" ".join(why), id)


def _require_awaited(store: Store, caller: Caller, way: str, id: str, since: object) -> None:
    """Raise UsageError unless exactly this still waits for the caller. A reply without a decision may come later, too."""
    for each in open_work.waits(store, caller, limit=ALL_WAITS).rows:
        if each.you == open_work.OWES and each.id == id and millis_of(each.since) == since:
            return
    if way != "reply":
        raise _not_awaited(
            "It does not wait for you as this page has shown it: it was answered or changed meanwhile.", id
        )


def _not_awaited(why: str, id: str) -> UsageError:
    show = ["thread"] if id.startswith("sig-") else ["task", "show"]
    return UsageError(f"{why} Nothing was written.", code="not-awaited", next=[command("gitmem", *show, id)])


def _reply(intent: str | None) -> Callable[[Store, Caller, str, str], Recorded]:
    def answer(store: Store, caller: Caller, id: str, text: str) -> Recorded:
        sent = send.send(store, caller, text, reply_to=id, intent=intent)
        return _recorded(sent.signal["signal_id"], sent.warnings)

    return answer


def _take(store: Store, caller: Caller, id: str, text: str) -> Recorded:
    found = handoffs.take_handoff(store, caller, id)
    return _recorded(found.event_id, found.warnings)


def _refuse(store: Store, caller: Caller, id: str, text: str) -> Recorded:
    found = task_work.reject(store, caller, id, text or None)
    return _recorded(found.event_id, found.warnings)


def _accept(store: Store, caller: Caller, id: str, text: str) -> Recorded:
    found = task_decisions.seal_task(store, caller, id)
    return _recorded(found.event_id, found.warnings)


def _answer(store: Store, caller: Caller, id: str, text: str) -> Recorded:
    task = task_rules.require(store, id, writing=True)
    if (task.record.get("agent") or "").startswith(SERVER):
        raise UsageError(
            f"{id} is done by a server, which gets an answer only while a command waits. Nothing was written.",
            code="remote-task",
            next=[command("gitmem", "task", "show", id)],
        )
    found = task_decisions.message(store, caller, id, text)
    return _recorded(found.event_id, found.warnings)


def _recorded(id: str | None, warnings: Sequence[str]) -> Recorded:
    return {"id": id or "", "warnings": list(warnings)}


_WAYS: dict[str, Callable[[Store, Caller, str, str], Recorded]] = {
    "agree": _reply("AGREE"),
    "reject": _reply("REJECT"),
    "reply": _reply(None),
    "take": _take,
    "refuse": _refuse,
    "accept": _accept,
    ANSWER: _answer,
}
