"""The text of a settings file: ours go in and come out, and nobody else's byte moves."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitmem.clients import agents_md, hook_state, install, settings
from gitmem.clients.client_scope import ClientScope
from gitmem.clients.clients import CLIENTS, PROJECT, USER, ClientFolders, HookEntry
from gitmem.clients.managed_files import InstallRecord
from gitmem.clients.settings import SettingsFile, parse_json
from gitmem.doctor import doctor
from gitmem.errors import UsageError

from .client_folders import at

EVENTS = ("PostToolUse", "Stop")
FLAT_EVENTS = ("postToolUse", "stop")


def entries(*, groups: bool = True) -> list[HookEntry]:
    client = CLIENTS["claude-code" if groups else "cursor"]
    found = client.entries(PROJECT, "hooks/signal-received.sh", b"")
    return [each for each in found if each.event in (EVENTS if groups else FLAT_EVENTS)]


def file_of(*, groups: bool = True, comments: bool = False) -> SettingsFile:
    client = CLIENTS["claude-code" if groups else "cursor"]._replace(comments=comments, extra=())
    return SettingsFile(client, "settings.json", lambda: entries(groups=groups), "no record")


def added(text: str | None, *, groups: bool = True, comments: bool = False) -> tuple[str, InstallRecord]:
    return file_of(groups=groups, comments=comments).add(text, entries(groups=groups))


def removed(
    text: str, record: InstallRecord | None, *, groups: bool = True, comments: bool = False
) -> str | None:
    return file_of(groups=groups, comments=comments).remove_from(text, record)


def value(text: str) -> object:
    return json.loads(text.lstrip("\ufeff"))


def merged(before: dict[str, object], wanted: list[HookEntry]) -> dict[str, object]:
    """What the settings are to say afterwards."""
    after = json.loads(json.dumps(before))
    hooks = after.setdefault("hooks", {})
    for entry in wanted:
        hooks.setdefault(entry.event, []).append(entry.value)
    return dict(after)


LEAF = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
ANY = st.recursive(
    LEAF,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
THEIRS = st.fixed_dictionaries({"command": st.text()}, optional={"timeout": st.integers()})
GROUP = st.fixed_dictionaries({"hooks": st.lists(THEIRS, max_size=2)}, optional={"matcher": st.text()})
HOOKS = st.dictionaries(
    st.sampled_from([*EVENTS, *FLAT_EVENTS, "Else"]), st.lists(GROUP | THEIRS | ANY, max_size=3), max_size=4
)
SETTINGS = st.dictionaries(st.text(), ANY, max_size=3).flatmap(
    lambda rest: st.just(rest) | HOOKS.map(lambda hooks: {**rest, "hooks": hooks})
)


@st.composite
def styles(draw: st.DrawFn) -> tuple[dict[str, object], str]:
    """Settings, and a text that says the same in some style."""
    said = draw(SETTINGS)
    said.pop("version", None)
    text = json.dumps(
        said,
        indent=draw(st.sampled_from([None, 0, 1, 2, 4, "\t", " \t"])),
        ensure_ascii=draw(st.booleans()),
        separators=draw(st.sampled_from([(", ", ": "), (",", ":"), (" , ", " : ")])),
    )
    line_end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    text = text.replace("\n", line_end) + draw(st.sampled_from(["", line_end, line_end * 2, " \t"]))
    return said, draw(st.sampled_from(["", "\ufeff"])) + text.encode("utf-8", "replace").decode()


@given(styles(), st.booleans())
def test_what_goes_in_comes_out_byte_for_byte(style: tuple[dict[str, object], str], groups: bool) -> None:
    """Any settings in any style: afterwards they say the same and our entries, and taken out they are the same bytes."""
    _, text = style
    said = value(text)
    assert isinstance(said, dict)

    after, record = added(text, groups=groups)

    assert value(after) == merged(said, entries(groups=groups))
    assert removed(after, record, groups=groups) == text


@given(styles(), st.booleans())
def test_without_the_record_ours_go_and_nothing_else(
    style: tuple[dict[str, object], str], groups: bool
) -> None:
    """What is known of the containers that were made is enough for the same settings."""
    _, text = style
    after, record = added(text, groups=groups)
    record = record._replace(after="another text", inserted=["somebody has laid it out anew"])

    rest = removed(after, record, groups=groups)

    assert rest is not None and value(rest) == value(text)


@pytest.mark.parametrize(
    "text",
    [
        '{\n  "model": "x"\n}\n',
        '{\n\t"hooks": {\n\t\t"PostToolUse": [\n\t\t\t{"matcher": "Bash", "hooks": []}\n\t\t]\n\t}\n}',
        '{"a": {"b": [1, 2]}, "hooks": {"Else": []}}',
        '{\r\n    "hooks": {\r\n        "Stop": [],\r\n        "Else": [{}]\r\n    }\r\n}\r\n',
        '\ufeff{\n  "a": 1\n}',
        "{}",
    ],
)
def test_another_clone_finds_the_bytes_again(text: str) -> None:
    """Nobody has noted anything there: what install would have made of a text tells it."""
    assert removed(added(text)[0], None) == text


def test_another_clone_takes_a_file_away_that_only_we_need() -> None:
    """It says nothing but our entries, as an install into nothing would have written it."""
    assert removed(added(None)[0], None) is None


def test_what_a_user_put_around_ours_stays() -> None:
    """A comment, a handler in our group, a group behind ours, a key of theirs."""
    after, record = added('{\n  // mine\n  "a": 1,\n}\n', comments=True)
    command = entries()[0].command
    text = after.replace('"a": 1', '"a": 1, "b": 2')
    assert json.dumps(command) in text
    text = text.replace(
        '"PostToolUse": [', '"PostToolUse": [ // first\n      {"hooks": [{"command": "theirs"}]},'
    )
    text = text.replace('"Stop": [', '"Stop": [{"hooks": [{"command": "before"}]}, /* between */')

    rest = removed(text, record, comments=True)

    assert rest is not None
    root = parse_json(rest, comments=True)
    hooks = root.get("hooks")
    assert root.names() == ["a", "b", "hooks"]
    assert hooks is not None and hooks.names() == ["PostToolUse", "Stop"]
    assert "theirs" in rest and "before" in rest
    assert "signal-received" not in rest
    assert all(comment in rest for comment in ("// mine", "// first", "/* between */"))


def test_what_a_user_put_behind_ours_or_copied_is_seen() -> None:
    """The texts that install inserted are there, and cutting them would leave no JSON, or an entry of ours."""
    after, record = added("{\n}")
    behind = f'{after.rstrip("}").rstrip()},\n  "a": 1\n}}'
    assert value(behind) and value(removed(behind, record) or "") == {"a": 1}

    after, record = added('{"hooks": {"Else": [{}]}}')
    copied = after.replace("[{}", f"[{{}}, {json.dumps(entries()[0].value)}")
    assert value(copied) and removed(copied, record) == '{"hooks": {"Else": [{}]}}'


def test_a_part_of_ours_that_the_user_has_as_well_does_not_stay() -> None:
    """An unchanged text is restored by spans: the part alone would not tell which of the two is ours."""
    text = '{"a": {"b": 0, "version": 1}, "hooks": {"stop": []}}'
    file = SettingsFile(CLIENTS["cursor"], "hooks.json", lambda: entries(groups=False), "no record")

    after, record = file.add(text, entries(groups=False))

    assert any(after.count(part) > 1 for part in record.inserted)
    assert file.remove_from(after, record) == text


def test_a_handler_of_ours_in_a_foreign_group_goes_alone() -> None:
    """A user has moved it there."""
    line = json.dumps(entries()[0].command)
    rest = '{"hooks": {"Stop": [{"matcher": "x", "hooks": [{"command": "a"}, OURS{"command": "b"}]}]}}'
    text = rest.replace("OURS", f'{{"command": {line}}}, ')

    assert removed(text, None) == rest.replace("OURS", "")


def test_only_our_own_command_lines_are_ours() -> None:
    """LumenFlow has a script of the same name."""
    assert not settings.is_ours("$CLAUDE_PROJECT_DIR/.claude/hooks/signal-received.sh")
    assert not settings.is_ours("echo gitmem")
    assert not settings.is_ours("tee hooks/signal-received.sh gitmem")
    assert not settings.is_ours(None)
    for entry in entries():
        assert settings.is_ours(entry.command) and settings.is_ours(f"{entry.command} || true")


@pytest.mark.parametrize(
    ("text", "line", "column", "what"),
    [
        ('{\n  "a": 1\n  "b": 2\n}', 3, 3, "expecting ',' delimiter"),
        ('{"a":\n1, ]}', 2, 4, "expecting property name"),
        ('{\r\n\r\n"a" 1}', 3, 5, "expecting ':' delimiter"),
        ("{'a': 1}", 1, 2, "expecting property name enclosed in double quotes"),
        ('{"a": 1} x', 1, 10, "extra data"),
        ('{"a": [1, 2', 1, 12, "expecting ',' delimiter"),
        ('{"a": "x\n"}', 1, 9, "invalid control character"),
        ('{"NaN": 1, "a": NaN}', 1, 17, "NaN is not a value"),
        ('{"a": 01}', 1, 8, "expecting ',' delimiter"),
        ("{\n// note\n}", 2, 1, "a comment, which this client does not support"),
        ("", 1, 1, "expecting value"),
    ],
)
def test_what_is_no_json_is_told_with_its_place(text: str, line: int, column: int, what: str) -> None:
    """Line and column as an editor counts them."""
    with pytest.raises(json.JSONDecodeError) as caught:
        parse_json(text)

    assert (caught.value.lineno, caught.value.colno) == (line, column)
    assert what in caught.value.msg


@given(st.text(alphabet='{}[]",:\\/ \n\t019.eE+-truefalsn*a', max_size=30))
def test_what_python_reads_we_read_and_nothing_else(text: str) -> None:
    """The same texts are JSON to us and to the standard library."""
    try:
        json.loads(text)
        good = True
    except ValueError:
        good = False

    try:
        parse_json(text)
        ours = True
    except json.JSONDecodeError:
        ours = False

    assert ours == good


@pytest.mark.parametrize("text", ["[]", '"x"', '{"hooks": []}', '{"hooks": null}', '{"hooks": {"Stop": {}}}'])
def test_settings_of_another_shape_are_refused(text: str) -> None:
    """We would have to replace something of somebody's."""
    with pytest.raises(UsageError, match=r"line 1, column .* is no") as caught:
        added(text)

    assert caught.value.code == "broken-settings"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"a": 1,, }', "expecting property name"),
        ("{,}", "expecting property name"),
        ("[1, /* a ] */ ,]", "expecting value"),
        ('{"a": /* 1}', "unterminated comment"),
        ("[/*/]", "unterminated comment"),
        ('{"a": "// 1}', "unterminated string"),
    ],
)
def test_comments_and_last_commas_are_all_that_is_added_to_json(text: str, what: str) -> None:
    """A text that is broken otherwise is refused, in a client's settings with comments too."""
    with pytest.raises(json.JSONDecodeError) as caught:
        parse_json(text, comments=True)

    assert what in caught.value.msg


