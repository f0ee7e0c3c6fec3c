"""The data directory of the router: its paths, its writer lock, and its audit log."""
