"""Everything between a command and the terminal: options, output, errors, prompts, logs.

`command` makes a command of a function `(app, …)`; `App` gives it its options, settings and output.
"""
