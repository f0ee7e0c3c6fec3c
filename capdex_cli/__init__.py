"""The capdex command."""

from typing import TYPE_CHECKING

from capdex.door import door

if TYPE_CHECKING:
    from capdex_cli.main import main as main
else:  # its names and `__all__`: the imports above
    __getattr__ = door(__name__)