def test_a_comma_or_a_comment_in_a_string_is_part_of_it() -> None:
    """Nothing of it is passed over."""
    root = parse_json('[",]", "// a", "/* b */", /* "c" */ "\\"", ]', comments=True)

    assert [item.string() for item in root.items] == [",]", "// a", "/* b */", '"']


@pytest.mark.parametrize(
    "text",
    [
        '{"a": ' + "[" * 5_000 + "]" * 5_000 + "}",
        "[" * 500_000,
        '"\\"' * 300_000,
        "/*" * 500_000,
        "[" + "/**/" * 250_000,
    ],
    ids=["deep", "open", "quotes", "comments open", "comments"],
)
def test_a_hostile_file_is_refused_at_once(text: str) -> None:
    """It comes with a repository: neither an error of Python's stack, nor minutes."""
    before = time.process_time()
    for comments in (False, True):
        with pytest.raises(json.JSONDecodeError):
            parse_json(text, comments=comments)

    assert time.process_time() - before < 3


def test_a_key_that_stands_there_twice_is_the_last_one() -> None:
    """Every reader of JSON takes the last."""
    after, _ = added('{"hooks": {"Else": []}, "hooks": {"Stop": []}}')

    said = value(after)
    assert isinstance(said, dict)
    assert list(said["hooks"]) == ["Stop", "PostToolUse"]
    assert after.startswith('{"hooks": {"Else": []}, "hooks": {"Stop": [{')


