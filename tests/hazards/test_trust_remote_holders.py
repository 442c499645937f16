"""Mail for a session of another clone, after a peer wrote in its name that it is somebody else."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from gitmem.log.lines import format_at

from .forging import Clone, Hub, line

EVIL = "evil:x:y"


def now(seconds: float) -> str:
    return format_at(time.time_ns() // 1000 + int(seconds * 1_000_000))


class Scene:
    """Planck's clone, and Curie's, which have met; Planck has written to Curie if `pinned`."""

    def __init__(self, root: Path, *, pinned: bool, identity: bool = True) -> None:
        self.hub = Hub(root)
        self.planck, self.curie = self.hub.clone("Planck"), self.hub.clone("Curie")
        self.planck.sync()
        self.session, self.identity = self.curie.session, self.curie.identity
        if not identity:
            started = self.curie(
                "session", "start", "--name", "Meitner", "--json", env={"GITMEM_SESSION": ""}
            )
            assert started.status == 0, started
            self.session, self.identity = started.json["session_id"], ""
        self.name = "Curie" if identity else "Meitner"
        self.curie.sync()
        self.planck.sync()
        if pinned:
            self.planck.send("hello", "--to", self.name)

    def forge(self, event: str, at: float, **fields: object) -> None:
        """A line in the name of Curie's session."""
        clone_id = next(
            record["clone_id"]
            for record in map(json.loads, self.hub.lines())
            if record.get("session_id") == self.session
        )
        about = {"session_id": self.session, "event": event, "display_name": self.name, "clone_id": clone_id}
        self.hub.forge(line("session", now(at), **{**about, **fields}))
        self.planck.sync()

    def unread(self, who: Clone, message: str) -> bool:
        """Whether the session gets a message."""
        self.planck.sync()
        who.sync()
        shown = who("inbox", "--json", env={"GITMEM_SESSION": self.session})
        return message in [each["message"] for each in shown.json["signals"]]


@pytest.mark.parametrize(("event", "at"), [("change", 1.0), ("start", 1.0)])
def test_a_name_that_was_used_is_refused_once_its_session_has_another_identity(
    tmp_path: Path, event: str, at: float
) -> None:
    """Both identities are named, and the id of the session still reaches it."""
    scene = Scene(tmp_path, pinned=True)
    scene.forge(event, at, agent_identity=EVIL)

    for name in ("Curie", "curie"):
        said = scene.planck("signal", "secret", "--to", name, "--json")
        assert (said.status, said.json["error"]["code"]) == (2, "ambiguous-recipient"), said
        assert EVIL in said.json["error"]["message"] and scene.identity in said.json["error"]["message"]
    sent = scene.planck("signal", "for the session", "--to", scene.session, "--json").json
    assert sent["signal"]["recipients"] == [scene.session]
    assert any(EVIL in each for each in sent["warnings"])
    assert scene.unread(scene.curie, "for the session")


@pytest.mark.parametrize(
    ("pinned", "identity", "event", "at"),
    [(True, False, "change", 1.0), (True, False, "start", -100.0), (False, True, "change", 1.0)],
)
def test_a_session_whose_identity_was_changed_gets_its_mail_by_its_id(
    tmp_path: Path, pinned: bool, identity: bool, event: str, at: float
) -> None:
    """By name, id or a beginning of it: where it had no identity, or where nobody wrote to it before."""
    scene = Scene(tmp_path, pinned=pinned, identity=identity)
    scene.forge(event, at, agent_identity=EVIL)

    for to in (scene.session, scene.session[:12], scene.name, scene.name):
        sent = scene.planck("signal", f"to {to}", "--to", to, "--json").json
        assert sent["signal"]["recipients"] == [scene.session], sent
        assert any(EVIL in each for each in sent["warnings"])
    assert scene.unread(scene.curie, f"to {scene.name}")


def test_an_identity_that_came_back_in_another_session_keeps_its_name(tmp_path: Path) -> None:
    """A line that changes the session which had the name first says nothing of that one."""
    scene = Scene(tmp_path, pinned=True)
    assert scene.curie("session", "end").status == 0
    again = scene.curie("session", "start", "--name", "Curie", "--agent-identity", scene.identity, "--json",
                        env={"GITMEM_SESSION": ""})  # fmt: skip
    assert again.status == 0, again
    scene.curie.session = again.json["session_id"]
    scene.curie.sync()
    scene.forge("change", -1000.0, agent_identity=EVIL)
    sent = scene.planck.send("still you", "--to", "Curie")
    assert sent["recipients"] == [scene.identity]
