"""Commands of the repository for its agents: nothing runs that the user has not read and trusted on this machine (I6)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gitmem.api.log import Log
from gitmem.calls import client_run
from gitmem.errors import StoreError, UsageError

from .test_serve_agent import Call, run, serving  # noqa: F401  (run is a fixture)


def write(repo: Path, command: str, name: str = "prices") -> None:
    (repo / ".gitmem").mkdir(exist_ok=True)
    (repo / ".gitmem" / "roles.toml").write_text(
        f"[alias]\n{name} = {{ role = 'implementer/general', exec = {command} }}\n"
    )


def refused(log: Log, name: str = "prices") -> UsageError:
    with pytest.raises(UsageError) as error:
        client_run.trusted_command(log.store, name)
    return error.value


def test_i6_a_committed_command_runs_only_after_exactly_it_was_trusted(log: Log, repo: Path) -> None:
    """Whoever can push can change it: a changed one is another one, and the trust of one agent is not that of another."""
    write(repo, "'tr a-z A-Z'")
    found = refused(log)
    assert found.code == "not-trusted" and "tr a-z A-Z" in found.message
    assert found.next == ["gitmem serve-agent prices --trust"]
    assert client_run.trusted_command(log.store, "Prices", trust=True) == "tr a-z A-Z"
    assert client_run.trusted_command(log.store, "prices") == "tr a-z A-Z"
    for changed, name in (
        ("'tr a-z A-Z '", "prices"),
        ("'tr a-z A-Z; id'", "prices"),
        ("'tr a-z A-Z'", "other"),
    ):
        write(repo, changed, name)
        assert refused(log, name).code == "not-trusted"


@pytest.mark.parametrize(
    "hostile",
    [
        '"""a\nb"""',
        '"ls \\u001b[2K"',
        '"ls \\u202e"',
        f"'{'x' * 1001}'",
        "''",
        "'   '",
        "7",
        "['ls']",
        "true",
    ],
)
def test_a_command_that_nobody_can_read_is_none(log: Log, repo: Path, hostile: str) -> None:
    """Several lines, escape sequences, or text that runs backwards: what is shown would not be what runs."""
    write(repo, hostile)
    assert refused(log).code == "no-command"
    with pytest.raises(UsageError, match="No command for prices"):
        client_run.trusted_command(log.store, "prices", trust=True)


def test_without_a_command_the_options_are_named(log: Log, repo: Path) -> None:
    """Also where the file is a link to a folder outside, or no TOML."""
    assert refused(log).code == "no-command"
    (repo / ".gitmem").mkdir()
    (repo / ".gitmem" / "roles.toml").write_text("exec = [")
    assert refused(log).code == "no-command"


def test_trust_that_can_not_be_recorded_runs_nothing(log: Log, repo: Path) -> None:
    """A file stands where the folder belongs."""
    write(repo, "'ls'")
    Path(log.store.repo.state, "trusted").write_text("")
    with pytest.raises(StoreError, match="Cannot record the trust"):
        client_run.trusted_command(log.store, "prices", trust=True)
    assert refused(log).code == "not-trusted"


@pytest.mark.deep
def test_i6_serve_agent_runs_a_trusted_command(run: Call, repo: Path, tmp_path: Path) -> None:  # noqa: F811
    """By real processes; --trust together with a command of the user's own is a mistake."""
    write(repo, "'tr a-z A-Z'")
    assert run("serve-agent", "prices").status == 2
    assert run("serve-agent", "prices", "--exec", "cat", "--trust").status == 2
    with serving(repo, repo, "--trust", "--input", "text"):
        assert "| IS IT RIGHT?" in run("call", "prices", "is it right?", "--timeout", "30s").out
    with serving(repo, repo, "--input", "text"):
        assert "| AGAIN" in run("call", "prices", "again", "--timeout", "30s").out
    assert os.listdir(repo / ".git" / "gitmem" / "trusted")


def test_i6_only_this_user_can_record_that_a_command_is_trusted(log: Log, repo: Path) -> None:
    """Others may write to the folders of a shared repository, and move the files of its owner in them."""
    write(repo, "'tr a-z A-Z'")
    client_run.trusted_command(log.store, "prices", trust=True)
    (path,) = (Path(log.store.repo.state) / client_run.TRUSTED_FOLDER).iterdir()
    own = path.read_bytes()
    path.chmod(0o660)
    assert refused(log).code == "not-trusted"
    path.chmod(0o600)
    assert client_run.trusted_command(log.store, "prices") == "tr a-z A-Z"
    for content in (b"", b"[]", own.replace(b"tr a-z", b"tr b-z")):
        path.write_bytes(content)
        assert refused(log).code == "not-trusted"
    path.unlink()
    os.mkfifo(path)  # nobody waits for its writer
    assert refused(log).code == "not-trusted"
