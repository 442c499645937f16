"""The README and the pages for users: their console blocks are run in order, and their output is compared."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tools.terminal_film import Moment, film

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs/guide.md").read_text(encoding="utf-8")
GLOSSARY = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
PAGES = [
    "README.md",
    *(
        pytest.param(f"docs/{page}.md", marks=pytest.mark.deep)
        for page in ("guide", "recipes", "troubleshooting", "upgrade")
    ),
]
# Blocks that install programs: in an environment of their own, or with pipx.
INSTALLS = (".venv", "pipx")
MARK = "@@@@"
STATUS = "= exit status "

Shell = Callable[..., list[str]]


def _blocks(page: str, language: str = "console") -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def _installs(block: str) -> bool:
    return any(word in block for word in INSTALLS)


def _steps(block: str) -> list[tuple[str, str]]:
    """Return the commands of a block, each with its expected output."""
    found: list[tuple[str, str]] = []
    for line in block.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line[2:].rstrip("\n"), ""))
        else:
            found[-1] = (found[-1][0], found[-1][1] + line)
    return found


def _pattern(expected: str) -> str:
    """Return the pattern of an output; `…` stands for any text in its line, and alone in a line for any lines."""
    lines = [
        r"(?:.*\n)*" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + r"\n"
        for line in expected.splitlines()
    ]
    return "".join(lines)


def _as_recorded(output: str) -> str:
    """Return an output as a reader gets it, who types more slowly than a commit takes; here every command commits at once."""
    return re.sub(r"· commit [0-9a-f]{12}", "· recorded", output)


@pytest.fixture
def shell(tmp_path: Path, repo: Path, git, monkeypatch: pytest.MonkeyPatch) -> Shell:  # type: ignore[no-untyped-def]  # a fixture
    """Run commands in one shell, in a repository with a remote; the user has Claude Code and no sessions."""
    programs, home, shop = tmp_path / "programs", tmp_path / "home", tmp_path / "shop"
    programs.mkdir()
    (home / ".claude").mkdir(parents=True)
    for name, module in (("gitmem", "cli"), ("gitmem-merge", "merge_driver")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m {module} "$@"\n')
        program.chmod(0o755)
    repo.rename(shop)
    git("init", "--quiet", "--bare", "--initial-branch=main", str(tmp_path / "hub.git"))
    git("remote", "add", "origin", str(tmp_path / "hub.git"), cwd=shop)
    git("push", "--quiet", "origin", "main", cwd=shop)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("GITMEM_MERGE", str(programs / "gitmem-merge"))

    def run(commands: list[str], cwd: Path = shop) -> list[str]:
        script = "".join(f"echo {MARK}\n{command}\necho {STATUS}$?\n" for command in commands)
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=240,
            stdin=subprocess.DEVNULL,
        )
        assert "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
        outputs = done.stdout.split(f"{MARK}\n")[1:]
        assert len(outputs) == len(commands), done.stderr
        for number, command in enumerate(commands):
            outputs[number] = _as_recorded(outputs[number])
            outputs[number], status = outputs[number].rsplit(STATUS, 1)
            assert status == "0\n", f"$ {command}\n{outputs[number]}{done.stderr}"
        return outputs

    return run


@pytest.mark.parametrize("page", PAGES)
def test_a_page_does_what_it_shows(page: str, shell: Shell, tmp_path: Path) -> None:
    """Every command is run in the order of the page, and prints what the page says. The README starts with nothing."""
    (tmp_path / "empty").mkdir()
    steps = [step for block in _blocks(page) if not _installs(block) for step in _steps(block)]
    keeps_variables = ("eval ", "unset ")
    commands = [
        command if command.startswith(keeps_variables) else f"{{ {command}\n}} 2>&1" for command, _ in steps
    ]
    assert commands

    outputs = shell(commands, tmp_path / "empty" if page == "README.md" else tmp_path / "shop")

    for (command, expected), output in zip(steps, outputs, strict=True):
        assert re.fullmatch(_pattern(expected), output), f"$ {command}\n{output}"


class Terminal:
    """A shell that a reader types into. `ids` are those of the page, with the ones that were printed in their place."""

    def __init__(self, folder: Path, ids: dict[str, str]) -> None:
        self.ids = ids
        self.process = subprocess.Popen(
            ["bash"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )  # fmt: skip

    def type(self, command: str, expected: str) -> None:
        """Run a command, and compare what it prints; one that serves goes on after the expected lines."""
        pipe, output = self.process.stdin, self.process.stdout
        assert pipe is not None and output is not None
        serves = " serve-agent " in command
        for ours, printed in self.ids.items():
            command, expected = command.replace(ours, printed), expected.replace(ours, printed)
        pipe.write(command if serves else f"{{ {command}\n}} 2>&1\necho {MARK}")
        pipe.write("\n")
        pipe.flush()
        if serves:
            printed = "".join(output.readline() for _ in expected.splitlines())
        else:
            printed = _as_recorded("".join(itertools.takewhile(lambda line: line != f"{MARK}\n", output)))
        pattern = _pattern(expected)
        new: list[str] = []
        for id in dict.fromkeys(re.findall(r"task-[0-9a-z]{12,22}", expected)):
            if id not in self.ids.values():
                name = re.escape(id)
                pattern = pattern.replace(name, "(task-[0-9a-z]{22})", 1).replace(name, rf"\{len(new) + 1}")
                new.append(id)
        found = re.fullmatch(pattern, printed)
        assert found, f"$ {command}\n{printed}"
        self.ids.update(zip(new, found.groups(), strict=True))

    def close(self) -> None:
        """End it with all that runs in it."""
        os.killpg(self.process.pid, signal.SIGINT)
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.communicate(timeout=30)


@pytest.mark.deep
@pytest.mark.usefixtures("shell")
def test_the_terminals_of_the_page_on_calls_do_what_they_show(tmp_path: Path) -> None:
    """Each block runs in the terminal of its name, in the order of the page; then the lines for Python."""
    page = (ROOT / "docs/invocation.md").read_text(encoding="utf-8")
    ids: dict[str, str] = {}
    terminals: dict[str, Terminal] = {}
    try:
        for name, block in re.findall(r"```console (\w+)\n(.*?)```", page, re.DOTALL):
            terminal = terminals.get(name) or terminals.setdefault(name, Terminal(tmp_path / "shop", ids))
            for command, expected in _steps(block):
                terminal.type(command, expected)
        (block,) = _blocks("docs/invocation.md", "python")
        done = subprocess.run(
            [sys.executable, "-c", block], cwd=tmp_path / "shop", capture_output=True, text=True, timeout=120,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert done.stdout.startswith("| How is it rounded?\n") and "Round once per line" in done.stdout, (
            done.stderr
        )
    finally:
        for terminal in terminals.values():
            terminal.close()
    assert sorted(terminals) == ["bohr", "planck", "prices"] and len(ids) == 2


def test_the_python_block_runs(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library does what the recipe shows."""
    shell([f"gitmem session start --name {name}" for name in ("Planck", "Curie")])
    (block,) = _blocks("docs/recipes.md", "python")
    monkeypatch.chdir(tmp_path / "shop")

    exec(compile(block, "recipes.md", "exec"), {})


