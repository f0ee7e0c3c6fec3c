"""The capdex command."""

from typing import TYPE_CHECKING

from capdex.door import door

if TYPE_CHECKING:
    from capdex_cli.main import main

__all__ = ["main"]

if not TYPE_CHECKING:  # for a type checker a room has these names alone
    __getattr__ = door(__name__)
