"""Nothing is published before the user asked for it: consent, which remote it is for, and what never implies it.

Everything runs through the installed program, against a bare remote and clones of it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gitmem.log import ref
from tests import in_process
from tests.conftest import Git

SAID = "The parser is merged."
SECRET = "tok3n9z"


class Said:
    """What the program answered."""

    def __init__(self, done: subprocess.CompletedProcess[bytes]) -> None:
        self.status = done.returncode
        self.out = done.stdout.decode()
        self.text = self.out + done.stderr.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def remote(self) -> Any:
        (remote,) = self.json["remotes"]
        return remote


def gitmem(*args: str, cwd: Path, env: Mapping[str, str] | None = None, given: str | None = None) -> Said:
    done = in_process.gitmem(*args, cwd=cwd, env=env, given=(given or "").encode())
    assert b"Traceback" not in done.stderr, done.stderr
    return Said(done)


@pytest.fixture
def hub(tmp_path: Path, git: Git) -> Path:
    """A bare remote that has one branch of a user's and no log."""
    return make_hub(tmp_path, git, "hub.git")


def make_hub(root: Path, git: Git, name: str) -> Path:
    path, first = root / name, root / "first"
    git("init", "--quiet", "--bare", "--initial-branch=main", str(path))
    if not first.exists():
        git("init", "--quiet", "--initial-branch=main", str(first))
        git("commit", "--quiet", "--allow-empty", "-m", "First", cwd=first)
    git("push", "--quiet", str(path), "main", cwd=first)
    return path


@pytest.fixture
def planck(hub: Path, git: Git) -> Path:
    """A clone in which somebody has said something."""
    return clone(hub, "planck", git)


def clone(hub: Path, name: str, git: Git) -> Path:
    path = silent_clone(hub, name, git)
    speak(path, SAID)
    return path


def silent_clone(hub: Path, name: str, git: Git) -> Path:
    path = hub.parent / name
    git("clone", "--quiet", str(hub), str(path))
    git("config", "user.email", f"{name}@example.org", cwd=path)
    return path


def speak(path: Path, text: str) -> None:
    assert gitmem("signal", text, "--broadcast", cwd=path).status == 0


def published(hub: Path, git: Git) -> str:
    """Every ref of a remote but the user's branch, with what is on it."""
    return git(
        "for-each-ref", "--format=%(refname) %(objectname)", "refs/gitmem", "refs/heads/gitmem*", cwd=hub
    )


# What sync does without consent


def test_the_first_sync_lists_what_it_would_publish_and_sends_nothing(
    planck: Path, hub: Path, git: Git
) -> None:
    """Exit status 2, each record with its kind, id and text, the url, and the command that agrees."""
    said = gitmem("sync", cwd=planck)
    answer = gitmem("sync", "--json", cwd=planck)

    assert (said.status, answer.status) == (2, 2)
    assert SAID in said.text and str(hub) in said.text
    assert "next: gitmem sync --publish" in said.text
    assert (answer.remote["state"], answer.remote["unpublished"]) == ("consent-needed", 1)
    assert (answer.remote["url"], answer.remote["safe"], answer.remote["sent"]) == (str(hub), False, 0)
    (record,) = answer.remote["records"]
    assert record["kind"] == "signal" and record["id"].startswith("sig-") and SAID in record["text"]
    assert answer.json["next"] == ["gitmem sync --publish"]
    assert published(hub, git) == ""


def test_the_list_has_a_bound_and_the_count_has_none(planck: Path) -> None:
    """Of many records the newest are shown."""
    for number in range(12):
        speak(planck, f"Number {number}.")

    said, answer = gitmem("sync", cwd=planck), gitmem("sync", "--json", cwd=planck)

    assert answer.remote["unpublished"] == 13
    assert "Number 11." in said.text and "Number 2." in said.text and "Number 1." not in said.text
    assert "  13 signals\n" in said.text and "… 3 more" in said.text


