"""Commands of the agent's side: capabilities that are used on this machine."""
