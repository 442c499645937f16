"""The result of installing or removing the hooks of one client."""

from __future__ import annotations

from ...outcome import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .clients import Client


class ClientHooks(Outcome):
    """The result for one client.

    Attributes:
        client, title: Its name in gitmem, and its product name.
        scope: `project` or `user`.
        why: Why it was selected: by request, or by a sign of its use.
        state: `installed`, `updated`, `unchanged`, `advised` (it has no hooks), `failed`, `removed` or `absent`.
        pushed: Whether its model receives signals without asking.
        files: The files that were changed.
        problem: The error, in a sentence; "" without one.
        remarks: Advice for its user.
    """

    __slots__ = ("client", "title", "scope", "why", "state", "pushed", "files", "problem", "remarks")

    def __init__(self, client: Client, scope: str, why: str) -> None:
        self.client = client.name
        self.title = client.title
        self.scope = scope
        self.why = why
        self.state = "unchanged"
        self.pushed = client.pushes
        self.files: list[str] = []
        self.problem = ""
        self.remarks: list[str] = []