@pytest.mark.parametrize(
    "client", [each for each in CLIENTS.values() if each.form in ("groups", "flat")], ids=lambda c: c.name
)
def test_a_command_line_has_no_path_of_this_machine(client: object) -> None:
    """In a project it is checked in, and has to be the same in every clone."""
    from gitmem.clients.clients import Client

    assert isinstance(client, Client)
    script = client.in_command(
        PROJECT, f"/some/where/{client.base}/hooks/signal-received.sh", "/some/where", "/home/me"
    )

    for entry in client.entries(PROJECT, script, b""):
        assert "/some/where" not in json.dumps(entry.value)
        assert settings.is_ours(entry.command)


# What status and doctor say of hooks: whole, old, in part, broken, not trusted, without a program.


@pytest.fixture
def folders(repo: Path, tmp_path: Path) -> ClientFolders:
    program = tmp_path / "gitmem"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    found = at(repo, tmp_path / "home")
    install.install(found, ["claude-code", "codex"], PROJECT, program=str(program))
    agents_md.install(found, ["claude-code", "codex"], PROJECT)
    return found


def states(folders: ClientFolders) -> dict[str, str]:
    return {each.client: scope.state for each, scope in install.read_status(folders).installed}


def codes(folders: ClientFolders) -> set[str]:
    """What doctor finds."""
    installed = SimpleNamespace(hooks=lambda: install.read_status(folders))
    check = doctor.Hooks(SimpleNamespace(store=None, installed=installed))  # type: ignore[arg-type]
    return {f"{each.severity} {each.code}" for each in check.check()}


