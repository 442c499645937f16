"""What doctor and failed commands advise can be done where they are: no command that fails in the same way, no circle."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitmem.log import ref
from tests.conftest import Git
from tests.hazards.conftest import Desk, Said, powerless, process

WRITES = ("gitmem init", "gitmem doctor --fix", "gitmem sync", "git update-ref", "rm ")


def codes(said: Said) -> dict[str, dict[str, str]]:
    return {each["code"]: each for each in said.json["findings"]}


@pytest.mark.parametrize("fix", [[], ["--fix"]])
def test_where_the_git_folder_is_read_only_doctor_advises_nothing_that_writes_it(
    desk: Desk, git: Git, fix: list[str]
) -> None:
    session = desk.start("Planck")
    desk.send(session, "Said before.", "--broadcast")
    git(
        "update-ref", "refs/heads/gitmem", "refs/gitmem/log", cwd=desk.repo
    )  # who has it may merge it by hand
    folder = desk.repo / ".git"
    every = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    for path in every:
        path.chmod(0o555)
    try:
        env = {"GITMEM_SESSION": session}
        sent = process("signal", "Hi", "--broadcast", "--json", cwd=desk.repo, env=env, before=powerless)
        assert (
            sent.json["recorded"]
            and len([each for each in sent.json["warnings"] if "waiting in" in each]) == 1
        )
        said = process("doctor", *fix, "--json", cwd=desk.repo, env=env, before=powerless)
    finally:
        for path in every:
            path.chmod(0o755)

    found = codes(said)
    assert "read-only" in found and "not-checked" not in found, said
    assert not [each for each in said.json["next"] if each.startswith(WRITES)], said
    assert not [each for each in found.values() if each["command"].startswith(WRITES)]
    assert "Once the git folder is writable, run `gitmem init" in found["driver-missing"]["fix"]


@pytest.mark.parametrize("args", [["doctor"], ["doctor", "--fix"], ["init"], ["signal", "Hi"]])
def test_a_config_that_git_refuses_is_named_with_its_line(desk: Desk, args: list[str]) -> None:
    session = desk.start("Planck")
    config = desk.repo / ".git" / "config"
    config.write_text(config.read_text() + "[broken\n")
    number = len(config.read_text().splitlines())

    said = desk(*args, "--json", session=session)

    assert said.status == 4 and said.error["code"] == "bad-config"
    assert str(config) in said.error["message"] and "line" in said.error["message"]
    (next,) = said.json["next"]
    assert next.startswith("sed -n ") and next.endswith(f"p {config}")
    assert str(number) in next or str(number + 1) in next


def test_a_doctor_that_fails_does_not_send_to_itself(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from gitmem.doctor import doctor
    from gitmem.errors import StoreError

    def fail(*_: object) -> None:
        raise StoreError("The disk is full.", next=["gitmem doctor"])

    desk.start("Planck")
    monkeypatch.setattr(doctor, "examine", fail)

    assert desk("doctor", "--json").json["next"] == ["git fsck"]


@pytest.mark.parametrize("how", ["lost", "replaced"])
def test_doctor_tells_of_a_clone_key_that_was_lost_or_replaced(desk: Desk, how: str) -> None:
    session = desk.start("Planck")
    desk.send(session, "Said before.", "--broadcast")
    assert "clone-key-replaced" not in codes(desk("doctor", "--json"))
    key = desk.repo / ".git" / "gitmem" / "key"
    before = key.read_bytes()
    key.unlink()
    if how == "replaced":
        desk.send(session, "Said afterwards.", "--broadcast")
        assert key.read_bytes() != before

    said = desk("doctor", "--json", session=session)

    finding = codes(said)["clone-key-replaced"]
    assert finding["severity"] == "problem" and how in finding["what"] and session in finding["fix"]
    assert "gitmem session start" in said.json["next"]
    assert desk("session", "end", session=session).status == 0
    ended = codes(desk("doctor", "--json"))["clone-key-replaced"]
    assert (ended["severity"], ended["command"]) == ("note", "")
    key.write_bytes(before)
    assert "clone-key-replaced" not in codes(desk("doctor", "--json"))


def test_a_session_of_another_clone_does_not_look_like_a_lost_key(
    desk: Desk, git: Git, tmp_path: Path
) -> None:
    """Its lines carry codes that nobody here can check."""
    desk.start("Planck")
    other = tmp_path / "other"
    git("clone", "--quiet", str(desk.repo), str(other))
    desk.start("Curie", cwd=other)
    git("fetch", "--quiet", str(other), f"{ref.LOG_REF}:refs/remotes/origin/gitmem", cwd=desk.repo)
    git("remote", "add", "origin", str(other), cwd=desk.repo)
    desk("sync", "--json")

    assert "clone-key-replaced" not in codes(desk("doctor", "--json"))
