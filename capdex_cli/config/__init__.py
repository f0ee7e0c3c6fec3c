"""Configuration: options, CAPDEX_* variables, capdex.toml, config.toml and built-in networks."""
