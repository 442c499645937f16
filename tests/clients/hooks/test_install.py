"""Hooks on and off: every file that was touched is as it was, and nothing foreign is ever rewritten."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings

from gitmem.clients import client_scope, clients, events, install, managed_files
from gitmem.clients.client_scope import INSTALLED, OUTDATED, ClientScope
from gitmem.clients.clients import CLIENTS, PROJECT, SCOPES, USER, Client, ClientFolders
from gitmem.clients.managed_files import WORDS, OwnFile
from gitmem.clients.settings import OwnEntry, is_ours
from gitmem.errors import StoreError, UsageError
from tests.clients.hooks.client_folders import ALL, JSON_CLIENTS, PROGRAM, at, everything, settings_of
from tests.clients.hooks.test_settings import styles
from tests.profiles import up_to


def put_in(folders: ClientFolders, client: Client | str, scope: str = PROJECT) -> install.InstallResult:
    name = client if isinstance(client, str) else client.name
    return install.install(folders, [name], scope, program=PROGRAM)


def take_out(folders: ClientFolders, client: Client | str, scope: str = PROJECT) -> install.InstallResult:
    name = client if isinstance(client, str) else client.name
    return install.uninstall(folders, [name], scope)


def failure(found: install.InstallResult) -> str:
    """Why the last of the clients has failed."""
    assert found.clients[-1].state == "failed" and found.status != 0 and not found.clients[-1].files
    return found.clients[-1].problem


def target(folders: ClientFolders, client: Client, scope: str = PROJECT) -> ClientScope:
    found = client_scope.target_of(folders, client, scope)
    assert found is not None
    return found


def ours_in(found: ClientScope) -> list[OwnEntry]:
    assert found.settings is not None
    return found.settings.ours()


def foreign(client: Client) -> dict[str, object]:
    """A handler of somebody's for an event of ours."""
    event = client.events[0][0]
    handler: dict[str, object] = {"type": "command", "command": "echo 'mine, all mine'"}
    group = {"matcher": "Bash", "hooks": [handler]} if client.form == "groups" else handler
    return {
        "version": 1,
        "hooks": {event: [group], "Else": [group]},
        "deep": {"a": [[{"b": [{}, [], None]}]]},
    }


def configurations(client: Client) -> dict[str, bytes]:
    """What users have: one name, one file."""
    said = foreign(client)
    found = {
        "tabs": json.dumps(said, indent="\t") + "\n",
        "crlf": (json.dumps(said, indent=4) + "\n").replace("\n", "\r\n"),
        "bom": "\ufeff" + json.dumps(said, indent=2) + "\n",
        "no-newline-at-end": json.dumps(said, indent=2),
        "one-line": json.dumps(said),
        "tight": json.dumps(said, separators=(",", ":")) + "\n",
        "empty-hooks": json.dumps({"a": 1, "hooks": {}}, indent=2) + "\n",
        "empty-event": json.dumps({"hooks": {client.events[0][0]: []}}, indent=2) + "\n",
        "no-hooks": '{\n  "permissions": {"allow": ["Bash(ls:*)"]},   "odd":1\n\n}\n\n',
        "empty-object": "{}\n",
        "spread-object": "{\n\n}\n",
        "empty-file": "",
        "white-space": "\n \n",
        "deep": json.dumps({"deep": json.loads("[" * 200 + "]" * 200)}, indent=1),
        "unicode": json.dumps({"ü": "\u2028 “x”"}, ensure_ascii=False, indent=3) + "\n",
    }
    if client.comments:
        found["comments"] = '// mine\n{\n  /* all */ "a": 1, // of\n  "hooks": {\n    // it\n  },\n}\n'
    return {name: text.encode() for name, text in found.items()}


PREPARED = [
    pytest.param(client, content, id=f"{client.name}-{name}")
    for client in JSON_CLIENTS
    for name, content in configurations(client).items()
]


