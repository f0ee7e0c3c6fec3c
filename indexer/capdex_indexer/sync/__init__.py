"""The loop from chain to rows: read a step, check it against the contract, apply it, report it."""