def test_what_is_whole_is_said_to_be(folders: ClientFolders) -> None:
    """Nothing for doctor but that nobody has reviewed them in Codex."""
    found = install.read_status(folders)

    assert states(folders) == {"claude-code": "installed", "codex": "installed"}
    assert found.program_works and found.last_error is None
    assert codes(folders) == {"note hooks-untrusted"}


def test_what_is_broken_is_said(folders: ClientFolders, repo: Path) -> None:
    """Settings without our entries, broken ones with the place, a script of another version, and one that is gone."""
    script, settings = repo / ".claude" / "hooks" / "signal-received.sh", repo / ".claude" / "settings.json"
    for file, content, state, code in (
        (settings, "{}", "incomplete", "problem hooks-incomplete"),
        (settings, settings.read_text()[:-3], "broken", "problem hooks-broken"),
        (script, f"{script.read_text()}# old\n", "outdated", "note hooks-old"),
        (script, None, "incomplete", "problem hooks-incomplete"),
    ):
        whole = file.read_text()
        file.unlink() if content is None else file.write_text(content)
        assert (states(folders)["claude-code"], code in codes(folders)) == (state, True), content
        problems = [scope.problem for _, scope in install.read_status(folders).installed]
        assert any(f"{settings}, line" in each for each in problems) is (state == "broken")
        file.write_text(whole)


def test_a_program_that_is_gone_is_said(folders: ClientFolders, tmp_path: Path) -> None:
    """Neither the one that was noted nor one on the PATH."""
    (tmp_path / "gitmem").unlink()

    assert not install.read_status(folders).program_works
    assert "problem hooks-program" in codes(folders)
    folders.programs["gitmem"] = "/usr/bin/gitmem"
    assert "problem hooks-program" not in codes(folders)