def test_what_was_said_is_listed_before_receipts_and_sessions(planck: Path) -> None:
    """Most records are receipts, which say little to whoever decides; they are counted, and listed last."""
    for number in range(3):
        speak(planck, f"Number {number}.")
    for name in ("Curie", "Bohr", "Hahn"):
        started = gitmem("session", "start", "--name", name, "--json", cwd=planck)
        gitmem("inbox", "--as", started.json["session_id"], cwd=planck)
    assert (
        gitmem(
            "mem", "create", "The parser drops tabs.", "--as", "human:planck@example.org", cwd=planck
        ).status
        == 0
    )

    said, answer = gitmem("sync", cwd=planck), gitmem("sync", "--json", cwd=planck)

    assert list(answer.remote["kinds"].items())[:3] == [("signal", 4), ("node", 1), ("session", 3)]
    assert list(answer.remote["kinds"])[3:] == ["receipt"] and answer.remote["kinds"]["receipt"] >= 3
    assert answer.remote["unpublished"] == sum(answer.remote["kinds"].values())
    listed = [record["kind"] for record in answer.remote["records"]]
    assert listed[:8] == ["signal"] * 4 + ["node"] + ["session"] * 3
    assert "Number 2." in answer.remote["records"][0]["text"]
    assert "  4 signals, 1 memory node, 3 session records, " in said.text


def test_without_consent_it_still_fetches_and_unites(planck: Path, hub: Path, git: Git) -> None:
    """What others published comes; who has nothing of their own is done, with exit status 0."""
    assert gitmem("sync", "--publish", cwd=planck).status == 0
    before = published(hub, git)
    reader = silent_clone(hub, "reader", git)

    said = gitmem("sync", "--json", cwd=reader)

    assert (said.status, said.remote["state"], said.remote["unpublished"]) == (0, "synced", 0)
    assert SAID in gitmem("log", cwd=reader).text
    assert (again := gitmem("sync", "--json", cwd=reader)).status == 0 and again.remote[
        "state"
    ] == "up-to-date"
    speak(reader, "Mine.")
    said = gitmem("sync", "--json", cwd=reader)
    assert (said.status, said.remote["unpublished"]) == (2, 1)
    speak(planck, "Later.")
    gitmem("sync", cwd=planck)
    assert gitmem("sync", "--json", cwd=reader).remote["received"] == 1
    assert "Later." in gitmem("log", cwd=reader).text
    assert "Mine." not in gitmem("log", cwd=planck).text and published(hub, git) != before


def test_publish_agrees_once_and_for_all(planck: Path, hub: Path, git: Git) -> None:
    """From then on a plain sync sends, and a worktree of the clone has the same consent."""
    assert gitmem("sync", "--publish", "--json", cwd=planck).remote["state"] == "synced"
    assert "refs/heads/gitmem" in published(hub, git)
    speak(planck, "Second.")
    assert gitmem("sync", "--json", cwd=planck).remote["sent"] == 1
    git("worktree", "add", "--quiet", "-b", "side", str(hub.parent / "side"), cwd=planck)
    speak(hub.parent / "side", "Third.")
    assert gitmem("sync", "--json", cwd=hub.parent / "side").remote["state"] == "synced"


def test_the_library_has_the_same_rule(planck: Path, hub: Path, git: Git) -> None:
    import gitmem as library

    with library.open(str(planck)) as log:
        assert log.sync().remotes[0].state == "consent-needed"
        assert published(hub, git) == ""
        assert log.sync(publish=True).remotes[0].state == "synced"


# What gives it, and takes it back


def test_setup_does_not_call_a_clone_with_unsent_records_up_to_date(planck: Path, hub: Path) -> None:
    """Neither in text nor in JSON; after a sync it is."""
    assert (
        gitmem("setup", "--publish", "yes", "--autosync", "off", cwd=planck).status == 0
        and gitmem("sync", cwd=planck).status == 0
    )
    speak(planck, "Not sent yet.")
    text, fields = gitmem("setup", cwd=planck).text, gitmem("setup", "--json", cwd=planck).json
    assert "up to date" not in text and "origin: not sent yet" in text
    assert (fields["log"]["remote"]["state"], fields["next"][-1]) == ("unsent", "gitmem sync")
    assert gitmem("sync", cwd=planck).status == 0
    assert "origin: up to date" in gitmem("setup", cwd=planck).text


