"""The catalogue: all that can be called, where it comes from, and the search over it."""
