"""`gitmem mcp`: the tools of an agent whose client speaks MCP, on standard input and output. Imported there alone."""