@pytest.mark.parametrize(("client", "content"), PREPARED)
def test_every_file_is_as_it_was(client: Client, content: bytes, repo: Path, tmp_path: Path) -> None:
    """Install and uninstall, in both scopes; installed twice is installed once."""
    folders = at(repo, tmp_path / "home")
    for scope in SCOPES:
        path = settings_of(client, folders, scope)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o640)
    before = everything(repo, tmp_path / "home")

    for scope in SCOPES:
        assert put_in(folders, client, scope).clients[0].state == "installed"
        after = everything(repo, tmp_path / "home")
        assert put_in(folders, client, scope).clients[0].state == "unchanged"
        assert everything(repo, tmp_path / "home") == after
        assert target(folders, client, scope).state() == INSTALLED
    for scope in SCOPES:
        assert take_out(folders, client, scope).clients[0].state == "removed"
        assert take_out(folders, client, scope).clients[0].state == "absent"

    assert everything(repo, tmp_path / "home") == before


@pytest.mark.parametrize(("client", "content"), PREPARED)
def test_another_clone_takes_out_ours_and_nothing_else(
    client: Client, content: bytes, repo: Path, tmp_path: Path
) -> None:
    """It has the files by git, and no note of what was done to them."""
    folders = at(repo, tmp_path / "home")
    path = settings_of(client, folders, PROJECT)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    put_in(folders, client)
    os.unlink(target(folders, client).record_path)

    take_out(folders, client)

    left = path.read_bytes() if path.exists() else b""
    assert b"signal-received" not in left
    said = content.decode().lstrip("\ufeff").strip()
    if said and not client.comments:
        kept = json.loads(said)
        rest = json.loads(left.decode().lstrip("\ufeff")) if left else {}
        rest.pop("version", None)
        kept.pop("version", None)
        kept.get("hooks", {}).pop(client.events[0][0], None) if kept.get("hooks", {}) == {
            client.events[0][0]: []
        } else None
        assert {key: item for key, item in rest.items() if item} == {
            key: item for key, item in kept.items() if item
        }


@pytest.mark.parametrize("client", ALL, ids=lambda client: client.name)
@pytest.mark.parametrize("scope", SCOPES)
def test_what_was_made_goes_and_what_was_there_stays(
    client: Client, scope: str, repo: Path, tmp_path: Path
) -> None:
    """Into nothing: files and folders of ours go again. The other scope is never touched."""
    home = tmp_path / "home"
    folders = at(repo, home)
    before = everything(repo, home)

    done = put_in(folders, client, scope)

    other = repo if scope == USER else home
    assert [path for path in everything(other) if path not in before] == []
    assert (done.clients[0].state == "advised") == (client.name == "windsurf" and scope == USER)
    take_out(folders, client, scope)
    assert everything(repo, home) == before


@pytest.mark.parametrize("client", ALL, ids=lambda client: client.name)
def test_another_clone_is_left_without_our_files(client: Client, repo: Path, tmp_path: Path) -> None:
    """No note of what was made: a folder that is empty without us goes too."""
    folders = at(repo, tmp_path / "home")
    before = everything(repo)
    put_in(folders, client)
    record = target(folders, client).record_path
    if os.path.exists(record):
        os.unlink(record)

    take_out(folders, client)

    assert everything(repo) == before


def test_another_clone_that_updated_the_script_alone_is_left_without_our_files(
    repo: Path, tmp_path: Path
) -> None:
    """Its record says nothing of the settings, which came by git."""
    folders = at(repo, tmp_path / "home")
    client = CLIENTS["claude-code"]
    before = everything(repo)
    put_in(folders, client)
    os.unlink(target(folders, client).record_path)
    path = Path(target(folders, client).script().path)
    path.write_text(path.read_text() + "# old\n")
    assert put_in(folders, client).clients[0].files == [str(path)]

    take_out(folders, client)

    assert [name for name in everything(repo) if Path(name).is_file()] == [
        name for name in before if Path(name).is_file()
    ]