def test_the_last_trouble_is_said(folders: ClientFolders) -> None:
    """A hook is silent; here it is told."""
    hook_state.note_error(folders.state, 1_793_000_000_000_000, "codex Stop", "the disk is full")

    found = install.read_status(folders)

    assert found.last_error is not None and "the disk is full" in found.last_error
    assert "note hooks-error" in codes(folders)


def review(folders: ClientFolders, scope: str, *, trust: str | None = None) -> None:
    """What Codex writes when its user has reviewed every hook."""
    client = CLIENTS["codex"]
    base = folders.base(client, scope)
    folder = folders.base(client, USER)
    assert base is not None and folder is not None
    target = ClientScope(client, scope, folders, base)
    assert target.settings is not None
    digests = {each.command: install.digest(each) for each in target.wanted()}
    names = {"PostToolUse": "post_tool_use", "UserPromptSubmit": "user_prompt_submit", "SessionStart": "session_start",
             "Stop": "stop", "SessionEnd": "session_end", "PreCompact": "pre_compact", "SubagentStop": "subagent_stop",
             "PreToolUse": "pre_tool_use"}  # fmt: skip
    lines = [f'[projects."{folders.worktree}"]\ntrust_level = "{trust}"\n'] if trust else []
    for each in target.settings.ours():
        key = f"{target.settings.path}:{names[each.event]}:{each.group}:{each.handler}"
        lines.append(f'[hooks.state."{key}"]\ntrusted_hash = "{digests[each.command]}"\n')
    Path(folder).mkdir(exist_ok=True)
    Path(folder, "config.toml").write_text("\n".join(lines))


def trust(folders: ClientFolders, scope: str) -> str | None:
    found = [each for client, each in install.read_status(folders).installed if client.client == "codex"]
    return next(each.trust for each in found if each.scope == scope)


def test_codex_trusts_what_its_user_has_reviewed(folders: ClientFolders) -> None:
    """By place and digest; in a project only where the project is trusted."""
    install.install(folders, ["codex"], USER, program=None)
    assert (trust(folders, PROJECT), trust(folders, USER)) == ("untrusted", "untrusted")

    review(folders, USER)
    assert trust(folders, USER) == "trusted"
    review(folders, PROJECT)
    assert trust(folders, PROJECT) == "untrusted"
    review(folders, PROJECT, trust="trusted")
    assert trust(folders, PROJECT) == "trusted"


def test_codex_does_not_trust_what_has_changed(folders: ClientFolders, tmp_path: Path) -> None:
    """Or what it can't be asked about."""
    install.install(folders, ["codex"], USER, program=None)
    review(folders, USER)
    config = tmp_path / "home" / ".codex" / "config.toml"
    config.write_text(config.read_text().replace("sha256:", "sha256:0", 1))
    assert trust(folders, USER) == "changed"

    config.write_text("[broken")
    assert trust(folders, USER) == "unknown"


def test_codex_in_a_linked_worktree_reads_the_main_one(
    folders: ClientFolders, repo: Path, tmp_path: Path
) -> None:
    """What is installed in the linked one alone is never run."""
    other = tmp_path / "other"
    subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(other)], cwd=repo, check=True)
    linked = at(other, tmp_path / "home")
    install.install(linked, ["codex"], PROJECT, program=None)
    review(folders, PROJECT, trust="trusted")
    assert trust(linked, PROJECT) == "trusted"

    install.uninstall(folders, ["codex"], PROJECT)

    assert trust(linked, PROJECT) == "elsewhere"


def test_the_digest_is_the_one_that_codex_shows() -> None:
    """The form that `hooks/list` of Codex 0.169 was seen to hash, computed here by hand."""
    import hashlib

    entries = CLIENTS["codex"].entries(USER, "x", b"")
    (entry,) = (each for each in entries if each.event == "SessionEnd")
    command = entry.command.replace('"', '\\"')
    hook = f'{{"async":false,"command":"{command}","timeout":3,"type":"command"}}'
    form = f'{{"event_name":"session_end","hooks":[{hook}]}}'

    assert install.digest(entry) == "sha256:" + hashlib.sha256(form.encode()).hexdigest()