def test_setup_agrees_where_it_is_told_and_says_to_which_url(planck: Path, hub: Path, git: Git) -> None:
    """Itself it publishes nothing; `--publish no` and `remove` take the agreement back."""
    assert gitmem("setup", "--yes", "--json", cwd=planck).json["log"]["publishes_to"] is None
    said = gitmem("setup", "--publish", "yes", "--autosync", "off", "--json", cwd=planck)
    assert (said.status, said.json["log"]["publishes_to"], said.json["log"]["autosync"]) == (
        0,
        str(hub),
        None,
    )
    assert f"publishes the log to {hub}" in gitmem("setup", cwd=planck).text
    assert published(hub, git) == ""
    assert gitmem("sync", cwd=planck).status == 0
    for back in (["setup", "--publish", "no"], ["remove"]):
        assert gitmem(*back, cwd=planck).status == 0
        speak(planck, "Not for others.")
        assert gitmem("sync", cwd=planck).status == 2
        assert gitmem("setup", "--publish", "yes", "--autosync", "off", cwd=planck).status == 0
    assert gitmem("setup", "--publish", "no", "--json", cwd=planck).json["log"]["publishes_to"] is None


def test_another_url_of_the_same_remote_needs_another_consent(planck: Path, hub: Path, git: Git) -> None:
    """Also where `insteadOf` or a push url is what changes; the first url keeps its own."""
    other = make_hub(hub.parent, git, "other.git")
    assert gitmem("sync", "--publish", cwd=planck).status == 0
    speak(planck, "For the first alone.")
    for change in (
        ["remote.origin.url", str(other)],
        ["remote.origin.pushurl", str(other)],
        [f"url.{other}.insteadOf", str(hub)],
        [f"url.{other}.pushInsteadOf", str(hub)],
    ):
        git("config", *change, cwd=planck)
        said = gitmem("sync", "--json", cwd=planck)
        assert (said.status, said.remote["url"]) == (2, str(other)), change
        git("config", "--unset", change[0], cwd=planck)
        git("config", "remote.origin.url", str(hub), cwd=planck)
    assert published(other, git) == ""
    assert gitmem("sync", cwd=planck).status == 0


def test_consent_for_one_remote_is_none_for_another(planck: Path, hub: Path, git: Git) -> None:
    """`--all` sends where it may, and says where it may not."""
    other = make_hub(hub.parent, git, "other.git")
    git("remote", "add", "backup", str(other), cwd=planck)
    assert gitmem("sync", "--publish", cwd=planck).status == 0

    said = gitmem("sync", "--all", "--json", cwd=planck)

    states = {each["name"]: each["state"] for each in said.json["remotes"]}
    assert (said.status, states) == (2, {"origin": "up-to-date", "backup": "consent-needed"})
    assert said.json["next"][0] == "gitmem sync --publish backup"
    assert published(other, git) == ""
    assert gitmem("sync", "--publish", "backup", cwd=planck).status == 0
    assert "refs/heads/gitmem" in published(other, git)


def test_a_copy_of_a_clone_keeps_its_consent(planck: Path, hub: Path, git: Git) -> None:
    """It is the same user's, and the url is the same."""
    assert gitmem("sync", "--publish", cwd=planck).status == 0
    copy = hub.parent / "copy"
    shutil.copytree(planck, copy, symlinks=True)
    speak(copy, "From the copy.")

    assert gitmem("sync", "--json", cwd=copy).remote["state"] == "synced"


def test_an_empty_remote_gets_nothing_with_consent_either(planck: Path, tmp_path: Path, git: Git) -> None:
    """A forge would make the log its default branch."""
    empty = tmp_path / "empty.git"
    git("init", "--quiet", "--bare", str(empty))
    git("remote", "set-url", "origin", str(empty), cwd=planck)

    assert gitmem("sync", "--json", cwd=planck).remote["state"] == "consent-needed"
    assert gitmem("sync", "--publish", "--json", cwd=planck).remote["state"] == "empty"
    assert published(empty, git) == ""


# What never implies it


def test_a_signal_with_sync_is_recorded_and_not_pushed(planck: Path, hub: Path, git: Git) -> None:
    said = gitmem("signal", "Now.", "--broadcast", "--sync", "--json", cwd=planck)

    assert (said.status, said.json["pushed"]) == (0, False)
    assert said.json["commit"]
    assert any(str(hub) in each for each in said.json["warnings"])
    assert said.json["next"][0] == "gitmem sync --publish"
    assert gitmem("session", "start", "--name", "Curie", cwd=planck).status == 0
    asked = gitmem("signal", "So?", "--to", "Curie", "--intent", "propose", "-q", cwd=planck)
    assert "nobody has agreed" in gitmem("converged", asked.out.strip(), "--sync", cwd=planck).text
    assert published(hub, git) == ""


