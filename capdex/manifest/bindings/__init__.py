"""Tool bindings (P10): how a runtime executes the tools that are not built in."""