def test_the_configuration_of_an_mcp_client_starts_a_server(shell: Shell, tmp_path: Path) -> None:
    """The server of the JSON block answers a client's first request."""
    (block,) = _blocks("README.md", "json")
    server = json.loads(block)["mcpServers"]["gitmem"]
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }

    done = subprocess.run(
        [server["command"], *server["args"]],
        input=json.dumps(hello) + "\n",
        cwd=tmp_path / "shop",
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"]["name"] == "gitmem", done.stderr


def test_the_codes_that_troubleshooting_names_exist() -> None:
    """Whoever looks an error up by its code finds what the program says."""
    tables = re.findall(
        r"^\| (`.*?) \|", (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    codes = {code for cell in tables for code in re.findall(r"`([a-z-]+)`", cell)}
    sources = [path for folder in ("gitmem", "cli") for path in (ROOT / folder).rglob("*.py")]
    words = set(re.findall(r'"([a-z-]+)"', "\n".join(path.read_text(encoding="utf-8") for path in sources)))

    assert len(codes) > 10
    assert sorted(codes - words) == []


def test_every_block_of_the_readme_is_run_by_a_test() -> None:
    """Two commands make an environment each: one runs the demo, one the tests, as CI does. Two use pipx."""
    blocks = [_steps(block) for block in _blocks("README.md") if _installs(block)]
    commands = [command for steps in blocks for command, _ in steps]

    assert [len(steps) for steps in blocks] == [1] * len(blocks)
    assert [command.split()[-2:] for command in commands if ".venv" in command] == [
        [".venv/bin/gitmem", "demo"],
        ["-m", "pytest"],
    ]
    assert [command for command in commands if ".venv" not in command] == [
        "pipx install .",
        "pipx inject gitmem-coord 'mcp>=2,<3'",
    ]
    assert set(re.findall(r"^```(\w+)$", README, re.MULTILINE)) == {"console", "json"}


@pytest.mark.deep
@pytest.mark.timeout(900)  # three environments
def test_the_commands_that_install_do_so(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a copy of the checkout: the demo runs, pipx installs the program and adds the MCP SDK to it."""
    checkout, home = tmp_path / "checkout", tmp_path / "home"
    home.mkdir()
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).exists():
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, checkout / name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    commands = [command for block in _blocks("README.md") if _installs(block) for command, _ in _steps(block)]
    demo, pipx, mcp = (command for command in commands if "pytest" not in command)

    def run(command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", command], cwd=checkout, capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
        return done.stdout

    assert "all 3 parties agreed on" in run(demo)
    run(".venv/bin/pip install --quiet pipx")
    monkeypatch.setenv("PATH", f"{checkout / '.venv/bin'}:{os.environ['PATH']}")
    run(pipx)
    run(mcp)
    assert run(f"{home}/.local/bin/gitmem --version").startswith("gitmem ")


def test_the_readme_and_the_guide_are_short() -> None:
    """A stranger reads them to the end."""
    assert len(README.split()) <= 1_000
    assert len(GUIDE.split()) <= 1_500


def test_the_glossary_is_short() -> None:
    """At most 25 terms, in alphabetical order, of one or two sentences each."""
    terms = re.findall(r"^\*\*(.+?)\*\*: (.+)$", GLOSSARY, re.MULTILINE)
    names = [name for name, _ in terms]

    assert 0 < len(terms) <= 25
    assert len(re.findall(r"^\*\*", GLOSSARY, re.MULTILINE)) == len(terms)
    assert names == sorted(set(names), key=str.lower)
    for name, text in terms:
        assert 1 <= len(re.findall(r"[.](?:\s|$)", text)) <= 2, name
        assert len(text.split()) <= 45, name


@pytest.mark.parametrize("name", ["clients", "overview"])
def test_the_pictures_can_be_read_by_everybody(name: str) -> None:
    """Text for screen readers, and nothing that is loaded or run."""
    (link,) = re.findall(rf"!\[.{{40,}}?\]\((docs/{name}\.svg)\)", README)
    text = (ROOT / link).read_text(encoding="utf-8")
    svg = "{http://www.w3.org/2000/svg}"
    root = ElementTree.fromstring(text)
    labels = {root.find(f"{svg}{tag}").attrib["id"] for tag in ("title", "desc")}  # type: ignore[union-attr]

    assert root.attrib["role"] == "img"
    assert set(root.attrib["aria-labelledby"].split()) == labels
    assert all(len((root.findtext(f"{svg}{tag}") or "").split()) >= 4 for tag in ("title", "desc"))
    assert not re.search(
        r"<(script|image|foreignObject|a)\b|(?:href|src)=\"(?!#)|url\((?!#)|@import|\bon\w+=", text
    )


def test_the_overview_has_colours_for_dark_mode() -> None:
    """Each colour of the light one has its counterpart."""
    light, _, dark = (ROOT / "docs/overview.svg").read_text(encoding="utf-8").partition("@media (prefers-color-scheme: dark)")  # fmt: skip
    colours = re.compile(r"^ *(\S+) \{.*#[0-9a-f]{6}", re.MULTILINE)
    assert colours.findall(light) == colours.findall(dark) != []


def test_the_film_of_the_clients_shows_nothing_of_the_machine_that_made_it() -> None:
    """No folder, host or address; it is small, begins anew, and stands still for who wants no motion."""
    text = (ROOT / "docs/clients.svg").read_text(encoding="utf-8")
    words = " ".join(ElementTree.fromstring(text).itertext())

    assert not re.search(r"(?<![\w.~])/\w+/|\b\d+\.\d+\.\d+\.\d+\b|localhost|://|@\w", re.sub("@(keyframes|media)", "", words))  # fmt: skip
    assert len(text.encode()) <= 300_000
    assert "infinite" in text and "prefers-reduced-motion" in text
    assert re.search(r"all 2 parties", words) and "--agree" in words


def test_a_film_draws_each_line_once_in_the_style_that_holds() -> None:
    """A style lasts beyond the end of its line, markup is text, and equal screens take no new place."""
    red = "\x1b[31m<b>\n& \x1b[48;5;16m!\x1b[0m"
    moments = [Moment((red,), "One", 1.0), Moment((red,), "Two", 1.0), Moment(("&",), "Two", 2.0)]
    text = film(moments, [("Left", "beside")], 10, 2, "A name", "A story", "A note")
    root = ElementTree.fromstring(text)
    drawn = [
        ["".join(each.itertext()) for each in line.iter("{http://www.w3.org/2000/svg}text")]
        for line in root.iter("{http://www.w3.org/2000/svg}g")
        if line.get("id")
    ]

    assert drawn == [["<b>"], ["&", "!"], ["&"]]
    assert text.count("fill:#ff7b72") == 3
    assert "@keyframes f0 {0.00%{transform:translateY(0px)}50.00%{transform:translateY(-34px)}100%" in text
    assert "@keyframes c {0.00%{transform:translateY(0px)}25.00%{transform:translateY(-60px)}100%" in text
