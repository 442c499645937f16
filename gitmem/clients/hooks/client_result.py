"""What became of the hooks of one client."""

from __future__ import annotations

from ...outcome import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .clients import Client


class ClientHooks(Outcome):
    """What became of one client.

    Attributes:
        client, title: Its name here, and its own.
        scope: `project` or `user`.
        why: Why it was taken: asked for, or what was found of it.
        state: `installed`, `updated`, `unchanged`, `advised` (it takes no hooks), `failed`, `removed` or `absent`.
        pushed: Whether signals reach its model by themselves.
        files: The files that were changed.
        problem: Why it failed, in a sentence; "" where it did not.
        remarks: What its user must know or do.
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
