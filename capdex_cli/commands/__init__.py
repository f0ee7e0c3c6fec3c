"""The commands, one module each, in a folder a section of `capdex --help`."""
