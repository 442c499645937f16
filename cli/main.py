"""The front door: quick answers first, else the whole app; errors become a message, a hint and an exit status."""

from __future__ import annotations

import sys

from . import quick
from .render import out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    Args:
        argv: The arguments after the program's name; those of the process when None.
    """
    args = list(sys.argv[1:] if argv is None else argv)
    out.begin()
    try:
        if not all(map(str.isascii, args)):
            from .values import check_utf8

            check_utf8(args)
        answered = quick.answer(args)  # None: not a shape that it knows
        if answered is not None:
            return answered
        from .app import run

        return run(args)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        from .failure import report

        return report(error, args)


if __name__ == "__main__":
    sys.exit(main())
