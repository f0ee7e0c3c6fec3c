"""All network access of the protocol package. Every other package of `capdex` is pure."""
