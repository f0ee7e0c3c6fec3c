"""Learned command-line programs: probed, kept in files, offered and run as capabilities."""
