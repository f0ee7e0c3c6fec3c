"""Everything between a command and the terminal: options, output, errors, prompts, logs.

`command` makes a command of a function `(app, …)`; `App` gives it its options, settings and output.
"""

from cli.terminal.app import App
from cli.terminal.click_commands import Entry, Group, Program, command
from cli.terminal.output import Format, Output, Stream

__all__ = ["App", "Entry", "Format", "Group", "Output", "Program", "Stream", "command"]
