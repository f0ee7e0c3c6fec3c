"""Answers, problems and progress as text for people; shared by several commands."""
