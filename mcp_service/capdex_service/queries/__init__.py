"""The questions that a node answers, one function each, for every protocol."""
