"""The data directory of the router: its paths, its writer lock, and files written as a whole."""
