"""Learned command-line tools: kept in files, offered as capabilities, and learned again."""
