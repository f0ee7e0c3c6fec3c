"""Executors of tools: HTTP, MCP services and other agents, each within its bounds."""
