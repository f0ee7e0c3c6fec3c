"""Which packages' triggers a message hits, and how precisely, among very many packages.

Pure: a `TriggerSet` is a value, each change makes another one. What it answers depends on the
packages that it holds alone, never on how they came into it.
"""