@given(style=styles())
@hypothesis_settings(max_examples=up_to(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_settings_come_back(style: tuple[dict[str, object], str], repo: Path, tmp_path: Path) -> None:
    """Whatever somebody has in the file, in whatever style."""
    folders = at(repo, tmp_path / "home")
    client = CLIENTS["claude-code"]
    path = settings_of(client, folders, PROJECT)
    path.parent.mkdir(exist_ok=True)
    content = style[1].encode()
    path.write_bytes(content)

    if put_in(folders, client).status == 0:  # else an event of ours is no array
        assert path.read_bytes() != content
        take_out(folders, client)
    assert path.read_bytes() == content


def test_what_was_edited_meanwhile_stays(repo: Path, tmp_path: Path) -> None:
    """Only ours go; a container that we made goes when it is empty, one that was there stays."""
    folders = at(repo, tmp_path / "home")
    client = CLIENTS["claude-code"]
    path = settings_of(client, folders, PROJECT)
    path.parent.mkdir()
    path.write_text('{\n  "hooks": {\n    "Stop": []\n  }\n}\n')
    put_in(folders, client)
    path.write_text(path.read_text().replace('{\n  "hooks"', '{\n  "model": "x",\n  "hooks"', 1))

    take_out(folders, client)

    assert json.loads(path.read_text()) == {"model": "x", "hooks": {"Stop": []}}
    assert path.read_text().startswith('{\n  "model": "x",\n  "hooks": {\n    "Stop": []')


def test_a_client_that_wrote_its_settings_anew_changes_nothing(repo: Path, tmp_path: Path) -> None:
    """Claude Code writes the whole file when a permission is granted, and drops keys that it does not know."""
    folders = at(repo, tmp_path / "home")
    client = CLIENTS["claude-code"]
    path = settings_of(client, folders, PROJECT)
    put_in(folders, client)
    said = json.loads(path.read_text())
    said["permissions"] = {"allow": ["Bash(ls:*)"]}
    path.write_text(json.dumps(said, indent=4))
    again = path.read_bytes()

    assert put_in(folders, client).clients[0].state == "unchanged"
    assert path.read_bytes() == again
    take_out(folders, client)
    assert json.loads(path.read_text()) == {"permissions": {"allow": ["Bash(ls:*)"]}}


def test_an_older_script_and_older_entries_are_brought_up_to_date(repo: Path, tmp_path: Path) -> None:
    """Ours alone: what is marked is replaced, in its place behind the others'."""
    folders = at(repo, tmp_path / "home")
    client = CLIENTS["codex"]
    path = settings_of(client, folders, PROJECT)
    path.parent.mkdir()
    content = json.dumps(foreign(client), indent=2).encode()
    path.write_bytes(content)
    put_in(folders, client)
    ours = target(folders, client).script().path
    Path(ours).write_text(f"#!/bin/sh\n# {WORDS}\nexit 0\n")
    path.write_text(
        path.read_text().replace("sh -c 'd=$PWD", "sh -c 'e=$PWD").replace("SessionEnd gitmem", "Old gitmem")
    )
    assert target(folders, client).state() == OUTDATED

    done = put_in(folders, client)

    assert done.clients[0].state == "updated"
    assert sorted(done.clients[0].files) == sorted([ours, str(path)])
    assert Path(ours).read_text() == client_scope.script_text("codex")
    said = json.loads(path.read_text())["hooks"]
    assert len(said["PostToolUse"]) == 2 and "Old" not in path.read_text()
    assert target(folders, client).state() == INSTALLED
    take_out(folders, client)
    assert path.read_bytes() == content


@pytest.mark.parametrize("client", ALL, ids=[each.name for each in ALL])
def test_files_of_an_earlier_version_are_replaced(client: Client, repo: Path, tmp_path: Path) -> None:
    """Whatever text is behind the mark: earlier versions named another command."""
    folders = at(repo, tmp_path / "home")
    start = everything(repo)
    put_in(folders, client)
    installed = everything(repo)
    for path in target(folders, client).own_paths():
        head = Path(path).read_text().partition(WORDS)[0]
        Path(path).write_text(
            f"{head}gitmem: written by gitmem hooks install, removed by gitmem hooks uninstall\n"
        )
    assert target(folders, client).state() == OUTDATED

    assert put_in(folders, client).clients[0].state == "updated"

    assert everything(repo) == installed
    take_out(folders, client)
    assert everything(repo) == start


def test_the_script_of_somebody_else_is_never_written_over(repo: Path, tmp_path: Path) -> None:
    """LumenFlow has one of the same name: ours gets another."""
    folders = at(repo, tmp_path / "home")
    theirs = repo / ".claude" / "hooks" / "signal-received.sh"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("#!/bin/sh\necho theirs\n")
    before = everything(repo)

    put_in(folders, "claude-code")

    assert theirs.read_text() == "#!/bin/sh\necho theirs\n"
    assert (theirs.parent / "gitmem-signal-received.sh").read_text() == client_scope.script_text(
        "claude-code"
    )
    assert "hooks/gitmem-signal-received.sh" in (repo / ".claude" / "settings.json").read_text()
    take_out(folders, "claude-code")
    assert everything(repo) == before


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("cline", ".clinerules/hooks/PostToolUse"),
        ("opencode", ".opencode/plugins/gitmem.js"),
        ("windsurf", ".windsurf/rules/gitmem.md"),
    ],
)
def test_a_file_of_somebody_else_in_our_place_is_refused(
    name: str, path: str, repo: Path, tmp_path: Path
) -> None:
    """It stays, and nothing else is written for that client."""
    folders = at(repo, tmp_path / "home")
    (repo / path).parent.mkdir(parents=True)
    (repo / path).write_text("mine\n")
    before = everything(repo)

    assert "was not created by gitmem" in failure(put_in(folders, name))
    assert everything(repo) == before


