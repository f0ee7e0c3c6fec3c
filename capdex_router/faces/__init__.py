"""Faces of the runtime: MCP over stdio, CAP and CMP on a Unix socket, the agentkit protocols."""
