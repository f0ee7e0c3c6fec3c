"""Routing of messages: triggers of installed capabilities, and the stack of a session."""