@pytest.mark.parametrize("client", JSON_CLIENTS, ids=lambda client: client.name)
@pytest.mark.parametrize(
    "content",
    ['{"hooks": {', '{\n  "a": 1\n  "b": 2\n}', "[1]", '{"hooks": []}', b"\xff\xfe{}", "nonsense"],
)
def test_broken_settings_are_refused_and_left(
    client: Client, content: str | bytes, repo: Path, tmp_path: Path
) -> None:
    """The sentence names the file; what is broken elsewhere is no reason to keep ours."""
    folders = at(repo, tmp_path / "home")
    path = settings_of(client, folders, PROJECT)
    path.parent.mkdir(parents=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    before = everything(repo)

    assert str(path) in failure(put_in(folders, client))
    assert everything(repo) == before
    if not isinstance(content, bytes):
        assert install.uninstall(folders, ["all-found"], PROJECT).status == 0


def test_comments_are_refused_where_the_client_reads_none(repo: Path, tmp_path: Path) -> None:
    """Codex could read no hook of such a file."""
    folders = at(repo, tmp_path / "home")
    (repo / ".codex").mkdir()
    (repo / ".codex" / "hooks.json").write_text('{\n  // mine\n  "hooks": {}\n}\n')

    done = put_in(folders, "codex")
    assert "line 2, column 3: this is not valid JSON: a comment" in failure(done) and done.status == 2


def test_a_link_stays_a_link(repo: Path, tmp_path: Path) -> None:
    """Dotfiles are often links: the file that it points to is changed, and keeps its mode."""
    folders = at(repo, tmp_path / "home")
    dotfiles = tmp_path / "dotfiles"
    dotfiles.mkdir()
    (dotfiles / "settings.json").write_text("{}\n")
    (dotfiles / "settings.json").chmod(0o600)
    link = tmp_path / "home" / ".claude" / "settings.json"
    link.parent.mkdir()
    link.symlink_to(dotfiles / "settings.json")
    before = everything(tmp_path / "home", dotfiles)

    put_in(folders, "claude-code", USER)

    assert link.is_symlink()
    assert "signal-received" in (dotfiles / "settings.json").read_text()
    assert (dotfiles / "settings.json").stat().st_mode & 0o777 == 0o600
    take_out(folders, "claude-code", USER)
    assert everything(tmp_path / "home", dotfiles) == before


def test_a_huge_file_of_one_client_does_not_keep_the_hooks_of_others(repo: Path, tmp_path: Path) -> None:
    """It comes with a repository."""
    folders = at(repo, tmp_path / "home")
    put_in(folders, "claude-code")
    (repo / ".gemini").mkdir()
    with (repo / ".gemini" / "settings.json").open("wb") as file:
        file.truncate(1 << 40)

    done = take_out(folders, "all-found")

    assert {each.client: each.state for each in done.clients} == {
        "claude-code": "removed",
        "gemini": "failed",
    }
    assert done.status == 4 and not (repo / ".claude").exists()


def test_a_record_that_is_a_link_is_not_followed(repo: Path, tmp_path: Path) -> None:
    """A git folder may come from a stranger: the file that its link names is not the record's."""
    folders = at(repo, tmp_path / "home")
    victim = tmp_path / "victim"
    victim.write_text("mine\n")
    record = Path(target(folders, CLIENTS["claude-code"]).record_path)
    record.parent.mkdir(parents=True)
    record.symlink_to(victim)

    put_in(folders, "claude-code")
    take_out(folders, "claude-code")

    assert victim.read_text() == "mine\n"
    assert not (repo / ".claude").exists()


def test_two_worktrees_have_notes_of_their_own(repo: Path, tmp_path: Path) -> None:
    """The same client in both: each gets its own bytes back."""
    other = tmp_path / "other"
    subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(other)], cwd=repo, check=True)
    for where, content in ((repo, '{"hooks": {}}'), (other, '{\n\t"b": 2\n}\n')):
        (where / ".claude").mkdir()
        (where / ".claude" / "settings.json").write_text(content)
    for where in (repo, other):
        put_in(at(where, tmp_path / "home"), "claude-code")

    for where in (repo, other):
        take_out(at(where, tmp_path / "home"), "claude-code")

    assert (repo / ".claude" / "settings.json").read_text() == '{"hooks": {}}'
    assert (other / ".claude" / "settings.json").read_text() == '{\n\t"b": 2\n}\n'


