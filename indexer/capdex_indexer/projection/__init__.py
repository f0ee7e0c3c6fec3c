"""Pure functions from logs and packages to database rows; they run in the worker processes, too."""
