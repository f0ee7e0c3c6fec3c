"""The capdex command."""
