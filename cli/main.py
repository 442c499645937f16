"""The front door: run a command by the parser's table, or by typer; errors become a message, a hint and an exit status."""

from __future__ import annotations

import gc
import os
import sys

from . import parser
from .render import out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

INTERRUPTED = 130
# Objects between two runs of Python's collector. A command lives for milliseconds: as it is set by default, a tenth of
# them went into looking through what had just been imported.
GARBAGE_MIN = 20_000


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    Args:
        argv: The arguments after the program's name; those of the process when None.
    """
    if argv is not None:
        return _answer(list(argv))
    gc.set_threshold(GARBAGE_MIN)
    if "threading" not in sys.modules:  # else somebody has more to do than this command
        out.answer_last()
    try:
        status = _answer(sys.argv[1:])
    finally:
        gc.freeze()  # the process ends: nothing is worth looking through once more
    if out.is_last() and "threading" not in sys.modules and out.is_flushed():
        os._exit(status)  # at an ordinary end SQLite would bring its log to the file, and wait for the disk
    return status


def _answer(args: list[str]) -> int:
    if args and args[0] == "hook":  # what agents' hooks run: it is nobody's command, and never fails
        from .hooks.run import main as hook

        return hook(args[1:])
    out.begin()
    try:
        if not all(map(str.isascii, args)):
            from .values import check_utf8

            check_utf8(args)
        return _run(args)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        from .failure import report

        return report(error, args)


def _run(args: list[str]) -> int:
    parsed = parser.parse(args)
    if parsed is not None:
        return parsed.run()
    if args == ["--version"]:
        from gitmem import __version__

        out.say(f"gitmem {__version__}")
        return 0
    from .app import run

    return run(args)


if __name__ == "__main__":
    sys.exit(main())
