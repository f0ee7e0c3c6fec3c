"""Answers over a read-only index: MCP tools by HTTP and stdio, and JSON pages of names.

`server` and `http` build the services; `tools` and `answers` define what clients see.
"""
