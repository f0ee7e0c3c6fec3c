"""Packages made of what an author already has: an MCP server, tools, an API, a skill."""