def test_codex_in_a_linked_worktree_is_told_where_codex_looks(repo: Path, tmp_path: Path) -> None:
    """It reads the main worktree's file alone."""
    other = tmp_path / "other"
    subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(other)], cwd=repo, check=True)

    done = put_in(at(other, tmp_path / "home"), "codex")

    assert any(f"gitmem -C {repo} setup --client codex" in each for each in done.clients[0].remarks)


def test_a_client_is_found_by_what_it_left_or_by_its_program(repo: Path, tmp_path: Path) -> None:
    """`.github` alone is no sign of Copilot."""
    home = tmp_path / "home"
    folders = at(repo, home, codex="/usr/bin/codex")
    (repo / ".gemini").mkdir()
    (repo / ".github").mkdir()
    (home / ".cursor").mkdir()

    done = install.install(folders, ["all-found"], PROJECT, program=PROGRAM)

    assert [each.client for each in done.clients] == ["codex", "gemini", "cursor"]


def test_an_unknown_name_is_refused(repo: Path, tmp_path: Path) -> None:
    """And nothing was written."""
    with pytest.raises(UsageError):
        put_in(at(repo, tmp_path / "home"), "claud")

    assert not (repo / ".claude").exists()


def test_a_bare_repository_has_no_project(repo: Path, tmp_path: Path) -> None:
    """The user's own scope works."""
    bare = tmp_path / "bare.git"
    subprocess.run(["git", "clone", "--quiet", "--bare", str(repo), str(bare)], check=True)
    folders = at(bare, tmp_path / "home")

    with pytest.raises(UsageError) as caught:
        put_in(folders, "claude-code")

    assert caught.value.code == "no-worktree"
    assert put_in(folders, "claude-code", USER).clients[0].state == "installed"


