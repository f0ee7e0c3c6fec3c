"""The agent's side of capdex: find, verify, install, route to and invoke capabilities."""
