"""Write the man page from the help of the commands: `docs/man/gitmem.1`, which the wheel installs.

For developers, after a change of a command or an option: `python tools/compile_man.py`. A test compares the checked-in page
with a fresh one. `git help mem` shows `git-mem.1`, which names this page.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "man" / "gitmem.1"


def main() -> int:
    """Write the page."""
    PAGE.write_text(compile_man(), encoding="utf-8")
    return 0


def compile_man() -> str:
    """Return the source of the page, in the macros of man(7)."""
    import typer

    from cli.app import build
    from tools.compile_parser import commands_of

    root: Any = build()
    top = typer.Context(root, info_name="gitmem")
    title, *about = root.help.split("\n\n")
    common = {option for each in root.params for option in each.opts}
    lines = [
        r".\" Written by tools/compile_man.py from the help of the commands: do not edit.",
        '.TH GITMEM 1 "" gitmem "gitmem manual"',
        ".SH NAME",
        rf"gitmem, git-mem \- {text(title[:1].lower() + title[1:].rstrip('.'))}",
        ".SH SYNOPSIS",
        r".B gitmem",
        text(" ".join(root.collect_usage_pieces(top))),
        ".br",
        r".B git mem",
        text(" ".join(root.collect_usage_pieces(top))),
        ".SH DESCRIPTION",
        *paragraphs(about),
        ".SH OPTIONS",
        "Every command takes these, too, before or after its name.",
        *options_of(root.params, top),
        ".SH COMMANDS",
    ]
    for path, command in commands_of(root):
        if command.hidden:
            continue
        ctx = typer.Context(command, parent=top, info_name=path)
        usage = " ".join(piece for piece in command.collect_usage_pieces(ctx) if piece != "[OPTIONS]")
        own = [each for each in command.params if not common.intersection(each.opts)]
        lines += [f'.SS "{text(f"gitmem {path} {usage}".rstrip())}"', *paragraphs([command.help])]
        lines += options_of(own, ctx)
    return "\n".join([*lines, ".SH SEE ALSO", ".BR git (1)"]) + "\n"


def options_of(parameters: Iterable[Any], ctx: Any) -> Iterator[str]:
    """Yield the paragraphs of options and arguments that have help."""
    for each in parameters:
        record = None if getattr(each, "hidden", False) else each.get_help_record(ctx)
        if record is not None and record[1]:
            yield from (".TP", rf"\fB{text(record[0])}\fR", *paragraphs([record[1]])[1:])


def paragraphs(found: Iterable[str]) -> list[str]:
    """Return texts as paragraphs, each line of the source one sentence or less."""
    lines = []
    for each in found:
        lines += [".PP", *map(text, " ".join(each.split()).replace(". ", ".\n").split("\n"))]
    return lines


def text(plain: str) -> str:
    """Return text without a meaning for roff; what is in backticks is bold."""
    escaped = plain.replace("\\", r"\e").replace("-", r"\-").replace('"', r"\(dq")
    escaped = re.sub("`([^`]*)`", r"\\fB\1\\fR", escaped)
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
