"""Invocation: the one pipeline, what is installed and mounted, sessions and results."""
