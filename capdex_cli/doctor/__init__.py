"""Checks of `capdex doctor`: a table of them for this machine, and one for the network."""
