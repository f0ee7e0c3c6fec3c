"""`python -m capdex`: the command line."""

import importlib

if __name__ == "__main__":
    # by name: the core knows no room (import-linter), this file only starts one
    importlib.import_module("capdex_cli.main").main()
