"""Configuration: options, CAPDEX_* variables, capdex.toml, config.toml and built-in networks."""

from cli.config.directories import user_directories
from cli.config.load import load
from cli.config.settings import Network, Settings

__all__ = ["Network", "Settings", "load", "user_directories"]
