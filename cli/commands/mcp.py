"""`gitmem mcp`."""

from __future__ import annotations

import sys

from gitmem.errors import UsageError

from ..environment import Environment
from ..render import output

INSTALL = "pip install 'gitmem-coord[mcp]'"
PIPX = "pipx inject gitmem-coord 'mcp>=2,<3'"
UV = "uv tool install 'gitmem-coord[mcp]'"


def mcp(at: Environment) -> None:
    """Serve an MCP client on standard input and output. MCP clients run this command. Answers are text; with --json they are fields (structuredContent), for a client that reads these."""
    try:
        from ..mcp import server
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types", "anyio"):
            raise
        raise UsageError(
            "The MCP SDK is not installed; gitmem mcp needs it.",
            hint=f"Run `{INSTALL}` if gitmem was installed with pip, `{PIPX}` with pipx, or `{UV}` with uv.",
            code="no-mcp",
            next=[INSTALL, PIPX, UV],
        ) from None
    if sys.stdin is not None and sys.stdin.isatty():
        output.write_error("gitmem: waiting for an MCP client on standard input; press Ctrl-D to end.")
    server.run(at.directory, at.as_, fields=at.json)