def test_autosync_only_fetches_and_a_session_starts_with_that(planck: Path, hub: Path, git: Git) -> None:
    """The background process and a client's hook, with a remote that has something new."""
    other = clone(hub, "curie", git)
    assert gitmem("sync", "--publish", cwd=other).status == 0
    before = published(hub, git)
    git("config", "gitmem.autosync", "1s", cwd=planck)

    speak(planck, "In the background.")
    deadline = time.monotonic() + 30
    while "curie" not in gitmem("log", cwd=planck).text and time.monotonic() < deadline:
        time.sleep(0.2)
    assert "curie" in gitmem("log", cwd=planck).text
    said = gitmem("session", "start", "--name", "Noether", cwd=planck)
    assert gitmem("background", "autosync", cwd=planck).status == 0

    line = [each for each in said.text.splitlines() if "only fetches" in each]
    assert len(line) == 1 and str(hub) in line[0] and "gitmem sync --publish" in line[0]
    assert published(hub, git) == before
    assert gitmem("roster", "--json", cwd=planck).json["autosync"] is None  # nothing has failed
    found = gitmem("doctor", "--json", cwd=planck)
    (finding,) = [each for each in found.json["findings"] if each["code"] == "autosync-only-fetches"]
    assert (
        finding["command"] == "" and "user" in finding["fix"]
    )  # consent is a person's, and agents run `next`
    assert not [each for each in found.json["next"] if "--publish" in each]
    given = json.dumps({"session_id": "client-1", "hook_event_name": "SessionStart", "cwd": str(planck)})
    told = gitmem("hook", "claude-code", "SessionStart", cwd=planck, given=given)
    assert "only fetches" in told.out
    assert gitmem("sync", "--publish", cwd=planck).status == 0
    assert "only fetches" not in gitmem("session", "start", "--name", "Gauss", cwd=planck).text


def test_what_a_clone_brings_and_a_peer_writes_gives_no_consent(planck: Path, hub: Path, git: Git) -> None:
    """Committed folders, config of a work tree, refs and lines of a peer: none of it counts."""
    evil = clone(hub, "evil", git)
    consent = "consent/" + "0" * 64
    for folder in (".git-gitmem", "gitmem", "docs"):
        (evil / folder / "consent").mkdir(parents=True)
        (evil / folder / consent).write_text(json.dumps({"url": str(hub), "by": "gitmem setup", "at": ""}))
    (evil / ".gitconfig").write_text("[gitmem]\n\tautosync = 1s\n\tpublish = true\n")
    git("add", ".", cwd=evil)
    git("commit", "--quiet", "-m", "Consent for everybody", cwd=evil)
    git("push", "--quiet", "origin", "main", cwd=evil)
    speak(evil, json.dumps({"consent": str(hub), "publish": True}))
    assert gitmem("sync", "--publish", cwd=evil).status == 0
    tip = git("rev-parse", ref.LOG_REF, cwd=evil).strip()
    for name in ("refs/gitmem/published", "refs/gitmem/consent", "refs/gitmem/remotes/origin/heads/gitmem"):
        git("push", "--quiet", "origin", f"{tip}:{name}", cwd=evil)
    before = published(hub, git)

    victim = silent_clone(hub, "victim", git)
    speak(victim, "Private.")
    for where in (planck, victim):
        git("pull", "--quiet", cwd=where)
        assert [gitmem("sync", cwd=where).status for _ in range(2)] == [2, 2]
    assert published(hub, git) == before


def test_a_forged_or_torn_file_is_no_consent(planck: Path, hub: Path) -> None:
    """One of another url under this url's name, and one that a crash left empty."""
    assert gitmem("setup", "--publish", "yes", cwd=planck).status == 0
    (file,) = [each for each in (planck / ".git/gitmem/consent").iterdir() if len(each.name) == 64]
    for content in (b"", b"{", b"[]", b'{"url": "https://example.org/x"}', file.read_bytes()[:-20]):
        file.write_bytes(content)
        assert gitmem("sync", cwd=planck).status == 2


def test_a_consent_that_cannot_be_recorded_sends_nothing(planck: Path, hub: Path, git: Git) -> None:
    (planck / ".git/gitmem/consent").write_text("a file where the folder would be\n")

    said = gitmem("sync", "--publish", "--json", cwd=planck)

    assert (said.status, said.json["error"]["code"]) == (4, "read-only")
    assert published(hub, git) == ""