def test_what_cannot_be_written_is_a_sentence(repo: Path, tmp_path: Path) -> None:
    """A file where the client's folder should be."""
    (repo / ".claude").write_text("a file\n")

    assert ".claude" in failure(put_in(at(repo, tmp_path / "home"), "claude-code"))


def test_the_program_that_hooks_run_is_noted(repo: Path, tmp_path: Path) -> None:
    """Outside of the files that are checked in."""
    folders = at(repo, tmp_path / "home")

    put_in(folders, "claude-code")

    assert clients.noted_program(folders.state) == PROGRAM
    assert not any(
        PROGRAM.encode() in each[0] for each in everything(repo).values() if isinstance(each, tuple)
    )


@pytest.mark.parametrize(
    "client", [each for each in CLIENTS.values() if each.events], ids=lambda client: client.name
)
def test_every_event_that_is_asked_for_is_one_that_the_runtime_knows(client: Client) -> None:
    """A name that only one side knows would be a hook that does nothing."""
    known = events.EVENTS[client.name]

    assert {event for event, _ in client.events} <= set(known)
    assert {known[event] for event, _ in client.events} >= {events.TOOL, events.START}


@pytest.mark.parametrize(
    "client",
    [each for each in CLIENTS.values() if each.has_script or each.form == "files"],
    ids=lambda c: c.name,
)
def test_the_scripts_carry_our_mark(client: Client) -> None:
    """It is how install and uninstall know them again."""
    file = OwnFile("hook", client_scope.script_text(client.name))
    assert file.has_ours(file.content)
    assert not file.has_ours(b"#!/bin/sh\necho gitmem\n")


def test_a_missing_script_is_silent(repo: Path, tmp_path: Path) -> None:
    """A checkout without it: a shell that can't open a file would end with 2, and block the agent."""
    folders = at(repo, tmp_path / "home")
    for client in JSON_CLIENTS:
        put_in(folders, client)
        lines = [each.command for each in ours_in(target(folders, client))]
        Path(target(folders, client).script().path).unlink()
        for line in lines:
            assert is_ours(line)
            done = subprocess.run(
                ["sh", "-c", line], cwd=repo, env={"PATH": os.environ["PATH"], "CLAUDE_PROJECT_DIR": str(repo)},
                capture_output=True, stdin=subprocess.DEVNULL, timeout=30,
            )  # fmt: skip
            assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), line


