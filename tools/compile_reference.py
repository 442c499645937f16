"""Write the reference from the help of the commands: `docs/reference/`, and the man page that the wheel installs; and the table of settings.

For developers, after a change of a command or an option: `python tools/compile_reference.py`. A test compares the checked-in files
with fresh ones.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
MAN = DOCS / "man" / "gitmem.1"
REFERENCE = DOCS / "reference"
SETTINGS = DOCS / "settings.md"
DO_NOT_EDIT = "Written by tools/compile_reference.py from the help of the commands: do not edit."
EVERY = "Every command takes these, too, before or after its name."


@dataclass(frozen=True)
class Command:
    """What the help says of one command, without the options of every command."""

    path: str
    usage: str
    about: str
    options: list[tuple[str, str]]

    @property
    def typed(self) -> str:
        """How it is typed."""
        return f"gitmem {self.path} {self.usage}".rstrip()


def main() -> int:
    """Write the files, and remove pages of groups that are gone."""
    files = compile_reference()
    for old in set(REFERENCE.glob("*.md")) - files.keys():
        old.unlink()
    for path, content in files.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return 0


def compile_reference() -> dict[Path, str]:
    """Return the content of each file."""
    import typer

    from cli import app
    from tools.compile_parser import commands_of

    root: Any = app.build()
    top = typer.Context(root, info_name="gitmem")
    common = {option for each in root.params for option in each.opts}
    commands = []
    for path, command in commands_of(root):
        if command.hidden:
            continue
        ctx = typer.Context(command, parent=top, info_name=path)
        usage = " ".join(piece for piece in command.collect_usage_pieces(ctx) if piece != "[OPTIONS]")
        own = [each for each in command.params if not common.intersection(each.opts)]
        commands.append(
            Command(path, re.sub("{([^a-z}]*)}", r"\1", usage), command.help, list(options_of(own, ctx)))
        )
    every = list(options_of(root.params, top))
    topics = {
        topic: [each for name in names for each in commands if each.path.split()[0] == name]
        for topic, names in app.TOPICS.items()
    }
    pages = {page_of(topic): page(topic, each) for topic, each in topics.items()}
    return {
        MAN: man(app.ABOUT, every, commands),
        REFERENCE / "README.md": index(every, topics),
        SETTINGS: settings_page(SETTINGS.read_text(encoding="utf-8")),
        **{REFERENCE / name: content for name, content in pages.items()},
    }


def settings_page(page: str) -> str:
    """Return the page of the settings with a fresh table."""
    from gitmem.settings import SETTINGS as DECLARED

    head, rows = "| git config | meaning | values | default |\n|---|---|---|---|\n", []
    for each in DECLARED:
        values = [*(f"`{word}`" for word in each.choices), *filter(None, [each.form])]
        default = f"`{each.default}`" if each.default else "–"
        rows.append(f"| `{each.key}` | {each.meaning} | {', '.join(values) or 'text'} | {default} |\n")
    return re.sub(rf"{re.escape(head)}(\|.*\n)*", lambda _: head + "".join(rows), page)


def options_of(parameters: Iterable[Any], ctx: Any) -> Iterator[tuple[str, str]]:
    """Yield name and help of options and arguments that have help."""
    for each in parameters:
        record = None if getattr(each, "hidden", False) else each.get_help_record(ctx)
        if record is not None and record[1]:
            yield record[0], " ".join(record[1].split())


def man(about: str, every: list[tuple[str, str]], commands: list[Command]) -> str:
    """Return the man page in the macros of `man`, section 7."""

    def options(found: list[tuple[str, str]]) -> list[str]:
        return [line for name, help in found for line in (".TP", rf"\fB{roff(name)}\fR", *sentences(help))]

    usage = "[OPTIONS] COMMAND [ARGS]..."
    lines = [
        rf".\" {DO_NOT_EDIT}",
        '.TH GITMEM 1 "" gitmem "gitmem manual"',
        ".SH NAME",
        rf"gitmem \- {roff(about[:1].lower() + about[1:].rstrip('.'))}",
        *(".SH SYNOPSIS", r".B gitmem", usage),
        *(".SH OPTIONS", EVERY, *options(every)),
        ".SH COMMANDS",
    ]
    for each in commands:
        lines += [f'.SS "{roff(each.typed)}"', ".PP", *sentences(each.about), *options(each.options)]
    return "\n".join([*lines, ".SH SEE ALSO", ".BR git (1)"]) + "\n"


def sentences(found: str) -> list[str]:
    """Return a text for roff, each line of the source one sentence or less."""
    return [roff(each) for each in " ".join(found.split()).replace(". ", ".\n").split("\n")]


def roff(plain: str) -> str:
    """Return text without a meaning for roff; what is in backticks is bold."""
    escaped = plain.replace("\\", r"\e").replace("-", r"\-").replace('"', r"\(dq")
    escaped = re.sub("`([^`]*)`", r"\\fB\1\\fR", escaped)
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped


def index(every: list[tuple[str, str]], topics: dict[str, list[Command]]) -> str:
    """Return the page that lists all commands."""
    from tools.compile_help import first_sentence

    lines = [
        f"<!-- {DO_NOT_EDIT} -->\n",
        "# Commands\n",
        f"{EVERY}\n",
        *options_in_markdown(every),
    ]
    for topic, commands in topics.items():
        lines += [f"\n## {topic}\n"]
        for each in commands:
            link = f"{page_of(topic)}#gitmem-{each.path.replace(' ', '-')}"
            lines.append(f"- [`gitmem {each.path}`]({link}): {markdown(first_sentence(each.about))}")
    return "\n".join(lines) + "\n"


def page_of(topic: str) -> str:
    """Return the name of a topic's page, such as `share-look.md`."""
    return re.sub(r"\W+", "-", topic.lower()) + ".md"


def page(topic: str, commands: list[Command]) -> str:
    """Return the page of a topic."""
    lines = [f"<!-- {DO_NOT_EDIT} -->\n", f"# {topic}\n", "[All commands](README.md)"]
    for each in commands:
        lines += [f"\n## gitmem {each.path}\n", markdown(" ".join(each.about.split())), ""]
        lines += [f"`{each.typed}`", ""] if each.usage else []
        lines += options_in_markdown(each.options)
    return re.sub("\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def options_in_markdown(found: list[tuple[str, str]]) -> list[str]:
    """Return a list of options and arguments."""
    return [f"- `{name}`: {markdown(help)}" for name, help in found]


def markdown(plain: str) -> str:
    """Return text without a meaning for Markdown, but for what is in backticks."""
    parts = plain.split("`")
    parts[::2] = [re.sub(r"([\\*<])", r"\\\1", each) for each in parts[::2]]
    return "`".join(parts)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