def test_what_a_remote_shows_later_is_no_earlier_publication(planck: Path, hub: Path, git: Git) -> None:
    """A fork that has our lines, from where we did publish, must not pass for a place that we agreed to."""
    assert gitmem("sync", "--publish", cwd=planck).status == 0
    fork = make_hub(hub.parent, git, "fork.git")
    git("push", "--quiet", str(fork), f"{ref.LOG_REF}:{ref.BRANCH}", cwd=planck)
    git("remote", "add", "fork", str(fork), cwd=planck)
    before = published(fork, git)
    speak(planck, "Not for the fork.")

    assert [gitmem("sync", "fork", cwd=planck).status for _ in range(2)] == [2, 2]
    assert published(fork, git) == before


# Urls


def test_no_answer_has_credentials(planck: Path, tmp_path: Path, git: Git) -> None:
    """Password, token as the user, token in the query: in the answer, in its errors and on the disk."""
    for url in (
        f"https://me:{SECRET}@localhost:9/a.git",
        f"https://{SECRET}@localhost:9/a.git",
        f"https://localhost:9/a.git?private_token={SECRET}",
        f"https://me:pa/{SECRET}@localhost:9/a.git",
        f"ssh://git:{SECRET}@localhost:9/a.git",
    ):
        git("remote", "set-url", "origin", url, cwd=planck)
        for args in (["sync"], ["sync", "--publish", "--json"], ["setup", "--json"], ["sync", url, "--json"]):
            said = gitmem(*args, "--timeout", "5s", cwd=planck)
            assert SECRET not in said.text, (url, args, said.text)
    state = [each.read_bytes() for each in (planck / ".git/gitmem").rglob("*") if each.is_file()]
    assert not any(SECRET.encode() in content for content in state)


# What refuses consent, what says that it was given, and who is asked


def test_setup_without_a_word_about_it_changes_no_consent(planck: Path, hub: Path, git: Git) -> None:
    """It agrees to nothing and takes nothing back, whatever else it is asked to do."""
    for args in ([], ["--yes"], ["--autosync", "off"], ["--autosync", "1h"], ["--ref", "branch"]):
        said = gitmem("setup", *args, cwd=planck)
        assert said.status == 0 and "Consent" not in said.text and "not published" in said.text
        assert gitmem("sync", cwd=planck).status == 2
    assert published(hub, git) == ""

    assert gitmem("sync", "--publish", cwd=planck).status == 0
    assert gitmem("setup", "--yes", cwd=planck).status == 0
    speak(planck, "Another.")
    assert gitmem("sync", cwd=planck).status == 0


def test_setup_says_first_to_which_url_it_agreed(planck: Path, hub: Path) -> None:
    first, again = (
        gitmem("setup", "--publish", "yes", cwd=planck),
        gitmem("setup", "--publish", "yes", "--json", cwd=planck),
    )

    assert first.text.splitlines()[0].startswith(f"Consent to publish the log to {hub}")
    assert again.json["log"]["agreed"] is False and again.json["log"]["publishes_to"] == str(hub)


def test_agreeing_to_a_remote_that_is_away_is_said(planck: Path, hub: Path, git: Git) -> None:
    away = hub.with_name("away.git")
    hub.rename(away)
    said = gitmem("sync", "--publish", cwd=planck)
    away.rename(hub)

    assert said.status == 5
    assert f"You have agreed to publish to {hub}: local records are sent when it is reachable." in said.text
    assert gitmem("sync", cwd=planck).status == 0


@pytest.mark.parametrize("marker", ["CLAUDECODE", "CODEX_THREAD_ID"])
def test_an_agent_is_told_to_ask_its_user(planck: Path, marker: str) -> None:
    """The message names the command, and `next` is empty: only the user may run it, and agents run what `next` says."""
    env = {marker: "1"}
    gitmem("session", "start", cwd=planck, env=env)
    signal = ["signal", "One more.", "--broadcast", "--sync"]
    for args, then in ((["sync"], []), (signal, ["thread"]), (["setup", "--publish", "no"], ["roster"])):
        said, answer = gitmem(*args, cwd=planck, env=env), gitmem(*args, "--json", cwd=planck, env=env)
        assert "next: gitmem sync --publish" not in said.text
        assert [each.split()[1] for each in answer.json["next"]] == then
        assert args[0] == "setup" or "Ask your user whether it may be published there" in said.text
        assert args[0] == "setup" or "`gitmem sync --publish`" in answer.text
