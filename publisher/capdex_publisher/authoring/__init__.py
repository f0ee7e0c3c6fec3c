"""Write package files: start one, validate it as a node would, sign it as its author."""
