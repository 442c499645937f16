"""The error about a package of an extra that is not installed, with the commands that install it."""

from __future__ import annotations

import contextlib

from gitmem.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def needs_extra(extra: str, packages: tuple[str, ...], added: str, code: str, what: str) -> Iterator[None]:
    """Import a module that needs the packages of an extra.

    Args:
        extra: The extra's name.
        packages: The top packages that it installs.
        added: The requirements that pipx has to add, quoted for a shell.
        code: The error's code.
        what: What is not installed, and what needs it.

    Raises:
        UsageError: One of the packages is not installed.
    """
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in packages:
            raise
        pip, pipx, uv = (
            f"pip install 'gitmem-coord[{extra}]'",
            f"pipx inject gitmem-coord {added}",
            f"uv tool install 'gitmem-coord[{extra}]'",
        )
        raise UsageError(
            what,
            hint=f"Run `{pip}` if gitmem was installed with pip, `{pipx}` with pipx, or `{uv}` with uv.",
            code=code,
            next=[pip, pipx, uv],
        ) from None
