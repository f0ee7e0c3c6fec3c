"""Executors of tools: HTTP, MCP services, other agents and programs, each within its bounds."""
