"""Send to A2A servers what was recorded of tasks that they have: answers, and that a task is canceled.

What a server was not told, `gitmem task wait` tells it.
"""

from __future__ import annotations

from .environment import variable
from .remote_call import TOKEN, following, is_over, of_server, of_servers, until

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitmem.store import Store
    from gitmem.tasks.append import TaskChange
    from gitmem.tasks.fold import FoldedTask


def asks(store: Store, id: str) -> bool:
    """Return whether a server that this clone has called waits for an answer.

    Raises:
        UsageError: See `of_servers`.
    """
    from gitmem.tasks import WAITING

    task = of_server(store, id)
    return task is not None and task.state in WAITING and bool(of_servers(store, [id]))


def send_answer(store: Store, found: TaskChange) -> None:
    """Send an answer that was recorded to the server that has asked; warn if it does not have it in time."""
    from gitmem.a2a.remote_links import RemoteLinks

    links, id = RemoteLinks(store.repo.state), found.task_id
    before = link.answers if (link := links.read(id)) is not None else 0
    with following(store, [id]):
        is_sent = until(lambda: is_over(store, id) or ((link := links.read(id)) and link.answers > before))
    if not is_sent:
        found.warnings.append("The server does not have it yet; gitmem task wait sends it.")
    found.next = [f"gitmem task wait {id}"]


def send_cancel(store: Store, found: TaskChange) -> None:
    """Ask the server of a task that was canceled to cancel it, and let our session that has the task give it back."""
    from gitmem.a2a.remote_links import RemoteLinks

    task, id = of_server(store, found.task_id), found.task_id
    if task is None:
        return
    has_link = RemoteLinks(store.repo.state).read(id) is not None
    said = cancel_there(store, [id])
    if has_link and not said and not task.is_finished:
        with following(store, [id]):
            has_ended = until(lambda: is_over(store, id))
        if has_ended:
            found.state, found.warnings = "canceled", []
    found.warnings += said


def cancel_there(store: Store, ids: Sequence[str]) -> list[str]:
    """Ask the servers of some tasks to cancel those whose callers want that; return a sentence for each that was not told."""
    from gitmem.tasks import rules

    said = []
    for id in ids:
        task = of_server(store, id)
        if task is None or not task.cancels:
            continue
        is_wished = any(rules.close(task, each.sender) is None for each in task.cancels)
        if task.state == "canceled" or (is_wished and not task.is_finished):
            why = _not_canceled(store, task)
            said += [f"The server is not told that it is canceled: {why}."] if why else []
    return said


def _not_canceled(store: Store, task: FoldedTask) -> str:
    """Ask a server to cancel a task; return why it was not told, or ""."""
    from gitmem.a2a.remote_links import RemoteLinks, digest_of

    from .gateway import needs_sdk

    links, id = RemoteLinks(store.repo.state), task.record["task_id"]
    known, link = links.server(task.record.get("agent") or ""), links.read(id)
    if known is None:
        return "another clone has called it"
    if link is None or not link.id:
        return ""  # it does not have the task, or was told
    url, digest = known
    if digest != digest_of(variable(TOKEN)):
        return f"{TOKEN} is not the token that it got; with that, gitmem task wait {id} tells it"
    with needs_sdk("a call to an A2A server"):
        from gitmem.a2a import remote
    if not remote.cancel(url, variable(TOKEN), link.id):
        return f"it does not answer; gitmem task wait {id} tells it"
    if task.is_finished:
        links.delete(id)
    return ""


def remark(store: Store, id: str) -> list[str]:
    """Return which command sends what was recorded to the server that has a task; empty for any other task."""
    from gitmem.a2a.remote_links import RemoteLinks

    task = of_server(store, id)
    if task is None or RemoteLinks(store.repo.state).read(task.record["task_id"]) is None:
        return []
    return [f"The server gets it with: gitmem task wait {task.record['task_id']}"]