@pytest.mark.parametrize("client", JSON_CLIENTS, ids=lambda client: client.name)
def test_the_command_line_works_in_a_path_with_spaces(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And, where the client starts hooks anywhere, from a folder below."""
    monkeypatch.setattr(client_scope, "script_text", lambda client: f'#!/bin/sh\n# {WORDS}\nprintf %s "$1"\n')
    repo = tmp_path / "my project, ünïcode $HOME"
    subprocess.run(["git", "init", "--quiet", str(repo)], check=True)
    folders = at(repo, tmp_path / "home")
    put_in(folders, client)
    each = target(folders, client)
    below = repo / "a b"
    below.mkdir(exist_ok=True)

    for ours in ours_in(each):
        done = subprocess.run(
            ["sh", "-c", ours.command], cwd=below, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            env={"PATH": os.environ["PATH"], "CLAUDE_PROJECT_DIR": str(repo)}, timeout=30,
        )  # fmt: skip
        assert (done.stdout, done.stderr) == (ours.event, "")


def test_a_file_that_somebody_changes_meanwhile_is_left(repo: Path, tmp_path: Path) -> None:
    """Between our look at it and our write."""
    path = tmp_path / "settings.json"
    path.write_text("{}")
    change = managed_files.FileChange(str(path), b"{}", b"ours")
    path.write_text('{"theirs": 1}')

    with pytest.raises(StoreError) as caught:
        managed_files.write_files([change])

    assert caught.value.code == "changed-meanwhile"
    assert path.read_text() == '{"theirs": 1}'
    assert [name for name in os.listdir(tmp_path) if "gitmem" in name] == []


def test_the_place_of_others_hooks_does_not_change(repo: Path, tmp_path: Path) -> None:
    """Codex keeps what its user trusts by place: ours stand behind all of theirs."""
    folders = at(repo, tmp_path / "home")
    client = CLIENTS["codex"]
    path = settings_of(client, folders, PROJECT)
    path.parent.mkdir()
    path.write_text(json.dumps(foreign(client), indent=2))

    put_in(folders, client)

    assert {(each.event, each.group) for each in ours_in(target(folders, client))} == {
        (event, 1 if event == "PostToolUse" else 0) for event, _ in client.events
    }


def unwritable(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that can't be replaced, as one that `chattr +i` was said of: also root has to take that."""
    usual = os.replace

    def replace(source: str, destination: str) -> None:
        if os.path.realpath(destination) == os.path.realpath(path):
            raise PermissionError(1, "Operation not permitted")
        usual(source, destination)

    monkeypatch.setattr("os.replace", replace)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("client", JSON_CLIENTS, ids=lambda client: client.name)
def test_a_failed_install_leaves_nothing_behind(
    client: Client, scope: str, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither script nor folders nor a note of them, in the git folder neither."""
    folders = at(repo, tmp_path / "home")
    path = settings_of(client, folders, scope)
    path.parent.mkdir(parents=True)
    path.write_text("{}\n")
    before = everything(repo, tmp_path / "home")
    git_folder = sorted((repo / ".git").rglob("*"))
    with monkeypatch.context() as patch:
        unwritable(path, patch)
        assert str(path) in failure(put_in(folders, client, scope))

    assert everything(repo, tmp_path / "home") == before
    assert sorted((repo / ".git").rglob("*")) == git_folder


def test_a_failed_update_leaves_what_was_installed(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old script and the note for uninstall are there again."""
    folders = at(repo, tmp_path / "home")
    client = CLIENTS["claude-code"]
    put_in(folders, client)
    script_path = Path(target(folders, client).script().path)
    script_path.write_text(script_path.read_text() + "# old\n")
    path = settings_of(client, folders, PROJECT)
    path.write_text(path.read_text().replace("SubagentStop gitmem", "Old gitmem"))
    note = Path(target(folders, client).record_path).read_bytes()
    before = everything(repo)
    with monkeypatch.context() as patch:
        unwritable(path, patch)
        failure(put_in(folders, client))

    assert everything(repo) == before
    assert Path(target(folders, client).record_path).read_bytes() == note


def test_what_fails_for_one_client_is_no_reason_to_undo_another(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others stay, and the answer says which."""
    folders = at(repo, tmp_path / "home")
    path = settings_of(CLIENTS["codex"], folders, PROJECT)
    path.parent.mkdir()
    path.write_text("{}\n")
    with monkeypatch.context() as patch:
        unwritable(path, patch)
        done = install.install(folders, ["claude-code", "codex", "gemini"], PROJECT, program=PROGRAM)

    assert [each.state for each in done.clients] == ["installed", "failed", "installed"]
    assert done.status == 4
    assert str(path) in done.clients[1].problem and done.clients[1].files == []
    assert done.remarks[0] == "Installed: Claude Code, Gemini CLI. Not installed: Codex CLI."
    assert os.listdir(repo / ".codex") == ["hooks.json"] and path.read_text() == "{}\n"
    assert (repo / ".gemini" / "settings.json").exists()


def test_what_could_not_be_undone_is_said(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its path."""
    folders = at(repo, tmp_path / "home")
    client = CLIENTS["claude-code"]
    path = settings_of(client, folders, PROJECT)
    path.parent.mkdir()
    path.write_text("{}\n")
    with monkeypatch.context() as patch:
        unwritable(path, patch)

        def unlink(path: str) -> None:
            raise PermissionError(1, "Operation not permitted")

        patch.setattr("os.unlink", unlink)
        problem = failure(put_in(folders, client))

    _, said, left = problem.partition("could not be restored: ")
    assert said and target(folders, client).script().path in left
