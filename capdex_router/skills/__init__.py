"""Packages as Agent Skills in folders where hosts look for them: SKILL.md and files."""
