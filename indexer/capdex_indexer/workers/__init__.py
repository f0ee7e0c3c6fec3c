"""Worker processes, bounded in time and memory, that parse hostile bytes for the node.

`pool` runs them, `frames` defines what crosses the process boundary, `main` is the worker's side.
"""
