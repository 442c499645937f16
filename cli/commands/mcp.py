"""`gitmem mcp`."""

from __future__ import annotations

import sys

from ..environment import Environment
from ..missing_extra import needs_extra
from ..render import output

PACKAGES = ("mcp", "mcp_types", "anyio")


def mcp(at: Environment) -> None:
    """Serve an MCP client on standard input and output. MCP clients run this command. Answers are text; with --json they are fields (structuredContent), for a client that reads these."""
    with needs_extra(
        "mcp", PACKAGES, "'mcp>=2,<3'", "no-mcp", "The MCP SDK is not installed; gitmem mcp needs it."
    ):
        from ..mcp import server
    if sys.stdin is not None and sys.stdin.isatty():
        output.write_error("gitmem: waiting for an MCP client on standard input; press Ctrl-D to end.")
    server.run(at.directory, at.as_, fields=at.json)
