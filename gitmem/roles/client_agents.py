"""The agents that clients have files of in a work tree. These files are read and never written.

| client | files | format |
|---|---|---|
| Claude Code | `.claude/agents/**.md` | Markdown with a YAML head |
| Gemini CLI | `.gemini/agents/*.md` | the same |
| GitHub Copilot | `.github/agents/*.agent.md` | the same |
| OpenCode | `.opencode/agent/*.md`, `.opencode/agents/*.md` | the same |
| Codex CLI | `.codex/agents/*.toml` | TOML |

The role is not in these files, because a client may refuse a key that it does not know. It comes from the name, by the
aliases of the pack.
"""

from __future__ import annotations

import time

from .. import work_tree_files
from ..outcome import Outcome
from . import file_formats
from .pack import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Client, folder, suffix of the names, and how many levels of folders are entered.
PLACES = (
    ("claude-code", ".claude/agents", ".md", 4),
    ("gemini", ".gemini/agents", ".md", 0),
    ("copilot", ".github/agents", ".agent.md", 0),
    ("opencode", ".opencode/agent", ".md", 0),
    ("opencode", ".opencode/agents", ".md", 0),
    ("codex", ".codex/agents", ".toml", 0),
)
FILES_MAX = 200
ENTRIES_MAX = 5_000
FILE_BYTES_MAX = 64 * 1024
SECONDS_MAX = 2.0
_TEXT_MAX = 1_000  # characters of a description
_NAME_MAX = 100
_TOOLS_MAX = 50


class ClientAgent(Outcome):
    """An agent by the file of a client. `model` and `description` are None if the file does not say them."""

    def __init__(self, name: str, client: str, path: str) -> None:
        self.name = name
        self.client = client
        self.path = path
        self.description: str | None = None
        self.model: str | None = None
        self.tools: list[str] = []


def read(
    top: str | None, *, clock: Callable[[], float] = time.monotonic
) -> tuple[list[ClientAgent], list[Problem]]:
    """Return the agents of all clients in a work tree, and the files that could not be read.

    Args:
        top: The top folder of the work tree; None for a bare repository, which has none.
        clock: Seconds; reading ends after `SECONDS_MAX`.
    """
    found: list[ClientAgent] = []
    problems: list[Problem] = []
    if top is None:
        return found, problems
    until = clock() + SECONDS_MAX
    search = work_tree_files.FileSearch(top, ENTRIES_MAX, lambda: clock() > until)
    for client, path, suffix in _files(search, problems):
        if len(found) + len(problems) >= FILES_MAX:
            search.cut = f"there are more than {FILES_MAX} agent files"
        elif clock() > until:
            search.cut = "reading takes too long"
        if search.cut:
            break
        try:
            found.append(_agent(top, client, path, suffix))
        except file_formats.FormatError as error:
            problems.append(Problem(path, error.line, error.reason))
        except (OSError, ValueError) as error:
            problems.append(Problem(path, None, _reason(error)))
    if search.cut:
        problems.append(Problem("agent files", None, f"{search.cut}; the rest is not read"))
    return found, problems


def _files(search: work_tree_files.FileSearch, problems: list[Problem]) -> Iterator[tuple[str, str, str]]:
    """Yield client, path and suffix of each file; folders that cannot be read are added to the problems."""
    for client, folder, suffix, depth in PLACES:
        try:
            paths = search.find(folder, suffix, depth)
        except (OSError, ValueError) as error:
            problems.append(Problem(folder, None, _reason(error)))
            continue
        for path in paths:
            yield client, path, suffix


def _agent(top: str, client: str, path: str, suffix: str) -> ClientAgent:
    """Return the agent of one file.

    Raises:
        OSError: The file cannot be read.
        ValueError: It has another form; the message has the reason.
    """
    real = work_tree_files.resolve(top, path)
    if real is None:
        raise ValueError("it is gone")
    text = work_tree_files.read_text(real, FILE_BYTES_MAX)
    values = file_formats.toml(text) if suffix == ".toml" else file_formats.frontmatter(text)
    stem = path.rpartition("/")[2].removesuffix(suffix)
    agent = ClientAgent(_line(values.get("name"), _NAME_MAX) or stem[:_NAME_MAX], client, path)
    agent.description = _line(values.get("description"), _TEXT_MAX)
    agent.model = _line(values.get("model"), _NAME_MAX)
    tools = values.get("tools")
    words = tools.split(",") if isinstance(tools, str) else tools if isinstance(tools, list) else []
    lines = (_line(each, _NAME_MAX) for each in words[:_TOOLS_MAX])
    agent.tools = [each for each in lines if each]
    return agent


def _line(value: object, most: int) -> str | None:
    """Return a text as one line of at most so many characters; None for anything else, and for an empty one."""
    words = " ".join(value.split()) if isinstance(value, str) else ""
    return words[:most] or None


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"it cannot be read ({error.strerror})"
    return str(error) or "it cannot be read"
